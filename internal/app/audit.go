package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/safety/guard"
	"dure/internal/state/journal"
	"dure/internal/tools/catalog"
)

// masked returns a record as it is shown: logs have the inputs of calls as they were,
// with the secrets in them.
func masked[T any](v T) (shown T, err error) {
	data, err := json.Marshal(v)
	if err == nil {
		data, err = guard.MaskJSON(data)
	}
	if err == nil {
		err = json.Unmarshal(data, &shown)
	}
	if err != nil {
		return shown, fmt.Errorf("masking secrets in decisions: %w", err)
	}
	return shown, nil
}

// decisions returns the decisions that the logs of all sessions have, as they are
// there.
func (a *App) decisions(ctx context.Context, q query.ListDecisions) ([]agent.DecisionRecord, error) {
	since := time.Time{}
	if q.Since != "" {
		t, err := time.Parse(time.RFC3339, q.Since)
		if err != nil {
			return nil, notTime(q.Since, err)
		}
		since = t
	}
	if name, ok := catalog.New(catalog.Config{}).Canonical(q.Tool); ok {
		q.Tool = name
	}
	metas := map[string]journal.Meta{}
	for m, err := range a.store.List(ctx, journal.Query{}) {
		if err != nil {
			return nil, err
		}
		metas[m.ID] = m
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
		from := int64(0)
		if _, ok := metas[m.Parent]; ok && m.ForkSeq > 0 {
			from = m.ForkSeq // up to there it is the log that it was forked from
		}
		list, err := a.decisionsOf(ctx, m, from, q.Plans)
		if err != nil && (q.Session != "" || ctx.Err() != nil) {
			return nil, err // a log that is damaged hides no other one's decisions
		}
		if m.IsChild() {
			a.answerFrom(ctx, metas, fronts, m, list)
		}
		for _, r := range list {
			if !r.Time.Before(since) && q.Selects(r) {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(x, y agent.DecisionRecord) int { return x.Time.Compare(y.Time) })
	if q.Limit > 0 && len(all) > q.Limit {
		all = all[len(all)-q.Limit:]
	}
	return all, nil
}

// decisionsOf returns the decisions of one log, as far as it can be read; with plans, what
// became of those too.
func (a *App) decisionsOf(ctx context.Context, m journal.Meta, from int64, plans bool) ([]agent.DecisionRecord, error) {
	var list []agent.DecisionRecord
	puts := map[string]agent.Call{}                 // by the ID of the plan
	asked := map[string]agent.ApprovalAsked{}       // by the ID of the question
	answers := map[string]*agent.ApprovalResolved{} // by the ID of the call
	for e, err := range a.store.Read(ctx, m.ID, from) {
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
func (a *App) answerFrom(ctx context.Context, metas map[string]journal.Meta, fronts map[string]*desk, m journal.Meta, list []agent.DecisionRecord) {
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
		for e, err := range a.store.Read(ctx, top.ID, 0) {
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
