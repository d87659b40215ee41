package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// DiffOptions say what of a session's changes is meant, and what becomes of it.
type DiffOptions struct {
	To   string // event or message behind which they were made; "" = all
	Stat bool
	All  bool // what was accepted, too

	Accept, Reject       []string // FILE or FILE:1,3
	AcceptAll, RejectAll bool
	Merge, Marks, Force  bool
	Takeover             bool // end a process that has the session and hangs

	Color bool
}

func (o DiffOptions) accepts() bool { return o.AcceptAll || len(o.Accept) > 0 }
func (o DiffOptions) rejects() bool { return o.RejectAll || len(o.Reject) > 0 }

// Diff shows what a session changed in files, accepts it or takes it back. The first
// of args is a session if there is one of that name; all others are files.
func (c *CLI) Diff(ctx context.Context, args []string, workdir string, o DiffOptions, asJSON bool) error {
	if o.accepts() && o.rejects() || (o.accepts() || o.rejects()) && (o.To != "" || o.All) || o.AcceptAll && len(o.Accept) > 0 || o.RejectAll && len(o.Reject) > 0 {
		return &agent.Problem{Code: agent.ProblemUsage, Message: c.Text.Say(text.DiffManyWays), Fix: c.Text.Say(text.DiffPickFile)}
	}
	info, files, err := c.diffOf(ctx, args, workdir)
	if err != nil {
		return err
	}
	q := query.Diff{Session: info.ID, All: o.All, Paths: files}
	if o.To != "" {
		if q.From, err = c.Point(ctx, info, o.To); err != nil {
			return err
		}
	}
	report, err := client.Query[query.DiffReport](ctx, c.Client, q)
	if err != nil {
		return err
	}
	switch {
	case o.accepts():
		return c.acceptChanges(ctx, info, report, o, asJSON)
	case o.rejects():
		return c.rejectChanges(ctx, info, report, o, asJSON)
	case asJSON:
		return c.encode(report)
	}
	return c.buffered(func(w *bufio.Writer) error { return c.writeDiff(w, info, report, files, o) })
}

// diffOf tells the session from the files among the arguments of a diff.
func (c *CLI) diffOf(ctx context.Context, args []string, workdir string) (info agent.SessionInfo, files []string, err error) {
	if len(args) > 0 {
		info, err = c.Find(ctx, args[0], "")
		if err == nil {
			return info, args[1:], nil
		}
		if p := agent.ProblemOf(err); p == nil || p.Code != agent.ProblemMissing {
			return info, nil, err
		}
	}
	missing := err
	info, err = c.Find(ctx, "", workdir)
	if err != nil || len(args) == 0 {
		return info, nil, errors.Join(err)
	}
	report, err := client.Query[query.DiffReport](ctx, c.Client, query.Diff{Session: info.ID, All: true, Paths: args[:1]})
	if err == nil && len(report.Files) == 0 {
		err = missing // neither a session nor a file
	}
	return info, args, err
}

// Point returns the event that a person means by a number, by the ID of a message,
// or by that of an event.
func (c *CLI) Point(ctx context.Context, info agent.SessionInfo, s string) (int64, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n < 1 || n > info.Head {
			return 0, noEvent(info, n)
		}
		return n, nil
	}
	for e, err := range c.Client.Attach(info.ID).Events(ctx, 0) {
		if err != nil {
			return 0, err
		}
		if b, ok := e.Body.(agent.InputAdded); ok && b.Input == s || e.ID == s {
			return e.Seq, nil
		}
		if e.Seq >= info.Head {
			break
		}
	}
	p := noEvent(info, 0)
	p.Message = fmt.Sprintf("%s has no event or message %.80q", info.ID, s)
	p.Args["seq"] = text.OneLine(bounded(s))
	return 0, p
}

func (c *CLI) writeDiff(w *bufio.Writer, info agent.SessionInfo, r query.DiffReport, files []string, o DiffOptions) error {
	p := &patcher{w: w, t: c.Text, color: o.Color, clean: c.columns() > 0}
	if p.clean && len(files) == 0 {
		p.most = patchLines
		p.how = func(path string) string { return "dure diff " + info.ID + " " + quoted(path) }
	}
	for _, f := range r.Files {
		if o.Stat {
			for _, part := range statLine(c.Text, f) {
				w.WriteString(paint(o.Color, part))
			}
			w.WriteString("\n")
			continue
		}
		p.file(f)
	}
	mark := "# "
	if o.Stat || len(r.Files) == 0 {
		mark = ""
	}
	for _, path := range files { // misspelt, or as it was
		if len(r.Files) == 0 {
			p.line(yellow, c.Text.Say(text.DiffNoFile, "path", text.OneLine(bounded(path))))
		}
	}
	if len(r.Files) > 0 || len(files) == 0 {
		p.line(dim, mark+totalLine(c.Text, r))
	}
	if r.Gone {
		p.line(yellow, mark+c.Text.Say(text.DiffGone))
	}
	return nil
}

func paint(color bool, p part) string {
	if !color || p.style == plain {
		return p.text
	}
	return "\x1b[" + string(p.style) + "m" + p.text + "\x1b[0m"
}

// quoted returns a path as a shell takes it.
func quoted(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,+@", r) && r < 0x80
	}) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// picksOf turns what a person has named into what a report has: FILE, or FILE:1,3 for
