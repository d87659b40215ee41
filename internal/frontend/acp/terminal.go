package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dure/agent"
)

// The bounds of a terminal of a client.
const (
	beginTime   = 30 * time.Second // for one to be made
	maxTerminal = 1 << 20          // bytes of output that are kept
)

// terminal are the terminals of the client as a session uses them.
type terminal struct{ x *session }

// terminal returns the terminals of the client; nil = it has none.
func (s *Server) terminal(x *session) agent.Terminal {
	if !s.can().Terminal {
		return nil
	}
	return terminal{x}
}

// Run runs a command on a terminal of its own, which the client shows with the call. The
// terminal is given back whatever happens.
func (t terminal) Run(ctx context.Context, c agent.TerminalCommand) (agent.TerminalExit, error) {
	var none agent.TerminalExit
	if ctx.Err() != nil {
		return agent.TerminalExit{Code: -1, Stopped: true}, nil
	}
	made, err := t.create(ctx, c)
	switch {
	case ctx.Err() != nil && made.ID == "":
		return agent.TerminalExit{Code: -1, Stopped: true}, nil
	case err != nil:
		return none, err
	}
	it := ofTerminal{Session: t.x.id, ID: made.ID}
	defer t.release(it)
	t.x.showTerminal(c.Call, made.ID)
	var exit terminalExit
	waited := t.x.s.ask(ctx, "terminal/wait_for_exit", it, &exit)
	if waited != nil {
		if err := t.brief("terminal/kill", it, &struct{}{}); err != nil {
			return none, fmt.Errorf("the client's terminal: %w, and then: %w", waited, err)
		}
	}
	var out terminalOut
	if err := t.brief("terminal/output", it, &out); err != nil {
		return none, fmt.Errorf("the output of the client's terminal: %w", err)
	}
	if waited != nil && ctx.Err() == nil {
		return none, fmt.Errorf("the client's terminal: %w", waited)
	}
	if waited != nil {
		exit = out.Exit
	}
	got := agent.TerminalExit{Output: out.Output, Cut: out.Cut, Code: -1, Signal: exit.Signal, Stopped: waited != nil}
	if exit.Code != nil {
		got.Code = *exit.Code
	}
	return got, nil
}

// release gives a terminal back. What came of the command does not wait for the answer; a
// client that gives none has its own way.
func (t terminal) release(it ofTerminal) {
	t.x.s.terminals.Go(func() { _ = t.brief("terminal/release", it, &struct{}{}) })
}

// create has the client make a terminal. One that comes when nobody waits for it any more is
// ended and given back.
func (t terminal) create(ctx context.Context, c agent.TerminalCommand) (ofTerminal, error) {
	in := terminalIn{Session: t.x.id, Command: c.Argv[0], Args: c.Argv[1:], Cwd: c.Dir, Limit: maxTerminal}
	for _, entry := range c.Env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			in.Env = append(in.Env, pair{Name: name, Value: value})
		}
	}
	var made ofTerminal
	var err error
	done, gone := make(chan struct{}), make(chan struct{})
	defer close(gone)
	s := t.x.s
	s.terminals.Go(func() {
		err = s.ask(s.life, "terminal/create", in, &made) // what is asked for is never taken back
		select {
		case done <- struct{}{}:
		case <-gone:
			if it := (ofTerminal{Session: t.x.id, ID: made.ID}); err == nil && it.ID != "" {
				_ = t.brief("terminal/kill", it, &struct{}{}) // it is given back all the same
				_ = t.brief("terminal/release", it, &struct{}{})
			}
		}
	})
	late := time.NewTimer(beginTime)
	defer late.Stop()
	select {
	case <-done:
	case <-ctx.Done():
		return ofTerminal{}, ctx.Err()
	case <-late.C:
		return ofTerminal{}, fmt.Errorf("the client has made no terminal within %v", beginTime)
	}
	if w, ok := errors.AsType[*wireError](err); ok {
		return ofTerminal{}, fmt.Errorf("%w: %s", agent.ErrNoTerminal, w.Message)
	}
	if err != nil {
		return ofTerminal{}, fmt.Errorf("the client's terminal: %w", err)
	}
	if made.ID == "" {
		return ofTerminal{}, errors.New("the client's terminal has no name")
	}
	return made, nil
}

// brief asks for something that takes no time, also when the call is over.
func (t terminal) brief(method string, it ofTerminal, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	return t.x.s.ask(ctx, method, it, result)
}

// shown is a call of which the client may have been told.
type shown struct {
	begun    bool   // it has been told that it runs
	terminal string // ID; "" = it runs on none
}

// shownCall returns what is known of a call; mu is held.
func (x *session) shownCall(id string) *shown {
	if x.shown == nil {
		x.shown = map[string]*shown{}
	}
	c := x.shown[id]
	if c == nil {
		c = &shown{}
		x.shown[id] = c
	}
	return c
}

// showTerminal has the client show a terminal with its call, behind what it is told of the
// call before: when that is still to come, begun does it. Nobody waits here: the command runs
// already, and its time with it.
func (x *session) showTerminal(id, terminal string) {
	x.mu.Lock()
	c := x.shownCall(id)
	c.terminal = terminal
	begun := c.begun
	x.mu.Unlock()
	if begun {
		x.tellTerminal(id, terminal)
	}
}

// begun says that the client knows that a call runs.
func (x *session) begun(id string) {
	x.mu.Lock()
	c := x.shownCall(id)
	first := !c.begun
	c.begun = true
	terminal := c.terminal
	x.mu.Unlock()
	if first && terminal != "" {
		x.tellTerminal(id, terminal)
	}
}

func (x *session) tellTerminal(id, terminal string) {
	x.update(toolCall{Update: "tool_call_update", ID: id, Content: []callContent{{Type: "terminal", Terminal: terminal}}})
}

// endedOn forgets a call, and returns the terminal that it ran on; "" = none.
func (x *session) endedOn(id string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.shown[id]
	delete(x.shown, id)
	if c == nil {
		return ""
	}
	return c.terminal
}
