// Package transcript folds the events of a session into what is derived from
// them: the conversation that a model sees, totals, open approvals, queued
// input, and how far the running turn has come.
//
// The fold is pure: the same events give the same state, live, after a restart
// and in a replay. It keeps messages that were built once as they are, so that
// whoever encodes them can reuse what it made of them. A State is not safe for
// concurrent use; what Conversation returns may be kept and read.
package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"dure/agent"
)

// Version is the version of the state as JSON. A snapshot of another version is
// thrown away.
const Version = 1

// State is a session as its log tells it up to Head. All of it is plain data.
type State struct {
	V       int                 `json:"v"`
	Head    int64               `json:"head"`
	First   agent.SessionOpened `json:"first"`
	Created time.Time           `json:"created"`
	Updated time.Time           `json:"updated"`
	Title   string              `json:"title,omitempty"`
	Model   string              `json:"model,omitempty"`
	Mode    agent.Mode          `json:"mode,omitempty"`

	Messages []agent.Message `json:"messages"`
	Hashes   [][]byte        `json:"hashes"` // SHA-256 of each message's JSON
	Open     *Step           `json:"open,omitempty"`

	Turn   Turn                `json:"turn"`
	Turns  int                 `json:"turns"`
	Unread bool                `json:"unread,omitempty"` // input has been added and no turn has begun since
	Queued []agent.InputQueued `json:"queued,omitempty"`
	Inputs map[string]bool     `json:"inputs,omitempty"` // IDs of all input ever taken

	Approvals map[string]agent.ApprovalAsked    `json:"approvals,omitempty"` // not answered yet
	Resolved  map[string]agent.ApprovalResolved `json:"resolved,omitempty"`  // answered, in the open step
	Grants    []agent.Proposal                  `json:"grants,omitempty"`    // remembered for the session
	Children  map[string]string                 `json:"children,omitempty"`  // running: ID to key

	Usage   agent.Usage  `json:"usage"`
	Cost    *agent.Money `json:"cost,omitempty"`
	Priced  bool         `json:"priced"`  // every answer so far had a known price
	Context int          `json:"context"` // tokens of the last request and its answer
	Warned  float64      `json:"warned"`  // the highest threshold that was reported

	Files map[string]agent.FileState `json:"files,omitempty"`
}

// Turn is the newest turn.
type Turn struct {
	ID      string `json:"id,omitempty"`
	Open    bool   `json:"open,omitempty"`
	Step    int    `json:"step,omitempty"`    // of the last answer or request
	Attempt int    `json:"attempt,omitempty"` // how often it was started
	Stuck   int    `json:"stuck,omitempty"`   // starts since something came of it
	Asking  bool   `json:"asking,omitempty"`  // the request of Step has no answer yet

	// Stop is the stop reason of the last answer when that called nothing and
	// nothing has followed it: with an open turn, the end was not recorded.
	Stop    agent.StopReason `json:"stop,omitempty"`
	Reason  agent.EndReason  `json:"reason,omitempty"`
	Started time.Time        `json:"started"`
	Usage   agent.Usage      `json:"usage"`
	Cost    agent.Money      `json:"cost"`
	Unknown bool             `json:"unknown,omitempty"` // an answer without a price
}

// Step is the newest answer whose calls have not all been settled.
type Step struct {
	Step  int          `json:"step"`
	Calls []*CallState `json:"calls"`
}

// CallState is how far one call has come.
type CallState struct {
	Call     agent.Call          `json:"call"`
	Key      string              `json:"key,omitempty"`
	Decided  *agent.CallDecided  `json:"decided,omitempty"`
	Started  *agent.CallStarted  `json:"started,omitempty"`
	Spawned  []agent.Process     `json:"spawned,omitempty"`
	Finished *agent.CallFinished `json:"finished,omitempty"`
}

// New returns the state of an empty log.
func New() *State { return &State{V: Version, Priced: true} }

// Decode reads a state that [State.Encode] wrote.
func Decode(data []byte) (*State, error) {
	s := New()
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("reading snapshot: %w", err)
	}
	if s.V != Version {
		return nil, fmt.Errorf("reading snapshot: version %d, not %d", s.V, Version)
	}
	return s, nil
}

// Encode writes the state for a snapshot.
func (s *State) Encode() ([]byte, error) { return json.Marshal(s) }

