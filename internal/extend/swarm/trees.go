package swarm

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/state/worktree"
)

// The tools for what agents have done in work trees.
const (
	MergeTool  = "worktree__merge"
	RemoveTool = "worktree__remove"
)

//go:embed merge.md
var aboutMerge string

//go:embed remove.md
var aboutRemove string

const treeLimit = 10 * time.Minute

// treeInput is the input of both.
type treeInput struct {
	Tree    string `json:"worktree"`
	Into    string `json:"branch"`
	Keep    bool   `json:"keep_branch"`
	Discard bool   `json:"discard_changes"`
}

// TreeTools returns the tools for work trees. They are listed while the session has one.
func (s *Swarm) TreeTools() []agent.Tool {
	if s.c.Isolation.Trees == nil {
		return nil
	}
	return []agent.Tool{merging{s}, removing{s}}
}

type (
	merging  struct{ *Swarm }
	removing struct{ *Swarm }
)

// Enabled reports whether the session has work trees, or has had some: a call is made again
// after a crash.
func (m merging) Enabled() bool { return m.hasTrees() }

// Enabled reports the same.
func (r removing) Enabled() bool { return r.hasTrees() }

func (s *Swarm) hasTrees() bool {
	own := func(t worktree.Tree) bool { return t.Owner == s.c.Isolation.Session }
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.looked { // what is removed from now on has been seen here before
		s.looked, s.trees = true, slices.ContainsFunc(s.c.Isolation.Trees.Gone(), own)
	}
	if !s.trees {
		all, err := s.c.Isolation.Trees.List()
		s.trees = err == nil && slices.ContainsFunc(all, own)
	}
	return s.trees
}

// Spec describes the tool.
func (merging) Spec() agent.Spec {
	return agent.Spec{
		Name: MergeTool, Description: strings.TrimSpace(aboutMerge), Group: "agents",
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"worktree":{"type":"string"},"branch":{"type":"string"},"keep_branch":{"type":"boolean"}},"required":["worktree"],"additionalProperties":false}`),
		Class: agent.Idempotent, Risk: agent.RiskMedium, Limit: treeLimit, Budget: 6_000,
	}
}

// Spec describes the tool.
func (removing) Spec() agent.Spec {
	return agent.Spec{
		Name: RemoveTool, Description: strings.TrimSpace(aboutRemove), Group: "agents",
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"worktree":{"type":"string"},"keep_branch":{"type":"boolean"},"discard_changes":{"type":"boolean"}},"required":["worktree"],"additionalProperties":false}`),
		Class: agent.Idempotent, Risk: agent.RiskMedium, Limit: treeLimit, Budget: 6_000,
	}
}

// tree finds the tree that a call names, which must be the session's and at rest.
func (s *Swarm) tree(c agent.Call) (in treeInput, t worktree.Tree, err error) {
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return in, t, refuse(agent.ErrInput, "the input does not fit the tool: "+err.Error(), "")
	}
	t, err = s.c.Isolation.Trees.Find(strings.TrimSpace(in.Tree))
	if err != nil || t.Owner != s.c.Isolation.Session {
		var have []string
		all, _ := s.c.Isolation.Trees.List() // that there are none is what is said then
		for _, t := range all {
			if t.Owner == s.c.Isolation.Session {
				have = append(have, t.ID)
			}
		}
		return in, t, refuse(agent.ErrInput, fmt.Sprintf("this session has no work tree %.80q", in.Tree), "There are: "+strings.Join(have, ", ")+".")
	}
	if s.working(t) {
		return in, t, refuse(agent.ErrTool, "an agent still works in the work tree "+t.ID, "Wait for its end, or stop it with "+s.c.StopTool+".")
	}
	return in, t, nil
}

// dropped finds the tree that a call names and that this session has had removed: the call
// is made again after a crash, or by a model that has forgotten.
func (s *Swarm) dropped(c agent.Call) (in treeInput, t worktree.Tree, ok bool) {
	if json.Unmarshal(c.Input, &in) != nil {
		return in, t, false
	}
	t, ok = s.c.Isolation.Trees.Past(strings.TrimSpace(in.Tree))
	return in, t, ok && t.Owner == s.c.Isolation.Session
}

// merged finds the one that was merged as a call would have it.
func (s *Swarm) merged(c agent.Call) (worktree.Tree, bool) {
	in, t, ok := s.dropped(c)
	return t, ok && t.Merge != nil && (in.Into == "" || in.Into == t.Merge.Into)
}

// working reports whether an agent of this session works in a tree.
func (s *Swarm) working(t worktree.Tree) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy[t.ID] > 0
}

// occupy counts an agent that works in a place, and returns what counts it out.
func (s *Swarm) occupy(p *place) (leave func()) {
	if p == nil || p.tree.ID == "" {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy == nil {
		s.busy = map[string]int{}
	}
	s.busy[p.tree.ID]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.busy[p.tree.ID]--; s.busy[p.tree.ID] == 0 {
			delete(s.busy, p.tree.ID)
		}
	}
}

