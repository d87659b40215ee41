package chat

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

func tools() []agent.Spec {
	return []agent.Spec{
		{Name: "file-system__read", Description: "Reads <a> file.", Input: json.RawMessage(`{"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"], "additionalProperties": false}`)},
		{Name: "bash__exec", Description: "Runs a command.", Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}},"required":["command"],"anyOf":[{"required":["command"]}]}`)},
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

func txt(s string) agent.Block { return agent.Block{Type: agent.TextBlock, Text: s} }

func turn(role agent.Role, blocks ...agent.Block) agent.Message {
	return agent.Message{Role: role, Blocks: blocks}
}

func image(kind, name, data string) agent.Block {
	return agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: kind, Name: name, Data: []byte(data)}}
}

func document(kind, name, data string) agent.Block {
	return agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: kind, Name: name, Data: []byte(data)}}
}

func thought(provider, text, raw string) agent.Block {
	b := agent.Block{Type: agent.ThinkingBlock, Text: text, Provider: provider}
	if raw != "" {
		b.Raw = json.RawMessage(raw)
	}
	return b
}

func TestRequestGolden(t *testing.T) {
	bad := agent.InvalidInput("call_3", "bash__exec", `{"command":`, "cut")
	r := agent.Request{
		Model: "gpt-5.4",
		System: []agent.Section{
			{Name: "identity", Text: "You are dure.", Cache: true},
			{Name: "rules", Text: "Mend \"tests\".\n", Cache: true},
			{Name: "empty", Text: " \n", Cache: true},
			{Name: "extra", Text: "No mark here."},
		},
		Tools: tools(), Names: names,
		Messages: []agent.Message{
			turn(agent.User, txt("Mend it."), image("image/png", "", "png")),
			turn(agent.Assistant,
				thought("openai", "Hm.", ""), txt("I look."),
				call("call_1", "file-system__read", `{ "file_path": "a.go" }`),
				call("call_2", "bash__exec", `{"command":"go test"}`),
				agent.Block{Type: agent.CallBlock, Call: &bad},
			),
			turn(agent.User,
				result("call_1", agent.OK("package a")),
				result("call_2", agent.Failure(agent.ErrTimeout, "too slow", "")),
				result("call_3", agent.Result{Status: agent.StatusError}),
			),
			turn(agent.User, txt("And hurry.")),
		},
		Tail: "It is noon.", Thinking: 2000, MaxTokens: 1000,
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, wiretest.MustEncode(t, New(Config{Config: wire.Config{Info: reader}, Compat: CompatFor("")}), r), "", "  "); err != nil {
		t.Fatal(err)
	}
	wiretest.Golden(t, "testdata/request.json", append(pretty.Bytes(), '\n'))
}

// part returns one member of an encoded request.
func part(t testing.TB, body []byte, name string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	return string(members[name])
}

func TestMessages(t *testing.T) {
	hi := turn(agent.User, txt("hi"))
	plainText := agent.ModelInfo{ID: "m", Provider: "openai"}
	look := turn(agent.Assistant, call("a", "t", `{}`))
	const hiJSON = `{"role":"user","content":"hi"}`
	const lookJSON = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]}`
	for _, c := range []struct {
		name     string
		cfg      Config
		messages []agent.Message
		tail     string
		want     string
	}{
		{
			"neighbours of one role are one message",
			Config{},
			[]agent.Message{hi, turn(agent.User, txt("there"))},
			"",
			`[{"role":"user","content":"hi\n\nthere"}]`,
		},
		{
			"also for who can see",
			Config{Config: wire.Config{Info: reader}},
			[]agent.Message{hi, turn(agent.User, txt("there"))},
			"now",
			`[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"there"},{"type":"text","text":"now"}]}]`,
		},
		{
			"empty text is left out",
			Config{},
			[]agent.Message{turn(agent.User, txt(""), txt("hi"), txt(" \n\t"))},
			"",
			`[` + hiJSON + `]`,
		},
		{
			"a message of nothing is left out, and its neighbours meet",
			Config{},
			[]agent.Message{hi, turn(agent.Assistant, txt(""), thought("openai", "x", "")), turn(agent.User, txt("you?"))},
			"",
			`[{"role":"user","content":"hi\n\nyou?"}]`,
		},
		{
			"answers meet over results of nothing",
			Config{},
			[]agent.Message{hi, turn(agent.Assistant, txt("1")), turn(agent.User, result("x", agent.OK("lost"))), turn(agent.Assistant, txt("2"), call("a", "t", `{}`)), turn(agent.User, result("a", agent.OK("r")))},
			"",
			`[` + hiJSON + `,{"role":"assistant","content":"1\n\n2","tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"r"}]`,
		},
		{
			"a cut in front of results",
			Config{},
			[]agent.Message{turn(agent.User, result("x", agent.OK("lost"))), turn(agent.Assistant, txt("so")), hi},
			"",
			`[{"role":"user","content":"(Earlier messages are left out.)"},{"role":"assistant","content":"so"},` + hiJSON + `]`,
		},
		{
			"calls without results",
			Config{},
			[]agent.Message{hi, look, turn(agent.Assistant, txt("well")), hi, turn(agent.Assistant, call("b", "t", `{}`))},
			"now",
			`[` + hiJSON + `,` + lookJSON + `,{"role":"tool","tool_call_id":"a","content":"Error: the call was interrupted; its outcome is unknown."},{"role":"assistant","content":"well"},` + hiJSON + `,` +
				strings.ReplaceAll(lookJSON, `"a"`, `"b"`) + `,{"role":"tool","tool_call_id":"b","content":"Error: the call was interrupted; its outcome is unknown."},{"role":"user","content":"now"}]`,
		},
		{
			"results behind what the user said, twice, and in another order",
			Config{},
			[]agent.Message{
				hi, turn(agent.Assistant, call("a", "t", `{}`), call("b", "t", `{}`), call("a", "u", `{}`)),
				turn(agent.User, txt("more")), turn(agent.User, result("b", agent.OK("2")), result("a", agent.OK("1")), result("a", agent.OK("3")), result("z", agent.OK("4"))),
			},
			"now",
			`[` + hiJSON + `,{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"t","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"user","content":"more\n\nnow"}]`,
		},
		{
			"IDs that come again",
			Config{},
			[]agent.Message{hi, look, turn(agent.User, result("a", agent.OK("1"))), look, turn(agent.User, result("a", agent.OK("2")))},
			"",
			`[` + hiJSON + `,` + lookJSON + `,{"role":"tool","tool_call_id":"a","content":"1"},` + strings.ReplaceAll(lookJSON, `"id":"a"`, `"id":"call_6c47ec29e8ef3f2ee1fd2c9a"`) +
				`,{"role":"tool","tool_call_id":"call_6c47ec29e8ef3f2ee1fd2c9a","content":"2"}]`,
		},
		{
			"names and IDs that the API would refuse",
			Config{},
			[]agent.Message{
				hi, turn(agent.Assistant, call("functions.x:0", "my tool.é"+strings.Repeat("y", 100), `[1]`), call("", "", `nonsense`), call(strings.Repeat("x", 41), "t", `{}`)),
				turn(agent.User, result("functions.x:0", agent.OK("1")), result("", agent.OK("2")), result(strings.Repeat("x", 41), agent.OK("3"))),
			},
			"",
			`[` + hiJSON + `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_7bbd8d5a9bd6e4d1a0d9c8f1","type":"function","function":{"name":"my_tool__` + strings.Repeat("y", 55) + `","arguments":"{}"}},` +
				`{"id":"call_e3b0c44298fc1c149afbf4c8","type":"function","function":{"name":"unknown","arguments":"{}"}},{"id":"LONG","type":"function","function":{"name":"t","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"call_7bbd8d5a9bd6e4d1a0d9c8f1","content":"1"},{"role":"tool","tool_call_id":"call_e3b0c44298fc1c149afbf4c8","content":"2"},{"role":"tool","tool_call_id":"LONG","content":"3"}]`,
		},
		{
			"an answer to be continued takes no tail",
			Config{},
			[]agent.Message{hi, turn(agent.Assistant, txt("so far"))},
			"now",
			`[` + hiJSON + `,{"role":"assistant","content":"so far"}]`,
		},
		{"a tail alone", Config{}, nil, "now", `[{"role":"user","content":"now"}]`},
		{
			"results that say nothing, or are structured, or failed",
			Config{},
			[]agent.Message{hi, turn(agent.Assistant, call("a", "t", `{}`), call("b", "t", `{}`), call("c", "t", `{}`), call("d", "t", `{}`)), turn(agent.User,
				result("a", agent.OK("")), result("b", agent.Result{Output: json.RawMessage(`{"n": 1}`)}), result("c", agent.Result{Status: agent.StatusError, Text: "no such file"}), result("d", agent.Result{Text: "x", Blocks: []agent.Block{txt("y"), image("image/png", "p.png", "z")}}))},
			"",
			`[` + hiJSON + `,{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"t","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"t","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"t","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"a","content":"(no output)"},{"role":"tool","tool_call_id":"b","content":"{\"n\":1}"},{"role":"tool","tool_call_id":"c","content":"Error: no such file"},` +
				`{"role":"tool","tool_call_id":"d","content":"x\ny\n[image p.png (image/png) is not shown: this model cannot read it]"}]`,
		},
		{
			"media",
			Config{Config: wire.Config{Info: reader}},
			[]agent.Message{
				turn(agent.User, image("image/png", "", "i"), agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/gif", URL: "https://x.example/y.gif"}}, document("application/pdf", "a.pdf", "p"), document("text/plain", "a.txt", "abc"), image("image/tiff", "t", "x"), agent.Block{Type: agent.ImageBlock}),
				look, turn(agent.User, result("a", agent.Result{Text: "see", Blocks: []agent.Block{image("image/jpeg", "", "j"), image("image/tiff", "t", "x")}})),
			},
			"now",
			`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aQ=="}},{"type":"image_url","image_url":{"url":"https://x.example/y.gif"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,cA=="}},` +
				`{"type":"text","text":"a.txt:\nabc"},{"type":"text","text":"[image t (image/tiff) is not shown: this model cannot read it]"},{"type":"text","text":"[image without a name (unknown type) is not shown: this model cannot read it]"}]},` +
				lookJSON + `,{"role":"tool","tool_call_id":"a","content":"see\n[image t (image/tiff) is not shown: this model cannot read it]"},` +
				`{"role":"user","content":[{"type":"text","text":"Shown by the call a:"},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,ag=="}},{"type":"text","text":"now"}]}]`,
		},
		{
			"media that an endpoint does not take",
			Config{Config: wire.Config{Info: reader}, Compat: Compat{TextOnly: true}},
			[]agent.Message{turn(agent.User, image("image/png", "p", "i"))},
			"",
			`[{"role":"user","content":"[image p (image/png) is not shown: this model cannot read it]"}]`,
		},
		{
			"thinking goes back where it is asked for, of this provider",
			Config{Compat: Compat{Reasoning: "reasoning_content"}},
			[]agent.Message{hi, turn(agent.Assistant, thought("openai", "mine", ""), thought("anthropic", "theirs", ""), thought("", "whose", ""), txt("x")), hi, look, turn(agent.User, result("a", agent.OK("1")))},
			"",
			`[` + hiJSON + `,{"role":"assistant","content":"x","reasoning_content":"mine"},` + hiJSON + `,` + strings.Replace(lookJSON, `,"tool`, `,"reasoning_content":"","tool`, 1) + `,{"role":"tool","tool_call_id":"a","content":"1"}]`,
		},
		{
			"and nowhere else",
			Config{},
			[]agent.Message{hi, turn(agent.Assistant, thought("openai", "mine", `[{"type":"x"}]`), txt("x"), agent.Block{Type: agent.RawBlock, Provider: "openai", Raw: json.RawMessage(`{"type":"y"}`)})},
			"",
			`[` + hiJSON + `,{"role":"assistant","content":"x"}]`,
		},
		{
			"details go back as they came",
			Config{Compat: Compat{ReasoningDetails: true}},
			[]agent.Message{hi, turn(agent.Assistant, thought("openai", "mine", `[ {"type":"x", "data":"<"}, 2 ]`), thought("openai", "", `{"no":"list"}`), thought("google", "", `[{"type":"y"}]`), txt("x"))},
			"",
			`[` + hiJSON + `,{"role":"assistant","content":"x","reasoning_details":[{"type":"x","data":"<"},2]}]`,
		},
		{
			"servers that refuse a user behind a tool, and want short IDs",
			Config{Compat: CompatFor("https://api.mistral.ai")},
			[]agent.Message{hi, turn(agent.Assistant, call("call_abc", "t", `{}`), call("D681PevKs", "t", `{}`)), turn(agent.User, result("call_abc", agent.OK("1")), result("D681PevKs", agent.OK("2")))},
			"now",
			`[` + hiJSON + `,{"role":"assistant","content":"","tool_calls":[{"id":"SHORT","type":"function","function":{"name":"t","arguments":"{}"}},{"id":"D681PevKs","type":"function","function":{"name":"t","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"SHORT","content":"1"},{"role":"tool","tool_call_id":"D681PevKs","content":"2"},{"role":"assistant","content":"I have read the results."},{"role":"user","content":"now"}]`,
		},
		{
			"results as parts",
			Config{Compat: Compat{ToolParts: true}},
			[]agent.Message{hi, look, turn(agent.User, result("a", agent.OK("1")))},
			"",
			`[` + hiJSON + `,` + lookJSON + `,{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"1"}]}]`,
		},
		{
			"a role that there is not",
			Config{},
			[]agent.Message{turn("system", txt("obey me"))},
			"",
			`[{"role":"user","content":"obey me"}]`,
		},
		{
			"hostile text",
			Config{},
			[]agent.Message{turn(agent.User, txt("\x00\x1f\"\\\xff</script>é\u2028"))},
			"",
			`[{"role":"user","content":"\u0000\u001f\"\\�</script>é` + "\u2028" + `"}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.cfg.Info.ID == "" {
				c.cfg.Info = plainText
			}
			m, e := New(c.cfg), encoder{info: c.cfg.Info, compat: c.cfg.Compat}
			got := part(t, wiretest.MustEncode(t, m, agent.Request{Messages: c.messages, Tail: c.tail}), "messages")
			want := strings.NewReplacer(
				"LONG", e.callID(strings.Repeat("x", 41)), "SHORT", e.callID("call_abc"),
				"call_7bbd8d5a9bd6e4d1a0d9c8f1", e.callID("functions.x:0"), "call_6c47ec29e8ef3f2ee1fd2c9a", e.callID("a#1"),
			).Replace(c.want)
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestCallIDs(t *testing.T) {
	e := &encoder{}
	short := &encoder{compat: Compat{CallIDs: 9}}
	seen := map[string]string{}
	for _, id := range []string{"", "a", "call_1", "functions.bash:0", "functions.bash:1", "functions_bash_0", "é", "toolu_01AbCdEf", strings.Repeat("x", 40), strings.Repeat("x", 41), strings.Repeat("x", 5000)} {
		wireID := e.callID(id)
		if wireID == "" || len(wireID) > maxCallID || wire.Plain(wireID) != wireID || seen[wireID] != "" || e.callID(id) != wireID {
			t.Errorf("%q became %q", id, wireID)
		}
		seen[wireID] = id
		if s := short.callID(id); len(s) != 9 || strings.ContainsAny(s, "_-") || wire.Plain(s) != s {
			t.Errorf("%q became %q", id, s)
		}
	}
	if got := short.callID("D681PevKs"); got != "D681PevKs" {
		t.Errorf("an ID that fits became %q", got)
	}
}

func TestParams(t *testing.T) {
	half, no := 0.5, false
	thinks := agent.ModelInfo{ID: "m", MaxOut: 4096, Thinking: "effort"}
	const usage = `,"stream_options":{"include_usage":true}`
	for _, c := range []struct {
		name string
		cfg  Config
		req  agent.Request
		want string
	}{
		{"nothing asked", Config{Config: wire.Config{Info: thinks}}, agent.Request{}, `{"model":"m","stream":true` + usage},
		{"nothing known", Config{}, agent.Request{Model: "x"}, `{"model":"x","stream":true` + usage},
		{"an alias", Config{Config: wire.Config{Info: agent.ModelInfo{ID: "m-1", Aliases: []string{"m"}}}}, agent.Request{Model: "m"}, `{"model":"m-1","stream":true` + usage},
		{"a limit", Config{Config: wire.Config{Info: thinks}}, agent.Request{MaxTokens: 9}, `{"model":"m","stream":true` + usage + `,"max_tokens":9`},
		{"a limit that the model does not have", Config{Config: wire.Config{Info: thinks}}, agent.Request{MaxTokens: 1 << 30}, `{"model":"m","stream":true` + usage + `,"max_tokens":4096`},
		{"a limit of another name", Config{Config: wire.Config{Info: thinks}, Compat: Compat{CompletionTokens: true}}, agent.Request{MaxTokens: 9}, `{"model":"m","stream":true` + usage + `,"max_completion_tokens":9`},
		{"no counts", Config{Config: wire.Config{Info: thinks}, Compat: Compat{NoUsage: true}}, agent.Request{}, `{"model":"m","stream":true`},
		{"temperature", Config{Config: wire.Config{Info: thinks}}, agent.Request{Temperature: &half}, `{"model":"m","stream":true` + usage + `,"temperature":0.5`},
		{"temperature that cannot be chosen", Config{Config: wire.Config{Info: thinks}, Compat: Compat{FixedTemperature: true}}, agent.Request{Temperature: &half}, `{"model":"m","stream":true` + usage},
		{"little thinking", Config{Config: wire.Config{Info: thinks}}, agent.Request{Thinking: 2048}, `{"model":"m","stream":true` + usage + `,"reasoning_effort":"low"`},
		{"some thinking", Config{Config: wire.Config{Info: thinks}}, agent.Request{Thinking: 8192}, `{"model":"m","stream":true` + usage + `,"reasoning_effort":"medium"`},
		{"much thinking", Config{Config: wire.Config{Info: thinks}}, agent.Request{Thinking: 8193}, `{"model":"m","stream":true` + usage + `,"reasoning_effort":"high"`},
		{"a model that does not think", Config{Config: wire.Config{Info: agent.ModelInfo{ID: "m"}}}, agent.Request{Thinking: 9}, `{"model":"m","stream":true` + usage},
		{"an endpoint that knows no effort", Config{Config: wire.Config{Info: thinks}, Compat: Compat{NoEffort: true}}, agent.Request{Thinking: 9}, `{"model":"m","stream":true` + usage},
		{"no parallel calls", Config{Config: wire.Config{Info: thinks}, Compat: Compat{Parallel: &no}}, agent.Request{Tools: tools()}, `{"model":"m","stream":true` + usage + `,"parallel_tool_calls":false`},
		{"no parallel calls, and no tools", Config{Config: wire.Config{Info: thinks}, Compat: Compat{Parallel: &no}}, agent.Request{}, `{"model":"m","stream":true` + usage},
		{"no tools may be used", Config{Config: wire.Config{Info: thinks}}, agent.Request{NoTools: true, Tools: tools()}, `{"model":"m","stream":true` + usage + `,"tool_choice":"none"`},
		{"no tools there", Config{Config: wire.Config{Info: thinks}}, agent.Request{NoTools: true}, `{"model":"m","stream":true` + usage},
		{
			"OpenAI",
			Config{Config: wire.Config{Info: thinks}, Compat: CompatFor("https://api.openai.com/v1")},
			agent.Request{MaxTokens: 9},
			`{"model":"m","stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false},"max_completion_tokens":9,"store":false,"prompt_cache_key":"KEY"`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.req.Messages = hi.Messages
			body := wiretest.MustEncode(t, New(c.cfg), c.req)
			head, _, _ := strings.Cut(string(body), `,"tools":`)
			head, _, _ = strings.Cut(head, `,"messages":`)
			if key := part(t, body, "prompt_cache_key"); key != "" {
				head = strings.Replace(head, key, `"KEY"`, 1)
			}
			if head != c.want {
				t.Errorf("got  %s\nwant %s", head, c.want)
			}
		})
	}
	if _, err := New(Config{}).Encode(agent.Request{Tools: []agent.Spec{{Name: "x", Input: json.RawMessage(`[]`)}}}); agent.ClassOf(err) != agent.FailInvalid {
		t.Errorf("a schema that is no object: %v", err)
	}
}

func TestTheCacheKeyIsThatOfTheConversation(t *testing.T) {
	m := New(Config{Config: wire.Config{Info: reader}, Compat: Compat{CacheKey: true}})
	all := conversation(3)
	key := func(messages []agent.Message) string {
		return part(t, wiretest.MustEncode(t, m, agent.Request{Messages: messages, Tools: tools()}), "prompt_cache_key")
	}
	one := key(all[:1])
	if key(all) != one || len(one) != 34 {
		t.Errorf("%s became %s", one, key(all))
	}
	if key([]agent.Message{turn(agent.User, txt("another"))}) == one {
		t.Error("two conversations have one key")
	}
}

func TestStrictSchemas(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                          true,
		`{"type":"object","properties":{},"additionalProperties":false}`:                                                                                true,
		`{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`:                                 true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`:              true,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}},"required":["a"],"additionalProperties":false}`:                 true,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                           false,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","a"],"additionalProperties":false}`:                false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                       false,
		`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`:                                                         false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                                          false,
		`{"type":"object","properties":{"a":{"type":["object","null"]}},"required":["a"],"additionalProperties":false}`:                                 false,
		`{"type":"object","properties":{"a":{"type":"string","format":"uri"}},"required":["a"],"additionalProperties":false}`:                           false,
		strings.Repeat(`{"type":"array","items":`, 20) + `{"type":"string"}` + strings.Repeat(`}`, 20):                                                  false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{}}}},"required":["a"],"additionalProperties":false}`: false,
		`[]`: false,
	} {
		if got := strict(json.RawMessage(schema), 0); got != want {
			t.Errorf("%s: %v", schema, got)
		}
	}
}

func TestToolsOfOneNameAreOne(t *testing.T) {
	long := strings.Repeat("x", wire.MaxToolName)
	spec := func(name string) agent.Spec { return agent.Spec{Name: name, Input: json.RawMessage(`{}`)} }
	body := wiretest.MustEncode(t, New(Config{}), agent.Request{Tools: []agent.Spec{spec(long + "1"), spec(long + "2")}, Messages: hi.Messages})
	want := `[{"type":"function","function":{"name":"` + long + `","description":"","parameters":{"type":"object","properties":{}}}}]`
	if got := part(t, body, "tools"); got != want {
		t.Errorf("got %s", got)
	}
}

// conversation returns a conversation of n steps, each of them a call.
func conversation(n int) []agent.Message {
	messages := []agent.Message{turn(agent.User, txt("Mend the failing test, and say when it is done."))}
	for i := range n {
		id := fmt.Sprint("call_", i)
		messages = append(messages,
			turn(agent.Assistant, txt(fmt.Sprintf("Step %d: I look at the next file.", i)), call(id, "bash__exec", `{"command":"sed -n 1,40p file.go"}`)),
			turn(agent.User, result(id, agent.OK(strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"reading %s: %w\", name, err)\n\t}\n", 8)))),
		)
	}
	return messages
}

func TestPrefixIsStable(t *testing.T) {
	for name, cfg := range map[string]Config{"strings": {Config: wire.Config{Info: agent.ModelInfo{ID: "m"}}}, "parts": {Config: wire.Config{Info: reader}, Compat: CompatFor("")}} {
		m := New(cfg)
		all := conversation(60)
		var before []byte
		stable, total := 0, 0
		for step := range 60 {
			body := wiretest.MustEncode(t, m, agent.Request{
				System: []agent.Section{{Text: "You are dure.", Cache: true}}, Tools: tools(), Names: names,
				Messages: all[:1+2*step], Tail: fmt.Sprint("step ", step),
			})
			if step > 0 {
				same := 0
				for same < len(before) && same < len(body) && before[same] == body[same] {
					same++
				}
				if tail := len(before) - same; tail > len(`,{"role":"user","content":[{"type":"text","text":"step 59"}]}]}`) {
					t.Fatalf("%s: step %d changed the last %d bytes of the one before", name, step, tail)
				}
				stable += same
				total += len(before)
			}
			before = body
		}
		if share := float64(stable) / float64(total); share < 0.99 {
			t.Errorf("%s: only %.2f %% of the requests stayed as they were", name, 100*share)
		} else {
			t.Logf("%s: %.2f %% of each request is a byte-identical prefix of the next", name, 100*share)
		}
	}
}

// encoding is what encoders have to pass.
func encoding() wiretest.Encoding { return encodingWith(Compat{}) }

func encodingWith(c Compat) wiretest.Encoding {
	return wiretest.Encoding{
		New: func() (wiretest.Encoder, func(agent.Request) (*wire.Payload, error)) {
			m := New(Config{Config: wire.Config{Info: reader}, Compat: c})
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
			turn(agent.User, txt("<a> & \u2028 \xff\xfe")),
			turn(agent.Assistant, thought("openai", "<hm>\xff", `[{"type": "x", "y": "<\u2028\\\\u003c>"}]`),
				call("a", "t", `{ "old_string": "if a < b && c > d", "n": 1.0, "e": "\u00e9" }`), call("b", "t", `{}`)),
			turn(agent.User, result("a", agent.Result{Output: json.RawMessage(`{ "x": "<b>&" }`)}), result("b", agent.Result{Status: agent.StatusError})),
		},
	}
	encodingWith(Compat{ReasoningDetails: true, Reasoning: "reasoning"}).Stored(t, live)
}

func TestForksAreEncodedSideBySide(t *testing.T) { encoding().Forks(t) }

// FuzzConversation builds a conversation of what is given and has the strict
// validator look at the request.
func FuzzConversation(f *testing.F) {
	f.Add([]byte("uacrtuacacrrt"), "a", "b", uint8(0))
	f.Add([]byte("racuactaaiuuc"), "", "functions.x:0", uint8(3))
	f.Add([]byte("acrucccrrr iht"), "x", "x", uint8(255))
	f.Fuzz(func(t *testing.T, plan []byte, one, two string, options uint8) {
		var messages []agent.Message
		ids := []string{one, two, one + two}
		for i, p := range plan[:min(len(plan), 100)] {
			id := ids[i%3]
			role, b := agent.User, txt(one)
			switch p % 10 {
			case 0:
				role, b = agent.Assistant, call(id, two, `{"a":1}`)
			case 1:
				b = result(id, agent.OK(two))
			case 2:
				role, b = agent.Assistant, txt(two)
			case 3:
				b = image("image/png", one, two)
			case 4:
				role, b = agent.Assistant, thought("openai", one, `[{"type":"x"}]`)
			case 5:
				b = result(id, agent.Result{Status: agent.StatusError, Blocks: []agent.Block{image("image/png", "", "x")}})
			case 6:
				role, b = agent.Assistant, agent.Block{Type: agent.RawBlock, Provider: "openai", Raw: json.RawMessage(`{}`)}
			case 7:
				role, b = agent.Assistant, agent.Block{Type: agent.CallBlock, Call: &agent.Call{ID: id, Tool: one, Invalid: "bad", Raw: two}}
			case 8:
				b = agent.Block{Type: agent.BlockType(one)}
			}
			if n := len(messages); n > 0 && p >= 128 && messages[n-1].Role == role {
				messages[n-1].Blocks = append(messages[n-1].Blocks, b)
				continue
			}
			messages = append(messages, turn(role, b))
		}
		cfg := Config{Config: wire.Config{Info: agent.ModelInfo{ID: "m", Provider: "openai", Images: options&1 != 0}}}
		cfg.Compat = Compat{Bridge: options&2 != 0, EmptyText: false, ToolParts: options&4 != 0, ReasoningDetails: options&8 != 0}
		body := wiretest.MustEncode(t, New(cfg), agent.Request{Messages: messages, Tail: "now", Tools: tools(), Names: names})
		if err := script.Validate(script.Chat, "/v1/chat/completions", header(), body); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	})
}

func header() map[string][]string {
	return map[string][]string{"Content-Type": {"application/json"}, "Authorization": {"Bearer k"}}
}

func TestALongConversationCostsWhatItAdds(t *testing.T) {
	encoding().Known(t, conversation(500), 60)
}

func BenchmarkEncodeThousandthStep(b *testing.B) {
	encodingWith(CompatFor("")).Growing(b, conversation(1000))
}
