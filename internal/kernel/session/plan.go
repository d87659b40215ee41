package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"dure/agent"
	"dure/internal/state/journal"
	"dure/internal/state/plan"
	"dure/internal/state/transcript"
)

// agreed is the command by which a call says that it runs: somebody has agreed to its
// plan.
type agreed struct{ call, text string }

// planFirst is the command that PlanFirst becomes.
type planFirst struct{}

// Command returns the name of the command.
func (agreed) Command() string    { return "agreed" }
func (planFirst) Command() string { return "plan first" }

// PlanAgreed records that the plan of a running call is agreed to, ends plan mode, and
// returns what has become of the plan since the model wrote it.
func (s *Session) PlanAgreed(ctx context.Context, call, text string) (changes []string, err error) {
	if err := s.Send(ctx, agreed{call, text}); err != nil {
		return nil, err
	}
	s.rec.read(func(st *transcript.State) {
		if p := st.Plan; p != nil && p.Call == call {
			changes = plan.Diff(p.Was, p.Body)
		}
	})
	return changes, nil
}

// PlanFirst turns plan mode on, because the model wants to plan.
func (s *Session) PlanFirst(ctx context.Context) error { return s.Send(ctx, planFirst{}) }

// Planning returns when the session plans before it does anything.
func (s *Session) Planning() (mode agent.PlanMode) {
	if s.points.Plans.Of == nil {
		return agent.PlanOff
	}
	s.rec.read(func(st *transcript.State) { mode = st.Planning })
	return cmp.Or(mode, s.points.Plans.Mode, agent.PlanOff)
}

// PlanPut reports whether the call that put the newest plan to the user has no result
// yet: killed between the agreement and that, it runs again, with plan mode over.
func (s *Session) PlanPut() (put bool) {
	if s.points.Plans.Of == nil { // it has none, or its parts are being made
		return false
	}
	s.rec.read(func(st *transcript.State) {
		put = st.Plan != nil && st.Open != nil && slices.ContainsFunc(st.Open.Calls, func(c *transcript.CallState) bool {
			return c.Call.ID == st.Plan.Call && c.Finished == nil
		})
	})
	return put
}

// planText is what a plan says by now: what the model wrote, as long as nobody has
// changed it.
func planText(p *transcript.Plan) string {
	if p.Edits == 0 {
		return p.Text
	}
	return plan.Render(p.Body)
}

// proposePlan records the plan that a call puts to the user, before they are asked. One
// that nobody is there to decide about waits until somebody is.
func (s *Session) proposePlan(id string, p agent.Proposal) error {
	if s.points.Plans.Of == nil || s.via != "" || p.Origin != "" {
		return nil
	}
	text, ok := s.points.Plans.Of(p.Call)
	if !ok {
		return nil
	}
	var known bool
	s.rec.read(func(st *transcript.State) { known = st.Plan != nil && st.Plan.Ask == id && st.Plan.Call == p.Call.ID })
	if known { // the question is asked again, after a restart
		return nil
	}
	return s.rec.append(journal.Batch{Sync: journal.Barrier}, proposed(p.Call.ID, id, text))
}

func proposed(call, ask, text string) agent.PlanProposed {
	return agent.PlanProposed{Plan: newID("pl_"), Call: call, Ask: ask, Text: text, Body: plan.Parse(text)}
}

