package valid_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/models/anthropic"
	"dure/internal/models/chat"
	"dure/internal/models/gemini"
	"dure/internal/models/responses"
	"dure/internal/models/script"
	"dure/internal/models/wire"
)

// ask returns the answer of a model to one word.
func ask(t *testing.T, m model) (final *agent.Answer, err error) {
	t.Helper()
	shown := ""
	for d, err := range m.Stream(t.Context(), agent.Request{Thinking: 2000, Messages: []agent.Message{agent.UserText("hello")}}) {
		if err != nil {
			return nil, err
		}
		if d.Kind == agent.DeltaText {
			shown += d.Text
		}
		final = d.Final
	}
	if final != nil && final.Message.Text() != shown {
		t.Errorf("shown %q, kept %q", shown, final.Message.Text())
	}
	return final, nil
}

// four are the adapters, one configuration of each.
func four(url, key string) map[script.Format]model {
	info := func(provider string) agent.ModelInfo {
		return agent.ModelInfo{ID: "m", Provider: provider, Window: 200_000, MaxOut: 32_000, Thinking: "budget"}
	}
	return map[script.Format]model{
		script.Messages:  anthropic.New(wire.Config{BaseURL: url, Key: key, Info: info("anthropic")}),
		script.Chat:      chat.New(chat.Config{Config: wire.Config{BaseURL: url, Key: key, Info: info("openai")}}),
		script.Responses: responses.New(wire.Config{BaseURL: url, Key: key, Info: info("openai")}),
		script.Gemini:    gemini.New(wire.Config{BaseURL: url, Key: key, Info: info("google")}),
	}
}

// each plays a script to each adapter.
func each(t *testing.T, s script.Script, opts script.Options, do func(f script.Format, m model)) {
	t.Helper()
	for _, f := range []script.Format{script.Messages, script.Chat, script.Responses, script.Gemini} {
		srv, err := script.NewServer(s, opts)
		if err != nil {
			t.Fatal(err)
		}
		models := four(srv.URL(), "right")
		do(f, models[f])
		for _, m := range models {
			m.Close()
		}
		_ = srv.Close()
	}
}

// told is what of an answer does not depend on the provider.
func told(a *agent.Answer) string {
	line := fmt.Sprintf("%s %q", a.Stop, a.Message.Text())
	thought := ""
	for _, b := range a.Message.Blocks {
		if b.Type == agent.ThinkingBlock {
			thought += b.Text
		}
	}
	if thought != "" {
		line += fmt.Sprintf(" [%s]", thought)
	}
	for _, c := range a.Message.Calls() {
		line += fmt.Sprintf(" %s(%s)", c.Tool, c.Input)
	}
	return fmt.Sprint(line, " ", a.Usage.Input, "+", a.Usage.CacheRead, ">", a.Usage.Output)
}

// TestTheSameReplyIsTheSameAnswer plays replies in all formats.
func TestTheSameReplyIsTheSameAnswer(t *testing.T) {
	used := &agent.Usage{Input: 10, CacheRead: 5, Output: 7}
	look := script.Call{Tool: "Read", Input: json.RawMessage(`{"file_path":"a.go"}`)}
	run := script.Call{ID: "mine", Tool: "Bash", Input: json.RawMessage(`{"command":"ls <b> é😀"}`)}
	for _, c := range []struct {
		reply script.Reply
		want  string
	}{
		{script.Reply{Text: "Line 1\nLine \"2\" é😀\u2028</b>", Chunk: 3}, `end_turn "Line 1\nLine \"2\" é😀\u2028</b>" 10+5>7`},
		{script.Reply{Thinking: "Hm, \"é\" 😀.", Text: "Done.", Chunk: 2}, `end_turn "Done." [Hm, "é" 😀.] 10+5>7`},
		{script.Reply{Text: "I look.", Calls: []script.Call{look, run}, Chunk: 3}, `tool_use "I look." Read({"file_path":"a.go"}) Bash({"command":"ls <b> é😀"}) 10+5>7`},
		{script.Reply{Thinking: "Hm.", Calls: []script.Call{look, run, {Tool: "Todo"}}, Interleave: true, Chunk: 3}, `tool_use "" [Hm.] Read({"file_path":"a.go"}) Bash({"command":"ls <b> é😀"}) Todo({}) 10+5>7`},
		{script.Reply{Text: "Once", Stop: agent.StopLength}, `max_tokens "Once" 10+5>7`},
		{script.Reply{Text: "I", Stop: agent.StopRefusal}, `refusal "I" 10+5>7`},
	} {
		c.reply.Usage = used
		each(t, script.Script{Replies: []script.Reply{c.reply}}, script.Options{}, func(f script.Format, m model) {
			a, err := ask(t, m)
			if err != nil {
				t.Errorf("%s: %v", f, err)
			} else if got := told(a); got != c.want {
				t.Errorf("%s:\ngot  %s\nwant %s", f, got, c.want)
			}
		})
	}
}

