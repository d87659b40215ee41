package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"dure/agent"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
)

var reader = agent.ModelInfo{ID: "gpt-5.4", Provider: "openai", MaxOut: 64000, Thinking: "effort", Images: true, PDF: true}

// answers returns a transport that answers with a body of some type.
func answers(kind string, status int, body func() io.Reader) *http.Client {
	return wiretest.Answers(status, body, "Content-Type", kind, "X-Request-Id", "req_1")
}

// plays returns a model that answers with what body returns.
func plays(cfg Config, body func() io.Reader) *wire.Model {
	if cfg.Info.ID == "" {
		cfg.Info = reader
	}
	cfg.HTTP = answers("text/event-stream", http.StatusOK, body)
	return New(cfg)
}

func says(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }

var hi = agent.Request{Messages: []agent.Message{turn(agent.User, txt("hi"))}, Names: names}

// drain asks a model and returns what it said.
func drain(ctx context.Context, m *wire.Model) ([]agent.Delta, *agent.Answer, error) {
	return wiretest.Drain(ctx, m, hi)
}

func TestStreamGoldens(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	local := Config{Compat: Compat{ThinkTags: true, ReasoningDetails: true}}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			stream, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			deltas, _, err := drain(t.Context(), plays(local, func() io.Reader { return bytes.NewReader(stream) }))
			got := wiretest.Describe(deltas, err)
			wiretest.Golden(t, strings.TrimSuffix(file, ".sse")+".want", got)

			deltas, _, err = drain(t.Context(), plays(local, func() io.Reader { return iotest.OneByteReader(bytes.NewReader(stream)) }))
			if again := wiretest.Describe(deltas, err); !bytes.Equal(again, got) {
				t.Errorf("byte by byte it is\n%s", again)
			}
			crlf := bytes.ReplaceAll(stream, []byte("\n"), []byte("\r\n"))
			deltas, _, err = drain(t.Context(), plays(local, func() io.Reader { return bytes.NewReader(crlf) }))
			if again := wiretest.Describe(deltas, err); !bytes.Equal(again, got) {
				t.Errorf("with CRLF it is\n%s", again)
			}
		})
	}
}

// delta is an event of one answer.
func delta(d string) string {
	return `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}`
}

// stream returns the events of an answer that ends.
func stream(stop string, more ...string) string {
	all := append([]string{delta(`{"role":"assistant","content":""}`)}, more...)
	all = append(all, `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":`+stop+`}]}`, "[DONE]")
	return events(all...)
}

func events(list ...string) string { return "data: " + strings.Join(list, "\n\ndata: ") + "\n\n" }

const opensCall = `{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"Bash","arguments":""}}]}`

// wrote is an event that adds to the input of a call.
func wrote(input string) string {
	q, _ := json.Marshal(input)
	return delta(`{"tool_calls":[{"index":0,"function":{"arguments":` + string(q) + `}}]}`)
}

func TestStopReasons(t *testing.T) {
	for _, c := range []struct {
		stop   string
		events []string
		want   agent.StopReason
	}{
		{`"stop"`, nil, agent.StopEnd},
		{`"stop"`, []string{delta(opensCall)}, agent.StopCalls},
		{`"tool_calls"`, []string{delta(opensCall)}, agent.StopCalls},
		{`"tool_calls"`, nil, agent.StopEnd},
		{`"function_call"`, []string{delta(opensCall)}, agent.StopCalls},
		{`"length"`, nil, agent.StopLength},
		{`"length"`, []string{delta(opensCall)}, agent.StopLength},
		{`"model_length"`, nil, agent.StopWindow},
		{`"content_filter"`, nil, agent.StopRefusal},
		{`"content_filter"`, []string{delta(opensCall)}, agent.StopRefusal},
		{`"stop"`, []string{delta(`{"refusal":"no"}`)}, agent.StopRefusal},
		{`"something_new"`, nil, "something_new"},
	} {
		_, final, err := drain(t.Context(), plays(Config{}, says(stream(c.stop, c.events...))))
		if err != nil || final == nil || final.Stop != c.want {
			t.Errorf("%s: %+v, %v", c.stop, final, err)
		}
	}
}

