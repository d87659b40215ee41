package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
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

// Todos is the tool that keeps the task list of a session. The input of the last todo__write is
// the list; what is kept here only tells the old list from the new one. The zero value has none.
type Todos struct {
	mu   sync.Mutex
	list []task
}

const todoTool = "todo__write"

// Tool returns todo__write.
func (t *Todos) Tool() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: todoTool, Description: kit.Describe(todoText), Input: json.RawMessage(todoSchema),
			Class: agent.Idempotent, Group: "planning", Risk: agent.RiskLow,
		},
		Touches: func(agent.ToolContext, agent.Call) (agent.Effects, error) { return agent.Effects{}, nil },
		Does: func(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[todoInput](c)
			if err != nil {
				return agent.Result{}, err
			}
			if in.Todos == nil {
				in.Todos = []task{}
			}
			r := agent.OK(todoCount(in.Todos))
			r.Output = kit.Structured(todoAnswer{Old: t.set(in.Todos), New: in.Todos})
			return r, nil
		},
	}
}

// Restore sets the list to what a conversation left it as. An input that cannot be read leaves
// the list empty.
func (t *Todos) Restore(past []agent.Message) {
	for _, m := range slices.Backward(past) {
		for _, c := range slices.Backward(m.Calls()) {
			if c.Tool != todoTool {
				continue
			}
			var in todoInput
			if json.Unmarshal(c.Input, &in) != nil {
				in.Todos = nil
			}
			t.set(in.Todos)
			return
		}
	}
	t.set(nil)
}

// Open returns what is still to be done.
func (t *Todos) Open() (open []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, task := range t.list {
		if task.Status != "completed" {
			open = append(open, task.Status+": "+task.Content)
		}
	}
	return open
}

// set returns the list that it replaces, never nil.
func (t *Todos) set(list []task) []task {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.list
	t.list = list
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
