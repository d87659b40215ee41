package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/frontend/view"
	"dure/internal/prooftest"
	"dure/internal/state/transcript"
)

// numbers is so much JSON in which there is no text that could be cut.
func numbers(n int) json.RawMessage {
	return json.RawMessage("[" + strings.TrimSuffix(strings.Repeat("1234567890123456789012345678901,", n), ",") + "]")
}

// at is what is at a place in a line: members of objects, and parts of lists.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			list, _ := v.([]any)
			if p >= len(list) {
				return nil
			}
			v = list[p]
		}
	}
	return v
}

// Of every kind of line stays, however large its parts are and whatever they are of, what others
// know it by, and it is no longer than a line may be.
func FuzzShorten(f *testing.F) {
	for what := range byte(3) {
		f.Add(what, uint32(1_100_000), "x")
	}
	f.Add(byte(3), uint32(1_100_000), "한\x01\"")
	f.Add(byte(1), uint32(10), "")
	f.Fuzz(func(t *testing.T, what byte, size uint32, seed string) {
		n := int(size % 2_000_000)
		big := bigOf(what, n, seed)
		text := strings.ToValidUTF8(strings.Repeat(seed, n/(len(seed)+1)), "")
		kinds := kindsOf(big, text)
		if one := int(what / 4); one > 0 { // all of them take long
			kinds = kinds[one%len(kinds):][:1]
		}
		for i, l := range kinds {
			if len(kinds) > 1 && i%4 != int(what) && !prooftest.Long() {
				continue // the seeds together look at each kind
			}
			line := encode(l.v)
			if len(line) > maxOut+1 || bytes.Count(line, []byte("\n")) != 1 {
				t.Fatalf("%s: %d bytes", l.name, len(line))
			}
			data, err := marshal(l.v)
			if err == nil && bytes.Equal(data, line) && json.Valid(line) {
				continue // it is whole
			}
			var back, whole any
			if err := json.Unmarshal(line, &back); err != nil {
				t.Fatalf("%s: %v", l.name, err)
			}
			if err != nil || json.Unmarshal(data, &whole) != nil {
				t.Fatalf("%s: %v", l.name, err)
			}
			for _, path := range l.stays {
				if got, want := at(back, path...), at(whole, path...); want == nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s has %v at %v, and not %v: %.300s", l.name, got, path, want, line)
				}
			}
			if len(data) > maxOut && !bytes.Contains(line, []byte("left out")) && !bytes.Contains(line, []byte("at most")) {
				t.Errorf("%s does not say that it is not whole: %.300s", l.name, line)
			}
		}
	})
}

// bigOf is about so many bytes of JSON.
func bigOf(what byte, n int, seed string) json.RawMessage {
	word, _ := json.Marshal(seed) // of a string
	switch what % 4 {
	case 0:
		return json.RawMessage(`{"a":` + string(numbers(n/32)) + `}`)
	case 1: // one text
		words, _ := json.Marshal(strings.Repeat(seed, n/(len(seed)+1)))
		return json.RawMessage(`{"a":` + string(words) + `}`)
	case 2: // many members
		var b strings.Builder
		for i := range n / (len(word) + 64) {
			fmt.Fprintf(&b, `"%060d":%s,`, i, word)
		}
		return json.RawMessage("{" + strings.TrimSuffix(b.String(), ",") + "}")
	}
	one := `[[[{"a":1234567890123456789012345678901}]]]`
	return json.RawMessage(`{"a":[` + strings.TrimSuffix(strings.Repeat(one+",", n/len(one)), ",") + `]}`)
}

type kindOf struct {
	name  string
	v     any
	stays [][]any
}

