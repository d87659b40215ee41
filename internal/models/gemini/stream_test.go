package gemini

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
func plays(body func() io.Reader) *wire.Model {
	return New(wire.Config{Info: reader, HTTP: wiretest.Answers(http.StatusOK, body, "Content-Type", "text/event-stream", "X-Request-Id", "req_1")})
}

func playsText(body string) *wire.Model {
	return plays(func() io.Reader { return strings.NewReader(body) })
}

var hi = agent.Request{Messages: []agent.Message{says(agent.User, plain("hi"))}, Names: names, Tools: tools()}

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
			deltas, _, err := drain(t.Context(), plays(func() io.Reader { return bytes.NewReader(stream) }))
			got := wiretest.Describe(deltas, err)
			wiretest.Golden(t, strings.TrimSuffix(file, ".sse")+".want", got)

			deltas, _, err = drain(t.Context(), plays(func() io.Reader { return iotest.OneByteReader(bytes.NewReader(stream)) }))
			if again := wiretest.Describe(deltas, err); !bytes.Equal(again, got) {
				t.Errorf("byte by byte it is\n%s", again)
			}
			crlf := bytes.ReplaceAll(stream, []byte("\n"), []byte("\r\n"))
			deltas, _, err = drain(t.Context(), plays(func() io.Reader { return bytes.NewReader(crlf) }))
			if again := wiretest.Describe(deltas, err); !bytes.Equal(again, got) {
				t.Errorf("with CRLF it is\n%s", again)
			}
			compact := bytes.NewBuffer(nil) // written without spaces it is the same
			for line := range bytes.Lines(stream) {
				if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
					compact.WriteString("data:")
					if err := json.Compact(compact, data); err != nil {
						t.Fatal(err)
					}
					compact.WriteString("\n")
				} else {
					compact.Write(line)
				}
			}
			deltas, _, err = drain(t.Context(), plays(func() io.Reader { return bytes.NewReader(compact.Bytes()) }))
			if again := wiretest.Describe(deltas, err); !bytes.Equal(spaceless(again), spaceless(got)) {
				t.Errorf("without spaces it is\n%s", again)
			}
		})
	}
}

func spaceless(b []byte) []byte { return bytes.ReplaceAll(b, []byte(" "), nil) }

// stream returns chunks with the given parts, and one that ends the answer.
func stream(reason string, parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "data: {\"candidates\": [{\"content\": {\"parts\": [%s],\"role\": \"model\"},\"index\": 0}],\"responseId\": \"r\"}\n\n", p)
	}
	fmt.Fprintf(&b, "data: {\"candidates\": [{\"finishReason\": %q,\"finishMessage\": \"because\",\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 3,\"candidatesTokenCount\": 9},\"responseId\": \"r\"}\n\n", reason)
	return b.String()
}

const (
	saysText = `{"text": "ok"}`
	callsOne = `{"functionCall": {"name": "Bash","args": {"command": "ls"},"id": "c1"}}`
)

