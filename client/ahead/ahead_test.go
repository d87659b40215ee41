package ahead

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"dure/agent"
)

// An event weighs as much as its texts, wherever in it they are, and little more.
func TestWeight(t *testing.T) {
	const much = 1 << 20
	long := strings.Repeat("x", much)
	call := agent.Call{ID: "c", Tool: "t", Input: json.RawMessage(`"` + long + `"`)}
	message := func(b agent.Block) agent.Message { return agent.Message{Role: agent.User, Blocks: []agent.Block{b}} }
	for name, body := range map[string]agent.Body{
		"a prompt":        agent.InputAdded{Text: long},
		"a piece":         agent.Fragment{Text: long},
		"an answer":       agent.ModelAnswered{Answer: agent.Answer{Message: agent.UserText(long)}},
		"a call":          agent.ModelAnswered{Answer: agent.Answer{Message: message(agent.Block{Type: agent.CallBlock, Call: &call})}},
		"an image":        agent.InputAdded{Parts: []agent.Block{{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Data: []byte(long)}}}},
		"a result":        agent.CallFinished{Result: agent.Result{Text: long}},
		"what it returns": agent.CallFinished{Result: agent.Result{Output: json.RawMessage(`"` + long + `"`)}},
		"a new beginning": agent.ContextCompacted{Head: []agent.Message{agent.UserText(long)}},
		"one of others":   agent.Unknown{Raw: json.RawMessage(`"` + long + `"`)},
	} {
		if n := Weight(agent.Event{Body: body}); n < much || n > much+much/8 {
			t.Errorf("%s weighs %d", name, n)
		}
	}
	if n := Weight(agent.Event{Body: agent.TurnStarted{}}); n < ownWeight || n > 4*ownWeight {
		t.Errorf("one without texts weighs %d", n)
	}
	if n := Weight(agent.Event{}); n < 1 {
		t.Errorf("nothing weighs %d", n)
	}
}

// Whoever finds no room waits until some is given back, or nobody wants it any more; what is
// larger than all of it has it alone.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(10)
		got := make(chan string, 3)
		take := func(ctx context.Context, name string, n int64) {
			go func() {
				if !r.Take(ctx, n) {
					name = "no " + name
				}
				got <- name
			}()
			synctest.Wait()
		}
		ctx, stop := context.WithCancel(t.Context())
		take(ctx, "part", 4)
		if <-got != "part" {
			t.Fatal("there is no room")
		}
		take(t.Context(), "giant", 1000)
		take(ctx, "small", 7)
		if len(got) != 0 {
			t.Fatalf("%s has more than there is", <-got)
		}
		stop()
		if name := <-got; name != "no small" {
			t.Errorf("%s, and not who waits no longer", name)
		}
		r.Give(4)
		if name := <-got; name != "giant" {
			t.Errorf("%s, and not what is larger than all", name)
		}
		take(t.Context(), "next", 1)
		if len(got) != 0 {
			t.Error("it is not alone")
		}
		r.Give(1000)
		if name := <-got; name != "next" {
			t.Errorf("%s", name)
		}
		if !r.Take(ctx, 9) {
			t.Error("what is free is not had at the end")
		}
	})
}
