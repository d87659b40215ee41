package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"dure/agent"
)

// Retry says how often a request that failed is repeated. The zero value works.
type Retry struct {
	Attempts int           // in all; default 3
	Min      time.Duration // first delay, doubled each time; default 1 s
	Max      time.Duration // longest delay of our own; default 30 s

	// MaxAfter is the longest Retry-After that is waited for; default 5 min. A
	// provider that asks for more has failed.
	MaxAfter time.Duration

	// Rand returns a number in [0, 1) for the jitter; nil = math/rand.
	Rand func() float64
}

func (r Retry) withDefaults() Retry {
	r.Attempts = orDefault(r.Attempts, 3)
	r.Min = orDefault(r.Min, time.Second)
	r.Max = orDefault(r.Max, 30*time.Second)
	r.MaxAfter = orDefault(r.MaxAfter, 5*time.Minute)
	if r.Rand == nil {
		r.Rand = rand.Float64
	}
	return r
}

// delay returns how long to wait before the attempt after number n, and whether
// there is to be one. What the provider asks for is obeyed as it is; a delay of
// our own is between half and all of the doubled minimum.
func (r Retry) delay(n int, err error) (time.Duration, bool) {
	var me *agent.ModelError
	if n >= r.Attempts || !errors.As(err, &me) || !me.Retryable() {
		return 0, false
	}
	if me.RetryAfter > 0 {
		return me.RetryAfter, me.RetryAfter <= r.MaxAfter
	}
	d := min(r.Min<<(n-1), r.Max)
	return d/2 + time.Duration(r.Rand()*float64(d/2)), true
}

// ask builds a request and puts it to the model until there is a complete
// answer. It is the one place that repeats requests. The answer is not stored
// yet: it shares its barrier with the decisions on its calls.
func (t *turn) ask(ctx context.Context, w Want) (step Step, answered agent.ModelAnswered, err error) {
	purpose := ""
	if w.Question != nil {
		purpose = w.Question.Purpose
	}
	defer func() { step.release(answered.Usage) }()
	if step, err = t.prepare(ctx, w); err != nil {
		return step, answered, err
	}
	tried := 0 // attempts with the model in use
	shortened := false
	for n := 1; ; n++ {
		tried++
		req := step.Requested
		req.Turn, req.Step, req.Purpose, req.Attempt = t.Turn, t.step, purpose, n
		if err := t.Store(false, req); err != nil {
			return step, answered, err
		}
		if purpose == "" {
			t.machine.streaming()
		}
		var cause error
		if answered, cause = t.stream(ctx, &step, purpose); cause == nil {
			return step, answered, nil
		}
		if ctx.Err() != nil {
			return step, answered, context.Cause(ctx)
		}
		if agent.ClassOf(cause) == agent.FailContext && purpose == "" && !shortened {
			step.release(agent.Usage{}) // it is not repeated, and a summary costs too
			next, err := t.shorter(ctx, w, req, cause)
			if err != nil {
				return step, answered, err
			}
			if shortened = next.Model != nil; shortened {
				step = next
				continue
			}
		}
		delay, again := t.Retry.delay(tried, cause)
		model := ""
		if !again {
			step.release(agent.Usage{})
			var next Step
			if next, cause = t.fallback(ctx, w, req.Model, cause); next.Model != nil {
				step, tried, model = next, 0, next.Requested.Model
			}
		}
		if err := t.failed(ctx, req, cause, delay, again, model); err != nil {
			return step, answered, err
		}
	}
}

// shorter builds the request again after its length was refused; it has no model
// when the conversation cannot be made shorter.
func (t *turn) shorter(ctx context.Context, w Want, req agent.ModelRequested, cause error) (Step, error) {
	if t.Shorten == nil {
		return Step{}, nil
	}
	done, err := t.Shorten(ctx)
	if err != nil || !done {
		return Step{}, err
	}
	if err := t.failed(ctx, req, cause, 0, true, ""); err != nil {
		return Step{}, err
	}
	return t.prepare(ctx, w)
}

// prepare builds a request.
func (t *turn) prepare(ctx context.Context, w Want) (Step, error) {
	step, err := t.Prepare(ctx, w)
	if err != nil {
		return step, fmt.Errorf("building the request: %w", err)
	}
	if w.Question == nil {
		t.shown = step.Request.Presented
	}
	return step, nil
}

