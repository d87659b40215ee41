package gemini

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

var (
	reader = agent.ModelInfo{ID: "gemini-3.8-flash", Provider: "google", MaxOut: 65536, Thinking: thinkLevel, Images: true, PDF: true}
	older  = agent.ModelInfo{ID: "gemini-2.5-pro", Provider: "google", MaxOut: 65536, Thinking: thinkBudget, Images: true, PDF: true}
)

func tools() []agent.Spec {
	return []agent.Spec{
		{Name: "file-system__read", Description: "Reads <a> file.", Input: json.RawMessage(`{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"file_path": {"type": "string", "minLength": 1}, "limit": {"type": "integer", "exclusiveMinimum": 0}}, "required": ["file_path"], "additionalProperties": false}`)},
		{Name: "bash__exec", Description: "Runs a command.", Input: json.RawMessage(`{"type":"object"}`)},
		{Name: "clock__now", Description: "Tells the time.", Input: json.RawMessage(`{"type":"object","properties":{}}`)},
	}
}

var names = map[string]string{"file-system__read": "Read", "bash__exec": "Bash"}

func callBlock(id, tool, input, signature, provider string) agent.Block {
	return agent.Block{Type: agent.CallBlock, Call: &agent.Call{ID: id, Tool: tool, Input: json.RawMessage(input)}, Signature: signature, Provider: provider}
}

func foreignCall(id, tool, input string) agent.Block { return callBlock(id, tool, input, "", "") }

func resultBlock(id string, r agent.Result) agent.Block {
	r.ID = id
	return agent.Block{Type: agent.ResultBlock, Result: &r}
}

func plain(s string) agent.Block { return agent.Block{Type: agent.TextBlock, Text: s} }

func media(kind agent.BlockType, mime, name, data string) agent.Block {
	return agent.Block{Type: kind, Media: &agent.Media{Type: mime, Name: name, Data: []byte(data)}}
}

func says(role agent.Role, blocks ...agent.Block) agent.Message {
	return agent.Message{Role: role, Blocks: blocks}
}

func TestRequestGolden(t *testing.T) {
	half := 0.5
	bad := agent.InvalidInput("fc-3", "bash__exec", `{"command":`, "cut")
	r := agent.Request{
		System: []agent.Section{
			{Name: "identity", Text: "You are dure.", Cache: true},
			{Name: "empty", Text: " \n", Cache: true},
			{Name: "rules", Text: "Mend \"tests\".\n"},
		},
		Tools: tools(), Names: names,
		Messages: []agent.Message{
			says(agent.User, plain("Mend it."), media(agent.ImageBlock, "image/png", "", "png"), media(agent.DocumentBlock, "application/pdf", "a.pdf", "pdf")),
			says(agent.Assistant,
				agent.Block{Type: agent.ThinkingBlock, Text: "Hm.", Provider: "google"},
				plain("I look."),
				callBlock("fc-1", "file-system__read", `{ "file_path": "a.go" }`, "c2ln", "google"),
				foreignCall("fc-2", "bash__exec", `{"command":"go test"}`),
				agent.Block{Type: agent.CallBlock, Call: &bad},
			),
			says(agent.User,
				resultBlock("fc-1", agent.Result{Text: "package a", Blocks: []agent.Block{media(agent.ImageBlock, "image/png", "", "shot")}}),
				resultBlock("fc-2", agent.Failure(agent.ErrTimeout, "too slow", "")),
				resultBlock("fc-3", agent.Result{Status: agent.StatusError}),
			),
			says(agent.User, plain("And hurry.")),
		},
		Tail:     "It is noon.",
		Thinking: 2000, Temperature: &half, NoTools: true,
	}
	for _, info := range []agent.ModelInfo{reader, older} {
		var pretty bytes.Buffer
		body := wiretest.MustEncode(t, New(wire.Config{Info: info}), r)
		check(t, body, info)
		if err := json.Indent(&pretty, body, "", "  "); err != nil {
			t.Fatal(err)
		}
		wiretest.Golden(t, "testdata/request-"+info.Thinking+".json", append(pretty.Bytes(), '\n'))
	}
}

// contents returns the conversation in an encoded request.
func contents(t *testing.T, body []byte) string {
	t.Helper()
	var members struct {
		Contents json.RawMessage `json:"contents"`
	}
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	return string(members.Contents)
}

