package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/kernel/replay"
)

// A session with more conversation than is kept at hand is opened with its
// newest part, from a snapshot or without, and asks with the whole of it.
func TestLongConversationIsFilled(t *testing.T) {
	const turns, size = 6, 1 << 20
	bubble(t, func(t *testing.T) {
		var answers []any
		for i := range turns + 2 {
			answers = append(answers, say(fmt.Sprintf("answer %d", i)))
		}
		r := newRig(t, answers...)
		s := r.open(agent.Open{})
		for i := range turns {
			r.send(s, agent.Prompt{Text: fmt.Sprintf("prompt %d %s", i, strings.Repeat("x", size))})
			settle()
		}
		r.reg.Shutdown()
		for again := range 2 { // the first closing was too early for a snapshot
			r.start()
			s = r.open(agent.Open{Session: s.Info.ID})
			if n := len(r.past); n == 0 || n > 10 {
				t.Errorf("opened with %d messages at hand", n)
			}
			r.send(s, agent.Prompt{Text: "and now?"})
			settle()
			asked := r.model.asked[len(r.model.asked)-1].Messages
			if got, want := len(asked), 2*(turns+again)+1; got != want {
				t.Fatalf("the request has %d messages, want %d", got, want)
			}
			if first := asked[0].Text(); !strings.HasPrefix(first, "prompt 0 ") || len(first) < size {
				t.Errorf("the first message is %.20q", first)
			}
			for range 250 { // enough for a snapshot
				if err := s.Send(t.Context(), agent.Change{Title: "long"}); err != nil {
					t.Fatal(err)
				}
			}
			r.reg.Shutdown()
		}
		report, err := replay.Verify(t.Context(), replay.Config{
			Session: s.Info.ID, Events: r.store.Read(t.Context(), s.Info.ID, 0), Blob: r.blob(s.Info.ID),
		})
		if err != nil || !report.OK || report.Requests != turns+2 {
			t.Errorf("replayed as %+v, %v", report, err)
		}
	})
}

// A long session whose conversation is full is shortened without being read whole: the
// compaction gets all of what is at hand, and of the rest as much as a summary shows.
func TestLongConversationIsShortened(t *testing.T) {
	const turns, size = 8, 1 << 20
	bubble(t, func(t *testing.T) {
		var answers []any
		for i := range turns + 1 {
			answers = append(answers, say(fmt.Sprintf("answer %d", i)))
		}
		r := newRig(t, answers...)
		s := r.open(agent.Open{})
		for i := range turns {
			r.send(s, agent.Prompt{Text: fmt.Sprintf("prompt %d %s", i, strings.Repeat("x", size))})
			settle()
		}
		r.reg.Shutdown()
		r.model.window = 10 // tokens: anything is too much
		var seen []int
		cut := firstHalf(3)
		r.compact = func(ctx context.Context, c plug.Compaction) (*agent.ContextCompacted, error) {
			for _, m := range c.Messages {
				seen = append(seen, len(m.Text()))
			}
			return cut(ctx, c)
		}
		r.start()
		s = r.open(agent.Open{Session: s.Info.ID})
		r.send(s, agent.Prompt{Text: "and now?"})
		settle()
		if len(seen) != 2*turns+1 || seen[0] > 10_000 || seen[2*turns-2] < size {
			t.Errorf("the compaction was shown messages of %v bytes", seen)
		}
		if got := asked(r.model); !strings.HasPrefix(got, "user [14 messages, auto]\nuser prompt 7") {
			t.Errorf("the model was asked\n%.100s", got)
		}
		r.reg.Shutdown()
		report, err := replay.Verify(t.Context(), replay.Config{
			Session: s.Info.ID, Events: r.store.Read(t.Context(), s.Info.ID, 0), Blob: r.blob(s.Info.ID),
		})
		if err != nil || !report.OK || report.Requests != turns+1 {
			t.Errorf("replayed as %+v, %v", report, err)
		}
	})
}
