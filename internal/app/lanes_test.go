//go:build unix

package app_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// Sessions of a lane that the settings bound wait for each other, and where too many do, a
// turn fails.
func TestLanesOfTheSettings(t *testing.T) {
	t.Parallel()
	begun, hold := make(chan struct{}, 4), make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply {
		begun <- struct{}{}
		<-hold
		return script.Reply{Text: "Done.", Stop: agent.StopEnd}
	}})
	w.chooses(fields{"lanes": fields{"bulk": fields{"turns": 1, "queue": 1}}})
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	first := w.talkTo(a, agent.Open{Lane: "bulk"})
	first.send(agent.Prompt{Text: "go"})
	select {
	case <-begun:
	case <-time.After(patience):
		t.Fatal("the model is not asked")
	}
	ends := make(chan agent.TurnEnded, 2)
	for range 2 {
		k := w.talkTo(a, agent.Open{Lane: "bulk"})
		k.send(agent.Prompt{Text: "go"})
		go func() {
			for e, err := range k.Events(t.Context(), 0) {
				if b, ok := e.Body.(agent.TurnEnded); ok && err == nil {
					ends <- b
					return
				}
			}
		}()
	}
	next := func() (end agent.TurnEnded) {
		select {
		case end = <-ends:
		case <-time.After(patience):
			t.Fatal("no turn ends")
		}
		return end
	}
	if end := next(); end.Reason != agent.EndFailed || !strings.Contains(end.Error, "queue is full") {
		t.Errorf("with one that waits: %+v", end)
	}
	release()
	if end := next(); end.Reason != agent.EndDone {
		t.Errorf("of the one that waited: %+v", end)
	}
	if end := body[agent.TurnEnded](first); end.Reason != agent.EndDone {
		t.Errorf("of the first: %+v", end)
	}
}
