package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/internal/extend/hooks"
	"dure/internal/kernel/plug"
)

// A private address is asked when the user names its host himself: in a hook, or in a
// pattern whose host is whole.
func TestHookReach(t *testing.T) {
	t.Parallel()
	own := hooks.Hook{Type: hooks.HTTP, URL: "http://localhost:9000/a", Source: hooks.Source{Layer: "user"}}
	theirs := hooks.Hook{Type: hooks.HTTP, URL: "http://10.0.0.9/", Source: hooks.Source{Layer: "project"}}
	r := reachOf(hooks.Settings{
		URLs:    []string{"http://10.0.0.1/*", "http://10.0.0.2*", "http://*.lan/", "https://a.example/x?*", "http://localhost*", "http://10.0.0.9/*"},
		OwnURLs: []string{"http://10.0.0.1/*", "http://10.0.0.2*", "http://*.lan/", "https://a.example/x?*", "http://localhost*"},
	}, []hooks.Hook{own, theirs})
	for _, tt := range []struct {
		url           string
		allows, named bool
	}{
		{"http://localhost:9000/a", true, true},
		{"http://localhost:9000/other", true, true},
		{"http://localhost:9001/a", true, false},
		{"http://10.0.0.1/x", true, true},
		{"http://10.0.0.1:8080/x", false, false},
		{"http://10.0.0.2/x", true, false},
		{"http://10.0.0.20/x", true, false},
		{"http://10.0.0.9/x", true, false},
		{"http://b.lan/", true, false},
		{"https://a.example/x?1", true, true},
		{"https://other.example/", false, false},
		{"http://evil.example/http://10.0.0.1/x", false, false},
	} {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		if a, n := r.allows(tt.url), r.named[portOf(u)]; a != tt.allows || n != tt.named {
			t.Errorf("%s: allowed %v, named %v", tt.url, a, n)
		}
	}
}

// What hooks say before a call is one decision, and who has said it stands in it.
func TestHookWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		out  hooks.Outcome
		want string
	}{
		{hooks.Outcome{}, " by : "},
		{hooks.Outcome{Verdict: agent.Allow, By: "command a"}, "allow by hook:command a: a hook says so"},
		{hooks.Outcome{Verdict: agent.AskUser, By: "command a", Reasons: []string{"look"}}, "ask by hook:command a: look"},
		{hooks.Outcome{Verdict: agent.Deny, Block: true, By: "command a", Reasons: []string{"no", "never"}}, "deny by hook:command a: no\nnever"},
		{hooks.Outcome{Defer: true, By: "command a"}, "ask by hook:command a: a hook says so"},
		{hooks.Outcome{Stop: true, Because: "enough"}, "deny by hook:: enough, stops"},
		{hooks.Outcome{Verdict: agent.Allow, By: "b", Input: json.RawMessage(`{"a":1}`)}, `allow by hook:b: a hook says so, with {"a":1}`},
	} {
		d := wordOf(tt.out)
		got := fmt.Sprintf("%s by %s: %s", d.Verdict, d.By, d.Reason)
		if d.Stop {
			got += ", stops"
		}
		if d.Input != nil {
			got += ", with " + string(d.Input)
		}
		if got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.out, got, tt.want)
		}
	}
	var w words
	call := agent.Call{ID: "c1", Input: json.RawMessage(`{"a":1}`)}
	if _, known := w.word(call); known {
		t.Error("something is known of a call that nobody was asked about")
	}
	w.keep(call, agent.Decision{Verdict: agent.Allow, Input: json.RawMessage(`{"a":2}`)})
	call.Input = json.RawMessage(`{"a":2,"usual":true}`) // as the tool completes it
	for range 2 {
		if d, known := w.word(call); !known || d.Verdict != agent.Allow || d.Input != nil {
			t.Errorf("of the changed call: %+v, %v", d, known)
		}
	}
	call.Input = json.RawMessage(`{"a":3}`)
	if _, known := w.word(call); known {
		t.Error("a call that somebody else has changed is known")
	}
	w.clear() // the turn is over before the hooks have answered
	w.keep(call, agent.Decision{Verdict: agent.Deny})
	if d, known := w.word(call); !known || d.Verdict != agent.Deny {
		t.Errorf("%+v, %v", d, known)
	}
}

// Behind a call that a hook has made no hook runs: they would go on for ever.
func TestHooksBehindCallsOfHooks(t *testing.T) {
	t.Parallel()
	ran := 0
	all, _ := hooks.Parse([]byte(`{"PostToolUse": [{"type": "prompt", "prompt": "well?"}]}`), hooks.Source{Layer: "user"})
	h := &Session{c: &Config{}, set: hooks.New(hooks.Config{
		Hooks: all, Facts: func() hooks.Facts { return hooks.Facts{} }, NewID: func() string { return "r" },
		Record: func(...agent.Body) error { ran++; return nil },
	})}
	defer h.set.Close()
	for origin, want := range map[string]int{"hook:mcp a b": 0, "skill:a": 2} {
		ran = 0
		if h.after(t.Context(), agent.Proposal{Origin: origin}, agent.OK("done"), 0); ran != want {
			t.Errorf("behind a call of %s, %d events, want %d", origin, ran, want)
		}
	}
}

// Another output counts if it has the form of the one in whose place it comes.
func TestReplaced(t *testing.T) {
	t.Parallel()
	shell := `{"stdout":"a","stderr":"","interrupted":false,"exitCode":0}`
	for _, tt := range []struct{ was, is, want string }{
		{shell, `{"stdout":"b","stderr":"c"}`, "b\nc"},
		{shell, `{"stdout":1}`, ""},
		{shell, `{"other":"b"}`, ""},
		{shell, `"b"`, ""},
		{shell, `[]`, ""},
		{"", `"b"`, "b"},
		{"", `{"a":1}`, ""},
		{`["a"]`, `["b"]`, `["b"]`},
	} {
		r, ok := replaced(agent.Result{Text: "text", Output: json.RawMessage(tt.was)}, json.RawMessage(tt.is))
		if want := tt.want != ""; ok != want || ok && r.Text != tt.want {
			t.Errorf("%s in the place of %s: %q, %v", tt.is, tt.was, r.Text, ok)
		}
	}
}

