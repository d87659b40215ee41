//go:build unix

package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// git runs git in a folder, as a person does.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command(prooftest.Program(w.t, "git"), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Kim", "GIT_AUTHOR_EMAIL=k@example.org", "GIT_COMMITTER_NAME=Kim", "GIT_COMMITTER_EMAIL=k@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes one of the working folder.
func (w *world) repository() {
	w.t.Helper()
	w.write("a.txt", "one\n")
	w.git(w.work, "init", "-q", "-b", "main")
	w.git(w.work, "add", ".")
	w.git(w.work, "commit", "-q", "-m", "First")
}

var treeName = regexp.MustCompile(`work tree ([a-z0-9-]+-[0-9a-f]{12})`)

// thenTree hands work to agents and then makes a call about the work tree that the first
// of them has left.
func thenTree(agents func(script.Request) script.Reply, tool string, more fields, calls ...script.Call) script.Options {
	tree := ""
	return script.Options{Func: func(r script.Request) script.Reply {
		if m := treeName.FindStringSubmatch(r.Last); m != nil && tree == "" {
			tree = m[1]
		}
		switch {
		case !strings.Contains(string(r.Body), whole):
			return agents(r)
		case r.Step < len(calls):
			return script.Reply{Calls: calls[r.Step : r.Step+1]}
		case r.Step == len(calls) && tool != "":
			in := fields{"worktree": tree}
			for k, v := range more {
				in[k] = v
			}
			return script.Reply{Calls: []script.Call{{ID: "t1", Tool: tool, Input: input(in)}}}
		}
		return script.Reply{Text: "All done.", Stop: agent.StopEnd}
	}}
}

var isolated = hand("a1", fields{"prompt": "Write it.", "isolation": "worktree", "description": "write it"})

// An agent with a folder of its own leaves that of the session as it is, until what it
// did is merged.
func TestAnAgentInAWorkTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, thenTree(doing("Write", fields{"file_path": "out.txt", "content": "x"}), "WorktreeMerge", nil, isolated))
	w.repository()
	w.write("mine.txt", "not committed")
	k := w.talk(app.Flags{Mode: "bypassPermissions"}, agent.Open{})
	if end := k.turn(whole); end.Reason != agent.EndDone {
		t.Fatal(names(k.seen))
	}
	if r := k.result("a1"); !strings.Contains(r.Text, "A out.txt") || !strings.Contains(string(r.Output), `"worktreeBranch":"dure-general-purpose-`) {
		t.Errorf("the agent: %s\n%s", r.Text, r.Output)
	}
	if r := k.result("t1"); !strings.HasPrefix(r.Text, "Merged general-purpose-") || !strings.Contains(r.Text, "is removed") {
		t.Errorf("the merge: %+v", r)
	}
	if got := w.git(w.work, "status", "--porcelain"); got != "?? mine.txt" || w.git(w.work, "show", "HEAD:out.txt") != "x" {
		t.Errorf("the folder: %q", got)
	}
	if got := w.git(w.work, "worktree", "list", "--porcelain"); strings.Count(got, "worktree ") != 1 || w.git(w.work, "branch", "--list", "dure-*") != "" {
		t.Errorf("left:\n%s", got)
	}
	k.sound()
}

// What it would do to the folder of the session is denied in every mode, and nobody but
// a person, or a mode that asks for nothing, has it merged.
func TestAWorkTreeIsAFence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		does func(w *world) func(script.Request) script.Reply
		says string
	}{
		{"a file", func(w *world) func(script.Request) script.Reply {
			return doing("Write", fields{"file_path": filepath.Join(w.work, "out.txt"), "content": "x"})
		}, "in a work tree of its own"},
		{"a command there", func(w *world) func(script.Request) script.Reply {
			return doing("Bash", fields{"command": "cd " + w.work + " && touch out.txt"})
		}, "in a work tree of its own"},
		{"git there", func(w *world) func(script.Request) script.Reply {
			return doing("Bash", fields{"command": "git -C " + w.work + " commit --allow-empty -m x"})
		}, "it runs in"},
		{"the repository there", func(w *world) func(script.Request) script.Reply {
			return doing("Bash", fields{"command": "git --git-dir " + filepath.Join(w.work, ".git") + " commit --allow-empty -m x"})
		}, "it has git work in"},
		{"git for there", func(w *world) func(script.Request) script.Reply {
			return doing("Bash", fields{"command": "GIT_WORK_TREE=" + w.work + " git checkout -f"})
		}, "it sets GIT_WORK_TREE"},
		{"what cannot be told", func(*world) func(script.Request) script.Reply {
			return doing("Bash", fields{"command": "cd $(cat where) && touch out.txt"})
		}, "cannot be told"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w *world // which the model knows of before it is there
			w = newWorld(t, script.Script{}, thenTree(func(r script.Request) script.Reply { return c.does(w)(r) }, "", nil, isolated))
			w.repository()
			k := w.talk(app.Flags{Mode: "bypassPermissions"}, agent.Open{})
			k.turn(whole)
			said := k.result("a1").Text
			if _, err := os.Stat(filepath.Join(w.work, "out.txt")); err == nil || !strings.Contains(said, c.says) || strings.Count(w.git(w.work, "log", "--oneline"), "\n") > 0 {
				t.Errorf("it came to %v\n%s", err, said)
			}
			if !strings.Contains(said, "its work tree is removed") || len(w.git(w.work, "branch", "--list", "dure-*")) > 0 {
				t.Errorf("a tree without changes stays: %s", said)
			}
		})
	}
	w := newWorld(t, script.Script{}, thenTree(doing("Write", fields{"file_path": "out.txt", "content": "x"}), "WorktreeMerge", nil, isolated))
	w.repository()
	k := w.talk(app.Flags{Mode: "acceptEdits"}, agent.Open{})
	k.turn(whole)
	if r := k.result("t1"); !r.Failed() || !strings.Contains(r.Text, "nobody is there to ask") {
		t.Errorf("merged unasked: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.work, "out.txt")); err == nil {
		t.Error("the file is there")
	}
}