// Apply folds one stored event into the state. Live events change nothing.
func (s *State) Apply(e agent.Event) {
	if e.Live() {
		return
	}
	s.Head, s.Updated = e.Seq, e.Time
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		s.opened(e, b)
	case agent.SettingsChanged:
		s.Model = or(b.Model, s.Model)
		s.Mode = or(b.Mode, s.Mode)
		s.Title = or(b.Title, s.Title)
	case agent.InputQueued:
		s.Queued = append(s.Queued, b)
		s.saw(b.Input)
	case agent.InputAdded:
		s.added(b)
	case agent.TurnStarted:
		s.turnStarted(e, b)
	case agent.TurnEnded:
		s.settle()
		s.Turn.Open, s.Turn.Reason = false, b.Reason
		s.dropApprovals("") // a child in the background asks on
	case agent.ModelRequested:
		if b.Purpose == "" {
			s.Turn.Step, s.Turn.Asking, s.Turn.Stop = b.Step, true, ""
		}
	case agent.ModelAnswered:
		s.answered(b)
	case agent.ContextThreshold:
		s.Warned = b.Threshold
	case agent.ApprovalAsked:
		put(&s.Approvals, b.ID, b)
	case agent.ApprovalResolved:
		if a, ok := s.Approvals[b.ID]; ok && b.Remember == "session" && b.Decision.Verdict == agent.Allow {
			s.Grants = append(s.Grants, a.Proposal)
		}
		delete(s.Approvals, b.ID)
		put(&s.Resolved, b.ID, b)
	case agent.ChildOpened:
		put(&s.Children, b.Child, b.Key)
	case agent.ChildEnded:
		delete(s.Children, b.Child)
		s.dropApprovals(b.Child)
	case agent.CallDecided:
		if c := s.call(b.Proposal.Call.ID); c != nil && b.Proposal.Origin == "" {
			c.Decided, c.Key = &b, b.Key
		}
	case agent.CallStarted:
		s.Turn.Stuck = 0
		if c := s.call(b.ID); c != nil {
			c.Started = &b
		}
	case agent.CallSpawned:
		if c := s.call(b.ID); c != nil {
			c.Spawned = append(c.Spawned, b.Process)
		}
	case agent.CallFinished:
		s.finished(b)
	}
}

// dropApprovals forgets the questions of a child that has ended; "" = of the
// session itself.
func (s *State) dropApprovals(child string) {
	maps.DeleteFunc(s.Approvals, func(_ string, a agent.ApprovalAsked) bool { return a.Child == child })
}

func (s *State) opened(e agent.Event, b agent.SessionOpened) {
	if s.First.Session == "" || b.ForkOf != "" {
		s.First, s.Created = b, e.Time
	}
	s.Title = or(b.Title, s.Title)
	s.Model = or(b.Model, s.Model)
	s.Mode = or(b.Mode, s.Mode)
}

func (s *State) added(b agent.InputAdded) {
	s.settle()
	s.Turn.Stop = ""
	s.Unread = !s.Turn.Open
	s.Queued = slices.DeleteFunc(s.Queued, func(q agent.InputQueued) bool { return q.Input == b.Input })
	s.saw(b.Input)
	m := agent.Message{Role: agent.User}
	if b.Text != "" {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.TextBlock, Text: b.Text})
	}
	m.Blocks = append(m.Blocks, b.Parts...)
	s.push(m)
	if s.Title == "" && b.Origin == "" {
		s.Title = title(b.Text)
	}
}

func (s *State) turnStarted(e agent.Event, b agent.TurnStarted) {
	if s.Turn.Open && s.Turn.ID == b.Turn {
		s.Turn.Attempt++
		if len(s.Approvals) == 0 { // a turn that waits for a person is not stuck
			s.Turn.Stuck++
		}
		return
	}
	s.Turns++
	s.Unread = false
	s.Turn = Turn{ID: b.Turn, Open: true, Attempt: 1, Stuck: 1, Started: e.Time}
}

func (s *State) answered(b agent.ModelAnswered) {
	s.Usage = s.Usage.Add(b.Usage)
	s.Turn.Usage = s.Turn.Usage.Add(b.Usage)
	if b.Cost != nil {
		sum := *b.Cost
		if s.Cost != nil {
			sum += *s.Cost
		}
		s.Cost = &sum
		s.Turn.Cost += *b.Cost
	} else {
		s.Priced, s.Turn.Unknown = false, true
	}
	if b.Purpose != "" {
		return
	}
	s.settle()
	s.Turn.Stuck, s.Turn.Step, s.Turn.Asking, s.Turn.Stop = 0, b.Step, false, b.Stop
	if b.Stop == "" {
		s.Turn.Stop = agent.StopEnd
	}
	s.Context = b.Usage.Context()
	s.push(b.Message)
	if calls := b.Message.Calls(); len(calls) > 0 {
		s.Turn.Stop = ""
		s.Open = &Step{Step: b.Step}
		for _, c := range calls {
			s.Open.Calls = append(s.Open.Calls, &CallState{Call: c})
		}
	}
}

