package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// patience is how long a test waits for something that should come at once.
const patience = 2 * time.Minute

// world is a workspace, a folder for sessions and a model that follows a script.
type world struct {
	t     *testing.T
	work  string
	home  string
	model *script.Server
}

func newWorld(t *testing.T, s script.Script, opts script.Options) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(prooftest.Kept(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, work: filepath.Join(dir, "work"), home: filepath.Join(dir, "home")}
	for _, d := range []string{w.work, w.home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if w.model, err = script.NewServer(s, opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.model.Close() })
	return w
}

// options are those of a program that knows nothing but this world.
func options(work, home, url string, f app.Flags) app.Options {
	f.PlainOff, f.NoReflexion = true, true // what is done unasked has tests of its own, see unasked
	return app.Options{
		Flags: f, UserHome: home, Workdir: work, Version: "test",
		CallGrace: 10 * time.Second, // however busy the machine is
		Environ: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + home, "DURE_HOME=" + filepath.Join(home, "dure"),
			"ANTHROPIC_BASE_URL=" + url, "DURE_MODEL=script",
		},
	}
}

// program builds the program, and ends it with the test.
func (w *world) program(o app.Options) *app.App {
	w.t.Helper()
	a, err := app.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := a.Close(); err != nil {
			w.t.Errorf("closing the program: %v", err)
		}
	})
	return a
}

// write puts a file into the workspace.
func (w *world) write(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.work, name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// read returns a file of the workspace, or "" when there is none.
func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(data)
}

// refusals returns the requests that the model answered with an error of its
// own: what the real one would have refused. A request that is not whole is that
// of a client which died while it was sending.
func refusals(m *script.Server, planned ...int) []string {
	var bad []string
	for i, r := range m.Requests() {
		if r.Status != 200 && !slices.Contains(planned, r.Status) && json.Valid(r.Body) {
			bad = append(bad, fmt.Sprintf("request %d: status %d", i, r.Status))
		}
	}
	return bad
}

// A talk is one session as a front-end has it: commands in, events out.
type talk struct {
	t *testing.T
	client.Client
	*client.Session
	next func() (agent.Event, error, bool)
	seen []agent.Event
}

// talk opens a session and reads it up to its head.
func (w *world) talk(f app.Flags, o agent.Open) *talk {
	w.t.Helper()
	return w.talkWith(options(w.work, w.home, w.model.URL(), f), o)
}

// talkWith is talk with a program of its own options.
func (w *world) talkWith(how app.Options, o agent.Open) *talk {
	w.t.Helper()
	return w.talkTo(w.program(how), o)
}

// talkTo is talk with a program that is there.
func (w *world) talkTo(a *app.App, o agent.Open) *talk {
	w.t.Helper()
	return w.talkOn(a.Client(), o)
}

// talkOn is talk with a client that is there.
func (w *world) talkOn(c client.Client, o agent.Open) *talk {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s, err := c.Open(ctx, o)
	if err != nil {
		w.t.Fatal(err)
	}
	k := &talk{t: w.t, Client: c, Session: s}
	next, stop := iter.Pull2(s.Events(ctx, 0))
	k.next = next
	w.t.Cleanup(func() { cancel(); stop() })
	k.until("the head", func(e agent.Event) bool { return e.Seq == s.Info.Head })
	return k
}

// until reads events up to the first that fits.
func (k *talk) until(what string, fits func(agent.Event) bool) agent.Event {
	k.t.Helper()
	for {
		e, err, ok := k.next()
		if err != nil {
			k.t.Fatalf("waiting for %s: %v", what, err)
		}
		if !ok {
			k.t.Fatalf("waiting for %s: nothing more came after\n%s", what, names(k.seen))
		}
		k.seen = append(k.seen, e)
		if fits(e) {
			return e
		}
	}
}

// body reads events up to the first of a type.
func body[B agent.Body](k *talk) B {
	k.t.Helper()
	var zero B
	e := k.until(zero.Kind(), func(e agent.Event) bool { _, ok := e.Body.(B); return ok })
	return e.Body.(B)
}

func (k *talk) send(c agent.Command) {
	k.t.Helper()
	if err := k.Send(k.t.Context(), c); err != nil {
		k.t.Fatalf("sending %s: %v", c.Command(), err)
	}
}

// turn sends a prompt and waits for the end of its turn.
func (k *talk) turn(text string) agent.TurnEnded {
	k.t.Helper()
	k.send(agent.Prompt{Text: text})
	return body[agent.TurnEnded](k)
}

// all returns what has been seen of a type, in order.
func all[B agent.Body](events []agent.Event) []B {
	var found []B
	for _, e := range events {
		if b, ok := e.Body.(B); ok {
			found = append(found, b)
		}
	}
	return found
}

// result returns the result of a call.
func (k *talk) result(id string) agent.Result {
	k.t.Helper()
	for _, b := range all[agent.CallFinished](k.seen) {
		if b.Result.ID == id {
			return b.Result
		}
	}
	k.t.Fatalf("call %s has no result in\n%s", id, names(k.seen))
	return agent.Result{}
}

