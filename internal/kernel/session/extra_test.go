package session_test

import (
	"context"
	"fmt"
	"testing"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// What belongs before the model comes once, before the first input or behind what it
// belongs to; again when it has changed, and again when a compaction has put it away.
func TestExtras(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1s"`)), say("one"), say("two"), say("three"))
		defer r.reg.Shutdown()
		rules := "be brief"
		var had []bool
		r.extra = func(_ context.Context, at plug.Moment) []agent.ContextAdded {
			all := []agent.ContextAdded{{Source: "memory", Text: rules}, {Source: "empty"}}
			had = append(had, at.Has("memory", ""))
			for _, in := range at.Fresh {
				all = append(all, agent.ContextAdded{Source: "mention", Key: in.Input, Text: fmt.Sprintf("%q, turn %d", in.Text, at.Turns)})
			}
			return all
		}
		r.compact = func(_ context.Context, c plug.Compaction) (*agent.ContextCompacted, error) {
			return &agent.ContextCompacted{Messages: len(c.Messages), Through: c.Head, Head: []agent.Message{{Role: agent.User, Blocks: []agent.Block{{Type: agent.TextBlock, Text: "so far"}}}}}, nil
		}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		rules = "be long"
		r.send(s, agent.Prompt{Text: "on"})
		settle()
		r.send(s, agent.Compact{})
		settle()
		r.send(s, agent.Prompt{Text: "and on"})
		settle()
		want := text(`
			session.opened
			context.added memory be brief
			input.added go
			turn.started
			context.added mention "go", turn 1
			model.requested
			model.answered
			call.decided allow
			call.started
			call.finished 1
			model.requested
			model.answered
			turn.ended done
			log.sealed
			context.added memory be long
			input.added on
			turn.started
			context.added mention "on", turn 2
			model.requested
			model.answered
			turn.ended done
			log.sealed
			context.compacted
			context.added memory be long
			input.added and on
			turn.started
			context.added mention "and on", turn 3
			model.requested
			model.answered
			turn.ended done
			log.sealed`)
		if got := r.log(s.Info.ID); got != want {
			t.Errorf("log:\n%s\nwant:\n%s", got, want)
		}
		if fmt.Sprint(had) != "[false true true true true false true]" {
			t.Errorf("it was there: %v", had)
		}
	})
}
