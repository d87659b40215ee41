package cli

import (
	"context"
	"crypto/rand"
	"os"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/text"
)

// InteractOptions say what line mode opens.
type InteractOptions struct {
	Open     agent.Open
	Prompt   string // sent first; "" = wait for the user
	Terminal Terminal
	History  string // file; "" = none is kept
	Version  string
	Quiet    bool // neither a greeting nor a farewell
}

// chat is line mode on one session.
type chat struct {
	*CLI
	o    InteractOptions
	sess *client.Session
	s    *screen
	v    *view
	ed   *editor

	ready     bool   // what happened before has been taken in
	cutShort  bool   // the last turn can be gone on with
	draft     string // what was being typed when an approval came
	asking    string // ID of the approval or question on show
	questions *questions
	lastStop  time.Time // when Ctrl-C was last pressed
	promptAt  int       // 1 + the line of the flow that a plain prompt stands in; 0 = none
	ended     bool      // the input has
	left      *Exited   // set when line mode is over
}

// closeTime bounds how long the end of line mode waits for its session.
const closeTime = 3 * time.Second

// Interact runs line mode until the user leaves it. It returns nil or an
// [*Exited], or why the session cannot be opened.
func (c *CLI) Interact(ctx context.Context, o InteractOptions) error {
	o.Open.Approver = true
	sess, err := c.Client.Open(ctx, o.Open)
	if err != nil {
		return err
	}
	s := newScreen(o.Terminal)
	ch := &chat{
		CLI: c, o: o, sess: sess, s: s, v: newView(c.Text, s, o.Open.Workdir),
		ed: &editor{history: openHistory(o.History)},
	}
	restore, err := ch.enter()
	if err != nil {
		return err
	}
	defer restore()
	events, stop := follow(ctx, sess, 0)
	done := make(chan struct{})
	ch.loop(ctx, events, readTerminal(o.Terminal, done))
	close(done)
	stop()
	ch.leave(ctx)
	if ch.left.Code == ExitOK {
		return nil
	}
	return ch.left
}

// enter prepares the terminal and returns what puts it back.
func (ch *chat) enter() (restore func(), err error) {
	t := ch.o.Terminal
	if !t.Escapes {
		return func() {}, nil
	}
	undo := func() {}
	if t.Raw != nil {
		if undo, err = t.Raw(); err != nil {
			return nil, err
		}
	}
	ch.s.w.WriteString("\x1b[?2004h") // bracketed paste
	return func() {
		ch.s.w.WriteString("\x1b[?2004l")
		ch.s.w.Flush()
		undo()
	}, nil
}

// leave closes the session and says how to come back.
func (ch *chat) leave(ctx context.Context) {
	ch.s.startLine()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := ch.sess.Close(ctx); err != nil {
		ch.v.fault(explain(ch.Text, err))
	}
	if !ch.o.Open.Scratch && !ch.o.Quiet {
		ch.v.note(dim, ch.Text.Say(text.Bye, "session", ch.sess.Info.ID))
	}
	ch.s.w.Flush()
}

// loop takes events, input and signals as they come, until line mode is left.
func (ch *chat) loop(ctx context.Context, events <-chan found, input <-chan typed) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	ch.greetWhenReady(0)
	for ch.left == nil {
		ch.redraw()
		from := input
		if ch.scripted() && ch.busy() {
			from = nil // the next line is for what comes after
		}
		select {
		case f, ok := <-events:
			ch.take(ctx, f, ok)
			ch.drain(ctx, events)
		case in, ok := <-from:
			if !ok {
				in.eof, input = true, nil
			}
			ch.typed(ctx, in)
		case sig := <-ch.Signals:
			ch.signal(ctx, sig)
		case <-tick.C:
		case <-ctx.Done():
			ch.quit(ExitTerminated)
		}
	}
}

// scripted reports whether the input is no terminal. Then it is read only where
// somebody would answer, so that its lines meet what they were written for.
func (ch *chat) scripted() bool { return !ch.o.Terminal.Escapes && !ch.o.Terminal.Echo }

