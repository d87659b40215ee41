// Package control is the front-end for hosts that speak the native control protocol, over
// a pair of streams: sessions by their IDs, requests in, events out.
//
// It decides nothing and keeps no state of a session: what it sends is made of the session's
// events, and what needs somebody's word is put to the host. Of a connection, one goroutine
// takes requests, one writes, one each carries out what a session is asked for, follows its
// events, and waits for an answer of the host. All of them end with [Serve], but for one that
// waits for input, which ends with that.
package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/client/protocol"
	"dure/internal/frontend/text"
)

// The bounds of a connection.
const (
	maxSessions = 16
	maxRequests = 1024     // that are not answered yet
	maxHeld     = 64 << 20 // bytes of them
	maxPast     = 256      // answers of the host that are remembered, for those that come late

	finishTime = 10 * time.Minute // what was asked for before the input ended may take so long
	closeTime  = 5 * time.Second
	writeTime  = 30 * time.Second // a host that reads nothing is waited for so long at the end
)

// Conn carries messages.
type Conn interface {
	// Read returns the next message, which is the caller's; [protocol.ErrTooLong] stands
	// for one that is too long, and io.EOF for the end.
	Read() ([]byte, error)

	// Write writes one message, which has no line end.
	Write(data []byte) error
}

// Begin is what a host wants of the program that its sessions run in.
type Begin struct {
	Settings json.RawMessage // nil = nothing
	Agents   json.RawMessage // an object; nil = nothing

	// Hooks are those of the host, as settings have them, of the type callback; nil = it
	// has none. Call has one of them answer; call is the ID of the call that it is about.
	Hooks json.RawMessage
	Call  func(ctx context.Context, callback string, input []byte, call string) ([]byte, error)
}

// Program is what sessions run in.
type Program struct {
	Client  client.Client
	Workdir string     // absolute
	Mode    agent.Mode // of a new session
	Text    text.Catalog
}

// Config says what hosts are served with. All fields are required unless they say otherwise.
type Config struct {
	Version string // of dure
	Logger  *slog.Logger

	Text text.Catalog // of what goes wrong before there is a program

	// Start returns the program, when a host has said what it wants. It is called once for
	// each connection.
	Start func(context.Context, Begin) (Program, error)

	// Own says that the host has started the program for itself: it may bring settings.
	Own bool

	// Lasting says that the end of the input is that of the host's requests alone: what
	// they have asked for is finished. Else the host is gone.
	Lasting bool
}

// conn is a connection.
type conn struct {
	cfg  Config
	out  *outbox
	life context.Context // ends when nothing more is to be done
	end  context.CancelCauseFunc
	left sync.Once
	gone chan struct{}  // closed when all that works for it has ended
	wg   sync.WaitGroup // of what works for sessions
	name string         // as which the host decides

	begun   bool // with Initialize; of the goroutine that takes requests
	program Program
	host    protocol.InitializePayload

	mu       sync.Mutex
	open     map[string]*request // not answered yet, by ID; guarded by mu
	held     int                 // bytes of them; guarded by mu
	idle     chan struct{}       // closed when there is none of them; nil = nobody waits; guarded by mu
	sessions map[string]*session // by ID; guarded by mu
	first    *session            // guarded by mu
	all      map[*session]bool   // those too that are being opened; guarded by mu
	asks     map[string]*ask     // by ID; guarded by mu
	past     map[string]string   // what became of those that are over; guarded by mu
	order    []string            // of past; guarded by mu
	deaf     bool                // the host answers nothing any more; guarded by mu
}

// request is a request that is not answered yet.
type request struct {
	protocol.Message
	size int
}

var (
	errGone   = errors.New("the host is gone")
	errClosed = &protocol.Error{Code: protocol.CodeClosing, Message: "the connection ends"}
)

// Serve serves one host until its input ends, it says that it goes, or ctx is done.
func Serve(ctx context.Context, cfg Config, rw Conn) error {
	c := &conn{
		cfg: cfg, gone: make(chan struct{}), open: map[string]*request{}, sessions: map[string]*session{}, all: map[*session]bool{}, asks: map[string]*ask{}, past: map[string]string{},
	}
	c.program.Text = cfg.Text
	c.life, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	defer c.end(nil)
	c.out = newOutbox()
	defer context.AfterFunc(ctx, func() { c.giveUp(closeTime) })()
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.out.drain(rw)
	}()
	err := c.serve(ctx, c.read(rw))
	c.leave()
	c.out.finish()
	c.out.await(written, writeTime) // whoever owns the streams ends a write with them
	if errors.Is(err, errGone) {
		err = nil
	}
	return err
}

// incoming is what was read.
type incoming struct {
	data []byte
	err  error
}

// read has the input read, until it ends.
func (c *conn) read(rw Conn) <-chan incoming {
	in := make(chan incoming)
	go func() {
		for {
			data, err := rw.Read()
			select {
			case in <- incoming{data, err}:
			case <-c.life.Done():
				return
			}
			if err != nil && !errors.Is(err, protocol.ErrTooLong) {
				return
			}
		}
	}()
	return in
}

