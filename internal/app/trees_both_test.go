//go:build unix

package app_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// meeting holds back requests that fit until so many have come.
type meeting struct {
	fits func(body string) bool
	mu   sync.Mutex
	left int
	all  chan struct{}
}

// before puts the meeting before a model.
func (m *meeting) before(t *testing.T, model http.Handler) (url string) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has left
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if m.fits(string(body)) && !m.wait(r.Context()) {
			t.Error("somebody has not come")
		}
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// wait reports whether all have come.
func (m *meeting) wait(ctx context.Context) bool {
	m.mu.Lock()
	if m.left--; m.left == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-m.all:
		return true
	case <-limit.C:
	case <-ctx.Done():
	}
	return false
}

// painters are two agents that change the same line of a file, each to its colour, and
// write a file of their own. They are in the middle of it at the same time.
type painters struct {
	trees  map[string]string // by colour
	agents map[string]string // IDs, by colour
}

var (
	colours   = []string{"red", "blue"}
	agentName = regexp.MustCompile(`agentId (c[a-z2-7]{32})`)
)

// paint is what one of them does.
func (p *painters) paint(colour string, r script.Request) script.Reply {
	one := func(tool string, in fields) script.Reply {
		return script.Reply{Calls: []script.Call{{ID: "c" + tool, Tool: tool, Input: input(in)}}}
	}
	switch r.Step {
	case 0:
		return one("Read", fields{"file_path": "shared.txt"})
	case 1:
		return one("Write", fields{"file_path": "shared.txt", "content": "one\n" + colour + "\nthree\n"})
	case 2:
		return one("Write", fields{"file_path": colour + ".txt", "content": colour + "\n"})
	case 3:
		return one("Read", fields{"file_path": "local.conf"})
	}
	return script.Reply{Text: "Done; " + r.Last, Stop: agent.StopEnd}
}

// learn takes the names of trees and agents from what the session reads.
func (p *painters) learn(body string) {
	for i, part := range strings.Split(body, "[agentId ")[1:] {
		if i >= len(colours) {
			return
		}
		if m := treeName.FindStringSubmatch(part); m != nil && p.trees[colours[i]] == "" {
			p.trees[colours[i]], p.agents[colours[i]] = m[1], agentName.FindStringSubmatch("agentId " + part)[1]
		}
	}
}

// painting is the model of a session that has them paint, and of them. What is said
// afterwards, more says.
func painting(more func(p *painters, r script.Request) script.Reply) script.Options {
	p := &painters{trees: map[string]string{}, agents: map[string]string{}}
	return script.Options{Func: func(r script.Request) script.Reply {
		body := string(r.Body)
		if strings.Contains(body, whole) {
			if r.Step == 0 {
				var both []script.Call
				for _, c := range colours {
					both = append(both, hand(c, fields{"prompt": "Paint it " + c + ".", "isolation": "worktree", "description": c}))
				}
				return script.Reply{Calls: both}
			}
			p.learn(body)
			return more(p, r)
		}
		if strings.Contains(body, "Agree.") {
			return more(p, r)
		}
		for _, c := range colours {
			if strings.Contains(body, "Paint it "+c+".") {
				return p.paint(c, r)
			}
		}
		return script.Reply{Text: "What?", Stop: agent.StopEnd}
	}}
}

// studio is a repository with a file that git ignores and that every tree gets, and one
// that is not committed.
func (w *world) studio() {
	w.t.Helper()
	w.write("shared.txt", "one\ntwo\nthree\n")
	w.write(".gitignore", "local.conf\n")
	w.write(".worktreeinclude", "local.conf\n")
	w.write("local.conf", "set up here\n")
	w.repository()
	w.git(w.work, "config", "user.name", "Kim")
	w.git(w.work, "config", "user.email", "k@example.org")
	w.write("mine.txt", "not committed\n")
}

// untouched checks that the session's folder is as it was at a commit.
func (w *world) untouched(when, head string) {
	w.t.Helper()
	if got := w.git(w.work, "status", "--porcelain"); got != "?? mine.txt" {
		w.t.Errorf("%s the folder has %q", when, got)
	}
	if got := w.git(w.work, "rev-parse", "HEAD"); got != head {
		w.t.Errorf("%s the folder is at %s", when, got)
	}
	if _, err := os.Stat(filepath.Join(w.work, ".git", "MERGE_HEAD")); err == nil {
		w.t.Errorf("%s a merge is under way", when)
	}
}

