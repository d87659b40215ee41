package loop

import (
	"context"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/state/transcript"
)

// settle deals with the calls of an answer that a crash left without results,
// in their order, each as its effect class allows.
func (t *turn) settle(ctx context.Context, open *transcript.Step) error {
	step, err := t.prepare(ctx, Want{Calls: true})
	if err != nil {
		return err
	}
	for _, c := range open.Calls {
		t.message.Blocks = append(t.message.Blocks, agent.Block{Type: agent.CallBlock, Call: &c.Call})
	}
	t.message.Role = agent.Assistant
	t.step = open.Step
	t.machine.streaming()
	t.machine.must(agent.StateToolUse, "")
	t.machine.must(agent.StateExecuting, "")
	var jobs, all []*job
	for _, c := range open.Calls {
		if c.Finished != nil {
			all = append(all, ended(c))
			continue
		}
		j := t.resumed(step.Tools, c)
		jobs, all = append(jobs, j), append(all, j)
	}
	for _, c := range open.Calls {
		if c.Finished != nil || c.Started == nil {
			continue
		}
		i := indexOf(jobs, c.Call.ID)
		if err := t.interrupted(ctx, c, jobs[i]); err != nil {
			return t.leave(err, jobs)
		}
	}
	if err := t.runJobs(ctx, step.Tools, jobs); err != nil || len(jobs) == 0 {
		return err // what had ended before may have been told
	}
	return t.batch(ctx, all)
}

// ended is the job of a call that has its result.
func ended(c *transcript.CallState) *job {
	j := &job{call: c.Call, result: *c.Finished, done: true}
	if c.Decided != nil {
		j.call = c.Decided.Proposal.Call
	}
	return j
}

// resumed builds the job of a call as far as it had come.
func (t *turn) resumed(tools plug.Tools, c *transcript.CallState) *job {
	j := t.newJob(c.Call, "")
	j.begun = c.Started != nil && c.Started.Class != agent.Read
	if c.Decided == nil {
		j.waits = true // decide now
		return j
	}
	p := c.Decided.Proposal
	j.call, j.class, j.decided, j.known = p.Call, p.Class, c.Decided, true
	if r := t.find(tools, j); r != nil {
		j.refuse(*r)
	} else if c.Decided.Decision.Verdict != agent.Allow {
		t.deny(j, c.Decided.Decision)
	}
	return j
}

// interrupted decides what becomes of a call that was started and has no
// result: it is run again, or answered with what can be found out.
func (t *turn) interrupted(ctx context.Context, c *transcript.CallState, j *job) error {
	if t.Reap != nil {
		for _, p := range c.Spawned {
			t.Reap(p)
		}
	}
	if j.refused != nil {
		return t.answer(j, *j.refused)
	}
	j.class, j.mark = c.Started.Class, c.Started.Mark
	j.attempt = max(c.Started.Attempt, 1) + 1
	switch j.class {
	case agent.Read, agent.Idempotent:
		return nil // runs again
	case agent.Checkable:
		if checker, ok := j.tool.(agent.Checker); ok {
			found, r, err := checker.Probe(ctx, t.toolContext(j.call), j.call, j.mark)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err == nil && found == agent.ProbeDone:
				return t.guarded(ctx, j, r)
			case err == nil && found == agent.ProbeNotDone:
				j.mark = nil // taken anew when it runs
				return nil
			}
		}
	}
	if t.AskAgain {
		d, err := t.Person(ctx, c.Decided.Proposal, agent.Decision{
			Verdict: agent.AskUser, By: "recovery",
			Reason: "This call was interrupted by a crash; its outcome is unknown. Run it again?",
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && d.Verdict == agent.Allow {
			return nil
		}
	}
	return t.answer(j, transcript.Interrupted(j.call.ID))
}

// guarded answers a job with a result that was found rather than made.
func (t *turn) guarded(ctx context.Context, j *job, r agent.Result) error {
	g, err := t.Guard(ctx, j.spec, j.call, r)
	if err != nil {
		g = agent.Failure(agent.ErrWithheld, "The result was withheld: "+err.Error(), "")
	}
	return t.answer(j, g)
}

func (t *turn) answer(j *job, r agent.Result) error {
	j.done, j.result = true, finished(j.call, r, 0)
	return t.Store(true, j.result)
}

func indexOf(jobs []*job, id string) int {
	for i, j := range jobs {
		if j.call.ID == id {
			return i
		}
	}
	return -1
}
