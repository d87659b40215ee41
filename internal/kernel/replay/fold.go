package replay

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"dure/agent"
	"dure/internal/state/transcript"
)

// maxTwin bounds how many bytes of states are compared, so that a long session costs
// no more per event than a short one.
const maxTwin = 16 << 20

// A twin is the fold as a session has it that is closed and opened again at the end
// of each turn: it is stored and read back there, and must go on like the one that
// never stops.
type twin struct {
	log   iter.Seq2[agent.Event, error]
	state *transcript.State
	used  int // bytes that were compared
	off   bool
}

// folds compares the states that the log leads to, at the end of a turn and where
// a snapshot was taken.
func (v *verifier) folds(e agent.Event) *divergence {
	if data, ok := v.Snapshots[e.Seq]; ok {
		stored, err := transcript.Decode(data)
		if err == nil {
			v.report.Folds++
			if d := v.compare(v.state, stored, "the snapshot"); d != nil {
				return d
			}
		} // one of another version is not used by anybody
	}
	if v.twin.off {
		return nil
	}
	if v.twin.state == nil {
		v.twin.state = transcript.New()
		v.twin.state.Keep(1)
		v.twin.state.Reread(func() iter.Seq2[agent.Event, error] { return v.twin.log })
	}
	v.twin.state.Apply(e)
	if _, ok := e.Body.(agent.TurnEnded); !ok {
		return nil
	}
	return v.reopen()
}

// reopen compares the two folds, and has the twin stored and read back.
func (v *verifier) reopen() *divergence {
	v.report.Folds++
	data, err := v.twin.state.Encode(1)
	if err != nil {
		return &divergence{problem: err.Error()}
	}
	if v.twin.used += len(data); v.twin.used > maxTwin {
		v.twin = twin{off: true}
	}
	read, err := transcript.Decode(data)
	if err != nil {
		return &divergence{problem: err.Error()}
	}
	if d := v.compare(v.state, read, "the state that was stored and read back"); d != nil {
		return d
	}
	if v.twin.off {
		return nil
	}
	read.Keep(1)
	read.Reread(func() iter.Seq2[agent.Event, error] { return v.twin.log })
	v.twin.state = read
	return nil
}

// compare says in what a stored state is not what the log gives.
func (v *verifier) compare(folded, stored *transcript.State, what string) *divergence {
	for i := range max(len(folded.Hashes), len(stored.Hashes)) {
		if i >= len(stored.Hashes) || i >= len(folded.Hashes) || string(stored.Hashes[i]) != string(folded.Hashes[i]) {
			d := diverged(hashAt(stored, i), hashAt(folded, i), "%s has another message %d than the log gives", what, i)
			d.diff = v.messageDiff(folded.Head, i, messageAt(stored, i))
			return d
		}
	}
	want, got := plain(stored), plain(folded)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if w, g := string(want[name]), string(got[name]); w != g {
			d := diverged(w, g, "%s has other %s than the log gives", what, name)
			d.diff = lineDiff(indented(want[name]), indented(got[name]))
			return d
		}
	}
	for i, m := range stored.Messages {
		at := len(stored.Hashes) - len(stored.Messages) + i
		if at < 0 || string(transcript.HashOf(m)) != string(stored.Hashes[at]) {
			d := diverged(hashAt(stored, at), fmt.Sprintf("%x", transcript.HashOf(m)), "%s has a message %d that does not have its hash", what, at)
			d.diff = v.messageDiff(folded.Head, at, &m)
			return d
		}
	}
	return nil
}

// plain are the fields of a state, but for what it need not have at hand.
func plain(s *transcript.State) map[string]json.RawMessage {
	part := *s
	part.Messages, part.LetGo, part.Hashes = nil, nil, nil
	data, err := json.Marshal(&part)
	fields := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err != nil {
		return nil
	}
	return fields
}

func hashAt(s *transcript.State, i int) string {
	if i < 0 || i >= len(s.Hashes) {
		return "no message"
	}
	return fmt.Sprintf("%x", s.Hashes[i])
}

// messageAt returns a message of a state, or nil when it is not at hand.
func messageAt(s *transcript.State, i int) *agent.Message {
	at := i - (len(s.Hashes) - len(s.Messages))
	if at < 0 || at >= len(s.Messages) {
		return nil
	}
	return &s.Messages[at]
}

// messageDiff compares a message with the one that the log gives as of an event.
func (v *verifier) messageDiff(head int64, i int, stored *agent.Message) []string {
	again := transcript.New()
	again.Reread(func() iter.Seq2[agent.Event, error] { return v.Events })
	for e, err := range v.Events {
		if err != nil || e.Seq > head {
			break
		}
		again.Apply(e)
	}
	var want, got string
	if stored != nil {
		want = indented(*stored)
	}
	if m := messageAt(again, i); m != nil {
		got = indented(*m)
	}
	return lineDiff(want, got)
}
