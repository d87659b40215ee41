package session

import (
	"context"
	"fmt"

	"dure/agent"
	"dure/internal/journal"
	"dure/internal/loop"
	"dure/internal/transcript"
)

// askPerson is the last stage of the gate: it puts the question into the log
// and waits for the first answer. The wait is durable: after a restart the same
// question is still open, or its answer is there. One question is asked at a
// time.
func (s *Session) askPerson(ctx context.Context, p agent.Proposal, d agent.Decision) (agent.Decision, error) {
	if !s.approver {
		return agent.Decision{
			Verdict: agent.Deny, By: "nobody",
			Reason: fmt.Sprintf("it needs approval (%s), and nobody is there to ask", d.Reason),
		}, nil
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return agent.Decision{}, context.Cause(ctx)
	}
	var id string
	s.rec.read(func(st *transcript.State) {
		id = "ap_" + loop.Key(s.id, st.Turn.ID, st.Turn.Step, p.Call.ID)[:16]
	})
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
		body := agent.ApprovalAsked{ID: id, Proposal: p, Reason: d.Reason, Trace: d.Trace}
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
