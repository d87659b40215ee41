package client

import (
	"context"

	"dure/agent"
)

// The problems of an answer that does not count.
const (
	ProblemAnswered   agent.ProblemCode = "answered"    // id, by, verdict: somebody else was first
	ProblemNoQuestion agent.ProblemCode = "no-question" // id: nobody asks it
)

// Resolve answers a question, as [Session.Send] does, and says so when that did not count:
// somebody else has answered it before, or at the same time and otherwise. Of a session that
// does not run it cannot be told yet.
func (s *Session) Resolve(ctx context.Context, c agent.Resolve) error {
	find := agent.FindSession{Name: s.Info.ID}
	info, err := Query[agent.SessionInfo](ctx, Client{s.t}, find)
	if err != nil || info.Status != "running" {
		return s.Send(ctx, c) // which says what is wrong
	}
	before := info.Head
	if err := s.Send(ctx, c); err != nil {
		return err
	}
	if info, err = Query[agent.SessionInfo](ctx, Client{s.t}, find); err != nil {
		return err
	}
	came, ok, err := s.answerTo(ctx, c.ID, before, info.Head)
	if err != nil || ok && came.Decision.Verdict == c.Decision.Verdict {
		return err
	}
	if !ok {
		if came, ok, err = s.answerTo(ctx, c.ID, 0, before); err != nil {
			return err
		}
	}
	if !ok {
		return &agent.Problem{
			Code: ProblemNoQuestion, Message: "nobody asks " + c.ID, Fix: "answer with the id of an approval.asked event",
			Args: map[string]string{"id": c.ID},
		}
	}
	return &agent.Problem{
		Code: ProblemAnswered, Message: "it was answered before: " + string(came.Decision.Verdict) + ", by " + came.Decision.By,
		Fix:  "leave it: that answer counts",
		Args: map[string]string{"id": c.ID, "verdict": string(came.Decision.Verdict), "by": came.Decision.By},
	}
}

// answerTo returns the answer to a question among the events after one up to another.
func (s *Session) answerTo(ctx context.Context, question string, after, to int64) (agent.ApprovalResolved, bool, error) {
	if to <= after {
		return agent.ApprovalResolved{}, false, nil
	}
	for e, err := range s.Events(ctx, after) {
		if err != nil {
			return agent.ApprovalResolved{}, false, err
		}
		if b, ok := e.Body.(agent.ApprovalResolved); ok && b.ID == question {
			return b, true, nil
		}
		if e.Seq >= to {
			break
		}
	}
	return agent.ApprovalResolved{}, false, ctx.Err()
}