// hooksCalling returns the hooks of a session, all of which call a tool.
func hooksCalling(t *testing.T, events string, call func()) *Session {
	t.Helper()
	defined := map[string]any{}
	for e := range strings.FieldsSeq(events) {
		defined[e] = map[string]string{"server": "s", "tool": "t"}
	}
	data, err := json.Marshal(defined)
	if err != nil {
		t.Fatal(err)
	}
	all, faults := hooks.Parse(data, hooks.Source{Layer: "user"})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	h := &Session{c: &Config{Asks: func(string) string { return "" }, Idle: func() string { return "" }}, b: plug.Session{Open: agent.Open{Approver: true}}}
	h.life, h.end = context.WithCancel(context.Background())
	h.set = hooks.New(hooks.Config{
		Hooks: all, Facts: func() hooks.Facts { return hooks.Facts{} }, NewID: func() string { return "r" },
		Record: func(...agent.Body) error { return nil },
		Tool:   func(server, tool string) (string, bool) { return "mcp__" + server + "__" + tool, true },
		Invoke: func(context.Context, agent.Invocation) (agent.Result, error) { call(); return agent.OK("{}"), nil },
	})
	return h
}

// Hooks are told that a session waits for its user, and not that one does that works.
func TestIdle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		does func(h *Session)
		want int
	}{
		{"it waits", func(*Session) {}, 1},
		{"a turn begins", func(h *Session) { h.busy(true) }, 0},
		{"a turn is over soon", func(h *Session) { h.busy(true); h.busy(false); h.ended(h.life, agent.TurnEnded{}) }, 1},
		{"the end is told when the next turn runs", func(h *Session) { h.busy(true); h.ended(h.life, agent.TurnEnded{}) }, 0},
		{"the session is over", func(h *Session) { h.close() }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := 0
				h := hooksCalling(t, "Notification", func() { told++ })
				defer h.close()
				h.ended(h.life, agent.TurnEnded{})
				time.Sleep(idleAfter / 2)
				tt.does(h)
				time.Sleep(2 * idleAfter)
				synctest.Wait()
				if told != tt.want {
					t.Errorf("told %d times, want %d", told, tt.want)
				}
			})
		})
	}
}

// Where nobody waits for the answer of hooks any more, what they were asked about does
// not happen.
func TestHooksNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	h := hooksCalling(t, "PreModelSwitch PreSkillExecute UserPromptExpansion PreCompact TaskCreated", func() {})
	defer h.close()
	why := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for name, ask := range map[string]func() error{
		"switching":  func() error { return h.switching(ctx, "a", "b") },
		"skill":      func() error { return h.BeforeSkill(ctx, "s", "", "") },
		"expanding":  func() error { return h.Expanding(ctx, "slash_command", "c", "", "", "") },
		"compacting": func() error { _, err := h.compacting(ctx, plug.TriggerManual, ""); return err },
		"noting": func() error {
			ran := errors.New("it ran")
			run := h.wrap(todos{}, func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error) { return agent.Result{}, ran })
			_, err := run(ctx, agent.ToolContext{}, agent.Call{Input: json.RawMessage(`{"todos": [{"content": "a", "status": "pending"}]}`)})
			return err
		},
	} {
		if err := ask(); !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// todos is a tool that has the name of the one for tasks.
type todos struct{ agent.Tool }

func (todos) Spec() agent.Spec { return agent.Spec{Name: todoTool} }

// A hook that changes what it is told of is told of that, and not without end.
func TestPaceOfChanges(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Unix(1000, 0)
	told := 0
	for end := now.Add(10 * time.Minute); now.Before(end); told++ {
		now = now.Add(p.wait(now))
	}
	if most := 11 * (watchMost + 1); told > most || told < 10*watchMost {
		t.Errorf("told %d times in ten minutes, want up to %d", told, most)
	}
	if d := p.wait(now.Add(time.Hour)); d != watchSettle {
		t.Errorf("after a rest it takes %v", d)
	}
}

// Hooks are told that a person is asked what an agent needs, and not where there is none.
func TestWhoIsAskedForAgents(t *testing.T) {
	t.Parallel()
	for approver, want := range map[bool]int{true: 1, false: 0} {
		told := 0
		h := hooksCalling(t, "Notification", func() { told++ })
		h.child, h.b.Open = true, agent.Open{}
		h.parent = &Session{b: plug.Session{Open: agent.Open{Approver: approver}}}
		if d, decided := h.asking(t.Context(), agent.Proposal{Call: agent.Call{Tool: "bash__exec"}}, agent.Decision{}); decided {
			t.Errorf("decided %+v", d)
		}
		if h.close(); told != want {
			t.Errorf("with a person %v, told %d times", approver, told)
		}
	}
}

func TestGoOnCap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ours, theirs string
		want         int
	}{{"", "", maxGoOn}, {"", "3", 3}, {"2", "3", 2}, {"", "0", 0}, {"", "-1", maxGoOn}, {"", "many", maxGoOn}} {
		env := map[string]string{"DURE_STOP_HOOK_BLOCK_CAP": tt.ours, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": tt.theirs}
		if got := goOnCap(func(name string) string { return env[name] }); got != tt.want {
			t.Errorf("%q %q: %d, want %d", tt.ours, tt.theirs, got, tt.want)
		}
	}
}
