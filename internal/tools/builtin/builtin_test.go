package builtin

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"dure/agent"
)

func call(tool agent.Tool, input string) agent.Call {
	return agent.Call{ID: "c1", Tool: tool.Spec().Name, Input: json.RawMessage(input)}
}

// runTool runs a call and returns the result with its stream read into Text.
func runTool(t *testing.T, ctx context.Context, tool agent.Tool, workdir, input string) agent.Result {
	t.Helper()
	r, err := tool.Run(ctx, agent.ToolContext{Workdir: workdir, InstanceKey: "s1"}, call(tool, input))
	if err != nil {
		t.Fatal(err)
	}
	if r.Stream != nil {
		b, err := io.ReadAll(r.Stream)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Stream.Close(); err != nil {
			t.Fatal(err)
		}
		r.Text, r.Stream = string(b), nil
	}
	return r
}

func TestTodo(t *testing.T) {
	var todos Todos
	tool := todos.Tool()
	past := func(input string) []agent.Message {
		c := agent.Call{Tool: "todo__write", Input: json.RawMessage(input)}
		return []agent.Message{{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.CallBlock, Call: &c}}}, agent.UserText("and?")}
	}
	todos.Restore(past(`{"todos":[{"content":"a","status":"pending"}]}`))
	r := runTool(t, t.Context(), tool, "/", `{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress","activeForm":"Doing b"}]}`)
	want := agent.OK("The list has 2 tasks: 1 completed, 1 in progress, 0 pending.")
	want.Output = json.RawMessage(`{"oldTodos":[{"content":"a","status":"pending"}],"newTodos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress","activeForm":"Doing b"}]}`)
	if !reflect.DeepEqual(r, want) {
		t.Errorf("result %+v\nwant   %+v", r, want)
	}
	todos.Restore(past(`{"todos":`))
	if r := runTool(t, t.Context(), tool, "/", `{"todos":[]}`); string(r.Output) != `{"oldTodos":[],"newTodos":[]}` {
		t.Errorf("after restoring what cannot be read: %s", r.Output)
	}
}

func TestAsk(t *testing.T) {
	ask := Ask()
	const questions = `"questions":[{"question":"Which?","header":"Way","options":[{"label":"A"},{"label":"B","description":"b"}],"multiSelect":false},{"question":"Why?","options":[{"label":"C"},{"label":"D"}],"multiSelect":true}]`
	plan := func(input string) (agent.Effects, error) {
		return ask.Plan(t.Context(), agent.ToolContext{}, call(ask, input))
	}
	if e, err := plan(`{` + questions + `}`); err != nil || !reflect.DeepEqual(e, agent.Effects{User: true}) {
		t.Errorf("unanswered: %+v, %v", e, err)
	}
	if r := runTool(t, t.Context(), ask, "/", `{`+questions+`}`); r.Error == nil || r.Error.Code != agent.ErrDenied {
		t.Errorf("unanswered: %+v", r)
	}
	answered := `{` + questions + `,"answers":{"Which?":"A","Why?":""}}`
	if e, err := plan(answered); err != nil || !reflect.DeepEqual(e, agent.Effects{}) {
		t.Errorf("answered: %+v, %v", e, err)
	}
	r := runTool(t, t.Context(), ask, "/", answered)
	if want := "The user's answers:\n- Which?\n  A\n- Why?\n  (no answer)"; r.Text != want || r.Failed() {
		t.Errorf("answered: %+v", r)
	}
	if !strings.Contains(string(r.Output), `"answers":{"Which?":"A","Why?":""}`) {
		t.Errorf("output %s", r.Output)
	}
	for input, want := range map[string]string{
		`{` + questions + `,"answers":{"Else?":"A"}}`:                                                                                       "not asked",
		`{"questions":[{"question":"q","options":[{"label":"a"},{"label":"a"}]}]}`:                                                          "offered twice",
		`{"questions":[{"question":"q","options":[{"label":"a"},{"label":"b"}]},{"question":"q","options":[{"label":"a"},{"label":"b"}]}]}`: "asked twice",
	} {
		if _, err := plan(input); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", input, err)
		}
	}
	if strings.Contains(string(ask.Spec().Input), "answers") {
		t.Error("the model is shown how to answer for the user")
	}
	if !strings.Contains(string(ask.(interface{ AnswerSchema() json.RawMessage }).AnswerSchema()), `"answers"`) {
		t.Error("a person cannot answer")
	}
}
