// Package sdk lets programs that drive agent sessions over lines of JSON use dure as their
// executable: the Agent SDKs for TypeScript and Python, and scripts that speak as they do.
//
// It is a projection: the events of a session become messages on the output, and lines of
// the input become commands. It keeps no state of a session beyond what messages need, and
// decides nothing. One goroutine, that of [Host.Run], turns events and lines into each
// other; one reads the input and ends with it, one writes, one waits for signals, and one
// follows each session whose events are shown. The output carries the protocol alone.
package sdk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/client/ahead"
	"dure/internal/frontend/text"
)

// The bounds of the life of a host.
const (
	closeTime = 10 * time.Second // for a session to end
	drainTime = 30 * time.Second // for a slow reader to take what is left, at the end
	cutTime   = 2 * time.Second  // the same, where the program was told to end
	jobGrace  = 5 * time.Second  // for commands in the background, once nobody listens
	slowTime  = 30 * time.Second // for answers to requests that came before the end of the input
	usualWait = 10 * time.Minute // for agents in the background
	maxEvents = 256              // events that are ahead of the messages made of them, of ahead.Most bytes
	maxAhead  = 16 << 10         // lines that were read and not looked at yet
)

// Options say what of a session is shown, and how.
type Options struct {
	Prompt string // the task; with Lines it is none, and messages come on the input
	Lines  bool   // the input has lines, and is not over before it ends
	Awaits bool   // with Lines: nothing begins before the host has said how

	Partial bool // answers as they are made, too
	Replay  bool // messages of the user are sent back once they are taken
	Hooks   bool // what hooks do, too
	States  bool // whether the session is at rest, too
	Forward bool // what agents say, and not only what they do
	Whole   bool // what its store of sessions gets may be in lines of any length

	// Wait is how long agents in the background are waited for once the input has ended;
	// 0 = 10 minutes, negative = for ever.
	Wait time.Duration
}

// Config is what a host needs. All fields but Signals are required.
type Config struct {
	Options
	In      io.Reader
	Out     io.Writer // the protocol, and nothing else
	Err     io.Writer // what is wrong, for people
	Signals <-chan os.Signal
	Now     func() time.Time
	Text    text.Catalog

	// Start builds the program, once, when it is known what the host wants of it; init is
	// nil where it has not said anything.
	Start func(ctx context.Context, init *Initialize) (Program, error)
}

// Program is what a host has of the program that was built for it.
type Program struct {
	Client  client.Client
	Open    agent.Open // the session
	Rewind  int64      // the event behind which a session that is resumed forgets its end; 0 = it does not
	Version string
	Workdir string
	Name    func(canonical string) string // of a tool, as hosts know it

	// Asks says that the host answers what a session asks.
	Asks bool

	// Bypass says that the host may switch permissions off while the session runs.
	Bypass bool

	// KeySource says where the model's key comes from, in the words of the protocol.
	KeySource string

	// Mirrored returns once what an event of a session says has been handed to [Host.Mirrored],
	// or ctx is done. nil = nothing is.
	Mirrored func(ctx context.Context, session string, seq int64)

	Retries int // of a request that fails

	// API is what requests need beside the client; nil = those that need it fail.
	API HostAPI

	// Protocol is the version in which servers inside of the host are spoken with.
	Protocol string
}

// Host serves one host over its streams. Its fields belong to the goroutine of Run, but for
// those that say otherwise.
type Host struct {
	c     Config
	lines chan line
	out   *outbox // safe for concurrent use
	calls *calls  // safe for concurrent use

	ctx       context.Context // of the host; ends it
	cancel    context.CancelCauseFunc
	wg        sync.WaitGroup // of what follows sessions, and of what answers aside
	events    chan found
	ahead     *ahead.Room        // of those
	following context.Context    // of what follows sessions
	stop      context.CancelFunc // ends that

	prog    Program
	init    *Initialize  // what the host has said; nil = nothing
	plugins []pluginLine // in force; nil = they have to be asked for
	sess    *client.Session
	session string // its ID, also before it is open
	begun   bool   // it was tried to begin
	queue   []message
	kept    []message // that ask for no answer
	eof     bool
	grace   *time.Timer
	beat    *time.Ticker // while calls or hooks run; nil = none does

	show     show
	failed   bool  // the newest result is an error
	code     int   // that the program ends with
	fatal    error // why nothing goes on
	closing  bool  // the session was told to end
	expired  bool  // what goes on in the background is not waited for any more
	parting  bool  // the input has ended, and what goes on in the background is waited for
	state    string
	bad      int             // lines that are no messages
	seen     map[string]bool // IDs of messages
	slots    chan struct{}   // of answers that take long
	slow     int             // of those, how many have not come
	late     bool            // they are not waited for any more
	answers  context.Context // of those
	cut      context.CancelCauseFunc
	patience *time.Timer // with those, once the input has ended; nil = it has not
	reached  reached     // safe for concurrent use
	control
}