func TestToolInput(t *testing.T) {
	cut := "the answer ended in the middle of the call: its input is incomplete"
	opens := delta(opensCall)
	for _, c := range []struct {
		name, stop string
		events     []string
		want       agent.Call
	}{
		{"in pieces", `"tool_calls"`, []string{opens, wrote(`{"comm`), wrote(``), wrote(`and":"ls"}`)}, agent.Call{Input: json.RawMessage(`{"command":"ls"}`)}},
		{"empty", `"tool_calls"`, []string{opens, wrote(``)}, agent.Call{Input: json.RawMessage(`{}`)}},
		{"null", `"tool_calls"`, []string{delta(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"Bash","arguments":null}}]}`)}, agent.Call{Input: json.RawMessage(`{}`)}},
		{"an object", `"tool_calls"`, []string{delta(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"Bash","arguments":{"a": 1}}}]}`)}, agent.Call{Input: json.RawMessage(`{"a": 1}`)}},
		{"all at once", `"stop"`, []string{delta(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"Bash","arguments":"{\"a\":1}"}}]}`)}, agent.Call{Input: json.RawMessage(`{"a":1}`)}},
		{"a name that comes late", `"stop"`, []string{delta(`{"tool_calls":[{"index":0,"id":"c1","function":{"arguments":"{\"a\""}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"name":"Bash","arguments":":1}"}}]}`)}, agent.Call{Input: json.RawMessage(`{"a":1}`)}},
		{"malformed", `"tool_calls"`, []string{opens, wrote(`{"a":}`)}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{"a":}`, Invalid: "the input is no valid JSON: invalid character '}' looking for beginning of value"}},
		{"no object", `"tool_calls"`, []string{opens, wrote(`["a"]`)}, agent.Call{Input: json.RawMessage(`{}`), Raw: `["a"]`, Invalid: "the input is JSON but no object"}},
		{"cut at the limit", `"length"`, []string{opens, wrote(`{"command":"rm -rf /tm`)}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{"command":"rm -rf /tm`, Invalid: cut}},
		{"cut before the first byte", `"length"`, []string{opens}, agent.Call{Input: json.RawMessage(`{}`), Invalid: cut}},
		{"complete although at the limit", `"length"`, []string{opens, wrote(`{"command":"ls"}`)}, agent.Call{Input: json.RawMessage(`{"command":"ls"}`)}},
		{"cut by a filter", `"content_filter"`, []string{opens, wrote(`{`)}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{`, Invalid: cut}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, final, err := drain(t.Context(), plays(Config{}, says(stream(c.stop, c.events...))))
			if err != nil {
				t.Fatal(err)
			}
			c.want.ID, c.want.Tool = "c1", "bash__exec"
			if got := final.Message.Calls(); len(got) != 1 || !reflect.DeepEqual(got[0], c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// Servers number and name calls in many ways; in each of them it has to be
// clear which piece belongs to which call.
func TestWhichCallIsMeant(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []string // of tool_calls, an event each
		want   string
	}{
		{"index, and the ID once", []string{
			`{"index":0,"id":"a","function":{"name":"t","arguments":""}}`, `{"index":1,"id":"b","function":{"name":"u","arguments":""}}`,
			`{"index":1,"function":{"arguments":"{\"n\":"}}`, `{"index":0,"function":{"arguments":"{\"m\":1}"}}`, `{"index":1,"function":{"arguments":"2}"}}`,
		}, `a t {"m":1}; b u {"n":2}`},
		{"an index that begins anywhere", []string{`{"index":3,"id":"a","function":{"name":"t","arguments":"{"}}`, `{"index":3,"function":{"arguments":"}"}}`}, `a t {}`},
		{"ID and name with each piece", []string{
			`{"index":0,"id":"a","function":{"name":"t","arguments":"{\"m\""}}`, `{"index":0,"id":"a","function":{"name":"t","arguments":":1}"}}`,
		}, `a t {"m":1}`},
		{"the name with each piece", []string{
			`{"index":0,"id":"a","function":{"name":"t","arguments":"{\"m\":{}"}}`, `{"index":0,"id":"","function":{"name":"t","arguments":"}"}}`,
		}, `a t {"m":{}}`},
		{"every index is 0, whole", []string{
			`{"index":0,"id":"a","function":{"name":"t","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"t","arguments":"{\"n\":1}"}}`,
		}, `a t {}; b t {"n":1}`},
		{"every index is 0, in pieces", []string{
			`{"index":0,"id":"a","function":{"name":"t","arguments":"{\"m\""}}`, `{"index":0,"id":"b","function":{"name":"t","arguments":"{\"n\""}}`,
			`{"index":0,"id":"a","function":{"arguments":":1}"}}`, `{"index":0,"id":"b","function":{"arguments":":2}"}}`,
		}, `a t {"m":1}; b t {"n":2}`},
		{"every index is 0, no IDs", []string{
			`{"index":0,"function":{"name":"t","arguments":"{}"}}`, `{"index":0,"function":{"name":"t","arguments":"{\"n\":1}"}}`, `{"index":0,"function":{"name":"u","arguments":"{}"}}`,
		}, `call_1 t {}; call_1_3 t {"n":1}; call_1_4 u {}`},
		{"no index, the ID once", []string{
			`{"id":"a","function":{"name":"t","arguments":"{\"m\""}}`, `{"function":{"arguments":":1}"}}`, `{"id":"b","function":{"name":"u","arguments":""}}`, `{"function":{"arguments":"{}"}}`,
		}, `a t {"m":1}; b u {}`},
		{"no index, the ID with each piece", []string{
			`{"id":"a","function":{"name":"t","arguments":"{\"m\""}}`, `{"id":"b","function":{"name":"u","arguments":"{"}}`, `{"id":"a","function":{"arguments":":1}"}}`, `{"id":"b","function":{"arguments":"}"}}`,
		}, `a t {"m":1}; b u {}`},
		{"neither index nor ID, together", []string{`{"function":{"name":"t","arguments":"{}"}},{"function":{"name":"t","arguments":"{\"n\":1}"}},{"function":{"name":"u","arguments":"{}"}}`}, `call_1 t {}; call_1_3 t {"n":1}; call_1_4 u {}`},
		{"neither index nor ID, one after the other", []string{`{"function":{"name":"t","arguments":"{\"a\""}}`, `{"function":{"arguments":":1}"}}`, `{"function":{"name":"u","arguments":"{}"}}`}, `call_1 t {"a":1}; call_1_3 u {}`},
		{"an index that changes on the way", []string{`{"index":4,"id":"a","function":{"name":"t","arguments":""}}`, `{"index":0,"function":{"arguments":"{}"}}`}, `a t {}`},
		{"and goes on", []string{`{"index":4,"id":"a","function":{"name":"t","arguments":""}}`, `{"index":0,"function":{"arguments":"{"}}`, `{"index":0,"function":{"arguments":"}"}}`}, `a t {}`},
		{"an index, no IDs, one name", []string{
			`{"index":0,"function":{"name":"t","arguments":"{\"m\""}}`, `{"index":1,"function":{"name":"t","arguments":"{}"}}`, `{"index":0,"function":{"arguments":":1}"}}`,
		}, `call_1 t {"m":1}; call_1_3 t {}`},
		{"the name with each piece, and braces in a text", []string{`{"function":{"name":"t","arguments":"{\"m\":\"}"}}`, `{"function":{"name":"t","arguments":"{x\"}"}}`}, `call_1 t {"m":"}{x"}`},
		{"the same ID for two", []string{`{"index":0,"id":"a","function":{"name":"t","arguments":"{}"}}`, `{"index":1,"id":"a","function":{"name":"u","arguments":"{}"}}`}, `a t {}; a_3 u {}`},
		{"an ID that comes late", []string{`{"index":0,"function":{"name":"t","arguments":"{"}}`, `{"index":0,"id":"a","function":{"arguments":"}"}}`}, `call_1 t {}`},
		{"an ID of the conversation", []string{`{"index":0,"id":"old","function":{"name":"t","arguments":"{}"}}`}, `old_2 t {}`},
		{"nothing", []string{`{"index":0,"id":"","function":{}}`, `{}`}, ``},
		{"no name", []string{`{"index":0,"id":"a","function":{"arguments":"{}"}}`}, `a unknown {}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events []string
			for _, p := range c.pieces {
				events = append(events, delta(`{"tool_calls":[`+p+`]}`))
			}
			m := plays(Config{}, says(stream(`"tool_calls"`, events...)))
			r := agent.Request{Messages: hi.Messages}
			if strings.Contains(c.want, "old") {
				r.Messages = append(r.Messages[:1:1], turn(agent.Assistant, call("old", "t", `{}`)))[:2]
				c.want = strings.Replace(c.want, "old_2", "old_3", 1)
			}
			var got []string
			shown := map[string]string{}
			for d, err := range m.Stream(t.Context(), r) {
				if err != nil {
					t.Fatal(err)
				}
				if d.Kind == agent.DeltaInput {
					shown[d.CallID] += d.Text
				}
				if d.Final != nil {
					for _, c := range d.Final.Message.Calls() {
						got = append(got, c.ID+" "+c.Tool+" "+string(c.Input))
						if shown[c.ID] != string(c.Input) {
							t.Errorf("of %s was shown %q", c.ID, shown[c.ID])
						}
					}
				}
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), c.want)
			}
		})
	}
}