// some of its hunks.
func (c *CLI) picksOf(info agent.SessionInfo, r query.DiffReport, named []string) (picks []agent.Pick, err error) {
	for _, name := range named {
		i := slices.IndexFunc(r.Files, func(f query.FileDiff) bool { return f.Path == name || f.From == name })
		list := ""
		if i < 0 {
			if at := strings.LastIndexByte(name, ':'); at > 0 {
				name, list = name[:at], name[at+1:]
				i = slices.IndexFunc(r.Files, func(f query.FileDiff) bool { return f.Path == name || f.From == name })
			}
		}
		if i < 0 {
			return nil, c.noChange(info, c.Text.Say(text.DiffNoFile, "path", name))
		}
		pick := pickOf(r.Files[i])
		for n := range strings.SplitSeq(list, ",") {
			h, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(n), "#"))
			switch {
			case list == "":
			case err != nil || h < 1 || h > len(r.Files[i].Hunks):
				return nil, c.noChange(info, c.Text.Say(text.DiffNoHunk, "path", name, "n", text.OneLine(bounded(n)), "count", len(r.Files[i].Hunks)))
			default:
				pick.Hunks = append(pick.Hunks, r.Files[i].Hunks[h-1].ID)
			}
		}
		picks = append(picks, pick)
	}
	return picks, nil
}

func pickOf(f query.FileDiff) agent.Pick { return agent.Pick{Path: f.Path, From: f.From, ID: f.ID} }

func (c *CLI) noChange(info agent.SessionInfo, message string) error {
	return &agent.Problem{
		Code: agent.ProblemChange, Message: message, Fix: "see what there is with: dure diff " + info.ID,
		Args: map[string]string{"session": info.ID, "error": message},
	}
}

func (c *CLI) acceptChanges(ctx context.Context, info agent.SessionInfo, r query.DiffReport, o DiffOptions, asJSON bool) error {
	picks, err := c.picksOf(info, r, o.Accept)
	if err != nil {
		return err
	}
	if len(r.Files) == 0 {
		return c.say(text.DiffNone)
	}
	done, err := editedTo[agent.ChangesAccepted](ctx, c, info, o.Takeover, agent.Accept{At: r.To, All: o.AcceptAll, Files: picks})
	if err != nil {
		return err
	}
	return c.put(done, asJSON, func(w *bufio.Writer) { writeLines(w, []string{acceptedLine(c.Text, done)}) })
}

func (c *CLI) rejectChanges(ctx context.Context, info agent.SessionInfo, r query.DiffReport, o DiffOptions, asJSON bool) error {
	picks, err := c.picksOf(info, r, o.Reject)
	if err != nil {
		return err
	}
	if len(r.Files) == 0 {
		return c.say(text.DiffNone)
	}
	done, err := editedTo[agent.FilesRewound](ctx, c, info, o.Takeover, agent.Reject{
		At: r.To, All: o.RejectAll, Files: picks, Merge: o.Merge, Marks: o.Marks, Force: o.Force,
	})
	if err != nil {
		return err
	}
	err = c.put(done, asJSON, func(w *bufio.Writer) { writeLines(w, rewoundLines(c.Text, done)) })
	if err == nil && done.Files == 0 && done.Leaves > 0 {
		return &Exited{Code: ExitFailed} // it has been said why
	}
	return err
}

// editedTo sends a command to a session that is opened for it, and returns the event
// that it led to.
func editedTo[B agent.Body](ctx context.Context, c *CLI, info agent.SessionInfo, takeover bool, cmd agent.Command) (done B, err error) {
	if _, err := c.edited(ctx, info.ID, "", takeover, cmd); err != nil {
		return done, err
	}
	after, err := c.Find(ctx, info.ID, "")
	if err != nil {
		return done, err
	}
	for e, err := range c.Client.Attach(info.ID).Events(ctx, info.Head) {
		if err != nil {
			return done, err
		}
		if b, ok := e.Body.(B); ok {
			done = b
		}
		if e.Seq >= after.Head {
			break
		}
	}
	return done, nil
}

// actions are what a rewind would do, in words.
var actions = map[string]text.Key{
	"create": text.DryCreate, "restore": text.DryRestore, "delete": text.DryDelete, "mode": text.DryMode,
}

// dryRewind shows what a rewind would do to files.
func (c *CLI) dryRewind(ctx context.Context, info agent.SessionInfo, o RewindOptions, asJSON bool) error {
	return tell(ctx, c, query.PlanRewind{Session: info.ID, To: o.To, Only: o.Only, Force: o.Force}, asJSON, func(w *bufio.Writer, plan query.RewindPlan) {
		writeLines(w, dryLines(c.Text, plan))
	})
}

// dryLines is a plan as people read it, a line for each path.
func dryLines(t text.Catalog, plan query.RewindPlan) (lines []string) {
	for _, it := range plan.Files {
		what, why := t.Say(actions[it.Action]), ""
		if it.Conflict != "" && !it.Forced {
			what, why = t.Say(text.DryLeft), ": "+strings.TrimPrefix(leftLine(t, "", it.Conflict, it.Why, false), ": ")
		}
		line := text.ExactLine(bounded(it.Path)) + " · " + what + why
		if it.Added+it.Removed > 0 {
			line += " · +" + strconv.Itoa(it.Added) + " -" + strconv.Itoa(it.Removed)
		}
		lines = append(lines, line)
	}
	return append(lines, t.Say(text.DryTotal, "n", len(plan.Files)-plan.Leaves, "left", plan.Leaves))
}
