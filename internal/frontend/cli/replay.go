package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
)

// Replay executes a session again from its log and compares. A difference is an
// [*Exited].
func (c *CLI) Replay(ctx context.Context, name, workdir string, asJSON bool) error {
	info, err := c.Find(ctx, name, workdir)
	if err != nil {
		return err
	}
	r, err := wait[agent.ReplayReport](ctx, c, text.BusyReplay, query.VerifyReplay{Session: info.ID})
	if err != nil {
		return err
	}
	err = c.put(r, asJSON, func(w *bufio.Writer) { c.replayed(w, r) })
	if err == nil && !r.OK {
		return &Exited{Code: ExitFailed, Err: fmt.Errorf("replaying session %s: %s", r.Session, r.Problem)}
	}
	return err
}

func (c *CLI) replayed(w *bufio.Writer, r agent.ReplayReport) {
	if r.OK {
		fmt.Fprintln(w, c.Text.Say(text.ReplayOK, "session", r.Session, "n", r.Requests))
		if r.Decisions > 0 || r.Folds > 0 {
			fmt.Fprintln(w, c.Text.Say(text.ReplayMore, "decisions", r.Decisions, "again", r.Redecided, "folds", r.Folds))
		}
		return
	}
	fmt.Fprintln(w, c.Text.Say(text.ReplayBad, "session", r.Session, "at", r.At, "problem", c.Text.Phrase(text.OneLine(r.Problem))))
	if r.Expected != "" || r.Came != "" {
		fmt.Fprintln(w, c.Text.Say(text.ReplayWant, "value", text.OneLine(r.Expected)))
		fmt.Fprintln(w, c.Text.Say(text.ReplayCame, "value", text.OneLine(r.Came)))
	}
	for _, l := range r.Diff {
		fmt.Fprintln(w, "  "+text.OneLine(l))
	}
}

// PlayOptions say what of a session is played, and how.
type PlayOptions struct {
	From, To int64         // events; 0 = the first, the newest
	Speed    float64       // 2 = twice as fast as it was; 0 = 1
	NoWait   bool          // without the time between events
	MaxPause time.Duration // the longest pause; 0 = as long as it was
	Terminal Terminal      // where keys are taken, if it has escapes
	JSON     bool          // the timeline instead
}

// Play shows the events of a session again: on a terminal with the time that was
// between them and with keys, elsewhere at once. Nothing runs and nobody is asked.
func (c *CLI) Play(ctx context.Context, name, workdir string, o PlayOptions) error {
	info, err := c.Find(ctx, name, workdir)
	if err != nil {
		return err
	}
	if o.To == 0 {
		o.To = info.Head
	}
	o.From = max(o.From, 1)
	if o.To > info.Head || o.From > o.To {
		return noEvent(info, max(o.From, o.To))
	}
	switch {
	case o.JSON:
		return c.timeline(ctx, info, o)
	case o.Terminal.Escapes:
		return c.playKeys(ctx, info, o)
	}
	return c.playPlain(ctx, info, o)
}

// stored yields the stored events of a session up to one of them.
func (c *CLI) stored(ctx context.Context, id string, to int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for e, err := range c.Client.Attach(id).Events(ctx, 0) {
			if err == nil && e.Live() {
				continue
			}
			if !yield(e, err) || err != nil || e.Seq >= to {
				return
			}
		}
	}
}

// playPlain draws the events one after the other, as they stand in the log.
func (c *CLI) playPlain(ctx context.Context, info agent.SessionInfo, o PlayOptions) error {
	s := newScreen(o.Terminal)
	v := newPainter(c.Text, s, info.Workdir)
	for e, err := range c.stored(ctx, info.ID, o.To) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if e.Seq < o.From {
			v.Apply(e)
			continue
		}
		c.again(v, e)
	}
	s.startLine()
	return s.w.Flush()
}

// again draws an event that happened some time ago: what a person was asked then is
// a part of it.
func (c *CLI) again(v *painter, e agent.Event) {
	v.event(e)
	switch e.Body.(type) {
	case agent.ApprovalAsked, agent.ApprovalResolved:
		if head, _ := c.describe(e.Body, v.Workdir); head != "" {
			v.note(yellow, head)
		}
	}
}

// A moment is an event of a timeline.
type moment struct {
	Seq     int64        `json:"seq"`
	Time    time.Time    `json:"time"`
	Kind    string       `json:"kind"`
	Summary string       `json:"summary,omitempty"`
	Turn    int          `json:"turn"` // how many had begun
	Cost    *agent.Money `json:"cost"` // until then; null = unknown
}