// New returns a host.
func New(c Config) *Host {
	return &Host{c: c, lines: make(chan line, maxAhead), calls: newCalls(), slots: make(chan struct{}, maxSlow), events: make(chan found, maxEvents), ahead: ahead.New(ahead.Most)}
}

// found is an event of a session, or the error that ended its events.
type found struct {
	session string // "" = the host's own
	event   agent.Event
	err     error
	over    bool  // there are no more
	size    int64 // of the event

	then func() // is for the loop to do; nil = it is an event
}

// The codes that a host ends with.
const (
	codeOK         = 0
	codeFailed     = 1
	codeTerminated = 143
)

// errTerminated is the cause of a host that was told to end.
var errTerminated = errors.New("terminated")

// Run serves the host until its input has ended and everything is done, or ctx is. It
// returns the exit code.
func (h *Host) Run(ctx context.Context) int {
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	defer h.cancel(nil)
	h.answers, h.cut = context.WithCancelCause(h.ctx)
	defer h.cut(nil)
	h.session = newUUID()
	h.out = newOutbox(h.ctx, h.c.Out)
	interrupts := make(chan struct{}, 1)
	over := make(chan struct{})
	defer close(over)
	go h.signals(interrupts, over)
	if h.c.Lines {
		go h.read(h.c.In) // ends with the input, or the program
	} else {
		h.queue, h.eof = []message{{Text: h.c.Prompt, ID: newUUID()}}, true
		_ = h.begin(nil) // it has told why not
	}
	h.loop(interrupts)
	if h.beat != nil {
		h.beat.Stop()
	}
	h.close()
	limit := drainTime
	if h.code == codeTerminated {
		limit = cutTime
	}
	if err := h.out.close(limit); err != nil && h.code == codeOK {
		h.complain(fmt.Errorf("writing messages: %w", err))
		h.code = codeFailed
	}
	return h.code
}

// signals takes signals over: an interrupt ends a turn, all else the program. So does an
// interrupt that does not get through, because the host does not read what is written: the
// second of them at once, and one alone after a while.
func (h *Host) signals(interrupts chan<- struct{}, over <-chan struct{}) {
	late := time.NewTimer(drainTime)
	defer late.Stop()
	late.Stop()
	stuck := func() bool { return len(interrupts) > 0 && h.out.waits.Load() > 0 }
	for {
		select {
		case s := <-h.c.Signals:
			if s != os.Interrupt || stuck() {
				h.cancel(errTerminated)
				return
			}
			select {
			case interrupts <- struct{}{}:
				late.Reset(drainTime)
			default:
			}
		case <-late.C:
			if stuck() {
				h.cancel(errTerminated)
				return
			}
		case <-over:
			return
		}
	}
}

// loop turns lines and events into each other until there is nothing left to do.
func (h *Host) loop(interrupts <-chan struct{}) {
	for !h.done() {
		var grace <-chan time.Time
		if h.grace != nil {
			grace = h.grace.C
		}
		var patience <-chan time.Time
		if h.patience != nil {
			patience = h.patience.C
		}
		var beat <-chan time.Time
		if h.beat != nil {
			beat = h.beat.C
		}
		select {
		case l, ok := <-h.lines:
			if !ok {
				h.lines, h.eof = nil, true
				h.calls.close(errGone)
				break
			}
			h.line(l)
		case f := <-h.events:
			h.ahead.Give(f.size)
			h.event(f)
		case <-interrupts:
			h.interrupt()
		case <-beat:
			h.beats()
		case <-grace:
			h.grace = nil
			h.expire()
		case <-patience:
			h.hurry()
		case <-h.out.gone:
			h.code, h.fatal = codeFailed, errGone
		case <-h.ctx.Done():
			h.code, h.fatal = codeFailed, context.Cause(h.ctx)
			if errors.Is(h.fatal, errTerminated) {
				h.code = codeTerminated
			}
		}
		h.next()
	}
}

