package script

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// hello are the smallest requests of the formats, with their paths.
var hello = map[Format]struct{ path, body string }{
	Messages:  {"/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello"}]}`},
	Chat:      {"/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello"}]}`},
	Responses: {"/v1/responses", `{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"input":"hello"}`},
	Gemini:    {"/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`},
}

var formats = []Format{Messages, Chat, Responses, Gemini}

// post asks a handler once and returns the answer.
func post(h *Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestStreams compares whole streams with files, as they go over the wire.
func TestStreams(t *testing.T) {
	calls := []Call{{Tool: "Read", Input: json.RawMessage(`{"file_path":"a.go"}`)}, {ID: "mine", Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}}
	replies := []struct {
		name  string
		model string // default m
		reply Reply
	}{
		{"text", "", Reply{Text: "Line 1\nLine \"2\" é😀", Chunk: 8}},
		{"thinking", "", Reply{Thinking: "First.\n\nThen.", Text: "Done.", Chunk: 40}},
		{"redacted", "", Reply{Redacted: "c2VjcmV0", Text: "Done."}},
		{"calls", "", Reply{Text: "I look.", Calls: calls, Chunk: 12}},
		{"interleaved", "gemini-3-pro", Reply{Thinking: "Hm.", Calls: calls, Interleave: true, Chunk: 12}},
		{"broken-call", "", Reply{Calls: []Call{{Tool: "Read", Raw: `{"file_path":`}}}},
		{"no-input", "", Reply{Calls: []Call{{Tool: "Read"}}}},
		{"length", "", Reply{Text: "Once upon", Stop: agent.StopLength}},
		{"stop-sequence", "", Reply{Text: "So", Stop: agent.StopSequence, StopText: "END"}},
		{"refusal", "", Reply{Text: "I", Stop: agent.StopRefusal, StopText: "not this"}},
		{"blocked", "", Reply{Stop: agent.StopRefusal}},
		{"other-stop", "", Reply{Text: "x", Stop: "RECITATION"}},
		{"usage", "", Reply{Text: "x", Usage: &agent.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}}},
		{"quirks", "", Reply{Text: "x", Calls: calls, Quirks: []Quirk{NoIndex, NoID, WholeCalls, UsageInside, NoDone}}},
		{"named-otherwise", "", Reply{Thinking: "Hm.", Text: "x", Quirks: []Quirk{Reasoning}}},
		{"repeating", "", Reply{Calls: calls[:1], Chunk: 12, Quirks: []Quirk{RepeatCalls, NoUsage}}},
	}
	for _, f := range formats {
		for _, r := range replies {
			if len(r.reply.Quirks) > 0 && f != Chat {
				continue
			}
			name := filepath.Join("testdata", string(f), r.name+".sse")
			ask := hello[f]
			if r.model != "" {
				ask.path = strings.Replace(ask.path, "models/m:", "models/"+r.model+":", 1)
			}
			w := post(NewHandler(Script{Replies: []Reply{r.reply}}, Options{}), ask.path, ask.body)
			got := w.Body.String()
			if w.Code != 200 {
				t.Errorf("%s: %d %s", name, w.Code, got)
				continue
			}
			if f == Gemini && strings.Count(got, "\n") != strings.Count(got, "\r\n") {
				t.Errorf("%s: a line ends in LF alone", name)
			}
			got = strings.ReplaceAll(got, "\r\n", "\n")
			if *update {
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s:\n%s", name, got)
			}
			checkEvents(t, name, got)
		}
	}
}

// checkEvents checks that every event is JSON, and that numbers have no gaps.
func checkEvents(t *testing.T, name, stream string) {
	t.Helper()
	n := 0
	for _, line := range strings.Split(stream, "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var event struct {
			Number *int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Errorf("%s: %v: %s", name, err, data)
		}
		if event.Number != nil && *event.Number != n {
			t.Errorf("%s: event %d has the number %d", name, n, *event.Number)
		}
		n++
	}
}

