package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
)

// maxSlow bounds the requests that are answered beside the loop at once.
const maxSlow = 32

// An answer answers a request of the host, whose members are body. What takes long is
// returned as a [slow], and runs beside the loop.
type answer func(h *Host, body json.RawMessage) (any, error)

// with reads the members of a request for do, which is called if there is what it needs.
func with[T any](needs func(*Host) error, do func(*Host, T) (any, error)) answer {
	return func(h *Host, body json.RawMessage) (any, error) {
		var in T
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, fmt.Errorf("request: %w", err)
		}
		if err := needs(h); err != nil {
			return nil, err
		}
		return do(h, in)
	}
}

// anytime is the need of requests that need nothing.
func anytime(*Host) error { return nil }

// opened is the need of requests about the session.
func opened(h *Host) error {
	if h.sess == nil {
		return errNotOpen
	}
	return nil
}

// able is the need of requests about the session and the program.
func able(h *Host) error {
	if h.sess != nil && h.prog.API == nil {
		return errNoAPI
	}
	return opened(h)
}

// slow is an answer that takes long. It runs beside the loop, and must not touch what
// belongs to that.
type slow func(ctx context.Context) (any, error)

// reports has a query asked beside the loop, and answers with what show makes of the report.
func reports[T any](h *Host, q agent.Query, show func(context.Context, T) any) (any, error) {
	c := h.prog.Client
	return slow(func(ctx context.Context) (any, error) {
		v, err := client.Query[T](ctx, c, q)
		if err != nil {
			return nil, err
		}
		return show(ctx, v), nil
	}), nil
}

// requests are the requests that are answered, by subtype. Those in the control files
// answer for what lies behind the conversation.
func requests() map[string]answer {
	all := map[string]answer{
		"initialize": (*Host).initialize,
		"interrupt":  (*Host).interrupted,
	}
	maps.Copy(all, controls())
	return all
}

// known is the table of requests, made once.
var known = sync.OnceValue(requests)

// request answers a request of the host. Every one is answered, and once.
func (h *Host) request(l line) {
	var head struct {
		Subtype string `json:"subtype"`
	}
	if l.RequestID == "" {
		h.garbage(errors.New("a control_request has no request_id"))
		return
	}
	if err := json.Unmarshal(l.Request, &head); err != nil {
		h.reply(l.RequestID, nil, fmt.Errorf("request: %w", err))
		return
	}
	do := known()[head.Subtype]
	if do == nil {
		h.replyCode(l.RequestID, "unsupported_request", fmt.Errorf("unsupported control request subtype: %q", head.Subtype))
		return
	}
	if head.Subtype != "initialize" && !h.begun {
		if h.c.Awaits {
			h.reply(l.RequestID, nil, errors.New("send initialize first"))
			return
		}
		if err := h.begin(nil); err != nil {
			h.reply(l.RequestID, nil, err)
			return
		}
	}
	v, err := do(h, l.Request)
	later, ok := v.(slow)
	if !ok || err != nil {
		h.reply(l.RequestID, v, err)
		return
	}
	h.slow++
	h.wg.Go(func() {
		v, err := h.slowly(later)
		h.reply(l.RequestID, v, err)
		select {
		case h.events <- found{then: func() { h.slow-- }}:
		case <-h.ctx.Done():
		}
	})
}

// slowly runs an answer as soon as there is room for it.
func (h *Host) slowly(do slow) (any, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
		return do(h.answers)
	case <-h.answers.Done():
		return nil, context.Cause(h.answers)
	}
}

// hurry ends the wait for answers once the input has ended: first they are cut short, and
// what still has not come then is not waited for.
func (h *Host) hurry() {
	if h.answers.Err() != nil {
		h.late = true
		return
	}
	h.cut(errGone)
	h.patience = time.NewTimer(closeTime)
}

