package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
)

// InteractOptions say what line mode opens.
type InteractOptions struct {
	Open     agent.Open
	Prompt   string // sent first; "" = wait for the user
	Terminal Terminal
	History  string // file; "" = none is kept
	Version  string
	Quiet    bool   // neither a greeting nor a farewell
	fresh    bool   // the session was begun here, and nothing was said in it
	Notice   string // one line behind the greeting; "" = none

	// Told brings lines about what goes on beside the session; nil = nothing does.
	Told <-chan string

	// MakeMemory returns the file for instructions of a scope in a folder, and makes
	// it when it is missing. Remember adds a line to one, and returns what takes it
	// back. nil = there is no such thing here.
	MakeMemory func(workdir, scope string) (query.MemoryPlace, error)
	Remember   func(workdir, scope, text string) (path string, undo func() error, err error)

	// Settings shows the settings, explains one that is named, or gives it the value
	// behind its name, in lines to show. nil = there is no such thing here.
	Settings func(ctx context.Context, arg string) ([]string, error)

	// EditRule adds a permission rule to the settings, or takes one away. nil = there is
	// no such thing here.
	EditRule func(ctx context.Context, e query.RuleEdit) (query.RuleEdited, error)

	// Notices say how somebody is told who is away.
	Notices Notices

	// OpenAddress opens an address as the system does. nil = it is shown.
	OpenAddress func(ctx context.Context, address string) error

	// Move makes the program anew for a working folder, with more folders beside it. What
	// it is made of now goes on until its session is closed. nil = that cannot be.
	Move func(ctx context.Context, dir string, more []string) (Place, error)
	Home string // what ~ stands for; "" = nothing

	// Edit opens a file in the user's editor, on the terminal, and waits for its end.
	// nil = there is none, or no terminal.
	Edit func(ctx context.Context, path string) error
}

// chat is line mode on one session.
type chat struct {
	*CLI
	o    InteractOptions
	sess *client.Session
	s    *screen
	v    *painter
	ed   *editor

	ready     bool   // what happened before has been taken in
	used      bool   // something was sent to the session
	cutShort  bool   // the last turn can be gone on with
	noting    string // what is to be remembered, while it is asked where
	unnote    func() error
	warning   string   // on instruction files; said with the greeting
	without   []string // what inputs name and is not read, see [agent.Prompt]
	draft     string   // what was being typed when an approval came
	asking    string   // ID of the approval or question on show
	questions *questions
	review    *reviewing  // nil = none is under way
	confirm   *confirming // nil = line mode asks nothing itself
	later     later
	mute      bool            // it was told that the terminal takes nothing of hooks
	lastStop  time.Time       // when Ctrl-C was last pressed
	lastTyped time.Time       // when anything was
	notices   sync.WaitGroup  // those of the system that are being shown
	promptAt  int             // 1 + the line of the flow that a plain prompt stands in; 0 = none
	ended     bool            // the input has
	restore   func()          // puts the terminal back
	known     *view.Totals    // of a session whose beginning is not read; nil = all of it is
	left      *Exited         // set when line mode is over
	next      *client.Session // is gone on with then; nil = none
	nextOpen  agent.Open      // how it was opened
	place     *Place          // where the session is gone on with; nil = nowhere
	resumable []string        // IDs of the sessions that were listed last, see [chat.slashResume]
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
	var input <-chan typed
	done := make(chan struct{})
	defer close(done)
	for {
		ch := c.newChat(ctx, o, sess)
		if ch.restore, err = ch.enter(); err != nil {
			return err
		}
		if input == nil { // once: what a read has begun to wait for cannot be called back
			input = readTerminal(o.Terminal, done)
		}
		ch.converse(ctx, input)
		switch {
		case ch.place != nil: // the session is closed now, and can be opened there
			if o, err = ch.arrive(ctx, o); err != nil {
				return err
			}
			o.Told = ch.o.Told
		case ch.next == nil && ch.left.Code == ExitOK:
			return nil
		case ch.next == nil:
			return ch.left
		}
		sess, o.Open, o.Prompt, o.Notice = ch.next, ch.nextOpen, "", ""
	}
}

