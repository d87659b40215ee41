package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/kernel/plug"
	"dure/internal/kernel/session"
	"dure/internal/state/journal"
)

// script is a model that gives prepared answers. An answer may be an error, or
// a func that waits.
type script struct {
	mu      sync.Mutex
	answers []any
	asked   []agent.Request
	window  int
}

func (s *script) Info() agent.ModelInfo { return agent.ModelInfo{ID: "script", Window: s.window} }

func (s *script) Stream(ctx context.Context, req agent.Request) iter.Seq2[agent.Delta, error] {
	s.mu.Lock()
	var a any = errors.New("the script is over")
	if len(s.asked) < len(s.answers) {
		a = s.answers[len(s.asked)]
	}
	s.asked = append(s.asked, req)
	s.mu.Unlock()
	return func(yield func(agent.Delta, error) bool) {
		if f, ok := a.(func(context.Context) any); ok {
			a = f(ctx)
		}
		switch a := a.(type) {
		case error:
			yield(agent.Delta{}, a)
		case agent.Answer:
			for _, word := range strings.SplitAfter(a.Message.Text(), " ") {
				if !yield(agent.Delta{Kind: agent.DeltaText, Text: word}, nil) {
					return
				}
			}
			a.Message.Blocks = slices.Clone(a.Message.Blocks)
			yield(agent.Delta{Kind: agent.DeltaFinal, Final: &a}, nil)
		}
	}
}

// other is the script under another name.
type other struct {
	*script
	info agent.ModelInfo
}

func (o other) Info() agent.ModelInfo { return o.info }

func say(text string, calls ...agent.Call) agent.Answer {
	m := agent.Message{Role: agent.Assistant}
	if text != "" {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.TextBlock, Text: text})
	}
	for _, c := range calls {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.CallBlock, Call: &c})
	}
	return agent.Answer{Message: m, Usage: agent.Usage{Input: 10, Output: 5}}
}

func call(id, tool, input string) agent.Call {
	return agent.Call{ID: id, Tool: tool, Input: json.RawMessage(input)}
}

// tool is a tool whose work is a function.
type tool struct {
	name  string
	class agent.Class
	run   func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error)
}

func (t tool) Spec() agent.Spec {
	return agent.Spec{Name: t.name, Class: t.class, Input: json.RawMessage(`{}`)}
}

func (t tool) Plan(context.Context, agent.ToolContext, agent.Call) (agent.Effects, error) {
	return agent.Effects{}, nil
}

func (t tool) Run(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	return t.run(ctx, tc, c)
}

// sleep takes as long as its input says.
func sleep(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	d, err := time.ParseDuration(strings.Trim(string(c.Input), `"`))
	if err != nil {
		return agent.Result{}, err
	}
	select {
	case <-time.After(d):
		return agent.OK("slept " + d.String()), nil
	case <-ctx.Done():
		return agent.Result{}, context.Cause(ctx)
	}
}

// rig is a store with a registry over it, as one process has them.
type rig struct {
	extra func(context.Context, plug.Moment) []agent.ContextAdded
	t     *testing.T
	store journal.Store
	reg   *session.Registry
	model *script
	tools map[string]agent.Tool
	allow bool // by rule; otherwise a person is asked
	// person says which calls are put to a person all the same; nil = none
	person  func(agent.Proposal) bool
	reach   agent.Reach
	deep    bool // reach is that of children, too
	outcome func(string) (agent.Result, bool)
	modes   []agent.Mode
	given   []string                                             // grants
	tell    func(ctx context.Context, id, text, by string) error // of the child that was built last
	built   []agent.Open                                         // children, as they were to be built
	others  map[string]agent.ModelInfo                           // models beside the script's own, which says what they answer
	spare   []string                                             // fallbacks
	reaped  []agent.Process
	revive  func(string, agent.PendingCall) plug.Revival
	closed  func() // what the capabilities of a session do when it is closed
	past    []agent.Message
	compact func(context.Context, plug.Compaction) (*agent.ContextCompacted, error)
	before  func(ctx context.Context, trigger, focus string) (string, error)
	after   func(context.Context, agent.ContextCompacted)
	budget  plug.Amount
	params  agent.Params
	rewind  func(context.Context, agent.Rewind) (agent.FilesRewound, error)
	hooks   func(plug.Session) plug.Hooks
	slow    time.Duration                         // how long a stage of the gate takes
	offers  func(specs []agent.Spec) []agent.Spec // what a step has of all tools; nil = all
}

func newRig(t *testing.T, answers ...any) *rig {
	r := &rig{
		t: t, store: journal.NewMemory(journal.MemoryOptions{}), model: &script{answers: answers}, allow: true,
		tools: map[string]agent.Tool{
			"sleep": tool{"sleep", agent.Read, sleep},
			"write": tool{"write", agent.Unsafe, sleep},
		},
	}
	r.start()
	return r
}

// start begins another process over the same store.
func (r *rig) start() {
	r.reg = session.New(session.Config{Store: r.store, Build: r.build, Reap: func(p agent.Process) { r.reaped = append(r.reaped, p) }})
}

