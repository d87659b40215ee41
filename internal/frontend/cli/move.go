package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
)

// A Place is the program as it is in a working folder.
type Place struct {
	Client  client.Client
	Options InteractOptions // but for Open
	Enter   func()          // says what there is to say of it, before the session is opened there
	Back    func()          // it cannot be opened there: everything is as it was again
}

// slashCd goes on in another folder, with the settings and the trust of that.
func (ch *chat) slashCd(ctx context.Context, arg string) {
	if arg == "" {
		ch.v.note(plain, ch.Text.Say(text.StatusDir, "dir", text.OneLine(ch.workdir())))
		return
	}
	dir, ok := ch.meant(arg)
	if !ok {
		return
	}
	if dir == ch.workdir() {
		ch.v.note(dim, ch.Text.Say(text.StatusDir, "dir", text.OneLine(dir)))
		return
	}
	ch.moveTo(ctx, dir, nil)
}

// slashAddDir has one more folder count as part of the workspace.
func (ch *chat) slashAddDir(ctx context.Context, arg string) {
	if arg == "" {
		ch.v.note(yellow, ch.usageOf(ctx, "add-dir"))
		return
	}
	if dir, ok := ch.meant(arg); ok {
		ch.moveTo(ctx, ch.workdir(), []string{dir})
	}
}

// meant returns the folder that somebody means, or says that there is none.
func (ch *chat) meant(arg string) (dir string, ok bool) {
	dir = strings.TrimSpace(arg)
	if rest, under := strings.CutPrefix(dir, "~"); under && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) && ch.o.Home != "" {
		dir = filepath.Join(ch.o.Home, rest)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(ch.workdir(), dir)
	}
	if i, err := os.Stat(dir); err != nil || !i.IsDir() {
		ch.v.fault(ch.Text.Say(text.MoveNoFolder, "path", text.OneLine(bounded(arg))), "")
		return "", false
	}
	return filepath.Clean(dir), true
}

// moveTo goes on with the session in a folder, with more folders beside it. The program
// is made anew for that, and one that cannot be leaves everything as it is.
func (ch *chat) moveTo(ctx context.Context, dir string, more []string) {
	switch {
	case ch.v.Turn.Running:
		ch.v.note(yellow, ch.Text.Say(text.ResumeBusy))
		return
	case ch.o.Move == nil || ch.o.Open.Scratch:
		ch.v.note(yellow, ch.Text.Say(text.MoveNot))
		return
	}
	place, err := ch.o.Move(ctx, dir, more)
	if ch.failed(err) {
		return
	}
	ch.place = &place
	ch.nextOpen = agent.Open{
		Session: ch.sess.Info.ID, Workdir: dir, Mode: cmp.Or(ch.v.Mode, ch.o.Open.Mode), MaxSteps: ch.o.Open.MaxSteps, Approver: true, Added: more,
	}
	ch.quit(ExitOK)
}

// arrive opens the session, which is closed, in the place where it goes on, and returns
// the options of that. Where it cannot be opened there, it goes on where it was, and that
// is said.
func (ch *chat) arrive(ctx context.Context, was InteractOptions) (InteractOptions, error) {
	ch.place.Enter()
	sess, err := ch.place.Client.Open(ctx, ch.nextOpen)
	if err == nil {
		o := ch.place.Options
		o.fresh, ch.next, ch.CLI.Client = ch.unused(), sess, ch.place.Client
		return o, nil
	}
	ch.place.Back()
	ch.v.fault(explain(ch.Text, err))
	ch.s.w.Flush()
	ch.nextOpen.Workdir, ch.nextOpen.Added = ch.workdir(), nil
	ch.next, err = ch.Client.Open(ctx, ch.nextOpen)
	was.fresh = ch.unused()
	return was, err
}
