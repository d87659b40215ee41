package cli

import (
	"context"
	"strings"

	"dure/agent"
	"dure/client"
	"dure/internal/base/near"
	"dure/internal/frontend/text"
)

// Find returns the session that a person means by name; "" is the newest one
// of workdir. A name that fits none is answered with those that it nearly fits.
func (c *CLI) Find(ctx context.Context, name, workdir string) (agent.SessionInfo, error) {
	info, err := client.Query[agent.SessionInfo](ctx, c.Client, agent.FindSession{Name: name, Workdir: workdir})
	p := agent.ProblemOf(err)
	if p == nil || p.Code != agent.ProblemMissing || name == "" {
		return info, err
	}
	list, lost := client.Query[agent.SessionList](ctx, c.Client, agent.ListSessions{Archived: true})
	if like := nearSessions(name, list.Sessions); lost == nil && len(like) > 0 {
		message, _ := c.Text.Problem(p)
		err = &agent.Problem{
			Code: p.Code, Message: message, Err: p,
			Fix: c.Text.Say(text.NearSessions, "list", strings.Join(like, ", ")),
		}
	}
	return info, err
}

// nearSessions returns how at most three sessions are named that a word may mean: their
// title holds it, or it is nearly their title or their ID.
func nearSessions(word string, list []agent.SessionInfo) (like []string) {
	const (
		most  = 3
		least = 3  // letters that say something
		shown = 40 // columns of a title
	)
	low := strings.ToLower(word)
	if len([]rune(low)) < least {
		return nil
	}
	for _, s := range list {
		title := strings.ToLower(s.Title)
		if len(like) == most {
			break
		}
		if title != "" && (strings.Contains(title, low) || near.Nearest(low, []string{title}) != "") || near.Nearest(word, []string{s.ID}) != "" {
			name := text.OneLine(s.ID)
			if s.Title != "" {
				name += " (" + text.Cut(text.OneLine(bounded(s.Title)), shown) + ")"
			}
			like = append(like, name)
		}
	}
	return like
}