func TestContents(t *testing.T) {
	raw := func(s string) agent.Block {
		return agent.Block{Type: agent.RawBlock, Provider: "google", Raw: json.RawMessage(s)}
	}
	hi := says(agent.User, plain("hi"))
	const (
		user  = `{"role":"user","parts":[`
		model = `{"role":"model","parts":[`
		said  = user + `{"text":"hi"}]}`
		goOn  = user + `{"text":"Continue."}]}`
	)
	for _, c := range []struct {
		name     string
		messages []agent.Message
		tail     string
		want     string
	}{
		{"neighbours of one role are one turn", []agent.Message{hi, says(agent.User, plain("there"))}, "", user + `{"text":"hi"},{"text":"there"}]}`},
		{"empty text is left out", []agent.Message{says(agent.User, plain(""), plain("hi"), plain(" \n\t"))}, "", said},
		{"a message of nothing is left out, and its neighbours meet", []agent.Message{hi, says(agent.Assistant, plain("")), says(agent.User, plain("you?"))}, "", user + `{"text":"hi"},{"text":"you?"}]}`},
		{
			"thinking goes back only with a signature of the provider",
			[]agent.Message{hi, says(agent.Assistant,
				agent.Block{Type: agent.ThinkingBlock, Text: "a", Signature: "QQ==", Provider: "anthropic"},
				agent.Block{Type: agent.ThinkingBlock, Text: "b", Provider: "google"},
				agent.Block{Type: agent.ThinkingBlock, Text: "c", Signature: "Qg==", Provider: "google"}, plain("d")), hi},
			"",
			said + `,` + model + `{"thought":true,"text":"c","thoughtSignature":"Qg=="},{"text":"d"}]},` + said,
		},
		{
			"a signature stays on the part that had it, even an empty one",
			[]agent.Message{hi, says(agent.Assistant, plain("a"),
				agent.Block{Type: agent.TextBlock, Text: "b", Signature: "Qg==", Provider: "google"},
				agent.Block{Type: agent.TextBlock, Signature: "Q-_=", Provider: "google"},
				agent.Block{Type: agent.TextBlock, Text: "c", Signature: "Qg==", Provider: "openai"},
				agent.Block{Type: agent.TextBlock, Text: "d", Signature: "no base64!", Provider: "google"}), hi},
			"",
			said + `,` + model + `{"text":"a"},{"text":"b","thoughtSignature":"Qg=="},{"text":"","thoughtSignature":"Q-_="},{"text":"c"},{"text":"d"}]},` + said,
		},
		{
			"raw parts go back as they came; what could break a pair does not",
			[]agent.Message{hi, says(agent.Assistant, raw(`{"executableCode": {"code" : "<1>"}, "thoughtSignature": "QQ=="}`), raw(`{"functionCall":{}}`), raw(`{"function_response":{}}`),
				raw(`{"text":"x"}`), raw(`{"x":`), raw(`1`), raw(`{}`), agent.Block{Type: agent.RawBlock, Provider: "openai", Raw: json.RawMessage(`{"a":1}`)}, plain("c")), hi},
			"",
			said + `,` + model + `{"executableCode":{"code":"<1>"},"thoughtSignature":"QQ=="},{"text":"c"}]},` + said,
		},
		{"the user has the last word", []agent.Message{hi, says(agent.Assistant, plain("so far"))}, "", said + `,` + model + `{"text":"so far"}]},` + goOn},
		{"which may be the tail", []agent.Message{hi, says(agent.Assistant, plain("so far"))}, "now", said + `,` + model + `{"text":"so far"}]},` + user + `{"text":"now"}]}`},
		{"the user has the first word", []agent.Message{says(agent.Assistant, plain("so far")), hi}, "", user + string(unseen) + `]},` + model + `{"text":"so far"}]},` + said},
		{"a tail alone", nil, "now", user + `{"text":"now"}]}`},
		{"nothing at all", nil, "", goOn},
		{
			"calls by others are told apart by the documented signature, on the first of them",
			[]agent.Message{hi, says(agent.Assistant, foreignCall("toolu_1", "t", `{}`), foreignCall("toolu_2", "t", `{}`)), says(agent.User, resultBlock("toolu_1", agent.OK("1")), resultBlock("toolu_2", agent.OK("2")))},
			"",
			said + `,` + model + `{"functionCall":{"name":"t","id":"toolu_1","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"t","id":"toolu_2","args":{}}}]},` +
				user + `{"functionResponse":{"name":"t","id":"toolu_1","response":{"output":"1"}}},{"functionResponse":{"name":"t","id":"toolu_2","response":{"output":"2"}}}]}`,
		},
		{
			"responses come in the order of the calls, in front of what was said meanwhile",
			[]agent.Message{
				hi, says(agent.Assistant, callBlock("a", "t", `{}`, "QQ==", "google"), foreignCall("b", "u", `{}`)),
				says(agent.User, plain("wait"), resultBlock("b", agent.OK("2"))), says(agent.User, resultBlock("a", agent.OK("1")), resultBlock("a", agent.OK("again"))),
			},
			"",
			said + `,` + model + `{"functionCall":{"name":"t","id":"a","args":{}},"thoughtSignature":"QQ=="},{"functionCall":{"name":"u","id":"b","args":{}}}]},` +
				user + `{"functionResponse":{"name":"t","id":"a","response":{"output":"1"}}},{"functionResponse":{"name":"u","id":"b","response":{"output":"2"}}},{"text":"wait"}]}`,
		},
		{
			"results without a call are left out, calls without a result are answered",
			[]agent.Message{says(agent.User, resultBlock("gone", agent.OK("x"))), hi, says(agent.Assistant, callBlock("a", "t", `{}`, "QQ==", "google")), says(agent.Assistant, plain("and")), says(agent.User, resultBlock("z", agent.OK("x")))},
			"",
			said + `,` + model + `{"functionCall":{"name":"t","id":"a","args":{}},"thoughtSignature":"QQ=="},{"text":"and"}]},` +
				user + `{"functionResponse":{"name":"t","id":"a","response":{"error":"The call has no result."}}}]}`,
		},
		{
			"results that answer nothing leave no empty turn",
			[]agent.Message{hi, says(agent.Assistant, plain("a")), says(agent.User, resultBlock("z", agent.OK("x"))), says(agent.Assistant, plain("b")), hi},
			"",
			said + `,` + model + `{"text":"a"},{"text":"b"}]},` + said,
		},
		{
			"names and ids that the API would refuse",
			[]agent.Message{
				hi,
				says(agent.Assistant, callBlock("functions.x:0", "9 tool.é"+strings.Repeat("y", 100), `[1]`, "QQ==", "google"), foreignCall("", "", `nonsense`)),
				says(agent.User, resultBlock("functions.x:0", agent.OK("1")), resultBlock("", agent.Result{})),
			},
			"",
			said + `,` + model + `{"functionCall":{"name":"_9_tool__` + strings.Repeat("y", 55) + `","id":"functions_x_0","args":{}},"thoughtSignature":"QQ=="},{"functionCall":{"name":"unknown","id":"unknown","args":{}}}]},` +
				user + `{"functionResponse":{"name":"_9_tool__` + strings.Repeat("y", 55) + `","id":"functions_x_0","response":{"output":"1"}}},{"functionResponse":{"name":"unknown","id":"unknown","response":{"output":""}}}]}`,
		},
		{
			"structured output, and media in results",
			[]agent.Message{
				hi, says(agent.Assistant, callBlock("a", "t", `{}`, "QQ==", "google"), foreignCall("b", "t", `{}`)),
				says(agent.User, resultBlock("a", agent.Result{Output: json.RawMessage(`{"n":1}`)}), resultBlock("b", agent.Result{Text: "see", Blocks: []agent.Block{
					media(agent.ImageBlock, "image/gif", "x.gif", "gif"), media(agent.ImageBlock, "image/heic", "", "heic"), media(agent.DocumentBlock, "application/pdf", "", "pdf"),
					media(agent.DocumentBlock, "text/plain", "a.txt", "abc"), plain("end"),
					{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", URL: "https://x.example/y.png"}},
				}})),
			},
			"",
			said + `,` + model + `{"functionCall":{"name":"t","id":"a","args":{}},"thoughtSignature":"QQ=="},{"functionCall":{"name":"t","id":"b","args":{}}}]},` +
				user + `{"functionResponse":{"name":"t","id":"a","response":{"output":"{\"n\":1}"}}},{"functionResponse":{"name":"t","id":"b","response":{"output":"see\n[image x.gif (image/gif) is not shown: this model cannot read it]\na.txt:\nabc\nend"},` +
				`"parts":[{"inlineData":{"mimeType":"application/pdf","data":"cGRm"}}]}},{"inlineData":{"mimeType":"image/heic","data":"aGVpYw=="}},{"fileData":{"mimeType":"image/png","fileUri":"https://x.example/y.png"}}]}`,
		},
		{
			"media that it cannot be shown",
			[]agent.Message{says(agent.User, agent.Block{Type: agent.ImageBlock}, agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", URL: "file:///etc/passwd"}}, media(agent.ImageBlock, "application/pdf", "", "x"))},
			"",
			user + `{"text":"[image without a name (unknown type) is not shown: this model cannot read it]"},{"text":"[image without a name (image/png) is not shown: this model cannot read it]"},{"text":"[image without a name (application/pdf) is not shown: this model cannot read it]"}]}`,
		},
		{"hostile text", []agent.Message{says(agent.User, plain("\x00\x1f\"\\\xff</script>é\u2028"))}, "", user + `{"text":"\u0000\u001f\"\\` + "\ufffd" + `</script>é` + "\u2028" + `"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := wiretest.MustEncode(t, New(wire.Config{Info: reader}), agent.Request{Messages: c.messages, Tail: c.tail})
			check(t, body, reader)
			if got := contents(t, body); got != "["+c.want+"]" {
				t.Errorf("got  %s\nwant [%s]", got, c.want)
			}
		})
	}
}

func TestIDsThatOthersUseTwice(t *testing.T) {
	var messages []agent.Message
	for range 3 {
		messages = append(messages, says(agent.User, plain("go on")), says(agent.Assistant, foreignCall("call.0", "t", `{}`), foreignCall("call_0_2", "t", `{}`)),
			says(agent.User, resultBlock("call_0_2", agent.OK("b")), resultBlock("call.0", agent.OK("a"))))
	}
	used := New(wire.Config{Info: reader})
	for n := range len(messages) {
		r := agent.Request{Messages: messages[:n+1]}
		body := wiretest.MustEncode(t, used, r)
		check(t, body, reader)
		if fresh := wiretest.MustEncode(t, New(wire.Config{Info: reader}), r); !bytes.Equal(body, fresh) {
			t.Errorf("with %d messages:\ngot  %s\nwant %s", n+1, body, fresh)
		}
	}
	body := string(wiretest.MustEncode(t, used, agent.Request{Messages: messages}))
	for _, want := range []string{`"id":"call_0","response":{"output":"a"}`, `"id":"call_0_2","response":{"output":"b"}`, `"id":"call_0_3","response":{"output":"a"}`, `"id":"call_0_2_2","response":{"output":"b"}`} {
		if strings.Count(body, want) != 1 {
			t.Errorf("%s is not in %s", want, body)
		}
	}
}

func TestParams(t *testing.T) {
	half := 0.5
	for _, c := range []struct {
		name string
		info agent.ModelInfo
		req  agent.Request
		want string
	}{
		{"the model's own limit", older, agent.Request{}, `"generationConfig":{"maxOutputTokens":65536}}`},
		{"a smaller limit", older, agent.Request{MaxTokens: 9}, `"generationConfig":{"maxOutputTokens":9}}`},
		{"a limit that the model does not have", older, agent.Request{MaxTokens: 1 << 30}, `"generationConfig":{"maxOutputTokens":65536}}`},
		{"nothing is known", agent.ModelInfo{ID: "x"}, agent.Request{Thinking: 9999}, ``},
		{"temperature", agent.ModelInfo{ID: "x"}, agent.Request{Temperature: &half}, `"generationConfig":{"temperature":0.5}}`},
		{"a budget", older, agent.Request{Thinking: 2000, MaxTokens: 1}, `"generationConfig":{"maxOutputTokens":1,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2000}}}`},
		{"a budget below the least", older, agent.Request{Thinking: 1, MaxTokens: 1}, `"generationConfig":{"maxOutputTokens":1,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":512}}}`},
		{"a budget above the most", older, agent.Request{Thinking: 99_999, MaxTokens: 1}, `"generationConfig":{"maxOutputTokens":1,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":24576}}}`},
		{"little", reader, agent.Request{Thinking: 2048, MaxTokens: 1}, `"generationConfig":{"maxOutputTokens":1,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}}`},
		{"some", reader, agent.Request{Thinking: 8192, MaxTokens: 1}, `"generationConfig":{"maxOutputTokens":1,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"MEDIUM"}}}`},
		{"much", reader, agent.Request{Thinking: 8193, MaxTokens: 1}, `"generationConfig":{"maxOutputTokens":1,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}}`},
		{"no tools may be used", agent.ModelInfo{ID: "x"}, agent.Request{NoTools: true, Tools: tools()[1:2]}, `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}`},
		{"no tools there", agent.ModelInfo{ID: "x"}, agent.Request{NoTools: true}, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.req.Messages = hi.Messages
			_, got, ok := strings.Cut(string(wiretest.MustEncode(t, New(wire.Config{Info: c.info}), c.req)), `{"text":"hi"}]}]`)
			if got = strings.TrimPrefix(got, ","); !ok || got != c.want && got != c.want+"}" {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestTools(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	r := agent.Request{Tools: []agent.Spec{{Name: "a.b", Input: object}, {Name: "a-b", Input: object}, {Name: "a:b", Input: object}, {Name: "1st", Input: object}, {Name: "-v", Input: object}, {Name: "x", Input: object}}, Names: map[string]string{"x": "X"}}
	body := string(wiretest.MustEncode(t, New(wire.Config{Info: reader}), r))
	want := `{"tools":[{"functionDeclarations":[{"name":"a_b","description":"","parametersJsonSchema":{"type":"object"}},{"name":"a-b","description":"","parametersJsonSchema":{"type":"object"}},` +
		`{"name":"_1st","description":"","parametersJsonSchema":{"type":"object"}},{"name":"_-v","description":"","parametersJsonSchema":{"type":"object"}},{"name":"X","description":"","parametersJsonSchema":{"type":"object"}}]}],"contents"`
	if got, _, _ := strings.Cut(body, `:[{"role"`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var got []string
	for _, name := range []string{"a_b", "a-b", "_1st", "_-v", "X", "x", "other"} {
		got = append(got, canonical(r, name))
	}
	if s := fmt.Sprint(got); s != "[a.b a-b 1st -v x x other]" {
		t.Errorf("back it is %s", s)
	}
	if _, err := New(wire.Config{}).Encode(agent.Request{Tools: []agent.Spec{{Name: "x", Input: json.RawMessage(`[]`)}}}); agent.ClassOf(err) != agent.FailInvalid {
		t.Errorf("a schema that is no object: %v", err)
	}
}

// conversation returns a conversation of n steps, each of them a call.
func conversation(n int) []agent.Message {
	messages := []agent.Message{says(agent.User, plain("Mend the failing test, and say when it is done."))}
	for i := range n {
		id := fmt.Sprint("call_", i)
		messages = append(messages,
			says(agent.Assistant, plain(fmt.Sprintf("Step %d: I look at the next file.", i)), callBlock(id, "bash__exec", `{"command":"sed -n 1,40p file.go"}`, "c2lnbmF0dXJl", "google")),
			says(agent.User, resultBlock(id, agent.OK(strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"reading %s: %w\", name, err)\n\t}\n", 8)))),
		)
	}
	return messages
}

func TestPrefixIsStable(t *testing.T) {
	m := New(wire.Config{Info: reader})
	all := conversation(60)
	var before []byte
	stable, total := 0, 0
	for step := range 60 {
		tail := fmt.Sprint("step ", step)
		body := wiretest.MustEncode(t, m, agent.Request{
			System: []agent.Section{{Text: "You are dure.", Cache: true}}, Tools: tools(), Names: names,
			Messages: all[:1+2*step], Tail: tail,
		})
		if step > 0 {
			keep := bytes.LastIndex(before, []byte(`,{"text":"step `))
			if keep < 0 || !bytes.HasPrefix(body, before[:keep]) {
				t.Fatalf("step %d changed what was in front of the tail", step)
			}
			stable += keep
			total += len(before)
		}
		before = body
	}
	if share := float64(stable) / float64(total); share < 0.98 {
		t.Errorf("only %.2f %% of the requests stayed as they were", 100*share)
	} else {
		t.Logf("%.2f %% of each request is a byte-identical prefix of the next", 100*share)
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
		Tools: []agent.Spec{{Name: "t", Description: "<&>\u2028\xff", Input: json.RawMessage(`{ "type" : "object", "title": "<a> \\u003C \u003cb\u003e", "properties": {"<x>": {"pattern": "<\u00e9>", "enum": ["<", "\u003e"]}} }`)}},
		Messages: []agent.Message{
			says(agent.User, plain("<a> & \u2028 \xff\xfe")),
			says(agent.Assistant, agent.Block{Type: agent.RawBlock, Provider: "google", Raw: json.RawMessage(`{"toolCall": {"y": "<\u2028\\\\u003c>"}}`)},
				foreignCall("a", "t", `{ "old_string": "if a < b && c > d", "n": 1.0, "e": "\u00e9" }`), foreignCall("b", "t", `{}`)),
			says(agent.User, resultBlock("a", agent.Result{Output: json.RawMessage(`{ "x": "<b>&" }`)}), resultBlock("b", agent.Result{Status: agent.StatusError})),
		},
	}
	encoding().Stored(t, live)
}

func TestForksAreEncodedSideBySide(t *testing.T) { encoding().Forks(t) }

func TestALongConversationCostsWhatItAdds(t *testing.T) {
	encoding().Known(t, conversation(500), 20)
}

func BenchmarkEncodeThousandthStep(b *testing.B) { encoding().Growing(b, conversation(1000)) }
