package loop

import (
	"context"
	"fmt"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// Ask puts a side question to a model, with the same retries, and leaves its
// request and its answer in the log.
func Ask(ctx context.Context, cfg Config, q agent.Question) (agent.Answer, error) {
	if q.Purpose == "" {
		return agent.Answer{}, fmt.Errorf("asking a side question: it has no purpose")
	}
	t := newTurn(cfg)
	t.step = cfg.First
	_, answered, err := t.ask(ctx, Want{Question: &q})
	if err != nil {
		return agent.Answer{}, err
	}
	return answered.Answer, t.Store(false, answered)
}

// Invoke runs one call on behalf of a capability, through the same gate and
// guard as a call of the model. The conversation does not see it.
func Invoke(ctx context.Context, cfg Config, tools plug.Tools, id string, inv agent.Invocation) (agent.Result, error) {
	if inv.Origin == "" {
		return agent.Result{}, fmt.Errorf("invoking %s: it has no origin", inv.Tool)
	}
	if inv.Alone {
		cfg.Person, cfg.Hooks.Asking = nobody, nil
	}
	t := newTurn(cfg)
	t.step = cfg.First
	j := t.newJob(agent.Call{ID: id, Tool: inv.Tool, Input: inv.Input}, inv.Origin)
	t.decide(ctx, tools, j, patient)
	if ctx.Err() != nil {
		return agent.Result{}, context.Cause(ctx)
	}
	bodies := j.facts()
	if j.done {
		return *j.refused, t.Store(true, bodies...)
	}
	started, err := t.starting(ctx, []*job{j})
	if err != nil {
		return agent.Result{}, err
	}
	if err := t.Store(true, append(bodies, started...)...); err != nil {
		return agent.Result{}, err
	}
	done := t.runCall(ctx, j)
	return done.Result, t.Store(j.class != agent.Read, done)
}

// nobody denies what a person would have to be asked about.
func nobody(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) {
	return agent.Decision{Verdict: agent.Deny, Reason: "no rule allows it, and nobody is asked here", By: "origin"}, nil
}
