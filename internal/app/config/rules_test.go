package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
)

// rulesOf describes rules in short: verdict, text, what else is known, place.
func rulesOf(c Config) []string {
	var out []string
	for _, r := range c.Rules() {
		line := fmt.Sprintf("%s %s", r.Verdict, r.Text)
		if r.Malformed {
			line += " (malformed)"
		}
		if r.Reason != "" {
			line += " because " + r.Reason
		}
		if r.Priority != 0 {
			line += fmt.Sprintf(" !%d", r.Priority)
		}
		if r.Scope != (Scope{}) {
			line += " of " + r.Scope.Stage + ":" + r.Scope.Subject
		}
		out = append(out, fmt.Sprintf("%s @%d:%d", line, r.Line, r.Column))
	}
	return out
}

func notesOf(c Config, file string) []string {
	var out []string
	for _, n := range c.Notes {
		out = append(out, strings.TrimPrefix(n.Text, file))
	}
	return out
}

// Rules come as texts and as objects, with the words of several dialects.
func TestRules(t *testing.T) {
	skipWindows(t)
	const file = `{"permissions": {
  "allow": [ "Bash(npm test)" ,
    {"tool": "Bash", "pattern": "git *"}, {"tool": "Read", "pattern": "*", "reason": "reading is free"}],
  "deny": [{"rule": "Bash(rm *)", "behavior": "deny", "priority": 3}],
  "ask": [" WebFetch "],
  "rules": [
    {"pattern": "finance:*", "verdict": "require-approval", "scope": {"stage": "user", "subject": "me"}},
    {"tool": "bash:*", "pattern": "ls", "decision": "allow"},
    {"tool": "mcp__x", "behavior": "deny", "decision": "deny"}]
}}`
	c, err := Load(machine{files: map[string]string{userFile: file}}.sources())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"deny Bash(rm *) !3 @4:12",
		"deny mcp__x @9:5",
		"ask WebFetch @5:11",
		"ask finance:* of user:me @7:5",
		"allow Bash(npm test) @2:14",
		"allow Bash(git *) @3:5",
		"allow Read because reading is free @3:43",
		"allow bash(ls) @8:5",
	}
	if d := cmp.Diff(want, rulesOf(c)); d != "" {
		t.Error(d)
	}
	if r := c.Ask[1]; r.Tool != "" || r.Pattern != "finance:*" || r.Origin.String() != "user ("+userFile+":7:5)" {
		t.Errorf("%+v", r)
	}
}

// A rule that cannot be read is left out where it would allow. Where it would deny
// or ask, the user mends his own file, and a repository's is handed on.
func TestMalformedRules(t *testing.T) {
	skipWindows(t)
	for _, tt := range []struct {
		entry string // of each list
		why   string
	}{
		{`5`, "it has to be a text such as Bash(npm test), or an object"},
		{`null`, "it has to be a text such as Bash(npm test), or an object"},
		{`["Bash"]`, "it has to be a text such as Bash(npm test), or an object"},
		{`""`, "it is empty"},
		{`" "`, "it is empty"},
		{`"a\u0000"`, "it has to be a text of at most 4096 bytes"},
		{`{}`, "it is empty"},
		{`{"tool": 1}`, "json: cannot unmarshal number into Go struct field object.tool of type string"},
		{`{"tol": "Bash"}`, `json: unknown field "tol"`},
		{`{"tool": "Bash", "behavior": "maybe"}`, `"maybe" is none of: allow, ask, deny`},
		{`{"tool": "Bash", "behavior": "ask", "verdict": "deny"}`, "it says both ask and deny"},
		{`{"tool": "Bash", "rule": "Bash"}`, "it has a rule, and a tool or pattern beside it"},
		{`{"tool": "Bash", "reason": "two\nlines"}`, "its reason has to be one line of at most 500 bytes"},
	} {
		for list, verdict := range map[string]string{"allow": "allow", "deny": "deny", "ask": "ask"} {
			text := "the rule " + tt.entry + " cannot be read: " + tt.why
			file := `{"permissions": {"` + list + `": ["Read", ` + tt.entry + `, "Write"]}}`
			place := fmt.Sprintf(":1:%d: ", strings.Index(file, tt.entry)+1)

			c, err := Load(machine{files: map[string]string{userFile: file}}.sources())
			if list == "allow" {
				if d := cmp.Diff([]string{place + text}, notesOf(c, userFile)); d != "" || err != nil || len(c.Allow) != 2 {
					t.Errorf("%s of the user: %v, %v\n%s", file, c.Allow, err, d)
				}
			} else if p := agent.ProblemOf(err); p == nil || p.Message != "settings "+userFile+place+text {
				t.Errorf("%s of the user: %v", file, err)
			}

			src := machine{files: map[string]string{projectFile: file}}.sources()
			src.Trusted = true
			c, err = Load(src)
			n := 2
			if list != "allow" {
				n = 3
			}
			got := c.Rules()
			if d := cmp.Diff([]string{place + text}, notesOf(c, projectFile)); d != "" || err != nil || len(got) != n {
				t.Errorf("%s of a repository: %v, %v\n%s", file, got, err, d)
				continue
			}
			if n == 3 && (!got[1].Malformed || got[1].Text != tt.entry || string(got[1].Verdict) != verdict) {
				t.Errorf("%s of a repository: %+v", file, got[1])
			}
		}
	}
}