// planAnswer returns what an answer to a question says of the plan that it is about, and
// puts the plan as it is by now into an agreement. A refusal is what verdict says.
func (r *runner) planAnswer(asked agent.ApprovalAsked, c *agent.Resolve, verdict agent.PlanVerdict) (bodies []agent.Body) {
	var p *transcript.Plan
	r.rec.read(func(s *transcript.State) { p = s.Plan })
	if p == nil || p.Ask != c.ID || p.State != "" {
		return nil
	}
	call := asked.Proposal.Call
	switch {
	case c.Decision.Verdict != agent.Allow:
		return []agent.Body{agent.PlanDecided{Plan: p.ID, Verdict: verdict, Reason: c.Decision.Reason, By: c.Decision.By}}
	case len(c.Decision.Input) > 0:
		text, ok := r.points.Plans.Of(agent.Call{ID: call.ID, Tool: call.Tool, Input: c.Decision.Input})
		if ok && text != planText(p) && len(text) <= plan.MaxText {
			return []agent.Body{agent.PlanChanged{Plan: p.ID, Body: plan.Parse(text), Do: agent.PlanText, By: c.Decision.By}}
		}
	case p.Edits > 0:
		c.Decision.Input = r.points.Plans.With(call, planText(p))
	}
	return nil
}

// settling is store, and settles with the same write the plan of a call that is denied by
// somebody. Where nobody was there to agree, or the turn was stopped, it waits on.
func (s *Session) settling(sync bool, bodies ...agent.Body) error {
	var p *transcript.Plan
	s.rec.read(func(st *transcript.State) { p = st.Plan })
	if p == nil || p.State != "" {
		return s.rec.store(sync, bodies...)
	}
	for _, b := range bodies {
		c, ok := b.(agent.CallDecided)
		d := c.Decision
		if ok && c.Proposal.Call.ID == p.Call && d.Verdict == agent.Deny && d.By != byNobody && d.By != "user" {
			bodies = append(slices.Clip(bodies), agent.PlanDecided{Plan: p.ID, Verdict: agent.PlanRejected, Reason: d.Reason, By: d.By})
			break
		}
	}
	return s.rec.store(sync, bodies...)
}

// agreed records that a call with a plan runs. It ends plan mode with the same write: a
// crash leaves both or neither.
func (r *runner) agreed(c agreed, batch journal.Batch) error {
	var p *transcript.Plan
	by := "user"
	r.rec.read(func(s *transcript.State) {
		p = s.Plan
		if s.Open == nil {
			return
		}
		for _, o := range s.Open.Calls {
			if o.Call.ID == c.call && o.Decided != nil {
				by = cmp.Or(o.Decided.Decision.By, by)
			}
		}
	})
	var bodies []agent.Body
	switch {
	case p == nil || p.Call != c.call: // nobody was asked: a hook has agreed
		first := proposed(c.call, "", c.text)
		bodies = append(bodies, first)
		p = &transcript.Plan{ID: first.Plan}
	case c.text != planText(p):
		bodies = append(bodies, agent.PlanChanged{Plan: p.ID, Body: plan.Parse(c.text), Do: agent.PlanText, By: by})
	}
	if p.State != agent.PlanApproved { // else it was before a crash
		bodies = append(bodies, agent.PlanDecided{Plan: p.ID, Verdict: agent.PlanApproved, By: by})
	}
	over, err := r.endPlanMode()
	if err != nil || len(bodies)+len(over) == 0 {
		return err
	}
	return r.rec.append(batch, append(bodies, over...)...)
}

// endPlanMode has the permission mode hold again that held before. A session that was
// opened again may have left plan mode already, without a word in the log.
func (r *runner) endPlanMode() ([]agent.Body, error) {
	var logged agent.Mode
	r.rec.read(func(s *transcript.State) { logged = s.Mode })
	now := r.points.Plans.Now()
	if now == agent.ModePlan {
		return r.modeBy(r.afterPlan(), "plan")
	}
	if logged == agent.ModePlan && now != "" {
		return []agent.Body{agent.SettingsChanged{Mode: now, By: "plan"}}, nil
	}
	return nil, nil
}

// afterPlan is the mode that holds after a plan: never one that asks nothing.
func (r *runner) afterPlan() (m agent.Mode) {
	r.rec.read(func(s *transcript.State) { m = s.Before })
	if m == "" || m == agent.ModePlan || m == agent.ModeBypass {
		return r.points.Plans.Usual
	}
	return m
}

