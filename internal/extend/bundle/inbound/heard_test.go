package inbound

import (
	"fmt"
	"strings"
	"testing"

	"dure/agent"
)

func says(text string) agent.Body {
	return agent.ModelAnswered{Answer: agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}}}
}

func handed(handle string) agent.Body {
	return agent.CallFinished{Result: agent.Result{Status: agent.StatusPending, Handle: handle}}
}

// An answer is there when all is back that was handed to others, whenever that comes: a
// command in the background is not waited for.
func TestAnswersWaitForOthers(t *testing.T) {
	queued := agent.InputQueued{Input: "settled:child:a", Origin: "settled"}
	for name, tt := range map[string]struct {
		bodies []agent.Body
		over   int // the event, counted from 1, that ends it
		text   string
		failed bool
	}{
		"nothing":           {[]agent.Body{agent.InputAdded{Input: "i"}, says("done"), agent.TurnEnded{Reason: agent.EndDone}}, 3, "done", false},
		"somebody else's":   {[]agent.Body{agent.InputAdded{Input: "j"}, says("not mine"), agent.TurnEnded{Reason: agent.EndDone}, agent.InputAdded{Input: "i"}, agent.TurnEnded{Reason: agent.EndDone}}, 5, "", false},
		"a command":         {[]agent.Body{agent.InputAdded{Input: "i"}, handed("job:a"), says("runs"), agent.TurnEnded{Reason: agent.EndDone}}, 4, "runs", false},
		"work":              {[]agent.Body{agent.InputAdded{Input: "i"}, handed("child:a"), says("wait"), agent.TurnEnded{Reason: agent.EndDone}, agent.CallSettled{Handle: "child:a"}, says("back"), agent.TurnEnded{Reason: agent.EndDone}}, 7, "back", false},
		"back in the turn":  {[]agent.Body{agent.InputAdded{Input: "i"}, handed("child:a"), agent.CallSettled{Handle: "child:a"}, queued, agent.InputAdded{Input: "settled:child:a"}, says("back"), agent.TurnEnded{Reason: agent.EndDone}}, 7, "back", false},
		"back at its end":   {[]agent.Body{agent.InputAdded{Input: "i"}, handed("child:a"), says("wait"), agent.CallSettled{Handle: "child:a"}, queued, agent.TurnEnded{Reason: agent.EndDone}, agent.InputAdded{Input: "settled:child:a"}, says("back"), agent.TurnEnded{Reason: agent.EndDone}}, 9, "back", false},
		"a failure":         {[]agent.Body{agent.InputAdded{Input: "i"}, handed("child:a"), says("so far"), agent.TurnEnded{Reason: agent.EndFailed, Error: "e"}}, 4, "so far", true},
		"a side question":   {[]agent.Body{agent.InputAdded{Input: "i"}, says("done"), agent.ModelAnswered{Purpose: "title", Answer: says("aside").(agent.ModelAnswered).Answer}, agent.TurnEnded{Reason: agent.EndLimit}}, 4, "done", false},
		"it goes on and on": {[]agent.Body{agent.InputAdded{Input: "i"}, handed("child:a"), handed("child:b"), agent.TurnEnded{Reason: agent.EndDone}, agent.CallSettled{Handle: "child:a"}, agent.TurnEnded{Reason: agent.EndDone}}, 0, "", false},
	} {
		var h heard
		at, meant := 0, false
		var failed error
		for i, b := range tt.bodies {
			if in, ok := b.(agent.InputAdded); ok {
				meant = meant || in.Input == "i"
			}
			if !meant {
				continue
			}
			if over, err := h.take(agent.Event{Seq: int64(i + 1), Body: b}); over && at == 0 {
				at, failed = i+1, err
			}
		}
		if at != tt.over || h.text != tt.text || (failed != nil) != tt.failed {
			t.Errorf("%s: over at %d with %q, %v", name, at, h.text, failed)
		}
	}
}

// A session that was cut short goes on, and the ends of earlier turns are none of it. It is
// none of an error that nothing is left of its turn: it waits for others.
func TestContinue(t *testing.T) {
	f := newFake()
	r := router(t, f)
	f.add("b1", agent.InputAdded{Input: "x"}, says("old"), agent.TurnEnded{Reason: agent.EndDone}, agent.InputAdded{Input: "y"}, agent.TurnStarted{})
	d, err := r.Continue(t.Context(), "b1", agent.Open{}, 5)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := d.Wait(t.Context()); err != nil || text != "heard: go on" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := r.Continue(t.Context(), "b2", agent.Open{}, 5); err == nil {
		t.Error("a session goes on that is not there")
	}
}

// How far plans are is told of what comes behind the event from which a session goes on, and
// once, however many messages of the session are waited for.
func TestProgressIsTold(t *testing.T) {
	var told []string
	r := NewRouter(Config{Progressed: func(session string, p agent.CrewProgressed) {
		told = append(told, fmt.Sprint(session, " ", p.Task, " ", p.Over, "/", p.Of))
	}})
	defer r.Close()
	var l live
	for range 2 {
		h := heard{from: 1, progressed: func(seq int64, p agent.CrewProgressed) { r.progressed("s", &l, seq, p) }}
		for i, task := range []string{"old", "walls", "roof"} {
			if ended, err := h.take(agent.Event{Seq: int64(i + 1), Body: agent.CrewProgressed{Task: task, Over: i, Of: 2}}); ended || err != nil {
				t.Fatal(ended, err)
			}
		}
	}
	if got := strings.Join(told, ", "); got != "s walls 1/2, s roof 2/2" {
		t.Errorf("told: %s", got)
	}
}
