package session_test

import (
	"context"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// Calls that a crash left without results get them before anything comes into the
// conversation, or goes out of it: what is put between a call and its result would
// stand for that.
func TestNothingComesBetweenACallAndItsResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, used(say("", call("1", "sleep", `"1m"`)), 900), say("done"))
		r.model.window = 1000
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		id := r.crashBehind(s.Info.ID, "call.started")
		r.model.answers = []any{nil, say("done")}
		r.model.asked = r.model.asked[:1]
		r.extra = func(context.Context, plug.Moment) []agent.ContextAdded {
			return []agent.ContextAdded{{Source: "memory", Text: "be brief"}}
		}
		r.compact = firstHalf(1)
		s = r.open(agent.Open{Session: id})
		defer r.reg.Shutdown()
		r.send(s, agent.Continue{})
		settle()
		log := r.log(id)
		want := text(`
			call.started
			call.finished 1
			context.compacted
			context.added memory be brief
			model.requested`)
		if !strings.Contains(log, want) {
			t.Errorf("log:\n%s\nwant in it:\n%s", log, want)
		}
		if got := asked(r.model); !strings.Contains(got, "slept 1m") {
			t.Errorf("the model was asked\n%s", got)
		}
	})
}
