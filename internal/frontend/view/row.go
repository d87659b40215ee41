package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"dure/agent"
)

// Kind is what a row shows.
type Kind string

// The kinds of rows.
const (
	InputRow      Kind = "input"      // Of: its ID; From: "" = the user; Text, Blocks
	AnswerRow     Kind = "answer"     // Text
	ThoughtRow    Kind = "thought"    // Text
	CallRow       Kind = "call"       // Of: its ID; Call
	ApprovalRow   Kind = "approval"   // Of: its ID; Ask
	QuestionRow   Kind = "question"   // Of: its ID; Ask
	PlanRow       Kind = "plan"       // Of: its ID; From: the call that puts it to the user; Plan
	NoteRow       Kind = "note"       // Event, Body
	CompactionRow Kind = "compaction" // Event, Body
	ChildRow      Kind = "child"      // Of: its session; Child
	DroppedRow    Kind = "dropped"    // Of: ID of the input; From: who has dropped it; Text: why
	EndRow        Kind = "end"        // of a turn: Event, Body
)

// A Row is one entry of the transcript. What an event has changed is seen again by its ID.
type Row struct {
	ID   string    `json:"id"`
	Seq  int64     `json:"seq"` // its place: the event that it began with, of an answer that of its request
	Kind Kind      `json:"kind"`
	Time time.Time `json:"time,omitzero"`
	Open bool      `json:"open,omitempty"` // it may still change
	Gone bool      `json:"gone,omitempty"` // it was taken out of the transcript
	Size int       `json:"size,omitempty"` // bytes of the whole row, of which this is a part

	Of     string        `json:"of,omitempty"`
	From   string        `json:"from,omitempty"`
	Text   string        `json:"text,omitempty"`
	Blocks []agent.Block `json:"blocks,omitempty"` // images and documents

	Call  *Call            `json:"call,omitempty"`
	Ask   *Ask             `json:"ask,omitempty"`
	Plan  *agent.StoodPlan `json:"plan,omitempty"`
	Child *ChildSession    `json:"child,omitempty"`

	Event string     `json:"event,omitempty"` // kind of an event
	Body  agent.Body `json:"body,omitempty"`  // as docs/events.md describes it

	// Mark is for the front-end: what it has shown of the row.
	Mark int `json:"-"`

	upto  int64 // the event with which it was said
	size  int   // bytes that were counted
	left  bool  // it was dropped
	done  bool  // it was said, and does not change any more
	moved bool  // it is among the changed rows
	index int   // of the block of an answer in progress
	text  strings.Builder
}

// The states of a call.
const (
	CallProposed   = "proposed" // the model has made it, or is at it
	CallAsked      = "asked"
	CallAllowed    = "allowed"
	CallDenied     = "denied"
	CallRunning    = "running"
	CallBackground = "background"
	CallDone       = "done"
	CallFailed     = "failed"
)

// A Call is a call, how far it is, and what came of it.
type Call struct {
	agent.Call               // as it was decided on
	State      string        `json:"state"`
	Verdict    agent.Verdict `json:"verdict,omitempty"` // "" = nobody has decided
	Asked      bool          `json:"asked,omitempty"`   // a person was asked
	By         string        `json:"by,omitempty"`      // who has decided
	Reason     string        `json:"reason,omitempty"`
	Output     string        `json:"output,omitempty"` // what it has printed, while it runs: the end
	Handle     string        `json:"handle,omitempty"`
	Millis     int64         `json:"ms,omitempty"`
	Began      time.Time     `json:"began,omitzero"` // to run

	Result  *agent.Result `json:"result,omitempty"`
	Changes []FileChange  `json:"changes,omitempty"` // of an edit
}

// Ask is what a person is asked, and the answer.
type Ask struct {
	Seq int64 `json:"seq"`
	agent.ApprovalAsked
	Answer *agent.ApprovalResolved `json:"answer,omitempty"`
}

// ChildSession is the session of an agent.
type ChildSession struct {
	agent.ChildOpened
	Outcome *agent.Outcome `json:"outcome,omitempty"` // nil = it works
	View    *View          `json:"view,omitempty"`    // nil = its events are not folded
}

// FileChange is a change that a call has made to a file.
type FileChange struct {
	Path  string `json:"filePath,omitempty"`
	Hunks []Hunk `json:"structuredPatch,omitempty"`
}

// Hunk is one piece of a change. Each line begins with its sign.
type Hunk struct {
	OldStart int      `json:"oldStart"`
	NewStart int      `json:"newStart"`
	Lines    []string `json:"lines"`
}

// Changes are the changes in the output of an edit.
func Changes(output json.RawMessage) []FileChange {
	var out struct {
		FileChange
		Files []FileChange `json:"files"`
	}
	if !bytes.Contains(output, []byte(`"structuredPatch"`)) || json.Unmarshal(output, &out) != nil {
		return nil
	}
	if out.Path == "" && len(out.Hunks) == 0 {
		return out.Files
	}
	return []FileChange{out.FileChange}
}