// TestTheSameFaultIsTheSameFailure plays what goes wrong in all formats.
func TestTheSameFaultIsTheSameFailure(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault script.Fault
		class agent.FailureClass
		after time.Duration
	}{
		{"too many requests", script.Fault{Kind: script.Status, Status: 429, RetryAfter: "2"}, agent.FailRate, 2 * time.Second},
		{"an error of the server", script.Fault{Kind: script.Status, Status: 500}, agent.FailServer, 0},
		{"overloaded", script.Fault{Kind: script.Status, Status: 503}, agent.FailServer, 0},
		{"forbidden", script.Fault{Kind: script.Status, Status: 403}, agent.FailAuth, 0},
		{"no such model", script.Fault{Kind: script.Status, Status: 404, Code: "model_not_found"}, agent.FailNotFound, 0},
		{"a bad request", script.Fault{Kind: script.Status, Status: 400, Message: "no"}, agent.FailInvalid, 0},
		{"a web page", script.Fault{Kind: script.HTML}, agent.FailProtocol, 0},
		{"a gateway's page", script.Fault{Kind: script.HTML, Status: 502}, agent.FailServer, 0},
		{"garbage", script.Fault{Kind: script.Garbage}, agent.FailProtocol, 0},
		{"cut", script.Fault{Kind: script.Cut, After: 2}, agent.FailServer, 0},
		{"ended early", script.Fault{Kind: script.Cut, After: 2, Clean: true}, agent.FailServer, 0},
		{"reset", script.Fault{Kind: script.Reset, After: 2}, agent.FailServer, 0},
		{"an error in the stream", script.Fault{Kind: script.Error, After: 2, Message: "busy"}, agent.FailServer, 0},
		{"the last error of a stream", script.Fault{Kind: script.Failed, After: 2, Message: "broken"}, agent.FailServer, 0},
		{"too many requests in the stream", script.Fault{Kind: script.Error, After: 2, Status: 429}, agent.FailRate, 0},
	} {
		s := script.Script{Replies: []script.Reply{{Text: "0123456789", Chunk: 2, Faults: []script.Fault{c.fault}}}}
		each(t, s, script.Options{}, func(f script.Format, m model) {
			_, err := ask(t, m)
			var after time.Duration
			if e, ok := err.(*agent.ModelError); ok {
				after = e.RetryAfter
			}
			if agent.ClassOf(err) != c.class || after != c.after {
				t.Errorf("%s, %s: got %v, %q after %s", c.name, f, err, agent.ClassOf(err), after)
			}
			if a, err := ask(t, m); err != nil || a.Message.Text() != "0123456789" {
				t.Errorf("%s, %s: the next attempt: %v, %v", c.name, f, a, err)
			}
		})
	}
}