// serve takes requests until there are no more.
func (c *conn) serve(ctx context.Context, in <-chan incoming) error {
	for {
		select {
		case i := <-in:
			switch {
			case errors.Is(i.err, protocol.ErrTooLong):
				c.tell("", "", i.err)
			case errors.Is(i.err, io.EOF) && c.cfg.Lasting && !(c.cfg.Own && c.host.EndWithInput):
				return c.finish(ctx)
			case i.err != nil:
				return errGone
			case c.take(i.data):
				return nil
			}
		case <-c.out.broken():
			return errGone
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// take takes one message, and reports whether it was the last.
func (c *conn) take(data []byte) (last bool) {
	m, err := protocol.Decode(data)
	if err == nil && m.ID == "" {
		err = &protocol.Error{Code: protocol.CodeMalformed, Message: "the request has no id", Fix: "give each request an id of its own: its answer has it"}
	}
	if err != nil {
		c.tell(m.ID, m.Type, err)
		return false
	}
	do, known := requests[m.Type]
	switch {
	case !known:
		err = &protocol.Error{Code: protocol.CodeUnknownType, Message: "there is no request of the type " + text.Cut(text.ExactLine(string(m.Type)), maxName)}
	case m.Type == protocol.TypeInitialize && c.begun:
		err = &protocol.Error{Code: protocol.CodeInitialized, Message: "the connection is initialized already"}
	case m.Type != protocol.TypeInitialize && !c.begun:
		err = &protocol.Error{Code: protocol.CodeNotInitialized, Message: "the first request has to be Initialize"}
	case m.Type == protocol.TypeTerminate && m.Session == "":
		c.leave()
		c.send(protocol.TypeNotification, m.ID, "", replyTo(m))
		return true
	}
	if err != nil {
		c.tell(m.ID, m.Type, err)
		return false
	}
	r := &request{m, len(data)}
	if err := c.begin(r); err != nil {
		c.tell(m.ID, m.Type, err)
		return false
	}
	do(c, r)
	return false
}

// begin notes that a request is to be answered.
func (c *conn) begin(r *request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.open[r.key()] != nil:
		return &protocol.Error{Code: protocol.CodeDuplicateID, Message: "a request with this id is not answered yet"}
	case len(c.open) >= maxRequests || c.held+r.size > maxHeld:
		return &protocol.Error{Code: protocol.CodeBusy, Message: "too many requests are not answered yet", Fix: "wait for answers before sending more"}
	}
	c.open[r.key()], c.held = r, c.held+r.size
	return nil
}

// key is what a request is known by while it is open. Answers of the host have the ID of what
// they answer, and so a space of their own.
func (r *request) key() string {
	if r.Type == protocol.TypeCanUseToolResponse || r.Type == protocol.TypeHookCallback {
		return "\x00" + r.ID
	}
	return r.ID
}

// answered notes that a request is answered, and reports whether it was not before.
func (c *conn) answered(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[r.key()] != r {
		return false
	}
	delete(c.open, r.key())
	c.held -= r.size
	if len(c.open) == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
	return true
}

// answer answers a request.
func (c *conn) answer(r *request, t protocol.Type, session string, payload any) {
	if c.answered(r) {
		c.send(t, r.ID, session, payload)
	}
}

// reply answers a request that asks for nothing but to be carried out.
func (c *conn) reply(r *request, session string) {
	c.answer(r, protocol.TypeNotification, session, replyTo(r.Message))
}

func replyTo(m protocol.Message) protocol.NotificationData {
	return protocol.NotificationData{Kind: "reply", Request: m.Type}
}

// refuse answers a request with an error.
func (c *conn) refuse(r *request, err error) {
	if c.answered(r) {
		c.send(protocol.TypeError, r.ID, r.Session, c.explain(r.Type, err))
	}
}

// tell says that something is wrong with what was sent.
func (c *conn) tell(id string, t protocol.Type, err error) {
	if requests[t] == nil {
		t = ""
	}
	c.send(protocol.TypeError, id, "", c.explain(t, err))
}

// send writes a message that nobody may miss.
func (c *conn) send(t protocol.Type, id, session string, payload any) {
	data, err := protocol.Encode(t, id, session, payload)
	if err != nil {
		c.cfg.Logger.Error("a message cannot be sent", "type", t, "error", err)
		data, _ = protocol.Encode(protocol.TypeError, id, session, protocol.ErrorData{Code: protocol.CodeOf(err), Message: err.Error()})
	}
	c.out.put(data, replyRoom)
}

// finish waits until what was asked for is answered. The host answers nothing any more.
func (c *conn) finish(ctx context.Context) error {
	c.deafen()
	c.mu.Lock()
	if len(c.open) == 0 {
		c.mu.Unlock()
		return nil
	}
	idle := make(chan struct{})
	c.idle = idle
	c.mu.Unlock()
	late := time.NewTimer(finishTime)
	defer late.Stop()
	select {
	case <-idle:
		return nil
	case <-late.C:
		return nil
	case <-c.out.broken():
		return errGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// giveUp does not wait any longer than that for a host, whether or not it reads.
func (c *conn) giveUp(after time.Duration) {
	late := time.NewTimer(after)
	defer late.Stop()
	select {
	case <-late.C:
		c.out.fail(errGone)
	case <-c.gone:
	}
}

// leave closes the sessions, and answers what is not answered yet.
func (c *conn) leave() {
	c.left.Do(c.closeAll)
}

func (c *conn) closeAll() {
	c.deafen()
	go c.out.await(c.gone, writeTime)
	defer close(c.gone)
	c.mu.Lock()
	var open []*session
	for s := range c.all {
		open = append(open, s)
	}
	c.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range open {
		closing.Go(func() { s.close("") })
	}
	closing.Wait()
	c.end(errClosed)
	c.wg.Wait()
	c.mu.Lock()
	var unanswered []*request
	for _, r := range c.open {
		unanswered = append(unanswered, r)
	}
	c.mu.Unlock()
	for _, r := range unanswered {
		c.refuse(r, errClosed)
	}
}

// caller is the name by which decisions of a host are known: whose they are can be told
// where several have the same name.
func caller(name string) string {
	name = text.Cut(text.OneLine(name), maxName)
	if name == "" {
		name = "host"
	}
	return "control:" + name + "-" + rand.Text()[:4]
}