// busy reports whether a turn runs, or is about to, and nothing is asked.
func (ch *chat) busy() bool {
	return !ch.ready || ch.o.Prompt != "" || ((ch.v.running || len(ch.v.own) > 0) && ch.asking == "")
}

// drain takes the events that are there already, so that a burst of fragments
// is drawn once. The bound keeps keys from waiting.
func (ch *chat) drain(ctx context.Context, events <-chan found) {
	for range cap(events) {
		select {
		case f, ok := <-events:
			ch.take(ctx, f, ok)
		default:
			return
		}
	}
}

func (ch *chat) quit(code int) {
	if ch.left == nil {
		ch.left = &Exited{Code: code}
	}
}

// take draws one event, or ends line mode with the events.
func (ch *chat) take(ctx context.Context, f found, ok bool) {
	switch {
	case ch.left != nil:
	case !ok:
		ch.v.note(yellow, ch.Text.Say(text.SessionEnded))
		ch.quit(ExitOK)
	case f.err != nil:
		message, fix := explain(ch.Text, f.err)
		if agent.ProblemOf(f.err) == nil {
			message = ch.Text.Say(text.ConnectionLost, "error", message)
		}
		ch.v.fault(message, fix)
		ch.quit(ExitCode(f.err))
	case !ch.ready && !f.event.Live() && f.event.Seq <= ch.sess.Info.Head:
		ch.v.fold(f.event)
		ch.greetWhenReady(f.event.Seq)
		ch.begin(ctx)
	default:
		ch.greetWhenReady(ch.sess.Info.Head)
		ch.begin(ctx)
		ch.v.event(f.event)
		ch.present()
	}
}

// greetWhenReady says where we are once seq, the last event that was there
// before us, has been taken in.
func (ch *chat) greetWhenReady(seq int64) {
	if ch.ready || seq < ch.sess.Info.Head {
		return
	}
	ch.ready = true
	if ch.o.Quiet {
		return
	}
	info, v := ch.sess.Info, ch.v
	v.s.line(2, part{bold, ch.Text.Say(text.Welcome, "version", ch.o.Version,
		"model", text.OneLine(either(v.model, info.Model)), "mode", string(either(v.mode, agent.ModeDefault)),
		"dir", text.OneLine(either(v.workdir, info.Workdir)))})
	if ch.o.Open.Session == "" {
		if ch.o.Prompt == "" {
			v.s.line(0, part{dim, ch.Text.Say(text.WelcomeHint)})
		}
		return
	}
	v.note(dim, ch.Text.Say(text.Resumed, "session", info.ID, "turns", v.totals.turns))
	ch.recap()
	// Nothing runs in a session that has just been opened. What it had asked is
	// still open, and is shown when the turn goes on.
	ch.cutShort = v.running || v.lastEnd == agent.EndInterrupted
	v.running = false
	if ch.cutShort && ch.o.Prompt == "" {
		v.note(yellow, ch.Text.Say(text.CutShort))
	}
}

// recap shows what was last said, in short.
func (ch *chat) recap() {
	const words = 200
	if ch.v.lastInput != "" {
		ch.s.line(2, part{dim, ch.v.glyph("> ", text.LabelYou) + text.Cut(text.OneLine(bounded(ch.v.lastInput)), words)})
	}
	if ch.v.lastAnswer != "" {
		ch.s.line(2, part{dim, "  " + text.Cut(text.OneLine(bounded(ch.v.lastAnswer)), words)})
	}
}

// begin sends the first prompt, once.
func (ch *chat) begin(ctx context.Context) {
	if ch.ready && ch.o.Prompt != "" {
		prompt := ch.o.Prompt
		ch.o.Prompt = ""
		ch.s.line(2, part{bold, ch.v.glyph("> ", text.LabelYou) + text.Clean(prompt)})
		ch.say(ctx, prompt)
	}
}

// say sends what the user said to the session.
func (ch *chat) say(ctx context.Context, s string) {
	id := "in-" + rand.Text()
	ch.v.own[id] = true
	ch.cutShort = false
	if !ch.send(ctx, agent.Prompt{ID: id, Text: s}) {
		delete(ch.v.own, id)
		return
	}
	ch.v.running = true // its turn starts, or goes on
	ch.present()
}

