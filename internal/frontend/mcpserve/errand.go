package mcpserve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asking is the name of the one thing that a result may ask for.
const asking = "approval"

// An errand is the work of one request. Work that has to ask the client's person may
// outlive the request: where the protocol has a server ask by its answer, the client comes
// back with the person's word, and the work goes on.
type errand struct {
	of       [sha256.Size]byte // the tool and its input
	asked    chan question
	progress chan string
	done     chan struct{} // closed when result and err are there
	result   *mcp.CallToolResult
	err      error
	cancel   context.CancelCauseFunc

	waits *question   // that the client was sent away with; guarded by Server.mu
	late  *time.Timer // ends it when the client does not come back; guarded by Server.mu
}

// question is one that a person is to answer.
type question struct {
	about *mcp.ElicitParams
	reply chan answer // buffered
}

// answer is what a person has said; err says why nobody has.
type answer struct {
	content map[string]any // nil = they would not
	err     error
}

// A person can be asked, if ask is not nil.
type person struct {
	ask  func(ctx context.Context, about *mcp.ElicitParams) (map[string]any, error)
	show func(text string) // how the work gets on
}

// canAsk reports whether the client of a request can ask its person.
func canAsk(c *mcp.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// carryOut does the work of a request, or goes on with it.
func (s *Server) carryOut(ctx context.Context, req *mcp.CallToolRequest, work func(context.Context, person) (*mcp.CallToolResult, error)) (*mcp.CallToolResult, error) {
	e, err := s.resume(req)
	if err == nil && e == nil {
		e, err = s.begin(req, work)
	}
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { e.cancel(context.Cause(ctx)) })
	defer stop()
	for n := 1.0; ; {
		select {
		case <-e.done:
			return e.result, e.err
		case text := <-e.progress:
			if token := req.Params.GetProgressToken(); token != nil {
				// A client that is gone has its request cancelled, and needs no progress.
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: text})
				n++
			}
		case q := <-e.asked:
			if req.ProtocolVersion() < newestForm {
				q.reply <- elicit(ctx, req.Session, q.about)
				continue
			}
			if !stop() {
				q.reply <- answer{err: context.Cause(ctx)}
				continue
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{asking: q.about}, RequestState: s.park(e, q)}, nil
		}
	}
}

// begin starts the work of a request. It is refused when too much runs already.
func (s *Server) begin(req *mcp.CallToolRequest, work func(context.Context, person) (*mcp.CallToolResult, error)) (*errand, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("%d requests run already; try again when one has ended", maxAtOnce)}
	}
	e := &errand{of: identity(req), asked: make(chan question), progress: make(chan string, 16), done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(s.life)
	e.cancel = cancel
	p := person{show: e.show}
	if canAsk(req.ClientCapabilities()) {
		p.ask = e.ask
	}
	s.wg.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				s.c.Logger.Error("a request of a client panicked", "tool", req.Params.Name, "panic", v)
				e.result, e.err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
			cancel(nil)
			<-s.slots
			close(e.done)
		}()
		e.result, e.err = work(ctx, p)
	})
	return e, nil
}

// resume returns the work that a request goes on with; nil = it begins anew. A state is good
// for one time, and for the very call that it was given for.
func (s *Server) resume(req *mcp.CallToolRequest) (*errand, error) {
	state := req.Params.RequestState
	if state == "" {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.errands[state]
	if e == nil || e.of != identity(req) {
		return nil, invalid("the requestState is none of this call: it is wrong, too old, or was used")
	}
	res, ok := req.Params.InputResponses[asking].(*mcp.ElicitResult)
	if !ok || res == nil {
		return nil, invalid("inputResponses has no answer to %q", asking)
	}
	if !e.late.Stop() {
		return nil, invalid("the answer came too late")
	}
	delete(s.errands, state)
	e.waits.reply <- answerOf(res)
	e.waits = nil
	return e, nil
}

// park has work wait until its client comes back with an answer.
func (s *Server) park(e *errand, q question) (state string) {
	state = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	e.waits = &q
	e.late = time.AfterFunc(askTime, func() {
		e.cancel(errNobody)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.errands, state)
	})
	context.AfterFunc(s.life, func() { e.late.Stop() })
	s.errands[state] = e
	return state
}

// identity is what a call is known by when it comes again.
func identity(req *mcp.CallToolRequest) [sha256.Size]byte {
	return sha256.Sum256([]byte(req.Params.Name + "\x00" + string(req.Params.Arguments)))
}

var errNobody = errors.New("nobody has answered in time")

// ask puts a question to whoever waits for the work.
func (e *errand) ask(ctx context.Context, about *mcp.ElicitParams) (map[string]any, error) {
	q := question{about, make(chan answer, 1)}
	select {
	case e.asked <- q:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-q.reply:
		return a.content, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// show tells how the work gets on; what comes too fast is left out.
func (e *errand) show(text string) {
	select {
	case e.progress <- text:
	default:
	}
}

// elicit asks the person of a client that waits.
func elicit(ctx context.Context, ss *mcp.ServerSession, about *mcp.ElicitParams) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, errNobody)
	defer cancel()
	res, err := ss.Elicit(ctx, about)
	switch {
	case err != nil && context.Cause(ctx) != nil:
		return answer{err: context.Cause(ctx)}
	case err != nil:
		return answer{err: fmt.Errorf("the client could not ask: %w", err)}
	}
	return answerOf(res)
}

// answerOf is what a person has said: anything but an acceptance is a no.
func answerOf(res *mcp.ElicitResult) answer {
	if res == nil || res.Action != "accept" || res.Content == nil {
		return answer{}
	}
	return answer{content: res.Content}
}
