package cli

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/text"
)

// table writes rows in columns; the last column is not padded.
func table(w *bufio.Writer, rows [][]string) {
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], text.Width(cell))
		}
	}
	for _, r := range rows {
		line := ""
		for i, cell := range r {
			line += cell + strings.Repeat(" ", widths[i]-text.Width(cell)+2)
		}
		w.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// Sessions lists sessions, newest first; of workdir only, if it is not "".
func (c *CLI) Sessions(ctx context.Context, workdir string, asJSON bool) error {
	list, err := client.Query[[]agent.SessionInfo](ctx, c.Client, agent.ListSessions{Workdir: workdir})
	if err != nil {
		return err
	}
	if asJSON {
		if list == nil {
			list = []agent.SessionInfo{}
		}
		return c.encode(list)
	}
	return c.buffered(func(w *bufio.Writer) error {
		if len(list) == 0 {
			fmt.Fprintln(w, c.Text.Say(text.NoSessions))
			return nil
		}
		rows := [][]string{{
			c.Text.Say(text.ColID), c.Text.Say(text.ColUpdated), c.Text.Say(text.ColStatus),
			c.Text.Say(text.ColTurns), c.Text.Say(text.ColCost), c.Text.Say(text.ColTitle),
		}}
		for _, s := range list {
			money := "-"
			if s.Cost != nil {
				money = s.Cost.String()
			}
			const title = 60
			rows = append(rows, []string{
				text.OneLine(s.ID), c.ago(s.Updated), text.OneLine(s.Status), strconv.Itoa(s.Turns), money,
				text.Cut(text.OneLine(bounded(s.Title)), title),
			})
		}
		table(w, rows)
		return nil
	})
}

// ago says how long ago a time in RFC 3339 was.
func (c *CLI) ago(stamp string) string {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return text.OneLine(bounded(stamp))
	}
	d := c.Now().Sub(t)
	if d >= 48*time.Hour {
		return t.Local().Format("2006-01-02 15:04")
	}
	return c.Text.Say(text.Ago, "time", took(max(d, 0)))
}

// Models lists the models that can be named.
func (c *CLI) Models(ctx context.Context, asJSON bool) error {
	list, err := client.Query[[]agent.ModelInfo](ctx, c.Client, agent.ListModels{})
	if err != nil {
		return err
	}
	if asJSON {
		return c.encode(list)
	}
	return c.buffered(func(w *bufio.Writer) error {
		rows := [][]string{{
			c.Text.Say(text.ColModel), c.Text.Say(text.ColProvider), c.Text.Say(text.ColWindow),
			c.Text.Say(text.ColOut), c.Text.Say(text.ColPrice),
		}}
		for _, m := range list {
			name := m.ID
			if len(m.Aliases) > 0 {
				name += " (" + strings.Join(m.Aliases, ", ") + ")"
			}
			rows = append(rows, []string{
				text.OneLine(name), text.OneLine(m.Provider), tokens(m.Window), tokens(m.MaxOut), c.price(m.Price),
			})
		}
		table(w, rows)
		return nil
	})
}

func (c *CLI) price(p *agent.Price) string {
	if p == nil {
		return c.Text.Say(text.Unknown)
	}
	one := func(rate *float64) string {
		if rate == nil {
			return c.Text.Say(text.Unknown)
		}
		return strconv.FormatFloat(*rate, 'f', -1, 64)
	}
	return one(p.Input) + "/" + one(p.Output)
}

// Doctor looks over the installation. A fault is an [*Exited].
func (c *CLI) Doctor(ctx context.Context, asJSON bool) error {
	list, err := client.Query[[]agent.Finding](ctx, c.Client, agent.Diagnose{})
	if err != nil {
		return err
	}
	return c.Findings(list, asJSON)
}

// Findings writes a diagnosis. A fault in it is an [*Exited].
func (c *CLI) Findings(list []agent.Finding, asJSON bool) error {
	warn, fail := 0, 0
	for _, f := range list {
		switch f.State {
		case "warn":
			warn++
		case "fail":
			fail++
		}
	}
	err := c.writeFindings(list, asJSON, warn, fail)
	if err == nil && fail > 0 {
		return &Exited{Code: ExitFailed, Err: fmt.Errorf("%d findings are faults", fail)}
	}
	return err
}

func (c *CLI) writeFindings(list []agent.Finding, asJSON bool, warn, fail int) error {
	if asJSON {
		return c.encode(list)
	}
	return c.buffered(func(w *bufio.Writer) error {
		states := map[string]text.Key{"ok": text.DoctorOK, "warn": text.DoctorWarn, "fail": text.DoctorFail}
		rows := make([][]string, 0, len(list))
		for _, f := range list {
			state := f.State
			if k, ok := states[f.State]; ok {
				state = c.Text.Say(k)
			}
			rows = append(rows, []string{state, text.OneLine(f.Name), text.OneLine(bounded(f.Detail))})
			if f.Fix != "" {
				rows = append(rows, []string{"", "", c.Text.Say(text.DoctorFix, "fix", text.OneLine(bounded(f.Fix)))})
			}
		}
		table(w, rows)
		if warn+fail == 0 {
			fmt.Fprintln(w, c.Text.Say(text.DoctorAll))
		} else {
			fmt.Fprintln(w, c.Text.Say(text.DoctorSome, "fail", fail, "warn", warn))
		}
		return nil
	})
}

// Verify checks that the log of a session is what was written. One that is not
// is an [*Exited].
func (c *CLI) Verify(ctx context.Context, name, workdir string, asJSON bool) error {
	info, err := c.find(ctx, name, workdir)
	if err != nil {
		return err
	}
	r, err := client.Query[agent.SealReport](ctx, c.Client, agent.VerifySeals{Session: info.ID})
	if err != nil {
		return err
	}
	if asJSON {
		err = c.encode(r)
	} else {
		err = c.buffered(func(w *bufio.Writer) error {
			if !r.OK {
				fmt.Fprintln(w, c.Text.Say(text.SealsBad, "session", r.Session, "at", r.At, "problem", text.OneLine(r.Problem)))
				return nil
			}
			fmt.Fprintln(w, c.Text.Say(text.SealsOK, "session", r.Session, "events", r.Events, "seals", r.Seals))
			if r.Open > 0 {
				fmt.Fprintln(w, c.Text.Say(text.SealsOpen, "n", r.Open))
			}
			return nil
		})
	}
	if err == nil && !r.OK {
		return &Exited{Code: ExitSession, Err: fmt.Errorf("verifying session %s: %s", r.Session, r.Problem)}
	}
	return err
}

// Replay builds the requests of a session again and compares. A difference is
// an [*Exited].
func (c *CLI) Replay(ctx context.Context, name, workdir string, asJSON bool) error {
	info, err := c.find(ctx, name, workdir)
	if err != nil {
		return err
	}
	r, err := client.Query[agent.ReplayReport](ctx, c.Client, agent.VerifyReplay{Session: info.ID})
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		err = c.encode(r)
	case r.OK:
		_, err = fmt.Fprintln(c.Out, c.Text.Say(text.ReplayOK, "session", r.Session, "n", r.Requests))
	default:
		_, err = fmt.Fprintln(c.Out, c.Text.Say(text.ReplayBad, "session", r.Session, "at", r.At, "problem", text.OneLine(r.Problem)))
	}
	if err == nil && !r.OK {
		return &Exited{Code: ExitFailed, Err: fmt.Errorf("replaying session %s: %s", r.Session, r.Problem)}
	}
	return err
}
