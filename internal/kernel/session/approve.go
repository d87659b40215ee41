package session

import (
	"context"
	"fmt"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// byNobody says who has denied a call when there is nobody to ask.
const byNobody = "nobody"

// askPerson is the last stage of the gate. The question of a child stands in its
// parent's log, where the person is, under a name that only the child gives:
// calls of two sessions may have the same ID.
func (s *Session) askPerson(ctx context.Context, p agent.Proposal, d agent.Decision) (agent.Decision, error) {
	var id string
	s.rec.read(func(st *transcript.State) { id = s.approvalID(st, p.Call.ID) })
	if err := s.proposePlan(id, p); err != nil {
		return agent.Decision{}, err
	}
	return s.front.question(ctx, id, s.via, p, d)
}

// question puts a question into the log and waits for the first answer. The
// wait is durable: after a restart the same question is still open, or its
// answer is there. One question is asked at a time.
func (s *Session) question(ctx context.Context, id, child string, p agent.Proposal, d agent.Decision) (agent.Decision, error) {
	if s.above != nil {
		return s.above(ctx, id, child, p, d)
	}
	if !s.approver {
		return agent.Decision{
			Verdict: agent.Deny, By: byNobody,
			Reason: fmt.Sprintf("it needs approval (%s), and nobody is there to ask", d.Reason),
		}, nil
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return agent.Decision{}, context.Cause(ctx)
	}
	reply := make(chan agent.ApprovalResolved, 1)
	s.mu.Lock()
	s.waiting[id] = reply
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, id)
		s.mu.Unlock()
	}()
	// Looked up behind the registration: an answer is in one place or the other.
	var asked, answered bool
	var answer agent.ApprovalResolved
	s.rec.read(func(st *transcript.State) {
		answer, answered = st.Resolved[id]
		_, asked = st.Approvals[id]
	})
	if answered {
		return answer.Decision, nil
	}
	if !asked {
		body := agent.ApprovalAsked{ID: id, Proposal: p, Reason: d.Reason, Rule: d.Rule, Trace: d.Trace, Child: child}
		if s.points.Permissions.Offer != nil {
			body.Choices, body.Diff = s.points.Permissions.Offer(ctx, p, d)
		}
		if err := s.rec.append(journal.Batch{Sync: journal.Barrier}, body); err != nil {
			return agent.Decision{}, err
		}
	}
	select {
	case a := <-reply:
		return a.Decision, nil
	case <-ctx.Done():
		return agent.Decision{}, fmt.Errorf("waiting for approval: %w", context.Cause(ctx))
	}
}

// approvalID names the question about a call: the same after a restart, and
// another one for each time that the call was started before. A yes to the call
// is no yes to running it once more.
func (s *Session) approvalID(st *transcript.State, call string) string {
	about := call
	if st.Open != nil {
		for _, c := range st.Open.Calls {
			if c.Call.ID == call && c.Started != nil {
				about = fmt.Sprintf("%s\x00again after %d", call, max(c.Started.Attempt, 1))
			}
		}
	}
	return "ap_" + loop.Key(s.id, st.Turn.ID, st.Turn.Step, about)[:16]
}
