package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/internal/extend/mcp/servers"
)

// The versions that are asked for.
const (
	newest = ""           // of the library; the server is asked what it speaks
	settle = "2025-11-25" // the last one that begins with initialize
)

// goodbye is how long a server has for the end of its session.
const goodbye = 2 * time.Second

// live is one connection. Its goroutines end with close.
type live struct {
	v       *server
	client  *sdk.Client
	session *sdk.ClientSession

	life context.Context // of the transport
	end  context.CancelFunc
	busy context.Context // of calls and questions; it ends before life
	stop context.CancelCauseFunc

	pipes *lines // of a process; nil = there is none
	errs  *tail  // what it says on its error output
	web   *web   // what is reached over the network; nil = it is not

	ended  chan struct{} // is closed when the server has hung up
	stale  chan struct{} // holds a token when lists have changed
	broken chan error    // holds why the connection is given up
	asking chan struct{} // holds a token for each question of the server
	wg     sync.WaitGroup

	mu       sync.Mutex
	progress map[string]*meter
	tokens   int
	finished map[string]chan struct{} // by the IDs of what a person does at an address
	visits   map[string]bool          // those that somebody has agreed to
	logs     flow
}

// connect makes a connection and reads what there is.
func (v *server) connect(ctx context.Context) (*live, error) {
	limit := cmp.Or(v.def.Startup, usualStartup)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not answer within %v", limit))
	defer cancel()
	l, err := v.dial(ctx)
	if err != nil {
		return nil, err
	}
	o, err := l.read(ctx)
	if err != nil {
		l.close()
		return nil, l.explain(ctx, err)
	}
	v.up(l, o)
	return l, nil
}

// dial connects by the way that the definition names, and by the older one where the
// server knows no other.
func (v *server) dial(ctx context.Context) (*live, error) {
	v.mu.Lock()
	version := newest
	if v.legacy || v.def.Type == servers.SDK {
		version = settle
	}
	v.mu.Unlock()
	l, err := v.attempt(ctx, v.def.Type, version)
	switch {
	case err == nil || ctx.Err() != nil || l == nil:
		return l, err
	case v.def.Type == servers.Stdio && version == newest && l.pipes != nil && errors.Is(err, errEnded):
		// It may have died of a question that it does not know.
		if l, err = v.attempt(ctx, v.def.Type, settle); err == nil {
			v.mu.Lock()
			v.legacy = true
			v.mu.Unlock()
		}
	case v.def.Type == servers.HTTP && l.web.older():
		if l, err2 := v.attempt(ctx, servers.SSE, settle); err2 == nil {
			return l, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// attempt connects in one way. What it returns with an error is closed already, and
// only there to be looked at.
func (v *server) attempt(ctx context.Context, kind, version string) (*live, error) {
	l := &live{
		v: v, ended: make(chan struct{}), stale: make(chan struct{}, 1), broken: make(chan error, 1),
		asking: make(chan struct{}, maxQuestions), progress: map[string]*meter{}, finished: map[string]chan struct{}{}, visits: map[string]bool{}, errs: new(tail),
	}
	l.life, l.end = context.WithCancel(v.life)
	l.busy, l.stop = context.WithCancelCause(l.life)
	way, err := l.way(ctx, kind)
	if err != nil {
		l.end()
		return nil, err
	}
	l.client = l.newClient()
	giveUp := context.AfterFunc(ctx, l.cut)
	defer giveUp()
	err = safely(func() (err error) {
		l.session, err = l.client.Connect(ctx, way, &sdk.ClientSessionOptions{ProtocolVersion: version})
		return err
	})
	if err != nil {
		err = l.explain(ctx, err)
		l.close()
		return l, err
	}
	l.wg.Go(func() {
		defer close(l.ended)
		_ = safely(l.session.Wait) // why it has ended is known to the transport
	})
	return l, nil
}

// way makes the transport.
func (l *live) way(ctx context.Context, kind string) (sdk.Transport, error) {
	c, def := l.v.set.c, l.v.def
	switch kind {
	case servers.Stdio:
		if c.Start == nil {
			return nil, mistake("programs cannot be started here")
		}
		rw, err := c.Start(l.life, def, l.errs)
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", def.Command, err)
		}
		l.pipes = newLines(rw)
		return l.pipes, nil
	case servers.HTTP, servers.SSE:
		return l.overWeb(ctx, kind)
	case servers.SDK:
		if c.Dial == nil {
			return nil, mistake("no program embeds this one")
		}
		return c.Dial(l.life, def)
	}
	return nil, mistake(fmt.Sprintf("%q is no type of MCP server: stdio, http or sse", kind))
}

// cut ends the transport.
func (l *live) cut() {
	l.stop(errEnded)
	if l.pipes != nil {
		_ = l.pipes.Close()
	}
	l.end()
}

// close ends the connection and everything that belongs to it. A server over the
// network is told, and has a moment for that.
func (l *live) close() {
	l.stop(errEnded)
	if l.pipes != nil {
		_ = l.pipes.Close() // before the session, which would wait for the process
	}
	if l.session != nil {
		late := time.AfterFunc(goodbye, l.end)
		_ = safely(l.session.Close)
		late.Stop()
	}
	l.end()
	if l.session == nil {
		l.wg.Wait()
		return
	}
	<-l.ended
	l.wg.Wait()
}

// reason is why a server has hung up.
func (l *live) reason() error {
	if l.pipes == nil {
		return errEnded
	}
	_ = l.pipes.Close() // until then its last words may be on their way
	why := l.pipes.why()
	if last := l.v.set.say(l.errs.String(), maxProblem); last != "" {
		return fmt.Errorf("%w; it last said: %s", told(why), last)
	}
	return told(why)
}

// told says the end of a pipe in words.
func told(why error) error {
	if b, ok := errors.AsType[breach](why); ok {
		return b
	}
	return errEnded
}

// explain makes of an error of connecting what helps.
func (l *live) explain(ctx context.Context, err error) error {
	switch {
	case l.web != nil && l.web.refused():
		return errSignIn
	case l.web.strays() != nil:
		return l.web.strays()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case l.pipes != nil && l.pipes.why() != nil:
		return l.reason()
	}
	return err
}

// giveUp has the connection made anew.
func (l *live) giveUp(why error) {
	l.v.drop(l)
	select {
	case l.broken <- why:
	default:
	}
}

// A fault is a panic of the library over what a server has sent.
type fault struct{ what any }

func (f *fault) Error() string { return fmt.Sprintf("what it sent cannot be understood (%v)", f.what) }

// safely turns a panic into an error: the library panics over some answers.
func safely(f func() error) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = &fault{what}
		}
	}()
	return f()
}

// during returns a context that ends with the connection, too.
func (l *live) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.busy, func() { cancel(context.Cause(l.busy)) })
	return ctx, func() { stop(); cancel(nil) }
}
