package system

import (
	"cmp"
	"context"
	"time"

	"dure/agent/query"
	"dure/internal/knowledge/prompt"
	"dure/internal/safety/workspace"
)

// preview reports the system prompt that a session would have. It starts nothing, and needs no
// model.
func (x *Extension) preview(_ context.Context, q query.PromptPreview) (r query.PromptReport, err error) {
	s := Session{Dir: cmp.Or(q.Workdir, x.Workdir)}
	if s.Work, err = x.Work(q.Profile); err != nil {
		return r, err
	}
	if s.Work.Model = q.Model; q.Model == "" {
		s.Work.Model = x.UsualModel(s.Work.Name)
	}
	if s.Work.Model != "" {
		info, err := x.Model(s.Work.Model)
		if err != nil {
			return r, err
		}
		s.Work.Model = info.ID
	}
	if s.Workspace, err = workspace.New(workspace.Config{Root: s.Dir}); err != nil {
		return r, workspace.Problem(s.Dir, err)
	}
	tools, names, err := x.Tools(s.Dir, s.Work.Profile)
	if err != nil {
		return r, err
	}
	s.Tools = tools
	compose, err := x.composer(s)
	if err != nil {
		return r, err
	}
	opened := q.Opened
	if opened.IsZero() {
		opened = time.Now()
	}
	p, err := compose(opened)
	if err != nil && p.Sections == nil { // what does not fit is shown all the same
		return r, err
	}
	r = query.PromptReport{
		Profile: s.Work.Name, Kind: s.Work.Kind, Model: s.Work.Model, Path: x.path(s.Work.Name),
		Budget: p.Budget, Tokens: p.Tokens, Hash: prompt.Hash(p.System()), Sections: p.Sections,
	}
	if !q.Tools {
		return r, nil
	}
	for _, t := range tools {
		r.Tools = append(r.Tools, query.PromptTool{
			Name: cmp.Or(names[t.Name], t.Name), Description: t.Description, Tokens: x.Fixed(s.Work.Model, t),
		})
	}
	return r, nil
}
