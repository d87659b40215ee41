package transcript_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"dure/agent"
)

func note(n agent.TaskNote, files ...agent.FileState) agent.CallFinished {
	data, _ := json.Marshal(n)
	return agent.CallFinished{Result: agent.Result{ID: "n", Status: agent.StatusOK, Files: files, Meta: map[string]json.RawMessage{agent.MetaTask: data}}}
}

func TestTask(t *testing.T) {
	s := fold(
		note(agent.TaskNote{Task: "read", Facts: map[string]string{"port": "80", "host": "h"}}, agent.FileState{Path: "/w/a"}, agent.FileState{Path: "/w/b"}),
		note(agent.TaskNote{Decisions: []agent.Choosing{{Decision: "use JSON", Reason: "small", Alternatives: []string{"XML"}}, {Decision: "use JSON"}, {}}}),
		note(agent.TaskNote{Task: "write", Facts: map[string]string{"port": "81", "host": ""}}, agent.FileState{Path: "/w/a"}, agent.FileState{Path: "/w/b", Gone: true}),
		agent.CallFinished{Result: agent.Result{Status: agent.StatusError, Files: []agent.FileState{{Path: "/w/c"}}}},
		agent.CallFinished{Result: agent.Result{Status: agent.StatusOK, Meta: map[string]json.RawMessage{agent.MetaTask: json.RawMessage(`"no"`)}}},
	)
	want := agent.WorkingMemory{
		Task:      "write",
		Decisions: []agent.TaskDecision{{Seq: 2, Choosing: agent.Choosing{Decision: "use JSON", Reason: "small", Alternatives: []string{"XML"}}}},
		Facts:     map[string]agent.TaskFact{"port": {Seq: 3, Text: "81"}},
		Files:     []string{"/w/a"},
	}
	if !reflect.DeepEqual(s.Task, want) {
		t.Errorf("got %+v", s.Task)
	}
}

func TestTaskIsBounded(t *testing.T) {
	var all []agent.Body
	for i := range 500 {
		all = append(all, note(agent.TaskNote{
			Decisions: []agent.Choosing{{Decision: fmt.Sprint(i)}}, Facts: map[string]string{fmt.Sprint(i): strings.Repeat("가", 3000)},
		}, agent.FileState{Path: fmt.Sprint(i)}))
	}
	task := fold(all...).Task
	if len(task.Decisions) != 200 || len(task.Facts) != 200 || len(task.Files) != 100 || task.Files[99] != "499" {
		t.Errorf("%d decisions, %d facts, %d files", len(task.Decisions), len(task.Facts), len(task.Files))
	}
	long := strings.Repeat("x", 5000)
	wide := agent.Choosing{Decision: "wide"}
	for range 50 {
		wide.Alternatives = append(wide.Alternatives, long)
	}
	alike := fold(note(agent.TaskNote{Decisions: []agent.Choosing{wide}, Facts: map[string]string{long: "here"}}), note(agent.TaskNote{Facts: map[string]string{long: ""}})).Task
	if d := alike.Decisions[0].Alternatives; len(d) != 10 || len(d[0]) != 4000 || len(alike.Facts) != 0 {
		t.Errorf("%d alternatives, %d facts", len(d), len(alike.Facts))
	}
	if f := task.Facts["499"]; len(f.Text) > 4000 || !strings.HasSuffix(f.Text, "가") {
		t.Errorf("a fact of %d bytes", len(f.Text))
	}
}
