package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
)

var reader = agent.ModelInfo{ID: "claude-sonnet-4-6", Provider: "anthropic", MaxOut: 64000, Thinking: thinkAdaptive, Images: true, PDF: true}

func tools() []agent.Spec {
	return []agent.Spec{
		{Name: "file-system__read", Description: "Reads <a> file.", Input: json.RawMessage(`{"type": "object", "properties": {"file_path": {"type": "string"}}}`)},
		{Name: "bash__exec", Description: "Runs a command.", Input: json.RawMessage(`{"type":"object"}`)},
	}
}

var names = map[string]string{"file-system__read": "Read", "bash__exec": "Bash"}

func call(id, tool, input string) agent.Block {
	return agent.Block{Type: agent.CallBlock, Call: &agent.Call{ID: id, Tool: tool, Input: json.RawMessage(input)}}
}

func result(id string, r agent.Result) agent.Block {
	r.ID = id
	return agent.Block{Type: agent.ResultBlock, Result: &r}
}

func text(s string) agent.Block { return agent.Block{Type: agent.TextBlock, Text: s} }

func says(role agent.Role, blocks ...agent.Block) agent.Message {
	return agent.Message{Role: role, Blocks: blocks}
}

func TestRequestGolden(t *testing.T) {
	m := New(wire.Config{Info: reader})
	bad := agent.InvalidInput("toolu_3", "bash__exec", `{"command":`, "cut")
	r := agent.Request{
		Model: "claude-sonnet-4-6",
		System: []agent.Section{
			{Name: "identity", Text: "You are dure.", Cache: true},
			{Name: "rules", Text: "Mend \"tests\".\n", Cache: true},
			{Name: "empty", Text: " \n", Cache: true},
			{Name: "extra", Text: "No mark here."},
		},
		Tools: tools(), Names: names,
		Messages: []agent.Message{
			says(agent.User, text("Mend it."), agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Data: []byte("png")}}),
			says(agent.Assistant,
				agent.Block{Type: agent.ThinkingBlock, Text: "Hm.", Signature: "c2ln", Provider: "anthropic"},
				agent.Block{Type: agent.ThinkingBlock, Provider: "anthropic", Raw: json.RawMessage(`{"type":"redacted_thinking","data":"ZGF0YQ=="}`)},
				text("I look."),
				call("toolu_1", "file-system__read", `{ "file_path": "a.go" }`),
				call("toolu_2", "bash__exec", `{"command":"go test"}`),
				agent.Block{Type: agent.CallBlock, Call: &bad},
			),
			says(agent.User,
				result("toolu_1", agent.OK("package a")),
				result("toolu_2", agent.Failure(agent.ErrTimeout, "too slow", "")),
				result("toolu_3", agent.Result{Status: agent.StatusError}),
			),
			says(agent.User, text("And hurry.")),
		},
		Tail:     "It is noon.",
		Thinking: 2000,
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, wiretest.MustEncode(t, m, r), "", "  "); err != nil {
		t.Fatal(err)
	}
	wiretest.Golden(t, "testdata/request.json", append(pretty.Bytes(), '\n'))
}

// part returns one member of an encoded request.
func part(t *testing.T, body []byte, name string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	return string(members[name])
}