// TestBrokenConnections checks, in every format, that what came before a fault
// arrives, and that the connection then ends as the fault says.
func TestBrokenConnections(t *testing.T) {
	for _, f := range formats {
		for _, fault := range []Fault{{Kind: Cut, After: 2}, {Kind: Cut, Bytes: 100}, {Kind: Reset, After: 2}, {Kind: Stall, After: 2}, {Kind: Pings, After: 2}} {
			srv, err := NewServer(Script{Replies: []Reply{{Text: "abcdef", Chunk: 2, Faults: []Fault{fault}}}}, Options{Trust: true})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL()+hello[f].path, strings.NewReader(hello[f].body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if fault.Kind == Stall || fault.Kind == Pings {
				some := make([]byte, 100)
				if _, err := io.ReadFull(resp.Body, some); err != nil {
					t.Errorf("%s, %s: %v", f, fault.Kind, err)
				}
				cancel()
			}
			if got, err := io.ReadAll(resp.Body); err == nil || fault.Bytes > 0 && len(got) != fault.Bytes {
				t.Errorf("%s, %s: %d bytes and then %v", f, fault.Kind, len(got), err)
			}
			_ = resp.Body.Close()
			cancel()
			_ = srv.Close()
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestRefusals compares the errors of all formats.
func TestRefusals(t *testing.T) {
	faults := []Fault{
		{Kind: Status, Status: 429, RetryAfter: "7", Message: "slowly"},
		{Kind: Status, Status: 429, Type: "insufficient_quota", Code: "insufficient_quota"},
		{Kind: Status, Status: 400, Message: "too long", Code: "context_length_exceeded"},
		{Kind: Status, Status: 401},
		{Kind: Status},
		{Kind: Status, Status: 503},
		{Kind: HTML, Status: 502},
		{Kind: Garbage},
		{Kind: Error, After: 1, Message: "busy"},
		{Kind: Error, After: 1, Status: 429},
		{Kind: Failed, After: 2, Message: "broken"},
		{Kind: Cut, After: 2, Clean: true},
		{Kind: Cut, Bytes: 20, Clean: true},
		{Kind: Pings, ForMS: 1, EveryMS: 5},
	}
	var got strings.Builder
	for _, f := range formats {
		for _, fault := range faults {
			reply := Reply{Text: "abcd", Chunk: 2, Faults: []Fault{fault}}
			w := post(NewHandler(Script{Replies: []Reply{reply}}, Options{}), hello[f].path, hello[f].body)
			text, _ := json.Marshal(fault)
			fmt.Fprintf(&got, "%s %s\n%d %s", f, text, w.Code, w.Header().Get("Content-Type"))
			if after := w.Header().Get("Retry-After"); after != "" {
				fmt.Fprintf(&got, " Retry-After %s", after)
			}
			fmt.Fprintf(&got, "\n%s\n\n", strings.ReplaceAll(strings.TrimSpace(w.Body.String()), "\r", ""))
		}
		for _, bad := range []string{"{", strings.Replace(hello[f].body, "hello", "", 1)} {
			w := post(NewHandler(Script{}, Options{}), hello[f].path, bad)
			fmt.Fprintf(&got, "%s %s\n%d %s\n\n", f, bad, w.Code, w.Body)
		}
		w := post(NewHandler(Script{}, Options{Key: "k"}), hello[f].path, hello[f].body)
		fmt.Fprintf(&got, "%s without key\n%d %s\n\n", f, w.Code, w.Body)
		w = post(NewHandler(Script{Models: []string{"other"}}, Options{}), hello[f].path, hello[f].body)
		fmt.Fprintf(&got, "%s another model\n%d %s\n\n", f, w.Code, w.Body)
	}
	golden(t, "refusals.txt", strings.ReplaceAll(got.String(), "\x00\x01\x02", "<bytes>"))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what it was:\n%s", name, got)
	}
}

func TestListsOfModels(t *testing.T) {
	h := NewHandler(Script{Models: []string{"a", "b:7b"}}, Options{Key: "k"})
	var got strings.Builder
	for _, ask := range []struct{ method, path, header, value, body string }{
		{"GET", "/v1/models", "Authorization", "Bearer k", ""},
		{"GET", "/v1/models/b:7b", "Api-Key", "k", ""},
		{"GET", "/v1/models/c", "Authorization", "Bearer k", ""},
		{"GET", "/v1/models", "", "", ""},
		{"GET", "/v1/models", "X-Api-Key", "k", ""},
		{"GET", "/v1beta/models", "X-Goog-Api-Key", "k", ""},
		{"GET", "/v1beta/models/a?key=k", "", "", ""},
		{"GET", "/v1beta/models", "", "", ""},
		{"GET", "/api/v0/models", "Authorization", "Bearer k", ""},
		{"GET", "/api/tags", "Authorization", "Bearer k", ""},
		{"POST", "/api/show", "Authorization", "Bearer k", `{"model":"a"}`},
		{"POST", "/api/show", "Authorization", "Bearer k", `{"model":"c"}`},
		{"POST", "/api/show", "Authorization", "Bearer k", `{`},
	} {
		r := httptest.NewRequest(ask.method, ask.path, strings.NewReader(ask.body))
		if ask.header != "" {
			r.Header.Set(ask.header, ask.value)
		}
		if ask.header == "X-Api-Key" {
			r.Header.Set("Anthropic-Version", "2023-06-01")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Fprintf(&got, "%s %s %s %s\n%d %s\n\n", ask.method, ask.path, ask.header, ask.body, w.Code, w.Body)
	}
	if n := len(h.Requests()); n != 0 {
		t.Errorf("%d requests for lists were recorded", n)
	}
	golden(t, "lists.txt", got.String())
}

func TestKeys(t *testing.T) {
	for _, f := range formats {
		for header, value := range map[string]string{"X-Api-Key": "k", "Authorization": "Bearer k", "X-Goog-Api-Key": "k", "Api-Key": "k"} {
			h := NewHandler(Script{Replies: []Reply{{Text: "x"}}}, Options{Key: "k", Trust: true})
			r := httptest.NewRequest(http.MethodPost, hello[f].path, strings.NewReader(hello[f].body))
			r.Header.Set(header, value)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != 200 {
				t.Errorf("%s with %s: %d %s", f, header, w.Code, w.Body)
			}
		}
	}
}

// TestStepsAndLastWords checks what replies depend on, in conversations of two
// answers that end with a result and with words of the user's.
func TestStepsAndLastWords(t *testing.T) {
	for f, talk := range talks {
		var got []Request
		h := NewHandler(Script{}, Options{Func: func(r Request) Reply {
			r.Body = nil
			got = append(got, r)
			return Reply{Text: "x"}
		}})
		if w := post(h, talk.path, talk.body); w.Code != 200 {
			t.Errorf("%s: %d %s", f, w.Code, w.Body)
		}
		want := []Request{{Step: 2, Last: "sunny\nand now?", Model: "m", Format: f}}
		for i := range got {
			got[i].Last = strings.TrimSpace(got[i].Last)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v", f, got)
		}
		quick, err := apis[f].read(talk.path, []byte(talk.body), true)
		if err != nil || quick.step != 2 {
			t.Errorf("%s: counted quickly: %d, %v", f, quick.step, err)
		}
	}
}

// TestCachedTokens checks what the second of two requests with the same
// beginning finds in the cache.
func TestCachedTokens(t *testing.T) {
	long := strings.Repeat("word ", 4000)
	for f, want := range map[Format]string{
		Chat:      `"prompt_tokens":5015,"completion_tokens":3,"total_tokens":5018,"prompt_tokens_details":{"cached_tokens":4992,`,
		Responses: `"input_tokens":5015,"input_tokens_details":{"cached_tokens":4992}`,
		Gemini:    `"promptTokenCount":5030,"candidatesTokenCount":3,"cachedContentTokenCount":4992,"totalTokenCount":5033`,
	} {
		more := map[Format]string{
			Chat:      `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"` + long + `"}%s]}`,
			Responses: `{"model":"m","stream":true,"input":[{"role":"user","content":"` + long + `"}%s]}`,
			Gemini:    `{"contents":[{"role":"user","parts":[{"text":"` + long + `"}]}%s]}`,
		}[f]
		next := map[Format]string{
			Chat:      `,{"role":"user","content":"more"}`,
			Responses: `,{"role":"user","content":"more"}`,
			Gemini:    `,{"role":"model","parts":[{"text":"x"}]},{"role":"user","parts":[{"text":"more"}]}`,
		}[f]
		h := NewHandler(Script{Replies: []Reply{{Text: "x"}, {Text: "x"}}}, Options{})
		first := post(h, hello[f].path, fmt.Sprintf(more, "")).Body.String()
		second := post(h, hello[f].path, fmt.Sprintf(more, next)).Body.String()
		if strings.Contains(first, "4992") || !strings.Contains(second, want) {
			t.Errorf("%s: the second answer ends with %s", f, second[max(0, len(second)-500):])
		}
	}
}

// TestMarkedPrefix checks that marks are followed where a request asks for it.
func TestMarkedPrefix(t *testing.T) {
	part := func(text, mark string) string {
		return `{"role":"user","content":[{"type":"input_text","text":"` + text + `"` + mark + `}]}`
	}
	const mark = `,"prompt_cache_breakpoint":{"mode":"explicit"}`
	body := func(items ...string) string {
		return `{"model":"m","stream":true,"prompt_cache_options":{"mode":"explicit"},"input":[` + strings.Join(items, ",") + `]}`
	}
	h := NewHandler(Script{Replies: []Reply{{Text: "x"}, {Text: "x"}}}, Options{})
	long := strings.Repeat("word ", 800)
	first := post(h, hello[Responses].path, body(part(long, mark), part("new", ""))).Body.String()
	second := post(h, hello[Responses].path, body(part(long, mark), part("other", mark))).Body.String()
	if !strings.Contains(first, `"cached_tokens":0,"cache_write_tokens":1015`) || !strings.Contains(second, `"cached_tokens":1015,"cache_write_tokens":16`) {
		t.Errorf("the answers end with\n%s\n%s", first[max(0, len(first)-300):], second[max(0, len(second)-300):])
	}
}

// BenchmarkFormats is the server's share of 200,000 deltas in each format.
func BenchmarkFormats(b *testing.B) {
	s := Script{ByStep: true, Replies: []Reply{{Text: strings.Repeat("abc\n", 200_000), Chunk: 5}}}
	for _, f := range formats {
		b.Run(string(f), func(b *testing.B) {
			h := NewHandler(s, Options{Trust: true, Keep: -1})
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, hello[f].path, strings.NewReader(hello[f].body))
				h.ServeHTTP(&discard{header: http.Header{}}, r)
			}
		})
	}
}