// In a list of all kinds, what cannot be read denies, unless it says that it allows.
func TestMalformedRulesOfAnyKind(t *testing.T) {
	skipWindows(t)
	for entry, want := range map[string][]string{
		`"Bash"`:                               {`deny "Bash" (malformed) @1:28`},
		`{"tool": "Bash"}`:                     {`deny {"tool": "Bash"} (malformed) @1:28`},
		`{"tol": "Bash"}`:                      {`deny {"tol": "Bash"} (malformed) @1:28`},
		`{"tol": "Bash", "verdict": "ask"}`:    {`ask {"tol": "Bash", "verdict": "ask"} (malformed) @1:28`},
		`{"tol": "Bash", "behavior": "allow"}`: nil,
		`{"tool": "Bash", "behavior": "yes"}`:  {`deny {"tool": "Bash", "behavior": "yes"} (malformed) @1:28`},
	} {
		c, err := Load(machine{files: map[string]string{projectFile: `{"permissions": {"rules": [` + entry + `]}}`}}.sources())
		if d := cmp.Diff(want, rulesOf(c)); d != "" || err != nil {
			t.Errorf("%s: %v %s", entry, err, d)
		}
	}
}

// Ten thousand rules are read in no time, and each knows its place.
func TestManyRules(t *testing.T) {
	skipWindows(t)
	var file strings.Builder
	file.WriteString("{\"permissions\": {\"deny\": [\n")
	for i := range 10_000 {
		fmt.Fprintf(&file, "  \"Bash(x%d)\",\n", i)
	}
	file.WriteString(`  "Bash(last)"]}}`)
	start := time.Now()
	c, err := Load(machine{files: map[string]string{projectFile: file.String()}}.sources())
	if took := time.Since(start); err != nil || took > 2*time.Second || len(c.Deny) != 10_001 {
		t.Fatalf("%d rules, %v, %v", len(c.Deny), took, err)
	}
	if r := c.Deny[10_000]; r.Text != "Bash(last)" || r.Line != 10_002 || r.Column != 3 {
		t.Errorf("%+v", r)
	}
}

// Too many of anything is a fault, not a list that ends early.
func TestTooMuch(t *testing.T) {
	skipWindows(t)
	long := strings.Repeat(`"a",`, maxItems) + `"a"`
	patterns := strings.Repeat(`{"pattern":"a"},`, 3) + `{"pattern":"b"}`
	var many []string
	for i := range maxPatterns + 1 {
		many = append(many, fmt.Sprintf(`{"pattern":"p%d"}`, i))
	}
	for name, tt := range map[string]struct{ file, want string }{
		"rules":     {`{"permissions":{"deny":[` + long + `]}}`, ":1:17: permissions.deny has more than 20000 entries"},
		"variables": {`{"scrubEnv":[` + long + `]}`, ":1:2: scrubEnv has more than 20000 entries"},
		"otherwise": {`{"permissions":{"deny":["Bash"]},"permiſſions":{"deny":[]}}`, "ok"},
		"twice":     {`{"permissions":{"deny":["Bash"],"Deny":[]}}`, ":1:33: the key permissions.deny stands there twice"},
		"patterns":  {`{"guard":{"patterns":[` + strings.Join(many, ",") + `]}}`, ""},
		"same":      {`{"guard":{"patterns":[` + patterns + `]}}`, "ok"},
	} {
		for _, file := range []string{userFile, projectFile} {
			_, err := Load(machine{files: map[string]string{file: tt.file}}.sources())
			p := agent.ProblemOf(err)
			if tt.want == "ok" {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if p == nil || (tt.want != "" && p.Message != "settings "+file+tt.want) || !strings.HasPrefix(p.Message, "settings "+file+":1:") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func FuzzReadRule(f *testing.F) {
	for _, s := range []string{`"Bash(npm *)"`, `{"tool":"Bash","pattern":"x","behavior":"deny"}`, `{"verdict":"allow","x":1}`, `[]`, `{"scope":{"stage":"user"}}`, `"\ud800"`} {
		f.Add(s, 0)
		f.Add(s, 2)
	}
	verdicts := []agent.Verdict{agent.Pass, agent.Allow, agent.Deny, agent.AskUser}
	f.Fuzz(func(t *testing.T, raw string, n int) {
		if !json.Valid([]byte(raw)) {
			return
		}
		list := verdicts[uint(n)%4]
		r, err := readRule(json.RawMessage(raw), list)
		if r.Verdict == agent.Pass || (list != agent.Pass && r.Verdict != list) {
			t.Errorf("%s in %q: %+v, %v", raw, list, r, err)
		}
		if err == nil && (r.Text == "" || len(r.Text) > maxRule) {
			t.Errorf("%s: %+v", raw, r)
		}
	})
}
