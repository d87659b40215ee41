package plug

import (
	"context"
	"encoding/json"

	"dure/agent"
)

// A Moment is where a conversation stands when capabilities are asked what the model
// should read besides it.
type Moment struct {
	// Fresh is the input that no request has had yet. What belongs to the beginning of
	// the conversation is asked for before there is any.
	Fresh []agent.InputAdded

	Files map[string]agent.FileState // what the session has seen of files, by path
	Turns int                        // turns so far, with the one that runs
	Task  agent.WorkingMemory

	Turn   bool              // one runs: what takes its time may do so
	Skills []agent.SkillText // whose texts entered the conversation, the newest last
	Active []agent.TurnSkill // that were started in the turn that runs

	// Has reports whether the conversation has a text of a source and key, which may
	// be another than would be added now.
	Has func(source, key string) bool

	// Keys returns the keys of which the conversation has a text of a source, the
	// oldest first; one may come twice.
	Keys func(source string) []string
}

// Compaction is a conversation that is to be shortened.
type Compaction struct {
	Trigger  string
	Focus    string
	Messages []agent.Timed
	Model    agent.ModelInfo
	Context  int // tokens of the messages up to the event Counted, and of what is in front of them; 0 = not known
	Counted  int64
	Pinned   []agent.Pinned // by the compaction before
	Last     int64          // event of that one; 0 = there is none
	Head     int64          // number of the newest event
	Task     agent.WorkingMemory
	Plan     string            // that was agreed to; "" = none
	PlanSeq  int64             // its event
	Asides   map[int64]int     // blocks of an input that nobody has said, by its event
	Pending  map[string]string // what runs: handle to tool
	System   []agent.Section
	Specs    []agent.Spec

	// Before is asked before the conversation is shortened: it may forbid that with an
	// error, or name what is to be kept above all. May be nil.
	Before func(ctx context.Context, trigger, focus string) (more string, err error)
}

// The occasions for a compaction, see [agent.ContextCompacted].
const (
	TriggerAuto     = "auto"     // the conversation is close to what fits
	TriggerManual   = "manual"   // the user wants it
	TriggerOverflow = "overflow" // the provider has refused its length
)

// Plans is how plans come into a session and leave it. With the zero value, it has none.
type Plans struct {
	// Of returns the plan that a call puts to the user, and With the input of the call
	// with another plan. nil = no call does.
	Of   func(agent.Call) (text string, ok bool)
	With func(c agent.Call, text string) json.RawMessage

	Mode    agent.PlanMode    // of the settings; "" = off
	Retries int               // how often in a row a plan may be made anew
	Now     func() agent.Mode // the permission mode that holds
	Usual   agent.Mode        // the one that holds after a plan when none did before

	// What the model reads when a person decides about a plan that no call waits with:
	// they agree, or want another one.
	Agree   func(plan string, changes []string) string
	Another func(why string) string
}

// A Revival has the work of a call go on that an earlier program has left pending.
type Revival interface{ Resurrect() }