// begin builds the program and opens the session, once. The error is for the host.
func (h *Host) begin(init *Initialize) error {
	h.begun, h.init = true, init
	p, err := h.c.Start(h.ctx, init)
	if err != nil {
		return h.fail(err)
	}
	h.prog = p
	if p.Open.New == "" && p.Open.Session == "" {
		p.Open.New = h.session
	} else if p.Open.New != "" {
		h.session = p.Open.New
	} else {
		h.session = p.Open.Session
	}
	p.Open.Approver = p.Asks
	if h.sess, err = p.Client.Open(h.ctx, p.Open); err != nil {
		return h.fail(err)
	}
	h.session = h.sess.Info.ID
	if p.Rewind > 0 {
		if err := h.sess.Send(h.ctx, agent.Rewind{To: p.Rewind, Conversation: true}); err != nil {
			return h.fail(err)
		}
	}
	h.show.reset(h)
	h.following, h.stop = context.WithCancel(context.WithoutCancel(h.ctx))
	h.follow(h.following, "", h.sess, 0)
	return nil
}

// fail ends the host because nothing can begin: the reason is told as a result, and on the
// standard error.
func (h *Host) fail(err error) error {
	h.fatal, h.code = err, codeFailed
	h.failure(err)
	return err
}

// words are an error as people read it.
func (h *Host) words(err error) string {
	if p := agent.ProblemOf(err); p != nil {
		message, fix := h.c.Text.Problem(p)
		return strings.TrimSpace(message + "\n" + fix)
	}
	return h.c.Text.Phrase(err.Error())
}

// complain says on the standard error what is wrong.
func (h *Host) complain(err error) {
	fmt.Fprintln(h.c.Err, h.c.Text.Say(text.Error, "message", text.Clean(h.words(err))))
}

// follow hands the events of a session on. The goroutine ends with ctx.
func (h *Host) follow(ctx context.Context, id string, s *client.Session, after int64) {
	h.wg.Go(func() {
		for e, err := range s.Events(ctx, after) {
			if ctx.Err() != nil || !h.hand(ctx, found{session: id, event: e, err: err}) {
				return
			}
			if err != nil {
				return
			}
		}
		h.hand(ctx, found{session: id, over: true})
	})
}

// hand hands an event on, as soon as what is ahead leaves room for it. It reports whether it
// has: not when ctx is done before.
func (h *Host) hand(ctx context.Context, f found) bool {
	f.size = ahead.Weight(f.event)
	if !h.ahead.Take(ctx, f.size) {
		return false
	}
	select {
	case h.events <- f:
		return true
	case <-ctx.Done():
		h.ahead.Give(f.size)
		return false
	}
}

// close ends the session and waits for whatever runs for it.
func (h *Host) close() {
	h.calls.close(errGone)
	h.closing = true
	if h.code == codeTerminated {
		h.out.mute() // nothing is told of what is cut short
	}
	if h.sess != nil {
		ctx, done := context.WithTimeout(context.WithoutCancel(h.ctx), closeTime)
		if err := h.sess.Close(ctx); err != nil && h.code == codeOK {
			h.complain(err)
			h.code = codeFailed
		}
		h.drain(h.left(ctx))
		done()
	}
	if h.stop != nil {
		h.stop()
	}
	h.cancel(nil)
	h.wg.Wait()
}

// left is the last event of the session's if others of this program use it, and it goes on
// without the host; 0 = it has ended.
func (h *Host) left(ctx context.Context) int64 {
	info, err := client.Query[agent.SessionInfo](ctx, h.prog.Client, agent.FindSession{Name: h.session})
	if err != nil || info.Status != "running" {
		return 0
	}
	return info.Head
}

// drain takes the last events of the session, which it had stored when it was closed: all of
// them, or those up to one.
func (h *Host) drain(last int64) {
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	for !h.show.over && (last == 0 || h.show.Seq < last) {
		select {
		case f := <-h.events:
			h.ahead.Give(f.size)
			h.event(f)
		case <-timer.C:
			return
		}
	}
}

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
