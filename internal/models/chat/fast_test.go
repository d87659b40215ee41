package chat

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"dure/agent"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
)

func TestDeltasDoNotAllocate(t *testing.T) {
	for name, d := range map[string]string{
		"text":     `{"content":"ab\n"}`,
		"thinking": `{"reasoning_content":"ab\n"}`,
		"input":    `{"tool_calls":[{"index":0,"function":{"arguments":"ab\n"}}]}`,
	} {
		body := stream(`"stop"`, delta(opensCall)) // so that there is a call
		end := strings.LastIndex(body, `data: {"id":"c"`)
		body = body[:end] + strings.Repeat(events(delta(d)), 20_000) + body[end:]
		m := plays(Config{}, says(body))
		allocs := testing.AllocsPerRun(3, func() {
			n := 0
			for d, err := range m.Stream(t.Context(), hi) {
				if err != nil {
					t.Fatal(err)
				}
				n += len(d.Text)
			}
			if n != 60_000 {
				t.Fatalf("%s: it read %d bytes", name, n)
			}
		})
		if allocs > 500 {
			t.Errorf("%s: %v allocations for 20,000 deltas", name, allocs)
		}
	}
}

// Servers write the same event in their own ways; each way is learned.
func TestWaysOfWritingAreLearned(t *testing.T) {
	for name, event := range map[string]string{
		"OpenAI":        `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"#"},"logprobs":null,"finish_reason":null}],"usage":null}`,
		"Ollama":        `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"#"},"finish_reason":null}]}`,
		"with spaces":   `{"id": "1", "choices": [{"index": 0, "delta": {"content": "#"}}]}`,
		"DeepSeek":      `{"id":"1","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"#"},"logprobs":null,"finish_reason":null}]}`,
		"reasoning":     `{"id":"1","choices":[{"index":0,"delta":{"content":"","reasoning":"#"}}]}`,
		"a call":        `{"id":"1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"type":"function","function":{"arguments":"#"}}]},"finish_reason":null}]}`,
		"a false trail": `{"id":"1","x":{"content":"#"},"choices":[{"index":0,"delta":{"content":"#"}}]}`,
	} {
		a := &answer{Answer: wire.Answer{In: wire.NewBody(nil), Emit: func(agent.Delta) error { return nil }}}
		for _, piece := range []string{"a", "b\\n", "", "c"} {
			if err := a.take([]byte(strings.ReplaceAll(event, "#", piece)), false); err != nil {
				t.Fatal(err)
			}
		}
		want, used := "ab\nc", 3
		if name == "a false trail" {
			used = 0
		}
		if got := a.Blocks[len(a.Blocks)-1].Text.String(); got != want || a.learned.used != used {
			t.Errorf("%s: read %q, %d of 3 the short way", name, got, a.learned.used)
		}
	}
}

func TestServersWhoseEventsAllDifferAreNotLearned(t *testing.T) {
	a := &answer{Answer: wire.Answer{In: wire.NewBody(nil), Emit: func(agent.Delta) error { return nil }}}
	for i := range 500 {
		if err := a.take([]byte(`{"id":"`+strings.Repeat("x", i)+`","choices":[{"index":0,"delta":{"content":"a"}}]}`), false); err != nil {
			t.Fatal(err)
		}
	}
	if a.learned.learned > maxWasted+1 || a.Blocks[0].Text.Len() != 500 {
		t.Errorf("%d learned, %d read", a.learned.learned, a.Blocks[0].Text.Len())
	}
}

// FuzzDelta checks that an event which fits a template is read as encoding/json
// reads it.
func FuzzDelta(f *testing.F) {
	for _, s := range [][2]string{
		{delta(`{"content":"hello"}`), delta(`{"content":"a\nb\"c\\d\/\t\r"}`)},
		{delta(`{"content":"hello"}`), delta(`{"content":"\u00e9\ud83d\ude00"}`)},
		{delta(`{"content":"hello"}`), delta("{\"content\":\"é\xff\"}")},
		{delta(`{"reasoning":"a"}`), delta(`{"reasoning":""}`)},
		{delta(`{"tool_calls":[{"index":2,"function":{"arguments":"a"}}]}`), delta(`{"tool_calls":[{"index":2,"function":{"arguments":"b"}}]}`)},
		{`{"x\"content":"a","choices":[{"delta":{"content":"a"}}]}`, `{"x\"content":"b","choices":[{"delta":{"content":"a"}}]}`},
		{`{"choices":[{"delta":{"content":"a","Content":"a"}}]}`, `{"choices":[{"delta":{"content":"b","Content":"a"}}]}`},
		{delta(`{"content":"<think>a"}`), delta(`{"content":"</think>b"}`)},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		read := func(templates bool) (deltas []agent.Delta, left string) {
			a := &answer{tags: tags{on: true}, Answer: wire.Answer{In: wire.NewBody(nil), Emit: func(d agent.Delta) error {
				deltas = append(deltas, d)
				return nil
			}}}
			for _, event := range [][]byte{first, second, second, first} {
				if !templates {
					a.learned.each = [3]template{}
				}
				if err := a.take(event, false); err != nil {
					return deltas, err.Error()
				}
			}
			return deltas, string(a.tags.held)
		}
		with, leftWith := read(true)
		without, leftWithout := read(false)
		if !reflect.DeepEqual(with, without) || leftWith != leftWithout {
			t.Fatalf("%q and %q: read %+v %q, and without templates %+v %q", first, second, with, leftWith, without, leftWithout)
		}
	})
}

