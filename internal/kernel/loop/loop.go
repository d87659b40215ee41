// Package loop runs turns: it asks the model, decides on each tool call, runs
// what was allowed, and reports every step as an event.
//
// It knows no tool, provider or rule by name and keeps no conversation of its
// own: what it needs from outside is in [Config], and each request is built
// from the log. One goroutine runs a turn; it starts one for each running call
// and waits for it, except for a call that ignores its cancellation: that one
// belongs to [Config.Strays].
package loop

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/state/transcript"
)

// Config holds everything that a turn needs. All fields are required unless
// they say otherwise.
type Config struct {
	Session string
	Turn    string
	Agent   string // name of the agent; may be empty
	Workdir string
	Logger  *slog.Logger

	// Prepare builds the request of the next step from what is stored. The step
	// it returns holds until the step is over.
	Prepare func(context.Context, Want) (Step, error)

	// Gate is the ordered list of stages that look at a call before it runs,
	// and Person the last one, which may take as long as a human needs.
	Gate   []plug.Stage
	Person func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error)

	Hooks plug.TurnHooks // may be empty

	// Guard sees each result before the model does and returns what the model
	// may read. An error withholds the result.
	Guard func(context.Context, agent.Spec, agent.Call, agent.Result) (agent.Result, error)

	// Clean returns what makes the output of one running call fit to be shown; nil =
	// it is shown as it is.
	Clean func(agent.Spec) plug.Cleaner

	// Wrap is the middleware around Tool.Run, outermost first. It may be empty.
	Wrap []func(agent.Tool, plug.Run) plug.Run

	// Store appends facts, all or nothing; with sync they are on the disk when
	// it returns. A step is taken only after the event that announces it was
	// stored, so an error ends the turn.
	Store func(sync bool, bodies ...agent.Body) error

	// Live shows an event that is not stored.
	Live func(agent.Body)

	// Steer moves waiting input into the conversation and reports whether there
	// was any.
	Steer func() (bool, error)

	// Shorten makes the conversation shorter after a provider has refused its length,
	// and reports whether it did. It may be nil.
	Shorten func(context.Context) (bool, error)

	// Reap kills what is left of processes that a crash orphaned. It may be nil.
	Reap func(agent.Process)

	// AskAgain says that Person can be asked whether to run an unsafe call again
	// that a crash interrupted. Otherwise the model is told, and decides.
	AskAgain bool

	// Defers says that a call may be put aside when it is the only one of its answer:
	// whoever runs the turn goes on with it another time.
	Defers bool

	// Fallback names the models that are asked, in this order, when the one in use
	// has failed for good; one that cannot be asked is passed over. Prepare learns
	// from the log which has taken over, and keeps to it for the turn.
	Fallback []string

	Retry   Retry
	Limits  Limits
	Pending *transcript.Step // calls that a crash left open; nil for a fresh turn
	First   int              // number of the first step, from 1
	Stopped agent.StopReason // of the last answer, when a crash came between it and the turn's end
	Strays  *sync.WaitGroup
}

// Want says which request is wanted. Its zero value is the next one of the
// conversation.
type Want struct {
	Question *agent.Question // a side call
	NoTools  bool            // the model may not call tools
	Calls    bool            // no request, but the tools for calls that are open
	Model    string          // instead of the one that would be asked; "" = that one
}

// Step is what one step is made of.
type Step struct {
	Model     agent.Model
	Request   agent.Request
	Requested agent.ModelRequested // without turn, step and attempt
	plug.Tools

	// Release gives back what was put aside for the request, once it is clear what it
	// used; zero when it came to nothing. Only the first call counts. It may be nil.
	Release func(agent.Usage)
}

func (s Step) release(u agent.Usage) {
	if s.Release != nil {
		s.Release(u)
	}
}

// Limits bounds a turn. The zero value has no step limit.
type Limits struct {
	Steps    int           // model calls in a turn; 0 = no limit
	Closing  bool          // at Steps, ask once more, without tools, for a summary
	Parallel int           // read-only calls at once; default 8
	Repeats  int           // identical failing calls; default 3
	Go       int           // continuations of an answer that was cut; default 3
	Grace    time.Duration // for a cancelled tool to return; default 700 ms
	Call     time.Duration // for a call whose tool has no limit; default 30 min
}