// sound checks what holds for every log, whatever happened: its numbers, its
// seals, that its requests can be built again, and that nothing ran undecided.
func (k *talk) sound() {
	k.t.Helper()
	for _, problem := range slices.Concat(numbering(k.seen), gated(k.seen), verified(k.t.Context(), k.Client, k.Info.ID)) {
		k.t.Error(problem)
	}
}

// numbering checks that stored events are numbered without gaps, that their IDs
// are unique, and that epochs never fall.
func numbering(events []agent.Event) []string {
	var problems []string
	ids := map[string]bool{}
	var seq, epoch int64
	for _, e := range events {
		if e.Live() {
			continue
		}
		if e.Seq != seq+1 {
			problems = append(problems, fmt.Sprintf("event %d follows event %d", e.Seq, seq))
		}
		if ids[e.ID] || e.ID == "" {
			problems = append(problems, fmt.Sprintf("event %d: the ID %q is not its own", e.Seq, e.ID))
		}
		if e.Epoch < epoch {
			problems = append(problems, fmt.Sprintf("event %d: epoch %d follows epoch %d", e.Seq, e.Epoch, epoch))
		}
		if _, opened := e.Body.(agent.SessionOpened); opened != (e.Epoch > epoch) {
			problems = append(problems, fmt.Sprintf("event %d (%s): epoch %d follows epoch %d", e.Seq, e.Kind(), e.Epoch, epoch))
		}
		seq, epoch, ids[e.ID] = e.Seq, e.Epoch, true
	}
	return problems
}

// gated checks that every call that was started had been allowed before, as it
// was started, and that every call has one result.
func gated(events []agent.Event) []string {
	var problems []string
	allowed := map[string]agent.CallDecided{} // by key
	called := map[string]int{}                // results by call
	for _, e := range events {
		switch b := e.Body.(type) {
		case agent.ModelAnswered:
			for _, c := range b.Message.Calls() {
				called[c.ID] += 0
			}
		case agent.CallDecided:
			if b.Decision.Verdict == agent.Allow {
				allowed[b.Key] = b
			}
		case agent.CallStarted:
			if d, ok := allowed[b.Key]; !ok || d.Proposal.Call.ID != b.ID || d.Proposal.Call.Tool != b.Tool {
				problems = append(problems, fmt.Sprintf("event %d: call %s of %s started without a decision that allows it", e.Seq, b.ID, b.Tool))
			}
		case agent.CallFinished:
			called[b.Result.ID]++
		}
	}
	for id, n := range called {
		if n != 1 {
			problems = append(problems, fmt.Sprintf("call %s has %d results", id, n))
		}
	}
	return problems
}

// verified asks the program itself about a session.
func verified(ctx context.Context, c client.Client, id string) []string {
	var problems []string
	seals, err := client.Query[agent.SealReport](ctx, c, agent.VerifySeals{Session: id})
	if err != nil || !seals.OK || seals.Seals == 0 {
		problems = append(problems, fmt.Sprintf("the seals: %+v, %v", seals, err))
	}
	again, err := client.Query[agent.ReplayReport](ctx, c, query.VerifyReplay{Session: id})
	if err != nil || !again.OK || again.Requests == 0 {
		problems = append(problems, fmt.Sprintf("the replay: %+v, %v", again, err))
	}
	return problems
}

// names lists events, a line each, for messages.
func names(events []agent.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Live() {
			continue
		}
		data, _ := agent.EncodeBody(e.Body) // what was decoded can be encoded
		fmt.Fprintf(&b, "%d %s %.200s\n", e.Seq, e.Kind(), data)
	}
	return b.String()
}

// shown folds fragments as a front-end does: what an attempt has shown is void
// when it fails. It returns the text of each answer as it stood on the screen.
func shown(events []agent.Event) []string {
	var screen []string
	var now strings.Builder
	for _, e := range events {
		switch b := e.Body.(type) {
		case agent.Fragment:
			if b.What == agent.DeltaText {
				now.WriteString(b.Text)
			}
		case agent.ModelFailed:
			now.Reset()
		case agent.ModelAnswered:
			screen = append(screen, now.String())
			now.Reset()
		}
	}
	return screen
}

// said returns the text of each answer as the log has it.
func said(events []agent.Event) []string {
	var texts []string
	for _, b := range all[agent.ModelAnswered](events) {
		texts = append(texts, b.Message.Text())
	}
	return texts
}

// input is the JSON of a call's input.
func input(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// fields is an input.
type fields map[string]any

// unasked is talk with all that a program does without being asked for.
func (w *world) unasked(f app.Flags, o agent.Open) *talk {
	w.t.Helper()
	return w.talkWith(w.caring(f), o)
}

// caring are options with what is done unasked.
func (w *world) caring(f app.Flags) app.Options {
	how := options(w.work, w.home, w.model.URL(), f)
	how.Flags.PlainOff, how.Flags.NoReflexion = false, false
	return how
}
