package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	if cfg.Info.ID == "" {
		cfg.Info = reader
	}
	cfg.HTTP = wiretest.Answers(http.StatusOK, body, "Content-Type", "text/event-stream", "Request-Id", "req_1")
	return New(cfg)
}

var hi = agent.Request{Messages: []agent.Message{says(agent.User, text("hi"))}, Names: names}

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
			deltas, _, err := drain(t.Context(), plays(wire.Config{}, func() io.Reader { return bytes.NewReader(stream) }))
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
		})
	}
}

// stream returns the events of an answer around the given ones.
func stream(stop string, events ...string) string {
	all := append([]string{`{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3,"output_tokens":1}}}`}, events...)
	all = append(all, `{"type":"message_delta","delta":{"stop_reason":`+stop+`},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)
	return "data: " + strings.Join(all, "\n\ndata: ") + "\n\n"
}

func opens(block string) string {
	return `{"type":"content_block_start","index":0,"content_block":` + block + `}`
}

const (
	opensText = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	opensCall = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"Bash","input":{}}}`
	closes    = `{"type":"content_block_stop","index":0}`
)

func wrote(jsonText string) string {
	q, _ := json.Marshal(jsonText)
	return `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + string(q) + `}}`
}

func TestStopReasons(t *testing.T) {
	for _, c := range []struct {
		stop   string
		events []string
		want   agent.StopReason
	}{
		{`"end_turn"`, []string{opensText, closes}, agent.StopEnd},
		{`"tool_use"`, []string{opensCall, closes}, agent.StopCalls},
		{`"max_tokens"`, nil, agent.StopLength},
		{`"stop_sequence"`, nil, agent.StopSequence},
		{`"refusal"`, nil, agent.StopRefusal},
		{`"pause_turn"`, nil, agent.StopPause},
		{`"model_context_window_exceeded"`, nil, agent.StopWindow},
		{`"something_new"`, nil, "something_new"},
		{`null`, nil, agent.StopEnd},
		{`null`, []string{opensCall, closes}, agent.StopCalls},
	} {
		_, final, err := drain(t.Context(), plays(wire.Config{}, func() io.Reader { return strings.NewReader(stream(c.stop, c.events...)) }))
		if err != nil || final == nil || final.Stop != c.want {
			t.Errorf("%s: %+v, %v", c.stop, final, err)
		}
	}
}

func TestToolInput(t *testing.T) {
	cut := "the answer ended in the middle of the call: its input is incomplete"
	for _, c := range []struct {
		name, stop string
		events     []string
		want       agent.Call
	}{
		{"in pieces", `"tool_use"`, []string{opensCall, wrote(`{"comm`), wrote(``), wrote(`and":"ls"}`), closes}, agent.Call{Input: json.RawMessage(`{"command":"ls"}`)}},
		{"empty", `"tool_use"`, []string{opensCall, wrote(``), closes}, agent.Call{Input: json.RawMessage(`{}`)}},
		{"none", `"tool_use"`, []string{opensCall, closes}, agent.Call{Input: json.RawMessage(`{}`)}},
		{"all at the start", `"tool_use"`, []string{opens(`{"type":"tool_use","id":"c1","name":"Bash","input":{"a":1}}`), closes}, agent.Call{Input: json.RawMessage(`{"a":1}`)}},
		{"with a NUL", `"tool_use"`, []string{opensCall, wrote(`{"a":"\u0000"}`), closes}, agent.Call{Input: json.RawMessage(`{"a":"\u0000"}`)}},
		{"malformed", `"tool_use"`, []string{opensCall, wrote(`{"a":}`), closes}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{"a":}`, Invalid: "the input is no valid JSON: invalid character '}' looking for beginning of value"}},
		{"two objects", `"tool_use"`, []string{opensCall, wrote(`{}{}`), closes}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{}{}`, Invalid: "the input is no valid JSON: invalid character '{' after top-level value"}},
		{"no object", `"tool_use"`, []string{opensCall, wrote(`["a"]`), closes}, agent.Call{Input: json.RawMessage(`{}`), Raw: `["a"]`, Invalid: "the input is JSON but no object"}},
		{"cut at the limit", `"max_tokens"`, []string{opensCall, wrote(`{"command":"rm -rf /tm`), closes}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{"command":"rm -rf /tm`, Invalid: cut}},
		{"cut before the first byte", `"max_tokens"`, []string{opensCall, closes}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{}`, Invalid: cut}},
		{"complete although at the limit", `"max_tokens"`, []string{opensCall, wrote(`{"command":"ls"}`), closes}, agent.Call{Input: json.RawMessage(`{"command":"ls"}`)}},
		{"never closed", `"tool_use"`, []string{opensCall, wrote(`{"command":`)}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{"command":`, Invalid: cut}},
		{"cut by a refusal", `"refusal"`, []string{opensCall, wrote(`{`)}, agent.Call{Input: json.RawMessage(`{}`), Raw: `{`, Invalid: cut}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, final, err := drain(t.Context(), plays(wire.Config{}, func() io.Reader { return strings.NewReader(stream(c.stop, c.events...)) }))
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
		events = append(events, fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":"Bash"}}`, i, id), fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	_, final, err := drain(t.Context(), plays(wire.Config{}, func() io.Reader { return strings.NewReader(stream(`"tool_use"`, events...)) }))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range final.Message.Calls() {
		ids = append(ids, c.ID)
	}
	if got, want := fmt.Sprint(ids), "[call_msg_1 x x_2 call_msg_1_3 y_5 y y_6]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBrokenStreams(t *testing.T) {
	start := `data: {"type":"message_start","message":{"id":"m"}}` + "\n\n"
	for _, c := range []struct {
		name, body string
		class      agent.FailureClass
		code       string
	}{
		{"nothing", "", agent.FailServer, "cut"},
		{"a start and no end", start, agent.FailServer, "cut"},
		{"everything but the last event", strings.TrimSuffix(stream(`"end_turn"`, opensText, closes), "data: {\"type\":\"message_stop\"}\n\n"), agent.FailServer, "cut"},
		{"a last event without its empty line", strings.TrimSuffix(stream(`"end_turn"`), "\n"), agent.FailServer, "cut"},
		{"a web page", "<html><body>Sign in</body></html>", agent.FailProtocol, ""},
		{"another protocol", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", agent.FailProtocol, ""},
		{"an end and no start", "data: {\"type\":\"message_stop\"}\n\n", agent.FailProtocol, ""},
		{"a damaged event", start + "data: {\"type\":\"content_blo\n\n", agent.FailServer, "damaged"},
		{"overloaded", start + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n", agent.FailServer, "overloaded_error"},
		{"a limit", start + `data: {"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}` + "\n\n", agent.FailRate, "rate_limit_error"},
		{"an error nobody knows", start + `data: {"type":"error","error":{"type":"new_error","message":"?"}}` + "\n\n", agent.FailServer, "new_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, final, err := drain(t.Context(), plays(wire.Config{}, func() io.Reader { return strings.NewReader(c.body) }))
			e, ok := err.(*agent.ModelError)
			if final != nil || !ok || e.Class != c.class || e.Code != c.code || e.Message == "" {
				t.Errorf("got %v, %#v", final, err)
			}
		})
	}
}

func TestAnswersAreBounded(t *testing.T) {
	block := fmt.Sprintf("data: %s\n\n", opensText)
	many := stream(`"end_turn"`)[:0] + `data: {"type":"message_start","message":{}}` + "\n\n" + strings.Repeat(block, wire.MaxBlocks+1)
	if _, _, err := drain(t.Context(), plays(wire.Config{}, func() io.Reader { return strings.NewReader(many) })); agent.ClassOf(err) != agent.FailProtocol {
		t.Errorf("many blocks: %v", err)
	}
	piece := fmt.Sprintf("data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n", strings.Repeat("x", 1<<20))
	big := `data: {"type":"message_start","message":{}}` + "\n\n" + block + strings.Repeat(piece, wire.MaxAnswer>>20+1)
	if _, _, err := drain(t.Context(), plays(wire.Config{}, func() io.Reader { return strings.NewReader(big) })); agent.ClassOf(err) != agent.FailProtocol {
		t.Errorf("much text: %v", err)
	}
	for name, event := range map[string]string{
		"a block":     `{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x"}}`,
		"an input":    `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","input":{"a":"x"}}}`,
		"a signature": `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`,
	} {
		if _, err := brimful().Take(sse.Event{Data: []byte(event)}); agent.ClassOf(err) != agent.FailProtocol {
			t.Errorf("%s too much: %v", name, err)
		}
	}
}

// brimful returns an answer that can take no more, with an open block.
func brimful() *answer {
	a := &answer{Answer: wire.Answer{
		Kept: wire.MaxAnswer, In: wire.NewBody(nil), Emit: func(agent.Delta) error { return nil },
	}}
	a.open.Put(0, &wire.Block{Kind: agent.ThinkingBlock})
	return a
}

func TestWhoeverLeavesIsNotAskedAgain(t *testing.T) {
	body := stream(`"end_turn"`, opensText, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`, closes)
	n := 0
	for _, err := range plays(wire.Config{}, func() io.Reader { return strings.NewReader(body) }).Stream(t.Context(), hi) {
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
	one := `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ab\n"}}` + "\n\n"
	body := strings.Replace(stream(`"end_turn"`, opensText, closes), "data: "+closes+"\n\n", strings.Repeat(one, 20_000)+"data: "+closes+"\n\n", 1)
	m := plays(wire.Config{}, func() io.Reader { return strings.NewReader(body) })
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

// FuzzDelta checks that the short way to read a delta reads what encoding/json
// reads, or leaves it alone.
func FuzzDelta(f *testing.F) {
	for _, s := range []string{
		`"text":"hello"}}`, `"text":"a\nb\"c\\d\/\t\r"}}      `, `"text":"\u00e9\ud83d\ude00"}}`, "\"text\":\"é\xff\"}}",
		`"text":""}}`, `"text":"x"}} }`, `"text":"x"},"y":1}`, `"text":"x`, "\"text\":\"\x01\"}}", `"text":"x\`, `"text":"\u"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, tail []byte) {
		data := append([]byte(`{"type":"content_block_delta","index":7,"delta":{"type":"text_delta",`), tail...)
		b := &wire.Block{Index: 7, Kind: agent.TextBlock}
		a := &answer{Answer: wire.Answer{In: wire.NewBody(nil), Emit: func(agent.Delta) error { return nil }}}
		a.open.Put(7, b)
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
		var e event
		if err := json.Unmarshal(data, &e); err != nil || e.Delta.Text != b.Text.String() || e.Index != 7 {
			t.Fatalf("%q: read %q, json reads %q, %v", data, b.Text.String(), e.Delta.Text, err)
		}
	})
}

func FuzzToolInput(f *testing.F) {
	for _, s := range []string{"{}\f", `{"a":1}`, `{"a":"\u0000\n","b":[1,2,{}]}`, ``, `{`, `[]`, `{"a":`, "\xff", ` {} `, `{}x`} {
		f.Add(s, uint64(3))
		f.Add(s, uint64(0x1f))
	}
	f.Fuzz(func(t *testing.T, input string, cuts uint64) {
		events := []string{opensCall}
		for rest := input; rest != ""; {
			n := min(int(cuts&7)+1, len(rest))
			cuts = cuts>>3 | cuts<<61
			for n < len(rest) && rest[n]&0xc0 == 0x80 { // pieces are text: characters are whole
				n++
			}
			events = append(events, wrote(rest[:n]))
			rest = rest[n:]
		}
		var final *agent.Answer
		a := &answer{Answer: wire.Answer{Request: hi, Emit: func(d agent.Delta) error {
			final = d.Final
			return nil
		}}}
		a.In = wire.NewBody(strings.NewReader(stream(`"tool_use"`, append(events, closes)...)))
		if _, err := wire.Read(a); err != nil {
			t.Fatal(err)
		}
		c := final.Message.Calls()[0]
		if !json.Valid(c.Input) || !wire.Object(c.Input) {
			t.Fatalf("the input is %q", c.Input)
		}
		decode := func(text string) (object map[string]any, err error) {
			if !json.Valid([]byte(text)) {
				return nil, errors.New("not JSON")
			}
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber() // a number may be larger than what Go computes with
			err = d.Decode(&object)
			return object, err
		}
		clean := strings.ToValidUTF8(input, "\ufffd")
		if want, err := decode(clean); err == nil && wire.Object([]byte(clean)) && clean == input {
			if got, err := decode(string(c.Input)); err != nil || c.Invalid != "" || !reflect.DeepEqual(got, want) {
				t.Fatalf("%q became %q, %s", input, c.Input, c.Invalid)
			}
		} else if c.Invalid == "" && strings.Trim(input, " \t\r\n") != "" && clean == input {
			t.Fatalf("%q was taken as %q", input, c.Input)
		}
	})
}

// BenchmarkStream reads 800 KB of text in 200,000 deltas.
func BenchmarkStream(b *testing.B) {
	var body bytes.Buffer
	body.WriteString("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\nevent: content_block_start\ndata: " + opensText + "\n\n")
	for range 200_000 {
		body.WriteString("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"abc\\n\"}}\n\n")
	}
	body.WriteString("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	m := plays(wire.Config{}, func() io.Reader { return bytes.NewReader(body.Bytes()) })
	wiretest.Reading(b, m, hi, 800_000)
}