// TestWrongKeysAndLongPrompts checks failures that the formats word themselves.
func TestWrongKeysAndLongPrompts(t *testing.T) {
	each(t, script.Script{}, script.Options{Key: "another"}, func(f script.Format, m model) {
		if _, err := ask(t, m); agent.ClassOf(err) != agent.FailAuth || strings.Contains(err.Error(), "right") {
			t.Errorf("%s, wrong key: %v", f, err)
		}
	})
	words := map[script.Format]script.Fault{
		script.Messages:  {Message: "prompt is too long: 9 tokens > 8 maximum"},
		script.Chat:      {Message: "This model's maximum context length is 8 tokens.", Code: "context_length_exceeded"},
		script.Responses: {Message: "Your input exceeds the context window of this model.", Code: "context_length_exceeded"},
		script.Gemini:    {Message: "The input token count (9) exceeds the maximum number of tokens allowed (8)."},
	}
	for f, fault := range words {
		fault.Kind, fault.Status = script.Status, http.StatusBadRequest
		each(t, script.Script{Replies: []script.Reply{{Faults: []script.Fault{fault}}}}, script.Options{}, func(g script.Format, m model) {
			if g != f {
				return
			}
			if _, err := ask(t, m); agent.ClassOf(err) != agent.FailContext {
				t.Errorf("%s, too long: %v", f, err)
			}
		})
	}
}

// TestThoughtsGoBack holds a talk of four answers in which the model thinks, and
// counts the thoughts that the last request brings back. The server refuses
// those that were changed or stand elsewhere.
func TestThoughtsGoBack(t *testing.T) {
	look := script.Call{Tool: "Read", Input: json.RawMessage(`{"file_path":"<a>.go"}`)}
	s := script.Script{ByStep: true, Replies: []script.Reply{
		{Thinking: "First.\n\nThen.", Text: "I look.", Calls: []script.Call{look, look}, Interleave: true, Chunk: 3},
		{Thinking: "Hm.", Calls: []script.Call{look}},
		{Thinking: "So.", Text: "Done."},
		{Text: "Good."},
	}}
	marks := map[script.Format]string{
		script.Messages: `"signature":"`, script.Responses: `"encrypted_content":"`, script.Gemini: `"thoughtSignature":"`, script.Chat: `"reasoning_content":"`,
	}
	for _, target := range targets() {
		srv, err := script.NewServer(s, script.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := target.open(srv.URL())
		r := agent.Request{Thinking: 2000, Messages: []agent.Message{agent.UserText("go")}}
		for range s.Replies {
			var final *agent.Answer
			for d, err := range m.Stream(t.Context(), r) {
				if err != nil {
					t.Fatalf("%s: %v", target.name, err)
				}
				final = d.Final
			}
			r.Messages = append(r.Messages, final.Message)
			next := agent.UserText("and now?")
			if calls := final.Message.Calls(); len(calls) > 0 {
				next.Blocks = nil
				for _, c := range calls {
					next.Blocks = append(next.Blocks, agent.Block{Type: agent.ResultBlock, Result: &agent.Result{ID: c.ID, Status: agent.StatusOK, Text: "x"}})
				}
			}
			r.Messages = append(r.Messages, next)
		}
		all := srv.Requests()
		got := strings.Count(string(all[len(all)-1].Body), marks[target.format])
		want := 3
		if target.format == script.Chat && target.name != "chat local" || target.name == "responses blind" {
			want = 0 // nothing that goes back
		}
		if got != want {
			t.Errorf("%s: %d thoughts went back, not %d", target.name, got, want)
		}
		m.Close()
		_ = srv.Close()
	}
}

// TestTheScriptIsFound looks for the scripted model as for any server on this
// machine, and finds an Ollama.
func TestTheScriptIsFound(t *testing.T) {
	srv, err := script.NewServer(script.Script{Models: []string{"a", "b:7b"}}, script.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	found := chat.Discover(t.Context(), nil, []string{srv.URL()})
	if len(found) != 1 || found[0].Kind != chat.Ollama || len(found[0].Models) != 2 || found[0].Models[1].ID != "b:7b" || found[0].Models[1].Window != 8192 {
		t.Errorf("found %+v", found)
	}
}
