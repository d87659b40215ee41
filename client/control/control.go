// Package control drives dure from a Go program, in the native control protocol: as a child
// process of its own, or through a server that runs.
//
// What the protocol says, package protocol has in types. Of a connection, one goroutine reads,
// one writes, and one each answers a question of dure's; all of them end with [Host.Close].
package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"dure/client/protocol"
)

// closeTime is how long each step of an end may take.
const closeTime = 10 * time.Second

// ErrClosed is what is returned when the connection has ended before there was an answer.
var ErrClosed = errors.New("the connection to dure has ended")

// Config says what a host wants. All fields may be empty.
type Config struct {
	// Initialize is what the host says of itself. CanUseTool is filled in, and of a child
	// EndWithInput.
	Initialize protocol.InitializePayload

	// CanUseTool answers whether a call may be made; nil = those that need somebody's word
	// are denied. Several may be asked at once. ctx is done when nobody waits any more.
	CanUseTool func(ctx context.Context, session string, q protocol.CanUseToolData) protocol.CanUseToolResponsePayload

	// Hook answers the events of Initialize.Hooks, as CanUseTool does.
	Hook func(ctx context.Context, session string, e protocol.HookEventData) protocol.HookCallbackPayload

	// Message is told each message that answers nothing, in order. Nothing else is read
	// while it runs: it makes no requests and waits for none.
	Message func(protocol.Message)
}

// transport carries messages.
type transport interface {
	Read() ([]byte, error)
	Write(data []byte) error
	Close() error // unblocks both
}

// Host is a connection to dure. It is safe for concurrent use.
type Host struct {
	cfg   Config
	t     transport
	hello protocol.InitializeResultData

	life    context.Context // of what answers dure
	end     context.CancelFunc
	working sync.WaitGroup

	out chan outgoing // to the goroutine that writes

	mu   sync.Mutex
	last int                              // of the IDs of requests; guarded by mu
	open map[string]chan protocol.Message // by ID; each has room for one; guarded by mu
	over error                            // why nothing is read any more; guarded by mu
}

// outgoing is a message to be written, whole, whoever still waits for that.
type outgoing struct {
	data  []byte
	wrote chan error // has room for what came of it
}

// begin says hello over a transport, which is closed if that fails.
func begin(ctx context.Context, t transport, cfg Config) (*Host, error) {
	h := &Host{cfg: cfg, t: t, out: make(chan outgoing), open: map[string]chan protocol.Message{}}
	h.life, h.end = context.WithCancel(context.WithoutCancel(ctx))
	h.working.Go(h.read)
	h.working.Go(h.write)
	p := cfg.Initialize
	p.CanUseTool = cfg.CanUseTool != nil
	if p.Version == 0 {
		p.Version = protocol.Version
	}
	m, err := h.ask(ctx, protocol.TypeInitialize, "", p)
	if err == nil {
		h.hello, err = protocol.Payload[protocol.InitializeResultData](m)
	}
	if err != nil {
		return nil, errors.Join(err, h.shut())
	}
	return h, nil
}

// Hello is what dure has said of itself.
func (h *Host) Hello() protocol.InitializeResultData { return h.hello }

// Open opens a session, and returns its ID.
func (h *Host) Open(ctx context.Context, o protocol.OpenSession) (string, error) {
	m, err := h.ask(ctx, protocol.TypeUserMessage, "", protocol.UserMessagePayload{Open: &o})
	return m.Session, err
}

// Say says something in a session, "" = the first of the connection, which is opened if need
// be. It returns what the turn has come to, with the session's ID, when that is over. When ctx
// is done before, the turn goes on: Interrupt stops it.
func (h *Host) Say(ctx context.Context, session string, p protocol.UserMessagePayload) (protocol.SessionResultData, string, error) {
	m, err := h.ask(ctx, protocol.TypeUserMessage, session, p)
	if err != nil || m.Type != protocol.TypeSessionResult { // a message without content is answered by a reply
		return protocol.SessionResultData{}, m.Session, err
	}
	res, err := protocol.Payload[protocol.SessionResultData](m)
	return res, m.Session, err
}

// Interrupt stops the turn that runs, if there is one.
func (h *Host) Interrupt(ctx context.Context, session string) error {
	_, err := h.ask(ctx, protocol.TypeInterrupt, session, protocol.InterruptPayload{})
	return err
}

// SetPermissionMode sets how calls are decided on.
func (h *Host) SetPermissionMode(ctx context.Context, session, mode string) error {
	_, err := h.ask(ctx, protocol.TypeSetPermissionMode, session, protocol.SetPermissionModePayload{Mode: mode})
	return err
}

// SetModel sets the model from the next step on.
func (h *Host) SetModel(ctx context.Context, session, model string) error {
	_, err := h.ask(ctx, protocol.TypeSetModel, session, protocol.SetModelPayload{Model: model})
	return err
}

// ContextUsage returns what fills the window of a session's model.
func (h *Host) ContextUsage(ctx context.Context, session string) (protocol.ContextUsage, error) {
	n, err := h.reply(ctx, protocol.TypeGetContextUsage, session, protocol.GetContextUsagePayload{})
	if err != nil || n.Context == nil {
		return protocol.ContextUsage{}, err
	}
	return *n.Context, nil
}

// RewindFiles puts files back.
func (h *Host) RewindFiles(ctx context.Context, session string, p protocol.RewindFilesPayload) (protocol.Rewound, error) {
	n, err := h.reply(ctx, protocol.TypeRewindFiles, session, p)
	if err != nil || n.Rewound == nil {
		return protocol.Rewound{}, err
	}
	return *n.Rewound, nil
}

