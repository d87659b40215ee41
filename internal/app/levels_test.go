//go:build linux

package app_test

import (
	"slices"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// With each mechanism that is taken away, the level falls as doctor says, and with
// the last of them the asks come, also for what only reads and for what a rule
// allows.
func TestLevelsFall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mechanisms []string
		level      string
	}{
		{[]string{"bwrap", "namespaces", "landlock"}, "full"},
		{[]string{"namespaces", "landlock"}, "full"},
		{[]string{"landlock"}, "reduced"},
		{[]string{}, "none"},
	} {
		w := newWorld(t, says(calls(
			tool("Bash", fields{"command": "ls"}),
			tool("Bash", fields{"command": "make -v"}),
		)), script.Options{})
		o := options(w.work, w.home, w.model.URL(), app.Flags{Allow: []string{"Bash(make *)"}})
		o.Mechanisms = tt.mechanisms
		k := w.talkWith(o, agent.Open{Approver: true})
		list, err := client.Query[[]query.Finding](t.Context(), k.Client, query.Diagnose{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(f query.Finding) bool { return f.Name == "sandbox" })
		if i < 0 || list[i].Code != "sandbox."+tt.level {
			if !prooftest.Required("sandbox") {
				t.Logf("with %v this machine confines otherwise: %+v", tt.mechanisms, list[i])
				continue
			}
			t.Errorf("with %v doctor says %+v, want %s", tt.mechanisms, list[i], tt.level)
		}
		if end := k.answer("Go.", func(agent.ApprovalAsked) agent.Resolve { return no() }); end.Reason != agent.EndDone {
			t.Errorf("the turn ended: %+v", end)
		}
		asked := len(all[agent.ApprovalAsked](k.seen))
		if want := map[bool]int{true: 2}[tt.level == "none"]; asked != want {
			t.Errorf("at level %s, %d of two commands were asked about, want %d", tt.level, asked, want)
		}
		for _, d := range all[agent.CallDecided](k.seen) {
			if b := d.Decision.Basis; b == nil || b.Confined != tt.level {
				t.Errorf("at level %s, a decision rests on %+v", tt.level, b)
			}
		}
	}
}
