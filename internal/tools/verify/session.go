package verify

import (
	"context"
	"fmt"
	"sync"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// Options say what sessions verify. All are required, but for Roots.
type Options struct {
	Roots     []string      // folders that belong to every workspace
	Checklist string        // name of the file with the user's own checks
	Checks    func() string // these, for the model; "" = there are none
}

// Extension has the files that calls have changed looked at once more, and gives the user's
// own checks to the model after the first change of a turn.
type Extension struct{ opts Options }

// New returns the extension.
func New(o Options) *Extension { return &Extension{o} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "verification" }

// Attach verifies what a session does, if its kind of work is to be verified.
func (x *Extension) Attach(_ context.Context, s *plug.Session) (plug.Points, error) {
	if s.Work == nil || !s.Work.Verify {
		return plug.Points{}, nil
	}
	ws, err := workspace.New(workspace.Config{Root: s.Workdir, Extra: x.opts.Roots})
	if err != nil {
		return plug.Points{}, workspace.Gone(s.Stored.ID, s.Workdir, err)
	}
	c := &checks{opts: x.opts}
	cfg := Config{
		Read: ws.Head,
		Real: func(path string) string {
			if _, resolved, err := ws.Resolve(path); err == nil {
				return resolved
			}
			return path
		},
		Shown:   func(path string) string { return kit.Name(kit.Relative(path, s.Workdir, ws.Root())) },
		Changed: c.change,
	}
	return plug.Points{
		Wrap:  []plug.Wrap{func(_ agent.Tool, next plug.Run) plug.Run { return plug.Run(cfg.Wrap(Run(next))) }},
		Extra: c.extra,
	}, nil
}

// checks are the user's own checks in one session. They are safe for concurrent use.
type checks struct {
	opts Options

	mu      sync.Mutex
	turn    int
	changed bool
	text    string // of this turn; "" = none
}

func (c *checks) change(agent.ToolContext, []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = true
}

// extra returns the checks in turns that have changed something, once in each.
func (c *checks) extra(_ context.Context, at plug.Moment) []agent.ContextAdded {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.Turns != c.turn {
		c.turn, c.changed, c.text = at.Turns, false, ""
	}
	if !c.changed {
		return nil
	}
	if c.text == "" {
		c.text = c.opts.Checks()
	}
	return []agent.ContextAdded{{Source: "checklist", Key: fmt.Sprint(c.turn), From: []string{c.opts.Checklist}, Text: c.text}}
}
