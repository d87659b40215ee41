package transcript

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"dure/agent"
)

// Rereader gives the events of the log from the first on, once more. A state
// needs it only when the conversation goes back to before a compaction, or a
// compaction is taken back: what that had put away is read again then.
type Rereader func() iter.Seq2[agent.Event, error]

// Reread tells the state how to read its log again. Without it, a conversation
// that would have to be read again stays as it is, and Err says so.
func (s *State) Reread(log Rereader) { s.log = log }

// Err says why the conversation is not what the log says, or nil.
func (s *State) Err() error { return s.err }

// edit folds what does more to the conversation than add to it.
func (s *State) edit(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.ContextAdded:
		s.settle()
		s.push(agent.Message{Role: agent.User, Origin: b.Source, Blocks: append([]agent.Block{{Type: agent.TextBlock, Text: b.Text}}, b.Blocks...)})
		sum := sha256.Sum256([]byte(b.Text))
		s.Extras = append(slices.Clip(s.Extras), Extra{e.Seq, b.Source, b.Key, sum[:]})
		if strings.HasPrefix(b.Source, HookSource) || b.Source == SkillSource {
			s.Owed = slices.DeleteFunc(slices.Clone(s.Owed), func(o Owed) bool { return o.Run == b.Key })
		}
	case agent.InputDropped:
		s.unqueue(b.Input)
	case agent.RulesGranted:
		if b.Remember == agent.RememberSession {
			s.Grants = append(s.Grants, b.Rules...)
		}
	case agent.RulesRevoked: // what was handed out stays as it is
		s.Grants = slices.DeleteFunc(slices.Clone(s.Grants), func(r string) bool { return slices.Contains(b.Rules, r) })
	case agent.CallDeferred:
		s.Turn.Stuck = 0 // it was no crash
	case agent.HookRan:
		s.spent(b.Once)
		if b.Context != "" {
			s.Owed = append(slices.Clip(s.Owed), Owed{Seq: e.Seq, Run: b.Run, Hook: b.Event, Text: b.Context})
		}
	case agent.ToolsSelected:
		s.selected(b)
	case agent.ExtensionKept:
		put(&s.Kept, b.Extension, b.State)
	case agent.ToolsSwitched:
		s.switched(b)
	case agent.SkillActivated:
		s.skillActivated(b)
	case agent.SkillCompleted:
		s.skillCompleted(e, b)
	case agent.ContextCompacted:
		s.compacted(e, b)
	case agent.ContextRestored:
		s.restored(e, b)
	case agent.ConversationRewound:
		s.rewound(e, b)
	case agent.PlanProposed, agent.PlanChanged, agent.PlanDecided:
		s.planned(e)
	case agent.Rated:
		put(&s.Ratings, b.Of, b.Good)
	case agent.FilesRewound:
		if text := putBack(b); text != "" {
			s.Notices = append(s.Notices, Notice{e.Seq, text})
		}
	}
}

// maxSelected bounds the tools that a state knows to be selected.
const maxSelected = 512

func (s *State) selected(b agent.ToolsSelected) {
	for _, name := range b.Tools {
		if len(s.Selected) < maxSelected && !slices.Contains(s.Selected, name) {
			s.Selected = append(slices.Clip(s.Selected), name)
		}
	}
}

func (s *State) switched(b agent.ToolsSwitched) {
	off := slices.DeleteFunc(slices.Clone(s.Off), func(n string) bool { return n == b.Tool })
	if !b.On {
		off = append(off, b.Tool)
	}
	s.Off = off
}

// maxSpent bounds the hooks that a state knows to have run once; of more, the oldest are
// forgotten.
const maxSpent = 1000

// spent notes that a hook has run that runs once; "" = it runs always.
func (s *State) spent(mark string) {
	if mark != "" && !slices.Contains(s.Spent, mark) {
		s.Spent = append(slices.Clip(s.Spent[max(0, len(s.Spent)-maxSpent+1):]), mark)
	}
}

// compacted puts a head in the place of the beginning of the conversation.
func (s *State) compacted(e agent.Event, b agent.ContextCompacted) {
	s.settle()
	if b.Messages < 0 || b.Messages > len(s.Hashes) {
		s.fail("compaction %d stands for %d messages of %d", e.Seq, b.Messages, len(s.Hashes))
		return
	}
	s.letGo(b.Messages - (len(s.Hashes) - len(s.Messages)))
	s.Hashes, s.Seqs = slices.Clone(s.Hashes[b.Messages:]), slices.Clone(s.Seqs[b.Messages:])
	if len(b.Trimmed) > 0 { // what was handed out stays as it is
		s.Messages = slices.Clone(s.Messages)
	}
	for _, t := range b.Trimmed {
		s.trim(e.Seq, t)
	}
	s.Extras = slices.DeleteFunc(slices.Clone(s.Extras), func(x Extra) bool { return !slices.Contains(s.Seqs, x.Seq) })
	heads, seqs := Hashes(b.Head), make([]int64, len(b.Head))
	for i := range seqs {
		seqs[i] = e.Seq
	}
	if s.Whole() {
		s.Messages = slices.Concat(b.Head, s.Messages)
	}
	s.Hashes, s.Seqs = slices.Concat(heads, s.Hashes), slices.Concat(seqs, s.Seqs)
	s.Compactions = append(slices.Clip(s.Compactions), Compaction{Seq: e.Seq, Through: b.Through, Pinned: b.Pinned})
	s.Edited, s.Context, s.Counted, s.Warned = e.Seq, b.After, e.Seq, 0
	s.weigh()
}

