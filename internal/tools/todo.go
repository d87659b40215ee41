package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"dure/agent"
)

//go:embed todo.md
var todoText string

const todoSchema = `{"type":"object","properties":{"todos":{"type":"array","maxItems":200,"items":{"type":"object","properties":{` +
	`"content":{"type":"string","minLength":1,"description":"what to do"},` +
	`"status":{"type":"string","enum":["pending","in_progress","completed"]},` +
	`"activeForm":{"type":"string","description":"the same while it is being done: Running the tests"}},` +
	`"required":["content","status"],"additionalProperties":false}}},"required":["todos"],"additionalProperties":false}`

// Todo is one task of a task list.
type Todo struct {
	Content    string `json:"content"`
	Status     string `json:"status"` // pending, in_progress, completed
	ActiveForm string `json:"activeForm,omitempty"`
}

type todoInput struct {
	Todos []Todo `json:"todos"`
}

type todoAnswer struct {
	Old []Todo `json:"oldTodos"`
	New []Todo `json:"newTodos"`
}

// Todos is the tool that keeps task lists, one for each session. The input of a
// session's last todo__write is its list; what is kept here only tells the old
// list from the new one. The zero value has no lists.
type Todos struct {
	mu    sync.Mutex
	lists map[string][]Todo // by session
}

// Tool returns todo__write.
func (t *Todos) Tool() agent.Tool {
	return tool{
		spec: agent.Spec{
			Name: "todo__write", Description: describe(todoText), Input: json.RawMessage(todoSchema),
			Class: agent.Idempotent, Group: "planning", Risk: agent.RiskLow,
		},
		plan: func(agent.ToolContext, agent.Call) (agent.Effects, error) { return agent.Effects{}, nil },
		run: func(_ context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := decode[todoInput](c)
			if err != nil {
				return agent.Result{}, err
			}
			if in.Todos == nil {
				in.Todos = []Todo{}
			}
			r := agent.OK(todoCount(in.Todos))
			r.Output = structured(todoAnswer{Old: t.set(tc.InstanceKey, in.Todos), New: in.Todos})
			return r, nil
		},
	}
}

// Restore sets a session's list to what its last todo__write was given. An input
// that cannot be read leaves the list empty.
func (t *Todos) Restore(session string, input json.RawMessage) {
	var in todoInput
	if json.Unmarshal(input, &in) != nil {
		in.Todos = nil
	}
	t.set(session, in.Todos)
}

// set returns the list that it replaces, never nil.
func (t *Todos) set(session string, list []Todo) []Todo {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lists == nil {
		t.lists = map[string][]Todo{}
	}
	old := t.lists[session]
	t.lists[session] = list
	if old == nil {
		old = []Todo{}
	}
	return old
}

func todoCount(list []Todo) string {
	n := map[string]int{}
	for _, t := range list {
		n[t.Status]++
	}
	return fmt.Sprintf("The list has %d tasks: %d completed, %d in progress, %d pending.",
		len(list), n["completed"], n["in_progress"], n["pending"])
}
