package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/extend/hooks"
	"dure/internal/kernel/plug"
)

// todoTool keeps the list of tasks.
const todoTool = "todo__write"

// maxError is how much of an error hooks are told, in bytes: its beginning and its
// end.
const maxError = 10_000

// after asks the hooks about a result. They may put another output in its place, say
// something beside it, and stop the turn.
func (h *Session) after(ctx context.Context, p agent.Proposal, r agent.Result, took time.Duration) (agent.Result, bool) {
	if unheard(p) {
		return r, false
	}
	h.mu.Lock()
	enough := h.enough && p.Call.Tool == todoTool
	h.enough = h.enough && !enough
	h.mu.Unlock()
	e, more := hooks.PostToolUse, map[string]any{"duration_ms": took.Milliseconds()}
	if r.Failed() {
		e = hooks.PostToolUseFailure
		more["error"], more["is_interrupt"] = middle(failureOf(r), maxError), r.Error != nil && r.Error.Code == agent.ErrAborted
	} else {
		more["tool_response"] = response(r)
	}
	if !h.set.Has(e) {
		return r, enough
	}
	if ctx.Err() != nil { // a call that somebody has stopped is told of too
		var done func()
		ctx, done = outlasting(ctx, afterEnd)
		defer done()
	}
	out := h.set.Fire(ctx, h.about(e, p, more))
	if out.Output != nil && e == hooks.PostToolUse {
		changed, ok := replaced(r, out.Output)
		if !ok {
			h.note("warn", "the output that a hook has put in the place of "+h.c.Dialect.Name(p.Call.Tool)+"'s is of another form, and does not count")
		} else {
			r = changed
		}
	}
	if out.Block {
		r.Text = strings.TrimRight(r.Text, "\n") + "\n\n[" + by(out) + " at " + string(e) + ": " + reason(out) + "]"
		r.Stream = nil
	}
	return r, out.Stop || enough
}

// response is a result as hooks are told of it: the structured output, or the text.
func response(r agent.Result) any {
	if len(r.Output) > 0 && json.Valid(r.Output) {
		return r.Output
	}
	return r.Text
}

// failureOf is why a call failed as hooks are told of it: of a command its exit code comes
// first.
func failureOf(r agent.Result) string {
	if r.Error != nil && strings.HasPrefix(r.Error.Message, "exit code ") {
		return "E" + r.Error.Message[1:] + "\n" + r.Text
	}
	return r.Text
}

// middle takes out the middle of a text that is longer than most bytes.
func middle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + "\n[...]\n" + strings.ToValidUTF8(text[len(text)-most/2:], "")
}

// replaced puts an output in the place of a result's, if it has the form of that: a text
// for a text, and of an object no other fields than it had.
func replaced(r agent.Result, output json.RawMessage) (agent.Result, bool) {
	var text string
	if json.Unmarshal(output, &text) == nil {
		if len(r.Output) > 0 && kindOf(r.Output) == '{' {
			return r, false
		}
		r.Text, r.Output = text, nil
		return r, true
	}
	if len(r.Output) == 0 || kindOf(r.Output) != kindOf(output) {
		return r, false
	}
	if kindOf(output) == '{' {
		var was, is map[string]json.RawMessage
		if json.Unmarshal(r.Output, &was) != nil || json.Unmarshal(output, &is) != nil {
			return r, false
		}
		for name, v := range is {
			old, ok := was[name]
			if !ok || kindOf(old) != kindOf(v) && kindOf(old) != 'n' {
				return r, false
			}
		}
	}
	r.Text, r.Output = shownOf(output), output
	return r, true
}

// kindOf is how a value of JSON begins: the same for all numbers, and for true and false.
func kindOf(v json.RawMessage) byte {
	s := strings.TrimSpace(string(v))
	if s == "" {
		return 0
	}
	switch c := s[0]; {
	case c == '-' || c >= '0' && c <= '9':
		return '0'
	case c == 't':
		return 'f'
	default:
		return c
	}
}

