package swarm

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/base/frontmatter"
)

// CoordinateTool is the canonical name of the tool that has agents do a plan.
const CoordinateTool = "agent__coordinate"

//go:embed coordinate.md
var aboutCoordinate string

const planSchema = `{"type":"object","properties":{` +
	`"originalRequest":{"type":"string"},` +
	`"tasks":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"object","properties":{` +
	`"id":{"type":"string"},"agentType":{"type":"string"},"description":{"type":"string"},` +
	`"dependencies":{"type":"array","items":{"type":"string"}},` +
	`"isolation":{"type":"string","enum":["none","worktree","process"]}},` +
	`"required":["id","description"],"additionalProperties":false}}},` +
	`"required":["tasks"],"additionalProperties":false}`

// Coordinator returns the tool that has agents do a plan. Its calls count as reading, as
// those of [Swarm.Tool] do: made again after a crash, each task finds its agent.
func (s *Swarm) Coordinator() agent.Tool { return coordinator{s} }

type coordinator struct{ *Swarm }

// Spec describes the tool.
func (coordinator) Spec() agent.Spec {
	return agent.Spec{
		Name: CoordinateTool, Description: strings.TrimSpace(aboutCoordinate), Input: json.RawMessage(planSchema),
		Class: agent.Read, Group: "agents", Risk: agent.RiskLow, Limit: longest, Budget: report + around,
	}
}

// Enabled reports whether the tool is offered: where there are types of agents other than
// the program's, and to types that name it. A single piece of work goes by [Swarm.Tool].
func (t coordinator) Enabled() bool { return t.crewed() }

// crewed reports whether somebody has defined types of agents, or the session's own one works
// with others. A swarm that is only looked at may have none at all.
func (s *Swarm) crewed() bool {
	return s.c.Crewed || s.c.Types != nil && slices.ContainsFunc(s.c.Types.All(), func(d Definition) bool { return d.Usable() && d.Place.Scope != frontmatter.BuiltIn })
}

// Plan checks the plan. It touches nothing.
func (t coordinator) Plan(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Effects, error) {
	_, err := t.planned(c.Input)
	return agent.Effects{}, err
}

// Run does the plan.
func (t coordinator) Run(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	p, err := t.planned(c.Input)
	if err != nil {
		return toolResult(agent.Result{}, err)
	}
	env := agent.CallEnvOf(ctx)
	r := running{s: t.Swarm, p: p, call: c.ID, key: env.Key, show: env.Progress, ended: make(chan int, len(p.Tasks))}
	r.do(ctx)
	if ctx.Err() != nil {
		return agent.Failure(agent.ErrAborted, "the plan was stopped; "+r.tally(), ""), nil
	}
	return r.result(), nil
}

// running is a plan that is being done. It belongs to the goroutine of its call; those of
// the tasks touch nothing of it but ended.
type running struct {
	s     *Swarm
	p     Plan
	call  string
	key   string
	show  func(string)
	ended chan int

	mu      sync.Mutex
	results map[int]agent.Result // of the tasks that have ended
}

// do starts what can be started until all is over, and waits for all that it has
// started.
func (r *running) do(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	active := 0
	for {
		for i := range r.p.Tasks {
			if active < maxAtOnce && ctx.Err() == nil && r.ready(i) {
				r.stands(i, Running)
				task := r.p.task(r.p.Tasks[i])
				key := r.key + "/" + r.p.Tasks[i].ID
				active++
				all.Go(func() { r.one(ctx, i, key, task) })
			}
		}
		if active == 0 {
			return
		}
		r.end(<-r.ended)
		active--
	}
}

// ready reports whether a task can start: all that it needs is done.
func (r *running) ready(i int) bool {
	return r.p.Tasks[i].Status == Pending && !slices.ContainsFunc(r.p.Tasks[i].Needs, func(need string) bool { return r.status(need) != Completed })
}

func (r *running) status(id string) TaskStatus {
	return r.p.Tasks[slices.IndexFunc(r.p.Tasks, func(t Subtask) bool { return t.ID == id })].Status
}

// skip skips what needs a task that is not going to be done, and what needs that in
// turn.
func (r *running) skip() {
	for again := true; again; {
		again = false
		for i := range r.p.Tasks {
			t := &r.p.Tasks[i]
			for _, need := range t.Needs {
				if s := r.status(need); t.Status == Pending && (s == Failed || s == Skipped) {
					t.Result, again = "It needs "+need+", which was not done.", true
					r.stands(i, Skipped)
				}
			}
		}
	}
}

// one does a task.
func (r *running) one(ctx context.Context, i int, key string, task Task) {
	res, err := r.s.hand(ctx, key, task)
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		res = agent.Failure(te.Code, te.Message, te.Suggestion)
	} else if err != nil {
		res = agent.Failure(agent.ErrTool, err.Error(), "")
	}
	r.mu.Lock()
	if r.results == nil {
		r.results = map[int]agent.Result{}
	}
	r.results[i] = res
	r.mu.Unlock()
	r.ended <- i
}

// end takes the result of a task.
func (r *running) end(i int) {
	r.mu.Lock()
	res := r.results[i]
	r.mu.Unlock()
	t := &r.p.Tasks[i]
	t.Result = res.Text
	if res.Failed() {
		r.stands(i, Failed)
	} else {
		r.stands(i, Completed)
	}
	r.skip()
	if r.show != nil {
		r.show(fmt.Sprintf("%s: %s; %s\n", t.ID, strings.ToLower(string(t.Status)), r.tally()))
	}
}

// stands sets how a task stands, and records it.
func (r *running) stands(i int, status TaskStatus) {
	t := &r.p.Tasks[i]
	t.Status = status
	if r.s.c.Progressed == nil {
		return
	}
	over, done := r.count()
	// A log that cannot be written ends the turn by itself.
	_ = r.s.c.Progressed(agent.CrewProgressed{
		Call: r.call, Task: t.ID, Agent: t.Type, Status: strings.ToLower(string(status)),
		Over: over, Done: done, Of: len(r.p.Tasks), Percent: 100 * over / len(r.p.Tasks),
	})
}

// count returns how many tasks are over, and how many of those are done.
func (r *running) count() (over, done int) {
	for _, t := range r.p.Tasks {
		if t.Status.over() {
			over++
		}
		if t.Status == Completed {
			done++
		}
	}
	return over, done
}

// tally says how far the plan is.
func (r *running) tally() string {
	over, done := r.count()
	return fmt.Sprintf("%d of %d tasks are over (%d %%), %d of them done", over, len(r.p.Tasks), 100*over/len(r.p.Tasks), done)
}

// result is all that came of the plan.
func (r *running) result() agent.Result {
	var b strings.Builder
	b.WriteString(r.tally() + ".")
	for _, t := range r.p.Tasks {
		fmt.Fprintf(&b, "\n\n## %s (%s): %s\n%s", t.ID, t.Type, t.Status, t.Result)
	}
	res := agent.OK(b.String())
	res.Output = structured(r.p)
	return res
}

// hand hands a task over and waits for its end.
func (s *Swarm) hand(ctx context.Context, key string, in Task) (agent.Result, error) {
	d, err := s.pick(in.kind())
	if err != nil {
		return agent.Result{}, err
	}
	j, child, err := s.prepare(ctx, d, in, key, "")
	if err != nil {
		return agent.Result{}, err
	}
	return s.work(ctx, j, child, nil)
}
