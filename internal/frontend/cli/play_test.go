package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
)

// recorded is a session of two turns, each of whose events comes a second after the one
// before, but for the answer to a question, which comes after a minute.
func recorded() *fake {
	f := newFake()
	f.emit(agent.InputAdded{Input: "i", Text: "fix it"}, agent.TurnStarted{Turn: "t1"}, requested(1), said("I'll look.", readCall),
		agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{Call: readCall}, Reason: "it is outside"},
		agent.ApprovalResolved{ID: "a1", Decision: agent.Decision{Verdict: agent.Allow, By: "user"}},
		decided(readCall, agent.Allow), agent.CallStarted{ID: "c1", Tool: "file-system__read", Class: agent.Read},
		agent.CallFinished{Tool: "file-system__read", Millis: 12, Result: agent.Result{ID: "c1", Status: agent.StatusOK, Text: "a\nb"}},
		ended(agent.EndDone), agent.InputAdded{Input: "j", Text: "and now?"}, agent.TurnStarted{Turn: "t2"}, requested(1), said("Nothing more."), ended(agent.EndDone))
	at := noon
	for i := range f.all {
		at = at.Add(time.Second)
		if f.all[i].Kind() == "approval.resolved" {
			at = at.Add(time.Minute)
		}
		f.all[i].Time = at
	}
	f.closed = true
	f.info.Head, f.info.Workdir = f.seq, "/repo"
	f.answers = map[string]any{"session": f.info}
	return f
}

// playing returns a player on a session, and the terminal that it draws on.
func playing(t *testing.T, f *fake, o PlayOptions) (*player, *bytes.Buffer) {
	out := &bytes.Buffer{}
	o.Terminal = Terminal{Out: out, Escapes: true, Size: func() (int, int) { return 60, 30 }}
	if o.From == 0 {
		o.From = 1
	}
	c := New(Config{Client: client.New(f), Text: text.For("en"), Out: out, Err: out, Now: time.Now})
	p := &player{CLI: c, info: f.info, o: o, s: newScreen(o.Terminal)}
	for e, err := range c.stored(t.Context(), f.info.ID, f.info.Head) {
		if err != nil {
			t.Fatal(err)
		}
		p.events = append(p.events, e)
	}
	p.start()
	return p, out
}

// The time between events is that of the log, divided by the speed and cut at the
// longest pause.
func TestPlayTakesItsTime(t *testing.T) {
	for _, tt := range []struct {
		o    PlayOptions
		want time.Duration
	}{
		{PlayOptions{}, 15*time.Second + time.Minute},
		{PlayOptions{Speed: 4}, (15*time.Second + time.Minute) / 4},
		{PlayOptions{MaxPause: 2 * time.Second}, 14*time.Second + 2*time.Second},
		{PlayOptions{NoWait: true}, 0},
		{PlayOptions{From: 15}, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, _ := playing(t, recorded(), tt.o)
			input := make(chan typed)
			began, done := time.Now(), make(chan struct{})
			go func() { // ends with the player
				defer close(done)
				p.loop(t.Context(), input)
			}()
			<-time.After(tt.want)
			synctest.Wait()
			if p.at != len(p.events) {
				t.Errorf("%+v: %d of %d events after %s", tt.o, p.at, len(p.events), time.Since(began))
			}
			input <- typed{keys: []key{{code: keyText, text: "q"}}}
			<-done
		})
	}
}

func TestPlayKeys(t *testing.T) {
	k := func(code keyCode) key { return key{code: code} }
	say := func(s string) key { return key{keyText, s} }
	for _, tt := range []struct {
		name string
		keys []key
		want string // what is played, and what stands below it
	}{
		{"a pause", []key{say(" ")}, "0 paused"},
		{"a step", []key{k(keyRight), k(keyRight)}, "2 paused"},
		{"back", []key{k(keyRight), k(keyRight), k(keyLeft)}, "1 paused"},
		{"back at the beginning", []key{k(keyLeft)}, "0 paused"},
		{"a turn", []key{say("]")}, "11 paused"},
		{"two turns", []key{say("]]")}, "16 end"},
		{"a turn too many", []key{say("]]]")}, "16 end"},
		{"a turn back", []key{say("]]"), k(keyTurnBack)}, "11 paused"},
		{"two turns back", []key{k(keyTurnOn), k(keyTurnOn), say("[[")}, "0 paused"},
		{"to an event", []key{say("g"), say("12"), k(keyEnter)}, "12 paused"},
		{"to an event that is typed wrong", []key{say("g19"), k(keyBackspace), say("2"), k(keyEnter)}, "12 paused"},
		{"to no event", []key{say(" "), say("g99"), k(keyEnter)}, "0 there is no event 99; the last one is 16"},
		{"nowhere", []key{say(" "), say("g1x")}, "0 paused"},
	} {
		p, _ := playing(t, recorded(), PlayOptions{})
		for _, key := range tt.keys {
			p.key(t.Context(), key)
		}
		below := p.said
		if below == "" {
			below, _, _ = strings.Cut(p.status(), " · ")
		}
		if got := fmt.Sprint(p.at, " ", below); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestPlayForksAndLeaves(t *testing.T) {
	f := recorded()
	p, out := playing(t, f, PlayOptions{})
	p.key(t.Context(), key{keyText, "]f"})
	p.s.w.Flush()
	if f.opened.Fork != "s1" || f.opened.At != 11 || !f.opened.Edit || !strings.Contains(out.String(), "s1") {
		t.Errorf("%+v\n%s", f.opened, out)
	}
	p.key(t.Context(), key{code: keyInterrupt})
	if p.left == nil || p.left.Code != ExitInterrupted {
		t.Errorf("left: %+v", p.left)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&Exited{Code: ExitTerminated})
	p, _ = playing(t, f, PlayOptions{})
	p.loop(ctx, nil)
	if p.left.Code != ExitTerminated {
		t.Errorf("terminated: %+v", p.left)
	}
}

func TestPlayWithoutTerminal(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    PlayOptions
		want string
	}{
		{"all", PlayOptions{}, "you: fix it\ndure: I'll look.\nnote: Read src/한글.go · it is outside\nnote: allow\ntool: Read src/한글.go · 2 lines · 12 ms\n" +
			"note: 2 steps · 4.2 s · 4.2k in / 80 out · $0.0123\n\nyou: and now?\ndure: Nothing more.\nnote: 2 steps · 4.2 s · 4.2k in / 80 out · $0.0123\n\n"},
		{"a part", PlayOptions{From: 10, To: 12}, "tool: Read src/한글.go · 2 lines · 12 ms\nnote: 2 steps · 4.2 s · 4.2k in / 80 out · $0.0123\n\nyou: and now?\n"},
		{"as JSON", PlayOptions{From: 11, To: 12, JSON: true}, `{"seq":11,"time":"2026-01-02T12:01:11Z","kind":"turn.ended","summary":"done · 2 steps · 4.2 s · 4.2k in / 80 out · $0.0123","turn":1,"cost":null}` + "\n" +
			`{"seq":12,"time":"2026-01-02T12:01:12Z","kind":"input.added","summary":"and now?","turn":1,"cost":null}` + "\n"},
	} {
		var out bytes.Buffer
		c := New(Config{Client: client.New(recorded()), Text: text.For("en"), Out: &out, Err: &out, Now: time.Now})
		tt.o.Terminal = Terminal{Out: &out, Size: func() (int, int) { return 0, 0 }}
		if err := c.Play(t.Context(), "s1", "", tt.o); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, out.String()); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}
