package transcript_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/prooftest"
	"dure/internal/state/transcript"
)

// logOf numbers events from 1.
func logOf(bodies []agent.Body) []agent.Event {
	all := make([]agent.Event, len(bodies))
	for i, b := range bodies {
		all[i] = agent.Event{Seq: int64(i) + 1, Body: b}
	}
	return all
}

// foldLog folds a log that can be read again.
func foldLog(s *transcript.State, log []agent.Event, from int64) *transcript.State {
	s.Reread(func() iter.Seq2[agent.Event, error] {
		return func(yield func(agent.Event, error) bool) {
			for _, e := range log {
				if !yield(e, nil) {
					return
				}
			}
		}
	})
	for _, e := range log[from:] {
		s.Apply(e)
	}
	return s
}

// compaction is one that stands for the first n messages of what s has, and
// shortens the first result behind them.
func compaction(s *transcript.State, n int) agent.ContextCompacted {
	c := agent.ContextCompacted{Strategy: "hybrid", Messages: n, Through: s.Seqs[n-1], Head: []agent.Message{agent.UserText(fmt.Sprintf("[%d messages]", n))}, After: 7}
	for i, m := range s.Messages[n:] {
		if r := m.Blocks[0].Result; r != nil {
			texts := map[string]string{r.ID: "[short]"}
			c.Trimmed = []agent.Trimmed{{Message: i, Texts: texts, Hash: transcript.HashOf(transcript.Trim(m, texts))}}
			break
		}
	}
	return c
}

func TestHistory(t *testing.T) {
	talk := longTalk(2) // events 1 to 12, messages: in0 call result done in1 call result done
	whole := fold(talk...)
	talk = slices.Clip(talk)
	compacted := slices.Clip(append(talk, compaction(whole, 4)))                                          // 13
	more := slices.Clip(append(compacted, agent.InputAdded{Input: "in2", Text: "three"}, answer(0, "3"))) // 14, 15
	for name, tt := range map[string]struct {
		events []agent.Body
		want   string
	}{
		"compacted":               {compacted, "user [4 messages]\nuser go on\nassistant looking call:1\nuser 1=ok\nassistant done 1\n"},
		"and on":                  {more, "user [4 messages]\nuser go on\nassistant looking call:1\nuser 1=ok\nassistant done 1\nuser three\nassistant 3\n"},
		"restored":                {append(more, agent.ContextRestored{Of: 13}), shape(whole) + "user three\nassistant 3\n"},
		"rewound to the input":    {append(more, agent.ConversationRewound{To: 13}), "user [4 messages]\nuser go on\nassistant looking call:1\nuser 1=ok\nassistant done 1\n"},
		"rewound behind it":       {append(more, agent.ConversationRewound{To: 6}), "user go on\nassistant looking call:0\nuser 0=ok\nassistant done 0\n"},
		"rewound twice":           {append(more, agent.ConversationRewound{To: 12}, agent.ConversationRewound{To: 0}), ""},
		"rewound, then forward":   {append(more, agent.ConversationRewound{To: 6}, agent.ConversationRewound{To: 15}), "user [4 messages]\nuser go on\nassistant looking call:1\nuser 1=ok\nassistant done 1\nuser three\nassistant 3\n"},
		"restored, then rewound":  {append(more, agent.ContextRestored{Of: 13}, agent.ConversationRewound{To: 13}), "user [4 messages]\nuser go on\nassistant looking call:1\nuser 1=ok\nassistant done 1\n"},
		"rewound within a step":   {append(talk, agent.ConversationRewound{To: 9}), "user go on\nassistant looking call:0\nuser 0=ok\nassistant done 0\nuser go on\nassistant looking call:1\nuser 1=error\n"},
		"restored an older one":   {append(more, agent.ContextRestored{Of: 3}), "user [4 messages]\nuser go on\nassistant looking call:1\nuser 1=ok\nassistant done 1\nuser three\nassistant 3\n"},
		"stands for too many":     {append(talk, agent.ContextCompacted{Messages: 9}), shape(whole)},
		"shortens what is not so": {append(talk, agent.ContextCompacted{Trimmed: []agent.Trimmed{{Message: 8}}}), shape(whole)},
	} {
		t.Run(name, func(t *testing.T) {
			s := foldLog(transcript.New(), logOf(tt.events), 0)
			if got := shape(s); got != tt.want {
				t.Errorf("the conversation is\n%swant\n%s", got, tt.want)
			}
			msgs, hashes := s.Conversation()
			if !reflect.DeepEqual(transcript.Hashes(msgs), hashes) && len(msgs) > 0 {
				t.Error("the hashes are not those of the messages")
			}
			if wrong := strings.Contains(name, "older") || strings.Contains(name, "too many") || strings.Contains(name, "not so"); wrong != (s.Err() != nil) {
				t.Errorf("the error is %v", s.Err())
			}
		})
	}
	s := foldLog(transcript.New(), logOf(append(more, agent.ConversationRewound{To: 13}, agent.ContextRestored{Of: 13})), 0)
	if want := []transcript.Span{{From: 13, To: 16}}; !slices.Equal(s.Dead, want) {
		t.Errorf("dead are %v, want %v: a compaction is taken back, not what was taken out since", s.Dead, want)
	}
	s = foldLog(transcript.New(), logOf(compacted), 0)
	if s.Messages[3].Blocks[0].Result.Text != "[short]" {
		t.Errorf("the result is %+v", s.Messages[3].Blocks[0].Result)
	}
	if past := s.Past(); past[0].Calls()[0].ID != "0" {
		t.Errorf("the past begins with %+v", past[0])
	}
}

