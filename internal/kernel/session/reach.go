package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// reach returns what capabilities of the session may use, once it is open.
func (s *Session) reach() agent.Reach {
	return agent.Reach{
		Ask: func(ctx context.Context, q agent.Question) (agent.Answer, error) {
			return loop.Ask(ctx, s.sideConfig(), q)
		},
		Invoke: func(ctx context.Context, inv agent.Invocation) (agent.Result, error) {
			s.served.Store(true)
			return loop.Invoke(ctx, s.sideConfig(), s.parts.Catalog().Tools, or(inv.ID, newID("iv_")), inv)
		},
		Spawn:  s.spawn,
		Settle: s.settle, Outcome: s.outcomeOf,
	}
}

// sideConfig is the loop's configuration for what happens beside the turn.
func (s *Session) sideConfig() loop.Config {
	var turn transcript.Turn
	s.rec.read(func(st *transcript.State) { turn = st.Turn })
	cfg := s.loopConfig(s.life, turn.ID)
	cfg.First = turn.Step
	return cfg
}

// spawn opens a child session, or finds the one that the same key has opened
// before, and waits for the end of its turn.
func (s *Session) spawn(ctx context.Context, c agent.Child) (agent.Outcome, error) {
	if c.Key == "" {
		c.Key = newID("sp_")
	}
	id := or(c.Resume, childID(s.id, c.Key))
	leave, err := s.enter(id)
	if err != nil {
		return agent.Outcome{}, err
	}
	running := false
	defer func() {
		if !running {
			leave()
		}
	}()
	var known bool
	s.rec.read(func(st *transcript.State) { _, known = st.Children[id] })
	if !known {
		body := agent.ChildOpened{Child: id, Key: c.Key, Agent: c.Agent, Title: c.Title, Prompt: c.Prompt}
		if err := s.rec.append(journal.Batch{Sync: journal.Barrier}, body); err != nil {
			return agent.Outcome{}, err
		}
	}
	if c.Apart {
		return s.apart(ctx, id, c)
	}
	child, err := s.reg.openChild(ctx, s, id, c)
	if err != nil {
		err = fmt.Errorf("opening child session %s: %w", id, err)
		if errors.Is(err, journal.ErrOwned) {
			return agent.Outcome{}, err // it runs, for whoever has opened it
		}
		out := agent.Outcome{Session: id, Reason: agent.EndFailed, Error: err.Error()}
		if known && ctx.Err() != nil { // it has begun before, and whoever opens it next has it go on
			return out, errors.Join(err, context.Cause(ctx))
		}
		return out, errors.Join(err, s.childEnded(out))
	}
	if c.Opened != nil {
		c.Opened(id)
	}
	if c.Background {
		running = true
		s.strays.Go(func() {
			defer leave()
			out, _ := s.runChild(s.life, child)
			_ = s.childEnded(out)
		})
		return agent.Outcome{Session: id}, nil
	}
	out, err := s.runChild(ctx, child)
	return out, errors.Join(err, s.childEnded(out))
}

// Bounds of children. They hold for whoever asks for one: tools, skills and hooks.
const (
	maxDepth    = 3  // children in each other
	maxChildren = 20 // that run at once for a session that no other has opened
)

// enter counts a child that is to run, and returns what counts it out.
func (s *Session) enter(id string) (leave func(), err error) {
	if s.depth >= maxDepth {
		return nil, &agent.ToolError{Code: agent.ErrTool, Message: fmt.Sprintf("agents cannot have agents of their own %d deep", maxDepth+1), Suggestion: "Do it yourself."}
	}
	top := s.front
	top.mu.Lock()
	defer top.mu.Unlock()
	switch {
	case top.children[id]:
		return nil, &agent.ToolError{Code: agent.ErrTool, Message: "the agent " + id + " still runs", Suggestion: "Wait for its end."}
	case len(top.children) >= maxChildren:
		return nil, &agent.ToolError{Code: agent.ErrTool, Message: fmt.Sprintf("%d agents run already, and no more can at once", maxChildren), Suggestion: "Wait for one to end."}
	}
	if top.children == nil {
		top.children = map[string]bool{}
	}
	top.children[id] = true
	return func() {
		top.mu.Lock()
		defer top.mu.Unlock()
		delete(top.children, id)
	}, nil
}

// runChild waits until the child has nothing more to do, and closes it.
func (s *Session) runChild(ctx context.Context, child *Session) (agent.Outcome, error) {
	over := child.idle()
	for !over || errors.Is(child.Send(ctx, finish{}), errBusy) {
		over = false
		select {
		case <-child.rested:
			over = true
		case <-child.done:
			if ctx.Err() == nil {
				return child.outcome(), child.err
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	child.stop()
	<-child.done
	return child.outcome(), context.Cause(ctx)
}

// finish is the command that ends a session which has nothing to do. What comes behind it
// is refused, so that nobody believes that it was heard.
type finish struct{}

// Command returns the name of the command.
func (finish) Command() string { return "finish" }

// errBusy says that a session has something to do.
var errBusy = errors.New("it is at work")

// finish ends the session, unless a turn has begun meanwhile.
func (r *runner) finish() error {
	if r.cancel != nil || r.handedOver() {
		return errBusy
	}
	r.left = true
	r.stop()
	return nil
}

// idle reports whether a turn has ended and no other one is to begin.
func (s *Session) idle() (idle bool) {
	s.rec.read(func(st *transcript.State) {
		idle = st.Turns > 0 && !st.Turn.Open && !st.Unread && !st.Waits(true)
	})
	return idle && !s.handedOver()
}

// handedOver reports whether agents work for the session whose outcomes begin another turn:
// those of a turn that was done.
func (s *Session) handedOver() (some bool) {
	s.rec.read(func(st *transcript.State) {
		if st.Turn.Open || st.Turn.Reason != agent.EndDone {
			return
		}
		for handle := range st.Pending {
			some = some || strings.HasPrefix(handle, ofAgents)
		}
	})
	return some
}

// rest tells whoever runs the session as a child that nothing is left to do.
func (s *Session) rest() {
	select {
	case s.rested <- struct{}{}:
	default: // it has been told before, or nobody does
	}
}

func (s *Session) childEnded(out agent.Outcome) error {
	return s.rec.append(journal.Batch{}, agent.ChildEnded{Child: out.Session, Outcome: out})
}

// outcome is what has come of a session so far.
func (s *Session) outcome() (out agent.Outcome) {
	s.rec.read(func(st *transcript.State) {
		out = agent.Outcome{Session: s.id, Usage: st.Usage, Cost: st.TotalCost(), Calls: st.Calls}
		out.Steps = st.Turn.Step
		if !st.Turn.Open {
			out.Reason, out.Error = st.Turn.Reason, st.Turn.Error
		}
		for i := len(st.Messages) - 1; i >= 0; i-- {
			if m := st.Messages[i]; m.Role == agent.Assistant {
				out.Text = m.Text()
				return
			}
		}
	})
	return out
}

// childID derives the child's ID from its parent and the key, so that a call
// that is made again finds the child it has started.
func childID(parent, key string) string {
	return "c" + loop.Key(parent, key, 0, "")
}
