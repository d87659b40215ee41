package exthost

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// stepMoment is a moment of a step with a conversation.
func stepMoment() Moment {
	return Moment{Agent: "root", Turn: &Turn{ID: "t1", Messages: []Message{{Role: "user", Content: "hello"}}}, Step: &Step{ID: "t1-1", Turn: "t1"}}
}

// What guards nothing is gone on without when it fails, and is not called any more when it
// goes on so; what may guard is not passed over, but not waited for either.
func TestStrikes(t *testing.T) {
	t.Parallel()
	s, _ := newSet(t)
	var notes []string
	s.Notes(func(text string) { notes = append(notes, text) })
	calls := map[string]int{}
	fails := func(name string, how func() error) Mutator {
		return func(_ context.Context, m Moment) (Moment, error) {
			calls[name]++
			return m, how()
		}
	}
	no := func() error { return errors.New("not this one") }
	err := s.Add(t.Context(), Extension{Name: "x", Register: func(_ context.Context, api *API) error {
		return errors.Join(
			api.Mutate(CallPre, 0, fails("refuses", no)),
			api.Mutate(CallPost, 0, fails("panics", func() error { panic("oh") })),
			api.Mutate(StepPost, 0, fails("optional", no), Optional),
			api.Mutate(TurnPost, 0, fails("mends", func() error {
				if calls["mends"]%maxStrikes != 0 {
					return errors.New("for now")
				}
				return nil
			}), Optional),
			api.Wrap(AtStep, 0, func(context.Context, Moment, Next) (json.RawMessage, error) {
				calls["around"]++
				return nil, errors.New("not around that")
			}, Optional),
		)
	}})
	if err != nil {
		t.Fatal(err)
	}
	m := callMoment(`{}`)
	m.ToolResult = &ToolResult{Status: "ok"}
	for range maxStrikes + 2 {
		if _, err := s.Mutate(t.Context(), CallPre, m); err == nil || !strings.Contains(err.Error(), "not this one") || strings.Contains(err.Error(), "switched off") {
			t.Error(err)
		}
		if _, err := s.Mutate(t.Context(), CallPost, m); err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Error(err)
		}
		for _, p := range []Point{StepPost, TurnPost} {
			if _, err := s.Mutate(t.Context(), p, m); err != nil {
				t.Error(err)
			}
		}
		out, err := s.Wrap(t.Context(), AtStep, m, func(context.Context, Moment) (json.RawMessage, error) { return json.RawMessage("7"), nil })
		if string(out) != "7" || err != nil {
			t.Errorf("%s %v", out, err)
		}
	}
	want := map[string]int{"refuses": maxStrikes + 2, "panics": maxStrikes, "optional": maxStrikes, "mends": maxStrikes + 2, "around": maxStrikes}
	for name, n := range want {
		if calls[name] != n {
			t.Errorf("%s was called %d times, not %d", name, calls[name], n)
		}
	}
	count := func(part string) (n int) {
		for _, text := range notes {
			if strings.Contains(text, part) {
				n++
			}
		}
		return n
	}
	if count("what it would see is refused") != 1 || count("at toolCall.post") != 1 || count("at step.post") != 2 || count("at toolCall.pre") != 0 || count("at step:") != 2 {
		t.Errorf("notes:\n%s", strings.Join(notes, "\n"))
	}
}

