// Package view folds the events of a session, live ones included, into what people see: the
// rows of its transcript, its header, open approvals, queued input, work in the background, and
// how its turns end. Front-ends start from it; only their words and wire formats are their own.
//
// The fold is pure: the same stored events give the same view. It does no I/O, starts no
// goroutines and is not safe for concurrent use. docs/server.md describes its JSON, and testdata
// has logs with the views that they give, for folds in other languages. What a model sees is
// folded by [dure/internal/state/transcript].
package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"dure/agent"
)

// Limits are what a view holds of rows that are over. The oldest rows go first, and of a long
// row the beginnings of its texts are kept: the log has all of it. What is open (calls,
// approvals, the answer in progress) is held whole, at most maxOpen of each. The zero value of
// a field stands for its default.
type Limits struct {
	Rows  int // of the transcript: 2000; see [OpenOnly]
	Bytes int // of the rows that are over: 8 MiB
	Text  int // bytes of one text of a row that is over: 16 KiB
}

// OpenOnly as the limit of rows keeps none that are over.
const OpenOnly = -1

const (
	maxOpen   = 1000     // calls, approvals, queued inputs, tasks and files
	maxOutput = 64 << 10 // bytes of what a running call has printed: the end
	maxAnswer = 4 << 20  // bytes of one text of an answer in progress
	maxKids   = 64       // children whose events are folded too
	maxDepth  = 4        // of children
)

// A View is what people see of one session.
type View struct {
	State
	*Results

	limits Limits
	depth  int
	rows   []*Row // by Seq
	bytes  int    // of the rows that are over

	open    []*Row // that may still change, in the order in which they began
	live    []*Row // of the answer in progress
	request int64  // the event before that answer
	changed []*Row // by the newest event
}

// State is what a view has beside its rows.
type State struct {
	Seq  int64 `json:"seq"`            // of the newest event
	Left int   `json:"left,omitempty"` // rows that were dropped, the oldest first

	Session  string         `json:"session"`
	Parent   string         `json:"parent,omitempty"`
	Title    string         `json:"title,omitempty"`
	Workdir  string         `json:"workdir,omitempty"`
	Agent    string         `json:"agent,omitempty"`
	Model    string         `json:"model,omitempty"`
	Mode     agent.Mode     `json:"mode,omitempty"`
	Effort   string         `json:"effort,omitempty"` // as it was changed; "" = as the settings have it
	Planning agent.PlanMode `json:"planning,omitempty"`
	Opened   time.Time      `json:"opened,omitzero"`
	Work     *agent.Profile `json:"work,omitempty"` // what applies to its kind of work

	Totals  Totals `json:"totals"`
	Context int    `json:"context,omitempty"` // tokens of the newest request and its answer
	Window  int    `json:"window,omitempty"`  // tokens that the model takes, where an event has it
	Turn    Turn   `json:"turn"`

	Asks  []*Ask            `json:"asks,omitempty"` // open approvals and questions, the oldest first
	Queue []Queued          `json:"queue,omitempty"`
	Tasks []Task            `json:"tasks,omitempty"` // calls that go on in the background
	Files []agent.FileState `json:"files,omitempty"` // that calls have seen or written, the newest last
	Todos json.RawMessage   `json:"todos,omitempty"` // the task list, as its tool takes it
	Plan  *agent.StoodPlan  `json:"plan,omitempty"`  // the newest
}

// Totals are what the turns that have ended have used.
type Totals struct {
	Turns   int         `json:"turns"`
	Usage   agent.Usage `json:"usage"`
	Cost    agent.Money `json:"cost"`
	Unknown bool        `json:"unknown,omitempty"` // a part has no known price
}