// letGo drops the first n messages that are at hand.
func (s *State) letGo(n int) {
	if n <= 0 {
		return
	}
	s.LetGo = maps.Clone(s.LetGo)
	for _, m := range s.Messages[:n] {
		for _, c := range m.Calls() {
			put(&s.LetGo, c.Tool, c)
		}
	}
	s.Messages = slices.Clone(s.Messages[n:])
}

// trim shortens the results of one message.
func (s *State) trim(seq int64, t agent.Trimmed) {
	if t.Message < 0 || t.Message >= len(s.Hashes) {
		s.fail("compaction %d shortens message %d of %d", seq, t.Message, len(s.Hashes))
		return
	}
	s.Hashes[t.Message] = t.Hash
	at := t.Message - (len(s.Hashes) - len(s.Messages))
	if at < 0 {
		return // it is not at hand
	}
	s.Messages[at] = Trim(s.Messages[at], t.Texts)
	if got := hashOf(s.Messages[at]); string(got) != string(t.Hash) && !s.slims(s.Seqs[t.Message]) {
		s.fail("compaction %d does not say what it made of message %d", seq, t.Message)
	}
}

// Trim returns a message with other texts for the results of some calls. What a
// result had beside its text is gone.
func Trim(m agent.Message, texts map[string]string) agent.Message {
	m.Blocks = slices.Clone(m.Blocks)
	for i, b := range m.Blocks {
		if b.Result == nil {
			continue
		}
		if text, ok := texts[b.Result.ID]; ok {
			m.Blocks[i].Result = &agent.Result{ID: b.Result.ID, Status: b.Result.Status, Text: text, Error: b.Result.Error, Spill: b.Result.Spill, Handle: b.Result.Handle}
		}
	}
	return m
}

// HashOf returns the hash of a message, as it is in Hashes.
func HashOf(m agent.Message) []byte { return hashOf(m) }

// restored takes the newest compaction back: what it stood for comes again, in
// front of what has been said since.
func (s *State) restored(e agent.Event, b agent.ContextRestored) {
	n := len(s.Compactions)
	if n == 0 || s.Compactions[n-1].Seq != b.Of {
		s.fail("event %d takes back compaction %d, which is not the newest", e.Seq, b.Of)
		return
	}
	s.settle()
	since := len(s.Seqs)
	for since > 0 && s.Seqs[since-1] > b.Of {
		since--
	}
	later := *s // as it is now
	past := s.at(b.Of-1, e.Seq)
	if past == nil {
		return
	}
	s.take(past)
	if hidden := len(later.Hashes) - len(later.Messages); hidden <= since {
		s.Messages = slices.Concat(s.Messages, later.Messages[since-hidden:])
	} else {
		s.Messages = later.Messages // what is in front of them is not at hand
	}
	for tool, c := range later.LetGo { // what has been let go since is newer
		put(&s.LetGo, tool, c)
	}
	s.Hashes = slices.Concat(s.Hashes, later.Hashes[since:])
	s.Seqs = slices.Concat(s.Seqs, later.Seqs[since:])
	s.Dead = slices.Concat(s.Dead, slices.DeleteFunc(slices.Clone(later.Dead), func(d Span) bool { return d.To <= b.Of }))
	s.Extras = slices.Concat(s.Extras, slices.DeleteFunc(slices.Clone(later.Extras), func(x Extra) bool { return x.Seq <= b.Of }))
	s.Edited = e.Seq
	s.changed()
}

