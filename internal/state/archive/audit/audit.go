// Package audit finds the decisions on calls and plans in the logs of all sessions, and the
// answers that people gave. It starts no goroutines.
package audit

import (
	"bytes"
	"context"
	"slices"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/state/archive"
	"dure/internal/state/journal"
)

// Config says what is looked through, and how.
type Config struct {
	Logs func() archive.Logs

	// Mask hides the secrets in what is shown: logs have the inputs of calls as they were.
	Mask func([]agent.DecisionRecord) ([]agent.DecisionRecord, error)

	MaskOne func(query.ExplainedDecision) (query.ExplainedDecision, error)

	// Again decides on a recorded call by the rules of now, with what had been allowed for
	// the session. An error says why that cannot be told; the pieces may be there all the same.
	Again func(r agent.DecisionRecord, granted []string) (pieces []query.DecisionPiece, was agent.Verdict, now agent.Decision, err error)

	// Canonical returns the name of a tool by another name of it; ok says that there is one.
	Canonical func(name string) (tool string, ok bool)
}

// Extension answers which decisions were made.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "audit" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Answers(x.list), plug.Answers(x.explain)}
}

func (x *Extension) list(ctx context.Context, q query.ListDecisions) ([]agent.DecisionRecord, error) {
	list, err := x.Decisions(ctx, q)
	if err != nil {
		return nil, err
	}
	return x.cfg.Mask(list)
}

// Decisions returns the decisions that the logs of all sessions have, as they are
// there, with the secrets in them.
func (x *Extension) Decisions(ctx context.Context, q query.ListDecisions) ([]agent.DecisionRecord, error) {
	since, err := archive.Since(q.Since)
	if err != nil {
		return nil, err
	}
	if name, ok := x.cfg.Canonical(q.Tool); ok {
		q.Tool = name
	}
	metas, err := archive.All(ctx, x.cfg.Logs())
	if err != nil {
		return nil, err
	}
	all := []agent.DecisionRecord{}
	fronts := map[string]*desk{}
	for _, m := range metas {
		if q.Session != "" && m.ID != q.Session || q.Workdir != "" && m.Workdir != q.Workdir {
			continue
		}
		if updated, err := time.Parse(time.RFC3339Nano, m.Updated); err == nil && updated.Before(since) {
			continue
		}
		list, err := x.decisionsOf(ctx, m, archive.Own(m, metas), q.Plans)
		if err != nil && (q.Session != "" || ctx.Err() != nil) {
			return nil, err // a log that is damaged hides no other one's decisions
		}
		if m.IsChild() {
			x.answerFrom(ctx, metas, fronts, m, list)
		}
		for _, r := range list {
			if !r.Time.Before(since) && q.Selects(r) {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(r, s agent.DecisionRecord) int { return r.Time.Compare(s.Time) })
	if q.Limit > 0 && len(all) > q.Limit {
		all = all[len(all)-q.Limit:]
	}
	return all, nil
}

// decisionsOf returns the decisions of one log, as far as it can be read; with plans, what
// became of those too.
func (x *Extension) decisionsOf(ctx context.Context, m journal.Meta, from int64, plans bool) ([]agent.DecisionRecord, error) {
	var list []agent.DecisionRecord
	puts := map[string]agent.Call{}                 // by the ID of the plan
	asked := map[string]agent.ApprovalAsked{}       // by the ID of the question
	answers := map[string]*agent.ApprovalResolved{} // by the ID of the call
	for e, err := range x.cfg.Logs().Read(ctx, m.ID, from) {
		if err != nil {
			return list, err
		}
		switch b := e.Body.(type) {
		case agent.ApprovalAsked:
			asked[b.ID] = b
		case agent.ApprovalResolved:
			if q, ok := asked[b.ID]; ok && q.Child == "" {
				answers[q.Proposal.Call.ID] = &b
			}
		case agent.CallDecided:
			id := b.Proposal.Call.ID
			list = append(list, agent.DecisionRecord{
				Session: m.ID, Seq: e.Seq, Time: e.Time, Workdir: m.Workdir, CallDecided: b, Answer: answers[id],
			})
			delete(answers, id)
		}
		if r, ok := aboutPlan(e.Body); ok && plans {
			if r.Plan.What == proposedPlan {
				puts[r.Plan.ID] = r.Proposal.Call
			}
			r.Session, r.Seq, r.Time, r.Workdir, r.Proposal.Call = m.ID, e.Seq, e.Time, m.Workdir, puts[r.Plan.ID]
			list = append(list, r)
		}
	}
	return list, nil
}

const (
	proposedPlan = "proposed"   // what becomes of a plan first
	planTool     = "plan__exit" // that puts it to the user
)

// aboutPlan returns what an event says of a plan, as a record.
func aboutPlan(b agent.Body) (r agent.DecisionRecord, ok bool) {
	switch b := b.(type) {
	case agent.PlanProposed:
		r.Plan = &agent.PlanRecord{ID: b.Plan, What: proposedPlan, Body: &b.Body}
		r.Proposal.Call = agent.Call{ID: b.Call, Tool: planTool}
	case agent.PlanChanged:
		r.Plan = &agent.PlanRecord{ID: b.Plan, What: b.Do, Step: b.Step, To: b.To, Body: &b.Body}
		r.Decision.By = b.By
	case agent.PlanDecided:
		r.Plan = &agent.PlanRecord{ID: b.Plan, What: string(b.Verdict)}
		r.Decision = agent.Decision{Verdict: agent.Deny, By: b.By, Reason: b.Reason}
		if b.Verdict == agent.PlanApproved {
			r.Decision.Verdict = agent.Allow
		}
	}
	return r, r.Plan != nil
}

// A desk is the log in which the questions of children stand, with their answers:
// that of the session that a person has before him.
type desk struct {
	asked   map[string]agent.ApprovalAsked // by the ID of the question
	answers []agent.ApprovalResolved
}

// answerFrom completes the decisions of a child with the answers that a person has
// given.
func (x *Extension) answerFrom(ctx context.Context, metas map[string]journal.Meta, fronts map[string]*desk, m journal.Meta, list []agent.DecisionRecord) {
	top, via := m, m.ID
	for range metas { // and no further, whatever the logs say
		if !top.IsChild() {
			break
		}
		top, via = metas[top.Parent], top.ID
	}
	f := fronts[top.ID]
	if f == nil {
		f = &desk{asked: map[string]agent.ApprovalAsked{}}
		fronts[top.ID] = f
		for e, err := range x.cfg.Logs().Read(ctx, top.ID, 0) {
			if err != nil {
				break // as far as it can be read
			}
			switch b := e.Body.(type) {
			case agent.ApprovalAsked:
				if b.Child != "" {
					f.asked[b.ID] = b
				}
			case agent.ApprovalResolved:
				if _, ok := f.asked[b.ID]; ok {
					f.answers = append(f.answers, b)
				}
			}
		}
	}
	for i, r := range list {
		at := slices.IndexFunc(f.answers, func(b agent.ApprovalResolved) bool {
			q := f.asked[b.ID]
			return q.Child == via && q.Proposal.Call.ID == r.Proposal.Call.ID && q.Proposal.Agent == r.Proposal.Agent &&
				bytes.Equal(q.Proposal.Call.Input, r.Proposal.Call.Input) && b.Decision.Verdict == r.Decision.Verdict && b.Decision.By == r.Decision.By
		})
		if at >= 0 {
			list[i].Answer = &f.answers[at]
			f.answers = slices.Delete(slices.Clone(f.answers), at, at+1)
		}
	}
}