// send sends a command and shows why it was refused, if it was.
func (ch *chat) send(ctx context.Context, c agent.Command) bool {
	if err := ch.sess.Send(ctx, c); err != nil {
		ch.v.fault(explain(ch.Text, err))
		return false
	}
	return true
}

// redraw brings the terminal up to date: the live area, and what is buffered.
func (ch *chat) redraw() {
	if ch.o.Terminal.Escapes {
		ch.s.measure()
		ch.s.show(ch.liveArea())
	} else {
		ch.plainPrompt()
	}
	if err := ch.s.w.Flush(); err != nil {
		ch.quit(ExitFailed) // nobody sees us any more
	}
}

// liveArea returns what stands below the flow: what goes on, and the editor
// where the user is expected or has begun to type.
func (ch *chat) liveArea() (lines []string, row, col int) {
	cols := ch.s.usable()
	if ch.v.running && ch.asking == "" && ch.v.activity != "" {
		lines = append(lines, ch.status(cols))
	}
	if ch.asking == "" && ch.v.running && ch.ed.empty() {
		return lines, max(len(lines)-1, 0), 0
	}
	if ch.o.Quiet && ch.asking == "" {
		return lines, max(len(lines)-1, 0), 0
	}
	typed, row, col := ch.ed.render(ch.prompt(), cols, max(ch.s.rows-2-len(lines), 1))
	return append(lines, typed...), len(lines) + row, col
}

func (ch *chat) status(cols int) string {
	line := ch.v.activity
	if d := ch.Now().Sub(ch.v.since); d >= time.Second {
		line += " · " + took(d.Truncate(time.Second))
	}
	line = text.Cut(line+" · "+ch.Text.Say(text.StatusKeys), cols)
	if ch.o.Terminal.Color {
		return "\x1b[2m" + line + "\x1b[0m"
	}
	return line
}

// prompt is what stands before the input.
func (ch *chat) prompt() string {
	switch {
	case ch.questions != nil:
		return ch.Text.Say(text.AskPrompt)
	case ch.asking != "":
		return ch.Text.Say(text.ApprovePrompt)
	}
	return ch.v.glyph("> ", text.LabelYou)
}

// plainPrompt writes the prompt where input comes line by line.
func (ch *chat) plainPrompt() {
	if ch.o.Quiet || ch.busy() || ch.promptAt == ch.s.lines+1 {
		return
	}
	ch.s.startLine()
	ch.s.flow(ch.prompt() + ch.ed.buf)
	ch.s.flush()
	for range ch.s.spaces {
		ch.s.w.WriteByte(' ')
	}
	ch.s.col, ch.s.spaces = ch.s.col+ch.s.spaces, 0
	ch.promptAt = ch.s.lines + 1
}

// signal does what the system asks for.
func (ch *chat) signal(ctx context.Context, sig os.Signal) {
	if isTerm(sig) {
		ch.quit(ExitTerminated)
		return
	}
	ch.stop(ctx)
}

// stop is Ctrl-C: it denies what is asked, interrupts the turn, clears what was
// typed; twice within a second it leaves.
func (ch *chat) stop(ctx context.Context) {
	now := ch.Now()
	if !ch.lastStop.IsZero() && now.Sub(ch.lastStop) < time.Second {
		ch.quit(ExitInterrupted)
		return
	}
	ch.lastStop = now
	switch {
	case ch.asking != "":
		ch.resolve(ctx, agent.Decision{Verdict: agent.Deny, Reason: ch.Text.Say(text.DeniedInterrupt), By: "user", Stop: true}, "")
		ch.send(ctx, agent.Interrupt{})
	case ch.v.running:
		ch.v.note(dim, ch.Text.Say(text.Interrupting))
		ch.send(ctx, agent.Interrupt{})
	case !ch.ed.empty():
		ch.ed.take()
	default:
		ch.v.note(dim, ch.Text.Say(text.AgainQuits))
	}
}
