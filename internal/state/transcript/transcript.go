// Package transcript folds the events of a session into what is derived from
// them: the conversation that a model sees, totals, open approvals, queued
// input, and how far the running turn has come.
//
// The fold is pure: the same events give the same state, live, after a restart
// and in a replay. It keeps messages that were built once as they are, so that
// whoever encodes them can reuse what it made of them; those of a long session it
// keeps on request only. A State is not safe for
// concurrent use; what Conversation returns may be kept and read.
package transcript

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dure/agent"
)

// Version is the version of the state as JSON. A snapshot of another version is
// thrown away.
const Version = 14

// State is a session as its log tells it up to Head. All of it is plain data.
type State struct {
	V       int                 `json:"v"`
	Head    int64               `json:"head"`
	First   agent.SessionOpened `json:"first"`
	Epochs  int                 `json:"epochs,omitempty"` // how often it was opened, since it was forked
	Created time.Time           `json:"created"`
	Updated time.Time           `json:"updated"`
	Title   string              `json:"title,omitempty"`
	Model   string              `json:"model,omitempty"`
	Mode    agent.Mode          `json:"mode,omitempty"`

	// Messages are those at hand: all of them, or the newest when the state was
	// told to Keep no more. LetGo has the newest call of each tool among the
	// others.
	Messages []agent.Message       `json:"messages"`
	Hashes   [][]byte              `json:"hashes"` // SHA-256 of the JSON of every message
	Seqs     []int64               `json:"seqs"`   // of the event that completed every message
	LetGo    map[string]agent.Call `json:"let_go,omitempty"`
	Open     *Step                 `json:"open,omitempty"`

	Turn   Turn                `json:"turn"`
	Turns  int                 `json:"turns"`
	Calls  int                 `json:"calls,omitempty"`  // that have a result
	Said   int                 `json:"said"`             // inputs and answers, those to side questions too
	Unread bool                `json:"unread,omitempty"` // input has been added and no turn has begun since
	Queued []agent.InputQueued `json:"queued,omitempty"`
	Inputs map[string]bool     `json:"inputs,omitempty"` // IDs of all input ever taken

	Approvals map[string]agent.ApprovalAsked    `json:"approvals,omitempty"` // not answered yet
	Resolved  map[string]agent.ApprovalResolved `json:"resolved,omitempty"`  // answered, in the open step
	Grants    []string                          `json:"grants,omitempty"`    // rules that were allowed for the session
	Children  map[string]string                 `json:"children,omitempty"`  // running: ID to key

	Pending map[string]agent.PendingCall `json:"pending,omitempty"` // calls without an outcome yet, by handle
	Settled []agent.CallSettled          `json:"settled,omitempty"` // the newest outcomes, at most maxSettled
	Notices []Notice                     `json:"notices,omitempty"` // that the model has not read

	Usage   agent.Usage  `json:"usage"`
	Cost    *agent.Money `json:"cost,omitempty"`
	Priced  bool         `json:"priced"`  // every answer so far had a known price
	Context int          `json:"context"` // tokens of the conversation up to the event Counted, with what is in front of it; 0 = not known
	Counted int64        `json:"counted,omitempty"`
	Warned  float64      `json:"warned"` // the highest threshold that was reported

	Tools string `json:"tools,omitempty"` // the blob with those that the newest request of the conversation offers
	agent.Marks

	// Asides are how many blocks of an input, from its first on, nobody has said, by
	// the event that has it: notices, and what the program says in the user's place.
	Asides map[int64]int `json:"asides,omitempty"`

	// Extras are the texts in the conversation that nobody has said, the newest last.
	// Fresh is the input that no request has had yet.
	Extras []Extra            `json:"extras,omitempty"`
	Owed   []Owed             `json:"owed,omitempty"` // what the next request is to have of hooks and skills
	Fresh  []agent.InputAdded `json:"fresh,omitempty"`
	Skills []agent.SkillText  `json:"skills,omitempty"` // whose texts entered the conversation, the newest last, each once
	Apart  []Apart            `json:"apart,omitempty"`  // skills that go on in the background

	// Compactions are those in effect, the newest last. Edited is the newest event
	// that put something else in the place of messages, and Dead are the parts of
	// the log from which the conversation went back.
	Compactions []Compaction `json:"compactions,omitempty"`
	Edited      int64        `json:"edited,omitempty"`
	Dead        []Span       `json:"dead,omitempty"`

	Plan     *Plan          `json:"plan,omitempty"`     // the newest
	Agreed   *Plan          `json:"agreed,omitempty"`   // the newest that was approved, until it is taken back
	Planned  int64          `json:"planned,omitempty"`  // the newest event about a plan
	Planning agent.PlanMode `json:"planning,omitempty"` // as it was changed; "" = as the settings have it
	Chosen   string         `json:"effort,omitempty"`   // effort that was chosen; likewise
	Before   agent.Mode     `json:"before,omitempty"`   // that held before plan mode
	Lapsed   bool           `json:"lapsed,omitempty"`   // plan mode is over, since the session was opened again at rest

	// Schema is the form that answers are to have, as it was asked for when the session was
	// opened last.
	Schema json.RawMessage `json:"schema,omitempty"`

	Task  agent.WorkingMemory `json:"task"`
	Noted int64               `json:"noted,omitempty"` // the newest event by which the agent has noted something

	// How people keep the session.
	Tags     []string `json:"tags,omitempty"`
	Pinned   bool     `json:"pinned,omitempty"`
	Archived bool     `json:"archived,omitempty"`

	Named   bool           `json:"named,omitempty"`   // a person has given it its title
	Origin  *agent.Origin  `json:"origin,omitempty"`  // of one that was imported
	Profile string         `json:"profile,omitempty"` // kind of work
	Ratings map[int64]bool `json:"ratings,omitempty"` // of answers, by their events

	keep int // bytes of Messages that are kept, about; 0 = all
	held int // bytes of Messages, about, while keep is set

	whole func(seq int64) bool // which messages are kept as they are; nil = all
	log   Rereader
	memo  map[int64]*State // while the log is read again
	err   error
}