func TestStopReasons(t *testing.T) {
	for _, c := range []struct {
		reason, part string
		want         agent.StopReason
		detail       string
	}{
		{"STOP", saysText, agent.StopEnd, ""},
		{"STOP", "", agent.StopEnd, ""},
		{"STOP", callsOne, agent.StopCalls, ""},
		{"MAX_TOKENS", saysText, agent.StopLength, ""},
		{"MAX_TOKENS", callsOne, agent.StopLength, ""},
		{"CONTINUATION", saysText, agent.StopLength, ""},
		{"SAFETY", "", agent.StopRefusal, "SAFETY: because"},
		{"RECITATION", "", agent.StopRefusal, "RECITATION: because"},
		{"LANGUAGE", "", agent.StopRefusal, "LANGUAGE: because"},
		{"BLOCKLIST", "", agent.StopRefusal, "BLOCKLIST: because"},
		{"PROHIBITED_CONTENT", "", agent.StopRefusal, "PROHIBITED_CONTENT: because"},
		{"SPII", "", agent.StopRefusal, "SPII: because"},
		{"IMAGE_SAFETY", "", agent.StopRefusal, "IMAGE_SAFETY: because"},
		{"IMAGE_PROHIBITED_CONTENT", "", agent.StopRefusal, "IMAGE_PROHIBITED_CONTENT: because"},
		{"IMAGE_RECITATION", "", agent.StopRefusal, "IMAGE_RECITATION: because"},
		{"OTHER", saysText, "OTHER", "OTHER: because"},
		{"TOO_MANY_TOOL_CALLS", saysText, "TOO_MANY_TOOL_CALLS", "TOO_MANY_TOOL_CALLS: because"},
		{"SOMETHING_NEW", saysText, "SOMETHING_NEW", "SOMETHING_NEW: because"},
	} {
		parts := []string{c.part}
		_, final, err := drain(t.Context(), playsText(stream(c.reason, parts...)))
		if err != nil || final == nil || final.Stop != c.want || final.Detail != c.detail {
			t.Errorf("%s: %+v, %v", c.reason, final, err)
		}
	}
	for _, reason := range []string{"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER", "NO_IMAGE", "FINISH_REASON_UNSPECIFIED"} {
		_, final, err := drain(t.Context(), playsText(stream(reason)))
		e, ok := err.(*agent.ModelError)
		if final != nil || !ok || !e.Retryable() || e.Code != reason || !strings.Contains(e.Message, "because") {
			t.Errorf("%s: %+v, %#v", reason, final, err)
		}
	}
}

func TestCallsThatTheEndpointCouldNotRead(t *testing.T) {
	more := append(tools(), agent.Spec{Name: "bash__output", Input: json.RawMessage(`{}`)})
	for _, c := range []struct {
		message string
		noTools bool
		want    string
	}{
		{"Malformed function call: print(default_api.Bash(command='ls)", false, "bash__exec"},
		{"Malformed function call: call:default_api:BashOutput{id:1", false, "bash__output"},
		{"Malformed function call: Bash(", true, ""},
		{"Malformed function call: Delete(", false, ""},
	} {
		r := agent.Request{Messages: hi.Messages, Tools: more, NoTools: c.noTools, Names: map[string]string{"bash__exec": "Bash", "bash__output": "BashOutput"}}
		body := fmt.Sprintf("data: {\"candidates\": [{\"finishReason\": \"MALFORMED_FUNCTION_CALL\",\"finishMessage\": %q}],\"usageMetadata\": {}}\n\n", c.message)
		got := ""
		for d, err := range playsText(body).Stream(t.Context(), r) {
			if (err != nil) != (c.want == "") {
				t.Errorf("%s: %v", c.message, err)
			}
			if d.Final != nil {
				got = d.Final.Message.Calls()[0].Tool
			}
		}
		if got != c.want {
			t.Errorf("%s: a call of %q, want %q", c.message, got, c.want)
		}
	}
}

func TestAStreamWithoutUsageEndsWithItself(t *testing.T) {
	body := "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"ok\"}]},\"finishReason\": \"STOP\"}]}\n\n"
	for _, more := range []string{"", "data: [DONE]\n\n"} {
		_, final, err := drain(t.Context(), playsText(body+more))
		if err != nil || final == nil || final.Message.Text() != "ok" || final.Stop != agent.StopEnd {
			t.Errorf("%q: %+v, %v", more, final, err)
		}
	}
}