// FuzzStream checks the rules of every answer, whatever comes and however it is
// split: a final delta or an error ends it, and what was shown is what is said.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		stream(`"stop"`, delta(`{"content":"a"}`), delta(`{"content":"b"}`)),
		stream(`"tool_calls"`, delta(opensCall), wrote(`{"a":`), wrote(`1}`)),
		stream(`"length"`, delta(`{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]}`), delta(opensCall)),
		stream(`"stop"`, delta(`{"content":"<think>a"}`), delta(`{"content":"</think>b"}`), delta(`{"refusal":"no"}`)),
		events(`{"error":{"message":"x"}}`), "data: {}\n\n", "data: [DONE]\n\n", "event: error\ndata: x\n\n",
		stream(`"stop"`, delta(`{"tool_calls":[{"function":{"name":"t","arguments":{"a":1}}},{"index":-2,"function":{"name":"t"}}],"function_call":{"name":"f"}}`)),
	} {
		f.Add([]byte(s), uint8(1), false)
		f.Add([]byte(s), uint8(200), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint8, keep bool) {
		cfg := Config{Compat: Compat{ThinkTags: keep, ReasoningDetails: keep}}
		m := plays(cfg, func() io.Reader { return &slow{body, int(size)} })
		deltas, final, err := drain(t.Context(), m)
		checkAnswer(t, deltas, final, err)

		m = plays(cfg, func() io.Reader { return iotest.DataErrReader(bytes.NewReader(body)) })
		again, _, errAgain := drain(t.Context(), m)
		if a, b := wiretest.Describe(deltas, err), wiretest.Describe(again, errAgain); !bytes.Equal(a, b) {
			t.Fatalf("in pieces of %d:\n%s\nat once:\n%s", size, a, b)
		}
	})
}

// slow is a reader that gives n bytes at a time.
type slow struct {
	rest []byte
	n    int
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.n+1)], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func checkAnswer(t *testing.T, deltas []agent.Delta, final *agent.Answer, err error) {
	t.Helper()
	if (final != nil) == (err != nil) {
		t.Fatalf("final %v, error %v", final, err)
	}
	if _, ok := err.(*agent.ModelError); err != nil && !ok {
		t.Fatalf("error %#v", err)
	}
	shown := map[int]string{}
	open := map[string]bool{}
	for i, d := range deltas {
		switch d.Kind {
		case agent.DeltaText, agent.DeltaThinking, agent.DeltaInput:
			shown[d.Index] += d.Text
		case agent.DeltaCall:
			if d.CallID == "" || d.Tool == "" || open[d.CallID] {
				t.Fatalf("call %+v", d)
			}
			open[d.CallID] = true
		case agent.DeltaCallEnd:
			if !open[d.CallID] {
				t.Fatalf("end of %+v", d)
			}
			open[d.CallID] = false
		case agent.DeltaFinal:
			if i != len(deltas)-1 {
				t.Fatal("something follows the end")
			}
		}
	}
	if final == nil {
		return
	}
	for i, b := range final.Message.Blocks {
		switch b.Type {
		case agent.CallBlock:
			if open[b.Call.ID] || !json.Valid(b.Call.Input) || !wire.Object(b.Call.Input) {
				t.Fatalf("call %+v", b.Call)
			}
			if said := strings.TrimSpace(shown[i]); b.Call.Invalid == "" && said != "" && said != string(b.Call.Input) {
				t.Fatalf("shown %q, called %q", said, b.Call.Input)
			}
		case agent.TextBlock, agent.ThinkingBlock:
			if shown[i] != b.Text {
				t.Fatalf("shown %q, said %q", shown[i], b.Text)
			}
		default:
			t.Fatalf("block %+v", b)
		}
	}
	u := final.Usage
	if final.Stop == "" || u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 {
		t.Fatalf("final %+v", final)
	}
}

// BenchmarkStream reads 800 KB of text in 200,000 deltas.
func BenchmarkStream(b *testing.B) {
	one := `data: {"id":"chatcmpl-1234567890abcdef","object":"chat.completion.chunk","created":1750000000,"model":"gpt-5.4","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":"abc\n"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	body := []byte(strings.Repeat(one, 200_000) + stream(`"stop"`))
	m := plays(Config{}, func() io.Reader { return bytes.NewReader(body) })
	wiretest.Reading(b, m, hi, 800_000)
}

// BenchmarkUnlike reads 20,000 deltas of a server whose events all differ.
func BenchmarkUnlike(b *testing.B) {
	var body bytes.Buffer
	for i := range 20_000 {
		body.WriteString(events(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1750000000,"model":"m","choices":[{"index":0,"delta":{"content":"abc\n"},"finish_reason":null}],"obfuscation":"` + strings.Repeat("x", i%17) + `"}`))
	}
	body.WriteString(stream(`"stop"`))
	m := plays(Config{}, func() io.Reader { return bytes.NewReader(body.Bytes()) })
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := drain(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
}