// Without a log to read again, the conversation stays as it is and says so.
func TestHistoryWithoutALog(t *testing.T) {
	talk := longTalk(2)
	s := fold(append(talk, compaction(fold(talk...), 4), agent.ConversationRewound{To: 6})...)
	if s.Err() == nil || len(s.Messages) != 5 {
		t.Errorf("%d messages, error %v", len(s.Messages), s.Err())
	}
}

// Whatever happens to a conversation, a state that lets messages go, one that goes
// on from a snapshot and one that folds everything have the same hashes, and the
// same messages at their ends.
func TestHistoryAnyhow(t *testing.T) {
	seeds := uint64(80)
	if prooftest.Long() {
		seeds = 300
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 1))
		live := transcript.New()
		var events []agent.Body
		add := func(bodies ...agent.Body) {
			for _, b := range bodies {
				events = append(events, b)
				foldLog(live, logOf(events), int64(len(events))-1)
			}
		}
		cut := 0
		for range 60 {
			switch n := len(live.Compactions); rnd.IntN(10) {
			case 9:
				add(agent.ContextAdded{Source: "memory", Key: fmt.Sprint(rnd.IntN(3)), Text: fmt.Sprintf("read this %d", len(events))})
			case 0:
				if len(live.Seqs) > 2 {
					add(compaction(live, 1+rnd.IntN(len(live.Seqs)-1)))
				}
			case 1:
				add(agent.ConversationRewound{To: rnd.Int64N(live.Head + 1)})
			case 2:
				if n > 0 {
					add(agent.ContextRestored{Of: live.Compactions[n-1].Seq})
				}
			case 3:
				cut = len(events)
			case 4:
				add(note(agent.TaskNote{Task: fmt.Sprint(len(events))}))
			default:
				talk := longTalk(1)
				for i, b := range talk { // with IDs of their own
					data, _ := json.Marshal(b)
					talk[i], _ = agent.DecodeBody(1, b.Kind(), []byte(strings.ReplaceAll(string(data), `"0"`, fmt.Sprintf(`"%d"`, len(events)))))
				}
				add(talk...)
			}
		}
		if live.Err() != nil {
			t.Fatalf("seed %d: %v", seed, live.Err())
		}
		bounded := transcript.New()
		bounded.Keep(600)
		foldLog(bounded, logOf(events), 0)
		data, err := foldLog(transcript.New(), logOf(events[:cut]), 0).Encode(600)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := transcript.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		foldLog(snap, logOf(events), int64(cut))
		for name, s := range map[string]*transcript.State{"bounded": bounded, "snapshot": snap} {
			if s.Err() != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, s.Err())
			}
			if !reflect.DeepEqual(s.Hashes, live.Hashes) || !reflect.DeepEqual(s.Seqs, live.Seqs) {
				t.Fatalf("seed %d, %s: the hashes or numbers differ", seed, name)
			}
			if !reflect.DeepEqual(s.Task, live.Task) {
				t.Fatalf("seed %d, %s: the notes are %+v, not %+v", seed, name, s.Task, live.Task)
			}
			if !slices.EqualFunc(s.Extras, live.Extras, same) || !slices.EqualFunc(s.Extras, extras(s), same) {
				t.Fatalf("seed %d, %s: what was added is %+v, not %+v; in the conversation are %+v", seed, name, s.Extras, live.Extras, extras(s))
			}
			n := len(s.Messages)
			if !reflect.DeepEqual(transcript.Hashes(s.Messages), transcript.Hashes(live.Messages[len(live.Messages)-n:])) {
				t.Fatalf("seed %d, %s: the messages at hand are not the newest", seed, name)
			}
		}
	}
}

func same(a, b transcript.Extra) bool { return reflect.DeepEqual(a, b) }

// extras returns the texts that the state knows to be in the conversation and that
// are.
func extras(s *transcript.State) (all []transcript.Extra) {
	for _, x := range s.Extras {
		if slices.Contains(s.Seqs, x.Seq) {
			all = append(all, x)
		}
	}
	return all
}

