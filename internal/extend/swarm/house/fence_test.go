package house

import (
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/safety/workspace"
)

// A call in a work tree changes nothing of the folder that it was made from, and has git work
// nowhere else.
func TestFence(t *testing.T) {
	main, own := t.TempDir(), t.TempDir()
	ws, err := workspace.New(workspace.Config{Root: own})
	if err != nil {
		t.Fatal(err)
	}
	f := fence{ws: ws, main: main}
	runs := func(c agent.SimpleCommand) agent.Effects { return agent.Effects{Commands: []agent.SimpleCommand{c}} }
	for name, c := range map[string]struct {
		effects agent.Effects
		want    string
	}{
		"its own":      {agent.Effects{Writes: []string{filepath.Join(own, "a")}}, ""},
		"elsewhere":    {agent.Effects{Writes: []string{filepath.Join(t.TempDir(), "a")}}, ""},
		"theirs":       {agent.Effects{Writes: []string{filepath.Join(main, "a")}}, "it writes "},
		"a command":    {runs(agent.SimpleCommand{Argv: []string{"cp"}, Writes: []string{filepath.Join(main, "a")}}), "it writes "},
		"runs there":   {runs(agent.SimpleCommand{Argv: []string{"make"}, Dir: main}), "it runs in "},
		"reads there":  {runs(agent.SimpleCommand{Argv: []string{"ls"}, Dir: main, Kind: agent.CommandReads}), ""},
		"within":       {runs(agent.SimpleCommand{Argv: []string{"env"}, Runs: []agent.SimpleCommand{{Argv: []string{"make"}, Dir: main}}}), "it runs in "},
		"variable":     {runs(agent.SimpleCommand{Argv: []string{"git", "add"}, Vars: []string{"GIT_DIR=" + main}}), "it sets GIT_DIR"},
		"git dir":      {runs(agent.SimpleCommand{Argv: []string{"/usr/bin/git", "--git-dir=" + main, "add"}}), "it has git work in "},
		"git tree":     {runs(agent.SimpleCommand{Argv: []string{"git", "--work-tree", main, "add"}}), "it has git work in "},
		"after dashes": {runs(agent.SimpleCommand{Argv: []string{"git", "log", "--", "--git-dir=x"}}), ""},
	} {
		if got := f.crossed(c.effects); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		want := agent.Pass
		if c.want != "" {
			want = agent.Deny
		}
		if d, err := f.decide(t.Context(), agent.Proposal{Effects: c.effects}, agent.Decision{}); err != nil || d.Verdict != want {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	unread := agent.Effects{Unreadable: "eval", Commands: []agent.SimpleCommand{{Argv: []string{"eval"}}}}
	if d, _ := f.decide(t.Context(), agent.Proposal{Effects: unread}, agent.Decision{}); d.Verdict != agent.AskUser {
		t.Errorf("what cannot be read: %+v", d)
	}
}