// Turn is the newest turn.
type Turn struct {
	ID      string              `json:"id,omitempty"`
	Open    bool                `json:"open,omitempty"`    // it has begun and not ended
	Running bool                `json:"running,omitempty"` // it goes on, or is about to begin
	Began   time.Time           `json:"began,omitzero"`
	Step    int                 `json:"step,omitempty"`
	Usage   agent.Usage         `json:"usage,omitzero"` // of its answers
	Cost    *agent.Money        `json:"cost,omitempty"` // nil = unknown
	Doing   Doing               `json:"doing,omitzero"`
	Dropped *agent.InputDropped `json:"dropped,omitempty"` // the newest input that was, since it began
	End     agent.TurnEnded     `json:"end,omitzero"`      // how the newest one that is over has ended
}

// What goes on in a turn.
const (
	Waiting   = "waiting" // for the model
	Thinking  = "thinking"
	Answering = "answering"
	Calling   = "calling" // the model writes a call
	Executing = "running" // a call runs
	Failing   = "failing" // a request has failed
	Hooking   = "hook"    // a hook runs
)

// Doing is what goes on right now.
type Doing struct {
	What  string             `json:"what"`
	Tool  string             `json:"tool,omitempty"`
	Call  *agent.Call        `json:"call,omitempty"` // that runs
	Hook  *agent.HookStarted `json:"hook,omitempty"`
	Class agent.FailureClass `json:"class,omitempty"`
	Since time.Time          `json:"since,omitzero"`
}

// Queued is an input that waits for the turn to take it.
type Queued struct {
	Seq int64 `json:"seq"`
	agent.InputQueued
}

// Task is a call that goes on in the background.
type Task struct {
	Seq    int64        `json:"seq"` // of the event that says so
	Handle string       `json:"handle"`
	Tool   string       `json:"tool"`
	Call   agent.Call   `json:"call"`
	Result agent.Result `json:"result"` // by which it was answered as pending
}

// New returns the view of a session of which no events are known.
func New(session string, l Limits) *View {
	const rows, bytes, text = 2000, 8 << 20, 16 << 10
	l = Limits{cmp.Or(l.Rows, rows), cmp.Or(l.Bytes, bytes), cmp.Or(l.Text, text)}
	return &View{State: State{Session: session}, Results: NewResults(session), limits: l}
}

// Apply takes in an event and returns the rows that it has changed, in their order. They are
// whole until the next call, which cuts those that are over to the limits. A stored event
// that is not newer than the newest one changes nothing.
func (v *View) Apply(e agent.Event) []*Row {
	v.trim()
	if !e.Live() {
		if e.Seq <= v.Seq {
			return nil
		}
		v.Seq = e.Seq
	}
	v.Results.apply(e, v.Call)
	v.Turn.Usage, v.Turn.Cost = v.spent.Usage, v.spent.Cost
	switch b := e.Body.(type) {
	case agent.SessionOpened, agent.SettingsChanged:
		v.header(e)
	case agent.InputQueued, agent.InputAdded, agent.InputDropped:
		v.input(e)
	case agent.TurnStarted, agent.TurnEnded, agent.CallDeferred:
		v.turn(e)
	case agent.ModelRequested, agent.Fragment, agent.ModelAnswered, agent.ModelFailed:
		v.model(e)
	case agent.CallDecided, agent.CallStarted, agent.CallOutput, agent.CallFinished, agent.CallSettled:
		v.call(e)
	case agent.ApprovalAsked, agent.ApprovalResolved:
		v.ask(e)
	case agent.PlanProposed, agent.PlanChanged, agent.PlanDecided:
		v.plan(e)
	case agent.ChildOpened, agent.ChildEnded:
		v.child(e)
	case agent.ContextCompacted:
		v.note(e).Kind = CompactionRow
	case agent.ConversationRewound:
		v.rewound(e, b)
	case agent.HookStarted:
		if !b.Async {
			v.Turn.Doing.What, v.Turn.Doing.Hook = Hooking, &b
		}
	default:
		v.other(e)
	}
	return v.changed
}

