package plug

import (
	"context"
	"encoding/json"
	"time"

	"dure/agent"
)

// TurnHooks are the moments of a turn, beside the gate, at which capabilities have a say.
// Each may take its time, and each may be nil. Where several capabilities have a say they
// are asked in the order of the list, After in the opposite one.
type TurnHooks struct {
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

// Hooks are the moments of a session at which capabilities have a say, with those of its
// turns. Each may take its time, and each may be nil. What they have to say to the
// model is in the Context of the runs that they record.
type Hooks struct {
	TurnHooks

	// Opened is called when a session has been opened, and again when its conversation
	// has begun anew: how is startup, resume, fork or compact. The first turn waits for
	// it. Words are read as the first input of a session that has none; those of several
	// capabilities follow each other.
	Opened func(ctx context.Context, how string) (words, by string)

	// Speaks reports whether Opened may have words for a new session: what a person
	// says waits for them. nil = it may not.
	Speaks func() bool

	// Heard is asked about input before it enters the conversation. It may return
	// another text, or why the input is to be dropped.
	Heard func(context.Context, agent.InputQueued) (text string, drop *agent.InputDropped)

	// Screens reports whether Heard has anything to say; nil = it has. Once it has, that
	// stays so: until then input enters the conversation as if nobody were asked.
	Screens func() bool

	// Takes reports whether Heard has anything to say to one input, when Screens says
	// that it has not to all. nil = it has not.
	Takes func(agent.InputQueued) bool

	// Switching is asked before another model is used, and Switched told of it.
	Switching func(ctx context.Context, from, to string) error
	Switched  func(ctx context.Context, from, to string)

	// Spoken is told that a person has said something.
	Spoken func()

	// Added is told what Extra of all capabilities came to.
	Added func([]agent.ContextAdded)

	// Compacting is asked before a conversation is shortened, see TriggerAuto and the
	// others: it may forbid that with an error, or name what is to be kept above all.
	// Forbidden or not, what would not fit is shortened. Compacted is told of what is in
	// the log.
	Compacting func(ctx context.Context, trigger, focus string) (more string, err error)
	Compacted  func(context.Context, agent.ContextCompacted)

	// Rewound is told what the conversation is after it went back.
	Rewound func(past []agent.Message)

	// Over is told how a turn came out, and what was answered last, before anything else
	// happens in the session: it must not wait. The last capability is told first.
	Over func(end agent.TurnEnded, answer string)

	// Ended is told how a turn came out, and Closing that the session is given up.
	Ended   func(context.Context, agent.TurnEnded)
	Closing func(context.Context)
}
