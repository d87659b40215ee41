package cli

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
)

// In fewer than narrowList columns, a whole ID leaves no room for a title; its first
// shortID bytes name a session as well.
const (
	narrowList = 60
	shortID    = 18
)

// Sessions lists sessions, newest first, and says how many more there are.
func (c *CLI) Sessions(ctx context.Context, q agent.ListSessions, asJSON bool) error {
	page, err := client.Query[agent.SessionList](ctx, c.Client, q)
	if err != nil {
		return err
	}
	list := page.Sessions
	return c.put(page, asJSON, func(w *bufio.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, c.noSessions(ctx, q))
			return
		}
		rows := [][]string{c.heads(text.ColID, text.ColUpdated, text.ColStatus, text.ColTurns, text.ColCost, text.ColTitle)}
		for _, s := range list {
			money := "-"
			if s.Cost != nil {
				money = s.Cost.String()
			}
			const title = 60
			rows = append(rows, []string{
				text.OneLine(s.ID), c.ago(s.Updated), c.Text.Word(text.OneLine(s.Status)), strconv.Itoa(s.Turns), money,
				text.Cut(marked(s), title),
			})
		}
		const least = 10
		if c.columns() > 0 && c.columns() < narrowList {
			for _, r := range rows[1:] {
				r[0] = r[0][:min(len(r[0]), shortID)]
			}
		}
		rows = fit(rows, len(rows[0])-1, c.columns(), least, 4, 3, 2, 1)
		table(w, rows)
		if page.More > 0 {
			c.remark(w, c.Text.Say(text.SessionsMore, "n", page.More))
		}
	})
}

// noSessions says why a list is empty.
func (c *CLI) noSessions(ctx context.Context, q agent.ListSessions) string {
	all, err := client.Query[agent.SessionList](ctx, c.Client, agent.ListSessions{Archived: true, Limit: 1})
	switch {
	case err != nil || len(all.Sessions) == 0:
		return c.Text.Say(text.NoSessions)
	case q.Tag != "":
		return c.Text.Say(text.NoneTagged, "tag", text.OneLine(bounded(q.Tag)))
	case q.Workdir != "":
		return c.Text.Say(text.NoneHere)
	}
	return c.Text.Say(text.NoneShown)
}

// marked is the title of a session with how it is kept.
func marked(s agent.SessionInfo) string {
	title := text.OneLine(bounded(s.Title))
	if s.Pinned {
		title = "* " + title
	}
	for _, t := range s.Tags {
		title += " #" + text.OneLine(bounded(t))
	}
	return title
}

// ago says how long ago a time in RFC 3339 was.
func (c *CLI) ago(stamp string) string {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return text.OneLine(bounded(stamp))
	}
	d := c.Now().Sub(t)
	switch {
	case d >= 48*time.Hour:
		return t.Local().Format("2006-01-02 15:04")
	case d < time.Second:
		return c.Text.Say(text.JustNow)
	}
	return c.Text.Say(text.Ago, "time", took(max(d, 0)))
}

// Verify checks that the log of a session is what was written. One that is not
// is an [*Exited].
func (c *CLI) Verify(ctx context.Context, name, workdir string, asJSON bool) error {
	info, err := c.Find(ctx, name, workdir)
	if err != nil {
		return err
	}
	r, err := wait[agent.SealReport](ctx, c, text.BusyVerify, agent.VerifySeals{Session: info.ID})
	if err != nil {
		return err
	}
	err = c.put(r, asJSON, func(w *bufio.Writer) {
		if !r.OK {
			fmt.Fprintln(w, c.Text.Say(text.SealsBad, "session", r.Session, "at", r.At, "problem", c.Text.Phrase(text.OneLine(r.Problem))))
			where := text.SealsFrom
			if r.Exact {
				where = text.SealsByte
			}
			if r.File != "" {
				fmt.Fprintln(w, c.Text.Say(where, "file", text.OneLine(r.File), "offset", r.Offset))
			}
			return
		}
		if r.Torn > 0 {
			fmt.Fprintln(w, c.Text.Say(text.SealsTorn, "n", r.Torn))
		}
		fmt.Fprintln(w, c.Text.Say(text.SealsOK, "session", r.Session, "events", r.Events, "seals", r.Seals))
		if r.Open > 0 {
			fmt.Fprintln(w, c.Text.Say(text.SealsOpen, "n", r.Open))
		}
	})
	if err == nil && !r.OK {
		return &Exited{Code: ExitSession, Err: fmt.Errorf("verifying session %s: %s", r.Session, r.Problem)}
	}
	return err
}
