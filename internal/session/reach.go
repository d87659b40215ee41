package session

import (
	"context"
	"errors"
	"fmt"

	"dure/agent"
	"dure/internal/journal"
	"dure/internal/loop"
	"dure/internal/transcript"
)

// reach returns what capabilities of the session may use, once it is open.
func (s *Session) reach() agent.Reach {
	return agent.Reach{
		Ask: func(ctx context.Context, q agent.Question) (agent.Answer, error) {
			return loop.Ask(ctx, s.sideConfig(), q)
		},
		Invoke: func(ctx context.Context, inv agent.Invocation) (agent.Result, error) {
			return loop.Invoke(ctx, s.sideConfig(), s.parts.Catalog().Tools, newID("iv_"), inv)
		},
		Spawn: s.spawn,
	}
}

// sideConfig is the loop's configuration for what happens beside the turn.
func (s *Session) sideConfig() loop.Config {
	var turn transcript.Turn
	s.rec.read(func(st *transcript.State) { turn = st.Turn })
	cfg := s.loopConfig(turn.ID)
	cfg.First = turn.Step
	return cfg
}

// spawn opens a child session, or finds the one that the same key has opened
// before, and waits for the end of its turn.
func (s *Session) spawn(ctx context.Context, c agent.Child) (agent.Outcome, error) {
	if c.Key == "" {
		c.Key = newID("sp_")
	}
	id := childID(s.id, c.Key)
	var known bool
	s.rec.read(func(st *transcript.State) { _, known = st.Children[id] })
	if !known {
		body := agent.ChildOpened{Child: id, Key: c.Key, Agent: c.Agent, Title: c.Title, Prompt: c.Prompt}
		if err := s.rec.append(journal.Batch{Sync: journal.Barrier}, body); err != nil {
			return agent.Outcome{}, err
		}
	}
	child, err := s.reg.openChild(ctx, s, id, c)
	if err != nil {
		err = fmt.Errorf("opening child session %s: %w", id, err)
		if errors.Is(err, journal.ErrOwned) {
			return agent.Outcome{}, err // it runs, for whoever has opened it
		}
		out := agent.Outcome{Session: id, Reason: agent.EndFailed, Error: err.Error()}
		return out, errors.Join(err, s.childEnded(out))
	}
	if c.Background {
		s.strays.Go(func() {
			out, _ := s.runChild(s.life, child)
			_ = s.childEnded(out)
		})
		return agent.Outcome{Session: id}, nil
	}
	out, err := s.runChild(ctx, child)
	return out, errors.Join(err, s.childEnded(out))
}

// runChild waits until the child's turn has ended, and closes it.
func (s *Session) runChild(ctx context.Context, child *Session) (agent.Outcome, error) {
	ended := false
	child.rec.read(func(st *transcript.State) { ended = st.Turns > 0 && !st.Turn.Open && len(st.Queued) == 0 })
	if !ended {
		for e, err := range child.rec.follow(ctx, child.opened) {
			if err != nil {
				return child.outcome(), err
			}
			if _, ok := e.Body.(agent.TurnEnded); ok {
				break
			}
		}
	}
	child.stop()
	<-child.done
	if ctx.Err() != nil {
		return child.outcome(), context.Cause(ctx)
	}
	return child.outcome(), nil
}

func (s *Session) childEnded(out agent.Outcome) error {
	return s.rec.append(journal.Batch{}, agent.ChildEnded{Child: out.Session, Outcome: out})
}

// outcome is what has come of a session so far.
func (s *Session) outcome() (out agent.Outcome) {
	s.rec.read(func(st *transcript.State) {
		out = agent.Outcome{Session: s.id, Usage: st.Usage, Cost: st.TotalCost()}
		if !st.Turn.Open {
			out.Reason = st.Turn.Reason
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
