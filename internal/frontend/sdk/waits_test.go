package sdk

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
)

// turns has a message have a turn.
func (d *desk) turns(p agent.Prompt) {
	d.t.Helper()
	d.w.emit(agent.InputAdded{Input: p.ID, Text: p.Text}, agent.TurnStarted{Turn: p.ID}, agent.TurnEnded{Turn: p.ID, Reason: agent.EndDone})
	d.next("result")
}

// What asks for no answer goes in front of the next message that is no command, in the order
// in which it came, and is none itself.
func TestKeptMessages(t *testing.T) {
	d := newDesk(t)
	quiet := func(content string) {
		d.say(`{"type":"user","shouldQuery":false,"message":{"role":"user","content":` + content + `}}`)
	}
	quiet(`"/clear one"`)
	quiet(`[{"type":"image","source":{"type":"url","url":"https://a/1"}}]`)
	quiet(`"two"`)
	d.say(`{"type":"user","message":{"role":"user","content":"/greet you"}}`)
	d.say(`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"three"},{"type":"image","source":{"type":"url","url":"https://a/2"}}]}}`)
	p, _ := d.commands(1)[0].(agent.Prompt)
	if p.Text != "/greet you" || len(p.Blocks) != 0 {
		t.Errorf("%+v", p)
	}
	d.turns(p)
	p, _ = d.commands(2)[1].(agent.Prompt)
	if p.Text != " /clear one\n\ntwo\n\nthree" || len(p.Blocks) != 2 || p.Blocks[0].Media.URL != "https://a/1" || p.Blocks[1].Media.URL != "https://a/2" {
		t.Errorf("%+v", p)
	}
	d.turns(p)
	for range maxKept {
		quiet(`"x"`)
	}
	quiet(`"one more"`)
	if r := d.next("result"); !strings.Contains(string(r["errors"]), errKept.Error()) {
		t.Errorf("%s", r["errors"])
	}
}

// A message that was taken back may come again, as it is then.
func TestMessageComesAgain(t *testing.T) {
	d := newDesk(t)
	say := func(id, words string) {
		d.say(`{"type":"user","uuid":"` + id + `","message":{"role":"user","content":"` + words + `"}}`)
	}
	say("a", "one")
	first, _ := d.commands(1)[0].(agent.Prompt)
	for _, c := range [][2]string{{"c", `{"subtype":"interrupt","cancel_queued":true}`}, {"b", `{"subtype":"cancel_async_message","message_uuid":"b"}`}} {
		id, back := c[0], c[1]
		say(id, "wrong")
		d.request("r", back)
		d.next("control_response")
		say(id, "right")
	}
	d.turns(first)
	for i, id := range []string{"c", "b"} {
		p, _ := d.commands(3 + i)[2+i].(agent.Prompt) // behind the interrupt
		if p.ID != id || p.Text != "right" {
			t.Fatalf("%+v", p)
		}
		d.turns(p)
	}
}

// A request that came before the end of the input is answered, although it takes long.
func TestAnswerBehindTheEnd(t *testing.T) {
	w := newWorld()
	w.hold = make(chan struct{})
	d := newDeskOn(t, w, agent.Open{})
	d.request("i", `{"subtype":"initialize"}`)
	d.next("control_response")
	d.request("n", `{"subtype":"rename_session","title":"T"}`)
	_ = d.in.Close() // it is a pipe
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ended := false; !ended; {
		d.h.calls.mu.Lock()
		ended = errors.Is(d.h.calls.err, errGone)
		d.h.calls.mu.Unlock()
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the end of the input is not noticed")
		}
	}
	close(w.hold)
	if r := d.next("control_response"); !strings.Contains(string(r["response"]), `"subtype":"success"`) || !strings.Contains(string(r["response"]), `"request_id":"n"`) {
		t.Errorf("%s", r["response"])
	}
}

// One that never comes is cut short, and the host still says that it was.
func TestAnswerThatNeverComes(t *testing.T) {
	h := New(Config{Text: text.For("en")})
	h.answers, h.cut = context.WithCancelCause(t.Context())
	for range maxSlow {
		h.slots <- struct{}{} // all others run
	}
	h.begun, h.eof, h.slow = true, true, 1
	if h.done() || h.patience == nil {
		t.Error("it is not waited for")
	}
	h.hurry()
	if _, err := h.slowly(func(context.Context) (any, error) { return empty{}, nil }); !errors.Is(err, errGone) {
		t.Errorf("it says %v", err)
	}
	if h.done() {
		t.Error("what it says is not waited for")
	}
	if h.hurry(); !h.done() {
		t.Error("it is waited for without end")
	}
}

// That something in the background took too long says nothing about what comes behind it.
func TestWaitBeginsAnew(t *testing.T) {
	w := newWorld()
	h := New(Config{Text: text.For("en"), Now: time.Now})
	h.ctx = t.Context()
	h.out = newOutbox(h.ctx, io.Discard)
	var err error
	if h.sess, err = client.New(w).Open(h.ctx, agent.Open{New: "s"}); err != nil {
		t.Fatal(err)
	}
	h.prog.Client = client.New(w)
	h.show.reset(h)
	h.begins(task{ID: "1", background: true}, "")
	if h.expire(); !h.expired {
		t.Fatal("it has not expired")
	}
	h.send(message{ID: "m", Text: "x"})
	if h.expired {
		t.Error("a message is not waited for")
	}
	h.taken("m")
	h.expire()
	if h.begins(task{ID: "2", background: true, job: true}, ""); h.expired {
		t.Error("a command is not waited for")
	}
	h.begins(task{ID: "3"}, "")
	h.expire()
	if h.goesOn(agent.CallFinished{Result: agent.Result{Handle: agent.ChildHandle + "3"}}); h.expired {
		t.Error("an agent is not waited for")
	}
}
