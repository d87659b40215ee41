package responses

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"dure/agent"
	"dure/internal/models/sse"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
)

// plays returns a model that answers with what body returns.
func plays(cfg wire.Config, body func() io.Reader) *wire.Model {
	return playsAs("text/event-stream", cfg, body)
}

func playsAs(kind string, cfg wire.Config, body func() io.Reader) *wire.Model {
	if cfg.Info.ID == "" {
		cfg.Info = reader
	}
	cfg.HTTP = wiretest.Answers(http.StatusOK, body, "Content-Type", kind, "X-Request-Id", "req_1")
	return New(cfg)
}

func playsText(s string) *wire.Model {
	return plays(wire.Config{}, func() io.Reader { return strings.NewReader(s) })
}

var hi = agent.Request{Messages: []agent.Message{says(agent.User, words("hi"))}, Names: names}

// drain asks a model and returns what it said.
func drain(ctx context.Context, m *wire.Model) ([]agent.Delta, *agent.Answer, error) {
	return wiretest.Drain(ctx, m, hi)
}

func TestStreamGoldens(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			stream, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			deltas, final, err := drain(t.Context(), plays(wire.Config{}, func() io.Reader { return bytes.NewReader(stream) }))
			got := wiretest.Describe(deltas, err)
			wiretest.Golden(t, strings.TrimSuffix(file, ".sse")+".want", got)

			deltas, _, err = drain(t.Context(), plays(wire.Config{}, func() io.Reader { return iotest.OneByteReader(bytes.NewReader(stream)) }))
			if again := wiretest.Describe(deltas, err); !bytes.Equal(again, got) {
				t.Errorf("byte by byte it is\n%s", again)
			}
			crlf := bytes.ReplaceAll(stream, []byte("\n"), []byte("\r\n"))
			deltas, _, err = drain(t.Context(), plays(wire.Config{}, func() io.Reader { return bytes.NewReader(crlf) }))
			if again := wiretest.Describe(deltas, err); !bytes.Equal(again, got) {
				t.Errorf("with CRLF it is\n%s", again)
			}
			if final != nil {
				fragmentsAgree(t, deltas, final)
			}
		})
	}
}

// fragmentsAgree checks that the deltas add up to the answer.
func fragmentsAgree(t *testing.T, deltas []agent.Delta, final *agent.Answer) {
	t.Helper()
	var shown, said, shownInput, input strings.Builder
	for _, d := range deltas {
		switch d.Kind {
		case agent.DeltaText, agent.DeltaThinking:
			shown.WriteString(d.Text)
		case agent.DeltaInput:
			shownInput.WriteString(d.Text)
		}
	}
	for _, b := range final.Message.Blocks {
		if b.Type == agent.CallBlock && b.Call.Invalid == "" {
			input.Write(b.Call.Input)
		} else if b.Type == agent.CallBlock {
			input.WriteString(b.Call.Raw)
		}
		said.WriteString(b.Text)
	}
	if shown.String() != said.String() || shownInput.Len() != input.Len() {
		t.Errorf("shown %q and %q\nsaid  %q and %q", shown.String(), shownInput.String(), said.String(), input.String())
	}
}

