package app

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
	"dure/internal/state/transcript"
	"dure/internal/tools/catalog"
)

// Recorded is a decision of a log taken apart, and what would be decided now.
type Recorded struct {
	agent.DecisionRecord
	Pieces []policy.Piece `json:"pieces,omitempty"` // by the rules of now
	Again  *Again         `json:"again,omitempty"`
	Lost   string         `json:"lost,omitempty"` // why it cannot be decided again
}

// Again is what the policy of now makes of a recorded call, with what was known
// then: mode, folders, links, confinement, and what was allowed for the session.
type Again struct {
	Was  agent.Verdict  `json:"was"` // what the policy said then, before a person did
	Now  agent.Decision `json:"now"`
	Same bool           `json:"same"` // the verdict is

	// Gone is a rule that decided then and is not in force any more, and Come one
	// that decides now and was not in force then.
	Gone string `json:"gone,omitempty"`
	Come string `json:"come,omitempty"`
}

// ExplainRecorded takes the decision on a call of a session apart. The call is the
// number of the decision in the log, or the ID of the call; of several decisions on
// it, the last one counts.
func (a *App) ExplainRecorded(ctx context.Context, session, call string) (Recorded, error) {
	if _, err := a.open(); err != nil {
		return Recorded{}, err
	}
	list, err := a.audit.Decisions(ctx, query.ListDecisions{Session: session})
	if err != nil {
		return Recorded{}, err
	}
	for _, r := range slices.Backward(list) {
		if r.Proposal.Call.ID == call || strconv.FormatInt(r.Seq, 10) == call {
			return guard.MaskValue(a.explainRecord(ctx, r))
		}
	}
	return Recorded{}, &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("session %s has no decision %q", session, call),
		Fix: "dure audit lists the decisions with their numbers",
	}
}

func (a *App) explainRecord(ctx context.Context, r agent.DecisionRecord) Recorded {
	out := Recorded{DecisionRecord: r}
	pol, err := a.policyOf(ctx, r)
	if err != nil {
		out.Lost = err.Error()
		return out
	}
	out.Pieces = pol.Explain(r.Proposal, r.Decision).Pieces
	flip, err := pol.Again(r.CallDecided)
	if err != nil {
		out.Lost = err.Error()
		return out
	}
	out.Again = &Again{Was: flip.Was, Now: flip.Now, Same: flip.Was == flip.Now.Verdict}
	if rule := r.Decision.Rule; rule != "" && !speaks(flip.Now, rule) {
		out.Again.Gone = rule
	}
	if rule := flip.Now.Rule; rule != "" && !speaks(r.Decision, rule) {
		out.Again.Come = rule
	}
	return out
}

// speaks reports whether a rule has said something about a decision.
func speaks(d agent.Decision, rule string) bool {
	return slices.ContainsFunc(d.Trace, func(o agent.Opinion) bool { return o.Rule == rule })
}

// policyOf returns the policy that a session of a record's folder would have now,
// with what had been allowed for that session until then.
func (a *App) policyOf(ctx context.Context, r agent.DecisionRecord) (*policy.Policy, error) {
	granted, err := a.grantsBefore(ctx, r)
	if err != nil {
		return nil, err
	}
	return a.policyWith(r, granted)
}

// policyWith is policyOf with what had been allowed.
func (a *App) policyWith(r agent.DecisionRecord, granted []string) (*policy.Policy, error) {
	in := a
	if r.Workdir != "" && r.Workdir != a.opts.Workdir { // other rules hold there
		o := a.opts
		o.Workdir = r.Workdir
		other, err := New(o)
		if err != nil {
			return nil, fmt.Errorf("reading the settings for %s: %w", r.Workdir, err)
		}
		defer func() { _ = other.Close() }() // it has opened nothing
		in = other
	}
	ws, err := workspace.New(workspace.Config{Root: in.opts.Workdir, Extra: in.cfg.AddDirs, Absent: true})
	if err != nil {
		return nil, err
	}
	cat := catalog.New(catalog.Config{Dialect: catalog.Dialect(in.cfg.Dialect)})
	d, err := in.newDecider(cat, ws, in.opts.Workdir, r.Session, in.cfg.Mode, nil, nil)
	if err != nil {
		return nil, err
	}
	if len(granted) > 0 {
		err = d.pol.Grant(granted, policy.Session)
	}
	return d.pol, err
}

// grantsBefore returns what had been allowed for a session when a call of it was
// decided on: before the answer to the question about it.
func (a *App) grantsBefore(ctx context.Context, r agent.DecisionRecord) ([]string, error) {
	state := transcript.New()
	asked, granted := false, []string(nil)
	for e, err := range a.store.Read(ctx, r.Session, 0) {
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
