package sdk

import (
	"encoding/json"
	"strings"
	"testing"

	"dure/agent"
)

// nextState waits until the host is told of a state of the session.
func (d *desk) nextState(want string) {
	d.t.Helper()
	for {
		m := d.next("system")
		if string(m["subtype"]) == `"session_state_changed"` && string(m["state"]) == `"`+want+`"` {
			return
		}
	}
}

// asksFor is a question of an agent's.
func asksFor(child, id string) agent.ApprovalAsked {
	a := asks(id, "Bash", `{}`)
	a.Child = child
	return a
}

// An agent in the background asks on behind the end of the turn. Its question is taken back
// when it has ended itself, and an answer has the session go on without a turn.
func TestQuestionOfAnAgentBehindTheTurn(t *testing.T) {
	d := newDesk(t)
	d.h.c.States = true
	d.request("i", `{"subtype":"initialize"}`)
	d.next("control_response")
	ids := map[string]string{}
	d.w.emit(agent.TurnStarted{Turn: "t"})
	for _, kid := range []string{"one", "two"} {
		d.w.emit(agent.ChildOpened{Child: kid, Agent: "a", Key: kid}, agent.CallFinished{Result: agent.Result{ID: kid, Status: agent.StatusPending, Handle: agent.ChildHandle + kid}}, asksFor(kid, kid))
		ids[kid] = string(d.next("control_request")["request_id"])
	}
	d.w.emit(asks("main", "Bash", `{}`))
	ids["main"] = string(d.next("control_request")["request_id"])
	d.w.emit(agent.TurnEnded{Turn: "t", Reason: agent.EndInterrupted})
	if c := d.next("control_cancel_request"); string(c["request_id"]) != ids["main"] {
		t.Errorf("%s was taken back", c["request_id"])
	}
	d.w.emit(agent.ChildEnded{Child: "one"})
	if c := d.next("control_cancel_request"); string(c["request_id"]) != ids["one"] {
		t.Errorf("%s was taken back", c["request_id"])
	}
	d.say(`{"type":"control_response","response":{"subtype":"success","request_id":` + ids["two"] + `,"response":{"behavior":"allow"}}}`)
	if r, ok := d.commands(1)[0].(agent.Resolve); !ok || r.ID != "two" || r.Decision.Verdict != agent.Allow {
		t.Errorf("%+v", r)
	}
	d.nextState("running")
	for _, kid := range []string{"one", "two"} {
		d.w.emit(agent.ChildEnded{Child: kid}, agent.CallSettled{Handle: agent.ChildHandle + kid, ID: kid}, agent.InputQueued{Input: "settled:" + agent.ChildHandle + kid, Origin: "settled"})
	}
	for _, kid := range []string{"one", "two"} {
		d.w.emit(agent.InputAdded{Input: "settled:" + agent.ChildHandle + kid, Origin: "settled"})
	}
	d.w.emit(agent.TurnStarted{Turn: "u"}, agent.TurnEnded{Turn: "u", Reason: agent.EndDone})
	d.nextState("idle")
}

// Of the questions of before the host's time those are put to it that somebody still waits for.
func TestQuestionsOfBeforeThatWait(t *testing.T) {
	w := newWorld()
	w.past = []agent.Body{
		agent.TurnStarted{Turn: "t"},
		asks("1", "Bash", `{}`), asksFor("one", "2"), asksFor("two", "3"),
		agent.TurnEnded{Turn: "t", Reason: agent.EndDone},
		agent.ChildEnded{Child: "one"},
		agent.SettingsChanged{Title: "T"},
	}
	d := newDeskOn(t, w, agent.Open{Session: "s1"})
	d.request("i", `{"subtype":"initialize"}`)
	var asked []string
	for len(asked) == 0 {
		asked = append(asked, string(d.next("control_request")["request"]))
	}
	d.request("m", `{"subtype":"rename_session","title":"T"}`) // behind it
	d.next("control_response")
	if !strings.Contains(asked[0], `"tool_use_id":"c3"`) {
		t.Errorf("%s", asked)
	}
}

// A message with an ID that the session has taken before the host's time does not count,
// however early it comes, and holds up neither those behind it nor the end.
func TestMessageOfBefore(t *testing.T) {
	w := newWorld()
	w.past = []agent.Body{
		agent.InputAdded{Input: "old", Text: "x"},
		agent.TurnStarted{Turn: "t"},
		agent.InputQueued{Input: "dropped", Text: "y"},
		agent.InputDropped{Input: "dropped"},
		agent.TurnEnded{Turn: "t", Reason: agent.EndDone},
	}
	d := newDeskOn(t, w, agent.Open{Session: "s1"})
	for _, id := range []string{"old", "dropped", "new", "old"} {
		data, _ := json.Marshal(id) // it is a string
		d.say(`{"type":"user","uuid":` + string(data) + `,"message":{"role":"user","content":"` + id + `"}}`)
	}
	p, ok := d.commands(1)[0].(agent.Prompt)
	if !ok || p.ID != "new" {
		t.Fatalf("%+v", p)
	}
	d.w.emit(agent.InputAdded{Input: p.ID, Text: "x"}, agent.TurnStarted{Turn: "u"}, agent.TurnEnded{Turn: "u", Reason: agent.EndDone})
	d.next("result")
	_ = d.in.Close() // it is a pipe
	if code := <-d.code; code != 0 {
		t.Errorf("it ends with %d", code)
	}
	d.code <- 0 // for the end of the test
	if all := d.commands(1); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}