// Span are the events behind From, up to and including To.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Extra is a text that was put into the conversation by [agent.ContextAdded].
type Extra struct {
	Seq    int64  `json:"seq"`
	Source string `json:"source"`
	Key    string `json:"key,omitempty"`
	SHA256 []byte `json:"sha256"` // of the text
}

// Owed is what a hook or a skill has to say to the model, and it has not been told yet.
type Owed struct {
	Seq  int64  `json:"seq"`
	Run  string `json:"run"`
	Hook string `json:"hook"` // the event that it was asked about, and what ran
	Text string `json:"text"`

	Source string `json:"source,omitempty"` // in place of that of a hook
}

// HookSource is the beginning of the source of what hooks add to the conversation: the
// event follows it. The key is that of the run.
const HookSource = "hook:"

// Compaction is a compaction in effect.
type Compaction struct {
	Seq     int64          `json:"seq"`     // of its event
	Through int64          `json:"through"` // what it stands for
	Pinned  []agent.Pinned `json:"pinned,omitempty"`
}

// Turn is the newest turn.
type Turn struct {
	ID      string `json:"id,omitempty"`
	Open    bool   `json:"open,omitempty"`
	Step    int    `json:"step,omitempty"`    // of the last answer or request
	Attempt int    `json:"attempt,omitempty"` // how often it was started
	Stuck   int    `json:"stuck,omitempty"`   // starts since something came of it
	Asking  bool   `json:"asking,omitempty"`  // the request of Step has no answer yet
	Instead string `json:"instead,omitempty"` // the fallback that has taken over from the session's model

	// Stop is the stop reason of the last answer when that called nothing and
	// nothing has followed it: with an open turn, the end was not recorded.
	Stop    agent.StopReason `json:"stop,omitempty"`
	Reason  agent.EndReason  `json:"reason,omitempty"`
	Error   string           `json:"error,omitempty"` // why it ended so
	Started time.Time        `json:"started"`
	Usage   agent.Usage      `json:"usage"`
	Cost    agent.Money      `json:"cost"`
	Unknown bool             `json:"unknown,omitempty"` // an answer without a price

	// Formed says that the answer in the form that was asked for is given, and nothing was
	// said since. Misses counts what was no such answer: calls, and words that asked for it.
	Formed bool `json:"formed,omitempty"`
	Misses int  `json:"misses,omitempty"`

	Skills []agent.TurnSkill `json:"skills,omitempty"` // that were started in it, in their order
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

// Notice is what the model is told with the next input.
type Notice struct {
	Seq  int64  `json:"seq"` // of the event that it goes back to
	Text string `json:"text"`
}

// FormOrigin is the origin of words that ask for the answer in the form that was wanted.
const FormOrigin = "form"

// maxSettled is how many outcomes of pending calls are kept at hand; the log has
// all of them.
const maxSettled = 32

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

// Encode writes the state for a snapshot, with at most about limit bytes of
// messages; 0 = all.
func (s *State) Encode(limit int) ([]byte, error) {
	part := *s
	part.LetGo = maps.Clone(s.LetGo)
	part.Keep(limit)
	return json.Marshal(&part)
}

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
		if b.Model != "" {
			if b.Model != s.Model { // its window is another one
				s.Warned = 0
			}
			s.Model, s.Turn.Instead = b.Model, ""
		}
		s.moded(b.Mode)
		s.Planning, s.Chosen = or(b.Plan, s.Planning), or(b.Effort, s.Chosen)
		s.Title = or(b.Title, s.Title)
		s.kept(b)
	case agent.InputQueued:
		s.Queued = append(s.Queued, b)
		s.saw(b.Input)
	case agent.InputAdded:
		s.added(b)
	case agent.TurnStarted:
		s.turnStarted(e, b)
	case agent.TurnEnded:
		s.settle()
		s.Turn.Open, s.Turn.Reason, s.Turn.Error, s.Turn.Instead = false, b.Reason, b.Error, ""
		s.dropApprovals("") // a child in the background asks on
	case agent.ModelRequested:
		if b.Purpose == "" {
			s.Turn.Step, s.Turn.Asking, s.Turn.Stop = b.Step, true, ""
			s.Fresh, s.Tools = nil, b.Tools
		}
	case agent.ModelAnswered:
		s.answered(b)
	case agent.ModelFailed:
		if b.Purpose == "" && b.Model != "" {
			s.Turn.Instead = b.Model
		}
	case agent.ContextThreshold:
		s.Warned = b.Threshold
	case agent.ApprovalAsked:
		put(&s.Approvals, b.ID, b)
	case agent.ApprovalResolved:
		if a, ok := s.Approvals[b.ID]; ok && b.Remember == agent.RememberSession && b.Decision.Verdict == agent.Allow {
			if len(b.Rules) == 0 { // once, a yes was for the tool as a whole
				b.Rules = []string{a.Proposal.Call.Tool}
			}
			s.Grants = append(s.Grants, b.Rules...)
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
	case agent.CallSettled:
		s.settled(b)
	default:
		s.edit(e)
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
	if b.Workdir != "" && b.Workdir != s.First.Workdir {
		s.First.Workdir, s.Grants = b.Workdir, nil // what was allowed was allowed where it came from
	}
	s.Epochs++
	s.Schema = b.Schema
	if b.ForkOf != "" {
		s.Epochs, s.Grants = 1, nil
		s.disown()
	}
	s.Title = or(b.Title, s.Title)
	s.Model = or(b.Model, s.Model)
	s.moded(b.Mode)
	s.Lapsed = s.Lapsed || s.Mode == agent.ModePlan && b.Mode == "" && !s.Turn.Open && !s.Unread && len(s.Queued) == 0
	s.Named = s.Named || b.Named()
	s.Profile = cmp.Or(b.Profile, s.Profile)
	if b.Origin != nil {
		s.Origin = b.Origin
	}
}

// kept takes in how people want to keep the session.
func (s *State) kept(b agent.SettingsChanged) {
	s.Named = s.Named || b.Named()
	if b.Tags != nil {
		s.Tags = *b.Tags
	}
	if b.Pinned != nil {
		s.Pinned = *b.Pinned
	}
	if b.Archived != nil {
		s.Archived = *b.Archived
	}
}

func (s *State) added(b agent.InputAdded) {
	s.Said++
	s.settle()
	s.Turn.Formed = false
	if b.Origin == FormOrigin {
		s.Turn.Misses++
	}
	s.unqueue(b.Input)
	s.saw(b.Input)
	m := agent.Message{Role: agent.User}
	for _, n := range s.Notices {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.TextBlock, Text: n.Text})
	}
	s.Notices = nil
	asides := len(m.Blocks)
	if b.Text != "" {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.TextBlock, Text: b.Text})
	}
	m.Blocks = append(m.Blocks, b.Parts...)
	if b.Origin != "" {
		asides = len(m.Blocks)
	}
	if asides > 0 {
		put(&s.Asides, s.Head, asides)
	}
	s.push(m)
	s.Fresh = append(slices.Clip(s.Fresh), b)
	if len(m.Blocks) > 0 { // its notices may have been read with other input
		s.Unread, s.Turn.Stop = !s.Turn.Open, ""
	}
	if s.Title == "" && b.Origin == "" {
		s.Title = title(b.Text)
	}
}

