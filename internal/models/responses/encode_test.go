package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/models/script"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
)

var (
	rate = 2.5

	// reader takes cache marks, and plainReader does not.
	reader      = agent.ModelInfo{ID: "gpt-6.2-sol", Provider: "openai", MaxOut: 128000, Thinking: "effort", Images: true, PDF: true, Price: &agent.Price{CacheWrite: &rate}}
	plainReader = agent.ModelInfo{ID: "gpt-4.1", Provider: "openai", MaxOut: 32768, Images: true, PDF: true}
)

func someTools() []agent.Spec {
	return []agent.Spec{
		{Name: "file-system__read", Description: "Reads <a> file.", Input: json.RawMessage(`{"type": "object", "properties": {"file_path": {"type": "string"}}}`)},
		{Name: "bash__exec", Description: "Runs a command.", Input: json.RawMessage(`{"type":"object","anyOf":[{"required":["command"]},{"required":["argv"]}]}`)},
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

func words(s string) agent.Block { return agent.Block{Type: agent.TextBlock, Text: s} }

func says(role agent.Role, blocks ...agent.Block) agent.Message {
	return agent.Message{Role: role, Blocks: blocks}
}

func thought(id, sealed string) agent.Block {
	raw := fmt.Sprintf(`{"id":%q,"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":%q}`, id, sealed)
	return agent.Block{Type: agent.ThinkingBlock, Text: "Hm.", Provider: "openai", Raw: json.RawMessage(raw)}
}

func media(kind agent.BlockType, mime, name, data string) agent.Block {
	return agent.Block{Type: kind, Media: &agent.Media{Type: mime, Name: name, Data: []byte(data)}}
}

func TestRequestGolden(t *testing.T) {
	bad := agent.InvalidInput("call_3", "bash__exec", `{"command":`, "cut")
	commentary := words("I look.")
	commentary.Provider, commentary.Raw = "openai", json.RawMessage(`{"phase":"commentary"}`)
	r := agent.Request{
		System: []agent.Section{
			{Name: "identity", Text: "You are dure.", Cache: true},
			{Name: "rules", Text: "Mend \"tests\".\n", Cache: true},
			{Name: "empty", Text: " \n", Cache: true},
			{Name: "extra", Text: "No mark here."},
		},
		Tools: someTools(), Names: names,
		Messages: []agent.Message{
			says(agent.User, words("Mend it."), media(agent.ImageBlock, "image/png", "", "png")),
			says(agent.Assistant, thought("rs_1", "c2VjcmV0"), commentary,
				call("call_1", "file-system__read", `{ "file_path": "a.go" }`),
				call("call_2", "bash__exec", `{"command":"go test"}`),
				agent.Block{Type: agent.CallBlock, Call: &bad},
			),
			says(agent.User,
				result("call_1", agent.OK("package a")),
				result("call_2", agent.Failure(agent.ErrTimeout, "too slow", "")),
				result("call_3", agent.Result{Status: agent.StatusError}),
			),
			says(agent.User, words("And hurry.")),
		},
		Tail:     "It is noon.",
		Thinking: 2000,
	}
	for name, info := range map[string]agent.ModelInfo{"marked": reader, "plain": plainReader} {
		var pretty bytes.Buffer
		body := wiretest.MustEncode(t, New(wire.Config{Info: info}), r)
		if err := json.Indent(&pretty, body, "", "  "); err != nil {
			t.Fatal(err)
		}
		wiretest.Golden(t, "testdata/request-"+name+".json", append(pretty.Bytes(), '\n'))
	}
}

// memberOf returns one member of an encoded request.
func memberOf(t *testing.T, body []byte, name string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	return string(members[name])
}

// Pieces of requests, so that tables can be read.
const (
	userHi = `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`
	saidC  = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"c"}]}`
)

func made(id string) string {
	return `{"type":"function_call","call_id":"` + id + `","name":"t","arguments":"{}"}`
}

func answered(id, text string) string {
	return `{"type":"function_call_output","call_id":"` + id + `","output":"` + text + `"}`
}

func TestMessages(t *testing.T) {
	raw := func(s string) agent.Block {
		return agent.Block{Type: agent.RawBlock, Provider: "openai", Raw: json.RawMessage(s)}
	}
	hi := says(agent.User, words("hi"))
	one := agent.OK("1")
	const (
		rs1 = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"x"}`
		rs2 = `{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"y"}`
	)
	long := "toolu_" + strings.Repeat("x", 100)
	for _, c := range []struct {
		name     string
		messages []agent.Message
		tail     string
		want     []string
	}{
		{"neighbours of one role", []agent.Message{hi, says(agent.User, words("there"), words("!"))}, "", []string{
			userHi, `{"type":"message","role":"user","content":[{"type":"input_text","text":"there"},{"type":"input_text","text":"!"}]}`,
		}},
		{"empty text is left out", []agent.Message{says(agent.User, words(""), words("hi"), words(" \n\t"))}, "", []string{userHi}},
		{"a message of nothing is left out", []agent.Message{hi, says(agent.Assistant, words("")), says(agent.User)}, "", []string{userHi}},
		{"the answer comes first", []agent.Message{says(agent.Assistant, words("c")), hi}, "", []string{saidC, userHi}},
		{"a role that nobody knows is the user's", []agent.Message{says("system", words("hi"))}, "", []string{userHi}},
		{"reasoning goes back before what it led to", []agent.Message{hi, says(agent.Assistant, thought("rs_1", "x"), words("c"), thought("rs_2", "y"), call("a", "t", `{}`)), says(agent.User, result("a", one))}, "", []string{
			userHi, rs1, saidC, rs2, made("a"), answered("a", "1"),
		}},
		{"two reasonings in a row", []agent.Message{says(agent.Assistant, thought("rs_1", "x"), thought("rs_2", "y"), words("c"))}, "", []string{rs1, rs2, saidC}},
		{"reasoning that nothing follows", []agent.Message{says(agent.Assistant, thought("rs_1", "x"), words("c"), thought("rs_2", "y"), words(" ")), hi}, "", []string{rs1, saidC, userHi}},
		{"reasoning twice", []agent.Message{says(agent.Assistant, thought("rs_1", "x"), words("c")), says(agent.Assistant, thought("rs_1", "x"), words("c"))}, "", []string{rs1, saidC, saidC}},
		{"thinking of others, of nobody, and mere names", []agent.Message{hi, says(agent.Assistant,
			agent.Block{Type: agent.ThinkingBlock, Text: "a", Signature: "s", Provider: "anthropic"},
			agent.Block{Type: agent.ThinkingBlock, Text: "b", Signature: "s", Provider: "openai"},
			agent.Block{Type: agent.ThinkingBlock, Text: "b", Provider: "openai", Raw: json.RawMessage(`{"type":"redacted_thinking","data":"x"}`)},
			agent.Block{Type: agent.ThinkingBlock, Text: "b", Provider: "openai", Raw: json.RawMessage(`{"type":"reasoning","id":"msg_1","encrypted_content":"x"}`)},
			thought("rs_9", ""), thought("rs_"+strings.Repeat("9", 62), "x"), words("c"))}, "", []string{userHi, saidC}},
		{"open reasoning", []agent.Message{says(agent.Assistant, agent.Block{Type: agent.ThinkingBlock, Provider: "openai", Raw: json.RawMessage(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null,"status":null,"content":[{"type":"reasoning_text","text":"<a>"}]}`)}, words("c"))}, "", []string{
			`{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"<a>"}]}`, saidC,
		}},
		{"raw items go back as they came, broken ones and halves of pairs not", []agent.Message{hi, says(agent.Assistant,
			thought("rs_1", "x"), raw(`{"type":"web_search_call", "id" : "ws_1"}`), raw(`{"type":`), raw(`1`), raw(`{"id":"x"}`), raw(`{"type":"item_reference","id":"x"}`),
			raw(`{"type":"custom_tool_call","call_id":"k1","input":"x"}`), raw(`{"type":"shell_call","call_id":"k2"}`), raw(`{"type":"shell_call_output","call_id":"k2"}`),
			raw(`{"type":"shell_call_output","call_id":"k3"}`),
			agent.Block{Type: agent.RawBlock, Provider: "anthropic", Raw: json.RawMessage(`{"type":"server_tool_use"}`)}, words("c"))}, "", []string{
			userHi, rs1, `{"type":"web_search_call","id":"ws_1"}`, `{"type":"shell_call","call_id":"k2"}`, `{"type":"shell_call_output","call_id":"k2"}`, saidC,
		}},
		{"an answer to be continued takes no tail", []agent.Message{hi, says(agent.Assistant, words("c"))}, "now", []string{userHi, saidC}},
		{"a tail alone", nil, "hi", []string{userHi}},
		{"a tail behind results", []agent.Message{says(agent.Assistant, call("a", "t", `{}`)), says(agent.User, result("a", one))}, "hi", []string{made("a"), answered("a", "1"), userHi}},
		{"results that answer nothing, and second ones", []agent.Message{says(agent.User, result("a", one)), says(agent.Assistant, call("a", "t", `{}`)), says(agent.User, result("a", one), result("a", agent.OK("2")), result("b", one))}, "", []string{made("a"), answered("a", "1")}},
		{"calls without a result", []agent.Message{hi, says(agent.Assistant, call("a", "t", `{}`)), says(agent.Assistant, call("b", "t", `{}`)), says(agent.User, result("b", one)), says(agent.Assistant, words("c"), call("d", "t", `{}`))}, "hi", []string{
			userHi, made("a"), made("b"), answered("b", "1"), answered("a", lost), saidC, made("d"), answered("d", lost), userHi,
		}},
		{"the same ID in every answer", []agent.Message{
			says(agent.Assistant, call("0", "t", `{}`), call("0", "t", `{}`)), says(agent.User, result("0", one), result("0", agent.OK("2"))),
			says(agent.Assistant, call("0", "t", `{}`)), says(agent.User, result("0", agent.OK("3"))),
		}, "", []string{made("0"), made("0_2"), answered("0", "1"), answered("0_2", "2"), made("0_3"), answered("0_3", "3")}},
		{"IDs that the API would refuse", []agent.Message{
			says(agent.Assistant, call("functions.x:0", "t", `[1]`), call("functions_x_0", "t", `nonsense`), call("", "t", ``), call(long, "t", `{}`)),
			says(agent.User, result("functions.x:0", one), result("functions_x_0", agent.OK("2")), result("", agent.OK("3")), result(long, agent.OK("4"))),
		}, "", []string{
			made("functions_x_0"), made("functions_x_0_2"), made("unknown"), made("toolu_" + strings.Repeat("x", 41) + "_02b3a098f028cf92"),
			answered("functions_x_0", "1"), answered("functions_x_0_2", "2"), answered("unknown", "3"), answered("toolu_"+strings.Repeat("x", 41)+"_02b3a098f028cf92", "4"),
		}},
		{"a name that the API would refuse", []agent.Message{says(agent.Assistant, call("a", "my tool.é"+strings.Repeat("y", 100), `{}`)), says(agent.User, result("a", agent.Result{}))}, "", []string{
			strings.Replace(made("a"), `"t"`, `"my_tool__`+strings.Repeat("y", 55)+`"`, 1), answered("a", "(no output)"),
		}},
		{"structured output, failures, and media in results", []agent.Message{
			says(agent.Assistant, call("a", "t", `{}`), call("b", "t", `{}`), call("c", "t", `{}`)),
			says(agent.User, result("a", agent.Result{Output: json.RawMessage(`{"n":1}`)}), result("b", agent.Result{Status: agent.StatusError, Text: "no"}), result("c", agent.Result{Text: "see", Blocks: []agent.Block{
				media(agent.ImageBlock, "image/tiff", "x.tiff", "t"), media(agent.ImageBlock, "image/png", "", "png"), media(agent.DocumentBlock, "application/pdf", "", "pdf"), words("and"), words(""),
			}})),
		}, "", []string{
			made("a"), made("b"), made("c"), answered("a", `{\"n\":1}`), answered("b", `The call failed.\nno`),
			`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"see"},{"type":"input_text","text":"[image x.tiff (image/tiff) is not shown: this model cannot read it]"},` +
				`{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,cG5n"},{"type":"input_file","filename":"document.pdf","file_data":"data:application/pdf;base64,cGRm"},{"type":"input_text","text":"and"}]}`,
		}},
		{"media of the user's", []agent.Message{says(agent.User,
			agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/webp", URL: "https://h/x.webp"}},
			agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: "application/pdf", URL: "https://h/x.pdf"}},
			agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Name: "f", URL: "file:///etc/passwd"}},
			agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Name: "e"}}, agent.Block{Type: agent.ImageBlock},
			media(agent.DocumentBlock, "text/plain; charset=utf-8", "a.txt", "abc"), media(agent.DocumentBlock, "application/pdf", "a.pdf", "pdf"))}, "", []string{
			`{"type":"message","role":"user","content":[{"type":"input_image","detail":"auto","image_url":"https://h/x.webp"},{"type":"input_file","file_url":"https://h/x.pdf"},` +
				`{"type":"input_text","text":"[image f (image/png) is not shown: this model cannot read it]"},{"type":"input_text","text":"[image e (image/png) is not shown: this model cannot read it]"},` +
				`{"type":"input_text","text":"a.txt:\nabc"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,cGRm"}]}`,
		}},
		{"a text document that is too long", []agent.Message{says(agent.User, media(agent.DocumentBlock, "text/plain", "a", strings.Repeat("a", maxShownText+1)))}, "", []string{
			strings.Replace(userHi, `"hi"`, `"[document a (text/plain) is not shown: this model cannot read it]"`, 1),
		}},
		{"blocks in the wrong place", []agent.Message{says(agent.User, call("a", "t", `{}`), thought("rs_1", "x")), says(agent.Assistant, result("a", one), media(agent.ImageBlock, "image/png", "p", "png"))}, "", []string{
			made("a"), answered("a", lost), strings.Replace(saidC, `"c"`, `"[image p (image/png) is not shown: this model cannot read it]"`, 1),
		}},
		{"hostile text", []agent.Message{says(agent.User, words("\x00\x1f\"\\\xff</script>é\u2028"))}, "", []string{
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"\u0000\u001f\"\\` + "\ufffd" + `</script>é` + "\u2028" + `"}]}`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			open := plainReader
			open.Thinking = "effort"
			body := wiretest.MustEncode(t, New(wire.Config{Info: open}), agent.Request{Messages: c.messages, Tail: c.tail})
			if got, want := memberOf(t, body, "input"), "["+strings.Join(c.want, ",")+"]"; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			for _, info := range []agent.ModelInfo{plainReader, reader} {
				body := wiretest.MustEncode(t, New(wire.Config{Info: info}), agent.Request{Messages: c.messages, Tail: c.tail, Tools: someTools()})
				// The scripted model knows no items of others, and has given out no reasoning.
				if err := script.Validate(script.Responses, "", nil, body); err != nil && !strings.Contains(err.Error(), "unknown type") && !strings.Contains(err.Error(), "could not be verified") && !strings.Contains(err.Error(), "not found") {
					t.Errorf("%s: %v\n%s", info.ID, err, body)
				}
			}
		})
	}
}

func TestPhasesGoBack(t *testing.T) {
	for _, c := range []struct{ provider, raw, want string }{
		{"openai", `{"phase":"final_answer"}`, `,"phase":"final_answer"`},
		{"openai", `{"phase":"some thing"}`, ""},
		{"openai", `{"phase":1}`, ""},
		{"openai", `{"phase":"` + strings.Repeat("x", 65) + `"}`, ""},
		{"azure", `{"phase":"final_answer"}`, ""},
	} {
		b := words("c")
		b.Provider, b.Raw = c.provider, json.RawMessage(c.raw)
		body := wiretest.MustEncode(t, New(wire.Config{Info: reader}), agent.Request{Messages: []agent.Message{says(agent.Assistant, b)}})
		if got, want := memberOf(t, body, "input"), "["+strings.Replace(saidC, `,"content"`, c.want+`,"content"`, 1)+"]"; got != want {
			t.Errorf("%s of %s: got %s, want %s", c.raw, c.provider, got, want)
		}
	}
}

func TestParams(t *testing.T) {
	half := 0.5
	hi := []agent.Message{says(agent.User, words("hi"))}
	const key = `,"prompt_cache_key":"dure-27d818be77f0883defadd06376da5cc2"`
	thinker := agent.ModelInfo{ID: "m", Thinking: "effort", MaxOut: 4096}
	base := `{"model":"m","stream":true,"store":false,"truncation":"disabled"`
	sealed := `,"include":["reasoning.encrypted_content"]`
	for _, c := range []struct {
		name string
		cfg  wire.Config
		req  agent.Request
		want string
	}{
		{"the model's own limits", wire.Config{Info: thinker}, agent.Request{}, base + sealed + key},
		{"a limit", wire.Config{Info: thinker}, agent.Request{MaxTokens: 99}, base + `,"max_output_tokens":99` + sealed + key},
		{"a limit that the model does not have", wire.Config{Info: thinker}, agent.Request{MaxTokens: 1 << 30}, base + `,"max_output_tokens":4096` + sealed + key},
		{"a limit below the least", wire.Config{Info: thinker}, agent.Request{MaxTokens: 1}, base + `,"max_output_tokens":16` + sealed + key},
		{"an alias", wire.Config{Info: agent.ModelInfo{ID: "m", Aliases: []string{"x"}}}, agent.Request{Model: "x"}, base + key},
		{"another model", wire.Config{Info: agent.ModelInfo{ID: "m"}}, agent.Request{Model: "y"}, strings.Replace(base, `"m"`, `"y"`, 1) + key},
		{"temperature", wire.Config{Info: agent.ModelInfo{ID: "m"}}, agent.Request{Temperature: &half, Thinking: 5000}, base + `,"temperature":0.5` + key},
		{"temperature for one that thinks", wire.Config{Info: thinker}, agent.Request{Temperature: &half}, base + sealed + key},
		{"a little thinking", wire.Config{Info: thinker}, agent.Request{Thinking: 2048}, base + sealed + `,"reasoning":{"effort":"low","summary":"auto"}` + key},
		{"more thinking", wire.Config{Info: thinker}, agent.Request{Thinking: 2049}, base + sealed + `,"reasoning":{"effort":"medium","summary":"auto"}` + key},
		{"much thinking", wire.Config{Info: thinker}, agent.Request{Thinking: 8193}, base + sealed + `,"reasoning":{"effort":"high","summary":"auto"}` + key},
		{"cache marks", wire.Config{Info: agent.ModelInfo{ID: "m", Price: &agent.Price{CacheWrite: &rate}}}, agent.Request{}, base + key + `,"prompt_cache_options":{"mode":"explicit"}`},
		{"tools", wire.Config{Info: agent.ModelInfo{ID: "m"}}, agent.Request{Tools: someTools()[1:]}, base + key + `,"parallel_tool_calls":true,"tools":[{"type":"function","name":"bash__exec","description":"Runs a command.\n\nThe whole input must also fit this JSON schema: {\"anyOf\":[{\"required\":[\"command\"]},{\"required\":[\"argv\"]}]}","parameters":{"type":"object","properties":{}},"strict":false}]`},
		{"no tools may be used", wire.Config{Info: agent.ModelInfo{ID: "m"}}, agent.Request{NoTools: true, Tools: []agent.Spec{{Name: "t", Input: json.RawMessage(`{}`)}, {Name: "t", Input: json.RawMessage(`{}`)}}}, base + key + `,"parallel_tool_calls":true,"tool_choice":"none","tools":[{"type":"function","name":"t","description":"","parameters":{"type":"object","properties":{}},"strict":false}]`},
		{"no tools there", wire.Config{Info: agent.ModelInfo{ID: "m"}}, agent.Request{NoTools: true}, base + key},
		{"instructions", wire.Config{Info: agent.ModelInfo{ID: "m"}}, agent.Request{System: []agent.Section{{Text: "a", Cache: true}, {Text: " "}, {Text: "b"}}}, base + key + `,"instructions":"a\n\nb"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.req.Messages = hi
			head, _, _ := strings.Cut(string(wiretest.MustEncode(t, New(c.cfg), c.req)), `,"input":`)
			if head != c.want {
				t.Errorf("got  %s\nwant %s", head, c.want)
			}
		})
	}
	if _, err := New(wire.Config{}).Encode(agent.Request{Tools: []agent.Spec{{Name: "x", Input: json.RawMessage(`[]`)}}}); agent.ClassOf(err) != agent.FailInvalid {
		t.Errorf("a schema that is no object: %v", err)
	}
}

