package cli

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
)

// Format is how print mode writes its outcome.
type Format string

// The formats of print mode.
const (
	FormatText   Format = "text"   // the final answer
	FormatJSON   Format = "json"   // one object
	FormatNDJSON Format = "ndjson" // the events of the log, one a line
)

// PrintOptions say what print mode does.
type PrintOptions struct {
	Open   agent.Open
	Prompt string // "" = go on with the turn that was cut short
	Format Format
	Live   bool // with FormatNDJSON: live events too

	Verbose bool // each call is told on Err when it is done

	// Terminal says that Out is a terminal: an answer is made harmless for it.
	Terminal bool

	// Progress says that Err is a terminal on which a line may come and go.
	Progress bool
	Columns  func() int // of Err; required with Progress
}

// printer is print mode on one session.
type printer struct {
	*CLI
	o      PrintOptions
	sess   *client.Session
	input  string // ID of the prompt
	began  time.Time
	out    *bufio.Writer
	result outcome
	line   progress
	stops  int // how often an interrupt came
}

// Print runs one turn, without anybody to ask, and writes its outcome. A turn
// that did not end well is an [*Exited] with its code.
func (c *CLI) Print(ctx context.Context, o PrintOptions) error {
	o.Open.Approver = false
	if err := c.readable(ctx, o); err != nil {
		return err
	}
	sess, err := c.Client.Open(ctx, o.Open)
	if err != nil {
		return err
	}
	p := &printer{CLI: c, o: o, sess: sess, began: c.Now(), out: bufio.NewWriterSize(c.Out, 64<<10)}
	p.result = outcome{View: view.New(sess.Info.ID, view.Limits{Rows: view.OpenOnly}), session: sess.Info.ID, after: sess.Info.Head}
	p.line = progress{c: c, on: o.Progress && o.Format != FormatNDJSON, columns: o.Columns}
	if warning := c.memoryWarning(ctx, sess.Info.ID); warning != "" {
		fmt.Fprintln(c.Err, c.Text.Say(text.LabelNote)+warning)
	}
	if err := p.start(ctx); err != nil {
		p.close(ctx)
		return err
	}
	after := int64(0)
	if o.Format != FormatJSON && o.Open.Session != "" && known(sess.Info) != nil {
		after = sess.Info.Head // the totals of the session are in the object alone
	}
	events, stop := follow(ctx, sess, after)
	err = p.loop(ctx, events)
	stop()
	p.line.erase()
	if cerr := p.close(ctx); err == nil {
		err = cerr
	}
	if err != nil {
		p.out.Flush()
		return err
	}
	return p.report(ctx)
}

// start sends the prompt.
func (p *printer) start(ctx context.Context) error {
	if p.o.Prompt == "" {
		return p.sess.Send(ctx, agent.Continue{})
	}
	p.input = "in-" + rand.Text()
	return p.sess.Send(ctx, agent.Prompt{ID: p.input, Text: p.o.Prompt})
}

func (p *printer) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return p.sess.Close(ctx)
}

// loop takes events until the turn has ended, with those that follow from what it has handed
// to agents.
func (p *printer) loop(ctx context.Context, events <-chan found) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case f, ok := <-events:
			if done, err := p.take(f, ok); done || err != nil {
				return err
			}
			if len(events) == 0 {
				if err := p.out.Flush(); err != nil {
					return err
				}
			}
		case sig := <-p.Signals:
			if err := p.signal(ctx, sig); err != nil || p.result.rests {
				return err // what has been said stands, and agents are not waited for any more
			}
		case <-tick.C:
			p.line.draw()
		case <-ctx.Done():
			return &Exited{Code: ExitTerminated, Err: context.Cause(ctx)}
		}
	}
}

// signal interrupts the turn, or ends the program. A second interrupt does not
// wait for the turn.
func (p *printer) signal(ctx context.Context, sig os.Signal) error {
	p.stops++
	switch {
	case isTerm(sig):
		return &Exited{Code: ExitTerminated}
	case p.stops > 1:
		return &Exited{Code: ExitInterrupted}
	}
	return p.sess.Send(ctx, agent.Interrupt{})
}

// take folds one event into the outcome. done means that the turn has ended.
func (p *printer) take(f found, ok bool) (done bool, err error) {
	f.taken()
	if f.err != nil {
		return true, f.err
	}
	if !ok {
		return true, fmt.Errorf("%s", p.Text.Say(text.PrintEnded))
	}
	old := !f.event.Live() && f.event.Seq <= p.sess.Info.Head
	if p.o.Format == FormatNDJSON && (!old || p.o.Open.Session == "") {
		if err := p.event(f.event); err != nil {
			return true, err
		}
	}
	if old {
		if p.o.Open.Fork == "" { // else it was used by that one
			p.result.Apply(f.event)
		}
		return false, nil
	}
	p.verbose(f.event)
	p.mentioned(f.event)
	p.hooked(f.event)
	done = p.result.event(f.event, p.input)
	p.line.event(p.result.Turn)
	return done, nil
}

