package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// later is what goes on beside line mode until it is shown: its last part runs in the
// loop of line mode.
type later struct {
	done chan func()
	stop context.CancelFunc // nil = nothing goes on
}

// aside runs f beside line mode, and what it returns when it is done. One thing runs at
// a time; Ctrl-C stops it.
func (ch *chat) aside(ctx context.Context, said string, f func(ctx context.Context) func()) {
	if ch.later.stop != nil {
		ch.v.note(yellow, ch.Text.Say(text.AsideBusy))
		return
	}
	ch.v.note(dim, said)
	ctx, ch.later.stop = context.WithCancel(ctx)
	done := ch.later.done
	go func() { done <- f(ctx) }() // the loop takes it, or what empties it at the end
}

// asideDone shows what came of it.
func (ch *chat) asideDone(show func()) {
	ch.later.stop()
	ch.later.stop = nil
	if show != nil {
		show()
	}
}

// asideEnd waits for what goes on when line mode is left.
func (ch *chat) asideEnd() {
	if ch.later.stop != nil {
		ch.later.stop()
		<-ch.later.done
		ch.later.stop = nil
	}
}

// confirming is a question of line mode itself.
type confirming struct {
	prompt string
	answer func(ctx context.Context, s string)
}

// slashCommit shows what would be committed, with a message for it, and asks.
func (ch *chat) slashCommit(ctx context.Context, _ string) { ch.draftCommit(ctx, nil) }

// draftCommit is slashCommit for some hunks of what is staged; none = all.
func (ch *chat) draftCommit(ctx context.Context, hunks []string) {
	ch.aside(ctx, ch.Text.Say(text.CommitLooking), func(ctx context.Context) func() {
		d, err := client.Query[query.CommitDraft](ctx, ch.Client, query.PrepareCommit{Session: ch.sess.Info.ID, Hunks: hunks})
		return func() {
			switch {
			case errors.Is(err, context.Canceled):
				ch.v.note(dim, ch.Text.Say(text.CommitNot))
			case err != nil:
				ch.v.fault(explain(ch.Text, err))
			default:
				ch.showCommit(d)
			}
		}
	})
}

// showCommit shows a draft.
func (ch *chat) showCommit(d query.CommitDraft) {
	const most = 40
	list := func(k text.Key, names []string, st style) {
		if len(names) == 0 {
			return
		}
		more := ""
		if n := len(names) - most; n > 0 {
			names, more = names[:most], " … +"+tokens(n)
		}
		ch.v.note(st, ch.Text.Say(k, "list", text.OneLine(strings.Join(names, ", "))+more))
	}
	if len(d.Files) == 0 {
		ch.v.note(plain, ch.Text.Say(text.CommitNothing))
		list(text.CommitUntracked, d.Untracked, dim)
		return
	}
	switch {
	case len(d.Chosen) > 0:
		ch.v.note(plain, ch.Text.Say(text.CommitChosen, "n", len(d.Chosen), "all", len(d.Hunks)))
	case d.Staged:
		ch.v.note(plain, ch.Text.Say(text.CommitStaged, "n", len(d.Files)))
	default:
		ch.v.note(plain, ch.Text.Say(text.CommitChanged, "n", len(d.Files)))
	}
	for i, f := range d.Files {
		if i == most {
			ch.v.note(dim, "… +"+tokens(len(d.Files)-most))
			break
		}
		ch.s.line(6, part{plain, "    " + text.OneLine(f.Status) + " " + text.OneLine(f.Path)})
	}
	list(text.CommitUntracked, d.Untracked, dim)
	list(text.CommitSecrets, d.Secrets, yellow)
	if d.Message == "" {
		ch.v.note(yellow, ch.Text.Say(text.CommitNoMessage, "why", text.OneLine(bounded(d.Why))))
	} else {
		ch.showMessage(d.Message)
	}
	ch.askCommit(d)
}

func (ch *chat) showMessage(message string) {
	for l := range strings.SplitSeq(text.Clean(message), "\n") {
		ch.s.line(4, part{bold, "  | " + l})
	}
}

// askCommit asks whether the draft is to be committed: y, n, e with another message, and
// h for some hunks of it.
func (ch *chat) askCommit(d query.CommitDraft) {
	prompt := text.CommitPrompt
	if len(d.Hunks) > 1 {
		prompt = text.CommitPromptStaged
	}
	ch.confirm = &confirming{prompt: ch.Text.Say(prompt), answer: func(ctx context.Context, s string) {
		word, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
		switch strings.ToLower(word) {
		case "y", "yes", "ㅇ", "ㅇㅇ", "네", "예":
			if d.Message == "" {
				ch.askCommit(d)
				return
			}
			ch.makeCommit(ctx, d)
		case "e", "edit":
			if rest = strings.TrimSpace(rest); rest != "" {
				d.Message = rest
				ch.showMessage(rest)
			}
			ch.askCommit(d)
		case "d", "diff":
			for l := range strings.SplitSeq(strings.TrimRight(text.Clean(d.Diff), "\n"), "\n") {
				ch.s.line(2, part{plain, l})
			}
			ch.askCommit(d)
		case "h", "hunks":
			ch.chooseHunks(ctx, d, rest)
		case "":
			ch.askCommit(d)
		default:
			ch.v.note(dim, ch.Text.Say(text.CommitNot))
		}
	}}
}

// chooseHunks shows what can be chosen of what is staged, or makes a draft of what was.
func (ch *chat) chooseHunks(ctx context.Context, d query.CommitDraft, said string) {
	if said = strings.TrimSpace(said); strings.EqualFold(said, "all") && len(d.Hunks) > 0 {
		ch.draftCommit(ctx, nil)
		return
	}
	names, ok := chosenOf(d.Hunks, said)
	switch {
	case !ok:
		ch.v.note(yellow, ch.Text.Say(text.CommitNoHunks))
	case len(names) > 0:
		ch.draftCommit(ctx, names)
		return
	default:
		for i, name := range d.Hunks {
			ch.s.line(6, part{plain, fmt.Sprintf("%4d  %s", i+1, text.OneLine(name))})
		}
		ch.v.note(dim, ch.Text.Say(text.CommitHunks))
	}
	ch.askCommit(d)
}

// chosenOf returns what numbers choose of a list, as in 1 3-4 or 1,3: nothing for no
// numbers, and not ok for one that is not there.
func chosenOf(list []string, said string) (names []string, ok bool) {
	words := strings.FieldsFunc(said, func(r rune) bool { return r == ' ' || r == ',' })
	if len(list) == 0 {
		return nil, false
	}
	for _, w := range words {
		first, last, span := strings.Cut(w, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && span {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 1 || to > len(list) || from > to {
			return nil, false
		}
		for _, name := range list[from-1 : to] {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, true
}

func (ch *chat) makeCommit(ctx context.Context, d query.CommitDraft) {
	ch.aside(ctx, ch.Text.Say(text.CommitMaking), func(ctx context.Context) func() {
		made, err := client.Query[query.CommitMade](ctx, ch.Client, query.MakeCommit{Session: ch.sess.Info.ID, ID: d.ID, Message: d.Message})
		return func() {
			if ch.failed(err) {
				return
			}
			ch.used = true
			for l := range strings.SplitSeq(strings.TrimSpace(text.Clean(made.Said)), "\n") {
				ch.v.note(plain, l)
			}
		}
	})
}