func TestNamesThatTheAPIDoesNotTakeAreFoundAgain(t *testing.T) {
	long := "mcp__server__" + strings.Repeat("x", 80)
	r := agent.Request{
		Messages: hi.Messages, Names: names,
		Tools: []agent.Spec{{Name: "mcp__files__read.one", Input: json.RawMessage(`{}`)}, {Name: long, Input: json.RawMessage(`{}`)}},
	}
	body := events(`{"choices":[{"delta":{"tool_calls":[{"id":"1","function":{"name":"mcp__files__read_one"}},{"id":"2","function":{"name":"`+long[:64]+`"}},{"id":"3","function":{"name":"Bash"}},{"id":"4","function":{"name":"else"}}]},"finish_reason":"stop"}]}`, "[DONE]")
	var got []string
	for d, err := range plays(Config{}, says(body)).Stream(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind == agent.DeltaCall {
			got = append(got, d.Tool)
		}
	}
	if want := []string{"mcp__files__read.one", long, "bash__exec", "else"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestThinkTags(t *testing.T) {
	for _, c := range []struct{ name, text, thinking, said string }{
		{"at the start", "<think>\na b\n</think>\n\nc", "\na b\n", "c"},
		{"behind space", " \n<think>a</think>c", "a", "c"},
		{"nothing thought", "<think>\n\n</think>\n\nc", "\n\n", "c"},
		{"no tags", "a < b", "", "a < b"},
		{"in the middle", "a <think>b</think>", "", "a <think>b</think>"},
		{"twice", "<think>a</think>b <think>c</think>", "a", "b <think>c</think>"},
		{"never closed", "<think>a</thin", "a</thin", ""},
		{"something like it", "<thinking>a", "", "<thinking>a"},
		{"only half of one", " <thi", "", " <thi"},
		{"space", strings.Repeat(" ", 200) + "<think>a</think>", "", strings.Repeat(" ", 200) + "<think>a</think>"},
	} {
		for _, size := range []int{1, 2, 3, 1000} {
			var events []string
			for rest := c.text; rest != ""; {
				n := min(size, len(rest))
				q, _ := json.Marshal(rest[:n])
				events = append(events, delta(`{"content":`+string(q)+`}`))
				rest = rest[n:]
			}
			_, final, err := drain(t.Context(), plays(Config{Compat: Compat{ThinkTags: true}}, says(stream(`"stop"`, events...))))
			if err != nil {
				t.Fatal(err)
			}
			var thinking string
			for _, b := range final.Message.Blocks {
				if b.Type == agent.ThinkingBlock {
					thinking += b.Text
				}
			}
			if said := final.Message.Text(); said != c.said || thinking != c.thinking {
				t.Errorf("%s, in pieces of %d: %q and %q", c.name, size, thinking, said)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name, usage string
		want        agent.Usage
	}{
		{"nothing cached", `{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}`, agent.Usage{Input: 10, Output: 2}},
		{"details that are null", `{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":null}`, agent.Usage{Input: 10, Output: 2}},
		{"cached", `{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}`, agent.Usage{Input: 2, Output: 2, CacheRead: 8}},
		{"cached, by hits", `{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2}`, agent.Usage{Input: 2, Output: 2, CacheRead: 8}},
		{"cached, on top", `{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":8}`, agent.Usage{Input: 2, Output: 2, CacheRead: 8}},
		{"written", `{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":5}}`, agent.Usage{Input: 2, Output: 2, CacheRead: 3, CacheWrite: 5}},
		{"more cached than sent", `{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":80}`, agent.Usage{Output: 2, CacheRead: 10}},
		{"thinking within", `{"prompt_tokens":10,"completion_tokens":9,"total_tokens":19,"completion_tokens_details":{"reasoning_tokens":7}}`, agent.Usage{Input: 10, Output: 9}},
		{"thinking apart", `{"prompt_tokens":10,"completion_tokens":2,"total_tokens":19,"completion_tokens_details":{"reasoning_tokens":7}}`, agent.Usage{Input: 10, Output: 9}},
		{"fractions and nonsense", `{"prompt_tokens":10.0,"completion_tokens":-5,"total_tokens":"many"}`, agent.Usage{Input: 10}},
		{"beyond all", `{"prompt_tokens":1e300,"completion_tokens":1}`, agent.Usage{Input: 1<<31 - 1, Output: 1}},
		{"nothing", `{}`, agent.Usage{}},
		{"null", `null`, agent.Usage{}},
	} {
		for where, event := range map[string]string{
			"at the end":    `{"object":"chat.completion.chunk","choices":[],"usage":` + c.usage + `}`,
			"in a choice":   `{"choices":[{"index":0,"delta":{},"usage":` + c.usage + `}]}`,
			"in an add-on":  `{"choices":[],"x_groq":{"usage":` + c.usage + `}}`,
			"in everything": `{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":` + c.usage + "}\n\ndata: " + `{"choices":[{"index":0,"delta":{"content":"b"}}],"usage":` + c.usage + `}`,
		} {
			deltas, final, err := drain(t.Context(), plays(Config{}, says(stream(`"stop"`, event))))
			if err != nil || final.Usage != c.want {
				t.Errorf("%s, %s: %+v, %v", c.name, where, final, err)
			}
			told := 0
			for _, d := range deltas {
				if d.Kind == agent.DeltaUsage {
					told++
				}
			}
			if told > 1 {
				t.Errorf("%s, %s: told %d times", c.name, where, told)
			}
		}
	}
}

func TestWholeAnswers(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{
			"text", `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`,
			`{"message":{"role":"assistant","blocks":[{"type":"text","text":"Hi"}]},"stop":"end_turn","usage":{"input":3,"output":1},"id":"c","model":"m","request_id":"req_1"}`,
		},
		{
			"calls", `{"choices":[{"message":{"reasoning":"Hm","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"Bash","arguments":"{}"}},{"id":"b","function":{"name":"Read","arguments":{"x":1}}}]},"finish_reason":"stop"}]}`,
			`{"message":{"role":"assistant","blocks":[{"type":"thinking","text":"Hm","provider":"openai"},{"type":"call","call":{"id":"a","tool":"bash__exec","input":{}}},{"type":"call","call":{"id":"b","tool":"file-system__read","input":{"x":1}}}]},"stop":"tool_use","usage":{"input":0,"output":0},"request_id":"req_1"}`,
		},
		{"no reason", `{"choices":[{"message":{"content":"Hi"}}]}`, `{"message":{"role":"assistant","blocks":[{"type":"text","text":"Hi"}]},"stop":"end_turn","usage":{"input":0,"output":0},"request_id":"req_1"}`},
		{"a stream that calls itself a document", stream(`"stop"`, delta(`{"content":"Hi"}`)), `{"message":{"role":"assistant","blocks":[{"type":"text","text":"Hi"}]},"stop":"end_turn","usage":{"input":0,"output":0},"id":"c","model":"m","request_id":"req_1"}`},
		{"an error", `{"error":{"message":"no such model","code":"model_not_found"}}`, "not-found (HTTP 200): no such model"},
		{"something else", `{"hello":"world"}`, "protocol: the endpoint answers with something else than Chat Completions; check the base URL"},
		{"no JSON", `{"choices":[`, "protocol: the endpoint streams something else than Chat Completions; check the base URL"},
	} {
		m := New(Config{Config: wire.Config{Info: reader, HTTP: answers("application/json", http.StatusOK, says(c.body))}})
		_, final, err := drain(t.Context(), m)
		got, _ := json.Marshal(final)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	start := events(delta(`{"content":"a"}`))
	for _, c := range []struct {
		name, body string
		class      agent.FailureClass
		code       string
	}{
		{"nothing", "", agent.FailServer, "cut"},
		{"a start and no end", start, agent.FailServer, "cut"},
		{"done without a reason", start + "data: [DONE]\n\n", agent.FailServer, "cut"},
		{"a reason in a line that is cut", strings.TrimSuffix(stream(`"stop"`), "\n\ndata: [DONE]\n\n"), agent.FailServer, "cut"},
		{"a web page", "<html><body>Sign in</body></html>", agent.FailProtocol, ""},
		{"another protocol", events(`{"type":"message_start","message":{"id":"m"}}`, `{"type":"message_stop"}`), agent.FailProtocol, ""},
		{"one more", events(`{"type":"response.created","response":{"id":"r"}}`), agent.FailProtocol, ""},
		{"no JSON at all", events("hello"), agent.FailProtocol, ""},
		{"done and nothing else", events("[DONE]"), agent.FailProtocol, ""},
		{"a damaged event", start + events(`{"choices":[{"del`), agent.FailServer, "damaged"},
		{"an error", start + events(`{"error":{"message":"oops","type":"server_error","param":null,"code":null}}`), agent.FailServer, "server_error"},
		{"an error of a limit", start + events(`{"error":{"message":"slow down","type":"rate_limit_error"}}`), agent.FailRate, "rate_limit_error"},
		{"an error with a status", events(`{"error":{"message":"Rate limit exceeded","code":429}}`), agent.FailRate, "429"},
		{"an error as text", start + events(`{"error":"model runner has stopped"}`), agent.FailServer, ""},
		{"an error without its envelope", start + events(`{"message":"boom","type":"internal","code":500}`), agent.FailServer, "500"},
		{"an error event", start + "event: error\ndata: out of memory\n\n", agent.FailServer, ""},
		{"an error in a choice", start + events(`{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":502,"message":"gone"}}]}`), agent.FailServer, "502"},
		{"a reason that is an error", stream(`"error"`), agent.FailServer, "error"},
		{"not enough of something", stream(`"insufficient_system_resource"`), agent.FailServer, "insufficient_system_resource"},
		{"the context, in the stream", events(`{"error":{"message":"This model's maximum context length is 1024 tokens. However, you requested 1029 tokens","type":"BadRequestError","param":null,"code":400}}`), agent.FailContext, "400"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, final, err := drain(t.Context(), plays(Config{}, says(c.body)))
			e, ok := err.(*agent.ModelError)
			if final != nil || !ok || e.Class != c.class || e.Code != c.code || e.Message == "" {
				t.Errorf("got %v, %#v", final, err)
			}
		})
	}
}

func TestEndsThatAreGoodEnough(t *testing.T) {
	whole := stream(`"stop"`, delta(`{"content":"a"}`))
	for name, body := range map[string]string{
		"as documented":              whole,
		"without [DONE]":             strings.TrimSuffix(whole, "data: [DONE]\n\n"),
		"[DONE] cut":                 strings.TrimSuffix(whole, "\n\n"),
		"events behind [DONE]":       whole + events(delta(`{"content":"b"}`)),
		"an empty reason every time": strings.ReplaceAll(whole, `"finish_reason":null`, `"finish_reason":""`),
	} {
		_, final, err := drain(t.Context(), plays(Config{}, says(body)))
		if err != nil || final.Message.Text() != "a" || final.Stop != agent.StopEnd {
			t.Errorf("%s: %+v, %v", name, final, err)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	many := events(delta(`{"tool_calls":[{"function":{"name":"t","arguments":"{}"}}]}`), delta(`{"tool_calls":[{"function":{"name":"u","arguments":"{}"}}]}`))
	if _, _, err := drain(t.Context(), plays(Config{}, says(strings.Repeat(many, wire.MaxBlocks/2)+many))); agent.ClassOf(err) != agent.FailProtocol {
		t.Errorf("calls: %v", err)
	}
	big := strings.Repeat(events(delta(`{"content":"`+strings.Repeat("x", 1<<20)+`"}`)), wire.MaxAnswer>>20+1)
	if _, _, err := drain(t.Context(), plays(Config{}, says(big))); agent.ClassOf(err) != agent.FailProtocol {
		t.Errorf("much text: %v", err)
	}
	for name, more := range map[string]string{
		"text":      `{"content":"x"}`,
		"thinking":  `{"reasoning":"x"}`,
		"input":     `{"tool_calls":[{"index":0,"function":{"name":"t","arguments":"x"}}]}`,
		"an ID":     `{"tool_calls":[{"index":0,"id":"x"}]}`,
		"a name":    `{"tool_calls":[{"index":0,"function":{"name":"t"}}]}`,
		"details":   `{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}`,
		"refusals":  `{"refusal":"x"}`,
		"think tag": `{"content":"<think>x"}`,
	} {
		full := &answer{
			Answer:      wire.Answer{In: wire.NewBody(nil), Emit: func(agent.Delta) error { return nil }, Kept: wire.MaxAnswer},
			keepDetails: true, tags: tags{on: name == "think tag"},
		}
		if err := full.take([]byte(delta(more)), false); agent.ClassOf(err) != agent.FailProtocol {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	body := events(`{"id":"`+long+`","model":"`+long+`","choices":[{"delta":{"tool_calls":[{"id":"`+long+`","function":{"name":"`+long+`"}}]},"finish_reason":"`+long+`"}]}`, "[DONE]")
	_, final, err := drain(t.Context(), plays(Config{}, says(body)))
	if err != nil {
		t.Fatal(err)
	}
	c := final.Message.Calls()[0]
	for _, s := range []string{final.ID, final.Model, string(final.Stop), c.ID, c.Tool} {
		if s != long[:maxWord] {
			t.Errorf("%d bytes are kept", len(s))
		}
	}
}

func TestWhoeverLeavesIsNotAskedAgain(t *testing.T) {
	n := 0
	for _, err := range plays(Config{}, says(stream(`"stop"`, delta(`{"content":"a"}`), delta(`{"content":"b"}`)))).Stream(t.Context(), hi) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d deltas", n)
	}
}
