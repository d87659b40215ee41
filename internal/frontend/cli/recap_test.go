package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
)

// longPast is a session whose beginning costs nothing to know: its row says what it has
// come to.
func longPast() *fake {
	f := newFake()
	f.past(agent.InputAdded{Input: "old", Text: "long ago"}, ended(agent.EndDone))
	for range 2 * recapEvents {
		f.past(agent.Note{Text: "x"})
	}
	f.past(agent.InputAdded{Input: "i", Text: "the last thing"}, agent.TurnStarted{}, ended(agent.EndDone))
	cost := agent.Money(5e9)
	f.info.Status, f.info.Turns, f.info.Cost = "idle", 41, &cost
	return f
}

func TestLongSessionIsShownByItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := rigOptions{resume: true}
		g := startRig(t, longPast(), o)
		screen := g.vt.String()
		g.f.Close(t.Context(), "s1")
		if err := g.end(); ExitCode(err) != ExitOK {
			t.Error(err)
		}
		check(t, screen, []string{"41", "the last thing"}, []string{"long ago"})
	})
}

// The object tells what the session has cost from its first event on, however long it is; a
// text is printed without reading what came before.
func TestLongSessionIsCountedWhole(t *testing.T) {
	for format, want := range map[Format]string{FormatJSON: `"total_cost_usd":5.03`, FormatText: "All is well."} {
		synctest.Test(t, func(t *testing.T) {
			f := longPast()
			five := agent.Money(5e9)
			f.past(agent.ChildEnded{Child: "c", Outcome: agent.Outcome{Cost: &five}})
			f.on = aTurn
			var out bytes.Buffer
			c := New(Config{Client: f.client(), Text: text.For("en"), Out: &out, Err: &out, Now: time.Now})
			o := PrintOptions{Prompt: "go", Format: format}
			o.Open.Session = "s1"
			_ = c.Print(t.Context(), o) // what is printed is looked at
			if !strings.Contains(out.String(), want) {
				t.Errorf("printed %s, want %s", out.String(), want)
			}
			if whole := f.read == 0; whole != (format == FormatJSON) {
				t.Errorf("%s: read from %d on", format, f.read)
			}
		})
	}
}
