package policy

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"dure/agent"
)

const samplePolicy = `// What a team agreed on.
{
  "mode": "acceptEdits", /* edits
  are fine */
  "permissions": {
    "allow": [
      "Bash(go test *)", // "quoted", [in] {a} comment,
      "Read(//srv/a,b]/**)",
    ],
    "deny": ["Bash(git push \"--force\" *)",
             {"tool": "Read", "pattern": ".env", "reason": "secret"}],
    "rules": [
      {"pattern": "finance:*", "verdict": "require-approval", "priority": 2,
       "scope": {"stage": "user", "subject": "kim"}},
      {"tool": "Bash", "pattern": "rm *", "behavior": "ask"},
    ],
  },
  "safeVars": ["CI",],
  "groups": {"data": "deny"},
  "managedOnly": true, "disableBypass": true,
}
// the end`

func TestParsePolicy(t *testing.T) {
	at := func(line, column int) Source { return Source{File: "p.jsonc", Line: line, Column: column} }
	want := File{
		Path: "p.jsonc", Mode: agent.ModeAcceptEdits, SafeVars: []string{"CI"}, Groups: map[string]agent.Verdict{"data": agent.Deny},
		ManagedOnly: true, DisableBypass: true,
		Rules: []Rule{
			{Text: "Bash(go test *)", Verdict: agent.Allow, Source: at(7, 7)},
			{Text: "Read(//srv/a,b]/**)", Verdict: agent.Allow, Source: at(8, 7)},
			{Text: `Bash(git push "--force" *)`, Verdict: agent.Deny, Source: at(10, 14)},
			{Tool: "Read", Pattern: ".env", Reason: "secret", Verdict: agent.Deny, Source: at(11, 14)},
			{Pattern: "finance:*", Verdict: agent.AskUser, Priority: 2, Scope: Scope{"user", "kim"}, Source: at(13, 7)},
			{Tool: "Bash", Pattern: "rm *", Verdict: agent.AskUser, Source: at(15, 7)},
		},
	}
	got, err := ParsePolicy([]byte(samplePolicy), "p.jsonc")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, want)
	}
	c := got.Apply(Config{SafeVars: []string{"A"}, Rules: []Rule{{Text: "Bash"}}})
	if c.Mode != agent.ModeAcceptEdits || len(c.Rules) != 7 || len(c.SafeVars) != 2 || !c.ManagedOnly || !c.DisableBypass {
		t.Errorf("%+v", c)
	}
}

func TestPolicyFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "reading p:1: EOF",
		"[]":                               "reading p:1: { is wanted here",
		"{\n\"mode\": \"yolo\"}":           `reading p:2: unknown permission mode "yolo"`,
		"{\n\n\"modes\": 1}":               `reading p:3: unknown key "modes"`,
		`{"permissions":{"may":[]}}`:       `reading p:1: unknown key "permissions.may"`,
		`{"permissions":{"allow":"Bash"}}`: "reading p:1: [ is wanted here",
		`{"permissions":{"allow":[7]}}`:    "reading p:1: reading a rule: it is neither a text nor an object",
		"{\"permissions\":{\"rules\":[\n\"Bash\"]}}":                `reading p:2: rule "Bash" says none of allow, ask, deny`,
		`{"permissions":{"allow":[{"tool":"a","verdict":"deny"}]}}`: `reading p:1: rule "a" is among those that allow, and says deny`,
		`{"groups":{"a":"maybe"}}`:                                  `reading p:1: group "a" has no verdict`,
		"{}\n{}":                                                    "reading p:2: something stands behind the policy",
		"{\n/* a":                                                   "reading p:2: a comment is not closed",
		`{"safeVars": ["a" "b"]}`:                                   "reading p:1: invalid character '\"' after array element",
	} {
		f, err := ParsePolicy([]byte(text), "p")
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if !reflect.DeepEqual(f, File{Path: "p"}) {
			t.Errorf("%s: %+v is left of it", text, f)
		}
	}
}

// Cases that fail are explained, and rules that decide nothing are named.
func TestReport(t *testing.T) {
	cases, err := ParseCases([]byte(`
// two that hold, and three that do not
{"id":"1","tool":"Bash","input":{"command":"go test ./..."},"expect":"allow","rule":"Bash(go test *)"}
{"id":"2","tool":"Bash","input":{"command":"rm x"},"mode":"bypassPermissions","expect":"ask"}
{"id":"3","tool":"Bash","input":{"command":"rm x"},"expect":"deny","why":"it is not"}
{"id":"4","tool":"Bash","input":{"command":"make"},"mode":"yolo","expect":"ask"}
{"id":"5","tool":"Bash","input":{"command":"none"},"expect":"ask"}
`), "c.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	c := plainConfig()
	c.Rules = []Rule{
		{Text: "Bash(go test *)", Verdict: agent.Allow}, {Text: "Bash(rm *)", Verdict: agent.AskUser}, {Text: "Bash(never)", Verdict: agent.Deny, Source: Source{File: "p", Line: 3}},
	}
	rep, err := Test(c, cases, func(c Case) (agent.Proposal, error) {
		command := strings.Split(string(c.Input), `"`)[3]
		if command == "none" {
			return agent.Proposal{}, errors.New("there is no such command")
		}
		return line(cmd(strings.Fields(command)...)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range rep.Failures {
		if f.Explanation != nil {
			f.Error = string(f.Explanation.Decision.Verdict) + " by " + f.Explanation.Decision.By + ": " + f.Explanation.Decision.Reason
		}
		got = append(got, fmt.Sprintf("line %d %s: want %s: %s", f.Line, f.ID, f.Expect, f.Error))
	}
	want := []string{
		"line 5 3: want deny: ask by rule: ask rule Bash(rm *)",
		`line 6 4: want ask: unknown permission mode "yolo"`,
		"line 7 5: want ask: there is no such command",
	}
	if !reflect.DeepEqual(got, want) || rep.Cases != 5 || len(rep.Unused) != 1 || rep.Unused[0] != "Bash(never) (p:3)" {
		t.Errorf("%q\n%+v", got, rep.Unused)
	}
	for text, want := range map[string]string{
		`{"id":"a","expect":"no"}`:     `reading c:1: "no" is none of allow, ask, deny`,
		`{"id":"a","expects":"ask"}`:   `reading c:1: json: unknown field "expects"`,
		`{"id":"a","expect":"ask"} {}`: "reading c:1: something stands behind the case",
		"\n{\"id\":\"a\",\"expect\":\"ask\"}\n{\"id\":\"a\",\"expect\":\"ask\"}": `reading c:3: id "a" stands in line 2 too`,
	} {
		if _, err := ParseCases([]byte(text), "c"); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A policy file of any kind: it is read as a whole or not at all, and each rule
// knows where it stands.
func FuzzPolicy(f *testing.F) {
	f.Add(samplePolicy)
	f.Add(string(shippedPolicy))
	f.Add(`{"permissions":{"allow":["a\"//","/*"],}}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ParsePolicy([]byte(text), "p")
		if err != nil {
			return
		}
		lines := strings.Count(text, "\n") + 1
		for _, r := range file.Rules {
			if r.Source.Line < 1 || r.Source.Line > lines || r.Verdict == agent.Pass {
				t.Fatalf("%+v of %d lines", r, lines)
			}
		}
		if p, err := New(file.Apply(plainConfig())); err == nil {
			p.Decide(line(cmd("a", "b")))
		}
	})
}