// CloseSession closes one session; "" is none. [Host.Close] closes all of them.
func (h *Host) CloseSession(ctx context.Context, session string) error {
	if session == "" {
		return &protocol.Error{Code: protocol.CodeNoSession, Message: "no session is named"}
	}
	_, err := h.ask(ctx, protocol.TypeTerminate, session, protocol.TerminatePayload{})
	return err
}

// Close ends all sessions, and the connection. What runs is interrupted.
func (h *Host) Close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.life), closeTime)
	defer cancel()
	_, err := h.ask(ctx, protocol.TypeTerminate, "", protocol.TerminatePayload{})
	if errors.Is(err, ErrClosed) {
		err = nil // it has ended already
	}
	return errors.Join(err, h.shut())
}

// shut closes the connection, and waits for what works for it.
func (h *Host) shut() error {
	h.end()
	err := h.t.Close()
	h.working.Wait()
	return err
}

// reply makes a request that a reply answers.
func (h *Host) reply(ctx context.Context, t protocol.Type, session string, payload any) (protocol.NotificationData, error) {
	m, err := h.ask(ctx, t, session, payload)
	if err != nil {
		return protocol.NotificationData{}, err
	}
	return protocol.Payload[protocol.NotificationData](m)
}

// ask makes a request, and returns its answer; one that is an Error is a [*protocol.Error].
func (h *Host) ask(ctx context.Context, t protocol.Type, session string, payload any) (protocol.Message, error) {
	answer := make(chan protocol.Message, 1)
	h.mu.Lock()
	if h.over != nil {
		h.mu.Unlock()
		return protocol.Message{}, h.over
	}
	h.last++
	id := strconv.Itoa(h.last)
	h.open[id] = answer
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.open, id)
	}()
	data, err := protocol.Encode(t, id, session, payload)
	if err != nil {
		return protocol.Message{}, err
	}
	out, o := h.out, outgoing{data, make(chan error, 1)}
	for {
		select {
		case out <- o:
			out = nil
		case err := <-o.wrote: // once
			if err != nil {
				return protocol.Message{}, fmt.Errorf("%w: %w", ErrClosed, err)
			}
		case m, ok := <-answer:
			if !ok {
				return protocol.Message{}, h.why()
			}
			if err := errorIn(m); err != nil {
				return protocol.Message{}, err
			}
			return m, nil
		case <-ctx.Done():
			return protocol.Message{}, context.Cause(ctx)
		}
	}
}

// errorIn is the error that an answer is; nil = it is none.
func errorIn(m protocol.Message) error {
	if m.Type != protocol.TypeError {
		return nil
	}
	e, err := protocol.Payload[protocol.ErrorData](m)
	if err != nil {
		return err
	}
	return &protocol.Error{Code: e.Code, Message: e.Message, Fix: e.Fix}
}

func (h *Host) why() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// send has a message written that nothing answers, unless the connection ends before.
func (h *Host) send(t protocol.Type, id string, payload any) {
	data, err := protocol.Encode(t, id, "", payload)
	if err != nil {
		return // a host's word that is none: its time runs out
	}
	select {
	case h.out <- outgoing{data, make(chan error, 1)}:
	case <-h.life.Done(): // whoever is gone asks nothing
	}
}

// write writes messages, one after the other, until the connection ends.
func (h *Host) write() {
	for {
		select {
		case o := <-h.out:
			o.wrote <- h.t.Write(o.data)
		case <-h.life.Done():
			return
		}
	}
}

// read takes messages until there are no more.
func (h *Host) read() {
	var err error
	for {
		var data []byte
		if data, err = h.t.Read(); err != nil {
			break
		}
		var m protocol.Message
		if m, err = protocol.Decode(data); err != nil {
			break // dure does not speak so: nothing behind it can be relied upon
		}
		h.take(m)
	}
	if !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	} else {
		err = ErrClosed
	}
	h.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = err
	for _, answer := range h.open {
		close(answer)
	}
	clear(h.open)
}

// take takes a message.
func (h *Host) take(m protocol.Message) {
	switch m.Type {
	case protocol.TypeCanUseTool:
		h.working.Go(func() { h.decide(m) })
		return
	case protocol.TypeHookEvent:
		h.working.Go(func() { h.hook(m) })
		return
	}
	h.mu.Lock()
	answer := h.open[m.ID]
	delete(h.open, m.ID)
	h.mu.Unlock()
	switch {
	case answer != nil:
		answer <- m // it has room
	case m.ID == "" && h.cfg.Message != nil:
		h.cfg.Message(m)
	}
}

// decide answers whether a call may be made.
func (h *Host) decide(m protocol.Message) {
	word := protocol.CanUseToolResponsePayload{Behavior: "deny", Reason: "the host cannot read the question"}
	q, err := protocol.Payload[protocol.CanUseToolData](m)
	if err == nil && h.cfg.CanUseTool != nil {
		ctx, cancel := h.within(q.Timeout)
		defer cancel()
		word = h.cfg.CanUseTool(ctx, m.Session, q)
	}
	h.send(protocol.TypeCanUseToolResponse, m.ID, word)
}

// hook answers an event of hooks.
func (h *Host) hook(m protocol.Message) {
	word := protocol.HookCallbackPayload{Error: "the host cannot read the event"}
	e, err := protocol.Payload[protocol.HookEventData](m)
	if err == nil && h.cfg.Hook != nil {
		ctx, cancel := h.within(e.Timeout)
		defer cancel()
		word = h.cfg.Hook(ctx, m.Session, e)
	}
	if e.Timeout == 0 && err == nil {
		return // no answer is waited for
	}
	h.send(protocol.TypeHookCallback, m.ID, word)
}

// within is the time that an answer is waited for, in milliseconds.
func (h *Host) within(timeout int) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(h.life)
	}
	return context.WithTimeout(h.life, time.Duration(timeout)*time.Millisecond)
}