// An agent that goes on does so in its own folder; a type can ask for one, and a call
// can do without.
func TestAnAgentGoesOnInItsWorkTree(t *testing.T) {
	t.Parallel()
	id := ""
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if m := regexp.MustCompile(`agentId (c[a-z2-7]{32})`).FindStringSubmatch(r.Last); m != nil && id == "" {
			id = m[1]
		}
		switch {
		case strings.Contains(r.Last, "Once more."):
			return script.Reply{Calls: []script.Call{{ID: "c2", Tool: "Bash", Input: input(fields{"command": "cat out.txt; pwd"})}}}
		case !strings.Contains(string(r.Body), whole):
			if strings.Contains(r.Last, "worktrees") && r.Step > 0 && strings.Contains(string(r.Body), "Once more.") {
				return script.Reply{Text: "It said: " + r.Last, Stop: agent.StopEnd}
			}
			return doing("Write", fields{"file_path": "out.txt", "content": "first"})(r)
		case r.Step == 0:
			return script.Reply{Calls: []script.Call{hand("a1", fields{"prompt": "Write it.", "subagent_type": "apart"})}}
		case r.Step == 1:
			return script.Reply{Calls: []script.Call{hand("a2", fields{"prompt": "Once more.", "resume": id})}}
		}
		return script.Reply{Text: "All done.", Stop: agent.StopEnd}
	}})
	w.repository()
	w.kind("apart", "---\nname: apart\ndescription: Works apart.\nisolation: worktree\n---\nYou work apart.\n")
	k := w.talk(app.Flags{Mode: "bypassPermissions"}, agent.Open{})
	k.turn(whole)
	if r := k.result("a2"); !strings.Contains(r.Text, "first") || !strings.Contains(r.Text, "/worktrees/apart-") {
		t.Errorf("it went on with %s", r.Text)
	}
	if _, err := os.Stat(filepath.Join(w.work, "out.txt")); err == nil {
		t.Error("it wrote into the folder of the session")
	}
}

// Hooks can make the folder in another way, or forbid it.
func TestHooksMakeTheFolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, hook, says string }{
		{"made", `echo "$HOME/made"`, "It worked in "},
		{"forbidden", `echo not today >&2; exit 1`, "not today"},
		{"no folder", `echo "$HOME/nothing"`, "is no folder"},
		{"the session's own", `pwd`, "the folder of the session itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, script.Script{}, thenTree(doing("Write", fields{"file_path": "out.txt", "content": "x"}), "", nil, isolated))
			w.repository()
			if err := os.Mkdir(filepath.Join(w.home, "made"), 0o700); err != nil {
				t.Fatal(err)
			}
			w.chooses(fields{"hooks": fields{"WorktreeCreate": []any{fields{"hooks": []any{fields{"type": "command", "command": c.hook}}}}}})
			k := w.talk(app.Flags{Mode: "bypassPermissions"}, agent.Open{})
			k.turn(whole)
			if r := k.result("a1"); !strings.Contains(r.Text, c.says) {
				t.Errorf("it came to %s", r.Text)
			}
			if _, err := os.Stat(filepath.Join(w.work, "out.txt")); err == nil {
				t.Error("it wrote into the folder of the session")
			}
		})
	}
}

// Another program that starts leaves the work trees alone whose sessions are open, and
// removes what is left of those that are not.
func TestAnotherProgramLooksAfterWorkTrees(t *testing.T) {
	t.Parallel()
	var w *world // which the model knows of before it is there
	found, failed, tree := -1, error(nil), ""
	w = newWorld(t, script.Script{}, thenTree(func(r script.Request) script.Reply {
		if found < 0 {
			trees, _ := filepath.Glob(filepath.Join(w.home, "dure", "worktrees", "general-purpose-*[0-9a-f]"))
			if len(trees) == 1 {
				tree = trees[0]
			}
			other := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
			found, failed = other.MendTrees(t.Context())
			if _, err := os.Stat(tree); err != nil {
				failed = err
			}
		}
		return script.Reply{Text: "Done.", Stop: agent.StopEnd}
	}, "", nil, isolated))
	w.repository()
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	k := w.talkTo(a, agent.Open{})
	k.turn(whole)
	if found != 0 || failed != nil || !strings.HasPrefix(filepath.Base(tree), "general-purpose-") {
		t.Errorf("beside an open session, in %s: %d, %v", tree, found, failed)
	}
	left, err := a.MakeTree(t.Context(), k.Info.ID)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := a.MendTrees(t.Context()); n != 0 || err != nil {
		t.Errorf("its own: %d, %v", n, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	other := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	if n, err := other.MendTrees(t.Context()); err != nil || n > 1 {
		t.Errorf("of a session that is closed: %d, %v", n, err)
	}
	if _, err := os.Stat(left); err == nil || w.git(w.work, "branch", "--list", "dure-*") != "" {
		t.Error("it is left")
	}
}
