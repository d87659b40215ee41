package transcript_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/state/transcript"
)

// wideTalk is n turns with a long prompt, a call with a long input, a picture, and
// results that are long, short, or of a call that runs on.
func wideTalk(n int) (all []agent.Body) {
	long := func(what string, i int) string { return fmt.Sprint(what, i, " ", strings.Repeat("가x", 5000)) }
	for i := range n {
		id := fmt.Sprint(i)
		a := answer(i, "looking", id, id+"s", id+"p")
		a.Message.Blocks[1].Call.Input = []byte(`"` + strings.Repeat("y", 5000) + `"`)
		a.Message.Blocks = append([]agent.Block{{Type: agent.ThinkingBlock, Text: "hm", Signature: "s"}}, a.Message.Blocks...)
		all = append(all, agent.InputAdded{Input: "in" + id, Text: long("prompt", i)}, agent.TurnStarted{Turn: id}, a,
			agent.CallFinished{Result: agent.Result{ID: id, Status: agent.StatusOK, Text: long("result", i)}},
			agent.CallFinished{Result: agent.Result{ID: id + "s", Status: agent.StatusOK, Text: "short"}},
			agent.CallFinished{Result: agent.Result{ID: id + "p", Status: agent.StatusOK, Text: "picture", Blocks: []agent.Block{{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Data: make([]byte, 9000)}}}}},
			answer(i, "done "+id), agent.TurnEnded{Turn: id, Reason: agent.EndDone})
	}
	return all
}

// A slim state knows the hashes of all messages, holds little of most of them, and
// all of those that are wanted. A compaction makes the same of it as of a whole one.
func TestSlim(t *testing.T) {
	log := logOf(wideTalk(6))
	whole := foldLog(transcript.New(), log, 0)
	c := agent.ContextCompacted{Strategy: "truncate-tools", Messages: 0, After: 7}
	for i, m := range whole.Messages {
		if m.Blocks[0].Result == nil || i > 12 {
			continue
		}
		texts := map[string]string{m.Blocks[0].Result.ID: "[short]", m.Blocks[2].Result.ID: "[picture]"}
		c.Trimmed = append(c.Trimmed, agent.Trimmed{Message: i, Texts: texts, Hash: transcript.HashOf(transcript.Trim(m, texts))})
	}
	log = append(log, agent.Event{Seq: int64(len(log)) + 1, Body: c}, agent.Event{Seq: int64(len(log)) + 2, Body: agent.InputAdded{Input: "x", Text: "more"}})
	whole = foldLog(transcript.New(), log, 0)
	wanted := whole.Seqs[len(whole.Seqs)-5:]
	slim := transcript.New()
	slim.Slim(func(seq int64) bool { return slices.Contains(wanted, seq) })
	foldLog(slim, log, 0)
	if slim.Err() != nil || !slim.Whole() || !reflect.DeepEqual(slim.Hashes, whole.Hashes) || !reflect.DeepEqual(slim.Seqs, whole.Seqs) {
		t.Fatalf("it is not the same conversation: %v, %d of %d messages", slim.Err(), len(slim.Messages), len(whole.Messages))
	}
	n := len(whole.Messages) - 5
	if !reflect.DeepEqual(slim.Messages[n:], whole.Messages[n:]) {
		t.Error("what is wanted is not as it was")
	}
	if got := transcript.Size(slim.Messages[:n], 1); got > n*8000 {
		t.Errorf("%d messages have %d bytes", n, got)
	}
	for i, m := range slim.Messages[:n] {
		if r := m.Blocks[0].Result; r != nil && transcript.Size([]agent.Message{whole.Messages[i]}, 1) > 10_000 {
			texts := map[string]string{r.ID: "a", m.Blocks[2].Result.ID: "b"}
			if string(transcript.HashOf(transcript.Trim(m, texts))) != string(transcript.HashOf(transcript.Trim(whole.Messages[i], texts))) {
				t.Errorf("message %d is not shortened to the same", i)
			}
		}
		if m.Role == agent.User && m.Blocks[0].Type == agent.TextBlock && !strings.HasPrefix(m.Blocks[0].Text, fmt.Sprint("prompt", i/4)) {
			t.Errorf("message %d is %.20q", i, m.Blocks[0].Text)
		}
	}
}

// What nobody has said is known as that, however little of it is left.
func TestSlimOrigin(t *testing.T) {
	slim := transcript.New()
	slim.Slim(func(int64) bool { return false })
	foldLog(slim, logOf([]agent.Body{agent.ContextAdded{Source: "memory", Text: strings.Repeat("rule ", 2000)}}), 0)
	if m := slim.Messages[0]; m.Origin != "memory" || len(m.Text()) > 7000 {
		t.Errorf("the message comes from %q and has %d bytes", m.Origin, len(m.Text()))
	}
}
