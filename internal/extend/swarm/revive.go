package swarm

import (
	"context"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// revival is the work of a call that an earlier program has left pending.
type revival struct {
	s      *Swarm
	handle string
	p      agent.PendingCall
}

// Revive returns what goes on with the work of a call that an earlier program has left
// pending: the same child works on the same task, from where it was cut short, and has its
// time limit anew. It is settled once, like any other; as failed where the work cannot be
// handed over any more. nil = the call was none of these tools'.
func (s *Swarm) Revive(handle string, p agent.PendingCall) plug.Revival {
	if p.Tool != Tool && p.Tool != HandoffTool || s.c.Settle == nil || p.Key == "" {
		return nil
	}
	return &revival{s, handle, p}
}

// Resurrect has the work go on.
func (r *revival) Resurrect() {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return // it is left for the next program
	}
	s.watching.Add(1)
	go r.run()
}

func (r *revival) run() {
	s := r.s
	defer s.watching.Done()
	res, err := toolResult(r.again(s.life))
	if err != nil {
		res = agent.Failure(agent.ErrTool, err.Error(), "")
	}
	if s.life.Err() != nil {
		return // the program ends: the next one has it go on, unless it is settled by now
	}
	if res.Status != agent.StatusPending { // it does not run, or did so without being pending
		_ = s.c.Settle(s.settling, agent.Settlement{Handle: r.handle, Result: res})
	}
}

// again makes the call once more.
func (r *revival) again(ctx context.Context) (agent.Result, error) {
	if r.p.Tool == Tool {
		return r.s.run(agent.WithCallEnv(ctx, agent.CallEnv{Key: r.p.Key}), agent.Call{Tool: r.p.Tool, Input: r.p.Input})
	}
	in, err := r.s.message(r.p.Input)
	if err != nil {
		return agent.Result{}, err
	}
	res, err := toolResult(r.s.delegate(ctx, in, agent.CallEnv{Key: r.p.Key}))
	if res.Status != agent.StatusPending { // nobody has taken it
		j := job{message: &Message{From: r.s.self(), To: in.To, Correlation: correlation(in, r.p.Key)}}
		res = j.reply(res)
	}
	return res, err
}