func (s *State) unqueue(input string) {
	s.Queued = slices.DeleteFunc(s.Queued, func(q agent.InputQueued) bool { return q.Input == input })
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
	s.Said++
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
	s.Context, s.Counted = b.Usage.Context(), s.Head
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
	s.Calls++
	for _, f := range b.Result.Files {
		if f.Gone {
			delete(s.Files, f.Path)
		} else {
			put(&s.Files, f.Path, f)
		}
	}
	s.noted(b.Result)
	if b.Tool == agent.FormTool {
		if s.Turn.Formed = b.Result.Status == agent.StatusOK; !s.Turn.Formed {
			s.Turn.Misses++
		}
	}
	if c := s.call(b.Result.ID); c != nil && c.Finished == nil {
		c.Finished = &b
		if b.Result.Status == agent.StatusPending && b.Result.Handle != "" {
			p := agent.PendingCall{Seq: s.Head, ID: b.Result.ID, Tool: b.Tool, Spawned: c.Spawned}
			if strings.HasPrefix(b.Result.Handle, agent.ChildHandle) && c.Decided != nil {
				p.Key, p.Input = c.Key, c.Decided.Proposal.Call.Input
			}
			put(&s.Pending, b.Result.Handle, p)
		}
		if s.Open.done() {
			s.settle()
		}
	}
}

