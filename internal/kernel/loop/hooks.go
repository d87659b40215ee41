package loop

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"dure/agent"
	"dure/internal/state/transcript"
)

// Hooks are the points of a turn, beside the gate, at which others have a word. Each
// may take its time, and each may be nil.
type Hooks struct {
	// Asking is asked before a person is: a decision of it is theirs. What it makes of a
	// call is decided on anew, unless the call is a question to a person, which it has
	// answered then.
	Asking func(context.Context, agent.Proposal, agent.Decision) (d agent.Decision, decided bool)

	// Calling sees a call before the gate does, once, and returns the input that it is
	// decided about with. An error refuses the call.
	Calling func(context.Context, agent.Call) (input json.RawMessage, err error)

	// After sees a result as the guard has let it through, and what the call took. It
	// may return another one, which is guarded again, and that the turn is to stop. It
	// is called for several calls at once.
	After func(context.Context, agent.Proposal, agent.Result, time.Duration) (r agent.Result, stop bool)

	// Batch is told all calls of an answer as they were to run, in their order, with their
	// results, and reports whether the turn is to stop.
	Batch func(context.Context, []agent.Call, []agent.CallFinished) (stop bool)

	// Denied is told of a call that was denied.
	Denied func(context.Context, agent.Proposal, agent.Decision)

	// Stopping is asked before a turn ends that is done, and whenever it would end
	// again: words make it go on. Said is what the model has said last, as far as it
	// was said in this run; by says whose the words are.
	Stopping func(ctx context.Context, said string) (words, by string)

	// Due is asked, when a step is over and before the first one, whether the turn has
	// come to what it is for: ends says that it would end now. Then over ends it, words make
	// it go on, and an error says that it never will come to it.
	Due func(ends bool) (over bool, words string, err error)

	// Showing is asked what people are to see in the place of an answer's text; nil =
	// the text. Showing is asked when the answer is complete: while Veils says so, nothing
	// of its text is shown before.
	Showing func(context.Context, agent.ModelAnswered) *string
	Veils   func() bool

	// Step is told when a step begins and when it is over.
	Step func(ctx context.Context, number int, begins bool)

	// Turn is told which turn runs, and how many steps it had before, ahead of all else.
	Turn func(turn string, steps int)

	// AroundTurn and AroundStep are around what happens in a turn, once calls that a crash
	// left open are over, and in a step. They call run, once: its outcome stands, whatever
	// they return. If they do not call it, nothing happens, and the turn ends: with their
	// error, or stopped.
	AroundTurn func(ctx context.Context, run func(context.Context) error) error
	AroundStep func(ctx context.Context, number int, run func(context.Context) (Stepped, error)) error
}

// Stepped is what came of a step.
type Stepped struct {
	Answer agent.ModelAnswered
	More   bool // the turn goes on
}

// within runs run inside of around, once; nil = nothing is around it.
func within(ctx context.Context, around func(context.Context, func(context.Context) error) error, run func(context.Context) error) error {
	if around == nil {
		return run(ctx)
	}
	var ran bool
	var outcome error
	err := around(ctx, func(ctx context.Context) error {
		if ran {
			return errRanAlready
		}
		ran, outcome = true, errCut
		outcome = run(ctx)
		return outcome
	})
	switch {
	case ran:
		return outcome
	case err == nil:
		return ErrStopped
	}
	return err
}

var (
	errRanAlready = errors.New("it ran already: what it does is done once")
	errCut        = errors.New("it did not come to its end") // it panicked, and who is around it does not tell
)

// goOn asks whether a turn that is done is to go on all the same.
func (t *turn) goOn(ctx context.Context, more bool, err error) (bool, error) {
	if more || err != nil || t.Hooks.Stopping == nil {
		return more, err
	}
	words, by := t.Hooks.Stopping(ctx, t.said)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if words == "" {
		return t.Steer() // the user may have said something meanwhile
	}
	return true, t.Store(false, agent.InputAdded{Text: words, Origin: by})
}

// due asks whether a turn has come to what it is for. More and err are what a step came to.
func (t *turn) due(more bool, err error) (bool, error) {
	if t.Hooks.Due == nil || err != nil && !errors.Is(err, ErrRepeating) {
		return more, err
	}
	over, words, never := t.Hooks.Due(!more && err == nil)
	switch {
	case never != nil:
		return false, never
	case err != nil, over:
		return false, err
	case words != "":
		return true, t.Store(false, agent.InputAdded{Text: words, Origin: transcript.FormOrigin})
	}
	return more, nil
}

// showing asks what people are to see of an answer.
func (t *turn) showing(ctx context.Context, a *agent.ModelAnswered) {
	if t.Hooks.Showing != nil && a.Message.Text() != "" {
		a.Shown = t.Hooks.Showing(ctx, *a)
	}
}

// after gives a guarded result to the hooks, and guards what they make of it.
func (t *turn) after(ctx context.Context, j *job, r agent.Result, took time.Duration) agent.Result {
	if t.Hooks.After == nil {
		return r
	}
	changed, stop := t.Hooks.After(ctx, j.proposal(), r, took)
	if j.stop = stop; changed.Text == r.Text && string(changed.Output) == string(r.Output) {
		return r
	}
	files := r.Files
	changed.ID = r.ID
	r, err := t.Guard(context.WithoutCancel(ctx), j.spec, j.call, changed)
	if err != nil {
		r = agent.Failure(agent.ErrWithheld, "The result was withheld: "+err.Error(), "")
	}
	r.ID, r.Files = j.call.ID, files
	return r
}

// batch tells the hooks how the calls of an answer came out.
func (t *turn) batch(ctx context.Context, jobs []*job) error {
	if t.Hooks.Batch == nil {
		return nil
	}
	calls, results := make([]agent.Call, len(jobs)), make([]agent.CallFinished, len(jobs))
	for i, j := range jobs {
		calls[i], results[i] = j.call, j.result
	}
	if t.Hooks.Batch(ctx, calls, results) {
		return ErrStopped
	}
	return nil
}
