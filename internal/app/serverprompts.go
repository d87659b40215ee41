package app

import (
	"context"
	"errors"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/extend/commands"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/connections"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/guard"
)

// served makes prompts of inputs that name a prompt of a server. It is safe for
// concurrent use.
type served struct {
	app     *App
	session string
	grd     *guard.Guard

	mu       sync.Mutex
	pictures map[string]agent.ContextAdded // by input; guarded by mu
}

// may reports whether an input may name a prompt of a server of the session.
func (s *served) may(text string) bool {
	return connections.IsPrompt(text) && s.app.servers.Of(s.session) != nil
}

// prompt makes a prompt of an input that names one of a server; not ok = it names
// none.
func (s *served) prompt(ctx context.Context, q agent.InputQueued) (text string, drop *agent.InputDropped, ok bool) {
	c := s.app.servers.Of(s.session)
	if c == nil || !connections.IsPrompt(q.Text) {
		return "", nil, false
	}
	c.Ready(ctx, q.Text)
	name, line, _ := commands.Split(q.Text)
	p, found := c.Prompt(name)
	as := commands.Command{Name: p.Command}
	if !found {
		as.Name = name
		return "", commands.Without(as, errors.New("no server of this session has a prompt of this name; /mcp says how it stands with them")), true
	}
	args, err := connections.Arguments(p, line)
	if err == nil {
		err = s.app.hooks.Of(s.session).Expanding(ctx, "mcp_prompt", p.Command, line, "mcp", q.Text)
	}
	var said string
	if err == nil {
		said, err = s.ask(ctx, c, p, args, q.Input)
	}
	if err != nil {
		return "", commands.Without(as, err), true
	}
	return commands.Joined(q.Text, []commands.Command{as}, []string{said}), nil, true
}

// ask has a server fill in a prompt, and returns what the guard leaves of it. What it
// shows besides texts is kept for the request.
func (s *served) ask(ctx context.Context, c *connections.Servers, p mcp.Prompt, args map[string]string, input string) (string, error) {
	r, err := c.Fill(ctx, p, args)
	if err != nil {
		return "", err
	}
	r, err = s.grd.Check(ctx, agent.Spec{Name: p.Command, Group: "mcp", Budget: 2 * mention.MaxTotal}, agent.Call{ID: input, Tool: p.Command}, r)
	if err != nil {
		return "", err
	}
	if len(r.Blocks) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pictures == nil {
			s.pictures = map[string]agent.ContextAdded{}
		}
		s.pictures[input] = agent.ContextAdded{Source: "mention", Key: input + " shown", Title: p.Command, Text: "What " + p.Command + " shows:\n", Blocks: r.Blocks}
	}
	return strings.TrimSpace(r.Unfenced()), nil
}

// extra returns the pictures of prompts that are read with the input that no request has had
// yet.
func (s *served) extra(_ context.Context, at plug.Moment) (all []agent.ContextAdded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[string]agent.ContextAdded{}
	for _, in := range at.Fresh {
		if c, ok := s.pictures[in.Input]; ok {
			kept[in.Input] = c
			all = append(all, c)
		}
	}
	if len(at.Fresh) > 0 {
		s.pictures = kept
	}
	return all
}
