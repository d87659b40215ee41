package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// stepMark is what is stored of a step before it is taken.
type stepMark struct {
	Kind   string `json:"kind"`
	Path   string `json:"path"` // resolved
	To     string `json:"to,omitempty"`
	Before string `json:"before,omitempty"` // SHA-256
	After  string `json:"after,omitempty"`
}

// Mark implements [agent.Checker]. A patch that is going to fail has no steps.
func (p patcher) Mark(ctx context.Context, tc agent.ToolContext, c agent.Call) (json.RawMessage, error) {
	steps, err := p.f.preparePatch(ctx, tc, c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	marks := []stepMark{}
	if err == nil {
		for _, s := range steps {
			m := stepMark{Kind: s.kind, Path: s.ch.resolved, Before: s.ch.old.SHA256, After: workspace.Sum(s.ch.data)}
			if s.to != nil {
				m.To = s.to.place
			}
			marks = append(marks, m)
		}
	}
	return kit.Structured(marks), nil
}

// The states in which a step can be found.
const (
	stepBefore = iota
	stepAfter
	stepBetween // moved, and not changed yet
	stepUnclear
)

// Probe implements [agent.Checker]. A patch that was cut short is recorded as
// what it is: the model is told which files were changed and which were not.
func (p patcher) Probe(ctx context.Context, tc agent.ToolContext, _ agent.Call, raw json.RawMessage) (agent.Probe, agent.Result, error) {
	var marks []stepMark
	if err := json.Unmarshal(raw, &marks); err != nil {
		return agent.ProbeUnknown, agent.Result{}, fmt.Errorf("reading the mark: %w", err)
	}
	count := map[int]int{}
	var changed, unchanged []string
	var states []agent.FileState
	for _, m := range marks {
		at := p.f.stepState(ctx, m)
		count[at]++
		name := shown(tc, m.Path)
		switch at {
		case stepBefore:
			unchanged = append(unchanged, name)
			continue
		case stepBetween:
			name += " (moved to " + shown(tc, m.To) + ", its lines unchanged)"
		}
		changed = append(changed, name)
		states = append(states, m.states(at == stepAfter)...)
	}
	switch {
	case count[stepUnclear] > 0:
		return agent.ProbeUnknown, agent.Result{}, nil
	case count[stepBefore] == len(marks):
		return agent.ProbeNotDone, agent.Result{}, nil
	}
	for _, s := range states {
		if p.f.Tracker.Forget(s.Path); s.SHA256 != "" {
			p.f.Tracker.Saw(s.Path, workspace.State{SHA256: s.SHA256})
		}
	}
	r := agent.OK("The patch was applied before the program was interrupted: " + strings.Join(changed, ", ") + ".")
	if count[stepAfter] != len(marks) {
		r = agent.Failure(agent.ErrAborted,
			kit.Cut(fmt.Sprintf("the program was interrupted while it applied the patch. Changed: %s. Not changed: %s", strings.Join(changed, ", "), strings.Join(unchanged, ", ")), 900),
			"Read these files, then send a patch for the rest.")
	}
	r.Files = states
	return agent.ProbeDone, r, nil
}

// states are the files that a step has left; sums says whether its new content
// is there.
func (m stepMark) states(sums bool) []agent.FileState {
	at, sum := m.Path, m.Before
	if sums {
		sum = m.After
	}
	var states []agent.FileState
	if m.To != "" {
		states = append(states, agent.FileState{Path: m.Path, Gone: true})
		at = m.To
	}
	if m.Kind == patchDelete {
		return []agent.FileState{{Path: m.Path, Gone: true}}
	}
	return append(states, agent.FileState{Path: at, SHA256: sum, Wrote: true})
}

// sumAt returns the SHA-256 of the file at a path; "" when there is none.
func (f *files) sumAt(ctx context.Context, path string) (string, error) {
	data, _, err := f.load(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	return workspace.Sum(data), nil
}

// stepState tells how far a step was taken.
func (f *files) stepState(ctx context.Context, m stepMark) int {
	if m.Kind == patchDelete {
		if gone, err := f.Workspace.Removed(m.Path, agent.CallEnvOf(ctx).Key); err == nil && gone {
			return stepAfter
		}
		m.After = "gone"
	}
	here, err := f.sumAt(ctx, m.Path)
	if err != nil {
		return stepUnclear
	}
	if m.To == "" {
		switch here {
		case m.Before: // "" for a file that is added
			return stepBefore
		case m.After:
			return stepAfter
		}
		return stepUnclear
	}
	there, err := f.sumAt(ctx, m.To)
	switch {
	case err != nil:
	case here == m.Before && there == "":
		return stepBefore
	case here == "" && there == m.After:
		return stepAfter
	case here == "" && there == m.Before:
		return stepBetween
	}
	return stepUnclear
}
