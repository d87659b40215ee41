//go:build unix

package app_test

import (
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// A rule that was allowed for the session and is taken back holds neither for the next
// call nor when the session is opened again; what was decided before stays explained by
// what held then, also where a question was open meanwhile.
func TestRevokedRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		commands := map[string]string{"One.": "touch one", "Two.": "mkdir two", "Three.": "touch three", "Four.": "touch four"}
		if command, ok := commands[strings.TrimSpace(r.Last)]; ok {
			return script.Reply{Calls: []script.Call{numbered("c"+command[len(command)-2:], "Bash", fields{"command": command})}}
		}
		return script.Reply{Text: "Done.", Stop: agent.StopEnd}
	}})
	k := w.talk(app.Flags{}, agent.Open{Approver: true})
	allowed := func(remember string) func(agent.ApprovalAsked) agent.Resolve {
		return func(q agent.ApprovalAsked) agent.Resolve {
			return agent.Resolve{ID: q.ID, Decision: agent.Decision{Verdict: agent.Allow}, Remember: remember}
		}
	}
	k.answer("One.", allowed(agent.RememberSession))
	const rule = "Bash(touch *)"
	k.answer("Two.", func(q agent.ApprovalAsked) agent.Resolve {
		k.send(agent.Revoke{Rules: []string{rule, "Bash(never *)"}})
		return allowed("")(q)
	})
	k.answer("Three.", allowed(""))
	k.send(agent.Revoke{Rules: []string{rule}}) // it is none any more
	if taken := all[agent.RulesRevoked](k.seen); len(taken) != 1 || len(taken[0].Rules) != 1 || taken[0].Rules[0] != rule || taken[0].By != "user" {
		t.Errorf("taken back: %+v", taken)
	}
	k.sound()
	shut(k)
	again := w.program(options(w.work, w.home, w.model.URL(), app.Flags{})).Client()
	if _, err := client.Query[query.ExplainedDecision](t.Context(), again, query.ExplainDecision{Session: k.Info.ID, Call: "cwo"}); err != nil {
		t.Error(err)
	}
	k = w.talk(app.Flags{}, agent.Open{Session: k.Info.ID, Approver: true})
	k.answer("Four.", allowed(""))
	if asked := all[agent.ApprovalAsked](k.seen); len(asked) != 4 {
		t.Errorf("%d questions\n%s", len(asked), names(k.seen))
	}
	for _, id := range []string{"cne", "cwo", "cee", "cur"} {
		if r := k.result(id); r.Failed() {
			t.Errorf("%s: %s", id, r.Text)
		}
	}
	k.sound()
}
