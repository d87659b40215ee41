package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
)

// Bounds of calls.
const (
	grace     = 10 * time.Second // between our limit of a call and that of the loop
	maxBudget = 500_000          // characters of a result that a server may ask for
	maxRounds = 10               // in which a call asks for more
	maxAsks   = 8                // questions in each of them
)

// keyMeta is under what the key of a call is passed on: it is the same for every
// attempt at that call, and for no other.
const keyMeta = "dure/idempotencyKey"

var errSignIn = errors.New("somebody has to sign in")

// A Tool is a tool of a server.
type Tool struct {
	v      *server
	remote string
	spec   agent.Spec
	traits Traits
	print  string
}

// Traits is what a server says of a tool, beside what the model is told.
type Traits struct {
	Title      string
	ReadOnly   bool // it says so; believed only of trusted servers
	Asks       bool // no mode allows it without the person
	AlwaysLoad bool // it is listed, however many there are
}

var _ agent.Tool = (*Tool)(nil)

// Spec implements [agent.Tool].
func (t *Tool) Spec() agent.Spec { return t.spec }

// Server returns the name of the tool's server.
func (t *Tool) Server() string { return t.v.def.Name }

// Remote returns the tool's name as its server has it.
func (t *Tool) Remote() string { return t.remote }

// Traits returns what the server says of the tool.
func (t *Tool) Traits() Traits { return t.traits }

// AlwaysLoad reports whether it is listed, however many tools there are.
func (t *Tool) AlwaysLoad() bool { return t.traits.AlwaysLoad }

// Print returns the fingerprint of what the model is told of the tool: who has
// approved a tool has approved that.
func (t *Tool) Print() string { return t.print }

// Plan implements [agent.Tool]. What a call does is done by the server and not known. Where
// the server wants the person to see each call, no rule and no mode allows one without them.
func (t *Tool) Plan(context.Context, agent.ToolContext, agent.Call) (agent.Effects, error) {
	return agent.Effects{Transactional: t.traits.Asks}, nil
}

// Run implements [agent.Tool].
func (t *Tool) Run(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	env := agent.CallEnvOf(ctx)
	p := &sdk.CallToolParams{Name: t.remote, Arguments: c.Input, Meta: metaOf(env)}
	return t.v.callTool(ctx, p, env.Progress), nil
}

// metaOf is what a server is told about a call: its key, and, when collectors are told of
// it, its place in the traces, as W3C Trace Context has it.
func metaOf(env agent.CallEnv) sdk.Meta {
	meta := sdk.Meta{}
	if env.Key != "" {
		meta[keyMeta] = env.Key
	}
	for _, v := range env.Vars {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "TRACEPARENT", "TRACESTATE":
			meta[strings.ToLower(name)] = value
		}
	}
	return meta
}

// Tools returns the tools of all servers, sorted by name. Those of a server whose
// connection has ended stay among them, until it is disabled.
func (s *Set) Tools() []agent.Tool {
	var list []agent.Tool
	for _, v := range s.list() {
		for _, t := range v.offered().tools {
			list = append(list, t)
		}
	}
	return list
}

// offered returns what a server offers.
func (v *server) offered() offers {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.off {
		return offers{}
	}
	return v.offers
}

// Call calls a tool of a server that is connected; it connects none. The name is the
// server's own.
func (s *Set) Call(ctx context.Context, server, tool string, input []byte) agent.Result {
	v := s.find(server)
	if v == nil {
		return agent.Failure(agent.ErrMCPUnavailable, unknown(server).Error(), "")
	}
	v.mu.Lock()
	up := v.live != nil
	v.mu.Unlock()
	if !up {
		return agent.Failure(agent.ErrMCPUnavailable, "the MCP server "+server+" is not connected", "")
	}
	return v.callTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(input), Meta: sdk.Meta{}}, nil)
}

// callTool calls a tool and makes a result of whatever comes of it.
func (v *server) callTool(ctx context.Context, p *sdk.CallToolParams, show func(string)) agent.Result {
	var res *sdk.CallToolResult
	err := v.do(ctx, v.callLimit(), func(ctx context.Context, l *live) error {
		p := *p
		p.Meta = maps.Clone(p.Meta)
		if show != nil {
			token, forget := l.watch(show)
			defer forget()
			p.Meta["progressToken"] = token
		}
		return l.rounds(ctx, func(more sdk.InputResponseMap, state string) (sdk.InputRequestMap, string, error) {
			p.InputResponses, p.RequestState = more, state
			var err error
			if res, err = l.session.CallTool(ctx, &p); err != nil {
				return nil, "", err
			}
			return res.InputRequests, res.RequestState, nil
		})
	})
	if err != nil {
		return v.failure(err)
	}
	return v.set.result(res)
}