func TestCacheKeysTellConversationsApart(t *testing.T) {
	m := New(wire.Config{Info: reader})
	key := func(messages ...agent.Message) string {
		return memberOf(t, wiretest.MustEncode(t, m, agent.Request{Messages: messages}), "prompt_cache_key")
	}
	a, b := says(agent.User, words("a")), says(agent.User, words("b"))
	if key(a) != key(a, says(agent.Assistant, words("c")), b) || key(a) == key(b) || len(key(a)) != len(`"dure-"`)+32 {
		t.Errorf("%s, %s", key(a), key(b))
	}
}

// conversation returns a conversation of n steps, each of them a call.
func conversation(n int) []agent.Message {
	messages := []agent.Message{says(agent.User, words("Mend the failing test, and say when it is done."))}
	for i := range n {
		id := fmt.Sprint("call_", i)
		messages = append(messages,
			says(agent.Assistant, thought(fmt.Sprint("rs_", i), "c2VjcmV0"), words(fmt.Sprintf("Step %d: I look at the next file.", i)), call(id, "bash__exec", `{"command":"sed -n 1,40p file.go"}`)),
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
			System: []agent.Section{{Text: "You are dure.", Cache: true}}, Tools: someTools(), Names: names,
			Messages: all[:1+2*step], Tail: fmt.Sprint("step ", step),
		})
		plain, marks := stripped(body)
		if want := min(step+2, 3); len(marks) != want {
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

// encoding is what encoders have to pass.
func encoding() wiretest.Encoding {
	return wiretest.Encoding{
		New: func() (wiretest.Encoder, func(agent.Request) (*wire.Payload, error)) {
			m := New(wire.Config{Info: reader})
			return m, m.Payload
		},
		Talk: conversation(30), Short: conversation(2), Tools: someTools(), Names: names,
	}
}

func TestReuseChangesNothing(t *testing.T) { encoding().Reuse(t) }

func TestALogInBetweenChangesNothing(t *testing.T) {
	live := agent.Request{
		Tools: []agent.Spec{{Name: "t", Description: "<&>\u2028\xff", Input: json.RawMessage(`{ "type" : "object", "title": "<a> \\u003C \u003cb\u003e", "not": {"const": "<"} }`)}},
		Messages: []agent.Message{
			says(agent.User, words("<a> & \u2028 \xff\xfe")),
			says(agent.Assistant, thought("rs_1", "<&>"), agent.Block{Type: agent.RawBlock, Provider: "openai", Raw: json.RawMessage(`{"type": "x", "y": "<\u2028\\\\u003c>"}`)},
				call("a", "t", `{ "old_string": "if a < b && c > d", "n": 1.0, "e": "\u00e9" }`), call("b", "t", `{}`)),
			says(agent.User, result("a", agent.Result{Output: json.RawMessage(`{ "x": "<b>&" }`)}), result("b", agent.Result{Status: agent.StatusError})),
		},
	}
	encoding().Stored(t, live)
}

func TestForksAreEncodedSideBySide(t *testing.T) { encoding().Forks(t) }

func TestALongConversationCostsWhatItAdds(t *testing.T) {
	encoding().Known(t, conversation(500), 60)
}

// A conversation of someone who means harm costs no more than its length.
func TestTheSameIDTenThousandTimes(t *testing.T) {
	var messages []agent.Message
	for range 10_000 {
		messages = append(messages, says(agent.Assistant, call(".", "t", `{}`)), says(agent.User, result(".", agent.OK("1"))))
	}
	body := wiretest.MustEncode(t, New(wire.Config{Info: reader}), agent.Request{Messages: messages, Tools: someTools()})
	if err := script.Validate(script.Responses, "", nil, body); err != nil {
		t.Error(err)
	}
}

func BenchmarkEncodeThousandthStep(b *testing.B) { encoding().Growing(b, conversation(1000)) }
