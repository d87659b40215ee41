package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/state/transcript"
)

// serve stores an answer and runs its calls. The answer and every decision that
// did not have to wait share one barrier. Neighbouring read-only calls run at
// once; every other call runs alone, after those before it.
func (t *turn) serve(ctx context.Context, step Step, answered agent.ModelAnswered, calls []agent.Call) error {
	if len(calls) == 0 {
		return t.Store(false, answered)
	}
	t.message = answered.Message
	bodies := []agent.Body{answered}
	jobs := make([]*job, len(calls))
	for i, c := range calls {
		jobs[i] = t.newJob(c, "")
		t.decide(ctx, step.Tools, jobs[i], quick)
		bodies = append(bodies, jobs[i].facts()...)
	}
	if group := next(jobs); group != nil && group[0].ready() {
		started, err := t.starting(ctx, group)
		if err != nil {
			return err
		}
		bodies = append(bodies, started...)
	}
	if err := t.Store(true, bodies...); err != nil {
		return err
	}
	for _, j := range jobs {
		t.tell(ctx, j)
	}
	t.machine.must(agent.StateToolUse, "")
	t.machine.must(agent.StateExecuting, "")
	if err := t.runJobs(ctx, step.Tools, jobs); err != nil {
		return err
	}
	return t.batch(ctx, jobs)
}

// facts returns what is to be stored about a job that has been decided on, and
// marks a refused one as done.
func (j *job) facts() []agent.Body {
	var bodies []agent.Body
	if j.waits {
		return nil
	}
	if j.decided != nil && !j.known {
		bodies = append(bodies, *j.decided)
	}
	if j.refused != nil {
		j.result = finished(j.call, *j.refused, 0)
		bodies = append(bodies, j.result)
		j.done = true
	}
	return bodies
}

// next returns the jobs to run next: neighbouring reads that are decided, neighbouring
// ones that are not, or one other job. It is empty when all are done.
func next(jobs []*job) []*job {
	first := slices.IndexFunc(jobs, func(j *job) bool { return !j.done })
	if first < 0 {
		return nil
	}
	last := first + 1
	for _, beside := range []func(*job) bool{(*job).beside, (*job).waiting} {
		if beside(jobs[first]) {
			for last < len(jobs) && !jobs[last].done && beside(jobs[last]) {
				last++
			}
		}
	}
	return jobs[first:last]
}

// ready reports whether a job can be started.
func (j *job) ready() bool { return !j.waits && j.refused == nil }

// beside reports whether a job may run beside others.
func (j *job) beside() bool { return j.ready() && j.class == agent.Read }

// waiting reports whether a job may be decided on beside others.
func (j *job) waiting() bool { return j.waits && j.class == agent.Read }

// runJobs takes the jobs in order until all have a result. When it returns an
// error, the calls that are left have been answered too, unless it is
// [agent.ErrParked] or [agent.ErrDeferred].
func (t *turn) runJobs(ctx context.Context, tools plug.Tools, jobs []*job) error {
	for {
		group := next(jobs)
		if group == nil {
			return nil
		}
		err := context.Cause(ctx)
		if err == nil {
			err = t.runGroup(ctx, tools, group)
		}
		if err == nil && slices.ContainsFunc(group, func(j *job) bool { return j.stop }) {
			err = ErrStopped
		}
		if err != nil {
			return t.leave(err, jobs)
		}
	}
}

// leave answers the calls that are left when a turn ends before its time. Those
// of a turn that is gone on with stay open.
func (t *turn) leave(err error, jobs []*job) error {
	if errors.Is(err, agent.ErrParked) || errors.Is(err, agent.ErrDeferred) {
		return err
	}
	return errors.Join(err, t.abort(jobs))
}

// runGroup decides on a job that had to wait, or runs a group to its end.
func (t *turn) runGroup(ctx context.Context, tools plug.Tools, group []*job) error {
	if !group[0].ready() {
		return t.runLate(ctx, tools, group)
	}
	if !group[0].running {
		started, err := t.starting(ctx, group)
		if err != nil {
			return err
		}
		if err := t.Store(changes(group), started...); err != nil {
			return err
		}
	}
	return t.runStarted(ctx, group)
}

