package app

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/config"
	"dure/internal/hooks"
)

// The administrator's hooks run whatever others have switched off, unless he has himself;
// where only his run, so do those that he has switched on elsewhere.
func TestHookSources(t *testing.T) {
	raw := func(l config.Layer) config.RawHooks {
		return config.RawHooks{Layer: l, JSON: json.RawMessage(`{"Stop": "true"}`)}
	}
	more := []hookSource{{Source: hooks.Source{Layer: "plugin", Name: "forced"}, Managed: true}, {Source: hooks.Source{Layer: "plugin", Name: "own"}}}
	for _, tt := range []struct {
		cfg  config.Hooks
		want string
	}{
		{config.Hooks{}, "managed, user, project, plugin forced, plugin own"},
		{config.Hooks{Off: true}, "managed, plugin forced"},
		{config.Hooks{ManagedOnly: true}, "managed, plugin forced"},
		{config.Hooks{ManagedOff: true}, ""},
	} {
		tt.cfg.Sources = []config.RawHooks{raw(config.Managed), raw(config.User), raw(config.Project)}
		var got []string
		for _, s := range hookSources(config.Config{Hooks: tt.cfg}, more...) {
			got = append(got, s.String())
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.cfg, got, tt.want)
		}
	}
}

// A private address is asked when the user names its host himself: in a hook, or in a
// pattern whose host is whole.
func TestHookReach(t *testing.T) {
	own := hooks.Hook{Type: hooks.HTTP, URL: "http://localhost:9000/a", Source: hooks.Source{Layer: "user"}}
	theirs := hooks.Hook{Type: hooks.HTTP, URL: "http://10.0.0.9/", Source: hooks.Source{Layer: "project"}}
	r := reachOf(config.Hooks{
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
	for addr, want := range map[string]string{"93.184.216.34": "", "127.0.0.1": "loopback", "192.168.1.1": "private", "169.254.169.254": "metadata", "::1": "loopback", "::ffff:10.0.0.1": "private"} {
		a := netip.MustParseAddr(addr)
		if err := mayAsk(a, false); (err == nil) != (want == "") {
			t.Errorf("%s: %v", addr, err)
		}
		if err := mayAsk(a, true); (err == nil) != (want != "metadata") {
			t.Errorf("%s, named: %v", addr, err)
		}
		if err := lookedUp(t.Context(), addr, true); (err == nil) != (want != "metadata") {
			t.Errorf("%s, named, by a proxy: %v", addr, err)
		}
	}
}

// What hooks say before a call is one decision, and who has said it stands in it.
func TestHookWords(t *testing.T) {
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
	ran := 0
	all, _ := hooks.Parse([]byte(`{"PostToolUse": [{"type": "prompt", "prompt": "well?"}]}`), hooks.Source{Layer: "user"})
	h := &hooked{set: hooks.New(hooks.Config{
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

// Who waits in vain for another program to be done with the settings is told so.
func TestSettingsAreChangedElsewhere(t *testing.T) {
	a := &App{cfg: config.Config{Data: t.TempDir()}}
	unlock, err := a.lockSettings(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.lockSettings(t.Context(), 50*time.Millisecond); err == nil || err.Error() != "another program is changing settings" {
		t.Errorf("the second one: %v", err)
	}
	unlock()
	if unlock, err = a.lockSettings(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	unlock()
}
