package app

import (
	"context"
	"io"

	"dure/agent"
	"dure/internal/knowledge/compact"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/guard"
	"dure/internal/tools/catalog"
)

// serve gives a session what its capabilities need of others.
func (s *assembly) serve() {
	a, b, dialect := s.app, &s.b, catalog.Dialect(s.app.cfg.Dialect)
	s.grd = guard.New(guard.Config{
		Patterns: a.patterns,
		PutBlob:  func(ctx context.Context, r io.Reader) (string, int64, error) { return b.PutBlob(ctx, r, 0) },
		Read:     dialect.Name(readTool), Grep: dialect.Name(grepTool),
	})
	work := s.work.Profile
	b.Work, b.Agent, b.Clean = &work, s.agents.As.Name, cleaner(s.grd)
	if b.Child != nil {
		b.Agent = b.Child.Agent
	}
	if model, ask := b.Model, b.Reach.Ask; !a.cfg.NoAI {
		b.AskSmall = func(ctx context.Context, q agent.Question) (agent.Answer, error) {
			q.Model = a.models.SmallFor(model())
			return ask(ctx, q)
		}
	}
}

// cleaner returns what masks secrets in a text, and takes out what does not show.
func cleaner(grd *guard.Guard) func(context.Context, string) (string, error) {
	return func(ctx context.Context, text string) (string, error) {
		if text == "" {
			return "", nil
		}
		r, err := grd.Check(ctx, agent.Spec{Name: readTool, Group: "files", Budget: 2 * mention.MaxTotal}, agent.Call{ID: "text", Tool: readTool}, agent.OK(text))
		return r.Text, err
	}
}

// compactions says how conversations are shortened.
func (a *App) compactions() compact.Sessions {
	c := a.cfg.Compact
	return compact.Sessions{
		Options: compact.Options{Strategy: c.Strategy, Threshold: c.Threshold, Recent: c.Recent},
		Off:     !c.Auto, Noted: !a.cfg.NoTaskState, Recall: catalog.Dialect(a.cfg.Dialect).Name(recallTool),
		Reads: func(model string) int {
			info, err := a.models.Info(a.models.SmallFor(model))
			if err != nil {
				return 0
			}
			return info.Window
		},
	}
}