func (c *CLI) newChat(ctx context.Context, o InteractOptions, sess *client.Session) *chat {
	s := newScreen(o.Terminal)
	return &chat{
		later: later{done: make(chan func())},
		CLI:   c, o: o, sess: sess, s: s, v: newPainter(c.Text, s, o.Open.Workdir),
		ed: &editor{history: openHistory(o.History)}, warning: c.memoryWarning(ctx, sess.Info.ID),
	}
}

// converse runs line mode on its session until that is left.
func (ch *chat) converse(ctx context.Context, input <-chan typed) {
	defer func() { ch.restore() }()
	after := int64(0)
	if ch.known = known(ch.sess.Info); ch.known != nil {
		after = ch.sess.Info.Head - recapEvents
	}
	events, stop := follow(ctx, ch.sess, after)
	ch.loop(ctx, events, input)
	ch.asideEnd()
	stop()
	ch.leave(ctx)
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

// suspend stops the program, as Ctrl-Z does where the terminal sees to it, and
// takes the terminal over again when it goes on.
func (ch *chat) suspend() {
	if ch.o.Terminal.Suspend == nil {
		return
	}
	ch.s.startLine()
	ch.s.w.Flush()
	ch.restore()
	ch.o.Terminal.Suspend()
	restore, err := ch.enter()
	if err != nil {
		ch.restore = func() {}
		ch.quit(ExitFailed)
		return
	}
	ch.restore = restore
	ch.s.measure()
}

// outside has another program use the terminal, and takes it over again. What comes of
// the session meanwhile is shown then; a Ctrl-C was for the other program.
func (ch *chat) outside(f func() error) error {
	ch.s.show(nil, 0, 0)
	ch.s.startLine()
	ch.s.w.Flush()
	ch.restore()
	err := f()
	for range cap(ch.Signals) {
		select {
		case sig := <-ch.Signals:
			if isTerm(sig) {
				ch.quit(ExitTerminated)
			}
		default:
		}
	}
	restore, entered := ch.enter()
	if entered != nil {
		ch.restore = func() {}
		ch.quit(ExitFailed)
		return errors.Join(err, entered)
	}
	ch.restore = restore
	ch.s.measure()
	return err
}

// leave closes the session and says how to come back.
func (ch *chat) leave(ctx context.Context) {
	ch.s.startLine()
	ch.notices.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	ch.failed(ch.sess.Close(ctx))
	if ch.place != nil {
		return // it goes on elsewhere
	}
	if ch.unused() {
		_, _ = client.Query[query.RemovedSession](ctx, ch.Client, query.RemoveSession{Session: ch.sess.Info.ID}) // it does no harm
	} else if !ch.o.Open.Scratch && !ch.o.Quiet {
		ch.v.note(dim, ch.Text.Say(text.Bye, "session", ch.sess.Info.ID))
	}
	ch.s.w.Flush()
}

// unused reports whether nothing was done in a session that was begun here, and nobody
// has named it: nobody wants to find it in a list, or to go on with it.
func (ch *chat) unused() bool {
	o := ch.o.Open
	return !ch.used && !o.Scratch && (o.Session == "" || ch.o.fresh) && o.Fork == "" && o.New == "" && o.Title == ""
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
			in.read()
		case sig := <-ch.Signals:
			ch.signal(ctx, sig)
		case show := <-ch.later.done:
			ch.asideDone(show)
		case line := <-ch.o.Told:
			ch.v.note(dim, text.OneLine(line))
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
	return !ch.ready || ch.later.stop != nil || ch.review != nil && ch.review.waits > 0 || ch.o.Prompt != "" || ((ch.v.Turn.Running || len(ch.v.own) > 0) && ch.asking == "")
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
	f.taken()
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
		ch.v.Apply(f.event)
		ch.greetWhenReady(f.event.Seq)
		ch.begin(ctx)
	default:
		ch.greetWhenReady(ch.sess.Info.Head)
		ch.begin(ctx)
		ch.v.event(f.event)
		ch.tell(f.event.Body)
		ch.decided(ctx, f.event.Body)
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
	if ch.known != nil {
		ch.v.Totals = *ch.known
	}
	if ch.o.Quiet {
		return
	}
	info, v := ch.sess.Info, ch.v
	v.s.line(2, part{bold, ch.Text.Say(text.Welcome, "version", ch.o.Version,
		"model", text.OneLine(cmp.Or(v.Model, info.Model)), "mode", string(cmp.Or(v.Mode, agent.ModeDefault)),
		"dir", text.OneLine(cmp.Or(v.Workdir, info.Workdir)))})
	if ch.o.Notice != "" {
		v.note(dim, text.OneLine(ch.o.Notice))
	}
	if ch.warning != "" {
		v.note(yellow, ch.warning)
	}
	if ch.o.Open.Session == "" {
		if ch.o.Prompt == "" {
			v.s.line(0, part{dim, ch.Text.Say(text.WelcomeHint)})
		}
		return
	}
	v.note(dim, ch.Text.Say(text.Resumed, "session", info.ID, "turns", v.Totals.Turns))
	ch.recap()
	// Nothing runs in a session that has just been opened. What it had asked is
	// still open, and is shown when the turn goes on.
	ch.cutShort = v.Turn.Running || v.Turn.End.Reason == agent.EndInterrupted
	v.Turn.Running = false
	if ch.cutShort && ch.o.Prompt == "" {
		v.note(yellow, ch.Text.Say(text.CutShort))
	}
}

// recap shows what was last said, in short.
func (ch *chat) recap() {
	const words = 200
	if said := ch.v.Newest(view.InputRow); said != "" {
		ch.s.line(2, part{dim, ch.v.glyph("> ", text.LabelYou) + text.Cut(text.OneLine(bounded(said)), words)})
	}
	if said := ch.v.Newest(view.AnswerRow); said != "" {
		ch.s.line(2, part{dim, "  " + text.Cut(text.OneLine(bounded(said)), words)})
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
func (ch *chat) say(ctx context.Context, s string) { ch.sayPrompt(ctx, agent.Prompt{Text: s}) }

func (ch *chat) sayPrompt(ctx context.Context, p agent.Prompt) {
	p.ID, p.Without = "in-"+rand.Text(), ch.without
	ch.v.own[p.ID] = true
	ch.cutShort = false
	if !ch.send(ctx, p) {
		delete(ch.v.own, p.ID)
		return
	}
	ch.v.Turn.Running = true // its turn starts, or goes on
	ch.present()
}

// send sends a command and shows why it was refused, if it was.
func (ch *chat) send(ctx context.Context, c agent.Command) bool {
	if ch.failed(ch.sess.Send(ctx, c)) {
		return false
	}
	ch.used = true
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
	if line := ch.v.activity(); ch.v.Turn.Running && ch.asking == "" && line != "" {
		lines = append(lines, ch.status(line, cols))
	}
	if ch.asking == "" && ch.v.Turn.Running && ch.ed.empty() {
		return lines, max(len(lines)-1, 0), 0
	}
	if ch.o.Quiet && ch.asking == "" {
		return lines, max(len(lines)-1, 0), 0
	}
	typed, row, col := ch.ed.render(ch.prompt(), cols, max(ch.s.rows-2-len(lines), 1))
	return append(lines, typed...), len(lines) + row, col
}

func (ch *chat) status(line string, cols int) string {
	if d := ch.Now().Sub(ch.v.Turn.Doing.Since); d >= time.Second {
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
	case ch.asking == "" && ch.review != nil:
		return ch.reviewPrompt()
	case ch.asking != "":
		return ch.Text.Say(text.ApprovePrompt, "keys", ch.answers())
	case ch.noting != "":
		return ch.Text.Say(text.MemoryPrompt)
	case ch.confirm != nil:
		return ch.confirm.prompt
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
		ch.resolve(ctx, agent.Resolve{Decision: agent.Decision{
			Verdict: agent.Deny, Reason: ch.Text.Say(text.DeniedInterrupt), By: "user", Stop: true,
		}})
		ch.send(ctx, agent.Interrupt{})
	case ch.noting != "":
		ch.noting = ""
		ch.v.note(dim, ch.Text.Say(text.MemoryNot))
	case ch.later.stop != nil:
		ch.later.stop()
	case ch.confirm != nil:
		ch.confirm = nil
		ch.v.note(dim, ch.Text.Say(text.CommitNot))
	case ch.v.Turn.Running:
		ch.v.note(dim, ch.Text.Say(text.Interrupting))
		ch.send(ctx, agent.Interrupt{})
	case ch.review != nil:
		ch.leaveReview()
	case !ch.ed.empty():
		ch.ed.take()
	default:
		ch.v.note(dim, ch.Text.Say(text.AgainQuits))
	}
}
