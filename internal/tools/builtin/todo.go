package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed todo.md
var todoText string

const todoSchema = `{"type":"object","properties":{"todos":{"type":"array","maxItems":200,"items":{"type":"object","properties":{` +
	`"content":{"type":"string","minLength":1,"description":"what to do"},` +
	`"status":{"type":"string","enum":["pending","in_progress","completed"]},` +
	`"activeForm":{"type":"string","description":"the same while it is being done: Running the tests"}},` +
	`"required":["content","status"],"additionalProperties":false}}},"required":["todos"],"additionalProperties":false}`

// task is one of a task list.
type task struct {
	Content    string `json:"content"`
	Status     string `json:"status"` // pending, in_progress, completed
	ActiveForm string `json:"activeForm,omitempty"`
}

type todoInput struct {
	Todos []task `json:"todos"`
}

type todoAnswer struct {
	Old []task `json:"oldTodos"`
	New []task `json:"newTodos"`
}

// Todos is the tool that keeps task lists, one for each session. The input of a
// session's last todo__write is its list; what is kept here only tells the old
// list from the new one. The zero value has no lists.
type Todos struct {
	mu    sync.Mutex
	lists map[string][]task // by session
}

// Tool returns todo__write.
func (t *Todos) Tool() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "todo__write", Description: kit.Describe(todoText), Input: json.RawMessage(todoSchema),
			Class: agent.Idempotent, Group: "planning", Risk: agent.RiskLow,
		},
		Touches: func(agent.ToolContext, agent.Call) (agent.Effects, error) { return agent.Effects{}, nil },
		Does: func(_ context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[todoInput](c)
			if err != nil {
				return agent.Result{}, err
			}
			if in.Todos == nil {
				in.Todos = []task{}
			}
			r := agent.OK(todoCount(in.Todos))
			r.Output = kit.Structured(todoAnswer{Old: t.set(tc.InstanceKey, in.Todos), New: in.Todos})
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

// Open returns what is still to be done of a session's list.
func (t *Todos) Open(session string) (open []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, task := range t.lists[session] {
		if task.Status != "completed" {
			open = append(open, task.Status+": "+task.Content)
		}
	}
	return open
}

// set returns the list that it replaces, never nil.
func (t *Todos) set(session string, list []task) []task {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lists == nil {
		t.lists = map[string][]task{}
	}
	old := t.lists[session]
	t.lists[session] = list
	if old == nil {
		old = []task{}
	}
	return old
}

func todoCount(list []task) string {
	n := map[string]int{}
	for _, t := range list {
		n[t.Status]++
	}
	return fmt.Sprintf("The list has %d tasks: %d completed, %d in progress, %d pending.",
		len(list), n["completed"], n["in_progress"], n["pending"])
}
