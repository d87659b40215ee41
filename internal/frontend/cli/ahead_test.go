package cli

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"dure/agent"
	"dure/client"
	"dure/client/ahead"
)

// prompts is a session with so many prompts of a text. It counts those that are read.
type prompts struct {
	client.Transport
	text string
	n    int64
	read int64
}

func (p *prompts) Events(_ context.Context, _ string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for seq := after + 1; seq <= p.n; seq++ {
			p.read = seq
			if !yield(agent.Event{Seq: seq, Body: agent.InputAdded{Text: p.text}}, nil) {
				return
			}
		}
	}
}

// A terminal that takes nothing has a bounded number of events ahead of it, and of bytes of
// them; all others are read once it goes on.
func TestAheadIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		most int64
	}{
		"many":   {"x", 256 + 1},
		"long":   {strings.Repeat("x", 1<<20), ahead.Most>>20 + 1},
		"longer": {strings.Repeat("x", ahead.Most+1), 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &prompts{text: tt.text, n: 600}
				events, stop := follow(t.Context(), client.New(p).Attach("s"), 0)
				synctest.Wait()
				if p.read > tt.most || p.read < tt.most-1 {
					t.Errorf("%d events are read ahead, and not %d", p.read, tt.most)
				}
				last := int64(0)
				for f := range events {
					f.taken()
					if last++; f.err != nil || f.event.Seq != last {
						t.Fatalf("event %d is %d: %v", last, f.event.Seq, f.err)
					}
				}
				if last != p.n {
					t.Errorf("%d of %d events have come", last, p.n)
				}
				stop()
				_, stop = follow(t.Context(), client.New(p).Attach("s"), 0) // and one that is never taken
				synctest.Wait()
				stop()
			})
		})
	}
}