// Call returns the row of a call that is not over, by its ID; nil = there is none.
func (v *View) Call(id string) *Row { return v.find(id, CallRow) }

// Open returns the rows that may still change, in the order in which they began.
func (v *View) Open() []*Row { return v.open }

// Rows returns the rows in front of the event before, at most about limit of them, the oldest
// first: what belongs to one answer stays together. before 0 = the newest ones. more says that
// there are older ones, here or in the log.
func (v *View) Rows(before int64, limit int) (rows []*Row, more bool) {
	end := len(v.rows)
	if before > 0 {
		end, _ = slices.BinarySearchFunc(v.rows, before, func(r *Row, seq int64) int { return cmp.Compare(r.Seq, seq) })
	}
	from := max(end-max(limit, 1), 0)
	for from > 0 && from < end && v.rows[from-1].Seq == v.rows[from].Seq {
		from--
	}
	return slices.Clone(v.rows[from:end]), from > 0 || v.Left > 0
}

// Live returns what the answer in progress has of a kind of text.
func (v *View) Live(k Kind) (text string) {
	for _, r := range v.live {
		if r.Kind == k {
			text += r.Text
		}
	}
	return text
}

// Newest returns the text of the newest input of the user, or of the newest answer.
func (v *View) Newest(k Kind) (text string) {
	seq := int64(-1)
	for _, r := range slices.Backward(v.rows) {
		if r.Kind != k || r.From != "" {
			continue
		}
		if seq >= 0 && r.Seq != seq {
			break
		}
		text, seq = r.Text+text, r.Seq
	}
	return text
}

// Child returns the view of the session of an agent that works, to which its events are to
// be applied; nil = it is not known, or its events are not folded.
func (v *View) Child(session string) *View {
	r := v.find(session, ChildRow)
	if r == nil {
		return nil
	}
	if r.Child.View == nil && v.depth < maxDepth {
		kids := 0
		for _, r := range slices.Concat(v.rows, v.open) {
			if r.Child != nil && r.Child.View != nil {
				kids++
			}
		}
		if l := v.limits; kids < maxKids {
			r.Child.View = New(session, Limits{l.Rows/maxKids + 1, l.Bytes/maxKids + 1, l.Text})
			r.Child.View.depth = v.depth + 1
		}
	}
	return r.Child.View
}

// find returns the newest open row about something; nil = there is none.
func (v *View) find(of string, kinds ...Kind) *Row {
	for _, r := range slices.Backward(v.open) {
		if r.Of == of && slices.Contains(kinds, r.Kind) {
			return r
		}
	}
	return nil
}

// put adds a row that an event begins.
func (v *View) put(e agent.Event, r Row) *Row {
	r.ID, r.Seq, r.Time, r.upto = strconv.FormatInt(e.Seq, 10), e.Seq, e.Time, e.Seq
	if n := len(v.changed); n > 0 && v.changed[n-1].ID == r.ID { // it begins another one
		r.ID += ".1"
	}
	return v.insert(&r)
}

// note adds a row for an event as it is.
func (v *View) note(e agent.Event) *Row {
	return v.put(e, Row{Kind: NoteRow, Event: e.Body.Kind(), Body: e.Body})
}

// insert puts a row where its event belongs: events may come between a request and its answer.
func (v *View) insert(r *Row) *Row {
	at := len(v.rows)
	for at > 0 && v.rows[at-1].Seq > r.Seq {
		at--
	}
	v.rows = slices.Insert(v.rows, at, r)
	if r.Open {
		if len(v.open) == maxOpen {
			oldest := v.open[0]
			v.close(func(r *Row) bool { return r == oldest })
		}
		v.open = append(v.open, r)
	}
	return v.touch(r)
}

// touch says that a row has changed.
func (v *View) touch(r *Row) *Row {
	if !r.moved {
		r.moved = true
		v.changed = append(v.changed, r)
	}
	return r
}

// close says that rows do not change any more.
func (v *View) close(which func(*Row) bool) {
	v.open = slices.DeleteFunc(v.open, func(r *Row) bool {
		if !which(r) {
			return false
		}
		r.Open = false
		v.touch(r)
		if r.Ask != nil {
			v.Asks = slices.DeleteFunc(v.Asks, func(a *Ask) bool { return a == r.Ask })
		}
		return true
	})
}

// remove takes rows out of the transcript.
func (v *View) remove(which func(*Row) bool) {
	gone := func(r *Row) bool {
		if !r.Gone && which(r) {
			r.Gone = true
			v.touch(r)
			if !r.left {
				v.bytes -= r.size
			}
		}
		return r.Gone
	}
	v.rows = slices.DeleteFunc(v.rows, gone)
	v.close(gone)
}

// rewound takes out what was said after an event.
func (v *View) rewound(e agent.Event, b agent.ConversationRewound) {
	v.void()
	v.remove(func(r *Row) bool { return r.upto > b.To })
	v.note(e)
}
