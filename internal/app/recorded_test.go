package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// kind is a call that a model makes, and what is done about it.
type kind struct {
	tool    string
	input   fields
	answer  *agent.Resolve // nil = nobody is asked
	mode    agent.Mode     // changed before; "" = it stays
	verdict agent.Verdict
	by      string
}

// everyKind has a decision of every kind: by each stage that can decide, in each
// mode, and by each answer that a person can give.
func everyKind() []kind {
	yes := func(remember string, rules ...string) *agent.Resolve {
		return &agent.Resolve{Decision: agent.Decision{Verdict: agent.Allow}, Remember: remember, Rules: rules}
	}
	no := &agent.Resolve{Decision: agent.Decision{Verdict: agent.Deny, Reason: "not today"}}
	run := func(command string) fields { return fields{"command": command} }
	return []kind{
		{tool: "Bash", input: run("rm -rf keep/it"), verdict: agent.Deny, by: "rule"},
		{tool: "Bash", input: run("echo by rule"), verdict: agent.Allow, by: "rule"},
		{tool: "Bash", input: run("ls"), verdict: agent.Allow, by: "read-only"},
		{tool: "Read", input: fields{"file_path": "a.txt"}, verdict: agent.Allow, by: "read-only"},
		{tool: "Read", input: fields{"file_path": "secret.txt"}, verdict: agent.Deny, by: "rule"},
		{tool: "Bash", input: run("make x"), answer: yes(""), verdict: agent.Allow, by: "user"},
		{tool: "Bash", input: run("make x"), answer: no, verdict: agent.Deny, by: "user"},
		{tool: "Bash", input: run("sleep 0.01"), answer: yes(agent.RememberSession, "Bash(sleep *)"), verdict: agent.Allow, by: "user"},
		{tool: "Bash", input: run("sleep 0.02"), verdict: agent.Allow, by: "rule"},
		{tool: "Bash", input: run("mkfifo always"), answer: yes(agent.RememberAlways, "Bash(mkfifo *)"), verdict: agent.Allow, by: "user"},
		{tool: "Bash", input: run("mkfifo granted"), verdict: agent.Allow, by: "rule"},
		{tool: "Write", input: fields{"file_path": ".git/config", "content": "x"}, answer: no, verdict: agent.Deny, by: "user"},
		{tool: "Bash", input: run("$X y"), answer: no, verdict: agent.Deny, by: "user"},
		{tool: "Bash", input: run("dd if=/dev/zero of=/dev/sda"), verdict: agent.Deny, by: "policy"},
		{tool: "Write", input: fields{"file_path": "b.txt", "content": "x"}, mode: agent.ModeAcceptEdits, verdict: agent.Allow, by: "mode"},
		{tool: "Write", input: fields{"file_path": "c.txt", "content": "x"}, mode: agent.ModePlan, verdict: agent.Deny, by: "mode"},
		{tool: "Write", input: fields{"file_path": "c.txt", "content": "x"}, mode: agent.ModeDontAsk, verdict: agent.Deny, by: "mode"},
		{tool: "Bash", input: run("rm -rf ."), verdict: agent.Deny, by: "mode"},
		{tool: "Bash", input: run("touch c.txt"), mode: agent.ModeBypass, verdict: agent.Allow, by: "mode"},
		{tool: "Write", input: fields{"file_path": "d.txt", "content": "x"}, verdict: agent.Allow, by: "mode"},
	}
}