// Going back and forth again and again costs no more than the log is long each time.
func TestBackAndForth(t *testing.T) {
	events := longTalk(3)
	for i := range int64(60) {
		events = append(events, agent.ConversationRewound{To: 6 + 6*(i%2)})
	}
	s := foldLog(transcript.New(), logOf(events), 0)
	if s.Err() != nil || len(s.Messages) != 8 {
		t.Errorf("%d messages, %v", len(s.Messages), s.Err())
	}
}

// What was handed out before stays as it was when results are shortened later.
func TestShorteningLeavesWhatWasHandedOut(t *testing.T) {
	s := fold(longTalk(1)...)
	given, _ := s.Conversation()
	was := transcript.Hashes(given)
	texts := map[string]string{"0": "[short]"}
	s.Apply(agent.Event{Seq: s.Head + 1, Body: agent.ContextCompacted{
		Trimmed: []agent.Trimmed{{Message: 2, Texts: texts, Hash: transcript.HashOf(transcript.Trim(given[2], texts))}},
	}})
	if s.Err() != nil || s.Messages[2].Blocks[0].Result.Text != "[short]" {
		t.Fatalf("it was not shortened: %v", s.Err())
	}
	if !reflect.DeepEqual(transcript.Hashes(given), was) {
		t.Error("the messages that were handed out have changed")
	}
}

// A state that has nothing at hand in front of what is taken back reads the log
// again: a call may wait for its result there.
func TestRewindToTheFirstAtHand(t *testing.T) {
	body := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.CallBlock, Call: &agent.Call{ID: "c", Tool: "read"}}}}
	events := []agent.Body{
		agent.InputAdded{Text: "go"},
		agent.ModelAnswered{Answer: agent.Answer{Message: body}},
		agent.CallFinished{Tool: "read", Result: agent.Result{ID: "c", Status: agent.StatusOK}},
	}
	for i := range 7 {
		events = append(events, agent.InputAdded{Text: fmt.Sprint(i)})
	}
	log := logOf(append(events, agent.ConversationRewound{To: 2}))
	bounded := transcript.New()
	bounded.Keep(1)
	whole := foldLog(transcript.New(), log, 0)
	if foldLog(bounded, log, 0); !reflect.DeepEqual(bounded.Hashes, whole.Hashes) || len(whole.Hashes) != 3 {
		t.Errorf("%d messages, and %d with all at hand", len(bounded.Hashes), len(whole.Hashes))
	}
}

// What the agent has noted since is taken back with the conversation, and the
// files that it has worked with are not.
func TestRewindTakesNotesBack(t *testing.T) {
	log := logOf([]agent.Body{
		agent.InputAdded{Text: "go"},
		note(agent.TaskNote{Task: "one", Facts: map[string]string{"port": "80"}}, agent.FileState{Path: "/w/a"}),
		agent.InputAdded{Text: "on"},
		note(agent.TaskNote{Task: "two", Facts: map[string]string{"port": "81"}}, agent.FileState{Path: "/w/b"}),
		agent.ConversationRewound{To: 2},
	})
	want := agent.WorkingMemory{Task: "one", Facts: map[string]agent.TaskFact{"port": {Seq: 2, Text: "80"}}, Files: []string{"/w/a", "/w/b"}}
	if got := foldLog(transcript.New(), log, 0).Task; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// An outcome that the model has not read is told after a rewind too, unless it is
// that of a call which was taken back.
func TestRewindKeepsOutcomes(t *testing.T) {
	begins := func(id string) []agent.Body {
		call := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.CallBlock, Call: &agent.Call{ID: id, Tool: "run"}}}}
		return []agent.Body{
			agent.ModelAnswered{Answer: agent.Answer{Message: call}},
			agent.CallFinished{Tool: "run", Result: agent.Result{ID: id, Status: agent.StatusPending, Handle: "job:" + id}},
		}
	}
	log := logOf(slices.Concat(
		[]agent.Body{agent.InputAdded{Text: "go"}}, begins("a"), // 1 to 3
		[]agent.Body{agent.InputAdded{Text: "on"}}, begins("b"), // 4 to 6
		[]agent.Body{
			agent.CallSettled{Handle: "job:a", ID: "a", Notice: "a has ended"},
			agent.CallSettled{Handle: "job:b", ID: "b", Notice: "b has ended"},
			agent.FilesRewound{Files: 2},
			agent.ConversationRewound{To: 3},
			agent.InputAdded{Text: "again"},
		},
	))
	s := foldLog(transcript.New(), log, 0)
	if got, want := s.Messages[len(s.Messages)-1].Text(), "a has endedagain"; got != want {
		t.Errorf("the model reads %q", got)
	}
}
