package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// Edit changes how a session is kept: its title, its tags, whether it is pinned or put
// away. Nil fields stay. takeover ends a process that has the session and hangs.
func (c *CLI) Edit(ctx context.Context, name, workdir string, change agent.Change, takeover, asJSON bool) error {
	info, err := c.edited(ctx, name, workdir, takeover, change)
	if err != nil {
		return err
	}
	what := marked(info)
	if info.Archived {
		what += " · " + c.Text.Say(text.EditedAway)
	}
	return c.put(info, asJSON, func(w *bufio.Writer) {
		fmt.Fprintln(w, c.Text.Say(text.Edited, "session", info.ID, "title", strings.TrimSpace(what)))
	})
}

// edited sends a command to a session that is opened for it, unless it runs in this
// process, and returns its row afterwards.
func (c *CLI) edited(ctx context.Context, name, workdir string, takeover bool, commands ...agent.Command) (agent.SessionInfo, error) {
	info, err := c.Find(ctx, name, workdir)
	if err != nil {
		return info, err
	}
	s, err := c.Client.Open(ctx, agent.Open{Session: info.ID, Edit: true, Takeover: takeover})
	if err != nil {
		return info, err
	}
	for _, cmd := range commands {
		if err = s.Send(ctx, cmd); err != nil {
			break
		}
	}
	if closed := s.Close(ctx); err == nil {
		err = closed
	}
	if err != nil {
		return info, err
	}
	return c.Find(ctx, info.ID, "")
}

// RewindOptions say where to go back to, and what goes back.
type RewindOptions struct {
	Point string // number of an event, or ID of a message; "" = as To and Turns say
	To    int64  // event; 0 = as Turns says
	Turns int    // requests of the user to go back behind

	Conversation, Files bool
	Only, Force         []string

	Dry      bool // only show what would become of files
	Takeover bool // end a process that has the session and hangs
}

// Rewind takes a session back.
func (c *CLI) Rewind(ctx context.Context, name, workdir string, o RewindOptions, asJSON bool) error {
	info, err := c.Find(ctx, name, workdir)
	if err != nil {
		return err
	}
	if o.Point != "" {
		if o.To, err = c.Point(ctx, info, o.Point); err != nil {
			return err
		}
	}
	if o.To == 0 {
		if o.To, err = c.before(ctx, info, o.Turns); err != nil {
			return err
		}
	}
	if o.To < 1 || o.To >= info.Head {
		return noEvent(info, o.To)
	}
	if err := c.touches(ctx, info, o); err != nil {
		return err
	}
	if o.Dry {
		return c.dryRewind(ctx, info, o, asJSON)
	}
	if _, err := c.edited(ctx, info.ID, "", o.Takeover, agent.Rewind{To: o.To, Conversation: o.Conversation, Files: o.Files, Only: o.Only, Force: o.Force}); err != nil {
		return err
	}
	done := struct {
		Session      string              `json:"session"`
		To           int64               `json:"to"`
		Conversation bool                `json:"conversation"`
		Files        *agent.FilesRewound `json:"files,omitempty"`
	}{info.ID, o.To, o.Conversation, nil}
	for e, err := range c.Client.Attach(info.ID).Events(ctx, info.Head) {
		if err != nil {
			return err
		}
		if b, ok := e.Body.(agent.FilesRewound); ok {
			done.Files = &b
		}
	}
	return c.put(done, asJSON, func(w *bufio.Writer) {
		if o.Conversation {
			fmt.Fprintln(w, c.Text.Say(text.Rewound, "seq", o.To))
		}
		if done.Files != nil {
			writeLines(w, rewoundLines(c.Text, *done.Files))
		}
	})
}

// touches refuses paths in which a rewind finds nothing to do: they are misspelt, and
// the rest of it would be done all the same.
func (c *CLI) touches(ctx context.Context, info agent.SessionInfo, o RewindOptions) error {
	for _, path := range slices.Concat(o.Only, o.Force) {
		plan, err := client.Query[query.RewindPlan](ctx, c.Client, query.PlanRewind{Session: info.ID, To: o.To, Only: []string{path}})
		if err != nil {
			return err
		}
		if len(plan.Files) == 0 {
			return c.noChange(info, c.Text.Say(text.DiffNoFile, "path", text.OneLine(bounded(path))))
		}
	}
	return nil
}

// before returns the event in front of the request of the user that is so many from
// the end.
func (c *CLI) before(ctx context.Context, info agent.SessionInfo, turns int) (int64, error) {
	asked, err := c.requests(ctx, info)
	if err != nil {
		return 0, err
	}
	if turns < 1 || turns > len(asked) {
		return 0, c.tooFew(info, len(asked), turns)
	}
	return asked[len(asked)-turns].seq - 1, nil
}

// tooFew says that a session has only n requests, and no wanted-th one from the end.
func (c *CLI) tooFew(info agent.SessionInfo, n, wanted int) error {
	return &agent.Problem{
		Code:    agent.ProblemUsage,
		Message: c.Text.Say(text.TooFewTurns, "session", info.ID, "n", n, "turns", wanted), Fix: c.Text.Say(text.FixTooFewTurns, "session", info.ID),
	}
}

func noEvent(info agent.SessionInfo, seq int64) *agent.Problem {
	return &agent.Problem{
		Code: agent.ProblemEvent, Message: fmt.Sprintf("%s has no event %d to go back to; its newest is %d", info.ID, seq, info.Head),
		Fix:  "see its events with: dure show " + info.ID,
		Args: map[string]string{"session": info.ID, "seq": fmt.Sprint(seq), "head": fmt.Sprint(info.Head)},
	}
}

// say writes a sentence.
func (c *CLI) say(k text.Key, args ...any) error {
	return c.text(func(w *bufio.Writer) { fmt.Fprintln(w, c.Text.Say(k, args...)) })
}
