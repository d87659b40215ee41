package agent

import (
	"encoding/json"
	"time"
)

// SessionStand is how a session stood at one of its events.
type SessionStand struct {
	Session string    `json:"session"`
	Seq     int64     `json:"seq"`
	Head    int64     `json:"head"` // the newest event there is
	Time    time.Time `json:"time"`

	Title   string `json:"title,omitempty"`
	Workdir string `json:"workdir,omitempty"`
	Model   string `json:"model,omitempty"`
	Mode    Mode   `json:"mode,omitempty"`
	Turns   int    `json:"turns"`
	Running bool   `json:"running,omitempty"` // a turn had begun and not ended

	// Messages are the conversation as a model would have seen it then.
	Messages []Timed         `json:"messages"`
	Waiting  []ApprovalAsked `json:"waiting,omitempty"`

	// Todos is the task list as it was last written, as its tool takes it; Task is
	// what the agent had noted.
	Todos json.RawMessage `json:"todos,omitempty"`
	Task  TaskNote        `json:"task"`

	Plan *StoodPlan `json:"plan,omitempty"` // the newest; nil = there was none

	Files   []FileState `json:"files,omitempty"` // that had been seen, by path
	Grants  []string    `json:"grants,omitempty"`
	Usage   Usage       `json:"usage"`
	Cost    *Money      `json:"cost,omitempty"` // nil = unknown
	Context int         `json:"context"`        // tokens of the newest request and its answer
}

// StoodPlan is a plan, and what had become of it.
type StoodPlan struct {
	ID    string      `json:"id"`
	Seq   int64       `json:"seq"` // of the event that proposed it
	Body  Plan        `json:"body"`
	Edits int         `json:"edits,omitempty"`
	State PlanVerdict `json:"state,omitempty"` // "" = it waits for a decision
}

// Comparison is two sessions side by side.
type Comparison struct {
	A ComparedSession `json:"a"`
	B ComparedSession `json:"b"`

	// Shared is how many events they begin with together, because one was forked from
	// the other, or both from a third.
	Shared int64 `json:"shared"`

	// PartA and PartB are the first events that one of them has and the other has not;
	// 0 = there is none.
	PartA int64 `json:"part_a,omitempty"`
	PartB int64 `json:"part_b,omitempty"`

	// Calls are those behind Shared, in the order of both: equal ones beside each other.
	Calls []ComparedCall `json:"calls,omitempty"`

	// Files are those that do not end up the same, by path.
	Files []ComparedFile `json:"files,omitempty"`

	// Cut says that there were more calls or files than a comparison holds.
	Cut bool `json:"cut,omitempty"`
}

// ComparedSession is one side of a comparison. Its figures are of what lies behind
// the events that both share.
type ComparedSession struct {
	Session string    `json:"session"`
	Title   string    `json:"title,omitempty"`
	Parent  string    `json:"parent,omitempty"` // that it was forked from
	Model   string    `json:"model,omitempty"`
	Mode    Mode      `json:"mode,omitempty"`
	Asked   string    `json:"asked,omitempty"`  // the first request of the user
	Answer  string    `json:"answer,omitempty"` // the last answer
	Outcome EndReason `json:"outcome,omitempty"`
	Error   string    `json:"error,omitempty"`
	Events  int64     `json:"events"`
	Turns   int       `json:"turns"`
	Steps   int       `json:"steps"`
	Calls   int       `json:"calls"`
	Failed  int       `json:"failed"` // of the calls
	Millis  int64     `json:"ms"`     // of its turns
	Usage   Usage     `json:"usage"`
	Cost    *Money    `json:"cost,omitempty"` // nil = unknown
}

// ComparedCall is a call of one side, or an equal one of both.
type ComparedCall struct {
	A *CallDone `json:"a,omitempty"`
	B *CallDone `json:"b,omitempty"`
}

// CallDone is a call and what came of it.
type CallDone struct {
	Seq    int64           `json:"seq"` // of the event that decided on it, or of its result
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Status string          `json:"status,omitempty"` // of the result; "" = there is none
	Denied bool            `json:"denied,omitempty"`
}

// ComparedFile is a file that the two sessions left differently.
type ComparedFile struct {
	Path string `json:"path"`
	A    string `json:"a"` // changed, deleted or untouched
	B    string `json:"b"`

	// Diff leads from the file of A to that of B, in unified form; "" = the contents
	// are not known.
	Diff string `json:"diff,omitempty"`
}