// runLate decides on jobs that had to wait, and runs one that may. What was decided
// and that it starts share a barrier. Neighbouring reads are decided on at once as far
// as no person is needed: what the gate waits for may be slow.
func (t *turn) runLate(ctx context.Context, tools plug.Tools, group []*job) error {
	if len(group) > 1 {
		var wg sync.WaitGroup
		for _, j := range group {
			wg.Go(func() { t.decide(ctx, tools, j, brief) })
		}
		wg.Wait()
	}
	// What was decided is in the log before a person is asked: their answer may be about
	// other calls too.
	if !slices.ContainsFunc(group, func(j *job) bool { return !j.waits }) && ctx.Err() == nil {
		t.decide(ctx, tools, group[0], patient)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if aside := group[0].aside; aside != nil {
		return errors.Join(agent.ErrDeferred, t.Store(true, *aside))
	}
	var bodies []agent.Body
	for _, j := range group {
		bodies = append(bodies, j.facts()...)
		j.known = j.decided != nil
	}
	if next := group[:1]; !next[0].done && len(group) == 1 {
		started, err := t.starting(ctx, next)
		if err != nil {
			return err
		}
		if err := t.Store(true, append(bodies, started...)...); err != nil {
			return err
		}
		return t.runStarted(ctx, next)
	}
	if err := t.Store(true, bodies...); err != nil {
		return err
	}
	for _, j := range group {
		t.tell(ctx, j)
	}
	return nil
}

// runStarted runs jobs whose start is stored, and stores their results.
func (t *turn) runStarted(ctx context.Context, group []*job) error {
	for _, j := range group {
		j.begun = j.class != agent.Read
	}
	results := make([]agent.Body, len(group))
	var wg sync.WaitGroup
	slots := make(chan struct{}, t.Limits.Parallel)
	for i, j := range group {
		run := func() { results[i] = t.runCall(ctx, j) }
		if len(group) == 1 {
			run()
			break
		}
		slots <- struct{}{}
		wg.Go(func() { defer func() { <-slots }(); run() })
	}
	wg.Wait()
	for i, j := range group {
		j.result = results[i].(agent.CallFinished)
		t.count(j, j.result.Result)
	}
	if err := t.Store(changes(group), results...); err != nil {
		return err
	}
	for _, j := range group {
		j.done = true
	}
	return nil
}

// changes reports whether one of the jobs can change something.
func changes(group []*job) bool {
	return slices.ContainsFunc(group, func(j *job) bool { return j.class != agent.Read })
}

// starting returns the events that announce the jobs.
func (t *turn) starting(ctx context.Context, group []*job) ([]agent.Body, error) {
	var bodies []agent.Body
	for _, j := range group {
		if c, ok := j.tool.(agent.Checker); ok && j.class == agent.Checkable && j.mark == nil {
			mark, err := c.Mark(ctx, t.toolContext(j.call), j.call)
			if err != nil {
				j.class = agent.Unsafe // what cannot be probed is not run twice
			}
			j.mark = mark
		}
		j.running = true
		bodies = append(bodies, agent.CallStarted{
			ID: j.call.ID, Tool: j.call.Tool, Class: j.class, Key: j.key, Attempt: j.attempt, Mark: j.mark,
		})
	}
	return bodies, nil
}

// runCall runs one call and returns the event with its guarded result.
func (t *turn) runCall(ctx context.Context, j *job) agent.CallFinished {
	start := time.Now()
	limit := j.spec.Limit
	if limit <= 0 {
		limit = t.Limits.Call
	}
	runCtx, cancel := context.WithTimeoutCause(ctx, limit, errTime)
	defer cancel()
	show := t.display(j)
	r := t.await(t.withEnv(runCtx, j, show), j)
	show.close()
	if errors.Is(context.Cause(runCtx), errTime) && r.Failed() {
		r = overdue(limit, r)
	}
	r.ID = j.call.ID
	guarded, err := t.Guard(context.WithoutCancel(ctx), j.spec, j.call, r)
	if err != nil {
		guarded = agent.Failure(agent.ErrWithheld, "The result was withheld: "+err.Error(), "")
		guarded.Files = r.Files
	}
	guarded.ID = j.call.ID
	took := time.Since(start)
	return finished(j.call, t.after(ctx, j, guarded, took), took)
}

// overdue is the result of a call that was stopped at its time limit: what it
// has to show, and knows of files, stays.
func overdue(limit time.Duration, r agent.Result) agent.Result {
	late := agent.Failure(agent.ErrTimeout, fmt.Sprintf("The call took longer than its limit of %s and was stopped.", limit), "Do less in one call.")
	late.Files = r.Files
	switch {
	case r.Stream != nil:
		late.Stream = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(late.Text+"\n"), r.Stream), r.Stream}
	case r.Text != "":
		late.Text += "\n" + r.Text
	}
	return late
}

var errTime = errors.New("the time limit of the call is over")

