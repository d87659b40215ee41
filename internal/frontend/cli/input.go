package cli

import (
	"bufio"
	"context"
	"io"
	"strings"

	"dure/agent"
	"dure/internal/frontend/text"
)

// typed is what came from the terminal: keys where it gives single keys, else
// a line.
type typed struct {
	keys []key
	line string
	eof  bool

	next chan<- struct{} // see read
}

// read lets the terminal be read again. Until then what is typed is for whoever else
// has the terminal, such as an editor.
func (in typed) read() {
	if in.next != nil {
		in.next <- struct{}{}
	}
}

// readTerminal hands on what is typed until the input ends or done is closed. It reads
// on when [typed.read] says so. A read cannot be called back: for a terminal, the
// goroutine ends with the process.
func readTerminal(t Terminal, done <-chan struct{}) <-chan typed {
	out := make(chan typed)
	read := readLines
	if t.Escapes {
		read = readKeys
	}
	go func() {
		defer close(out)
		next := make(chan struct{})
		read(t.In, func(in typed) bool {
			in.next = next
			select {
			case out <- in:
			case <-done:
				return false
			}
			select {
			case <-next:
				return true
			case <-done:
				return false
			}
		})
	}()
	return out
}

func readKeys(in io.Reader, yield func(typed) bool) {
	var keys keyReader
	b := make([]byte, 4096)
	for {
		n, err := in.Read(b)
		if ks := keys.feed(b[:n]); len(ks) > 0 && !yield(typed{keys: ks}) {
			return
		}
		if err != nil {
			return
		}
	}
}

func readLines(in io.Reader, yield func(typed) bool) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadString('\n')
		if line != "" && !yield(typed{line: strings.TrimRight(line, "\r\n")}) {
			return
		}
		if err != nil {
			return
		}
	}
}

// typed does what the user typed.
func (ch *chat) typed(ctx context.Context, in typed) {
	ch.lastTyped = ch.Now()
	switch {
	case in.eof:
		ch.ended = true
		ch.leaveIfDone()
	case in.keys != nil:
		for _, k := range in.keys {
			if ch.left == nil {
				ch.key(ctx, k)
			}
		}
	default:
		ch.line(ctx, in.line)
	}
}

// leaveIfDone leaves when the input has ended and nothing runs any more: a
// script that is piped in gets to see its last turn. Where something is asked
// then, nobody is left to answer. A turn that was interrupted has not done what
// the input was for.
func (ch *chat) leaveIfDone() {
	switch {
	case !ch.ended || ch.busy():
	case ch.v.Turn.End.Reason == agent.EndInterrupted && !ch.cutShort && (ch.o.Quiet || ch.scripted()):
		ch.quit(ExitInterrupted)
	default:
		ch.quit(ExitOK)
	}
}

// line takes a line where the terminal edits lines itself.
func (ch *chat) line(ctx context.Context, line string) {
	if !ch.o.Terminal.Echo {
		ch.s.flow(text.Clean(line))
		ch.s.startLine()
	} else {
		ch.s.col, ch.s.wrapped, ch.s.spaces = 0, false, 0 // the terminal has gone to a new line
	}
	ch.promptAt = 0
	ch.ed.insert(line)
	if next, more := unfinished(ch.ed.buf); more {
		ch.ed.set(next)
		return
	}
	ch.submit(ctx, ch.ed.take())
}

func (ch *chat) key(ctx context.Context, k key) {
	switch k.code {
	case keyInterrupt:
		ch.stop(ctx)
	case keyEOF:
		if ch.ed.empty() {
			ch.quit(ExitOK)
			return
		}
		ch.ed.apply(key{code: keyDelete})
	case keyRedraw:
		ch.s.clear()
	case keyTab:
		if !ch.completePrompt(ctx) && !ch.completeCommand(ctx) {
			ch.complete(ctx)
		}
	case keySuspend:
		ch.suspend()
	default:
		if ch.review != nil && ch.asking == "" && (k.code == keyText || k.code == keyEnter) {
			ch.reviewKeys(ctx, k)
			return
		}
		if ch.ed.apply(k) {
			s := ch.ed.take()
			ch.echo(s)
			ch.submit(ctx, s)
		}
	}
}

// echo leaves what was typed on the screen as a part of the flow.
func (ch *chat) echo(s string) {
	if s == "" {
		return
	}
	ch.s.line(2, part{bold, ch.prompt() + s})
}

// submit does what a complete input asks for.
func (ch *chat) submit(ctx context.Context, raw string) {
	s := finished(raw)
	switch {
	case ch.questions != nil:
		ch.answerQuestion(ctx, s)
	case ch.asking != "" && ch.asksPlan() && isPlan(s):
		ch.slash(ctx, s)
	case ch.asking != "":
		ch.answerApproval(ctx, s)
	case ch.review != nil:
		ch.answerReview(ctx, s)
	case ch.noting != "":
		ch.takeNote(ctx, s)
	case ch.confirm != nil:
		c := ch.confirm
		ch.confirm = nil
		c.answer(ctx, s)
	case s == "" && ch.cutShort && !ch.v.Turn.Running:
		ch.goOn(ctx)
	case s == "":
	case s == "#" && ch.o.Remember != nil:
		ch.v.note(yellow, ch.Text.Say(text.RememberHow))
	case isNote(s) && ch.o.Remember != nil:
		ch.remember(s)
		ch.askNote(s)
	case s[0] == '/':
		ch.remember(s)
		ch.slash(ctx, s)
	default:
		ch.remember(s)
		ch.say(ctx, s)
	}
}

func (ch *chat) goOn(ctx context.Context) {
	ch.cutShort = false
	if ch.send(ctx, agent.Continue{}) {
		ch.v.Turn.Running = true
		ch.present()
	}
}

func (ch *chat) remember(s string) {
	if err := ch.ed.history.add(s); err != nil {
		ch.v.note(dim, text.Clean(err.Error()))
		ch.ed.history.path = "" // said once
	}
}