// settled takes in the outcome of a pending call. The model reads of it with the
// next input.
func (s *State) settled(b agent.CallSettled) {
	p, ok := s.Pending[b.Handle]
	if !ok {
		return
	}
	delete(s.Pending, b.Handle)
	if len(s.Settled) == maxSettled {
		s.Settled = slices.Clone(s.Settled[1:])
	}
	s.Settled = append(s.Settled, b)
	if b.Notice != "" {
		s.Notices = append(s.Notices, Notice{p.Seq, b.Notice})
	}
}

// disown forgets the processes of the session that this one was forked from: they
// are not its own to end.
func (s *State) disown() {
	for h, p := range s.Pending {
		p.Spawned = nil
		s.Pending[h] = p
	}
	if s.Open != nil {
		for _, c := range s.Open.Calls {
			c.Spawned = nil
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
	s.Hashes = append(s.Hashes, hashOf(m))
	s.Seqs = append(s.Seqs, s.Head)
	if s.slims(s.Head) {
		m = slim(m)
	}
	s.Messages = append(s.Messages, m)
	if s.keep > 0 {
		s.held += weight(m)
		s.drop()
	}
}

func (s *State) saw(input string) {
	if input != "" {
		put(&s.Inputs, input, true)
	}
}

// Current returns the model that the next request of the conversation goes to.
func (s *State) Current() string { return or(s.Turn.Instead, s.Model) }

// Waits reports whether the input that waits in the queue says anything, with all
// also that which waits for the end of the turn. What came to tell of outcomes says
// nothing once other input has.
func (s *State) Waits(all bool) bool {
	return slices.ContainsFunc(s.Queued, func(q agent.InputQueued) bool {
		return (all || !q.Later) && (q.Text != "" || len(q.Parts) > 0 || len(s.Notices) > 0)
	})
}

// Conversation returns the messages as a model should see them now, and their
// hashes. The oldest messages are missing, and their hashes are not, unless the
// state is Whole. The slices are shared and must not be changed.
func (s *State) Conversation() ([]agent.Message, [][]byte) {
	msgs, hashes := slices.Clip(s.Messages), slices.Clip(s.Hashes)
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
	case s.Turn.Open, s.Unread, s.Waits(true):
		status = "interrupted"
	}
	return agent.SessionInfo{
		ID: s.First.Session, Parent: cmp.Or(s.First.Parent, s.First.ForkOf), ForkSeq: s.First.ForkSeq, Title: s.Title, Workdir: s.First.Workdir,
		Model: s.Model, Status: status, Turns: s.Turns, Messages: s.Said, Head: s.Head,
		Created: s.Created.UTC().Format(time.RFC3339), Updated: s.Updated.UTC().Format(time.RFC3339),
		Usage: s.Usage, Cost: s.TotalCost(),
		Tags: s.Tags, Pinned: s.Pinned, Archived: s.Archived,
		Named: s.Named, Origin: s.Origin, Good: s.rated(true), Bad: s.rated(false),
		Profile: cmp.Or(s.Profile, s.First.Profile),
	}
}

// rated counts the answers that people liked, or did not.
func (s *State) rated(good bool) (n int) {
	for _, g := range s.Ratings {
		if g == good {
			n++
		}
	}
	return n
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

func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}