// proposal is what the call was decided on.
func (j *job) proposal() agent.Proposal {
	if j.decided == nil {
		return agent.Proposal{Call: j.call, Class: j.class, Group: j.spec.Group, Origin: j.origin}
	}
	return j.decided.Proposal
}

// withEnv gives the call its key, and a way to show its progress.
func (t *turn) withEnv(ctx context.Context, j *job, show *display) context.Context {
	return agent.WithCallEnv(ctx, agent.CallEnv{
		Key: j.key, Class: j.class, Effects: j.proposal().Effects,
		Progress: show.add,
		Spawned: func(p agent.Process) {
			// A log that cannot be written ends the turn at the next event.
			_ = t.Store(false, agent.CallSpawned{ID: j.call.ID, Process: p})
		},
	})
}

// A display shows the output of a running call as it comes. A tool that goes on after
// its call is over shows nothing any more. It is safe for concurrent use.
type display struct {
	id   string
	live func(agent.Body)

	mu    sync.Mutex
	clean plug.Cleaner // nil = as it is
	over  bool
}

func (t *turn) display(j *job) *display {
	d := &display{id: j.call.ID, live: t.Live}
	if t.Clean != nil {
		d.clean = t.Clean(j.spec)
	}
	return d
}

func (d *display) add(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	if d.clean != nil {
		text = d.clean.Add(text)
	}
	d.show(text)
}

// close shows what was held back.
func (d *display) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.clean != nil {
		d.show(d.clean.Flush())
	}
}

func (d *display) show(text string) {
	if text != "" {
		d.live(agent.CallOutput{ID: d.id, Text: text})
	}
}

// await runs the tool. A tool that goes on after its cancellation is left to
// [Config.Strays], and its call is answered without it.
func (t *turn) await(ctx context.Context, j *job) agent.Result {
	run := plug.Run(j.tool.Run)
	for _, w := range slices.Backward(t.Wrap) {
		run = w(j.tool, run)
	}
	result := make(chan agent.Result, 1)
	t.Strays.Go(func() {
		result <- protect(ctx, run, t.toolContext(j.call), j.call)
	})
	select {
	case r := <-result:
		return r
	case <-ctx.Done():
	}
	grace := time.NewTimer(t.Limits.Grace)
	defer grace.Stop()
	select {
	case r := <-result:
		return r
	case <-grace.C:
		return agent.Failure(agent.ErrAborted, "The call did not stop when it was cancelled; its outcome is unknown.", "")
	}
}

// protect runs a tool so that neither its error nor its panic gets past it.
func protect(ctx context.Context, run plug.Run, tc agent.ToolContext, c agent.Call) (r agent.Result) {
	defer func() {
		if v := recover(); v != nil {
			if tc.Logger != nil {
				tc.Logger.Error("tool panicked", "tool", c.Tool, "panic", v, "stack", string(debug.Stack()))
			}
			r = agent.Failure(agent.ErrTool, fmt.Sprintf("Tool execution failed: internal error in %s: %v", c.Tool, v), "")
		}
	}()
	r, err := run(ctx, tc, c)
	if err == nil {
		return r
	}
	if r.Stream != nil {
		r.Stream.Close()
	}
	code := agent.ErrTool
	if ctx.Err() != nil {
		code = agent.ErrAborted
	}
	f := failure(code, err)
	f.Files = r.Files
	return f
}

// count keeps the loop breaker's books: a failing call counts until it, or a
// call that changed something, succeeds.
func (t *turn) count(j *job, r agent.Result) {
	t.books.Lock()
	defer t.books.Unlock()
	switch {
	case r.Failed():
		t.repeats[fingerprint(j.call)]++
	case j.class != agent.Read:
		clear(t.repeats)
	default:
		delete(t.repeats, fingerprint(j.call))
	}
}

// abort answers the calls that have no result yet. One that was begun is not
// said to have done nothing: the model would repeat it.
func (t *turn) abort(jobs []*job) error {
	var bodies []agent.Body
	for _, j := range jobs {
		if j.done {
			continue
		}
		r := agent.Failure(agent.ErrAborted, "The turn was stopped before this call ran.", "")
		if j.begun {
			r = transcript.Interrupted(j.call.ID)
		}
		bodies = append(bodies, finished(j.call, r, 0))
		j.done = true
	}
	if bodies == nil {
		return nil
	}
	return t.Store(true, bodies...)
}

func finished(c agent.Call, r agent.Result, took time.Duration) agent.CallFinished {
	r.ID, r.Stream = c.ID, nil
	if r.Status == "" {
		r.Status = agent.StatusOK
	}
	return agent.CallFinished{Result: r, Tool: c.Tool, Millis: took.Milliseconds()}
}
