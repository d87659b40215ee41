package swarm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/state/worktree"
)

// inTree is the isolation of an agent in a work tree of its own.
const inTree = "worktree"

// inProcess is that of one in a process of its own.
const inProcess = "process"

// Bounds of what is said about work trees.
const (
	maxListedFiles = 20
	treeGrace      = 2 * time.Minute // for keeping what an agent has done that was stopped
)

// Isolation is how agents get folders of their own. The zero value has none.
type Isolation struct {
	Trees   *worktree.Store // nil = there are none here
	Dir     string          // the folder of the session
	Session string

	From        string // where trees begin, see [worktree.Request]
	Links, Only []string

	// Make makes a folder in another way than git's, for hooks; used = false says that
	// there is no other way. Gone is told of trees that are removed. Both may be nil.
	Make func(ctx context.Context, name string) (path string, used bool, err error)
	Gone func(ctx context.Context, path string)
}

// place is the folder that an agent works in apart from its session.
type place struct {
	tree  worktree.Tree // ID "" = it was made in another way
	dir   string
	notes []string
}

// wants reports whether a task is for an agent in a folder of its own.
func (t Task) wants(d Definition) bool {
	if t.Isolation != "" {
		return t.Isolation == inTree
	}
	return d.Isolation == inTree
}

// ownProcess reports whether a task is for an agent in a process of its own.
func (t Task) ownProcess(d Definition) bool {
	if t.Isolation != "" {
		return t.Isolation == inProcess
	}
	return d.Isolation == inProcess
}

// apart returns the folder that the agent of a call works in; nil = that of the session.
func (s *Swarm) apart(ctx context.Context, d Definition, in Task, key, earlier string) (*place, error) {
	iso := s.c.Isolation
	switch {
	case in.Resume != "":
		if iso.Trees != nil && earlier != "" && earlier != iso.Dir {
			if t, ok := iso.Trees.In(earlier); ok {
				return &place{tree: t, dir: earlier}, nil
			}
			return &place{dir: earlier}, nil
		}
		return nil, nil
	case !in.wants(d):
		return nil, nil
	case iso.Trees == nil:
		return nil, refuse(agent.ErrTool, "agents cannot have work trees here", "Leave isolation out, or have agents that write work one after the other.")
	}
	if iso.Make != nil {
		path, used, err := iso.Make(ctx, d.Name)
		if err != nil {
			return nil, refuse(agent.ErrTool, "the work tree was not made: "+err.Error(), "")
		}
		if used {
			return &place{dir: path}, otherFolder(path, iso.Dir)
		}
	}
	t, notes, err := iso.Trees.Create(ctx, worktree.Request{Dir: iso.Dir, Owner: iso.Session, Key: key, Kind: d.Name, From: iso.From, Links: iso.Links, Only: iso.Only})
	if err != nil {
		return nil, treeProblem(err)
	}
	p := &place{tree: t, dir: t.Path, notes: notes}
	if rel, err := filepath.Rel(t.Repo, iso.Dir); err == nil && filepath.IsLocal(rel) {
		if info, err := os.Lstat(filepath.Join(t.Path, rel)); err == nil && info.IsDir() {
			p.dir = filepath.Join(t.Path, rel)
		}
	}
	return p, nil
}

// otherFolder checks a folder that somebody else has made for an agent.
func otherFolder(path, session string) error {
	info, err := os.Stat(path)
	if err != nil || !filepath.IsAbs(path) || !info.IsDir() {
		return refuse(agent.ErrTool, fmt.Sprintf("what was made for the agent, %.200q, is no folder", path), "")
	}
	if own, err := os.Stat(session); err != nil || os.SameFile(own, info) {
		return refuse(agent.ErrTool, "what was made for the agent is the folder of the session itself", "")
	}
	return nil
}

// treeProblem says what to do about an error of work trees.
func treeProblem(err error) error {
	fix := ""
	switch {
	case errors.Is(err, worktree.ErrNoRepo), errors.Is(err, worktree.ErrNoGit):
		fix = "Leave isolation out, and have agents that write work one after the other."
	case errors.Is(err, worktree.ErrMany):
		fix = "Merge or remove the ones that are not needed any more."
	case errors.Is(err, worktree.ErrBusy):
		fix = "Wait for the other one; tell the user if the lock stays."
	}
	return refuse(agent.ErrTool, "work trees: "+err.Error(), fix)
}

// told is what an agent is told of its folder, behind its task.
func (p *place) told() string {
	if p == nil || p.tree.ID == "" {
		return ""
	}
	return fmt.Sprintf("\n\n[You work in a work tree of your own of the repository, on the branch %s, from commit %.12s. Changes of others that are not committed are not in it. What you change is committed when you end; stay in this folder.]", p.tree.Branch, p.tree.Base)
}

// names are the folder and the branch; "" = there is none.
func (p *place) names() (path, branch string) {
	if p == nil {
		return "", ""
	}
	return p.dir, p.tree.Branch
}

// kept commits what an agent has done in its folder, and says what has become of it. A
// tree without changes is removed.
func (s *Swarm) kept(ctx context.Context, j *job) string {
	p := j.place
	if p == nil {
		return ""
	}
	if p.tree.ID == "" {
		return "\n[It worked in " + p.dir + ", which is left as it is.]"
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), treeGrace)
	defer cancel()
	text, err := s.keep(ctx, p.tree, j.task.title())
	if err != nil {
		text = fmt.Sprintf("\n[The work tree %s is left as it is in %s: %v]", p.tree.ID, p.tree.Path, err)
	}
	for _, n := range p.notes {
		text += "\n[" + n + "]"
	}
	return text
}

func (s *Swarm) keep(ctx context.Context, t worktree.Tree, title string) (string, error) {
	trees := s.c.Isolation.Trees
	_, failed := trees.Commit(ctx, t, title)
	changes, err := trees.Changes(ctx, t, 0)
	if err := errors.Join(failed, err); err != nil {
		return "", err
	}
	if len(changes) == 0 {
		if err := s.drop(ctx, t, false, false); err != nil {
			return "", err
		}
		return "\n[It changed no file; its work tree is removed.]", nil
	}
	if err := trees.Unlock(ctx, t); err != nil {
		return "", err
	}
	return fmt.Sprintf("\n[Its changes are committed in the work tree %s (branch %s, folder %s) and nowhere else: %s. %s merges them, %s throws them away.]",
		t.ID, t.Branch, t.Path, files(changes), s.c.MergeTool, s.c.RemoveTool), nil
}

// drop removes a tree and tells who wants to know.
func (s *Swarm) drop(ctx context.Context, t worktree.Tree, keepBranch, force bool) error {
	if err := s.c.Isolation.Trees.Remove(ctx, t, keepBranch, force); err != nil {
		return err
	}
	if s.c.Isolation.Gone != nil {
		s.c.Isolation.Gone(ctx, t.Path)
	}
	return nil
}

// files names changed files, some of them.
func files(changes []worktree.Change) string {
	var list []string
	for _, c := range changes[:min(len(changes), maxListedFiles)] {
		list = append(list, c.Status+" "+line(c.Path, 200))
	}
	text := strings.Join(list, ", ")
	if more := len(changes) - len(list); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
