package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
)

// The tools by which work in the background is looked at and stopped.
const (
	stopTool   = "task__stop"
	outputTool = "task__output"
)

// maxOutput is how much of what a task has printed a host is told.
const maxOutput = 256 << 10

// namedTask is a request about a task.
type namedTask struct {
	ID string `json:"task_id"`
}

// check reports why no task can be called so.
func (t namedTask) check() error {
	if t.ID == "" || len(t.ID) > 200 {
		return fmt.Errorf("there is no task %q", t.ID)
	}
	return nil
}

// stopTask ends work in the background.
func (h *Host) stopTask(t namedTask) (any, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if _, ok := h.show.tasks[t.ID]; !ok {
		return nil, fmt.Errorf("no task %q is running", t.ID)
	}
	return h.tasked(stopTool, t.ID, func(agent.Result) any { return empty{} }), nil
}

// taskOutput shows what work in the background has printed.
func (h *Host) taskOutput(t namedTask) (any, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	return h.tasked(outputTool, t.ID, func(r agent.Result) any {
		_, words, _ := strings.Cut(r.Unfenced(), "\n") // the first line says how it stands
		total, cut := len(words), false
		if r.Spill != nil {
			total, cut = int(r.Spill.Bytes), true
		}
		if len(words) > maxOutput {
			words, cut = strings.ToValidUTF8(words[len(words)-maxOutput:], ""), true
		}
		return map[string]any{"output": words, "total_bytes": total, "truncated": cut}
	}), nil
}

// tasked calls a tool about a task, through the gate of the session.
func (h *Host) tasked(tool, id string, then func(agent.Result) any) slow {
	p, session := h.prog.API, h.session
	in := map[string]any{"task_id": id}
	if tool == outputTool { // from the beginning, and without waiting
		in["block"], in["offset"] = false, 0
	}
	input, _ := json.Marshal(in) // it always encodes
	return func(ctx context.Context) (any, error) {
		r, err := p.CallTool(ctx, session, tool, input)
		switch {
		case err != nil:
			return nil, err
		case r.Error != nil:
			return nil, fmt.Errorf("%s", r.Error.Message)
		}
		return then(r), nil
	}
}

// backgroundTasks says that nothing that is waited for goes on in the background instead:
// what runs in front stays there.
func (h *Host) backgroundTasks(struct{}) (any, error) {
	return map[string]bool{"backgrounded": false}, nil
}
