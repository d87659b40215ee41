//go:build unix

package app_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/skills/builtin"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// sampleCalls are calls of tools that skills allow, by the rule that allows them. What
// needs a network or programs that may be missing has none.
var sampleCalls = map[string]string{
	"Read": `{"file_path":"data.csv"}`, "MultiRead": `{"paths":["data.csv","m.go"]}`, "Grep": `{"pattern":"Hello"}`,
	"Glob": `{"pattern":"*.go"}`, "LS": `{"path":"."}`, "GitRead": `{"command":"status"}`,
	"TodoWrite":          `{"todos":[{"content":"a","activeForm":"a","status":"pending"}]}`,
	"Bash(git status *)": "git status --short --branch", "Bash(git diff *)": "git diff --stat", "Bash(git log *)": "git log --format=%s -10",
	"Bash(git show *)": "git show --stat", "Bash(git tag *)": "git tag --list", "Bash(git blame *)": "git blame m.go",
	"Bash(git grep *)": "git grep Hello", "Bash(git remote *)": "git remote -v", "Bash(git describe *)": "git describe --always",
}

// Each skill that comes with the program is used in a session: its text reaches the
// model with its arguments in it, the calls that it allows run without a question, and
// one that changes a file does not. Of the skills every fourth, or all.
func TestBuiltInSkills(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(builtin.Files, "*/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range prooftest.Sample(t, names, 4, nil) {
		t.Run(strings.TrimSuffix(file, "/SKILL.md"), func(t *testing.T) {
			t.Parallel()
			data, err := builtin.Files.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d, err := frontmatter.Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			useSkill(t, strings.TrimSuffix(file, "/SKILL.md"), d)
		})
	}
}

// skillCalls are the calls that a skill allows, and one that changes a file.
func skillCalls(t *testing.T, d frontmatter.Doc) (calls []script.Call, allow []string) {
	t.Helper()
	f, _ := d.Get("allowed-tools")
	allow, err := f.List(frontmatter.Words)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range allow {
		in, ok := sampleCalls[rule]
		tool, _, command := strings.Cut(rule, "(")
		if command {
			data, err := json.Marshal(fields{"command": in})
			if err != nil {
				t.Fatal(err)
			}
			in = string(data)
		}
		if ok {
			calls = append(calls, script.Call{ID: fmt.Sprintf("c%d", len(calls)), Tool: tool, Input: json.RawMessage(in)})
		}
	}
	if len(calls) < 2 {
		t.Errorf("%d calls", len(calls))
	}
	return append(calls, script.Call{ID: "write", Tool: "Write", Input: json.RawMessage(`{"file_path":"new.txt","content":"x"}`)}), allow
}

// useSkill has a scripted model do with a skill what it allows.
func useSkill(t *testing.T, name string, d frontmatter.Doc) {
	t.Helper()
	calls, allow := skillCalls(t, d)
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step == 0 {
			return script.Reply{Text: "I begin.", Calls: calls}
		}
		return script.Reply{Text: "Done."}
	}})
	w.write("data.csv", "a,b\n1,2\n")
	w.write("m.go", "package m\n\nfunc Hello() {}\n")
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "-q", "--allow-empty", "-m", "begin"},
		{"add", "m.go"},
		{"-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "-q", "-m", "m"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", w.work}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	line := "first second"
	if f, ok := d.Get("arguments"); !ok || f.Empty() {
		line = ""
	}
	var names []string
	if f, ok := d.Get("arguments"); ok {
		var err error
		if names, err = f.List(frontmatter.Words); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := frontmatter.Values{Line: line, Names: names}.Expand(d.Body)
	prompt := want
	k := w.talk(app.Flags{Allow: allow}, agent.Open{})
	typed := typable(t, k, name)
	if typed {
		prompt = strings.TrimSpace("/" + name + " " + line)
		k = w.talk(app.Flags{}, agent.Open{})
	}
	end := k.turn(prompt)
	k.sound()
	if w.read("new.txt") != "" {
		t.Error("it has changed a file without a question")
	}
	if f, _ := d.Get("context"); typed && f.Value != nil && f.Value.Value == "fork" {
		return // its calls are in a session of its own
	}
	if end.Reason != agent.EndDone {
		t.Errorf("the turn ended: %+v", end)
	}
	checkCalls(t, k, calls)
	if asked := string(w.model.Requests()[0].Body); !typed || len(frontmatter.Inlines(d.Body)) == 0 {
		for l := range strings.Lines(want) {
			data, err := json.Marshal(strings.TrimSpace(l))
			if err != nil {
				t.Fatal(err)
			}
			if s := strings.Trim(string(data), `"`); !strings.Contains(asked, s) && !strings.ContainsAny(s, `<>&\`) {
				t.Errorf("the model was not told %q", s)
			}
		}
	}
}

// typable reports whether a skill can be typed.
func typable(t *testing.T, k *talk, name string) bool {
	t.Helper()
	list, err := client.Query[[]query.CommandInfo](t.Context(), k.Client, query.ListCommands{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list, func(c query.CommandInfo) bool { return c.Kind == query.CommandSkill && c.Name == name && c.Off == "" })
}

// checkCalls looks at the decisions on calls, and at how they came out.
func checkCalls(t *testing.T, k *talk, calls []script.Call) {
	t.Helper()
	verdicts := map[string]agent.Verdict{}
	for _, b := range all[agent.CallDecided](k.seen) {
		verdicts[b.Proposal.Call.ID] = b.Decision.Verdict
	}
	for _, c := range calls {
		want, failed := agent.Allow, false
		if c.ID == "write" {
			want, failed = agent.Deny, true
		}
		if verdicts[c.ID] != want {
			t.Errorf("%s %s: %s", c.Tool, c.Input, verdicts[c.ID])
		}
		if r := k.result(c.ID); r.Failed() != failed {
			t.Errorf("%s %s: %s", c.Tool, c.Input, r.Text)
		}
	}
}