// Explaining a recorded decision gives that decision, and the rules of then give it
// again.
func TestExplainRecorded(t *testing.T) {
	t.Parallel()
	steps := everyKind()
	var replies []script.Reply
	for _, s := range steps {
		replies = append(replies, script.Reply{Calls: []script.Call{{Tool: s.tool, Input: input(s.input)}}}, script.Reply{Text: "done"})
	}
	w := newWorld(t, script.Script{ByStep: true, Replies: replies}, script.Options{})
	w.write("a.txt", "a")
	settings := filepath.Join(w.home, "dure", "settings.json")
	put := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(`{"permissions": {"allow": ["Bash(echo *)"], "ask": ["Bash(make *)"], "deny": ["Read(secret.txt)", "Bash(rm -rf keep/*)"]}}`)
	how := options(w.work, w.home, w.model.URL(), app.Flags{})
	prog := w.program(how).Client()
	explain := func(session, call string) (query.ExplainedDecision, error) {
		return client.Query[query.ExplainedDecision](t.Context(), prog, query.ExplainDecision{Session: session, Call: call})
	}
	k := w.talkWith(how, agent.Open{Approver: true})
	for _, s := range steps {
		if s.mode != "" {
			k.send(agent.Change{Mode: s.mode})
		}
		k.send(agent.Prompt{Text: "go on"})
		for over := false; !over; {
			switch b := k.until("a question or the end", func(agent.Event) bool { return true }).Body.(type) {
			case agent.TurnEnded:
				over = true
			case agent.ApprovalAsked:
				a := agent.Resolve{Decision: agent.Decision{Verdict: agent.Deny, Reason: "nobody was to be asked"}}
				if s.answer != nil {
					a = *s.answer
				}
				a.ID = b.ID
				k.send(a)
			}
		}
	}
	list, err := client.Query[[]agent.DecisionRecord](t.Context(), k.Client, query.ListDecisions{Session: k.Info.ID})
	if err != nil || len(list) != len(steps) {
		t.Fatalf("%d decisions on %d calls: %v", len(list), len(steps), err)
	}
	for i, r := range list {
		s := steps[i]
		if r.Decision.Verdict != s.verdict || r.Decision.By != s.by {
			t.Errorf("%s %v: %s by %s (%s), want %s by %s", s.tool, s.input, r.Decision.Verdict, r.Decision.By, r.Decision.Reason, s.verdict, s.by)
		}
		e, err := explain(r.Session, r.Proposal.Call.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := asJSON(t, e.DecisionRecord), asJSON(t, r); got != want {
			t.Errorf("%s %v is explained as\n%s\nand recorded as\n%s", s.tool, s.input, got, want)
		}
		switch {
		case e.Again == nil:
			t.Errorf("%s %v cannot be decided again: %s", s.tool, s.input, e.Lost)
		case s.tool == "Bash" && s.input["command"] == "mkfifo always": // is allowed since
			if e.Again.Same || e.Again.Come != "Bash(mkfifo *)" {
				t.Errorf("%s %v: %+v", s.tool, s.input, e.Again)
			}
		case !e.Again.Same || e.Again.Gone != "" || e.Again.Come != "" || !slices.Equal(e.Again.Now.Trace, r.Decision.Trace):
			t.Errorf("%s %v is decided otherwise: %s\nnow  %+v\nthen %+v", s.tool, s.input, e.Again.Was, e.Again.Now, r.Decision)
		}
	}

	// A replay makes the decisions again, but for the one that rules of since have made
	// another one.
	rep, err := client.Query[agent.ReplayReport](t.Context(), k.Client, query.VerifyReplay{Session: k.Info.ID})
	if err != nil || !rep.OK || rep.Decisions != len(steps) || rep.Redecided != len(steps)-1 || rep.Folds == 0 {
		t.Errorf("%+v, %v", rep, err)
	}

	// By other rules, some of it is decided otherwise, and that is said.
	put(`{"permissions": {"deny": ["Bash(ls *)", "Bash(rm -rf keep/*)", "Read(secret.txt)"]}}`)
	for i, want := range map[int]query.DecidedAgain{
		1: {Was: agent.Allow, Gone: "Bash(echo *)", Now: agent.Decision{Verdict: agent.Allow}, Same: true}, // it is harmless
		2: {Was: agent.Allow, Come: "Bash(ls *)", Now: agent.Decision{Verdict: agent.Deny}},
		4: {Was: agent.Deny, Now: agent.Decision{Verdict: agent.Deny}, Same: true},
		5: {Was: agent.AskUser, Gone: "Bash(make *)", Now: agent.Decision{Verdict: agent.AskUser}, Same: true},
	} {
		e, err := explain(k.Info.ID, list[i].Proposal.Call.ID)
		if err != nil || e.Again == nil {
			t.Fatalf("%v, %s", err, e.Lost)
		}
		e.Again.Now = agent.Decision{Verdict: e.Again.Now.Verdict}
		if got := asJSON(t, e.Again); got != asJSON(t, want) {
			t.Errorf("decision %d: %s, want %s", i, got, asJSON(t, want))
		}
	}
	if _, err := explain(k.Info.ID, "no such call"); agent.ProblemOf(err) == nil {
		t.Errorf("a call that is not there: %v", err)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