// kindsOf are lines of each kind that can be long.
func kindsOf(big json.RawMessage, text string) []kindOf {
	parent := strings.Repeat("p", 200)
	h := func(kind, subtype string) head { return head{kind, subtype, newUUID(), newUUID()} }
	same := [][]any{{"type"}, {"uuid"}, {"session_id"}}
	system := append([][]any{{"subtype"}}, same...)
	spoke := append([][]any{{"parent_tool_use_id"}, {"message", "role"}}, same...)
	by := append([][]any{{"request_id"}, {"message", "id"}, {"message", "type"}, {"message", "model"}, {"message", "usage", "output_tokens"}, {"message", "content", 0, "type"}}, spoke...)
	message := func(part any) said {
		return said{head: h("assistant", ""), Parent: &parent, RequestID: "req_1", Message: spoken{
			ID: "msg_1", Type: "message", Role: "assistant", Model: "m", Content: []any{part}, Usage: tokensOf(agent.Usage{Output: 17}),
		}}
	}
	r := view.Result{Type: "result", Subtype: "success", SessionID: newUUID(), Result: text, DurationMS: 3, DurationAPIMS: 2, NumTurns: 4, Structured: big}
	denied := denial{view.ResultDenial{ID: "toolu_d", Input: big}, "Bash"}
	return []kindOf{
		{"a call", message(transcript.CallPart("toolu_1", "Write", big)), append([][]any{{"message", "content", 0, "id"}, {"message", "content", 0, "name"}}, by...)},
		{"a text", message(transcript.TextPart(text + ".")), by},
		{"a thought", message(transcript.ThinkingPart(agent.Block{Text: text + ".", Signature: "s"})), by},
		{
			"a result of a call",
			said{
				head: h("user", ""), Parent: &parent, Result: big,
				Message: userMessage{"user", []any{transcript.ResultPart("toolu_1", []any{transcript.TextPart(text)}, true)}},
			},
			append([][]any{{"message", "content", 0, "tool_use_id"}, {"message", "content", 0, "type"}, {"message", "content", 0, "is_error"}}, spoke...),
		},
		{"a message sent back", said{head: h("user", ""), Parent: &parent, Message: userMessage{"user", big}, Replay: true}, append([][]any{{"isReplay"}}, spoke...)},
		{
			"the end of a turn",
			result{Result: r, UUID: newUUID(), Denials: []denial{denied, denied}, Cost: 0.5, Usage: tokensOf(agent.Usage{Input: 5}), Deferred: transcript.CallPart("toolu_2", "Bash", big)},
			append([][]any{
				{"subtype"},
				{"duration_ms"},
				{"duration_api_ms"},
				{"num_turns"},
				{"is_error"},
				{"total_cost_usd"},
				{"usage", "input_tokens"},
				{"permission_denials", 1, "tool_use_id"},
				{"permission_denials", 1, "tool_name"},
				{"deferred_tool_use", "id"},
			}, same...),
		},
		{"a piece", streamed{head: h("stream_event", ""), Parent: &parent, Event: map[string]any{"type": "content_block_start", "index": 3, "content_block": big}}, append([][]any{{"event", "type"}, {"event", "index"}, {"parent_tool_use_id"}}, same...)},
		{"an answer", replied{"control_response", answered{Subtype: "success", RequestID: "r1", Response: big}}, [][]any{{"type"}, {"response", "request_id"}}},
		{"what a hook said", hookTold{head: h("system", "hook_response"), ID: "h1", Stdout: text, Output: text}, append([][]any{{"hook_id"}}, system...)},
		{"a notice", struct {
			head
			Data json.RawMessage `json:"data"`
		}{h("system", "notification"), big}, system},
	}
}

// An answer that cannot be put down is an error to who asked.
func TestAnswerThatIsNoJSON(t *testing.T) {
	line := encode(replied{"control_response", answered{Subtype: "success", RequestID: "r1", Response: json.RawMessage(`{`)}})
	var back replied
	if err := json.Unmarshal(line, &back); err != nil || back.Response.RequestID != "r1" || back.Response.Subtype != "error" || back.Response.Error == "" {
		t.Errorf("%s: %v", line, err)
	}
}