// reply answers a request. It is safe for concurrent use.
func (h *Host) reply(id string, v any, err error) {
	if err != nil {
		code := ""
		if errors.Is(err, errBusy) {
			code = "reload_plugins_busy"
		}
		h.replyCode(id, code, err)
		return
	}
	if v == nil {
		v = struct{}{}
	}
	h.out.put(replied{Type: "control_response", Response: answered{Subtype: "success", RequestID: id, Response: v}})
}

func (h *Host) replyCode(id, code string, err error) {
	h.out.put(replied{Type: "control_response", Response: answered{Subtype: "error", RequestID: id, Error: h.words(err), Code: code}})
}

type replied struct {
	Type     string   `json:"type"`
	Response answered `json:"response"`
}

type answered struct {
	Subtype   string `json:"subtype"`
	RequestID string `json:"request_id"`
	Response  any    `json:"response,omitempty"`
	Error     string `json:"error,omitempty"`
	Code      string `json:"error_code,omitempty"`
}

// calls are the requests that the host has not answered yet. They are safe for concurrent
// use.
type calls struct {
	mu   sync.Mutex
	n    int
	open map[string]chan came // buffered; guarded by mu
	err  error                // why nothing is asked any more; guarded by mu
}

// came is what the host has answered.
type came struct {
	response json.RawMessage
	err      error
}

func newCalls() *calls { return &calls{open: map[string]chan came{}} }

// begin returns the ID of a new request, and where its answer comes.
func (c *calls) begin() (string, chan came, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return "", nil, c.err
	}
	c.n++
	id := "dure_" + strconv.Itoa(c.n)
	ch := make(chan came, 1)
	c.open[id] = ch
	return id, ch, nil
}

// end forgets a request, and reports whether it was open.
func (c *calls) end(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := c.open[id]
	delete(c.open, id)
	return open
}

// answer takes an answer of the host. One to a request that is not open does not count.
func (c *calls) answer(response json.RawMessage) {
	var r struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
		Error     string          `json:"error"`
	}
	if json.Unmarshal(response, &r) != nil {
		return
	}
	c.mu.Lock()
	ch := c.open[r.RequestID]
	delete(c.open, r.RequestID)
	c.mu.Unlock()
	if ch == nil {
		return
	}
	if r.Subtype != "success" {
		if r.Error == "" {
			r.Error = "the host has answered with an error"
		}
		ch <- came{err: hostError(r.Error)}
		return
	}
	ch <- came{response: r.Response}
}

// hostError is an error that the host has answered with.
type hostError string

func (e hostError) Error() string { return string(e) }

// tooLongError is why the host is not asked something that has so many bytes.
type tooLongError int

func (e tooLongError) Error() string {
	return fmt.Sprintf("the host cannot be asked, because the request has %d bytes, and hosts take at most %d", int(e), maxOut)
}

// close ends all requests: the host does not answer any more.
func (c *calls) close(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	for _, id := range slices.Collect(maps.Keys(c.open)) {
		c.open[id] <- came{err: err}
		delete(c.open, id)
	}
}

// Ask asks the host, with the members of request, of which one is its subtype, and returns
// what it answers. A request that nobody needs any more, because ctx is done, is taken back.
// The error is [errGone] where the host cannot answer any more, a [tooLongError] where the
// request does not fit in a line, of which nothing may be cut that somebody decides about, and a
// [hostError] where the host answers with one. It is safe for concurrent use, and must not be called by the loop.
func (h *Host) Ask(ctx context.Context, request any) (json.RawMessage, error) {
	id, ch, err := h.calls.begin()
	if err != nil {
		return nil, err
	}
	data, err := marshal(struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
		Request   any    `json:"request"`
	}{"control_request", id, request})
	if err == nil && len(data) > maxOut {
		err = tooLongError(len(data))
	}
	if err != nil {
		h.calls.end(id)
		return nil, err
	}
	h.out.line(data)
	select {
	case a := <-ch:
		return a.response, a.err
	case <-ctx.Done():
		if h.calls.end(id) {
			h.out.put(map[string]string{"type": "control_cancel_request", "request_id": id})
		}
		return nil, context.Cause(ctx)
	}
}