// callLimit is how long a call may take.
func (v *server) callLimit() time.Duration { return cmp.Or(v.def.Timeout, usualTimeout) }

// An overdue is why a call was given up.
type overdue struct{ limit time.Duration }

func (o overdue) Error() string { return fmt.Sprintf("no answer within %v", o.limit) }

// do asks the server for one thing. What has not gone out when a connection ends, or was
// refused unread because the server has forgotten the session, is asked once more.
func (v *server) do(ctx context.Context, limit time.Duration, f func(context.Context, *live) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overdue{limit})
	defer cancel()
	for first := true; ; first = false {
		l, err := v.connected(ctx)
		if err != nil {
			return err
		}
		d := new(delivery)
		err = l.ask(ctx, d, f)
		unread := d.refused.Load() || !d.sent.Load() && (l.busy.Err() != nil || isEnd(err))
		if err == nil || !unread || !first || ctx.Err() != nil {
			return v.blame(ctx, l, err)
		}
		l.giveUp(errEnded)
		select {
		case <-l.busy.Done():
		case <-ctx.Done():
		}
	}
}

// ask runs one exchange on a connection.
func (l *live) ask(ctx context.Context, d *delivery, f func(context.Context, *live) error) error {
	ctx, cancel := l.during(ctx)
	defer cancel()
	err := safely(func() error { return f(context.WithValue(ctx, deliveryKey{}, d), l) })
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// rejected is what the library says of a request that did not become one.
const rejected = "rejected by transport"

// cutOff is what the library says of a call whose stream has ended without an answer.
const cutOff = "terminated without response"

// isEnd reports whether an error is the end of a connection.
func isEnd(err error) bool {
	for _, end := range []error{errEnded, sdk.ErrConnectionClosed, sdk.ErrSessionMissing, io.EOF, io.ErrClosedPipe} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// blame says what an error of an exchange means, and has the connection made anew
// where it is the connection's.
func (v *server) blame(ctx context.Context, l *live, err error) error {
	var said *jsonrpc.Error
	var net *url.Error
	switch {
	case err == nil, ctx.Err() != nil:
	case isEnd(err) || l.web != nil && strings.Contains(err.Error(), cutOff):
		l.giveUp(errEnded)
		return &Unavailable{v.def.Name, Pending, fmt.Errorf("%w while it had the call; whether that took effect is not known", l.reason())}
	case l.web != nil && l.web.refused():
		l.giveUp(errSignIn)
		return &Unavailable{v.def.Name, NeedsAuth, errSignIn}
	case errors.As(err, &net):
		l.giveUp(errEnded)
		return &Unavailable{v.def.Name, Pending, net.Err}
	case errors.As(err, &said) && said.Message == rejected: // by what stands before the server
		return &Unavailable{v.def.Name, Connected, err}
	}
	return err
}

// failure is the result of a call that brought none.
func (v *server) failure(err error) agent.Result {
	name := "the MCP server " + v.def.Name
	var said *jsonrpc.Error
	if o, ok := errors.AsType[overdue](err); ok {
		return agent.Failure(agent.ErrTimeout, fmt.Sprintf("%s did not answer within %v; whether the call took effect is not known.", name, o.limit), "Do less in one call.")
	}
	if u, ok := errors.AsType[*Unavailable](err); ok {
		text := v.set.say(u.Error(), maxProblem) + "."
		switch u.State {
		case NeedsAuth:
			return agent.Failure(agent.ErrOAuthRequired, text, "Ask the user to sign in: /mcp")
		case Connected:
			return agent.Failure(agent.ErrMCPUnavailable, text, "Try once more later, or go on without it.")
		case Failed, Disabled:
			return agent.Failure(agent.ErrMCPUnavailable, text, "Go on without it, or ask the user to connect it: /mcp reconnect "+v.def.Name)
		}
		return agent.Failure(agent.ErrMCPUnavailable, text, "It is being connected again: try once more later, or go on without it.")
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return agent.Failure(agent.ErrTimeout, name+" did not answer in time; whether the call took effect is not known.", "Do less in one call.")
	case errors.Is(err, context.Canceled), errors.Is(err, errClosed):
		return agent.Failure(agent.ErrAborted, "The call was cancelled; whether it took effect is not known.", "")
	case errors.As(err, &said):
		code := agent.ErrTool
		if said.Code == jsonrpc.CodeInvalidParams {
			code = agent.ErrInput
		}
		return agent.Failure(code, name+" answered: "+v.set.say(said.Message, maxWords), "")
	}
	return agent.Failure(agent.ErrTool, name+": "+v.set.say(err.Error(), maxWords), "")
}
