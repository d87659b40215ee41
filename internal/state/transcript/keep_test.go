package transcript_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/state/transcript"
)

// longTalk is n turns, each with a call whose result has 100 bytes; the first
// one also calls todo.
func longTalk(n int) (all []agent.Body) {
	for i := range n {
		id := fmt.Sprint(i)
		a := answer(i, "looking", id)
		if i == 0 {
			a.Message.Blocks[1].Call.Tool = "todo"
		}
		all = append(all, agent.InputAdded{Input: "in" + id, Text: "go on"}, agent.TurnStarted{Turn: id}, a,
			agent.CallFinished{Result: agent.Result{ID: id, Status: agent.StatusOK, Text: strings.Repeat("x", 100)}},
			answer(i, "done "+id), agent.TurnEnded{Turn: id, Reason: agent.EndDone})
	}
	return all
}

// A state that keeps a part of its messages knows everything else that a whole
// one does: live, from a snapshot, and when it is told late.
func TestKeep(t *testing.T) {
	events := longTalk(100)
	whole := fold(events...)
	apply := func(s *transcript.State, from int) *transcript.State {
		for i, b := range events[from:] {
			s.Apply(agent.Event{Seq: int64(from+i) + 1, Body: b})
		}
		return s
	}
	bounded := func(from *transcript.State, bytes int) *transcript.State {
		from.Keep(bytes)
		return from
	}
	data, err := fold(events[:301]...).Encode(4000)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 20_000 {
		t.Errorf("the snapshot has %d bytes", len(data))
	}
	snap, err := transcript.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*transcript.State{
		"live":     apply(bounded(transcript.New(), 4000), 0),
		"snapshot": apply(bounded(snap, 4000), 301),
		"late":     bounded(fold(events...), 4000),
	} {
		if s.Whole() || !whole.Whole() {
			t.Errorf("%s: it says that nothing is missing", name)
		}
		n := len(s.Messages)
		if n < 8 || n > 40 {
			t.Errorf("%s: %d messages are at hand", name, n)
		}
		if !reflect.DeepEqual(s.Messages, whole.Messages[len(whole.Messages)-n:]) {
			t.Errorf("%s: the messages at hand are not the newest", name)
		}
		if !reflect.DeepEqual(s.Hashes, whole.Hashes) {
			t.Errorf("%s: the hashes differ", name)
		}
		past := s.Past()
		if calls := past[0].Calls(); len(calls) != 2 || calls[1].Tool != "todo" || calls[1].ID != "0" || len(past) != n+1 {
			t.Errorf("%s: the past begins with %+v", name, past[0])
		}
		s.Keep(0)
		s.Apply(agent.Event{Seq: 1000, Body: agent.InputAdded{Input: "last", Text: "more"}})
		if len(s.Messages) != n+1 {
			t.Errorf("%s: a message was let go when none was to be", name)
		}
	}
}

// Whatever the bound, the messages that say how the session stands stay.
func TestKeepLittle(t *testing.T) {
	s := fold(longTalk(20)...)
	s.Keep(1)
	if len(s.Messages) != 8 {
		t.Errorf("%d messages are at hand", len(s.Messages))
	}
	if past := fold(longTalk(1)...).Past(); len(past) != 4 {
		t.Errorf("the past of a short talk has %d messages", len(past))
	}
}