// Two agents change one line of one file at once, each in its own work tree. A person
// says no to the first merge, then yes; the second one is a conflict, which changes
// nothing; an agent settles it in its tree, and then that is merged too. Until somebody
// has said yes, the folder of the session stays as it is.
func TestTwoAgentsInWorkTrees(t *testing.T) {
	t.Parallel()
	var w *world
	merge := func(id, tree string) script.Reply {
		return script.Reply{Calls: []script.Call{{ID: id, Tool: "WorktreeMerge", Input: input(fields{"worktree": tree})}}}
	}
	opts := painting(func(p *painters, r script.Request) script.Reply {
		if !strings.Contains(string(r.Body), whole) { // the agent that settles it: steps 0 to 4 were before
			switch r.Step {
			case 5:
				return script.Reply{Calls: []script.Call{{ID: "s0", Tool: "Bash", Input: input(fields{"command": "git merge main || git status --short"})}}}
			case 6:
				return script.Reply{Calls: []script.Call{{ID: "s1", Tool: "Read", Input: input(fields{"file_path": "shared.txt"})}}}
			case 7:
				return script.Reply{Calls: []script.Call{{ID: "s2", Tool: "Write", Input: input(fields{"file_path": "shared.txt", "content": "one\nred and blue\nthree\n"})}}}
			}
			return script.Reply{Text: "Settled; " + r.Last, Stop: agent.StopEnd}
		}
		switch r.Step {
		case 1:
			return merge("no", p.trees["red"])
		case 2:
			return merge("yes", p.trees["red"])
		case 3:
			return merge("conflict", p.trees["blue"])
		case 4:
			return script.Reply{Calls: []script.Call{hand("settle", fields{"prompt": "Agree.", "resume": p.agents["blue"]})}}
		case 5:
			return merge("again", p.trees["blue"])
		case 6:
			return merge("once more", p.trees["blue"])
		}
		return script.Reply{Text: "All done.", Stop: agent.StopEnd}
	})
	w = newWorld(t, script.Script{}, opts)
	w.studio()
	model := script.NewHandler(script.Script{}, opts)
	both := &meeting{left: 2, all: make(chan struct{}), fits: func(body string) bool { // when both have written the file
		return strings.Contains(body, "Paint it") && !strings.Contains(body, whole) && strings.Count(body, `"tool_use_id"`) == 2
	}}
	head := w.git(w.work, "rev-parse", "HEAD")
	k := w.talkWith(options(w.work, w.home, both.before(t, model), app.Flags{Allow: []string{"Write", "Bash(git *)"}}), agent.Open{Approver: true})
	asked := 0
	end := k.answer(whole, func(q agent.ApprovalAsked) agent.Resolve {
		if q.Proposal.Call.Tool != "worktree__merge" {
			t.Errorf("asked about %s %s", q.Proposal.Call.Tool, q.Proposal.Call.Input)
			return no()
		}
		switch asked++; asked {
		case 1:
			w.untouched("before the first answer", head)
			return no()
		case 2:
			w.untouched("after a no", head)
		}
		return yes()
	})
	if end.Reason != agent.EndDone || asked != 3 {
		t.Fatalf("%s after %d questions\n%s", end.Reason, asked, names(k.seen))
	}
	for _, c := range colours {
		if r := k.result(c); !strings.Contains(r.Text, "set up here") || !strings.Contains(r.Text, "M shared.txt") || !strings.Contains(r.Text, "A "+c+".txt") {
			t.Errorf("%s: %s", c, r.Text)
		}
	}
	if r := k.result("conflict"); !r.Failed() || !strings.Contains(r.Text, "both main and the work tree have changed: shared.txt") {
		t.Errorf("the conflict: %s", r.Text)
	}
	for _, id := range []string{"yes", "again", "once more"} {
		if r := k.result(id); r.Failed() || !strings.Contains(r.Text, "work tree is removed") {
			t.Errorf("%s: %s", id, r.Text)
		}
	}
	if w.read("shared.txt") != "one\nred and blue\nthree\n" || w.read("red.txt") != "red\n" || w.read("blue.txt") != "blue\n" {
		t.Errorf("it came to %q\n%s", w.read("shared.txt"), k.result("settle").Text)
	}
	w.untouched("at the end", w.git(w.work, "rev-parse", "HEAD"))
	w.noTrees()
	k.sound()
}

// noTrees checks that nothing is left of any work tree.
func (w *world) noTrees() {
	w.t.Helper()
	if got := w.git(w.work, "worktree", "list", "--porcelain"); strings.Count(got, "worktree ") != 1 || w.git(w.work, "branch", "--list", "dure-*") != "" {
		w.t.Errorf("left:\n%s", got)
	}
	left, _ := filepath.Glob(filepath.Join(w.home, "dure", "worktrees", "[^.]*"))
	if len(left) > 0 {
		w.t.Errorf("left: %v", left)
	}
}
