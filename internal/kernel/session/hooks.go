package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// turnHooks are the points of a turn. A plan is in the log before anybody is asked about
// it, and who speaks for a person is not asked what a person has answered already.
func (s *Session) turnHooks() plug.TurnHooks {
	h := s.points.Hooks.TurnHooks
	if s.formed != 0 {
		h.Due = s.due
	}
	ask := h.Asking
	if ask == nil {
		return h
	}
	h.Asking = func(ctx context.Context, p agent.Proposal, d agent.Decision) (agent.Decision, bool) {
		var id string
		var answered bool
		s.rec.read(func(st *transcript.State) { id = s.approvalID(st, p.Call.ID) })
		if s.front.above == nil { // else it is known there
			s.front.rec.read(func(st *transcript.State) { _, answered = st.Resolved[id] })
		}
		if answered { // before the turn was cut short
			return agent.Decision{}, false
		}
		if err := s.proposePlan(id, p); err != nil {
			return agent.Decision{Verdict: agent.Deny, Reason: err.Error(), By: "user"}, true
		}
		return ask(ctx, p, d)
	}
	return h
}

// begun calls Opened once for the epoch, and lets the turns begin.
func (s *Session) begun() {
	defer close(s.beginning)
	if s.points.Hooks.Opened == nil {
		return
	}
	how := "startup"
	var fresh bool
	s.rec.read(func(st *transcript.State) {
		switch fresh = len(st.Hashes) == 0; {
		case st.Epochs > 1:
			how = "resume"
		case st.First.ForkOf != "":
			how = "fork"
		}
	})
	words, by := s.points.Hooks.Opened(s.life, how)
	if words != "" && fresh && !s.lent && s.life.Err() == nil {
		// It comes before all that is said meanwhile, which waits in the queue. A log
		// that cannot be written ends the session at its next event.
		_ = s.rec.store(false, agent.InputAdded{Input: newID("in_"), Text: words, Origin: by})
	}
}

// holds reports whether input has to wait in the queue until the turn takes it: for
// somebody's word, or for the end of the beginning of a new one, whose words come first.
func (s *Session) holds() bool {
	if s.screens() {
		return true
	}
	select {
	case <-s.beginning:
		return false
	default:
	}
	fresh := false
	s.rec.read(func(st *transcript.State) { fresh = len(st.Hashes) == 0 })
	if speaks := s.points.Hooks.Speaks; speaks == nil || !fresh || !speaks() {
		return false
	}
	s.held.Store(true)
	return true
}

