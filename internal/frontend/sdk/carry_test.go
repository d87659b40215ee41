package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"dure/agent"
)

// ended is a result as these tests look at it.
type ended struct {
	Subtype string
	Result  string
	Turns   int  `json:"num_turns"`
	Wrong   bool `json:"is_error"`
	Errors  []string
}

// result is the next result.
func (d *desk) result() (r ended) {
	d.t.Helper()
	data, err := json.Marshal(d.next("result"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// A message that begins with a slash is a command or the beginning of a prompt; what is neither
// for the session nor carried out is refused, and the model reads nothing of it.
func TestCommandsOfAHost(t *testing.T) {
	d := newDesk(t)
	say := func(words string) {
		d.say(`{"type":"user","message":{"role":"user","content":"` + words + `"}}`)
	}
	for _, tt := range []struct{ said, result, wrong string }{
		{"/clear", "", ""},
		{"/context", "300 of 1000 tokens (30 %)\nSystem prompt: 100\nMessages: 200\nAutocompact buffer: 100\nFree space: 600", ""},
		{"/cost", "cost: $0.0000", ""},
		{"/quit", "", "/quit is for people at a terminal. A host can send /clear, /compact, /context, /cost and the commands that the session lists."},
		{"/broken", "", "/broken cannot be used: its file is no text"},
		{"/gret you", "", "There is no command /gret. Did you mean /greet?"},
	} {
		say(tt.said)
		r := d.result()
		if r.Wrong != (tt.wrong != "") || r.Turns != 0 || r.Result != tt.result || strings.Join(r.Errors, "\n") != tt.wrong {
			t.Errorf("%s: %+v", tt.said, r)
		}
	}
	say("/greet you")
	p, ok := d.commands(1)[0].(agent.Prompt)
	if !ok || p.Text != "/greet you" {
		t.Fatalf("%+v", d.commands(1))
	}
	turn := func(id, text string) {
		d.w.emit(agent.InputAdded{Input: id, Text: text}, agent.TurnStarted{Turn: text}, agent.TurnEnded{Turn: text, Reason: agent.EndDone})
		if r := d.result(); r.Wrong {
			t.Errorf("%+v", r)
		}
	}
	turn(p.ID, "greet")

	// What was said is forgotten, and the host told of it; the next message comes behind that.
	d.say(`{"type":"user","uuid":"3f2504e0-4f89-41d3-9a0c-0305e82c3301","message":{"role":"user","content":"/clear"}}`)
	say("And now?")
	reset := d.next("conversation_reset")
	if got := fmt.Sprintf("%s %s", reset["trigger"], reset["user_message_uuid"]); got != `"clear" "3f2504e0-4f89-41d3-9a0c-0305e82c3301"` || string(reset["new_conversation_id"]) != string(reset["session_id"]) {
		t.Error(reset)
	}
	if r := d.result(); r.Wrong || r.Result != "" {
		t.Errorf("%+v", r)
	}
	sent := d.commands(3)
	if back, ok := sent[1].(agent.Rewind); !ok || back.To != 0 || !back.Conversation || back.Files {
		t.Errorf("%+v", sent[1])
	}
	if p, ok = sent[2].(agent.Prompt); !ok || p.Text != "And now?" {
		t.Errorf("%+v", sent[2])
	}
	turn(p.ID, "now")
}

// A command does not steer the turn that runs: it waits for its end.
func TestCommandWaits(t *testing.T) {
	d := newDesk(t)
	d.say(`{"type":"user","message":{"role":"user","content":"Go."}}`)
	first := d.commands(1)[0].(agent.Prompt).ID
	d.w.emit(agent.InputAdded{Input: first, Text: "Go."}, agent.TurnStarted{Turn: "t"})
	d.next("system")
	d.say(`{"type":"user","priority":"now","message":{"role":"user","content":"/cost"}}`)
	d.say(`{"type":"user","priority":"now","message":{"role":"user","content":"Faster."}}`)
	if p, ok := d.commands(2)[1].(agent.Prompt); !ok || p.Text != "Faster." {
		t.Fatalf("%+v", d.commands(2))
	}
	p := d.commands(2)[1].(agent.Prompt)
	d.w.emit(agent.InputAdded{Input: p.ID, Text: p.Text}, agent.TurnEnded{Turn: "t", Reason: agent.EndDone})
	if r := d.result(); r.Result == "cost: $0.0000" {
		t.Errorf("the command came before the end of the turn: %+v", r)
	}
	if r := d.result(); r.Result != "cost: $0.0000" {
		t.Errorf("%+v", r)
	}
}

// What its user has not typed names neither commands nor files.
func TestComposedMessage(t *testing.T) {
	d := newDesk(t)
	for i, words := range []string{"/clear @a.txt", "/compact", "/greet you", "See @a.txt"} {
		d.say(`{"type":"user","client_composed":true,"message":{"role":"user","content":"` + words + `"}}`)
		p, ok := d.commands(i + 1)[i].(agent.Prompt)
		if want := strings.Replace(words, "/", " /", 1); !ok || p.Text != want || len(p.Without) != 1 || p.Without[0] != agent.WithoutAll {
			t.Fatalf("%q: %+v", words, d.commands(i + 1)[i])
		}
		d.w.emit(agent.InputAdded{Input: p.ID, Text: p.Text}, agent.TurnStarted{Turn: words}, agent.TurnEnded{Turn: words, Reason: agent.EndDone})
		d.next("result")
	}
}

// A host that wants no turn disturbed is told so by a code while one runs.
func TestReloadRefused(t *testing.T) {
	d := newDesk(t)
	const reload = `{"subtype":"reload_plugins","refuse_if_busy":true}`
	d.say(`{"type":"user","message":{"role":"user","content":"Go."}}`)
	id := d.commands(1)[0].(agent.Prompt).ID
	if got := string(d.answer("r1", reload)); got != "error: the session is busy reload_plugins_busy" {
		t.Error(got)
	}
	d.w.emit(agent.InputAdded{Input: id, Text: "Go."}, agent.TurnStarted{Turn: "t"}, agent.TurnEnded{Turn: "t", Reason: agent.EndDone})
	d.next("result")
	if got := string(d.answer("r2", reload)); !strings.HasPrefix(got, "{") {
		t.Error(got)
	}
}
