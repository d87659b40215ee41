package cli

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
)

// Notices say how a person is told that something waits for them who looks at something
// else.
type Notices struct {
	Kind string // bell, terminal or system; "" = not at all

	// Urgent says that the terminal takes notices as rxvt does (OSC 777), and not as
	// iTerm does (OSC 9). Tmux says that a tmux stands between it and us.
	Urgent, Tmux bool

	// System shows a notice of the system's. nil = it has none.
	System func(ctx context.Context, title, text string) error
}

// The bounds of notices.
const (
	maxNotice  = 120             // columns
	awayAfter  = 5 * time.Second // without a key: nobody is told what they are looking at
	noticeTime = 8 * time.Second // for the system to show one
)

// Show shows a notice; w is the terminal.
func (n Notices) Show(ctx context.Context, w io.Writer, said string) error {
	said = text.Cut(text.OneLine(said), maxNotice)
	switch n.Kind {
	case "system":
		if n.System == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, noticeTime)
		defer cancel()
		return n.System(ctx, "dure", said)
	case "terminal":
		_, err := io.WriteString(w, n.sequence(said))
		return err
	case "bell":
		_, err := io.WriteString(w, "\a")
		return err
	}
	return nil
}

// sequence is what makes the terminal show a notice. What is said has no control
// characters, and does not begin with a digit: OSC 9 takes those for something else.
func (n Notices) sequence(said string) string {
	s := "\x1b]9;dure: " + said + "\a"
	if n.Urgent {
		s = "\x1b]777;notify;dure;" + said + "\a"
	}
	if n.Tmux {
		s = "\x1bPtmux;\x1b" + s + "\x1b\\"
	}
	return s
}

// tell tells a user who is away that a turn has ended, and the terminal what a hook has
// for it.
func (ch *chat) tell(b agent.Body) {
	if ran, ok := b.(agent.HookRan); ok {
		ch.ring(ran.Terminal)
	}
	e, ended := b.(agent.TurnEnded)
	if !ended {
		return
	}
	said := text.NoticeDone
	if e.Reason != agent.EndDone {
		said = text.NoticeFailed
	}
	if e.Reason != agent.EndInterrupted {
		ch.notice(ch.Text.Say(said, "folder", ch.folder()))
	}
}

// ring writes to the terminal what a hook has for it, as far as that may go there.
func (ch *chat) ring(s string) {
	s, _ = agent.ForTerminal(s)
	switch {
	case s == "":
	case ch.o.Terminal.Escapes:
		_, _ = io.WriteString(ch.s.w, s) // the next redraw meets the same error
	case !ch.mute:
		ch.mute = true
		ch.v.note(dim, ch.Text.Say(text.HookMute))
	}
}

// tellQuestion tells a user who is away that they are asked.
func (ch *chat) tellQuestion(tool string) {
	ch.notice(ch.Text.Say(text.NoticeAsks, "folder", ch.folder(), "tool", toolName(tool)))
}

func (ch *chat) folder() string { return text.OneLine(filepath.Base(cmp.Or(ch.v.Workdir, "dure"))) }

// notice shows a notice, unless somebody has just typed. That of the system is shown
// beside the conversation, which waits for it at its end.
func (ch *chat) notice(said string) {
	n := ch.o.Notices
	if n.Kind == "" || ch.Now().Sub(ch.lastTyped) < awayAfter {
		return
	}
	if n.Kind != "system" {
		if ch.o.Terminal.Escapes {
			_ = n.Show(context.Background(), ch.s.w, said) // the next redraw meets the same error
		}
		return
	}
	ch.notices.Go(func() {
		_ = n.Show(context.Background(), io.Discard, said) // dure notify says what is wrong
	})
}