// awaitBegun waits until the session's beginning is over.
func (s *Session) awaitBegun(ctx context.Context) error {
	select {
	case <-s.beginning:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// screens reports whether input has to wait in the queue for somebody's word.
func (s *Session) screens() bool {
	h := s.points.Hooks
	if h.Heard == nil {
		return false
	}
	if h.Screens == nil || h.Screens() {
		return true
	}
	some := false
	if h.Takes != nil {
		s.rec.read(func(st *transcript.State) { some = slices.ContainsFunc(st.Queued, h.Takes) })
	}
	return some
}

// steer moves the input that waits into the conversation, as the hooks let it, and
// reports whether anything was said with it.
func (s *Session) steer(ctx context.Context, all bool) (bool, error) {
	if !s.screens() {
		return s.rec.steer(all)
	}
	said := false
	for {
		var next *agent.InputQueued
		s.rec.read(func(st *transcript.State) {
			i := slices.IndexFunc(st.Queued, func(q agent.InputQueued) bool { return all || !q.Later })
			if i >= 0 {
				next = &st.Queued[i]
			}
		})
		if next == nil {
			return said, nil
		}
		q := *next
		words := q.Text != "" || len(q.Parts) > 0
		var drop *agent.InputDropped
		if words && q.Origin != settledOrigin {
			q.Text, drop = s.points.Hooks.Heard(ctx, q)
			if cause := context.Cause(ctx); cause != nil {
				if errors.Is(cause, agent.ErrInterrupted) { // else the next turn would ask about it anew, and send it
					cause = errors.Join(cause, s.rec.append(journal.Batch{}, agent.InputDropped{Input: q.Input, Reason: "the user interrupted", By: "user"}))
				}
				return said, cause
			}
		}
		var body agent.Body = agent.InputAdded{Input: q.Input, Text: q.Text, Parts: q.Parts, Origin: q.Origin, Without: q.Without}
		if drop != nil {
			dropped := *drop
			dropped.Input = q.Input
			body = dropped
		} else if s.rec.read(func(st *transcript.State) { words = words || len(st.Notices) > 0 }); words {
			said = true
		}
		if err := s.rec.append(journal.Batch{}, body); err != nil {
			return said, err
		}
	}
}

// unread reports whether the conversation ends with what the model has not answered.
func (s *Session) unread() (unread bool) {
	s.rec.read(func(st *transcript.State) {
		n := len(st.Messages)
		unread = n > 0 && st.Messages[n-1].Role == agent.User
	})
	return unread
}

// switches puts a change of the model to whoever has a word on it, and returns what is
// to be called when it is done.
func (s *Session) switches(ctx context.Context, c agent.Command) (done func(), err error) {
	change, ok := c.(agent.Change)
	if !ok || change.Model == "" || s.points.Hooks.Switching == nil && s.points.Hooks.Switched == nil {
		return func() {}, nil
	}
	m, err := s.parts.Model(change.Model)
	if err != nil {
		return nil, err
	}
	from, to := s.current(), m.Info().ID
	if from == to {
		return func() {}, nil
	}
	if ask := s.points.Hooks.Switching; ask != nil {
		if err := ask(ctx, from, to); err != nil {
			return nil, err
		}
	}
	return func() {
		if tell := s.points.Hooks.Switched; tell != nil {
			tell(ctx, from, to)
		}
	}, nil
}

// owed stores what hooks and skills have to say to the model.
func (s *Session) owed() error {
	var bodies []agent.Body
	s.rec.read(func(st *transcript.State) {
		for _, o := range st.Owed {
			bodies = append(bodies, agent.ContextAdded{Source: or(o.Source, transcript.HookSource+o.Hook), Key: o.Run, Title: o.Hook, Text: o.Text})
		}
	})
	if bodies == nil {
		return nil
	}
	return s.rec.store(false, bodies...)
}

// granted lets rules hold that somebody has allowed in the place of a person.
func (r *runner) granted(g agent.RulesGranted, batch journal.Batch) error {
	if r.points.Permissions.Grant == nil {
		return errors.New("nothing is remembered in this session")
	}
	batch.Sync = journal.Barrier
	if err := r.rec.append(batch, g); err != nil {
		return err
	}
	return r.points.Permissions.Grant(g.Remember, g.Rules)
}

// revoke takes rules back that were allowed for the session.
func (r *runner) revoke(c agent.Revoke, batch journal.Batch) error {
	var held []string
	r.rec.read(func(s *transcript.State) {
		for _, g := range s.Grants {
			if slices.Contains(c.Rules, strings.TrimSpace(g)) && !slices.Contains(held, g) {
				held = append(held, g)
			}
		}
	})
	if len(held) == 0 || r.points.Permissions.Revoke == nil {
		if len(batch.Taken) > 0 {
			return r.rec.append(batch)
		}
		return nil
	}
	if err := r.points.Permissions.Revoke(agent.Revoke{Rules: held}); err != nil {
		return err
	}
	return r.rec.append(batch, agent.RulesRevoked{Rules: held, By: "user"})
}

// wake lets the model read what somebody has to say: at the next step of a running
// turn, else in a turn of its own.
func (r *runner) wake(c plug.Wake) error {
	var open, heard bool
	r.rec.read(func(s *transcript.State) { open, heard = s.Turn.Open || len(s.Queued) > 0, s.Inputs[c.ID] })
	if c.ID != "" && heard {
		return nil
	}
	c.ID = or(c.ID, newID("in_"))
	batch := journal.Batch{Sync: journal.Barrier}
	if open || r.cancel != nil || r.life.Err() != nil {
		return r.rec.append(batch, append(c.Facts, agent.InputQueued{Input: c.ID, Text: c.Text, Origin: c.By})...)
	}
	if err := r.extras(r.rec.lease.Valid()); err != nil {
		return err
	}
	if err := r.rec.append(batch, append(c.Facts, agent.InputAdded{Input: c.ID, Text: c.Text, Origin: c.By})...); err != nil {
		return err
	}
	return r.start()
}
