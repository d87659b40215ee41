package session_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// An answer is asked for no longer than the window has room for beside its request.
func TestAnAnswerHasRoomBesideItsRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, used(say("one"), 10), used(say("two"), 5000), used(say("three"), 9900), say("four"))
		defer r.reg.Shutdown()
		r.others = map[string]agent.ModelInfo{"m": {ID: "m", Window: 10_000, MaxOut: 8000}}
		s := r.open(agent.Open{Model: "m"})
		for range 4 {
			r.send(s, agent.Prompt{Text: "go"})
			settle()
		}
		var got []int
		r.each(s.Info.ID, func(e agent.Event) {
			if b, ok := e.Body.(agent.ModelRequested); ok {
				got = append(got, b.Params.MaxTokens/100)
			}
		})
		if want := []int{0, 0, 48, 10}; !slices.Equal(got, want) {
			t.Errorf("asked for answers of %v hundred tokens, want %v", got, want)
		}
	})
}

// What a compaction has counted is not counted once more: no other one follows.
func TestACompactionCountsAllThereIs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, used(say("", call("1", "sleep", `"1s"`)), 100), &agent.ModelError{Class: agent.FailContext, Message: "too long"}, used(say("done"), 10))
		defer r.reg.Shutdown()
		r.model.window = 1000
		r.tools["sleep"] = tool{"sleep", agent.Read, func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error) {
			return agent.OK(strings.Repeat("x", 900)), nil
		}}
		cut := firstHalf(2)
		r.compact = func(ctx context.Context, c plug.Compaction) (*agent.ContextCompacted, error) {
			done, err := cut(ctx, c)
			if done != nil {
				done.After = 700
			}
			return done, err
		}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		if log := r.log(s.Info.ID); strings.Count(log, "context.compacted") != 1 || !strings.Contains(log, "turn.ended done") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// What could not be shortened is not tried again at each step, but when there is hardly
// any room left.
func TestNothingIsTriedInVainAtEachStep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var answers []any
		for i := range 12 {
			tokens := 8500
			if i > 8 {
				tokens = 9600
			}
			answers = append(answers, used(say("one"), tokens))
		}
		r := newRig(t, answers...)
		defer r.reg.Shutdown()
		r.model.window = 10_000
		var at []int
		r.compact = func(_ context.Context, c plug.Compaction) (*agent.ContextCompacted, error) {
			at = append(at, len(c.Messages))
			return nil, nil
		}
		s := r.open(agent.Open{})
		for range 12 {
			r.send(s, agent.Prompt{Text: "go"})
			settle()
		}
		if want := []int{3, 7, 11, 15, 19, 21, 23}; !slices.Equal(at, want) {
			t.Errorf("tried with %v messages, want %v", at, want)
		}
	})
}

// Parts of an input that nobody has said are known as that.
func TestAsides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, agent.Answer{Message: say("one").Message, Stop: agent.StopLength}, say("two"), say("three"))
		defer r.reg.Shutdown()
		var got map[int64]int
		r.compact = func(_ context.Context, c plug.Compaction) (*agent.ContextCompacted, error) {
			got = c.Asides
			return nil, nil
		}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		r.send(s, agent.Compact{})
		settle()
		var seq int64
		r.each(s.Info.ID, func(e agent.Event) {
			if b, ok := e.Body.(agent.InputAdded); ok && b.Origin != "" {
				seq = e.Seq
			}
		})
		if seq == 0 || !maps.Equal(got, map[int64]int{seq: 1}) {
			t.Errorf("asides are %v, want event %d", got, seq)
		}
	})
}

// A window that is smaller than the least there is to say is told of, once.
func TestATightWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, used(say("one"), 900), used(say("two"), 900), used(say("three"), 900))
		defer r.reg.Shutdown()
		r.model.window = 500
		s := r.open(agent.Open{})
		for range 3 {
			r.send(s, agent.Prompt{Text: "go"})
			settle()
		}
		if log := r.log(s.Info.ID); strings.Count(log, "\nnote") != 1 || strings.Count(log, "turn.ended done") != 3 {
			t.Errorf("log:\n%s", log)
		}
	})
}

// Thresholds are told of once, and anew for a model with another window.
func TestThresholdsOfAnotherModel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, used(say("one"), 85), used(say("two"), 86), used(say("three"), 170), used(say("four"), 191))
		defer r.reg.Shutdown()
		r.model.window, r.others = 100, map[string]agent.ModelInfo{"large": {ID: "large", Window: 200}}
		s := r.open(agent.Open{})
		for i := range 4 {
			if i == 2 {
				r.send(s, agent.Change{Model: "large"})
			}
			r.send(s, agent.Prompt{Text: "go"})
			settle()
		}
		var got []float64
		r.each(s.Info.ID, func(e agent.Event) {
			if b, ok := e.Body.(agent.ContextThreshold); ok {
				got = append(got, b.Ratio)
			}
		})
		if want := []float64{0.85, 0.85, 0.955}; !slices.Equal(got, want) {
			t.Errorf("told at %v, want %v", got, want)
		}
	})
}

// Instructions that came before an input that a crash has swallowed are nothing to go on
// with.
func TestNothingSaidIsNothingToGoOnWith(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("one"))
		rules := "be brief"
		r.extra = func(context.Context, plug.Moment) []agent.ContextAdded {
			return []agent.ContextAdded{{Source: "memory", Text: rules}}
		}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		id := r.crashBehind(s.Info.ID, "context.added")
		s = r.open(agent.Open{Session: id})
		defer r.reg.Shutdown()
		if err := s.Send(t.Context(), agent.Continue{}); problemOf(err) != agent.ProblemOver {
			t.Errorf("going on: %v; the log is\n%s", err, r.log(id))
		}
	})
}
