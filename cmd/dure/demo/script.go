package demo

import (
	"encoding/json"

	"dure/agent"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

// script is what the model of the demo says: it reads, runs the test, plans,
// mends, runs the test again, and sums up.
func (d *Demo) script() script.Script {
	s, say := d.sample, d.text.Say
	read := func(file string) script.Call { return call("Read", map[string]any{"file_path": file}) }
	test := call("Bash", map[string]any{"command": s.shell(), "description": say(text.DemoRunTest)})
	replies := []script.Reply{
		{Thinking: say(text.DemoThinkFirst), Text: say(text.DemoSayFirst), Calls: []script.Call{read(s.file), read(s.test)}},
		{Text: say(text.DemoSayRun), Calls: []script.Call{test}},
		{Thinking: say(text.DemoThinkCause), Text: say(text.DemoSayCause), Calls: []script.Call{d.todo("completed", "in_progress", "pending")}},
		{Calls: []script.Call{call("Edit", map[string]any{"file_path": s.file, "old_string": s.old, "new_string": s.new})}},
		{Text: say(text.DemoSayAgain), Calls: []script.Call{test}},
		{Calls: []script.Call{d.todo("completed", "completed", "completed")}},
		{Text: say(text.DemoSayDone, "file", s.file)},
	}
	const (
		chunk = 12 // bytes: as a model's words come
		pause = 12 // milliseconds
	)
	for i := range replies {
		replies[i].Chunk, replies[i].DelayMS = chunk, pause
	}
	return script.Script{ByStep: true, Replies: replies, Models: []string{"script"}}
}

func (d *Demo) todo(find, mend, check string) script.Call {
	say := d.text.Say
	item := func(k text.Key, status string) map[string]string {
		return map[string]string{"content": say(k), "status": status, "activeForm": say(k)}
	}
	return call("TodoWrite", map[string]any{"todos": []map[string]string{
		item(text.DemoTodoFind, find), item(text.DemoTodoMend, mend), item(text.DemoTodoCheck, check),
	}})
}

func call(tool string, input any) script.Call {
	data, err := json.Marshal(input)
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return script.Call{Tool: tool, Input: data}
}

// Open says how to open the demo's session.
func (d *Demo) Open() agent.Open {
	return agent.Open{Workdir: d.Dir, Model: d.Config().Model, Mode: agent.ModeAcceptEdits, Title: d.text.Say(text.DemoTitle)}
}
