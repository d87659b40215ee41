package session

import (
	"context"
	"errors"
	"fmt"

	"dure/agent"
	"dure/internal/kernel/budget"
	"dure/internal/kernel/plug"
	"dure/internal/state/transcript"
)

// apart runs a child in a process of its own. What has become of it is an outcome, also
// when the process has failed: the session can go on.
func (s *Session) apart(ctx context.Context, id string, c agent.Child) (agent.Outcome, error) {
	if s.reg.cfg.Apart == nil || c.Background {
		out := agent.Outcome{Session: id, Reason: agent.EndFailed, Error: "agents have no processes of their own here"}
		return out, s.childEnded(out)
	}
	out, err := s.reg.cfg.Apart(ctx, plug.Apart{
		Parent: s.id, Open: s.openFor(id, c), Child: c, Approver: s.approver,
		Question: s.front.question, Reserve: s.account.Bank(),
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
func (r *Registry) RunApart(ctx context.Context, a plug.Apart, opened func(id string)) (agent.Outcome, error) {
	above := newSession(r, a.Parent, a.Approver)
	above.depth, above.above, above.account = maxDepth-1, a.Question, budget.Elsewhere(a.Reserve)
	child, err := r.startChild(ctx, above, a.Open, a.Child)
	if err != nil {
		return agent.Outcome{}, fmt.Errorf("opening session %s: %w", a.Open.New, err)
	}
	opened(child.id)
	return above.runChild(ctx, child)
}