func (l Limits) withDefaults() Limits {
	l.Parallel = orDefault(l.Parallel, 8)
	l.Repeats = orDefault(l.Repeats, 3)
	l.Go = orDefault(l.Go, 3)
	l.Grace = orDefault(l.Grace, 700*time.Millisecond)
	l.Call = orDefault(l.Call, 30*time.Minute)
	return l
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

// The errors that end a turn without anything being wrong with the program.
var (
	ErrLimit     = errors.New("the step limit was reached")
	ErrRefused   = errors.New("the model refused to answer")
	ErrStopped   = errors.New("the turn was stopped")
	ErrRepeating = errors.New("the model kept repeating a call that fails")
)

// turn is one running turn. Its fields belong to the goroutine in [Turn].
type turn struct {
	Config
	machine Machine
	step    int
	message agent.Message // the answer whose calls are being served
	said    string        // the text of the last answer
	cuts    int           // answers in a row that hit max_tokens

	books    sync.Mutex     // the loop breaker's: neighbouring reads are decided on at once
	repeats  map[string]int // identical failing calls in a row
	refusals int            // of the loop breaker

	shown func(tool string) string // the name that the model knows a tool by
}

// Turn runs one turn: it returns when the model has nothing more to run, with
// the number of the last step. Whatever the outcome, every call of every answer
// has a result in the log then, unless the log itself cannot be written.
func Turn(ctx context.Context, cfg Config) (steps int, err error) {
	t := newTurn(cfg)
	defer func() { t.finish(err) }()
	if h := t.Hooks.Turn; h != nil {
		h(t.Turn, t.step)
	}
	if cfg.Pending != nil {
		if err := t.settle(ctx, cfg.Pending); err != nil {
			return t.step, err
		}
		if _, err := t.Steer(); err != nil {
			return t.step, err
		}
	}
	err = within(ctx, t.Hooks.AroundTurn, t.steps)
	return t.step, err
}

// steps takes steps until there is nothing more to do.
func (t *turn) steps(ctx context.Context) error {
	if t.Stopped != "" {
		steered, err := t.Steer()
		if err != nil {
			return err
		}
		more, err := t.due(t.more(agent.ModelAnswered{Answer: agent.Answer{Stop: t.Stopped}}, steered))
		if more, err = t.goOn(ctx, more, err); err != nil || !more {
			return err
		}
	} else if t.step > 0 { // it has begun before, and may have come to what it is for
		more, err := t.due(true, nil)
		if more, err = t.goOn(ctx, more, err); err != nil || !more {
			return err
		}
	}
	for {
		if t.Limits.Steps > 0 && t.step >= t.Limits.Steps {
			return t.limit(ctx)
		}
		more, err := t.runStep(ctx)
		if more, err = t.goOn(ctx, more, err); err != nil || !more {
			return err
		}
	}
}

func newTurn(cfg Config) *turn {
	cfg.Limits = cfg.Limits.withDefaults()
	cfg.Retry = cfg.Retry.withDefaults()
	if cfg.Strays == nil {
		cfg.Strays = new(sync.WaitGroup)
	}
	t := &turn{Config: cfg, step: cfg.First - 1, repeats: map[string]int{}}
	t.shown = func(tool string) string { return tool }
	t.machine.Changed = func(c agent.StateChanged) { t.Live(c) }
	return t
}

// runStep asks the model once and runs what it calls for. It reports whether
// the turn goes on.
func (t *turn) runStep(ctx context.Context) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	t.step++
	if h := t.Hooks.Step; h != nil {
		h(ctx, t.step, true)
		defer h(ctx, t.step, false)
	}
	if t.Hooks.AroundStep == nil {
		done, err := t.oneStep(ctx)
		return done.More, err
	}
	var done plug.Stepped
	err := within(ctx, func(ctx context.Context, run func(context.Context) error) error {
		return t.Hooks.AroundStep(ctx, t.step, func(ctx context.Context) (plug.Stepped, error) {
			err := run(ctx)
			return done, err
		})
	}, func(ctx context.Context) (err error) {
		done, err = t.oneStep(ctx)
		return err
	})
	return done.More, err
}

// oneStep is the step itself.
func (t *turn) oneStep(ctx context.Context) (done plug.Stepped, err error) {
	step, answered, err := t.ask(ctx, Want{})
	if err != nil {
		return done, err
	}
	t.showing(ctx, &answered)
	t.said = answered.Message.Text()
	calls := answered.Message.Calls()
	done.Answer = answered
	if err := t.serve(ctx, step, answered, calls); err != nil {
		return done, err
	}
	steered, err := t.Steer()
	if err != nil {
		return done, err
	}
	if steered {
		t.refusals = 0 // what the user says now is answered before anything is given up
	}
	done.More, err = t.due(t.more(answered, len(calls) > 0 || steered))
	return done, err
}

// more decides whether the turn goes on after an answer.
func (t *turn) more(a agent.ModelAnswered, busy bool) (bool, error) {
	if a.Stop == agent.StopLength && len(a.Message.Calls()) == 0 {
		if t.cuts++; t.cuts <= t.Limits.Go {
			const text = "Your answer was cut at the output limit. Go on exactly where it stopped, without repeating anything."
			return true, t.Store(false, agent.InputAdded{Text: text, Origin: "loop"})
		}
		return busy, nil // input that came meanwhile wants an answer of its own
	}
	t.cuts = 0
	switch {
	case t.refusals >= t.Limits.Repeats:
		return false, ErrRepeating
	case busy, a.Stop == agent.StopPause:
		return true, nil
	case a.Stop == agent.StopRefusal:
		return false, ErrRefused
	}
	return false, nil
}

// limit ends a turn at its step limit.
func (t *turn) limit(ctx context.Context) error {
	if !t.Limits.Closing {
		return ErrLimit
	}
	const text = "You have reached the step limit. Say in a few sentences what is done, what is not, and what comes next. Do not call tools."
	if err := t.Store(false, agent.InputAdded{Text: text, Origin: "loop"}); err != nil {
		return err
	}
	t.step++
	_, answered, err := t.ask(ctx, Want{NoTools: true})
	if err != nil {
		return errors.Join(ErrLimit, err)
	}
	t.showing(ctx, &answered)
	// A model that calls tools all the same gets them refused, so that the
	// conversation stays valid.
	bodies := []agent.Body{answered}
	for _, c := range answered.Message.Calls() {
		bodies = append(bodies, finished(c, agent.Failure(agent.ErrAborted, "The step limit was reached.", ""), 0))
	}
	return errors.Join(ErrLimit, t.Store(true, bodies...))
}

// finish drives the state machine to its end.
func (t *turn) finish(err error) {
	reason := "completed"
	switch {
	case err == nil:
	case errors.Is(err, ErrLimit):
		reason = "max_turns"
	case errors.Is(err, context.Canceled), errors.Is(err, agent.ErrInterrupted), errors.Is(err, agent.ErrParked), errors.Is(err, agent.ErrDeferred):
		reason = "aborted"
	default:
		reason = "error"
	}
	t.machine.End(reason)
}