func TestToolInput(t *testing.T) {
	empty := json.RawMessage(`{}`)
	for _, c := range []struct {
		args string
		want agent.Call
	}{
		{`"args": {"command": "ls"}`, agent.Call{Input: json.RawMessage(`{"command": "ls"}`)}},
		{`"args": {}`, agent.Call{Input: empty}},
		{`"args": null`, agent.Call{Input: empty}},
		{`"x": 1`, agent.Call{Input: empty}},
		{`"args": {"a": "\u0000"}`, agent.Call{Input: json.RawMessage(`{"a": "\u0000"}`)}},
		{`"args": ["a"]`, agent.Call{Input: empty, Raw: `["a"]`, Invalid: "the input is JSON but no object"}},
		{`"args": "{}"`, agent.Call{Input: empty, Raw: `"{}"`, Invalid: "the input is JSON but no object"}},
	} {
		_, final, err := drain(t.Context(), playsText(stream("STOP", `{"functionCall": {"name": "Bash","id": "c1",`+c.args+`}}`)))
		if err != nil {
			t.Fatal(err)
		}
		c.want.ID, c.want.Tool = "c1", "bash__exec"
		if got := final.Message.Calls(); len(got) != 1 || !reflect.DeepEqual(got[0], c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.args, got, c.want)
		}
	}
	for _, f := range []string{
		`{"functionCall": {"name": "Bash","willContinue": true}}`,
		`{"functionCall": {"partialArgs": [{"jsonPath": "$.command","stringValue": "l"}]}}`,
	} {
		if _, _, err := drain(t.Context(), playsText(stream("STOP", f))); agent.ClassOf(err) != agent.FailProtocol {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestCallsWithoutAnIDOfTheirOwn(t *testing.T) {
	var parts []string
	for _, id := range []string{"", "x", "x", "", "y_5", "y", "y", "call_r_7", ""} {
		parts = append(parts, fmt.Sprintf(`{"functionCall": {"name": "Bash","id": %q}}`, id))
	}
	_, final, err := drain(t.Context(), playsText(stream("STOP", parts...)))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range final.Message.Calls() {
		ids = append(ids, c.ID)
	}
	if got, want := fmt.Sprint(ids), "[call_r_0 x x_2 call_r_3 y_5 y y_6 call_r_7 call_r_8]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBrokenStreams(t *testing.T) {
	text := `data: {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}` + "\n\n"
	for _, c := range []struct {
		name, body string
		class      agent.FailureClass
		code       string
	}{
		{"nothing", "", agent.FailServer, "cut"},
		{"no finish reason", text, agent.FailServer, "cut"},
		{"only a usage", `data: {"usageMetadata": {"promptTokenCount": 1}}` + "\n\n", agent.FailServer, "cut"},
		{"a last event without its empty line", strings.TrimSuffix(stream("STOP", saysText), "\n"), agent.FailServer, "cut"},
		{"a web page", "<html><body>Sign in</body></html>", agent.FailProtocol, ""},
		{"another protocol", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", agent.FailProtocol, ""},
		{"yet another", "data: {\"type\":\"message_start\"}\n\n", agent.FailProtocol, ""},
		{"a damaged event", text + "data: {\"candidates\": [{\"cont\n\n", agent.FailServer, "damaged"},
		{"an event of odd types", text + "data: {\"candidates\": 7}\n\n", agent.FailServer, "damaged"},
		{"overloaded", text + `data: {"error": {"code": 503,"message": "busy","status": "UNAVAILABLE"}}` + "\n\n", agent.FailServer, "UNAVAILABLE"},
		{"a limit, in a list", text + `data: [{"error": {"code": 429,"message": "slow down","status": "RESOURCE_EXHAUSTED"}}]` + "\n\n", agent.FailRate, "RESOURCE_EXHAUSTED"},
		{"an error with a code alone", text + `data: {"error": {"code": 429,"message": "slow down"}}` + "\n\n", agent.FailRate, ""},
		{"an error nobody knows", text + `data: {"error": {"message": "?"}}` + "\n\n", agent.FailServer, ""},
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

func TestAnswersThatComeAsOneDocument(t *testing.T) {
	one := `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"responseId":"r"}`
	last := `{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":2}}`
	for _, c := range []struct {
		body, want string
		class      agent.FailureClass
	}{
		{"[" + one + ",\n" + last + "]", "ab", ""},
		{last, "b", ""},
		{"[" + one + "]", "", agent.FailServer},
		{`[]`, "", agent.FailServer},
		{`{"choices":[]}`, "", agent.FailProtocol},
		{`[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, "", agent.FailAuth},
	} {
		m := New(wire.Config{Info: reader, HTTP: &http.Client{Transport: wiretest.Transport(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Request: r, Header: http.Header{"Content-Type": {"application/json; charset=UTF-8"}}, Body: io.NopCloser(strings.NewReader(c.body))}, nil
		})}})
		_, final, err := drain(t.Context(), m)
		if agent.ClassOf(err) != c.class || c.class == "" && (final == nil || final.Message.Text() != c.want || final.Usage.Input != 2) {
			t.Errorf("%s: %+v, %v", c.body, final, err)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	many := stream("STOP", strings.TrimSuffix(strings.Repeat(callsOne+",", wire.MaxBlocks+1), ","))
	if _, _, err := drain(t.Context(), playsText(many)); agent.ClassOf(err) != agent.FailProtocol {
		t.Errorf("many blocks: %v", err)
	}
	piece := fmt.Sprintf("data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": %q}],\"role\": \"model\"}}]}\n\n", strings.Repeat("x", 1<<20))
	if _, _, err := drain(t.Context(), playsText(strings.Repeat(piece, wire.MaxAnswer>>20+1))); agent.ClassOf(err) != agent.FailProtocol {
		t.Errorf("much text: %v", err)
	}
	for _, p := range []string{
		saysText, `{"text": "","thoughtSignature": "QQ=="}`, callsOne, `{"functionCall": {"name": "x"}, "thoughtSignature": "QQ=="}`, `{"executableCode": {}}`, `{"thoughtSignature": "QQ=="}`,
	} {
		a := answerFor(nil, func(agent.Delta) error { return nil })
		a.Kept = wire.MaxAnswer
		if _, err := a.Take(sse.Event{Data: []byte(`{"candidates":[{"content":{"parts":[` + p + `]}}]}`)}); agent.ClassOf(err) != agent.FailProtocol {
			t.Errorf("%s too much: %v", p, err)
		}
	}
}

func TestWhatIsSaidOfAnAnswerIsBounded(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	body := fmt.Sprintf(`data: {"candidates": [{"content": {"parts": [{"text": "a"}]},"finishReason": "X%s","finishMessage": "%[1]s"}],"usageMetadata": {},"modelVersion": "%[1]s","responseId": "%[1]s"}`+"\n\n", long)
	_, final, err := drain(t.Context(), playsText(body))
	if err != nil {
		t.Fatal(err)
	}
	got := []int{len(final.Stop), len(final.Detail), len(final.ID), len(final.Model)}
	if want := []int{wire.MaxCode - 1, wire.MaxMessage - 1, wire.MaxID, wire.MaxID}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v bytes, want %v", got, want)
	}
}

func TestWhoeverLeavesIsNotAskedAgain(t *testing.T) {
	n := 0
	for _, err := range playsText(stream("STOP", saysText, callsOne)).Stream(t.Context(), hi) {
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

const usual = `data: {"candidates": [{"content": {"parts": [{"text": "ab\n"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 12,"candidatesTokenCount": %d,"totalTokenCount": 16,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 12}]},"modelVersion": "gemini-3.8-flash","responseId": "r"}` + "\n\n"

// long returns an answer of n pieces of text.
func long(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, usual, i)
	}
	b.WriteString(stream("STOP"))
	return b.Bytes()
}

func TestDeltasDoNotAllocate(t *testing.T) {
	body := long(20_000)
	m := plays(func() io.Reader { return bytes.NewReader(body) })
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

// FuzzDelta checks that the short way to read a chunk reads what encoding/json
// reads, or leaves it alone.
func FuzzDelta(f *testing.F) {
	for _, s := range []string{
		`"t","thought":false}]}}]}`, `"hello"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 12,"totalTokenCount": 1},"modelVersion": "m","responseId": "r"}`,
		`"a\nb\"c\\d\/\t\r"}]}}]}      `, `"\u00e9"}]}}]}`, "\"é\xff\"}]}}]}", `"a","thought": true}],"role":"model"}}],"createTime":"x"}`,
		`"a"}]}}],"usageMetadata":{"promptTokenCount":012}}`, `"a"}]}}],"usageMetadata":{"promptTokenCount":-1}}`,
		`"a"}]}}],"usageMetadata":{"promptTokenCount":1,"promptTokenCount":2,"promptTokensDetails":[{"modality":"TEXT","tokenCount":1},{"modality":"IMAGE","tokenCount":2}]}}`,
		`"a"}]}}],"usageMetadata":{}}}`, `"a"}]}}],"responseId":"a","responseId":"b"}`, `"a"}]}}],}`, `"a"}]}}] "x"`, `"a"}],"role":"user"}}]}`,
		`"a"}]}}],"usageMetadata":{"thoughtsTokenCount":3 }}`, `"a"}]},"finishReason":"STOP"}]}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, tail []byte, vertex bool) {
		open := `{"candidates":[{"content":{"parts":[{"text":`
		if vertex {
			open = `{"candidates": [{"content": {"role": "model","parts": [{"thought": true,"text": `
		}
		data := append([]byte(open), tail...)
		nobody := func(agent.Delta) error { return nil }
		a, b := answerFor(nil, nobody), answerFor(nil, nobody)
		ok, err := a.fast(data)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			if len(a.Blocks) > 0 || a.counts != (tokens{}) || a.Begun || a.ID != "" {
				t.Fatal("it said no and did something")
			}
			return
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil || len(c.Candidates) != 1 || c.Candidates[0].Reason != "" || len(c.Candidates[0].Content.Parts) != 1 {
			t.Fatalf("%q: %v", data, err)
		}
		var p part
		if err := json.Unmarshal(c.Candidates[0].Content.Parts[0], &p); err != nil || p.Signature != "" || p.Call != nil {
			t.Fatalf("%q: %v", data, err)
		}
		b.ID, b.Model = c.ID, c.Model
		if err := b.candidate(c.Candidates[0]); err != nil {
			t.Fatal(err)
		}
		if err := b.count(c.Usage); err != nil {
			t.Fatal(err)
		}
		got, want := finish(a.Blocks[0], "google"), finish(b.Blocks[0], "google")
		if !reflect.DeepEqual(got, want) || a.usage != b.usage || a.ID != b.ID || a.Model != b.Model || len(b.Blocks) != 1 {
			t.Fatalf("%q: read %+v %+v, json reads %+v %+v", data, got, a.usage, want, b.usage)
		}
	})
}

