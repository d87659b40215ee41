package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/state/transcript"
)

// A message is called by the place of its block in the answer, whatever else of that is not
// shown: that is what the transcript has it under, and where a host goes back to. Those of an
// answer are named by its request.
func TestMessagesAreCalledByTheirBlocks(t *testing.T) {
	call := &agent.Call{ID: "c1", Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}
	answer := agent.ModelAnswered{Answer: agent.Answer{ID: "resp_1", Stop: agent.StopCalls, Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{
		{Type: agent.ThinkingBlock, Provider: "responses", Raw: json.RawMessage(`{"type":"reasoning"}`)}, // only its provider reads it
		{Type: agent.TextBlock, Text: "Hello."},
		{Type: agent.CallBlock, Call: call},
		{Type: agent.RawBlock, Provider: "responses", Raw: json.RawMessage(`{"type":"other"}`)},
	}}}}
	names := map[string]int{}
	for i := range answer.Message.Blocks {
		names[transcript.MessageID("ev_3", i)] = i
	}
	for _, c := range []struct {
		name    string
		forward bool
		kid     *child
		want    string // the numbers of the blocks, and why the answer ended
	}{
		{"of the session", false, nil, "1 null, 2 \"tool_use\""},
		{"of an agent", false, &child{id: "kid", request: "ev_2"}, "2 \"tool_use\""},
		{"of an agent whose words are forwarded", true, &child{id: "kid", request: "ev_2"}, "1 null, 2 \"tool_use\""},
	} {
		d := newDesk(t)
		d.request("i", fmt.Sprintf(`{"subtype":"initialize","forwardSubagentText":%t}`, c.forward))
		d.next("control_response")
		d.w.emit(agent.TurnStarted{Turn: "t"}, agent.ModelRequested{})
		if c.kid == nil {
			d.w.emit(answer)
		} else {
			d.h.events <- found{then: func() { d.h.answeredBy(agent.Event{ID: "ev_3", Body: answer}, answer, c.kid) }}
		}
		var got []string
		for range strings.Split(c.want, ", ") {
			m := d.next("assistant")
			var uuid string
			var in struct {
				ID   string
				Stop json.RawMessage `json:"stop_reason"`
			}
			if err := json.Unmarshal(m["uuid"], &uuid); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(m["message"], &in); err != nil {
				t.Fatal(err)
			}
			n, ok := names[uuid]
			if !ok || in.ID != transcript.AnswerID("ev_2") {
				t.Errorf("%s: %s of %s is of no block", c.name, uuid, in.ID)
			}
			got = append(got, fmt.Sprint(n, " ", string(in.Stop)))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}