// Plan names the files that the merge changes, and the git that does it.
func (m merging) Plan(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Effects, error) {
	if _, ok := m.merged(c); ok {
		return agent.Effects{}, nil
	}
	in, t, err := m.tree(c)
	if err != nil {
		return agent.Effects{}, err
	}
	p, err := m.c.Isolation.Trees.PlanMerge(ctx, t, in.Into)
	if err != nil {
		return agent.Effects{}, mergeProblem(err, t)
	}
	e := agent.Effects{Reads: []string{t.Path, t.Repo}, Runs: [][]string{{"git", "merge", t.Branch}}}
	if !p.Here {
		e.Runs = [][]string{{"git", "update-ref", "refs/heads/" + p.Into}}
		return e, nil
	}
	for _, change := range p.Changes {
		e.Writes = append(e.Writes, filepath.Join(t.Repo, filepath.FromSlash(change.Path)))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agreed == nil || len(m.agreed) > maxRemembered {
		m.agreed = map[string]worktree.Plan{}
	}
	m.agreed[c.ID] = p
	return e, nil
}

// Run merges.
func (m merging) Run(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	return toolResult(m.merge(ctx, c))
}

func (s *Swarm) merge(ctx context.Context, c agent.Call) (agent.Result, error) {
	if t, ok := s.merged(c); ok {
		return agent.OK(fmt.Sprintf("%s is merged into %s, and its work tree is removed.", t.ID, t.Merge.Into)), nil
	}
	in, t, err := s.tree(c)
	if err != nil {
		return agent.Result{}, err
	}
	trees := s.c.Isolation.Trees
	s.mu.Lock()
	p, agreed := s.agreed[c.ID]
	delete(s.agreed, c.ID)
	s.mu.Unlock()
	if !agreed {
		if p, err = trees.PlanMerge(ctx, t, in.Into); err != nil {
			return agent.Result{}, mergeProblem(err, t)
		}
	}
	if t, err = trees.Merge(ctx, t, p); err != nil {
		return agent.Result{}, mergeProblem(err, t)
	}
	text := fmt.Sprintf("Merged %s into %s: %s.", t.ID, p.Into, files(p.Changes))
	if p.Empty() {
		text = p.Into + " has all of it already."
	}
	switch err := s.drop(ctx, t, in.Keep, false); {
	case errors.Is(err, worktree.ErrChanged):
		text += " The work tree has changes that are not committed, and stays."
	case err != nil:
		text += " The work tree is not removed: " + err.Error()
	default:
		text += " The work tree is removed."
	}
	return agent.OK(text), nil
}

// mergeProblem says what to do when a merge cannot be.
func mergeProblem(err error, t worktree.Tree) error {
	if c, ok := errors.AsType[*worktree.ConflictError](err); ok {
		return refuse(agent.ErrTool, "nothing was merged: "+c.Error(),
			"Have an agent go on in the work tree and take the changes of "+c.Into+" into its branch there (git merge "+c.Into+"), or change the files of the work tree so that they agree: "+t.Path)
	}
	if d, ok := errors.AsType[*worktree.DirtyError](err); ok {
		return refuse(agent.ErrTool, "nothing was merged: "+d.Error(), "Tell the user, whose changes these are; commit them first if the user wants that.")
	}
	return treeProblem(err)
}

// Plan names the folder that is removed.
func (r removing) Plan(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Effects, error) {
	if _, _, ok := r.dropped(c); ok {
		return agent.Effects{}, nil
	}
	in, t, err := r.tree(c)
	if err != nil {
		return agent.Effects{}, err
	}
	e := agent.Effects{Reads: []string{t.Path, t.Repo}, Runs: [][]string{{"git", "worktree", "remove", t.Path}}}
	if in.Discard && !in.Keep {
		e.Runs = append(e.Runs, []string{"git", "branch", "-D", t.Branch})
	}
	return e, nil
}

// Run removes a tree.
func (r removing) Run(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	return toolResult(r.remove(ctx, c))
}

func (s *Swarm) remove(ctx context.Context, c agent.Call) (agent.Result, error) {
	if _, t, ok := s.dropped(c); ok {
		return agent.OK("The work tree " + t.ID + " is removed."), nil
	}
	in, t, err := s.tree(c)
	if err != nil {
		return agent.Result{}, err
	}
	err = s.drop(ctx, t, in.Keep, in.Discard)
	if errors.Is(err, worktree.ErrChanged) {
		return agent.Result{}, refuse(agent.ErrTool, "the work tree "+t.ID+" is not removed: "+err.Error(), "Merge it, or set discard_changes, or keep_branch for what is committed.")
	}
	if err != nil {
		return agent.Result{}, treeProblem(err)
	}
	if in.Keep {
		return agent.OK("Removed " + t.ID + "; its branch " + t.Branch + " stays."), nil
	}
	return agent.OK("Removed " + t.ID + " and its branch."), nil
}

// toolResult makes a result of what a tool can refuse.
func toolResult(r agent.Result, err error) (agent.Result, error) {
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		return agent.Failure(te.Code, te.Message, te.Suggestion), nil
	}
	return r, err
}
