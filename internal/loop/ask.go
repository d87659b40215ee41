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

// ask puts the request to the model until there is a complete answer. It is the
// one place that repeats requests. The answer is not stored yet: it shares its
// barrier with the decisions on its calls.
func (t *turn) ask(ctx context.Context, step *Step, purpose string) (agent.ModelAnswered, error) {
	req := step.Requested
	req.Turn, req.Step, req.Purpose = t.Turn, t.step, purpose
	for n := 1; ; n++ {
		req.Attempt = n
		if err := t.Store(false, req); err != nil {
			return agent.ModelAnswered{}, err
		}
		if purpose == "" {
			t.machine.streaming()
		}
		answered, err := t.stream(ctx, step, purpose)
		if err == nil {
			return answered, nil
		}
		if ctx.Err() != nil {
			return answered, context.Cause(ctx)
		}
		if err := t.failed(ctx, req, err); err != nil {
			return answered, err
		}
	}
}

// failed records a failed attempt and waits for the next one. It returns the
// error of the attempt when there is to be no other.
func (t *turn) failed(ctx context.Context, req agent.ModelRequested, cause error) error {
	delay, again := t.Retry.delay(req.Attempt, cause)
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
		if purpose == "" {
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

func (t *turn) nameOf(step *Step, name string) string {
	if tool, ok := step.Find(name); ok {
		return tool.Spec().Name
	}
	return step.Request.Canonical(name)
}
