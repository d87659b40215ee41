package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
)

// What the agent has noted since an event is gone once the conversation goes back there.
func TestTaskOfASessionThatWentBack(t *testing.T) {
	f := newFake()
	note := func(id, task string) {
		calls := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.CallBlock, Call: &agent.Call{ID: id, Tool: "task__note"}}}}
		r := agent.OK("noted")
		r.ID, r.Meta = id, map[string]json.RawMessage{agent.MetaTask: json.RawMessage(fmt.Sprintf(`{"task":%q}`, task))}
		f.past(agent.InputAdded{Input: id, Text: task}, agent.ModelAnswered{Answer: agent.Answer{Message: calls}}, agent.CallFinished{Tool: "task__note", Result: r})
	}
	note("1", "first")
	back := f.seq
	note("2", "second")
	f.past(agent.ConversationRewound{To: back})
	f.answers = map[string]any{agent.FindSession{}.Query(): f.info}
	var out bytes.Buffer
	c := New(Config{Client: f.client(), Text: text.For("en"), Out: &out, Err: &out, Now: time.Now})
	s, err := c.taskOf(t.Context(), "s1", "")
	if err != nil || s.Task != "first" {
		t.Errorf("the task is %q, %v", s.Task, err)
	}
}
