//go:build unix

package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// mighty is a bundle whose agent can change it, and grown what a model makes of it to have
// more than a person has agreed to: a shell, its rules, and no limits of files.
const (
	mighty = `apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: anthropic, model: script }
---
apiVersion: goondan.ai/v1
kind: Tool
metadata: { name: self }
spec: { runtime: builtin, entry: bundle, exports: [{ name: openChangeset }, { name: commitChangeset }] }
---
apiVersion: goondan.ai/v1
kind: Tool
metadata: { name: file }
spec: { runtime: builtin, entry: file, exports: [{ name: write }] }
---
apiVersion: goondan.ai/v1
kind: Tool
metadata: { name: shell }
spec: { runtime: builtin, entry: Bash, exports: [{ name: run }] }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: helper }
spec:
  modelConfig: { modelRef: Model/main }
  tools: [Tool/self, Tool/file]
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: default }
spec: { entryAgent: Agent/helper, agents: [Agent/helper] }
`
	fewer = "tools: [Tool/self, Tool/file]"
	more  = "tools: [Tool/self, Tool/file, Tool/shell]"
)

// growing is a model that gives its agent a shell by a changeset, and uses it.
func growing() script.Script {
	return distinct(
		calls(tool("self__openChangeset", fields{})),
		calls(tool("file__write", fields{"path": ".changesets/cs-1/goondan.yaml", "content": strings.Replace(mighty, fewer, more, 1)})),
		calls(tool("self__commitChangeset", fields{"changesetId": "cs-1"})),
		calls(tool("Bash", fields{"command": "touch owned"})),
		script.Reply{Text: "Done."},
	)
}

// What its bundle has an agent do changes by a person's yes alone: no mode that lets files
// be edited, no rule for paths and no --reload stands for it, and where nobody can be asked
// it is denied. A rule for the tool itself does, and bypass mode. What was committed gives a
// session that runs nothing, and its next start no more than the gate allows.
func TestChangesetsWidenNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags    app.Flags
		settings string
		yes      bool // a person is there, and agrees
		commits  bool
	}{
		"default":               {settings: `"Edit", "Write", "Edit(//**)", "self__openChangeset", "file__write"`},
		"acceptEdits":           {flags: app.Flags{Mode: "acceptEdits"}, settings: `"self__openChangeset"`},
		"acceptEdits and rules": {flags: app.Flags{Mode: "acceptEdits"}, settings: `"Edit(//**)", "self__openChangeset", "Bash"`},
		"dontAsk":               {flags: app.Flags{Mode: "dontAsk"}, settings: `"Edit(//**)", "self__openChangeset", "file__write"`},
		"a person":              {flags: app.Flags{Mode: "acceptEdits"}, settings: `"self__openChangeset"`, yes: true, commits: true},
		"a rule for it":         {settings: `"self__openChangeset", "file__write", "self__commitChangeset"`, commits: true},
		"bypass":                {flags: app.Flags{Mode: "bypassPermissions"}, commits: true},
	} {
		for _, reload := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, growing(), script.Options{})
				dir := w.desk(tt.settings)
				a, run := w.swarm(dir, tt.flags)
				run.Code.Reload = reload
				k := w.talkTo(a, agent.Open{Agent: run.Entry, Approver: tt.yes})
				var asked []agent.ApprovalAsked
				k.answer("Grow.", func(q agent.ApprovalAsked) agent.Resolve {
					asked = append(asked, q)
					if q.Proposal.Call.Tool == "self__commitChangeset" {
						return yes()
					}
					return no()
				})
				if got := w.read("desk/goondan.yaml") != mighty; got != tt.commits {
					t.Errorf("committed: %v; %+v", got, k.result("r3c1"))
				}
				if tt.yes && !slices.ContainsFunc(asked, func(q agent.ApprovalAsked) bool {
					return q.Proposal.Effects.Powers != "" && len(q.Choices) == 0 && strings.Contains(q.Diff, "+  "+more)
				}) {
					t.Errorf("nobody was asked, or for more than this once: %+v", asked)
				}
				if r := k.result("r4c1"); r.Status == agent.StatusOK || w.read("owned") != "" || r.Error == nil {
					t.Errorf("the session that runs has the shell: %+v", r)
				}
				if tt.commits {
					w.startsAgain(dir)
				}
			})
		}
	}
}

// startsAgain checks that a bundle has a shell when it is started again, which runs nothing
// that nobody allows.
func (w *world) startsAgain(dir string) {
	w.t.Helper()
	m, err := script.NewServer(distinct(calls(tool("Bash", fields{"command": "touch owned"})), script.Reply{Text: "Done."}), script.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { m.Close() })
	w.model = m
	a, run := w.swarm(dir, app.Flags{})
	k := w.talkTo(a, agent.Open{Agent: run.Entry})
	k.turn("Use it.")
	if r := k.result("r1c1"); r.Error == nil || r.Error.Code != agent.ErrDenied || w.read("owned") != "" {
		w.t.Errorf("a shell that nobody has allowed: %+v", r)
	}
}

// desk puts the bundle into the workspace, and rules into the user's settings.
func (w *world) desk(rules string) (dir string) {
	w.t.Helper()
	home, dir := filepath.Join(w.home, "dure"), filepath.Join(w.work, "desk")
	if err := errors.Join(os.MkdirAll(home, 0o700), os.Mkdir(dir, 0o700)); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "settings.json"), []byte(`{"permissions": {"allow": [`+rules+`]}}`), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.write("desk/goondan.yaml", mighty)
	w.write("desk/old.md", "Old.")
	return dir
}

// A commit is taken back as a whole by a checkpoint: what it changed, made and removed is what
// it was.
func TestCommitIsRewound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(
		calls(tool("self__openChangeset", fields{})),
		calls(tool("file__write", fields{"path": ".changesets/cs-1/goondan.yaml", "content": strings.Replace(mighty, fewer, more, 1)})),
		calls(tool("file__write", fields{"path": ".changesets/cs-1/prompts/new.md", "content": "New."})),
		calls(tool("Bash", fields{"command": "rm .changesets/cs-1/old.md"})),
		script.Reply{Text: "Ready."},
		calls(tool("self__commitChangeset", fields{"changesetId": "cs-1"})),
		script.Reply{Text: "Done."},
	), script.Options{})
	dir := w.desk("")
	w.write("desk/goondan.yaml", strings.Replace(mighty, fewer, more, 1)+"# more\n") // it has a shell
	a, run := w.swarm(dir, app.Flags{Skip: true})
	k := w.talkTo(a, agent.Open{Agent: run.Entry})
	k.turn("Change it.")
	before, to := looks(t, w.work), last(k)
	k.turn("Commit it.")
	if r := k.result("r6c1"); r.Status != agent.StatusOK || w.read("desk/old.md") != "" || w.read("desk/prompts/new.md") != "New." {
		t.Fatalf("%+v", r)
	}
	k.send(agent.Rewind{To: to, Files: true})
	if done := body[agent.FilesRewound](k); done.Leaves != 0 {
		t.Errorf("%+v", done)
	}
	if got := looks(t, w.work); got != before {
		t.Errorf("after the rewind:\n%s\nwant\n%s", got, before)
	}
}