// FuzzStream reads anything, in any pieces, and checks that an answer ends with
// one final delta or one error, and that it can be sent back.
func FuzzStream(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.sse")
	for _, file := range files {
		stream, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stream, uint8(0))
		f.Add(stream, uint8(7))
	}
	f.Add([]byte("data: [{}]\n\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"args\":[1]}}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{}}\n\n"), uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		whole := collect(t, bytes.NewReader(stream))
		pieces := collect(t, &pieceReader{stream, int(size)%13 + 1})
		if !bytes.Equal(whole, pieces) {
			t.Fatalf("at once:\n%s\nin pieces:\n%s", whole, pieces)
		}
	})
}

// pieceReader gives n bytes at a time.
type pieceReader struct {
	rest []byte
	n    int
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest[:min(r.n, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}

// answerFor returns an answer that is read from r.
func answerFor(r io.Reader, emit wire.Emit) *answer {
	return &answer{Answer: wire.Answer{Request: hi, Provider: "google", In: wire.NewBody(r), Emit: emit}}
}

// collect reads a stream, checks what holds for every one, and describes it.
func collect(t *testing.T, r io.Reader) []byte {
	var deltas []agent.Delta
	var final *agent.Answer
	a := answerFor(r, func(d agent.Delta) error {
		if final != nil {
			t.Fatal("something comes behind the final delta")
		}
		deltas, final = append(deltas, d), d.Final
		return nil
	})
	_, err := wire.Read(a)
	if (err == nil) != (final != nil) {
		t.Fatalf("final %v, %v", final, err)
	}
	if err != nil {
		if _, ok := err.(*agent.ModelError); !ok {
			t.Fatalf("%v", err)
		}
		return wiretest.Describe(deltas, err)
	}
	ids := map[string]bool{}
	for _, c := range final.Message.Calls() {
		if c.ID == "" || ids[c.ID] || !json.Valid(c.Input) || !wire.Object(c.Input) {
			t.Fatalf("call %+v", c)
		}
		ids[c.ID] = true
	}
	check(t, wiretest.MustEncode(t, New(wire.Config{Info: reader}), agent.Request{Messages: append(hi.Messages[:1:1], final.Message), Tools: tools()}), reader)
	return wiretest.Describe(deltas, nil)
}

// BenchmarkStream reads 600 KB of text in 200,000 deltas.
func BenchmarkStream(b *testing.B) {
	body := long(200_000)
	m := plays(func() io.Reader { return bytes.NewReader(body) })
	b.SetBytes(int64(len(body)))
	wiretest.Reading(b, m, hi, 600_000)
}
