package gemini

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"dure/agent"
	"dure/internal/models/script"
	"dure/internal/models/wire"
)

// TestATalkWithTools has conversations with the scripted model, which refuses
// what the API would refuse: a wrong signature among it.
func TestATalkWithTools(t *testing.T) {
	for _, info := range []agent.ModelInfo{reader, older} {
		t.Run(info.ID, func(t *testing.T) { talk(t, info) })
	}
}

func talk(t *testing.T, info agent.ModelInfo) {
	input := json.RawMessage(`{"file_path":"a.go"}`)
	srv, err := script.NewServer(script.Script{Replies: []script.Reply{
		{Thinking: "I have to look.", Text: "I look.", Calls: []script.Call{{Tool: "Read", Input: input}, {Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}}},
		{Thinking: "Once more.", Calls: []script.Call{{Tool: "Read", Input: input}, {Tool: "Read", Input: input}}, Interleave: true},
		{Text: "Half an answer", Stop: agent.StopLength},
		{Text: "Now the test is mended.", Thinking: "Done."},
		{Text: "You are welcome."},
	}}, script.Options{Key: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	m := New(wire.Config{Info: info, BaseURL: srv.URL(), Key: secret})
	defer m.Close()
	r := agent.Request{
		System: []agent.Section{{Text: "You are dure."}}, Tools: tools(), Names: names, Thinking: 4000, Tail: "It is noon.",
		Messages: []agent.Message{
			says(agent.User, plain("Mend it.")), // and then another model answers
			says(agent.Assistant, foreignCall("toolu_1", "bash__exec", `{"command":"go test"}`), foreignCall("toolu_1", "bash__exec", `{"command":"go vet"}`)),
			says(agent.User, resultBlock("toolu_1", agent.Result{Text: "FAIL", Blocks: []agent.Block{media(agent.ImageBlock, "image/png", "", "shot")}})),
			says(agent.User, plain("Use another model.")),
		},
	}
	var said []string
	for range 5 {
		final := ask(t, m, r)
		said = append(said, fmt.Sprint(final.Stop, " ", len(final.Message.Calls()), " ", final.Message.Text()))
		r.Messages = append(r.Messages, final.Message)
		var results []agent.Block
		for _, c := range final.Message.Calls() {
			results = append(results, resultBlock(c.ID, agent.OK("package a")))
		}
		if results != nil {
			r.Messages = append(r.Messages, says(agent.User, results...))
		} else if final.Stop == agent.StopEnd {
			r.Messages = append(r.Messages, says(agent.User, plain("Thank you.")))
		}
		if final.Usage.Context() == 0 || final.Usage.Output == 0 {
			t.Errorf("usage %+v", final.Usage)
		}
	}
	want := []string{"tool_use 2 I look.", "tool_use 2 ", "max_tokens 0 Half an answer", "end_turn 0 Now the test is mended.", "end_turn 0 You are welcome."}
	if !slices.Equal(said, want) {
		t.Errorf("got  %q\nwant %q", said, want)
	}
}

func ask(t *testing.T, m *wire.Model, r agent.Request) *agent.Answer {
	t.Helper()
	var final *agent.Answer
	for d, err := range m.Stream(t.Context(), r) {
		if err != nil {
			body, _ := m.Encode(r)
			t.Fatalf("%v\n%s", err, body)
		}
		final = d.Final
	}
	return final
}
