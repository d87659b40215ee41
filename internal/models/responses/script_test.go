package responses

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/models/script"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
)

// scripted returns a model that asks a scripted server.
func scripted(t *testing.T, s script.Script, info agent.ModelInfo) (*wire.Model, *script.Server) {
	t.Helper()
	srv, err := script.NewServer(s, script.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := New(wire.Config{Info: info, BaseURL: srv.URL(), Key: "k"})
	t.Cleanup(func() {
		m.Close()
		_ = srv.Close()
	})
	return m, srv
}

// A conversation with thinking, interleaved calls, failures and a change of
// models passes the strict checks of the scripted server at every step.
func TestConversationWithTools(t *testing.T) {
	replies := []script.Reply{
		{Thinking: "First.\n\nThen.", Text: "I look.", Interleave: true, Calls: []script.Call{
			{Tool: "Read", Input: json.RawMessage(`{"file_path":"a.go"}`)}, {Tool: "Bash", Input: json.RawMessage(`{"command":"go test ./..."}`)},
		}},
		{Thinking: "Hm.", Calls: []script.Call{{Tool: "Bash", Raw: `{"command":`}, {Tool: "Bash"}}},
		{Text: "Half an", Stop: agent.StopLength},
		{Thinking: "Nearly.", Text: "Done."},
	}
	m, srv := scripted(t, script.Script{Replies: replies}, reader)
	r := agent.Request{
		System: []agent.Section{{Text: "You are dure.", Cache: true}}, Tools: someTools(), Names: names, Thinking: 4000, Tail: "It is noon.",
		Messages: []agent.Message{
			says(agent.User, words("Mend it."), media(agent.ImageBlock, "image/png", "", "png"), media(agent.DocumentBlock, "application/pdf", "a.pdf", "pdf")),
			says(agent.Assistant, agent.Block{Type: agent.ThinkingBlock, Text: "x", Signature: "s", Provider: "anthropic"}, call("toolu_"+strings.Repeat("z", 90), "bash__exec", `{}`)),
			says(agent.User, result("toolu_"+strings.Repeat("z", 90), agent.Result{Blocks: []agent.Block{media(agent.ImageBlock, "image/png", "", "png")}})),
		},
	}
	var stops []agent.StopReason
	var last agent.Usage
	for step := range replies {
		var final *agent.Answer
		for d, err := range m.Stream(t.Context(), r) {
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			final = d.Final
		}
		stops, last = append(stops, final.Stop), final.Usage
		r.Messages = append(r.Messages, final.Message)
		next := agent.Message{Role: agent.User}
		for i, c := range final.Message.Calls() {
			res := agent.OK(fmt.Sprint("result ", i))
			if c.Invalid != "" {
				res = agent.Failure(agent.ErrInput, "no JSON", "")
			}
			next.Blocks = append(next.Blocks, result(c.ID, res))
		}
		r.Messages = append(r.Messages, next, says(agent.User, words("Go on.")))
	}
	if want := []agent.StopReason{agent.StopCalls, agent.StopCalls, agent.StopLength, agent.StopEnd}; !reflect.DeepEqual(stops, want) {
		t.Errorf("stopped for %v, want %v", stops, want)
	}
	if last.CacheRead == 0 {
		t.Errorf("nothing was read from the cache: %+v", last)
	}
	for i, got := range srv.Requests() {
		if got.Status != 200 {
			t.Errorf("request %d: status %d", i, got.Status)
		}
	}
	// Another model of the same provider, and one of another.
	for _, info := range []agent.ModelInfo{plainReader, {ID: "m", Provider: "elsewhere", Thinking: "effort"}} {
		if err := script.Validate(script.Responses, "", nil, wiretest.MustEncode(t, New(wire.Config{Info: info}), r)); err != nil {
			t.Errorf("%s: %v", info.ID, err)
		}
	}
}

func TestFaultsOfTheScriptedServer(t *testing.T) {
	for _, c := range []struct {
		fault script.Fault
		want  agent.FailureClass
	}{
		{script.Fault{Kind: script.Status, Status: 429, RetryAfter: "3"}, agent.FailRate},
		{script.Fault{Kind: script.Status, Status: 401}, agent.FailAuth},
		{script.Fault{Kind: script.Status, Status: 500}, agent.FailServer},
		{script.Fault{Kind: script.HTML}, agent.FailProtocol},
		{script.Fault{Kind: script.Cut, After: 4}, agent.FailServer},
		{script.Fault{Kind: script.Cut, After: 4, Clean: true}, agent.FailServer},
		{script.Fault{Kind: script.Reset, After: 4}, agent.FailServer},
		{script.Fault{Kind: script.Error, After: 4, Code: "server_error", Message: "oops"}, agent.FailServer},
		{script.Fault{Kind: script.Failed, After: 4, Code: "rate_limit_exceeded", Message: "slow"}, agent.FailRate},
	} {
		m, _ := scripted(t, script.Script{Replies: []script.Reply{{Text: strings.Repeat("word ", 50), Faults: []script.Fault{c.fault}}}}, reader)
		if _, _, err := drain(t.Context(), m); agent.ClassOf(err) != c.want {
			t.Errorf("%+v: %v", c.fault, err)
		}
		if _, final, err := drain(t.Context(), m); err != nil || final.Message.Text() == "" {
			t.Errorf("%+v: the attempt after it: %v", c.fault, err)
		}
	}
}