// header takes in what the session is.
func (v *View) header(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		if e.Seq == 1 {
			v.Opened = e.Time
		}
		v.Session, v.Parent, v.Agent = cmp.Or(b.Session, v.Session), cmp.Or(b.Parent, v.Parent), cmp.Or(b.Agent, v.Agent)
		v.Results.session = v.Session
		v.Title, v.Workdir = cmp.Or(b.Title, v.Title), cmp.Or(b.Workdir, v.Workdir)
		v.Model, v.Mode = cmp.Or(b.Model, v.Model), cmp.Or(b.Mode, v.Mode)
		v.Work = cmp.Or(b.Work, v.Work)
		for _, r := range v.open { // whoever ran them is gone
			if r.Call != nil && r.Call.State == CallRunning {
				v.touch(r).Call.State = CallAllowed
			}
		}
	case agent.SettingsChanged:
		v.Model, v.Mode, v.Title = cmp.Or(b.Model, v.Model), cmp.Or(b.Mode, v.Mode), cmp.Or(b.Title, v.Title)
		v.Planning, v.Effort = cmp.Or(b.Plan, v.Planning), cmp.Or(b.Effort, v.Effort)
		v.note(e)
	}
}

// input takes in what is said to the session.
func (v *View) input(e agent.Event) {
	unqueue := func(id string) {
		v.Queue = slices.DeleteFunc(v.Queue, func(q Queued) bool { return q.Input == id })
	}
	switch b := e.Body.(type) {
	case agent.InputQueued:
		v.Queue = capped(append(v.Queue, Queued{e.Seq, b}))
	case agent.InputAdded:
		unqueue(b.Input)
		v.Turn.Running = true
		if b.Text != "" || len(b.Parts) > 0 {
			v.put(e, Row{Kind: InputRow, Of: b.Input, From: b.Origin, Text: b.Text, Blocks: b.Parts})
		}
	case agent.InputDropped:
		unqueue(b.Input)
		v.Turn.Dropped = &b
		v.put(e, Row{Kind: DroppedRow, Of: b.Input, From: b.By, Text: b.Reason})
	}
}

// turn takes in where turns begin and end.
func (v *View) turn(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.TurnStarted:
		end := v.Turn.End
		v.Turn = Turn{ID: b.Turn, Open: true, Running: true, Began: e.Time, End: end, Doing: Doing{What: Waiting, Since: e.Time}}
	case agent.CallDeferred:
		v.Turn.Running = false // until somebody goes on with it
		v.note(e)
	case agent.TurnEnded:
		v.void()
		v.Turn.Open, v.Turn.Running, v.Turn.End = false, false, b
		v.Totals.Turns++
		v.Totals.Usage = v.Totals.Usage.Add(b.Usage)
		if b.Cost != nil {
			v.Totals.Cost += *b.Cost
		} else if b.Usage != (agent.Usage{}) {
			v.Totals.Unknown = true
		}
		v.close(func(r *Row) bool { // what goes on in the background does so
			return r.Kind == CallRow && r.Call.State != CallBackground || r.Ask != nil && r.Ask.Child == ""
		})
		v.note(e).Kind = EndRow
	}
}

// other takes in what is said beside the conversation.
func (v *View) other(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.ContextThreshold:
		v.Window = b.Window
	case agent.HookRan:
		if b.Outcome == agent.HookPassed && b.Message == "" && b.Verdict != agent.Deny {
			return
		}
	case nil, agent.StateChanged, agent.CallSpawned, agent.LogSealed, agent.ToolsSelected, agent.CheckpointTaken,
		agent.ExtensionKept, agent.Unknown:
		return
	}
	v.note(e)
}

// MarshalJSON writes the state and the rows of the view as one object.
func (v *View) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		State
		Rows []*Row `json:"rows"`
	}{v.State, append([]*Row{}, v.rows...)})
}

// capped is a list without its oldest entries, where there are too many.
func capped[T any](list []T) []T { return list[max(len(list)-maxOpen, 0):] }