func TestMessages(t *testing.T) {
	raw := func(s string) agent.Block {
		return agent.Block{Type: agent.RawBlock, Provider: "anthropic", Raw: json.RawMessage(s)}
	}
	document := func(kind, name, data string) agent.Block {
		return agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: kind, Name: name, Data: []byte(data)}}
	}
	hi := says(agent.User, text("hi"))
	for _, c := range []struct {
		name     string
		messages []agent.Message
		tail     string
		want     string
	}{
		{
			"neighbours of one role are one message",
			[]agent.Message{hi, says(agent.User, text("there"))},
			"",
			`[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"there"}]}]`,
		},
		{
			"empty text is left out",
			[]agent.Message{says(agent.User, text(""), text("hi"), text(" \n\t"))},
			"",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]}]`,
		},
		{
			"a message of nothing is left out, and its neighbours meet",
			[]agent.Message{hi, says(agent.Assistant, text("")), says(agent.User, text("you?"))},
			"",
			`[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"you?"}]}]`,
		},
		{
			"thinking of others and without signature",
			[]agent.Message{hi, says(agent.Assistant,
				agent.Block{Type: agent.ThinkingBlock, Text: "a", Signature: "s", Provider: "openai"},
				agent.Block{Type: agent.ThinkingBlock, Text: "b", Provider: "anthropic"},
				agent.Block{Type: agent.ThinkingBlock, Text: "", Signature: "s", Provider: "anthropic"}, text("c"))},
			"",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"c"}]}]`,
		},
		{
			"raw blocks go back as they came, broken ones not",
			[]agent.Message{hi, says(agent.Assistant, raw(`{"type":"server_tool_use", "x" : 1}`), raw(`{"type":`), raw(`1`), text("c"))},
			"",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"server_tool_use","x":1},{"type":"text","text":"c"}]}]`,
		},
		{
			"an answer to be continued takes no tail",
			[]agent.Message{hi, says(agent.Assistant, text("so far"))},
			"now",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"so far"}]}]`,
		},
		{"a tail alone", nil, "now", `[{"role":"user","content":[{"type":"text","text":"now"}]}]`},
		{
			"names and ids that the API would refuse",
			[]agent.Message{
				hi,
				says(agent.Assistant, call("functions.x:0", "my tool.é"+strings.Repeat("y", 100), `[1]`), call("", "", `nonsense`)),
				says(agent.User, result("functions.x:0", agent.OK("1")), result("", agent.Result{})),
			},
			"",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[` +
				`{"type":"tool_use","id":"functions_x_0","name":"my_tool__` + strings.Repeat("y", 55) + `","input":{}},{"type":"tool_use","id":"unknown","name":"unknown","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions_x_0","content":"1"},{"type":"tool_result","tool_use_id":"unknown"}]}]`,
		},
		{
			"structured output, and media in results",
			[]agent.Message{
				hi, says(agent.Assistant, call("a", "t", `{}`), call("b", "t", `{}`)),
				says(agent.User, result("a", agent.Result{Output: json.RawMessage(`{"n":1}`)}), result("b", agent.Result{Text: "see", Blocks: []agent.Block{
					{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/tiff", Name: "x.tiff"}}, document("application/pdf", "", "pdf"), document("text/plain", "a.txt", "abc"),
				}})),
			},
			"",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"t","input":{}},{"type":"tool_use","id":"b","name":"t","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"{\"n\":1}"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"see"},` +
				`{"type":"text","text":"[image x.tiff (image/tiff) is not shown: this model cannot read it]"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"cGRm"}},` +
				`{"type":"document","title":"a.txt","source":{"type":"text","media_type":"text/plain","data":"abc"}}]}]}]`,
		},
		{
			"IDs that come again",
			[]agent.Message{
				hi, says(agent.Assistant, call("c:0", "t", "{}"), call("c_0", "t", "{}")),
				says(agent.User, result("c:0", agent.OK("1")), result("c_0", agent.OK("2"))),
				says(agent.Assistant, call("c:0", "t", "{}")), says(agent.User, result("c:0", agent.OK("3"))),
			},
			"",
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"c_0","name":"t","input":{}},{"type":"tool_use","id":"c_0_2","name":"t","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c_0","content":"1"},{"type":"tool_result","tool_use_id":"c_0_2","content":"2"}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"c_0_3","name":"t","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c_0_3","content":"3"}]}]`,
		},
		{
			"hostile text",
			[]agent.Message{says(agent.User, text("\x00\x1f\"\\\xff</script>é\u2028"))},
			"",
			`[{"role":"user","content":[{"type":"text","text":"\u0000\u001f\"\\�</script>é` + "\u2028" + `"}]}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := wiretest.MustEncode(t, New(wire.Config{Info: reader}), agent.Request{Messages: c.messages, Tail: c.tail})
			got := strings.ReplaceAll(part(t, body, "messages"), string(cacheMark), "")
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestParams(t *testing.T) {
	half := 0.5
	budget := agent.ModelInfo{ID: "m", MaxOut: 4096, Thinking: thinkBudget}
	hi := []agent.Message{says(agent.User, text("hi"))}
	loop := []agent.Message{hi[0], says(agent.Assistant, call("a", "t", `{}`)), says(agent.User, result("a", agent.OK("1")))}
	for _, c := range []struct {
		name string
		info agent.ModelInfo
		req  agent.Request
		want string
	}{
		{"the model's own limit", budget, agent.Request{}, `{"model":"m","max_tokens":4096,"stream":true`},
		{"a smaller limit", budget, agent.Request{MaxTokens: 9}, `{"model":"m","max_tokens":9,"stream":true`},
		{"a limit that the model does not have", budget, agent.Request{MaxTokens: 1 << 30}, `{"model":"m","max_tokens":4096,"stream":true`},
		{"nothing is known", agent.ModelInfo{}, agent.Request{Model: "x"}, `{"model":"x","max_tokens":8192,"stream":true`},
		{"an alias", agent.ModelInfo{ID: "m-1", Aliases: []string{"m"}}, agent.Request{Model: "m"}, `{"model":"m-1","max_tokens":8192,"stream":true`},
		{"temperature", budget, agent.Request{Temperature: &half}, `{"model":"m","max_tokens":4096,"stream":true,"temperature":0.5`},
		{"a budget, which forbids temperature", budget, agent.Request{Thinking: 2000, Temperature: &half}, `{"model":"m","max_tokens":4096,"stream":true,"thinking":{"type":"enabled","budget_tokens":2000}`},
		{"a budget below the least", budget, agent.Request{Thinking: 1}, `{"model":"m","max_tokens":4096,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024}`},
		{"a budget above the limit", budget, agent.Request{Thinking: 9999}, `{"model":"m","max_tokens":4096,"stream":true,"thinking":{"type":"enabled","budget_tokens":4095}`},
		{"no room to think", budget, agent.Request{Thinking: 2000, MaxTokens: 1024}, `{"model":"m","max_tokens":1024,"stream":true`},
		{"calls made without thinking", budget, agent.Request{Thinking: 2000, Messages: loop}, `{"model":"m","max_tokens":4096,"stream":true`},
		{"adaptive", agent.ModelInfo{ID: "m", Thinking: thinkAdaptive}, agent.Request{Thinking: 1}, `{"model":"m","max_tokens":8192,"stream":true,"thinking":{"type":"adaptive","display":"summarized"}`},
		{"adaptive, off", agent.ModelInfo{ID: "m", Thinking: thinkAdaptive}, agent.Request{}, `{"model":"m","max_tokens":8192,"stream":true`},
		{"preserved", agent.ModelInfo{ID: "m", Thinking: thinkPreserved}, agent.Request{}, `{"model":"m","max_tokens":8192,"stream":true,"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`},
		{"preserved, shown", agent.ModelInfo{ID: "m", Thinking: thinkPreserved}, agent.Request{Thinking: 1}, `{"model":"m","max_tokens":8192,"stream":true,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`},
		{"a model that cannot think", agent.ModelInfo{ID: "m"}, agent.Request{Thinking: 5000}, `{"model":"m","max_tokens":8192,"stream":true`},
		{"no tools may be used", budget, agent.Request{NoTools: true, Tools: tools()[1:]}, `{"model":"m","max_tokens":4096,"stream":true,"tool_choice":{"type":"none"},"tools":[{"name":"bash__exec","description":"Runs a command.","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]`},
		{"no tools there", budget, agent.Request{NoTools: true}, `{"model":"m","max_tokens":4096,"stream":true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.req.Messages == nil {
				c.req.Messages = hi
			}
			head, _, _ := strings.Cut(string(wiretest.MustEncode(t, New(wire.Config{Info: c.info}), c.req)), `,"messages":`)
			if head != c.want {
				t.Errorf("got  %s\nwant %s", head, c.want)
			}
		})
	}
	if _, err := New(wire.Config{}).Encode(agent.Request{Tools: []agent.Spec{{Name: "x", Input: json.RawMessage(`[]`)}}}); agent.ClassOf(err) != agent.FailInvalid {
		t.Errorf("a schema that is no object: %v", err)
	}
}

// conversation returns a conversation of n steps, each of them a call.
func conversation(n int) []agent.Message {
	messages := []agent.Message{says(agent.User, text("Mend the failing test, and say when it is done."))}
	for i := range n {
		id := fmt.Sprint("toolu_", i)
		messages = append(messages,
			says(agent.Assistant, text(fmt.Sprintf("Step %d: I look at the next file.", i)), call(id, "bash__exec", `{"command":"sed -n 1,40p file.go"}`)),
			says(agent.User, result(id, agent.OK(strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"reading %s: %w\", name, err)\n\t}\n", 8)))),
		)
	}
	return messages
}

// stripped returns a body without its cache marks, and where they were.
func stripped(body []byte) (plain []byte, marks []int) {
	for {
		before, after, found := bytes.Cut(body, cacheMark)
		plain = append(plain, before...)
		if !found {
			return plain, marks
		}
		marks = append(marks, len(plain))
		body = after
	}
}

func TestPrefixIsStable(t *testing.T) {
	m := New(wire.Config{Info: reader})
	all := conversation(60)
	var before []byte
	var beforeMarks []int
	stable, total := 0, 0
	for step := range 60 {
		body := wiretest.MustEncode(t, m, agent.Request{
			System: []agent.Section{{Text: "You are dure.", Cache: true}}, Tools: tools(), Names: names,
			Messages: all[:1+2*step], Tail: fmt.Sprint("step ", step),
		})
		plain, marks := stripped(body)
		want := 4
		if step == 0 {
			want = 3
		}
		if len(marks) != want {
			t.Fatalf("step %d has %d marks, want %d", step, len(marks), want)
		}
		if step > 0 {
			last := beforeMarks[len(beforeMarks)-1]
			if len(plain) < last || !bytes.Equal(before[:last], plain[:last]) {
				t.Fatalf("step %d changed what was in front of the last mark", step)
			}
			if marks[len(marks)-2] != last {
				t.Fatalf("step %d has no mark where the request before had its last", step)
			}
			stable += last
			total += len(before)
		}
		before, beforeMarks = plain, marks
	}
	if share := float64(stable) / float64(total); share < 0.99 {
		t.Errorf("only %.2f %% of the requests stayed as they were", 100*share)
	} else {
		t.Logf("%.2f %% of each request is a byte-identical prefix of the next", 100*share)
	}
}

func TestMarksStayWithinTheLimitAndOffThinking(t *testing.T) {
	m := New(wire.Config{Info: reader})
	thought := agent.Block{Type: agent.ThinkingBlock, Text: "x", Signature: "s"}
	body := wiretest.MustEncode(t, m, agent.Request{
		System: []agent.Section{{Text: "a", Cache: true}, {Text: "b", Cache: true}, {Text: "c", Cache: true}}, Tools: tools(),
		Messages: []agent.Message{
			says(agent.User, text("1")), says(agent.Assistant, text("2")), says(agent.User, text("3")),
			says(agent.Assistant, text("4"), thought),
		},
	})
	want := `[{"role":"user","content":[{"type":"text","text":"1"}]},{"role":"assistant","content":[{"type":"text","text":"2"}]},` +
		`{"role":"user","content":[{"type":"text","text":"3"#}]},{"role":"assistant","content":[{"type":"text","text":"4"#},{"type":"thinking","thinking":"x","signature":"s"}]}]`
	if got := part(t, body, "messages"); got != strings.ReplaceAll(want, "#", string(cacheMark)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := bytes.Count(body, cacheMark); n != 4 {
		t.Errorf("%d marks", n)
	}
}

// encoding is what encoders have to pass.
func encoding() wiretest.Encoding {
	return wiretest.Encoding{
		New: func() (wiretest.Encoder, func(agent.Request) (*wire.Payload, error)) {
			m := New(wire.Config{Info: reader})
			return m, m.Payload
		},
		Talk: conversation(30), Short: conversation(2), Tools: tools(), Names: names,
	}
}

func TestReuseChangesNothing(t *testing.T) { encoding().Reuse(t) }

func TestALogInBetweenChangesNothing(t *testing.T) {
	live := agent.Request{
		Tools: []agent.Spec{{Name: "t", Description: "<&>\u2028\xff", Input: json.RawMessage(`{ "type" : "object", "title": "<a> \\u003C \u003cb\u003e" }`)}},
		Messages: []agent.Message{
			says(agent.User, text("<a> & \u2028 \xff\xfe")),
			says(agent.Assistant, agent.Block{Type: agent.RawBlock, Provider: "anthropic", Raw: json.RawMessage(`{"type": "x", "y": "<\u2028\\\\u003c>"}`)},
				call("a", "t", `{ "old_string": "if a < b && c > d", "n": 1.0, "e": "\u00e9" }`), call("b", "t", `{}`)),
			says(agent.User, result("a", agent.Result{Output: json.RawMessage(`{ "x": "<b>&" }`)}), result("b", agent.Result{Status: agent.StatusError})),
		},
	}
	encoding().Stored(t, live)
}

func TestForksAreEncodedSideBySide(t *testing.T) { encoding().Forks(t) }

func TestALongConversationCostsWhatItAdds(t *testing.T) {
	encoding().Known(t, conversation(500), 20)
}

func BenchmarkEncodeThousandthStep(b *testing.B) { encoding().Growing(b, conversation(1000)) }
