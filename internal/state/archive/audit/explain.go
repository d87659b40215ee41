package audit

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/state/transcript"
)

// explain takes the decision on a call of a session apart. Of several decisions on the call,
// the last one counts.
func (x *Extension) explain(ctx context.Context, q query.ExplainDecision) (query.ExplainedDecision, error) {
	list, err := x.Decisions(ctx, query.ListDecisions{Session: q.Session})
	if err != nil {
		return query.ExplainedDecision{}, err
	}
	for _, r := range slices.Backward(list) {
		if r.Proposal.Call.ID == q.Call || strconv.FormatInt(r.Seq, 10) == q.Call {
			return x.cfg.MaskOne(x.again(ctx, r))
		}
	}
	return query.ExplainedDecision{}, &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("session %s has no decision %q", q.Session, q.Call),
		Fix: "dure audit lists the decisions with their numbers",
	}
}

func (x *Extension) again(ctx context.Context, r agent.DecisionRecord) query.ExplainedDecision {
	out := query.ExplainedDecision{DecisionRecord: r}
	granted, err := x.grantsBefore(ctx, r)
	if err != nil {
		out.Lost = err.Error()
		return out
	}
	again := query.DecidedAgain{}
	out.Pieces, again.Was, again.Now, err = x.cfg.Again(r, granted)
	if err != nil {
		out.Lost = err.Error()
		return out
	}
	again.Same = again.Was == again.Now.Verdict
	if rule := r.Decision.Rule; rule != "" && !speaks(again.Now, rule) {
		again.Gone = rule
	}
	if rule := again.Now.Rule; rule != "" && !speaks(r.Decision, rule) {
		again.Come = rule
	}
	out.Again = &again
	return out
}

// speaks reports whether a rule has said something about a decision.
func speaks(d agent.Decision, rule string) bool {
	return slices.ContainsFunc(d.Trace, func(o agent.Opinion) bool { return o.Rule == rule })
}

// grantsBefore returns what had been allowed for a session when a call of it was
// decided on: before the answer to the question about it.
func (x *Extension) grantsBefore(ctx context.Context, r agent.DecisionRecord) ([]string, error) {
	state := transcript.New()
	asked, granted := false, []string(nil)
	for e, err := range x.cfg.Logs().Read(ctx, r.Session, 0) {
		if err != nil {
			return nil, err
		}
		if e.Seq >= r.Seq {
			break
		}
		state.Apply(e)
		switch b := e.Body.(type) {
		case agent.ApprovalAsked:
			if b.Child == "" && b.Proposal.Call.ID == r.Proposal.Call.ID {
				asked, granted = true, state.Grants
			}
		case agent.SessionOpened: // it is decided on anew, with what holds there
			granted = state.Grants
		case agent.RulesGranted:
			if b.Call == r.Proposal.Call.ID && b.Remember == agent.RememberSession {
				asked, granted = true, state.Grants[:len(state.Grants)-len(b.Rules)]
			}
		case agent.CallDecided:
			asked = asked && b.Proposal.Call.ID != r.Proposal.Call.ID // it was about that
		}
	}
	if asked {
		return granted, nil
	}
	return state.Grants, nil
}
