package loop

import (
	"context"
	"errors"
	"time"

	"dure/agent"
	"dure/internal/state/transcript"
)

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