func (s *State) finished(b agent.CallFinished) {
	s.Turn.Stuck = 0
	for _, f := range b.Result.Files {
		if f.Gone {
			delete(s.Files, f.Path)
		} else {
			put(&s.Files, f.Path, f)
		}
	}
	if c := s.call(b.Result.ID); c != nil && c.Finished == nil {
		c.Finished = &b
		if s.Open.done() {
			s.settle()
		}
	}
}

// call returns the state of a call of the open step, or nil.
func (s *State) call(id string) *CallState {
	if s.Open == nil {
		return nil
	}
	for _, c := range s.Open.Calls {
		if c.Call.ID == id {
			return c
		}
	}
	return nil
}

func (st *Step) done() bool {
	return !slices.ContainsFunc(st.Calls, func(c *CallState) bool { return c.Finished == nil })
}

// settle puts the results of the open step into the conversation, in the order
// of its calls. A call without a result is answered with a failed one, so that
// the conversation is valid whatever happened.
func (s *State) settle() {
	if s.Open == nil {
		return
	}
	s.push(s.Open.message())
	s.Open = nil
	clear(s.Resolved)
}

func (st *Step) message() agent.Message {
	m := agent.Message{Role: agent.User}
	for _, c := range st.Calls {
		r := Interrupted(c.Call.ID)
		if c.Finished != nil {
			r = c.Finished.Result
		}
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.ResultBlock, Result: &r})
	}
	return m
}

// Interrupted is the result of a call of which nothing more is known.
func Interrupted(id string) agent.Result {
	r := agent.Failure(agent.ErrOutcomeUnknown, "The call was interrupted; its outcome is unknown.", "Look at the state of things before you repeat it.")
	r.ID = id
	return r
}

// push adds a message. A message without blocks says nothing, and providers
// refuse it.
func (s *State) push(m agent.Message) {
	if len(m.Blocks) == 0 {
		return
	}
	s.Messages = append(s.Messages, m)
	s.Hashes = append(s.Hashes, hashOf(m))
}

func (s *State) saw(input string) {
	if input != "" {
		put(&s.Inputs, input, true)
	}
}

// Conversation returns the messages as a model should see them now, and their
// hashes. The slices are shared and must not be changed.
func (s *State) Conversation() ([]agent.Message, [][]byte) {
	n := len(s.Messages)
	msgs, hashes := s.Messages[:n:n], s.Hashes[:n:n]
	if s.Open != nil {
		m := s.Open.message()
		return append(msgs, m), append(hashes, hashOf(m))
	}
	return msgs, hashes
}

// TotalCost returns what the session has cost, or nil when a part is unknown.
func (s *State) TotalCost() *agent.Money {
	if !s.Priced {
		return nil
	}
	if s.Cost == nil {
		return new(agent.Money)
	}
	return s.Cost
}

// Info returns the row of the session list.
func (s *State) Info() agent.SessionInfo {
	status := "idle"
	switch {
	case len(s.Approvals) > 0:
		status = "waiting"
	case s.Turn.Open, s.Unread, len(s.Queued) > 0:
		status = "interrupted"
	}
	return agent.SessionInfo{
		ID: s.First.Session, Parent: s.First.Parent, Title: s.Title, Workdir: s.First.Workdir,
		Model: s.Model, Status: status, Turns: s.Turns, Head: s.Head,
		Created: s.Created.UTC().Format(time.RFC3339), Updated: s.Updated.UTC().Format(time.RFC3339),
		Usage: s.Usage, Cost: s.TotalCost(),
	}
}

// hashOf returns the hash of a message, which is the same before the message
// goes into the log and after: a byte that is no UTF-8 is encoded as an escaped
// replacement character, which comes back as the character itself.
func hashOf(m agent.Message) []byte {
	data, err := json.Marshal(m)
	if err != nil {
		panic("transcript: a message from the log does not encode: " + err.Error())
	}
	sum := sha256.Sum256(bytes.ReplaceAll(data, []byte(`\ufffd`), []byte("\ufffd")))
	return sum[:]
}

// title is the first line of the input, cut to 40 characters.
func title(text string) string {
	n := 0
	for i, r := range text {
		if r == '\n' || n == 40 {
			return text[:i]
		}
		n++
	}
	return text
}

func or[T ~string](a, b T) T {
	if a != "" {
		return a
	}
	return b
}

func put[V any](m *map[string]V, k string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[k] = v
}
