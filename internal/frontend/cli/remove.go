package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// RemoveOptions say how sessions are deleted.
type RemoveOptions struct {
	Yes   bool // do not ask
	Ask   bool // somebody can be asked
	Force bool
	JSON  bool
}

// Remove deletes sessions after a yes. One that cannot be deleted keeps no other one
// from going; the error is about the first of them.
func (c *CLI) Remove(ctx context.Context, list []agent.SessionInfo, o RemoveOptions) error {
	gone := []query.RemovedSession{}
	if len(list) > 0 && !o.Yes {
		yes, err := c.agreed(list, o)
		if err != nil {
			return err
		}
		if !yes {
			return c.say(text.DeletedNone)
		}
	}
	var failed error
	for _, s := range list {
		r, err := client.Query[query.RemovedSession](ctx, c.Client, query.RemoveSession{Session: s.ID, Force: o.Force})
		if p := agent.ProblemOf(err); p != nil && p.Code == agent.ProblemMissing && len(list) > 1 {
			continue // it went with its parent
		}
		if err != nil {
			if failed == nil {
				failed = err
			} else {
				Report(c.Err, c.Text, err, false)
			}
			continue
		}
		gone = append(gone, r)
	}
	return errors.Join(failed, c.put(gone, o.JSON, func(w *bufio.Writer) { c.removed(w, gone) }))
}

// agreed shows what would go and asks.
func (c *CLI) agreed(list []agent.SessionInfo, o RemoveOptions) (bool, error) {
	if !o.Ask || o.JSON {
		return false, &agent.Problem{Code: agent.ProblemUsage, Message: c.Text.Say(text.NeedsYes), Fix: c.Text.Say(text.FixUsage)}
	}
	const most = 20
	var rows [][]string
	for _, s := range list[:min(len(list), most)] {
		rows = append(rows, []string{"  " + text.OneLine(s.ID), c.ago(s.Updated), text.Cut(marked(s), 60)})
	}
	const least = 12
	rows = narrow(rows, 2, c.columns(), least, 1)
	squeeze(rows, 2, c.columns(), least)
	w := bufio.NewWriter(c.Err)
	table(w, rows)
	if n := len(list) - most; n > 0 {
		fmt.Fprintln(w, "  "+c.Text.Say(text.MoreLines, "n", n))
	}
	fmt.Fprintln(w, c.Text.Say(text.DeleteWhat))
	fmt.Fprint(w, c.Text.Say(text.DeleteAsk, "n", len(list)))
	if err := w.Flush(); err != nil {
		return false, err
	}
	answer := strings.ToLower(readLine(c.In))
	return answer == "y" || answer == "yes" || answer == "예" || answer == "네", nil
}

func (c *CLI) removed(w *bufio.Writer, gone []query.RemovedSession) {
	if len(gone) == 0 {
		fmt.Fprintln(w, c.Text.Say(text.DeletedNone))
	}
	for _, r := range gone {
		fmt.Fprintln(w, c.Text.Say(text.Deleted, "session", text.OneLine(r.Session), "bytes", r.Bytes))
		if n := len(r.Children); n > 0 {
			fmt.Fprintln(w, c.Text.Say(text.DeletedWith, "n", n))
		}
	}
}

// OldOnes says how many sessions are old, or that they went.
func (c *CLI) OldOnes(old, deleted, days int) string {
	switch {
	case deleted > 0:
		return c.Text.Say(text.OldDeleted, "n", deleted, "days", days)
	case old > 0:
		return c.Text.Say(text.OldSessions, "n", old, "days", days)
	}
	return ""
}
