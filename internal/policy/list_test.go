package policy

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
)

// All rules are listed, those too that do not count, with why.
func TestRulesAreListed(t *testing.T) {
	p, err := New(Config{Dir: "/p", Canonical: func(name string) (string, bool) { c, ok := known[name]; return c, ok }, Allow: []string{"Bash(make *)", "Bash("}, Ask: []string{"Nonsense"}, Rules: []Rule{
		{Text: "Read(./keys/**)", Verdict: agent.Deny, Source: Source{Layer: Project, File: "/p/s.json", Line: 3}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Grant([]string{"Bash(go test *)"}, Local); err != nil {
		t.Fatal(err)
	}
	list := func() (all []string) {
		for _, l := range p.Rules() {
			all = append(all, fmt.Sprintf("%s %s (%s) off=%v %s", l.Verdict, l.Written(), l.Source, l.Off, l.Note))
		}
		return all
	}
	want := []string{
		"deny Read(./keys/**) (/p/s.json:3) off=false ",
		"ask Nonsense () off=false it matches no tool that is known",
		"allow Bash(make *) () off=false ",
		"allow Bash( () off=true skipped: it has no closing parenthesis",
		"allow Bash(go test *) (local) off=false ",
	}
	if d := cmp.Diff(want, list()); d != "" {
		t.Error(d)
	}
	if n, err := p.Revoke([]string{"Bash(go test *)"}, Session); n != 0 || err != nil {
		t.Errorf("of another layer: %d, %v", n, err)
	}
	if n, err := p.Revoke([]string{"Bash(go test *)"}, Local); n != 1 || err != nil {
		t.Error(n, err)
	}
	if d := cmp.Diff(want[:4], list()); d != "" {
		t.Error(d)
	}
	for rule, want := range map[string]string{"Bash(ls)": "", "Bash(": "skipped: it has no closing parenthesis", "mcp__*": errWideAllow} {
		if wrong, _ := p.Check(Rule{Text: rule, Verdict: agent.Allow}); wrong != want && wrong != "skipped: "+want {
			t.Errorf("%s: %q", rule, wrong)
		}
	}
	if err := p.Update(Config{ManagedOnly: true, Allow: []string{"Bash"}}); err != nil {
		t.Fatal(err)
	}
	if l := p.Rules(); len(l) != 1 || !l[0].Off {
		t.Errorf("%+v", l)
	}
}