func (r *rig) build(_ context.Context, b plug.Session) (session.Parts, error) {
	if b.Child == nil {
		r.reach, r.outcome, r.past = b.Reach, b.Reach.Outcome, b.Past()
	} else {
		r.built = append(r.built, b.Open)
		r.tell = func(ctx context.Context, id, text, by string) error {
			return b.Send(ctx, plug.Wake{ID: id, Text: text, By: by})
		}
		if r.deep {
			r.reach = b.Reach
		}
	}
	var specs []agent.Spec
	for _, name := range []string{"sleep", "write"} {
		specs = append(specs, r.tools[name].Spec())
	}
	var hooks plug.Hooks
	if r.hooks != nil {
		hooks = r.hooks(b)
	}
	hooks.Compacting, hooks.Compacted = r.before, r.after
	return session.Parts{
		SessionOpened: agent.SessionOpened{Workdir: "/w", Dialect: "dure"},
		Model: func(name string) (agent.Model, error) {
			if name == "nosuch" {
				return nil, &agent.Problem{Code: agent.ProblemModel, Message: "no such model"}
			}
			if info, ok := r.others[name]; ok {
				return other{r.model, info}, nil
			}
			return r.model, nil
		},
		Fallback: r.spare,
		Budget:   r.budget,
		Params:   r.params,
		Points: []plug.Attached{{Name: "rig", Points: plug.Points{
			Gate: r.gate(), Hooks: hooks, Extra: r.extra, Undo: plug.Undo{Rewind: r.rewind},
			Compactor: plug.Compactor{Compact: r.compact}, Revive: r.revive,
			Guard: plug.Guard{Check: func(_ context.Context, _ agent.Spec, _ agent.Call, res agent.Result) (agent.Result, error) {
				return res, nil
			}},
			Permissions: plug.Permissions{
				SetMode: func(m agent.Mode) error { r.modes = append(r.modes, m); return nil },
				Offer: func(_ context.Context, p agent.Proposal, _ agent.Decision) ([]agent.Choice, string) {
					return []agent.Choice{{Remember: agent.RememberSession, Rules: []string{p.Call.Tool}}}, "the difference"
				},
				Grant: func(_ string, rules []string) error { r.given = append(r.given, rules...); return nil },
			},
			Close: func() {
				if r.closed != nil {
					r.closed()
				}
			},
		}}},
		Catalog: func() plug.Catalog {
			specs := specs
			if r.offers != nil {
				specs = r.offers(specs)
			}
			return plug.Catalog{Specs: specs, Tools: plug.Tools{
				Find:  func(name string) (agent.Tool, bool) { t, ok := r.tools[name]; return t, ok },
				Check: func(_ agent.Spec, in json.RawMessage, _ bool) (json.RawMessage, *agent.ToolError) { return in, nil },
			}}
		},
		System: func(time.Time, string) []agent.Section { return []agent.Section{{Name: "base", Text: "be good"}} },
	}, nil
}

func (r *rig) gate() plug.Gate {
	slow := plug.Stage{Name: "slow", Waits: func(agent.Proposal) bool { return r.slow > 0 }, Decide: func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) {
		time.Sleep(r.slow)
		return agent.Decision{}, nil
	}}
	rules := plug.Stage{Name: "rules", Decide: func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
		if r.allow && (r.person == nil || !r.person(p)) {
			return agent.Decision{Verdict: agent.Allow, By: "test"}, nil
		}
		return agent.Decision{}, nil
	}}
	return plug.Gate{Bounds: []plug.Stage{slow}, Verdict: rules}
}

func (r *rig) open(o agent.Open) *client.Session {
	r.t.Helper()
	s, err := client.New(r.reg).Open(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) send(s *client.Session, c agent.Command) {
	r.t.Helper()
	if err := s.Send(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

// log is what is stored, one word for each event, with what tells events of a
// kind apart.
func (r *rig) log(id string) string {
	var words []string
	for e, err := range r.store.Read(context.Background(), id, 0) {
		if err != nil {
			r.t.Error(err)
			break
		}
		w := e.Kind()
		switch b := e.Body.(type) {
		case agent.ContextAdded:
			w += " " + b.Source + " " + b.Text
		case agent.ToolsChanged:
			w += fmt.Sprintf(" %v %v %v", b.Added, b.Changed, b.Removed)
		case agent.InputAdded:
			w += " " + b.Text
		case agent.InputQueued:
			w += " " + b.Text
		case agent.InputDropped:
			w += " " + b.Reason
		case agent.HookRan:
			w += " " + b.Event
		case agent.CallDecided:
			w += " " + string(b.Decision.Verdict)
		case agent.CallFinished:
			w += " " + b.Result.ID
			if b.Result.Error != nil {
				w += " " + string(b.Result.Error.Code)
			}
		case agent.TurnEnded:
			w += " " + string(b.Reason)
		}
		words = append(words, w)
	}
	return strings.Join(words, "\n")
}

// settle lets an hour pass, long enough for every script.
func settle() {
	time.Sleep(time.Hour)
	synctest.Wait()
}

// bubble runs a test in fake time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func text(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\t", "")) }

// collect reads the events of a session until its turn ends.
func collect(t *testing.T, s *client.Session, after int64) (all []agent.Event) {
	t.Helper()
	for e, err := range s.Events(t.Context(), after) {
		if err != nil {
			t.Error(err)
			return all
		}
		all = append(all, e)
		if _, ok := e.Body.(agent.TurnEnded); ok {
			return all
		}
	}
	return all
}

func show(events []agent.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%d %s\n", e.Seq, e.Kind())
	}
	return b.String()
}

// blob opens the blobs of a session.
func (r *rig) blob(id string) func(context.Context, string) (io.ReadCloser, error) {
	return func(ctx context.Context, sha string) (io.ReadCloser, error) { return r.store.Blob(ctx, id, sha) }
}

// pass lets some time pass.
func pass(d string) {
	long, err := time.ParseDuration(d)
	if err != nil {
		panic(err)
	}
	time.Sleep(long)
	synctest.Wait()
}