// modeBy sets the permission mode, and returns the fact.
func (r *runner) modeBy(m agent.Mode, by string) ([]agent.Body, error) {
	if r.points.Permissions.SetMode != nil {
		if err := r.points.Permissions.SetMode(m); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	r.mode = m
	r.mu.Unlock()
	return []agent.Body{agent.SettingsChanged{Mode: m, By: by}}, nil
}

// firstPlan returns the fact that a new turn begins in plan mode, if its request has it
// so: all of them do, or this one looks like much work and somebody is there to agree to
// a plan. Where nothing is asked at all, nothing is planned either.
func (r *runner) firstPlan(requests ...string) ([]agent.Body, error) {
	mode := r.Planning()
	if mode == agent.PlanOff {
		return nil, nil
	}
	if now := r.points.Plans.Now(); now == agent.ModePlan || now == agent.ModeBypass {
		return nil, nil
	}
	if mode == agent.PlanAuto && (!r.approver || !slices.ContainsFunc(requests, plan.Complex)) {
		return nil, nil
	}
	return r.modeBy(agent.ModePlan, "plan")
}

// planOn turns plan mode on again for what was begun in it when its program ended: else
// what was to be planned would be done. A session that is opened at rest leaves it.
func (r *runner) planOn() error {
	if r.points.Plans.Now == nil {
		return nil
	}
	var planned bool
	r.rec.read(func(s *transcript.State) { planned = s.Mode == agent.ModePlan && !s.Lapsed })
	if now := r.points.Plans.Now(); !planned || now == agent.ModePlan || now == agent.ModeBypass {
		return nil
	}
	bodies, err := r.modeBy(agent.ModePlan, "plan")
	if err != nil {
		return err
	}
	return r.rec.append(journal.Batch{Sync: journal.Barrier}, bodies...)
}

// planQueued turns plan mode on for the requests that wait and begin a turn now.
func (r *runner) planQueued() error {
	var requests []string
	r.rec.read(func(s *transcript.State) {
		if s.Turn.Open {
			return
		}
		agreement := "" // it waits for a hook, and is no request: its plan is approved
		if p := s.Agreed; p != nil && r.points.Plans.Agree != nil {
			agreement = r.points.Plans.Agree(planText(p), plan.Diff(p.Was, p.Body))
		}
		for _, q := range s.Queued {
			if q.Origin == "" && q.Text != agreement {
				requests = append(requests, q.Text)
			}
		}
	})
	if len(requests) == 0 {
		return nil
	}
	bodies, err := r.firstPlan(requests...)
	if err != nil || bodies == nil {
		return err
	}
	return r.rec.append(journal.Batch{Sync: journal.Barrier}, bodies...)
}

// planByModel turns plan mode on because the model wants to plan first.
func (r *runner) planByModel(batch journal.Batch) error {
	if r.points.Plans.Now == nil || r.points.Plans.Now() == agent.ModePlan {
		return nil
	}
	bodies, err := r.modeBy(agent.ModePlan, "model")
	if err != nil {
		return err
	}
	return r.rec.append(batch, bodies...)
}

// changePlan changes the plan that waits for a decision.
func (r *runner) changePlan(c agent.ChangePlan, batch journal.Batch) error {
	p := r.waitingPlan(c.Plan)
	if p == nil {
		return r.noPlan()
	}
	body, err := plan.Change(p.Body, c)
	if err != nil {
		return &agent.Problem{
			Code: agent.ProblemPlan, Message: "the plan stays as it is: " + err.Error(), Fix: "see it with: /plan show",
			Args: map[string]string{"session": r.id, "error": err.Error()}, Err: err,
		}
	}
	return r.rec.append(batch, agent.PlanChanged{Plan: p.ID, Body: body, Do: c.Do, Step: c.Step, To: c.To, By: "user"})
}

// waitingPlan returns the plan that waits for a decision; nil = there is none, or it is
// not the one that was meant.
func (r *runner) waitingPlan(id string) (p *transcript.Plan) {
	r.rec.read(func(s *transcript.State) { p = s.Plan })
	if p == nil || p.State != "" || id != "" && id != p.ID {
		return nil
	}
	return p
}

func (r *runner) noPlan() error {
	return &agent.Problem{
		Code: agent.ProblemNoPlan, Message: "there is no plan that waits for a decision",
		Fix: "ask for one with: /plan WHAT", Args: map[string]string{"session": r.id},
	}
}

// decidePlan decides about the plan that waits: as the answer to its question, or, when
// nothing waits for that any more, in a turn of its own.
func (r *runner) decidePlan(c agent.DecidePlan, batch journal.Batch) error {
	p := r.waitingPlan(c.Plan)
	if p == nil && c.Verdict == agent.PlanRejected {
		return r.withdrawPlan(c, batch)
	}
	if p == nil {
		return r.noPlan()
	}
	if c.Verdict == agent.PlanAnother && p.Again >= r.points.Plans.Retries {
		return &agent.Problem{
			Code: agent.ProblemPlans, Message: fmt.Sprintf("the plan has been made anew %d times", p.Again),
			Fix: "change it yourself, approve it or reject it", Args: map[string]string{"session": r.id, "n": fmt.Sprint(p.Again)},
		}
	}
	var asked bool
	r.rec.read(func(s *transcript.State) { _, asked = s.Approvals[p.Ask] })
	if !asked {
		return r.decideLater(c, p, batch)
	}
	answer := agent.Resolve{ID: p.Ask, Decision: agent.Decision{Verdict: agent.Deny, By: "user", Reason: c.Reason}}
	switch c.Verdict {
	case agent.PlanApproved:
		answer.Decision.Verdict = agent.Allow
	case agent.PlanRejected:
		answer.Decision.Stop = true
	default:
		answer.Decision.Reason = r.points.Plans.Another(c.Reason)
	}
	if err := r.answer(answer, c.Verdict, batch); err != nil {
		return err
	}
	return r.proceed() // the turn was cut short while it waited
}

// withdrawPlan takes the agreement to the newest plan back: it is not carried along any
// more.
func (r *runner) withdrawPlan(c agent.DecidePlan, batch journal.Batch) error {
	var p *transcript.Plan
	r.rec.read(func(s *transcript.State) { p = s.Agreed })
	if p == nil || c.Plan != "" && c.Plan != p.ID {
		return r.noPlan()
	}
	return r.rec.append(batch, agent.PlanDecided{Plan: p.ID, Verdict: agent.PlanRejected, Reason: c.Reason, By: "user"})
}

// decideLater decides about a plan whose call has been answered long ago: nobody was
// there, or the turn was stopped. The model reads of it as of a request, which is in the
// log with the decision or not at all.
func (r *runner) decideLater(c agent.DecidePlan, p *transcript.Plan, batch journal.Batch) error {
	bodies, err := r.atRest("decide about the plan")
	if err != nil {
		return err
	}
	bodies = append(bodies, agent.PlanDecided{Plan: p.ID, Verdict: c.Verdict, Reason: c.Reason, By: "user"})
	var more []agent.Body
	words := ""
	switch c.Verdict {
	case agent.PlanApproved:
		words = r.points.Plans.Agree(planText(p), plan.Diff(p.Was, p.Body))
		more, err = r.endPlanMode()
	case agent.PlanAnother:
		words = r.points.Plans.Another(c.Reason)
		if r.points.Plans.Now() != agent.ModePlan {
			more, err = r.modeBy(agent.ModePlan, "plan")
		}
	}
	if err != nil {
		return err
	}
	if bodies = append(bodies, more...); words == "" {
		return r.rec.append(batch, bodies...)
	}
	return r.said(agent.InputQueued{Input: newID("in_"), Text: words}, bodies, batch)
}
