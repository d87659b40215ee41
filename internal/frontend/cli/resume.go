package cli

import (
	"cmp"
	"context"
	"strconv"

	"dure/agent"
	"dure/internal/frontend/text"
)

// resumeMost is how many sessions /resume lists.
const resumeMost = 10

// slashResume goes on with another session: one by its name, or by its number in the
// list that it shows without one.
func (ch *chat) slashResume(ctx context.Context, arg string) {
	if arg == "" {
		ch.listResumable(ctx)
		return
	}
	name, workdir := arg, ""
	if n, err := strconv.Atoi(arg); err == nil && n >= 1 && n <= len(ch.resumable) {
		name = ch.resumable[n-1]
	}
	info, err := ch.Find(ctx, name, workdir)
	if ch.failed(err) {
		return
	}
	if info.ID == ch.sess.Info.ID {
		ch.v.note(dim, ch.Text.Say(text.ResumeHere))
		return
	}
	ch.switchTo(ctx, agent.Open{Session: info.ID, Approver: true})
}

// listResumable shows the newest sessions of the folder, the one that is open left out.
func (ch *chat) listResumable(ctx context.Context) {
	page, ok := asked[agent.SessionList](ctx, ch, agent.ListSessions{Workdir: ch.workdir(), Limit: resumeMost + 1})
	if !ok {
		return
	}
	ch.resumable = nil
	var rows [][]string
	for _, s := range page.Sessions {
		if s.ID == ch.sess.Info.ID || s.IsChild() || len(rows) == resumeMost {
			continue
		}
		ch.resumable = append(ch.resumable, s.ID)
		rows = append(rows, []string{strconv.Itoa(len(rows)+1) + ".", text.Cut(marked(s), 60), ch.ago(s.Updated), text.OneLine(s.ID)})
	}
	if len(rows) == 0 {
		ch.v.note(dim, ch.Text.Say(text.ResumeNone))
		return
	}
	const least = 12
	columns := ch.s.usable() - 2
	rows = fit(rows, 1, columns, least, 3, 2)
	for _, l := range rowLines(rows) {
		ch.s.line(4, part{plain, l})
	}
	ch.v.note(dim, ch.Text.Say(text.ResumeWhich))
}

// slashNew begins a new session with what this one was begun with.
func (ch *chat) slashNew(ctx context.Context, title string) {
	o := ch.o.Open
	ch.switchTo(ctx, agent.Open{
		Workdir: ch.workdir(), Model: o.Model, Profile: o.Profile, Mode: cmp.Or(ch.v.Mode, o.Mode), MaxSteps: o.MaxSteps,
		Title: title, Scratch: o.Scratch, Approver: true,
	})
}

func (ch *chat) workdir() string { return cmp.Or(ch.v.Workdir, ch.sess.Info.Workdir) }

// switchTo opens another session and leaves this one for it. One that cannot be opened
// leaves everything as it is.
func (ch *chat) switchTo(ctx context.Context, o agent.Open) {
	if ch.v.Turn.Running {
		ch.v.note(yellow, ch.Text.Say(text.ResumeBusy))
		return
	}
	o.After = ch.sess.Info.ID
	sess, err := ch.Client.Open(ctx, o)
	if ch.failed(err) {
		return
	}
	ch.next, ch.nextOpen = sess, o
	ch.quit(ExitOK)
}