// timeline writes the events in short, one JSON object a line.
func (c *CLI) timeline(ctx context.Context, info agent.SessionInfo, o PlayOptions) error {
	return c.buffered(func(w *bufio.Writer) error {
		var sum agent.Money
		known, turn := true, ""
		turns := 0
		for e, err := range c.stored(ctx, info.ID, o.To) {
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return err
			}
			switch b := e.Body.(type) {
			case agent.TurnStarted:
				if b.Turn != turn {
					turn, turns = b.Turn, turns+1
				}
			case agent.ModelAnswered:
				if known = known && b.Cost != nil; known {
					sum += *b.Cost
				}
			}
			if e.Seq < o.From {
				continue
			}
			m := moment{Seq: e.Seq, Time: e.Time, Kind: e.Kind(), Summary: c.inShort(e.Body, info.Workdir), Turn: turns}
			if known {
				cost := sum
				m.Cost = &cost
			}
			data, err := json.Marshal(m)
			if err != nil {
				return err
			}
			w.Write(data)
			w.WriteByte('\n')
		}
		return nil
	})
}

// inShort returns an event in a line of at most 200 columns.
func (c *CLI) inShort(b agent.Body, workdir string) string {
	head, body := c.describe(b, workdir)
	return text.Cut(joined(head, text.OneLine(bounded(body))), 200)
}

// Stand shows how a session stood at an event.
func (c *CLI) Stand(ctx context.Context, name, workdir string, seq int64, asJSON bool) error {
	info, err := c.Find(ctx, name, workdir)
	if err != nil {
		return err
	}
	return tell(ctx, c, query.SessionAt{Session: info.ID, Seq: seq}, asJSON, func(w *bufio.Writer, r agent.SessionStand) { c.stand(w, r) })
}

func (c *CLI) stand(w *bufio.Writer, r agent.SessionStand) {
	t := c.Text
	fmt.Fprintln(w, t.Say(text.StandHead, "session", r.Session, "seq", r.Seq, "head", r.Head, "time", r.Time.Local().Format(time.DateTime)))
	fmt.Fprintln(w, joined(text.OneLine(r.Title), text.OneLine(r.Model), string(r.Mode), text.OneLine(r.Workdir)))
	fmt.Fprintln(w, t.Say(text.StandUse, "turns", r.Turns, "context", tokens(r.Context), "in", tokens(r.Usage.Input+r.Usage.CacheRead+r.Usage.CacheWrite), "out", tokens(r.Usage.Output), "cost", cost(t, r.Cost)))
	if r.Running {
		fmt.Fprintln(w, t.Say(text.StandRunning))
	}
	for _, a := range r.Waiting {
		fmt.Fprintln(w, t.Say(text.StandWaiting, "call", callLine(a.Proposal.Call, r.Workdir)))
	}
	section := func(k text.Key, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintln(w, "\n"+t.Say(k))
		for _, l := range lines {
			fmt.Fprintln(w, "  "+l)
		}
	}
	section(text.StandPlan, standPlan(t, r))
	section(text.StandTasks, standTasks(r))
	section(text.StandFiles, standFiles(t, r))
	fmt.Fprintln(w, "\n"+t.Say(text.StandTalk))
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			c.standBlock(w, m.Seq, m.Role, b, r.Workdir)
		}
	}
}

// standBlock prints a part of a message, with the number of the event it comes from.
func (c *CLI) standBlock(w *bufio.Writer, seq int64, role agent.Role, b agent.Block, workdir string) {
	line := ""
	switch {
	case b.Call != nil:
		line = callLine(*b.Call, workdir)
	case b.Result != nil:
		line = joined(c.Text.Word(string(b.Result.Status)), text.Cut(summary(c.Text, agent.CallFinished{Result: *b.Result}), 160))
	case b.Text != "" && b.Type == agent.TextBlock:
		line = strings.ReplaceAll(strings.TrimRight(text.Clean(b.Text), "\n"), "\n", "\n         ")
	default:
		line = text.OneLine(string(b.Type))
	}
	sign := map[agent.Role]string{agent.User: ">", agent.Assistant: "<"}[role]
	fmt.Fprintf(w, "%6d %s %s\n", seq, sign, line)
}

func standTasks(r agent.SessionStand) (lines []string) {
	var todos []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	}
	if json.Unmarshal(r.Todos, &todos) == nil {
		for _, d := range todos {
			box := map[string]string{"completed": "[x]", "in_progress": "[>]"}[d.Status]
			lines = append(lines, cmp.Or(box, "[ ]")+" "+text.OneLine(bounded(d.Content)))
		}
	}
	if r.Task.Task != "" {
		lines = append(lines, text.OneLine(bounded(r.Task.Task)))
	}
	for _, d := range r.Task.Decisions {
		lines = append(lines, text.OneLine(bounded(joined(d.Decision, d.Reason))))
	}
	return lines
}

// fileLines are the files that had been seen, at most 50 of them.
func standFiles(t text.Catalog, r agent.SessionStand) (lines []string) {
	const most = 50
	for i, f := range r.Files {
		if i == most {
			return append(lines, t.Say(text.MoreLines, "n", len(r.Files)-most))
		}
		sign := "  "
		if f.Wrote {
			sign = "* "
		}
		lines = append(lines, sign+text.OneLine(bounded(shortPath(f.Path, r.Workdir))))
	}
	return lines
}