// fallback builds the request for the next model after one has failed for good;
// it has no model when there is none to ask. What is wrong with the request, or
// with the key, would be wrong again. The error says also which models could not be
// asked.
func (t *turn) fallback(ctx context.Context, w Want, failed string, cause error) (Step, error) {
	me, ok := errors.AsType[*agent.ModelError](cause)
	if !ok || !me.Retryable() && me.Class != agent.FailQuota && me.Class != agent.FailNotFound {
		return Step{}, cause
	}
	for len(t.Fallback) > 0 {
		w.Model, t.Fallback = t.Fallback[0], t.Fallback[1:]
		step, err := t.prepare(ctx, w)
		switch {
		case err != nil:
			cause = fmt.Errorf("%w; %s cannot be asked instead: %s", cause, w.Model, err.Error())
		case step.Requested.Model != failed: // by whatever name it was meant
			return step, cause
		default:
			step.release(agent.Usage{})
		}
	}
	return Step{}, cause
}

// failed records a failed attempt and waits for the next one: again after
// delay, or at once with another model. It returns the error of the attempt when
// there is to be no other.
func (t *turn) failed(ctx context.Context, req agent.ModelRequested, cause error, delay time.Duration, again bool, model string) error {
	f := agent.ModelFailed{
		Turn: t.Turn, Step: t.step, Attempt: req.Attempt, Purpose: req.Purpose,
		Class: agent.ClassOf(cause), Error: cause.Error(), Retry: again,
	}
	if me, ok := errors.AsType[*agent.ModelError](cause); ok {
		f.Status = me.Status
		if f.Delay = delay.Milliseconds(); !again && me.RetryAfter > t.Retry.MaxAfter {
			cause = fmt.Errorf("%w; the provider asks to wait %s, longer than the limit of %s", cause, me.RetryAfter, t.Retry.MaxAfter)
		}
	}
	if !again && model != "" {
		f.Retry, f.Delay, f.Model = true, 0, model
		again, delay = true, 0
	}
	if err := t.Store(false, f); err != nil {
		return err
	}
	if !again {
		return cause
	}
	if req.Purpose == "" {
		t.machine.must(agent.StateIdle, "retry")
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stream makes one attempt and shows its fragments.
func (t *turn) stream(ctx context.Context, step *Step, purpose string) (agent.ModelAnswered, error) {
	start := time.Now()
	var first time.Duration
	for d, err := range step.Model.Stream(ctx, step.Request) {
		if err != nil {
			return agent.ModelAnswered{}, err
		}
		if first == 0 {
			first = time.Since(start)
		}
		if d.Final != nil {
			a := agent.ModelAnswered{
				Turn: t.Turn, Step: t.step, Purpose: purpose, Answer: *d.Final,
				Cost:   step.Model.Info().Price.Cost(d.Final.Usage),
				Millis: time.Since(start).Milliseconds(), FirstByte: first.Milliseconds(),
			}
			a.Message = t.canonical(step, a.Message)
			return a, nil
		}
		if veiled := d.Kind == agent.DeltaText && t.Hooks.Veils != nil && t.Hooks.Veils(); purpose == "" && !veiled {
			t.show(step, d)
		}
	}
	return agent.ModelAnswered{}, &agent.ModelError{Class: agent.FailServer, Message: "the stream ended without an answer"}
}

// show passes a fragment on to whoever is watching.
func (t *turn) show(step *Step, d agent.Delta) {
	switch d.Kind {
	case agent.DeltaText, agent.DeltaThinking, agent.DeltaInput:
		t.Live(agent.Fragment{Step: t.step, What: d.Kind, Index: d.Index, Text: d.Text, Call: d.CallID})
	case agent.DeltaCall:
		t.Live(agent.Fragment{Step: t.step, What: d.Kind, Index: d.Index, Call: d.CallID, Tool: t.nameOf(step, d.Tool)})
	}
}

// canonical returns m with the canonical names of its tools, and with calls
// whose IDs are unique: the log knows one name for a tool, and one call for an
// ID. An ID that is made here names the turn, because steps count anew in each.
func (t *turn) canonical(step *Step, m agent.Message) agent.Message {
	seen := map[string]bool{}
	for i, b := range m.Blocks {
		if b.Type != agent.CallBlock || b.Call == nil {
			continue
		}
		c := *b.Call
		c.Tool = t.nameOf(step, c.Tool)
		for n := i; c.ID == "" || seen[c.ID]; n++ {
			c.ID = fmt.Sprintf("call_%s_%d_%d", t.Turn, t.step, n)
		}
		if len(c.Input) == 0 {
			c.Input = []byte("{}")
		}
		seen[c.ID] = true
		m.Blocks[i].Call = &c
	}
	return m
}

// nameOf returns the name of a tool. A side question has none, and models call some all
// the same.
func (t *turn) nameOf(step *Step, name string) string {
	if step.Find != nil {
		if tool, ok := step.Find(name); ok {
			return tool.Spec().Name
		}
	}
	return step.Request.Canonical(name)
}
