package policy

import (
	"testing"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// Rules that are lent hold until others are, and never against what denies.
func TestLend(t *testing.T) {
	p, err := New(Config{Mode: agent.ModeDontAsk, Deny: []string{"Bash(rm *)"}, Dir: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Grant([]string{"Bash(make)"}, Session); err != nil {
		t.Fatal(err)
	}
	run := func(argv ...string) agent.Verdict {
		return p.Decide(agent.Proposal{Call: agent.Call{Tool: shellTool}, Class: agent.Unsafe, Effects: agent.Effects{Commands: []agent.SimpleCommand{{Argv: argv}}}}).Verdict
	}
	check := func(when string, test, make, rm agent.Verdict) {
		t.Helper()
		got := [3]agent.Verdict{run("npm", "test"), run("make"), run("rm", "x")}
		if want := [3]agent.Verdict{test, make, rm}; got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	check("at first", agent.Deny, agent.Allow, agent.Deny)
	lend := func(rules ...plug.Rule) []string {
		t.Helper()
		w, err := p.Lend(rules)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	lend(plug.Rule{Text: "Bash(npm *)", Verdict: agent.Allow}, plug.Rule{Text: "Bash(rm *)", Verdict: agent.Allow})
	check("lent", agent.Allow, agent.Allow, agent.Deny)
	if w := lend(plug.Rule{Text: "*", Verdict: agent.Allow}, plug.Rule{Text: "Bash(make)", Verdict: agent.Deny}); len(w) != 1 {
		t.Errorf("%v", w)
	}
	check("lent otherwise", agent.Deny, agent.Deny, agent.Deny)
	lend()
	check("taken back", agent.Deny, agent.Allow, agent.Deny)
}

// A call leans on what is lent where nothing else allows it.
func TestLeans(t *testing.T) {
	p, err := New(Config{Allow: []string{"Bash(make)"}, Deny: []string{"Bash(rm *)"}, Dir: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	check := func(when, want string) {
		t.Helper()
		got := ""
		for _, c := range [][]string{{"npm", "test"}, {"make"}, {"rm", "x"}, {"go", "run"}} {
			if p.Leans(agent.Proposal{Call: agent.Call{Tool: shellTool}, Class: agent.Unsafe, Effects: agent.Effects{Commands: []agent.SimpleCommand{{Argv: c}}}}) {
				got += c[0] + " "
			}
		}
		if got != want {
			t.Errorf("%s: %q lean, want %q", when, got, want)
		}
	}
	check("at first", "")
	if _, err := p.Lend([]plug.Rule{{Text: "Bash(npm *)", Verdict: agent.Allow}, {Text: "Bash(make)", Verdict: agent.Allow}, {Text: "Bash(rm *)", Verdict: agent.Allow}, {Text: "Bash(go *)", Verdict: agent.Deny}}); err != nil {
		t.Fatal(err)
	}
	check("lent", "npm ")
	if err := p.SetMode(agent.ModeBypass); err != nil {
		t.Fatal(err)
	}
	check("in a mode that allows it", "")
	if err := p.SetMode(agent.ModeDefault); err != nil {
		t.Fatal(err)
	}
	if err := p.Grant([]string{"Bash(npm test)"}, Session); err != nil {
		t.Fatal(err)
	}
	check("granted too", "")
}
