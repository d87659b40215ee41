// Package compact keeps conversations within the window of their model: it
// estimates tokens, decides when a conversation is too long, and says what takes the
// place of its beginning. Facts that must not be lost are carried word for word.
//
// It changes nothing: what it returns is an event, and whoever folds the log applies
// it. Calls and their results are never parted, and the newest messages stay. It
// asks models through a function it is given, and starts no goroutines.
package compact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dure/agent"
)

// The strategies.
const (
	Adaptive  = ""                // tools alone when that is little to do, else both
	Tools     = "truncate-tools"  // old results are cut to a line
	Oldest    = "truncate-oldest" // old messages go
	Summarize = "summarize"       // old messages become a summary
	Hybrid    = "hybrid"          // tools first, then a summary
)

// Strategies are those that can be named.
var Strategies = []string{Tools, Oldest, Summarize, Hybrid}

// Options say how to compact. Zero values stand for the defaults.
type Options struct {
	Strategy string

	// Shares of the window, without the reserve, at which its state changes: 0.7, 0.85.
	// At Threshold, 0.8, a conversation is shortened, to Target, 0.5 of the window.
	Warning, Critical, Threshold, Target float64

	Tokens  int // to which a conversation is shortened, instead of Target; 0 = see there
	Reserve int // tokens that are left for the answer; default 4,096
	Recent  int // newest messages that stay; default 5, negative = none
	Pins    int // tokens of facts that are carried on; default a quarter of the target
}

func (o Options) withDefaults() Options {
	for v, d := range map[*float64]float64{&o.Warning: 0.7, &o.Critical: 0.85, &o.Threshold: 0.8, &o.Target: 0.5} {
		if *v <= 0 || *v > 1 {
			*v = d
		}
	}
	o.Target = min(o.Target, o.Threshold)
	if o.Reserve <= 0 {
		o.Reserve = 4096
	}
	if o.Recent == 0 {
		o.Recent = 5
	}
	o.Recent = max(0, o.Recent)
	return o
}

// Config is what a compactor works with.
type Config struct {
	Options

	// Ask puts the question for a summary; nil = nothing is summarised. A summary
	// that cannot be had is replaced by one that is made without a model.
	Ask agent.Ask

	// Patience is how long a summary is waited for, all questions together; default 5
	// minutes. What has none then is told without a model.
	Patience time.Duration

	// Recall is the name under which the model knows the tool that opens events; "" =
	// there is none.
	Recall string
}

// Conversation is what is to be shortened.
type Conversation struct {
	Messages []agent.Timed
	Fixed    int // tokens of what is in front of them: prompt and tools
	Used     int // tokens of all that up to the event Counted, as the provider or a compaction counted; 0 = not known
	Counted  int64
	Window   int // tokens; 0 = not known
	Provider string

	// Reads is the window of the model that writes summaries; 0 = Window.
	Reads int

	// Asides are how many blocks of an input, from its first on, nobody has said, by
	// the event that has it.
	Asides map[int64]int

	Trigger string // see [agent.ContextCompacted]
	Focus   string
	Through int64 // number of the newest event

	// Before may forbid the compaction, or say what a summary keeps above all; nil =
	// nobody wants to. See ErrBlocked.
	Before func(ctx context.Context, trigger, focus string) (more string, err error)

	Pinned []agent.Pinned // by the compaction before
	Facts  []agent.Pinned // that hold now; they replace those of the same kinds
	Last   int64          // event of the compaction before; 0 = none
}

// ErrBlocked is the error of a compaction that was forbidden. One without which the
// next request would not fit is made all the same, of results alone.
var ErrBlocked = errors.New("a hook has forbidden to shorten the conversation")

// hardLimit is the share of the window above which a forbidden compaction happens
// all the same, without a summary, and a cool-down does not hold.
const hardLimit = 0.95

// Compactor shortens conversations. It is safe for concurrent use.
type Compactor struct{ cfg Config }

// New returns a compactor.
func New(cfg Config) *Compactor {
	cfg.Options = cfg.withDefaults()
	if cfg.Patience <= 0 {
		cfg.Patience = 5 * time.Minute
	}
	return &Compactor{cfg}
}

// Compact returns what to put in the place of the beginning of a conversation, or
// nil when there is nothing to gain. It fails with the context, with ErrBlocked, and
// when what is pinned would not be carried word for word.
func (c *Compactor) Compact(ctx context.Context, conv Conversation) (*agent.ContextCompacted, error) {
	p := c.plan(conv)
	if p.recently() && !p.brink() || conv.Trigger == "auto" && conv.Window > 0 && !c.cfg.State(p.used, conv.Window).Needed {
		return nil, nil
	}
	strategy := c.cfg.Strategy
	if strategy == Adaptive {
		strategy = p.adaptive()
	}
	if conv.Before != nil {
		more, err := conv.Before(ctx, conv.Trigger, conv.Focus)
		if err != nil {
			if p.ratio() < hardLimit && conv.Trigger != "overflow" {
				return nil, fmt.Errorf("%w: %w", ErrBlocked, err)
			}
			strategy, p.enough = Tools, p.limit
			p.stage("blocked")
		}
		if more != "" {
			p.focus = joinLines(p.focus, more)
		}
	}
	strategy, err := c.run(ctx, p, strategy)
	if err != nil {
		return nil, err
	}
	done := p.event(strategy)
	if done == nil {
		return nil, nil
	}
	if done.Head != nil {
		if err := Carried(done.Head, done.Pinned); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// run does the stages of a strategy, and more than those when they are not enough:
// what comes of it is never larger than what fits. It returns the strategy that it came
// to.
func (c *Compactor) run(ctx context.Context, p *plan, strategy string) (string, error) {
	if p.recently() { // no second summary so soon, if results are enough
		p.trimOld()
		if p.trimAll(); p.after() <= p.limit {
			p.stage("soon")
			return Tools, nil
		}
	}
	if strategy == Tools || strategy == Hybrid {
		p.trimOld()
		if strategy == Hybrid && p.after() <= p.target {
			return strategy, nil
		}
	}
	if strategy == Tools && p.after() > p.enough { // results were not enough
		if c.cfg.Strategy == Adaptive && p.enough < p.limit {
			strategy = Hybrid
		} else {
			p.dropOldest()
		}
	}
	switch strategy {
	case Oldest:
		p.dropOldest()
	case Summarize, Hybrid:
		if err := c.summarize(ctx, p); err != nil {
			return strategy, err
		}
	}
	if p.after() > p.limit {
		p.squeeze()
	}
	return strategy, ctx.Err()
}

func joinLines(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}
