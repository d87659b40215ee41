//go:build unix

package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
	"dure/internal/state/transcript"
)

var ofKind = regexp.MustCompile(`the work tree ((?:red|blue)-[0-9a-f]{12})`)

// treeStory is what the models of a session and of its agents say: two agents write in
// work trees of their own beside each other, and what they did is merged, one by one.
func treeStory(r script.Request) script.Reply {
	body := string(r.Body)
	if !strings.Contains(body, "Do all the steps.") {
		for _, c := range colours {
			if strings.Contains(body, "Paint it "+c+".") && (r.Step == 0 || strings.Contains(r.Last, "outcome is unknown")) {
				return script.Reply{Calls: []script.Call{{ID: fmt.Sprint("w", r.Step), Tool: "Bash", Input: input(fields{"command": "echo " + c + " > " + c + ".txt; cat local.conf"})}}}
			}
		}
		return script.Reply{Text: "It is " + r.Last, Stop: agent.StopEnd}
	}
	if r.Step == 0 {
		var both []script.Call
		for _, c := range colours {
			both = append(both, hand(c, fields{"prompt": "Paint it " + c + ".", "subagent_type": c}))
		}
		return script.Reply{Calls: both}
	}
	var trees []string
	for _, m := range ofKind.FindAllStringSubmatch(body, -1) {
		if !slices.Contains(trees, m[1]) {
			trees = append(trees, m[1])
		}
	}
	if r.Step <= len(trees) {
		return script.Reply{Calls: []script.Call{{ID: fmt.Sprintf("m%d", r.Step), Tool: "WorktreeMerge", Input: input(fields{"worktree": trees[r.Step-1]})}}}
	}
	return script.Reply{Text: "All done.", Stop: agent.StopEnd}
}

// git runs git in the folder of the session.
func (r *crashRun) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.work()
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Kim", "GIT_AUTHOR_EMAIL=k@example.org", "GIT_COMMITTER_NAME=Kim", "GIT_COMMITTER_EMAIL=k@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %v: %w\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func newTreeRun(dir string) (*crashRun, error) {
	r, err := newCrashRun(dir, newCrashScript(0), 0)
	if err != nil {
		return nil, err
	}
	_ = r.model.Close() // it tells another story
	if r.model, err = script.NewServer(script.Script{}, script.Options{Func: treeStory}); err != nil {
		return nil, err
	}
	kinds := filepath.Join(r.home(), "dure", "agents")
	err = os.MkdirAll(kinds, 0o700)
	for _, c := range colours {
		err = errors.Join(err, os.WriteFile(filepath.Join(kinds, c+".md"), []byte("---\nname: "+c+"\ndescription: Paints.\nisolation: worktree\n---\nYou paint.\n"), 0o600))
	}
	for name, text := range map[string]string{".gitignore": "local.conf\n", ".worktreeinclude": "local.conf\n", "local.conf": "set up here\n"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(r.work(), name), []byte(text), 0o600))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "First"}} {
		if err == nil {
			_, err = r.git(args...)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(r.work(), "mine.txt"), []byte("not committed\n"), 0o600)
	}
	return r, err
}

// checkTrees looks at what a run has left when its turn has ended, and after another
// start of the program.
func (r *crashRun) checkTrees(ctx context.Context) (v verdict, err error) {
	a, err := app.New(options(r.work(), r.home(), r.model.URL(), app.Flags{}))
	if err != nil {
		return v, err
	}
	defer a.Close()
	if _, err := a.MendTrees(ctx); err != nil {
		v.fail("looking after what is left: %v", err)
	}
	var events []agent.Event
	state := transcript.New()
	for e, err := range a.Client().Attach(crashID).Events(ctx, 0) {
		if err != nil {
			return v, err
		}
		events = append(events, e)
		state.Apply(e)
	}
	v.events = len(events)
	v.problems = append(v.problems, slices.Concat(numbering(events), gated(events), verified(ctx, a.Client(), crashID), refusals(r.model))...)
	if state.Turn.Open || state.Turn.Reason != agent.EndDone {
		v.fail("the turn has not ended well\n%s", names(events))
	}
	for _, b := range all[agent.CallFinished](events) {
		switch id := b.Result.ID; {
		case b.Result.Failed():
			v.fail("%s: %s", id, b.Result.Text)
		case slices.Contains(colours, id) && (!strings.Contains(b.Result.Text, "set up here") || !strings.Contains(b.Result.Text, "A "+id+".txt")):
			v.fail("%s: %s", id, b.Result.Text)
		}
	}
	for _, c := range colours {
		if text, err := r.git("show", "HEAD:"+c+".txt"); err != nil || text != c {
			v.fail("%s.txt has %q: %v", c, text, err)
		}
	}
	for want, args := range map[string][]string{
		"?? mine.txt": {"status", "--porcelain"}, "": {"branch", "--list", "dure-*"}, r.work(): {"worktree", "list", "--porcelain"},
	} {
		got, err := r.git(args...)
		if path, ok := strings.CutPrefix(got, "worktree "); ok && strings.Count(got, "worktree ") == 1 {
			got, _, _ = strings.Cut(path, "\n")
		}
		if got != want || err != nil {
			v.fail("git %v: %q, %v", args, got, err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(r.home(), "dure", "worktrees", "[^.]*"))
	if len(left) > 0 {
		v.fail("left: %v", left)
	}
	return v, nil
}

// treeRun is one session with agents in work trees that is killed at a boundary and goes on.
func treeRun(ctx context.Context, dir string, p crashPoint) (v verdict, err error) {
	r, err := newTreeRun(dir)
	if err != nil {
		return v, err
	}
	defer r.close()
	return r.killed(p, func() (verdict, error) { return r.checkTrees(ctx) })
}

// TestCrashWithTrees kills a session whose agents work in trees of their own at every
// boundary of its log and of theirs, or at some in the short form, and has it go on: what
// each agent did is merged once, the folder has what it had before beside that, and no
// tree, no branch and no process is left.
func TestCrashWithTrees(t *testing.T) {
	prooftest.Program(t, "git")
	r, err := newTreeRun(filepath.Join(resolved(t), "first"))
	if err != nil {
		t.Fatal(err)
	}
	_, lines, err := r.child(childTask{List: true})
	if err = errors.Join(err, r.close()); err != nil {
		t.Fatal(err)
	}
	killedAt(t, pointsOf(lines), 40, 2, func(dir string, p crashPoint) (verdict, error) { return treeRun(t.Context(), dir, p) })
	if left := family.orphans(); len(left) > 0 {
		t.Errorf("processes are left behind: %v", left)
	}
}

func resolved(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