// What came goes back: the next request has the items in their places.
func TestAnswersGoBackAsTheyCame(t *testing.T) {
	stream, err := os.ReadFile("testdata/calls.sse")
	if err != nil {
		t.Fatal(err)
	}
	m := plays(wire.Config{}, func() io.Reader { return bytes.NewReader(stream) })
	_, final, err := drain(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	next := agent.Request{Names: names, Messages: []agent.Message{final.Message, says(agent.User, result("call_1", agent.OK("1")), result("call_2", agent.OK("2")))}}
	want := `[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**Looking** at it"},{"type":"summary_text","text":"**Deciding**"}],"encrypted_content":"gAAsealed"},` +
		`{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]},` +
		`{"type":"function_call","call_id":"call_1","name":"Read","arguments":"{\"file_path\":\"a.go\"}"},` +
		`{"type":"function_call","call_id":"call_2","name":"Bash","arguments":"{\"command\":\"go test ./...\"}"},` +
		`{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"1"}]},` +
		`{"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"2"` + string(cacheMark) + `}]}]`
	if got := memberOf(t, wiretest.MustEncode(t, m, next), "input"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	other := New(wire.Config{Info: agent.ModelInfo{ID: "x", Provider: "elsewhere", Thinking: "effort"}})
	if got := memberOf(t, wiretest.MustEncode(t, other, next), "input"); strings.Contains(got, "rs_1") || strings.Contains(got, "phase") {
		t.Errorf("somebody else is sent %s", got)
	}
}

// stream returns the events of an answer between its beginning and its end.
func stream(status, rest string, events ...string) string {
	all := append([]string{`{"type":"response.created","response":{"id":"resp_1","model":"m","status":"in_progress"}}`}, events...)
	all = append(all, `{"type":"response.`+status+`","response":{"id":"resp_1","model":"m","status":"`+status+`"`+rest+`}}`)
	return "data: " + strings.Join(all, "\n\ndata: ") + "\n\n"
}

const (
	opensText  = `{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","content":[]}}`
	closesText = `{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","status":"completed"}}`
	opensCall  = `{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"Bash","arguments":""}}`
	closesCall = `{"type":"response.output_item.done","output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"Bash","status":"completed"}}`
)

func wrote(jsonText string) string {
	q, _ := json.Marshal(jsonText)
	return `{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":` + string(q) + `}`
}

func TestStopReasons(t *testing.T) {
	refused := `{"type":"response.refusal.delta","output_index":0,"delta":"no"}`
	for _, c := range []struct {
		status, rest string
		events       []string
		want         agent.StopReason
		detail       string
	}{
		{"completed", ``, []string{opensText, closesText}, agent.StopEnd, ""},
		{"completed", ``, []string{opensCall, closesCall}, agent.StopCalls, ""},
		{"completed", `,"incomplete_details":null`, nil, agent.StopEnd, ""},
		{"completed", ``, []string{opensText, refused, closesText}, agent.StopRefusal, "no"},
		{"incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`, []string{opensCall, closesCall}, agent.StopLength, ""},
		{"incomplete", ``, nil, agent.StopLength, ""},
		{"incomplete", `,"incomplete_details":{"reason":"content_filter"}`, nil, agent.StopRefusal, "content_filter"},
		{"incomplete", `,"incomplete_details":{"reason":"steered"}`, nil, "steered", ""},
	} {
		_, final, err := drain(t.Context(), playsText(stream(c.status, c.rest, c.events...)))
		if err != nil || final == nil || final.Stop != c.want || final.Detail != c.detail {
			t.Errorf("%s%s: %+v, %v", c.status, c.rest, final, err)
		}
	}
}

func TestUsage(t *testing.T) {
	const counted = `,"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":30},"output_tokens":7}`
	for _, c := range []struct {
		info agent.ModelInfo
		rest string
		want agent.Usage
	}{
		{reader, counted, agent.Usage{Input: 10, CacheRead: 60, CacheWrite: 30, Output: 7}},
		{plainReader, counted, agent.Usage{Input: 40, CacheRead: 60, Output: 7}},
		{reader, `,"usage":{"input_tokens":5,"output_tokens":1}`, agent.Usage{Input: 5, Output: 1}},
		{reader, `,"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":9},"output_tokens":-1}`, agent.Usage{CacheRead: 9}},
		{reader, `,"usage":null`, agent.Usage{}},
	} {
		m := plays(wire.Config{Info: c.info}, func() io.Reader { return strings.NewReader(stream("completed", c.rest)) })
		if _, final, err := drain(t.Context(), m); err != nil || final.Usage != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.rest, final, err, c.want)
		}
	}
}

func TestToolInput(t *testing.T) {
	cut := "the answer ended in the middle of the call: its input is incomplete"
	short := `,"incomplete_details":{"reason":"max_output_tokens"}`
	doneWith := func(arguments string) string {
		return strings.Replace(closesCall, `"status"`, `"arguments":`+arguments+`,"status"`, 1)
	}
	for _, c := range []struct {
		name, status, rest string
		events             []string
		want               agent.Call
	}{
		{"in pieces", "completed", "", []string{opensCall, wrote(`{"comm`), wrote(``), wrote(`and":"ls"}`), closesCall}, agent.Call{Input: json.RawMessage(`{"command":"ls"}`)}},
		{"empty", "completed", "", []string{opensCall, wrote(``), closesCall}, agent.Call{Input: json.RawMessage(`{}`)}},
		{"all at the start", "completed", "", []string{strings.Replace(opensCall, `"arguments":""`, `"arguments":"{\"a\":1}"`, 1), closesCall}, agent.Call{Input: json.RawMessage(`{"a":1}`)}},
		{"all at the end", "completed", "", []string{opensCall, doneWith(`"{\"a\":1}"`)}, agent.Call{Input: json.RawMessage(`{"a":1}`)}},
		{"an object", "completed", "", []string{opensCall, doneWith(`{"a":1}`)}, agent.Call{Input: json.RawMessage(`{"a":1}`)}},
		{"the rest at the end", "completed", "", []string{opensCall, wrote(`{"a"`), `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}`, closesCall}, agent.Call{Input: json.RawMessage(`{"a":1}`)}},
		{"something else at the end", "completed", "", []string{opensCall, wrote(`{"b":2}`), doneWith(`"{\"a\":1}"`)}, agent.Call{Input: json.RawMessage(`{"a":1}`)}},
		{"never announced", "completed", "", []string{doneWith(`"{\"a\":1}"`)}, agent.Call{Input: json.RawMessage(`{"a":1}`)}},
		{"with a NUL", "completed", "", []string{opensCall, wrote(`{"a":"\u0000"}`), closesCall}, agent.Call{Input: json.RawMessage(`{"a":"\u0000"}`)}},
		{"malformed", "completed", "", []string{opensCall, wrote(`{"a":}`), closesCall}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{"a":}`, Invalid: "the input is no valid JSON: invalid character '}' looking for beginning of value"}},
		{"no object", "completed", "", []string{opensCall, wrote(`["a"]`), closesCall}, agent.Call{Input: json.RawMessage(`{}`), Raw: `["a"]`, Invalid: "the input is JSON but no object"}},
		{"cut at the limit", "incomplete", short, []string{opensCall, wrote(`{"command":"rm -rf /tm`), closesCall}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{"command":"rm -rf /tm`, Invalid: cut}},
		{"cut before the first byte", "incomplete", short, []string{opensCall, closesCall}, agent.Call{Input: json.RawMessage(`{}`), Invalid: cut}},
		{"complete although at the limit", "incomplete", short, []string{opensCall, wrote(`{"command":"ls"}`), closesCall}, agent.Call{Input: json.RawMessage(`{"command":"ls"}`)}},
		{"never closed", "completed", "", []string{opensCall, wrote(`{"command":`)}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{"command":`, Invalid: cut}},
		{"closed as incomplete", "completed", "", []string{opensCall, wrote(`{"command":`), strings.Replace(closesCall, `"completed"`, `"incomplete"`, 1)}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{"command":`, Invalid: cut}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, final, err := drain(t.Context(), playsText(stream(c.status, c.rest, c.events...)))
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

func TestCallsWithoutAnIDOfTheirOwn(t *testing.T) {
	events := []string{}
	for i, id := range []string{"", "x", "x", "", "y_5", "y", "y"} {
		events = append(events, fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","call_id":%q,"name":"Bash"}}`, i, id))
	}
	_, final, err := drain(t.Context(), playsText(stream("completed", "", events...)))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range final.Message.Calls() {
		ids = append(ids, c.ID)
	}
	if got, want := fmt.Sprint(ids), "[call_resp_1 x x_2 call_resp_1_3 y_5 y y_6]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Items stand in the order of their indices, whichever was announced first.
func TestItemsOutOfOrder(t *testing.T) {
	event := func(kind string, index int, text string) string {
		return fmt.Sprintf(`{"type":"response.output_item.%s","output_index":%d,"item":{"type":"message","content":[{"type":"output_text","text":%q}]}}`, kind, index, text)
	}
	_, final, err := drain(t.Context(), playsText(stream("completed", "", event("added", 7, "b"), event("added", 2, "a"), event("done", 7, "b!"), event("done", 2, "a!"))))
	if want := says(agent.Assistant, words("a!"), words("b!")); err != nil || !reflect.DeepEqual(final.Message, want) {
		t.Errorf("got %+v, %v", final, err)
	}
}

func TestBrokenStreams(t *testing.T) {
	start := `data: {"type":"response.created","response":{"id":"resp_1"}}` + "\n\n"
	failed := func(e string) string {
		return start + `data: {"type":"response.failed","response":{"id":"resp_1","status":"failed","error":` + e + `}}` + "\n\n"
	}
	for _, c := range []struct {
		name, body string
		class      agent.FailureClass
		code       string
	}{
		{"nothing", "", agent.FailServer, "cut"},
		{"a start and no end", start, agent.FailServer, "cut"},
		{"the end of another API", start + "data: [DONE]\n\n", agent.FailServer, "cut"},
		{"a last event without its empty line", strings.TrimSuffix(stream("completed", ""), "\n"), agent.FailServer, "cut"},
		{"a last event that says nothing", start + `data: {"type":"response.completed"}` + "\n\n", agent.FailServer, "damaged"},
		{"a web page", "<html><body>Sign in</body></html>", agent.FailProtocol, ""},
		{"chat completions", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", agent.FailProtocol, ""},
		{"another protocol", "data: {\"type\":\"message_start\"}\n\ndata: {\"type\":\"message_stop\"}\n\n", agent.FailProtocol, ""},
		{"a damaged event", start + "data: {\"type\":\"response.outp\n\n", agent.FailServer, "damaged"},
		{"a damaged event that is read", start + `data: {"type":"response.output_item.added","output_index":"x"}` + "\n\n", agent.FailServer, "damaged"},
		{"failed", failed(`{"code":"server_error","message":"oops"}`), agent.FailServer, "server_error"},
		{"failed by a limit", failed(`{"code":"rate_limit_exceeded","message":"slow down"}`), agent.FailRate, "rate_limit_exceeded"},
		{"failed for want of money", failed(`{"code":"insufficient_quota","message":"You exceeded your current quota"}`), agent.FailQuota, "insufficient_quota"},
		{"failed by length", failed(`{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}`), agent.FailContext, "context_length_exceeded"},
		{"failed by length, in words", failed(`{"code":"invalid_prompt","message":"Your input exceeds the context window of this model."}`), agent.FailContext, "invalid_prompt"},
		{"failed by the prompt", failed(`{"code":"invalid_prompt","message":"flagged"}`), agent.FailInvalid, "invalid_prompt"},
		{"failed by an image", failed(`{"code":"image_too_large","message":"too large"}`), agent.FailInvalid, "image_too_large"},
		{"failed in a new way", failed(`{"code":"new_code","message":"?"}`), agent.FailServer, "new_code"},
		{"failed without a word", failed(`null`), agent.FailServer, ""},
		{"cancelled", strings.ReplaceAll(failed(`null`), "failed", "cancelled"), agent.FailServer, ""},
		{"overloaded", start + `data: {"type":"error","code":"server_is_overloaded","message":"busy"}` + "\n\n", agent.FailServer, "server_is_overloaded"},
		{"an error inside an error", start + `data: {"type":"error","error":{"type":"tokens","code":"rate_limit_exceeded","message":"slow"}}` + "\n\n", agent.FailRate, "rate_limit_exceeded"},
		{"an error of a gateway", start + `data: {"error":{"message":"no","code":429}}` + "\n\n", agent.FailServer, ""},
		{"an error of few words", start + `data: {"error":"upstream gone"}` + "\n\n", agent.FailServer, ""},
		{"an error before anything", `data: {"type":"error","code":null,"message":"oops"}` + "\n\n", agent.FailServer, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, final, err := drain(t.Context(), playsText(c.body))
			e, ok := err.(*agent.ModelError)
			if final != nil || !ok || e.Class != c.class || e.Code != c.code || e.Message == "" {
				t.Errorf("got %v, %#v", final, err)
			}
		})
	}
}

// Endpoints that cannot stream answer with the document that the stream would
// have ended with.
func TestWholeAnswers(t *testing.T) {
	body := `{"id":"resp_1","object":"response","status":"completed","model":"m","error":null,"output":[` +
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"type":"message","content":[{"type":"output_text","text":"hi"}]},` +
		`{"type":"function_call","call_id":"c1","name":"Bash","arguments":"{}"}],"usage":{"input_tokens":3,"output_tokens":2}}`
	deltas, final, err := drain(t.Context(), playsAs("application/json", wire.Config{}, func() io.Reader { return strings.NewReader(body) }))
	if err != nil {
		t.Fatal(err)
	}
	c := agent.Call{ID: "c1", Tool: "bash__exec", Input: json.RawMessage(`{}`)}
	want := agent.Answer{
		Message: says(agent.Assistant, agent.Block{Type: agent.ThinkingBlock, Provider: "openai", Raw: json.RawMessage(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`)}, words("hi"), agent.Block{Type: agent.CallBlock, Call: &c}),
		Stop:    agent.StopCalls, Usage: agent.Usage{Input: 3, Output: 2}, ID: "resp_1", Model: "m", RequestID: "req_1",
	}
	if !reflect.DeepEqual(*final, want) || len(deltas) != 6 {
		t.Errorf("%d deltas\ngot  %+v\nwant %+v", len(deltas), *final, want)
	}
	for body, class := range map[string]agent.FailureClass{
		`{"object":"response","status":"failed","error":{"code":"insufficient_quota","message":"no"}}`: agent.FailQuota,
		`{"object":"response","status":"in_progress"}`:                                                 agent.FailServer,
		`{"object":"chat.completion"}`:                                                                 agent.FailProtocol,
		`[]`:                                                                                           agent.FailProtocol,
		`{"error":"Unexpected endpoint or method. (POST /v1/responses)"}`:                              agent.FailProtocol,
	} {
		if _, _, err := drain(t.Context(), playsAs("application/json", wire.Config{}, func() io.Reader { return strings.NewReader(body) })); agent.ClassOf(err) != class {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	event := func(data string) string { return "data: " + data + "\n\n" }
	many := strings.Repeat(event(opensText), wire.MaxBlocks+1)
	if _, _, err := drain(t.Context(), playsText(many)); agent.ClassOf(err) != agent.FailProtocol {
		t.Errorf("many items: %v", err)
	}
	piece := event(fmt.Sprintf(`{"type":"response.output_text.delta","output_index":0,"delta":%q}`, strings.Repeat("x", 1<<20)))
	big := event(opensText) + strings.Repeat(piece, wire.MaxAnswer>>20+1)
	if _, _, err := drain(t.Context(), playsText(big)); agent.ClassOf(err) != agent.FailProtocol {
		t.Errorf("much text: %v", err)
	}
	for name, data := range map[string]string{
		"an item":      `{"type":"response.output_item.added","output_index":1,"item":{"type":"x"}}`,
		"a whole item": `{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","summary":[]}}`,
		"a whole text": `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"other"}]}}`,
		"an input":     `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","arguments":"x"}}`,
	} {
		a := answerFor(nil, func(agent.Delta) error { return nil })
		b, _ := a.add(0, agent.TextBlock)
		b.Text.WriteString("one")
		a.Kept = wire.MaxAnswer
		if _, err := a.Take(sse.Event{Data: []byte(data)}); agent.ClassOf(err) != agent.FailProtocol {
			t.Errorf("%s too much: %v", name, err)
		}
	}
}

// answerFor returns an answer that is read from r.
func answerFor(r io.Reader, emit wire.Emit) *answer {
	return newAnswer(wire.Answer{Request: hi, Provider: "openai", In: wire.NewBody(r), Emit: emit}, marked(reader))
}

func TestWhoeverLeavesIsNotAskedAgain(t *testing.T) {
	body := stream("completed", "", opensText, `{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, closesText)
	n := 0
	for _, err := range playsText(body).Stream(t.Context(), hi) {
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

func TestDeltasDoNotAllocate(t *testing.T) {
	for _, one := range []string{
		`{"type":"response.output_text.delta","content_index":0,"delta":"ab\n","item_id":"msg_1","logprobs":[],"obfuscation":"Xy","output_index":0,"sequence_number":4}`,
		`{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"ab\n","logprobs":[]}`,
	} {
		event := "event: response.output_text.delta\ndata: " + one + "\n\n"
		body := strings.Replace(stream("completed", "", opensText, closesText), "data: "+closesText+"\n\n", strings.Repeat(event, 20_000)+"data: "+closesText+"\n\n", 1)
		m := playsText(body)
		allocs := testing.AllocsPerRun(3, func() {
			for d, err := range m.Stream(t.Context(), hi) {
				if err != nil || d.Kind == agent.DeltaFinal && d.Final.Message.Text() != strings.Repeat("ab\n", 20_000) {
					t.Fatal("it read something else")
				}
			}
		})
		if allocs > 500 {
			t.Errorf("%v allocations for 20,000 deltas", allocs)
		}
	}
}

// FuzzDelta checks that the short way to read a delta reads what encoding/json
// reads, or leaves it alone.
func FuzzDelta(f *testing.F) {
	for _, s := range []string{
		`"delta":"hello","output_index":7}`, `"output_index":7,"delta":"a\nb\"c\\d\/\t\r","logprobs":[]}      `, `"output_index":7,"delta":"\u00e9\ud83d\ude00"}`, "\"output_index\":7,\"delta\":\"é\xff\"}",
		`"output_index":7,"delta":"","item_id":"x\"","sequence_number":1}`, `"output_index":7,"delta":"x"} }`, `"output_index":7,"delta":"x","y":1}`, `"output_index":07,"delta":"x"}`, `"delta":"x`, "\"delta\":\"\x01\"}",
		`"output_index":7,"delta":"x","Delta":"y"}`, `"output_index":7,"delta":"x","delta":"y"}`, `"output_index":7,"item_id":"`, `"output_index":7,"obfuscation":,"delta":"x"}`, `"output_index":7.5,"delta":"x"}`, `"output_index":7,"delta":"x",}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, tail []byte) {
		data := append([]byte(`{"type":"response.output_text.delta",`), tail...)
		a := answerFor(nil, func(agent.Delta) error { return nil })
		b, _ := a.add(7, agent.TextBlock)
		ok, err := a.fast(data)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			if b.Text.Len() > 0 {
				t.Fatal("it said no and did something")
			}
			return
		}
		e, err := decode(data)
		if err != nil || text(e.Delta) != b.Text.String() || e.Index != 7 {
			t.Fatalf("%q: read %q, json reads %q, %v", data, b.Text.String(), text(e.Delta), err)
		}
	})
}

// FuzzStream reads anything, in pieces of any size: an answer has one final
// delta, at its end, and whatever is no answer has an error.
func FuzzStream(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.sse")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, byte(7))
	}
	f.Add([]byte(stream("completed", "", opensCall, wrote(`{"a`), opensCall, closesCall, closesText)), byte(1))
	f.Fuzz(func(t *testing.T, data []byte, size byte) {
		finals, after := 0, 0
		var final *agent.Answer
		a := answerFor(pieces{bytes.NewReader(data), int(size) + 1}, func(d agent.Delta) error {
			if finals > 0 {
				after++
			}
			if d.Kind == agent.DeltaFinal {
				finals, final = finals+1, d.Final
			}
			return nil
		})
		complete, err := wire.Read(a)
		if (err == nil) != (finals == 1) || after > 0 || complete != (err == nil) {
			t.Fatalf("%d final deltas, %d behind them, %v", finals, after, err)
		}
		if err != nil {
			return
		}
		ids := map[string]bool{}
		for _, c := range final.Message.Calls() {
			if !json.Valid(c.Input) || !wire.Object(c.Input) || c.ID == "" || ids[c.ID] {
				t.Fatalf("the call %+v", c)
			}
			ids[c.ID] = true
		}
		if final.Stop == "" {
			t.Fatal("no reason to stop")
		}
		// Whatever came can be sent back.
		body, err := New(wire.Config{Info: reader}).Encode(agent.Request{Messages: []agent.Message{final.Message}})
		if err != nil || !json.Valid(body) {
			t.Fatalf("it goes back as %s, %v", body, err)
		}
	})
}

// pieces reads at most n bytes at a time.
type pieces struct {
	r io.Reader
	n int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(p.n, len(b))]) }

// BenchmarkStream reads 800 KB of text in 200,000 deltas.
func BenchmarkStream(b *testing.B) {
	var body bytes.Buffer
	body.WriteString("event: response.output_item.added\ndata: " + opensText + "\n\n")
	for i := range 200_000 {
		fmt.Fprintf(&body, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"content_index\":0,\"delta\":\"abc\\n\",\"item_id\":\"msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4b2eb3d3\",\"logprobs\":[],\"obfuscation\":\"Yk3aPq\",\"output_index\":0,\"sequence_number\":%d}\n\n", i)
	}
	body.WriteString(stream("completed", ""))
	m := plays(wire.Config{}, func() io.Reader { return bytes.NewReader(body.Bytes()) })
	wiretest.Reading(b, m, hi, 800_000)
}