// shownOf is what a model reads of a structured output: the text in it that stands for
// all, or else all of it.
func shownOf(output json.RawMessage) string {
	var known struct {
		Stdout  *string `json:"stdout"`
		Stderr  string  `json:"stderr"`
		Content *string `json:"content"`
		Text    *string `json:"text"`
	}
	if json.Unmarshal(output, &known) == nil {
		switch {
		case known.Stdout != nil:
			return strings.TrimSpace(*known.Stdout + "\n" + known.Stderr)
		case known.Content != nil:
			return *known.Content
		case known.Text != nil:
			return *known.Text
		}
	}
	return string(output)
}

// batch tells the hooks how all calls of an answer came out, and reports whether they
// stop the turn.
func (h *Session) batch(ctx context.Context, made []agent.Call, all []agent.CallFinished) bool {
	if !h.set.Has(hooks.PostToolBatch) {
		return false
	}
	calls := make([]map[string]any, len(all))
	for i, c := range all {
		calls[i] = map[string]any{
			"tool_name": h.c.Dialect.Name(c.Tool), "tool_use_id": c.Result.ID,
			"tool_input": h.absolute(made[i].Input), "tool_response": c.Result.Text,
		}
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.PostToolBatch, Fields: map[string]any{"tool_calls": calls}})
	return out.Stop || out.Block
}

// wrap asks the hooks about tasks that are about to be noted, or noted as done.
func (h *Session) wrap(t agent.Tool, next plug.Run) plug.Run {
	if t.Spec().Name != todoTool {
		return next
	}
	return func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
		now := tasksOf(c.Input)
		if h.set.Has(hooks.TaskCreated) || h.set.Has(hooks.TaskCompleted) {
			if r, blocked := h.noting(ctx, now); blocked {
				return r, nil
			}
			if ctx.Err() != nil { // nobody has waited for their answer
				return agent.Result{}, context.Cause(ctx)
			}
		}
		r, err := next(ctx, tc, c)
		if err == nil && !r.Failed() {
			h.noted(now)
		}
		return r, err
	}
}

// tasksOf returns the state of each task of a list, by its text.
func tasksOf(input json.RawMessage) map[string]string {
	var in struct {
		Todos []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
	}
	_ = json.Unmarshal(input, &in) // a list that cannot be read is refused by its tool
	all := map[string]string{}
	for _, t := range in.Todos {
		all[t.Content] = t.Status
	}
	return all
}

// lastTasks returns the tasks that a conversation has noted last.
func lastTasks(past []agent.Message) map[string]string {
	for _, m := range slices.Backward(past) {
		for _, c := range slices.Backward(m.Calls()) {
			if c.Tool == todoTool {
				return tasksOf(c.Input)
			}
		}
	}
	return nil
}

// noted remembers the list of tasks.
func (h *Session) noted(now map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tasks = now
}

// noting fires what a new list of tasks stands for. Of a list of which one task is
// forbidden nothing is taken over: the model is told, and mends it.
func (h *Session) noting(ctx context.Context, now map[string]string) (agent.Result, bool) {
	h.mu.Lock()
	was := h.tasks
	h.mu.Unlock()
	var why []string
	fire := func(e hooks.Event, task string) {
		sum := sha256.Sum256([]byte(task))
		out := h.set.Fire(ctx, hooks.Moment{Event: e, Fields: h.asMate(map[string]any{"task_id": hex.EncodeToString(sum[:6]), "task_subject": task})})
		if out.Block {
			why = append(why, task+": "+reason(out))
		}
		if out.Stop && e == hooks.TaskCompleted && h.isMate() {
			h.mu.Lock()
			h.enough = true
			h.mu.Unlock()
		}
	}
	for _, task := range sorted(now) {
		before, known := was[task]
		if !known {
			fire(hooks.TaskCreated, task)
		}
		if now[task] == "completed" && before != "completed" && known {
			fire(hooks.TaskCompleted, task)
		}
	}
	if why == nil {
		return agent.Result{}, false
	}
	return agent.Failure(agent.ErrTool, "A hook forbids this list of tasks, and nothing of it was noted:\n"+strings.Join(why, "\n"), "Mend what it says and write the list again."), true
}