// verbose tells of a call that is done.
func (p *printer) verbose(e agent.Event) {
	b, ok := e.Body.(agent.CallFinished)
	if !ok || !p.o.Verbose {
		return
	}
	var c agent.Call
	if known := p.result.Call(b.Result.ID); known != nil && known.Call.Verdict != "" {
		c = known.Call.Call
	}
	p.line.erase()
	fmt.Fprintln(p.Err, joined(callLine(c, p.o.Open.Workdir), summary(p.Text, b), millis(b.Millis)))
}

// mentioned tells what the prompt names and was not read, and with Verbose what the
// model has read besides.
func (p *printer) mentioned(e agent.Event) {
	b, ok := e.Body.(agent.ContextAdded)
	if left := b.Source == "mention" && b.Title != ""; !ok || p.o.Format != FormatText || !left && !p.o.Verbose {
		return
	}
	p.line.erase()
	fmt.Fprintln(p.Err, contextLine(p.Text, b))
}

// event writes an event as the log has it.
func (p *printer) event(e agent.Event) error {
	if e.Live() && !p.o.Live {
		return nil
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = p.out.Write(append(data, '\n'))
	return err
}

// report writes the outcome.
func (p *printer) report(ctx context.Context) error {
	r := &p.result
	switch p.o.Format {
	case FormatJSON:
		data, err := json.Marshal(p.object(ctx))
		if err != nil {
			return err
		}
		p.out.Write(append(data, '\n'))
	case FormatText:
		answer := r.Shown()
		if formed := r.Formed(); formed != nil || p.o.Open.Schema != nil || r.End().Problem == agent.ProblemForm {
			answer = string(formed) // or nothing: whoever asked for JSON reads no text
		}
		if p.o.Terminal {
			answer = text.Clean(answer)
		}
		if answer != "" {
			p.out.WriteString(strings.TrimSuffix(answer, "\n") + "\n")
		}
	}
	if err := p.out.Flush(); err != nil {
		return err
	}
	p.denials()
	p.deferred()
	p.pending()
	code := turnCode(r.End())
	if code == ExitOK {
		return nil
	}
	if message, fix := r.why(p.Text); message != "" && p.o.Format != FormatText {
		reportJSON(p.Err, r.code(), message, fix)
	} else if message != "" {
		fmt.Fprintln(p.Err, p.Text.Say(text.Error, "message", text.Clean(message)))
		if fix != "" {
			fmt.Fprintln(p.Err, text.Clean(fix))
		}
	}
	return &Exited{Code: code, Err: fmt.Errorf("the turn ended: %s", r.End().Reason)}
}

// object returns the outcome as programs read it.
func (p *printer) object(ctx context.Context) view.Result {
	why := ""
	if p.result.End().Reason != agent.EndDone {
		why, _ = p.result.why(p.Text)
	}
	o := p.result.Result(why)
	o.DurationMS = p.Now().Sub(p.began).Milliseconds()
	if models, err := client.Query[[]agent.ModelInfo](ctx, p.Client, query.ListModels{}); err == nil { // else less is said of them
		o.Describe(models)
	}
	return o
}

// deferred says that a call was put aside, and how it is gone on with.
func (p *printer) deferred() {
	if b := p.result.Aside(); b != nil {
		fmt.Fprintln(p.Err, deferredLine(p.Text, *b, p.o.Open.Workdir))
		fmt.Fprintln(p.Err, p.Text.Say(text.HookDeferredFix, "session", p.result.session))
	}
}

// pending says which tasks still ran in the background: they end with the session.
func (p *printer) pending() {
	var list []string
	for _, t := range p.result.pending() {
		if line := signInLine(p.Text, t.Result); line != "" { // it outlives the session
			fmt.Fprintln(p.Err, line)
			fmt.Fprintln(p.Err, p.Text.Say(text.PrintSignInFix))
			continue
		}
		t.Call.Tool = t.Tool // the call is not known when it was made before our time
		list = append(list, callLine(t.Call, p.o.Open.Workdir))
	}
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(p.Err, p.Text.Say(text.PrintPending, "n", len(list), "list", strings.Join(list, ", ")))
	if !p.o.Open.Scratch {
		fmt.Fprintln(p.Err, p.Text.Say(text.PrintPendingFix, "session", p.result.session))
	}
}

// denials says what was denied, because nobody was there to see it.
func (p *printer) denials() {
	denied := p.result.Denied()
	if len(denied) == 0 {
		return
	}
	fmt.Fprintln(p.Err, p.Text.Say(text.PrintDenied, "n", len(denied)))
	for _, d := range denied {
		line := "  " + toolName(d.Call.Tool)
		if arg := mainArg(d.Call, p.o.Open.Workdir); arg != "" {
			line += " " + text.Cut(arg, 100)
		}
		if d.Reason != "" {
			line += " · " + text.Cut(p.Text.Phrase(text.OneLine(bounded(d.Reason))), 160)
		}
		fmt.Fprintln(p.Err, line)
	}
	fix := text.PrintDeniedFix
	if !slices.ContainsFunc(denied, func(d view.Denial) bool { return !d.Hook }) {
		fix = text.FixHook // rules would not help
	}
	fmt.Fprintln(p.Err, p.Text.Say(fix))
}