// rewound takes what was said after an event out of the conversation, and what the
// agent has noted since. What it has not read yet of earlier calls it will.
func (s *State) rewound(e agent.Event, b agent.ConversationRewound) {
	s.settle()
	s.Notices = slices.DeleteFunc(slices.Clone(s.Notices), func(n Notice) bool { return n.Seq > b.To })
	s.Owed = slices.DeleteFunc(slices.Clone(s.Owed), func(o Owed) bool { return o.Seq > b.To })
	s.Skills = slices.DeleteFunc(slices.Clone(s.Skills), func(k agent.SkillText) bool { return k.Seq > b.To })
	n := len(s.Seqs)
	for n > 0 && s.Seqs[n-1] > b.To {
		n--
	}
	gone := len(s.Hashes) - n
	if (gone < len(s.Messages) || s.Whole()) && s.Noted <= b.To && s.Planned <= b.To && s.alive(b.To) && !calling(s.Messages[:len(s.Messages)-gone]) {
		s.Messages = slices.Clone(s.Messages[:len(s.Messages)-gone])
		s.Hashes, s.Seqs = slices.Clone(s.Hashes[:n]), slices.Clone(s.Seqs[:n])
		s.Extras = slices.DeleteFunc(slices.Clone(s.Extras), func(x Extra) bool { return x.Seq > b.To })
	} else if past := s.at(b.To, e.Seq); past != nil {
		s.take(past)
		files := s.Task.Files
		s.Task, s.Noted = past.Task, past.Noted
		s.Plan, s.Agreed, s.Planned = past.Plan, past.Agreed, past.Planned
		s.Task.Files = files
	} else {
		return
	}
	s.Dead = slices.DeleteFunc(slices.Clone(s.Dead), func(d Span) bool { return d.To > b.To })
	s.Dead = append(s.Dead, Span{b.To, e.Seq})
	s.Fresh = nil
	s.changed()
}

// alive reports whether the conversation has gone on from event seq, and nothing
// has been done to it since but that.
func (s *State) alive(seq int64) bool {
	return s.Edited <= seq && !slices.ContainsFunc(s.Dead, func(d Span) bool { return d.From < seq && seq <= d.To })
}

// calling reports whether the last message waits for results.
func calling(msgs []agent.Message) bool {
	return len(msgs) > 0 && len(msgs[len(msgs)-1].Calls()) > 0
}

// at returns a state as the log had it after an event, with nothing open; nil if it
// cannot be read.
func (s *State) at(seq, now int64) *State {
	if s.log == nil {
		s.fail("event %d goes back to event %d, which cannot be read again", now, seq)
		return nil
	}
	if s.memo == nil { // of one time that is gone back to, which may lead to others
		s.memo = map[int64]*State{}
		defer func() { s.memo = nil }()
	}
	if past := s.memo[seq]; past != nil {
		return past
	}
	past := New()
	past.Keep(s.keep)
	past.log, past.memo, past.whole = s.log, s.memo, s.whole
	for e, err := range s.log() {
		if err != nil {
			s.fail("reading the log again: %s", err.Error())
			return nil
		}
		if e.Seq > seq {
			break
		}
		past.Apply(e)
	}
	past.settle()
	if past.err != nil {
		s.err = past.err
	}
	s.memo[seq] = past
	return past
}

// take takes over the conversation of a state.
func (s *State) take(past *State) {
	s.Messages, s.Hashes, s.Seqs = slices.Clip(past.Messages), slices.Clip(past.Hashes), slices.Clip(past.Seqs)
	s.Compactions, s.Edited, s.Dead = past.Compactions, past.Edited, past.Dead
	s.LetGo = maps.Clone(past.LetGo)
	s.Extras = past.Extras
}

// changed forgets what was true of the conversation as it was.
func (s *State) changed() {
	s.Context, s.Counted, s.Warned, s.Unread, s.Turn.Stop = 0, 0, 0, false, ""
	s.weigh()
}

func (s *State) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// weigh counts again what is at hand.
func (s *State) weigh() {
	if s.keep > 0 {
		s.Keep(s.keep)
	}
}

// Uncounted returns the messages at hand that Context does not count: those behind
// Counted, or all when it is not known.
func (s *State) Uncounted() []agent.Message {
	msgs, hashes := s.Conversation()
	hidden, at := len(hashes)-len(msgs), len(s.Seqs)-(len(hashes)-len(msgs))
	if s.Context == 0 {
		return msgs
	}
	for at > 0 && s.Seqs[hidden+at-1] > s.Counted {
		at--
	}
	return msgs[at:]
}

// Size is about how many tokens messages have.
func Size(messages []agent.Message, bytesPerToken int) (tokens int) {
	for _, m := range messages {
		tokens += weight(m) / bytesPerToken
	}
	return tokens
}

// Timed returns the messages at hand as a model should see them now, each with
// the number of the event that completed it.
func (s *State) Timed() []agent.Timed {
	msgs, hashes := s.Conversation()
	all := make([]agent.Timed, len(msgs))
	hidden := len(hashes) - len(msgs)
	for i, m := range msgs {
		all[i].Message, all[i].Seq = m, s.Head
		if at := hidden + i; at < len(s.Seqs) {
			all[i].Seq = s.Seqs[at]
		}
	}
	return all
}
