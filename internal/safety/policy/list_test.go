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

// A tool all of whose calls are denied is withheld; one of which some calls are denied, or
// whose rule cannot be read, is not: the model reads why.
func TestWithholds(t *testing.T) {
	canonical := func(name string) (string, bool) { c, ok := known[name]; return c, ok }
	for _, tt := range []struct {
		rule  Rule
		tool  string
		group string
		want  bool
	}{
		{Rule{Text: "Bash"}, "bash__exec", "system", true},
		{Rule{Text: "Bash(*)"}, "bash__exec", "system", true},
		{Rule{Text: "Bash"}, "bash__script", "system", true},
		{Rule{Text: "Bash"}, "file-system__read", "files", false},
		{Rule{Text: "Bash(rm *)"}, "bash__exec", "system", false},
		{Rule{Text: "Bash(("}, "bash__exec", "system", false},
		{Rule{Text: "*"}, "bash__exec", "system", true},
		{Rule{Text: "*", Broken: true}, "bash__exec", "system", false},
		{Rule{Text: "group:web"}, "web__fetch", "web", true},
		{Rule{Text: "group:web"}, "bash__exec", "system", false},
		{Rule{Text: "mcp__*"}, "mcp__a__b", "mcp", true},
		{Rule{Text: "mcp__a"}, "mcp__a__b", "mcp", true},
		{Rule{Text: "mcp__a"}, "mcp__ab__b", "mcp", false},
		{Rule{Text: "comes__later"}, "comes__later", "", true},
	} {
		tt.rule.Verdict, tt.rule.Source = agent.Deny, Source{Layer: User, File: "/s.json", Line: 2}
		p, err := New(Config{Dir: "/p", Canonical: canonical, Rules: []Rule{tt.rule}, Allow: []string{"Bash"}})
		if err != nil {
			t.Fatal(err)
		}
		by, got := p.Withholds(tt.tool, tt.group)
		if got != tt.want || got && (by.Verdict != agent.Deny || by.Source != "/s.json:2") {
			t.Errorf("%s: %s is withheld: %v, by %+v", tt.rule.Text, tt.tool, got, by)
		}
	}
	p, err := New(Config{Dir: "/p", Allow: []string{"Bash"}, Ask: []string{"Bash"}})
	if _, got := p.Withholds("bash__exec", "system"); got || err != nil {
		t.Errorf("without a rule that denies: %v, %v", got, err)
	}
}
