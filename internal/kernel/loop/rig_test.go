package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/kernel/plug"
	"dure/internal/state/transcript"
)

// rig is a turn over a log in memory. The fold of the log is the only source of
// its requests, as it is in a session.
type rig struct {
	t      *testing.T
	model  *script
	tools  map[string]agent.Tool
	cfg    loop.Config
	mu     sync.Mutex
	log    []agent.Event
	live   []agent.Body
	syncs  int
	state  *transcript.State
	queued []string
	broken error // what Store fails with

	held, most int // requests for which something is put aside, now and at most
}

func newRig(t *testing.T, answers ...any) *rig {
	r := &rig{t: t, model: &script{answers: answers}, tools: map[string]agent.Tool{}, state: transcript.New()}
	for _, tool := range []tool{
		{name: "sleep", class: agent.Read, run: sleep},
		{name: "look", class: agent.Read, run: sleep},
		{name: "write", class: agent.Unsafe, run: sleep},
		{name: "fail", class: agent.Read, run: func(context.Context, agent.Call) (agent.Result, error) {
			return agent.Result{}, errors.New("it does not work")
		}},
		{name: "panic", class: agent.Read, run: func(context.Context, agent.Call) (agent.Result, error) { panic("oh") }},
		{name: "deaf", class: agent.Read, run: func(context.Context, agent.Call) (agent.Result, error) {
			time.Sleep(time.Hour)
			return agent.OK("late"), nil
		}},
	} {
		r.tools[tool.name] = tool
	}
	r.cfg = loop.Config{
		Session: "s", Turn: "t", Workdir: "/w", First: 1,
		Prepare: r.prepare,
		Gate: []plug.Stage{{Name: "rules", Decide: func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) {
			return agent.Decision{Verdict: agent.Allow, By: "test"}, nil
		}}},
		Person: func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) {
			return agent.Decision{}, errors.New("nobody is there")
		},
		Guard: func(_ context.Context, _ agent.Spec, _ agent.Call, res agent.Result) (agent.Result, error) {
			return res, nil
		},
		Store: r.store,
		Live:  func(b agent.Body) { r.mu.Lock(); defer r.mu.Unlock(); r.live = append(r.live, b) },
		Steer: r.steer,
		Retry: loop.Retry{Rand: func() float64 { return 1 }},
	}
	return r
}

func (r *rig) store(sync bool, bodies ...agent.Body) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	if sync {
		r.syncs++
	}
	for _, b := range bodies {
		e := agent.Event{Seq: int64(len(r.log)) + 1, Time: time.Now(), Body: b}
		r.log = append(r.log, e)
		r.state.Apply(e)
	}
	return nil
}

func (r *rig) prepare(_ context.Context, w loop.Want) (loop.Step, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	msgs, _ := r.state.Conversation()
	if w.Question != nil {
		msgs = w.Question.Messages
	} else if w.Model == "" {
		w.Model = r.state.Current()
	}
	if w.Model == "gone" {
		return loop.Step{}, errors.New("there is no key")
	}
	return loop.Step{
		Release:   r.hold(),
		Model:     r.model,
		Request:   agent.Request{Model: w.Model, Messages: msgs, NoTools: w.NoTools, Names: map[string]string{"sleep": "Sleep"}},
		Requested: agent.ModelRequested{Model: w.Model},
		Tools: plug.Tools{
			Find: func(name string) (agent.Tool, bool) {
				t, ok := r.tools[strings.ToLower(name)]
				return t, ok
			},
			Check: func(_ agent.Spec, in json.RawMessage, _ bool) (json.RawMessage, *agent.ToolError) {
				if string(in) == `"bad"` {
					return nil, &agent.ToolError{Code: agent.ErrInput, Message: "bad is not a duration"}
				}
				return in, nil
			},
		},
	}, nil
}

// hold counts what is put aside for requests, and returns what gives it back.
func (r *rig) hold() func(agent.Usage) {
	r.held++
	r.most = max(r.most, r.held)
	once := sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held--
	})
	return func(agent.Usage) { once() }
}

func (r *rig) steer() (bool, error) {
	q := r.queued
	r.queued = nil
	for _, text := range q {
		if err := r.store(false, agent.InputAdded{Text: text}); err != nil {
			return false, err
		}
	}
	return len(q) > 0, nil
}

