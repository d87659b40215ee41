package policy

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/safety/shell"
)

// plainConfig is a configuration for the workspace /w of a disk without links, where no
// function looks at this machine.
func plainConfig() Config {
	return Config{
		Resolve: func(p string) (string, string, error) { return path.Clean(p), path.Clean(p), nil },
		Inside:  func(p string) bool { return p == "/w" || strings.HasPrefix(p, "/w/") },
		Dir:     "/w", Home: "/home/u",
	}
}

// planCase says what a case would do, as the tools do.
func planCase(c Case) (agent.Proposal, error) {
	var in struct {
		Command string `json:"command"`
		Path    string `json:"file_path"`
		URL     string `json:"url"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return agent.Proposal{}, err
	}
	p := agent.Proposal{Call: agent.Call{Tool: known[c.Tool], Input: c.Input}, Class: agent.Unsafe}
	if rest, ok := strings.CutPrefix(in.Path, "~/"); ok {
		in.Path = "/home/u/" + rest
	} else if !path.IsAbs(in.Path) {
		in.Path = "/w/" + in.Path
	}
	switch c.Tool {
	case "Bash":
		p.Effects = shell.Read(in.Command, shell.Options{Dir: "/w", Home: "/home/u"})
	case "Read":
		p.Class, p.Effects = agent.Read, agent.Effects{Reads: []string{in.Path}}
	case "Edit":
		p.Effects = agent.Effects{Reads: []string{in.Path}, Writes: []string{in.Path}}
	case "HttpRequest":
		p.Effects = agent.Effects{Hosts: []string{strings.TrimPrefix(in.URL, "https://")}}
	default:
		return p, fmt.Errorf("tool %q is not planned for", c.Tool)
	}
	return p, nil
}

func defaults(t testing.TB) (File, []Case) {
	t.Helper()
	data, lines := Default()
	f, err := ParsePolicy(data, "default.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := ParseCases(lines, "default_test.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return f, cases
}

// The policy that comes with the program does what its expectations say, and each
// of its rules decides one of them.
func TestDefault(t *testing.T) {
	f, cases := defaults(t)
	p := mustNew(t, f.Apply(plainConfig()))
	if w := p.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %v", w)
	}
	rep, err := Test(f.Apply(plainConfig()), cases, planCase)
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range rep.Failures {
		t.Error(failure)
	}
	for _, r := range rep.Unused {
		if !strings.Contains(r, "!") { // such a rule takes something out of others
			t.Errorf("no case is decided by %s", r)
		}
	}
}

// Each rule and each variable, removed or turned round, is noticed.
func TestDefaultMutations(t *testing.T) {
	f, cases := defaults(t)
	props := make(map[string]agent.Proposal, len(cases))
	for _, c := range cases {
		p, err := planCase(c)
		if err != nil {
			t.Fatal(err)
		}
		props[c.ID] = p
	}
	fails := func(f File) bool {
		rep, err := Test(f.Apply(plainConfig()), cases, func(c Case) (agent.Proposal, error) { return props[c.ID], nil })
		return err != nil || len(rep.Failures) > 0
	}
	for i, r := range f.Rules {
		m := f
		if m.Rules = slices.Delete(slices.Clone(f.Rules), i, i+1); !fails(m) {
			t.Errorf("%s: nobody misses %s", r.Source, r.Written())
		}
		for _, v := range []agent.Verdict{agent.Allow, agent.AskUser, agent.Deny} {
			m.Rules = slices.Clone(f.Rules)
			if m.Rules[i].Verdict = v; v != r.Verdict && !fails(m) {
				t.Errorf("%s: nobody notices that %s is to %s", r.Source, r.Written(), v)
			}
		}
	}
	for i, v := range f.SafeVars {
		m := f
		if m.SafeVars = slices.Delete(slices.Clone(f.SafeVars), i, i+1); !fails(m) {
			t.Errorf("nobody misses %s", v)
		}
	}
}