// A turn that is stopped is no failure of who is asked then.
func TestNoStrikeForWhatIsStopped(t *testing.T) {
	t.Parallel()
	s, _ := newSet(t)
	err := s.Add(t.Context(), Extension{Name: "x", Register: func(_ context.Context, api *API) error {
		return api.Mutate(CallPre, 0, func(ctx context.Context, m Moment) (Moment, error) {
			<-ctx.Done()
			panic("late")
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range maxStrikes + 1 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Mutate(ctx, CallPre, callMoment(`{}`)); err == nil || strings.Contains(err.Error(), "switched off") {
			t.Error(err)
		}
	}
}

// A module that hangs is not waited for again and again, until it is another one.
func TestHangsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.js": `export function register(api) {
		api.pipelines.mutate("toolCall.pre", () => new Promise(() => {}));
		api.pipelines.mutate("step.post", () => new Promise(() => {}), { optional: true });
	}`}
	root := bundle(t, files)
	h := host(t, root, withNode(t), func(c *Config) { c.Limits.Hook, c.Limits.Alive = 300*time.Millisecond, time.Minute })
	s, _ := newSet(t)
	var notes []string
	s.Notes(func(text string) { notes = append(notes, text) })
	if err := s.Add(t.Context(), Extension{Name: "a", Host: h, Runtime: Node, Entry: "a.js"}); err != nil {
		t.Fatal(err)
	}
	for range maxStrikes {
		if _, err := s.Mutate(t.Context(), CallPre, callMoment(`{}`)); err == nil || !strings.Contains(err.Error(), "given up after") {
			t.Error(err)
		}
		if _, err := s.Mutate(t.Context(), StepPost, stepMoment()); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Mutate(t.Context(), CallPre, callMoment(`{}`)); err == nil || !strings.Contains(err.Error(), "switched off") {
		t.Error(err)
	}
	if len(notes) != 3 {
		t.Errorf("notes: %q", notes)
	}
	write(t, root+"/a.js", `export function register(api) { api.pipelines.mutate("toolCall.pre", (c) => c); }`)
	if _, err := s.Tools(t.Context()); err != nil || s.one("a").strikes != nil {
		t.Errorf("%v, and it is still said to fail: %v", err, s.one("a").strikes)
	}
}

// An extension whose code cannot be had does not stop what it had no part in.
func TestMissingExtensions(t *testing.T) {
	t.Parallel()
	root := bundle(t, map[string]string{"a.js": `export function register(api) {
		api.pipelines.mutate("toolCall.pre", (c) => c);
		api.pipelines.mutate("step.post", (c) => c, { optional: true });
	}`})
	h := host(t, root, withNode(t))
	s, _ := newSet(t)
	if err := s.Add(t.Context(), Extension{Name: "a", Host: h, Runtime: Node, Entry: "a.js"}); err != nil {
		t.Fatal(err)
	}
	write(t, root+"/a.js", `export function register(api) { syntax error }`)
	for p, fails := range map[Point]bool{CallPre: true, StepPost: false, TurnPost: false} {
		if _, err := s.Mutate(t.Context(), p, callMoment(`{}`)); (err != nil) != fails {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// Mutators of what comes before a step may add to the conversation, and change nothing of
// it that is there.
func TestAddedMessages(t *testing.T) {
	t.Parallel()
	s, _ := newSet(t)
	add := func(name string, f func(*Turn)) {
		t.Helper()
		err := s.Add(t.Context(), Extension{Name: name, Register: func(_ context.Context, api *API) error {
			return api.Mutate(StepPre, 0, func(_ context.Context, m Moment) (Moment, error) {
				turn := *m.Turn
				turn.Messages = slices.Clone(turn.Messages)
				f(&turn)
				m.Turn = &turn
				return m, nil
			})
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	add("first", func(t *Turn) { t.Messages = append(t.Messages, Message{Role: "user", Content: "one"}) })
	add("second", func(t *Turn) {
		for i := range t.Messages {
			t.Messages[i].Source = "made up"
		}
		t.Messages = append(t.Messages, Message{Role: "system", Content: "two", Source: "first"})
	})
	m, err := s.Mutate(t.Context(), StepPre, stepMoment())
	if err != nil || len(m.Turn.Messages) != 3 {
		t.Fatalf("%+v %v", m.Turn, err)
	}
	if got := m.Turn.Messages; got[0].Source != "" || got[1].Source != "first" || got[1].Content != "one" || got[2].Source != "second" {
		t.Errorf("%+v", got)
	}
	for part, f := range map[string]func(*Turn){
		"changed messages": func(t *Turn) { t.Messages[0].Content = "other" },
		"can only be":      func(t *Turn) { t.Messages = t.Messages[1:] },
		"role user":        func(t *Turn) { t.Messages = append(t.Messages, Message{Role: "assistant", Content: "I will"}) },
		"at most": func(t *Turn) {
			t.Messages = append(t.Messages, Message{Role: "user", Content: strings.Repeat("x", maxAdded+1)})
		},
	} {
		s, _ = newSet(t)
		add("x", f)
		if _, err := s.Mutate(t.Context(), StepPre, stepMoment()); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
}