// run adds the input and runs the turn.
func (r *rig) run(ctx context.Context) error {
	r.t.Helper()
	if err := r.store(true, agent.InputAdded{Input: "1", Text: "go"}, agent.TurnStarted{Turn: "t"}); err != nil {
		return err
	}
	_, err := loop.Turn(ctx, r.cfg)
	return err
}

// kinds is the log, one word for each event, with what tells events of a kind
// apart.
func (r *rig) kinds() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for _, e := range r.log {
		w := e.Kind()
		switch b := e.Body.(type) {
		case agent.CallDecided:
			w += ":" + string(b.Decision.Verdict)
		case agent.CallStarted:
			w += ":" + b.ID
		case agent.CallFinished:
			w += ":" + b.Result.ID
			if b.Result.Error != nil {
				w += "=" + string(b.Result.Error.Code)
			}
		case agent.ModelFailed:
			w += fmt.Sprintf(":%s/%dms/%t", b.Class, b.Delay, b.Retry)
			if b.Model != "" {
				w += "/" + b.Model
			}
		}
		words = append(words, w)
	}
	return strings.Join(words, "\n")
}

// checkValid fails when a call of the conversation has no result.
func (r *rig) checkValid() {
	r.t.Helper()
	open := map[string]bool{}
	for _, e := range r.log {
		switch b := e.Body.(type) {
		case agent.ModelAnswered:
			for _, c := range b.Message.Calls() {
				open[c.ID] = true
			}
		case agent.CallFinished:
			delete(open, b.Result.ID)
		}
	}
	if len(open) > 0 {
		r.t.Errorf("calls without a result in the log: %v", open)
	}
}

// script is a model that gives prepared answers: an agent.Answer, an error, or
// a func of the request that returns one of them.
type script struct {
	answers []any
	asked   []agent.Request
}

func (*script) Info() agent.ModelInfo { return agent.ModelInfo{ID: "script"} }

func (s *script) Stream(ctx context.Context, req agent.Request) iter.Seq2[agent.Delta, error] {
	return func(yield func(agent.Delta, error) bool) {
		if len(s.asked) == len(s.answers) {
			yield(agent.Delta{}, errors.New("the script is over"))
			return
		}
		a := s.answers[len(s.asked)]
		req.Messages = slices.Clone(req.Messages)
		s.asked = append(s.asked, req)
		if f, ok := a.(func(context.Context) any); ok {
			a = f(ctx)
		}
		switch a := a.(type) {
		case error:
			_ = yield(agent.Delta{Kind: agent.DeltaText, Text: "half"}, nil) && yield(agent.Delta{}, a)
		case agent.Answer:
			a.Message.Blocks = slices.Clone(a.Message.Blocks)
			_ = yield(agent.Delta{Kind: agent.DeltaText, Text: a.Message.Text()}, nil) && yield(agent.Delta{Kind: agent.DeltaFinal, Final: &a}, nil)
		}
	}
}

func say(text string, calls ...agent.Call) agent.Answer {
	m := agent.Message{Role: agent.Assistant}
	if text != "" {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.TextBlock, Text: text})
	}
	stop := agent.StopEnd
	for _, c := range calls {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.CallBlock, Call: &c})
		stop = agent.StopCalls
	}
	return agent.Answer{Message: m, Stop: stop}
}

func call(id, tool, input string) agent.Call {
	return agent.Call{ID: id, Tool: tool, Input: json.RawMessage(input)}
}

// tool is a tool whose work is a function.
type tool struct {
	name  string
	class agent.Class
	run   func(context.Context, agent.Call) (agent.Result, error)
}

func (t tool) Spec() agent.Spec { return agent.Spec{Name: t.name, Class: t.class} }

func (t tool) Plan(context.Context, agent.ToolContext, agent.Call) (agent.Effects, error) {
	return agent.Effects{}, nil
}

func (t tool) Run(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	return t.run(ctx, c)
}

// sleep takes as long as its input says.
func sleep(ctx context.Context, c agent.Call) (agent.Result, error) {
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

func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func lines(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\t", "")) }
