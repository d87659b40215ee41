package session

import (
	"context"
	"errors"
	"fmt"

	"dure/agent"
	"dure/internal/kernel/budget"
	"dure/internal/state/transcript"
)

// An Apart is a child that is to run in a process of its own, and what it may ask of its
// parent there.
type Apart struct {
	Parent   string
	Open     agent.Open // with the ID in New, and in Session when it goes on
	Child    agent.Child
	Approver bool

	// Question asks the person of the parent.
	Question func(ctx context.Context, id, child string, p agent.Proposal, d agent.Decision) (agent.Decision, error) `json:"-"`

	// Reserve is the budget of the parent.
	Reserve budget.Bank `json:"-"`
}

// apart runs a child in a process of its own. What has become of it is an outcome, also
// when the process has failed: the session can go on.
func (s *Session) apart(ctx context.Context, id string, c agent.Child) (agent.Outcome, error) {
	if s.reg.cfg.Apart == nil || c.Background {
		out := agent.Outcome{Session: id, Reason: agent.EndFailed, Error: "agents have no processes of their own here"}
		return out, s.childEnded(out)
	}
	out, err := s.reg.cfg.Apart(ctx, Apart{
		Parent: s.id, Open: s.openFor(id, c), Child: c, Approver: s.approver,
		Question: s.front.question, Reserve: bank(s.account),
	})
	if out.Session = id; err != nil && ctx.Err() == nil {
		out.Reason, out.Error, err = agent.EndFailed, err.Error(), nil
	}
	return out, errors.Join(err, s.childEnded(out))
}

// openFor is how a child is opened.
func (s *Session) openFor(id string, c agent.Child) agent.Open {
	o := agent.Open{New: id, Workdir: or(c.Workdir, s.parts.Workdir), Model: c.Model, Mode: s.currentMode(), Title: c.Title, MaxSteps: c.MaxSteps, Profile: s.parts.Profile}
	if o.Model == "" {
		s.rec.read(func(st *transcript.State) { o.Model = st.Model })
	}
	return o
}

// RunApart runs a session whose parent is in another process, to its end. It has no
// children.
func (r *Registry) RunApart(ctx context.Context, a Apart, opened func(id string)) (agent.Outcome, error) {
	above := newSession(r, a.Parent, a.Approver)
	above.depth, above.above, above.account = maxDepth-1, a.Question, budget.Elsewhere(a.Reserve)
	child, err := r.startChild(ctx, above, a.Open, a.Child)
	if err != nil {
		return agent.Outcome{}, fmt.Errorf("opening session %s: %w", a.Open.New, err)
	}
	opened(child.id)
	return above.runChild(ctx, child)
}

// bank keeps the budget of an account for another process.
func bank(a *budget.Account) budget.Bank {
	return func(request, unit budget.Amount, least, most int) (int, func(budget.Amount), error) {
		granted, h, err := a.ReserveUpTo(request, unit, least, most)
		return granted, h.Settle, err
	}
}
