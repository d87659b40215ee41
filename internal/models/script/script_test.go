package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dure/agent"
	"dure/internal/models/anthropic"
	"dure/internal/models/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var info = agent.ModelInfo{ID: "script", Provider: Provider, Window: 200_000, MaxOut: 32_000, Thinking: "budget"}

// play starts a server and a model that asks it.
func play(t testing.TB, s Script, opts Options, cfg wire.Config) (*Server, *wire.Model) {
	t.Helper()
	srv, err := NewServer(s, opts)
	if err != nil {
		t.Fatal(err)
	}
	cfg.BaseURL, cfg.Info, cfg.Key = srv.URL(), info, opts.Key
	m := anthropic.New(cfg)
	t.Cleanup(func() {
		m.Close()
		_ = srv.Close()
	})
	return srv, m
}

// ask returns what was shown of an answer, and the whole of it.
func ask(t testing.TB, m *wire.Model, r agent.Request) (shown string, final *agent.Answer, err error) {
	t.Helper()
	for d, err := range m.Stream(t.Context(), r) {
		if err != nil {
			return shown, nil, err
		}
		if d.Kind == agent.DeltaText {
			shown += d.Text
		}
		final = d.Final
	}
	return shown, final, nil
}

func user(text string) agent.Request {
	return agent.Request{Messages: []agent.Message{agent.UserText(text)}}
}

func TestReplies(t *testing.T) {
	_, m := play(t, Script{Replies: []Reply{
		{Thinking: "Hm, \"é\" 😀.", Redacted: "c2VjcmV0", Text: "Line 1\nLine\t\"2\" é😀\u2028</b>", Chunk: 3},
		{Text: "I look.", Interleave: true, Chunk: 2, Calls: []Call{
			{Tool: "Read", Input: json.RawMessage(`{ "file_path": "a.go" }`)}, {Tool: "Bash", Raw: `{"command":`}, {ID: "mine", Tool: "Todo"},
		}},
		{Stop: agent.StopSequence, StopText: "END"},
		{Stop: agent.StopRefusal, StopText: "not this", Text: "I"},
		{Text: "paid", Usage: &agent.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 5, CacheHour: 4}},
	}}, Options{}, wire.Config{})
	var got []string
	for range 5 {
		shown, a, err := ask(t, m, user("hi"))
		if err != nil {
			t.Fatal(err)
		}
		if shown != a.Message.Text() {
			t.Errorf("shown %q, kept %q", shown, a.Message.Text())
		}
		line := fmt.Sprintf("%s %q %q", a.Stop, a.Message.Text(), a.Detail)
		for _, b := range a.Message.Blocks {
			if b.Type == agent.ThinkingBlock {
				line += fmt.Sprintf(" [%s %d %s]", b.Text, len(b.Signature), b.Raw)
			}
		}
		for _, c := range a.Message.Calls() {
			line += fmt.Sprintf(" %s(%s%s)", c.Tool, c.Input, c.Raw)
		}
		got = append(got, line)
	}
	want := []string{
		`end_turn "Line 1\nLine\t\"2\" é😀\u2028</b>" "" [Hm, "é" 😀. 64 ] [ 0 {"type":"redacted_thinking","data":"c2VjcmV0"}]`,
		`tool_use "I look." "" Read({"file_path":"a.go"}) Bash({}{"command":) Todo({})`,
		`stop_sequence "" "END"`,
		`refusal "I" "not this"`,
		`end_turn "paid" ""`,
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("reply %d:\ngot  %s\nwant %s", i, got[i], want[i])
		}
	}
	if _, _, err := ask(t, m, user("more")); agent.ClassOf(err) != agent.FailInvalid || !strings.Contains(err.Error(), "5 replies and none for step 5") {
		t.Errorf("behind the end: %v", err)
	}
}

func TestStatedUsageIsReported(t *testing.T) {
	want := agent.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 5, CacheHour: 4}
	_, m := play(t, Script{Replies: []Reply{{Text: "x", Usage: &want}}}, Options{}, wire.Config{})
	if _, a, err := ask(t, m, user("hi")); err != nil || a.Usage != want {
		t.Errorf("got %+v, %v", a, err)
	}
}

// grow returns the request that follows an answer.
func grow(r agent.Request, a *agent.Answer, result string) agent.Request {
	r.Messages = append(r.Messages[:len(r.Messages):len(r.Messages)], a.Message)
	var blocks []agent.Block
	for _, c := range a.Message.Calls() {
		blocks = append(blocks, agent.Block{Type: agent.ResultBlock, Result: &agent.Result{ID: c.ID, Status: agent.StatusOK, Text: result}})
	}
	if blocks == nil {
		blocks = agent.UserText(result).Blocks
	}
	r.Messages = append(r.Messages, agent.Message{Role: agent.User, Blocks: blocks})
	return r
}

func TestByStepAnswersAResumedConversation(t *testing.T) {
	s := Script{ByStep: true, Replies: []Reply{
		{Thinking: "first", Calls: []Call{{Tool: "a"}}}, {When: "SUMMARY", Text: "in short"}, {Calls: []Call{{Tool: "b"}}}, {Text: "done"},
	}}
	_, m := play(t, s, Options{}, wire.Config{})
	r := user("go")
	_, first, err := ask(t, m, r)
	if err != nil {
		t.Fatal(err)
	}
	r2 := grow(r, first, "one")

	_, after := play(t, s, Options{}, wire.Config{}) // another process
	_, second, err := ask(t, after, r2)
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := ask(t, after, r2)
	if err != nil {
		t.Fatal(err)
	}
	if second.Message.Calls()[0].ID != again.Message.Calls()[0].ID {
		t.Errorf("the same request got %v and %v", second.Message.Calls(), again.Message.Calls())
	}
	if a, b := first.Message.Calls()[0].ID, second.Message.Calls()[0].ID; a == b {
		t.Errorf("two calls have the ID %s", a)
	}
	_, side, err := ask(t, after, user("a SUMMARY please"))
	if err != nil || side.Message.Text() != "in short" {
		t.Errorf("side call: %v, %v", side, err)
	}
	_, last, err := ask(t, after, grow(r2, second, "two"))
	if err != nil || last.Message.Text() != "done" {
		t.Errorf("got %v, %v", last, err)
	}
}

func TestFunc(t *testing.T) {
	var srv *Server
	srv, m := play(t, Script{}, Options{Func: func(r Request) Reply {
		_ = srv.Requests() // may be looked at from here
		return Reply{Text: fmt.Sprintf("%d %s %s", r.Step, r.Model, strings.TrimSpace(r.Last))}
	}}, wire.Config{})
	r := user("hi")
	_, a, err := ask(t, m, r)
	if err != nil || a.Message.Text() != "0 script hi" {
		t.Fatalf("got %v, %v", a, err)
	}
	if _, a, err = ask(t, m, grow(r, a, "two")); err != nil || a.Message.Text() != "1 script two" {
		t.Errorf("got %v, %v", a, err)
	}
}

func TestFaults(t *testing.T) {
	patient := wire.Config{}
	quick := wire.Config{HeaderLimit: 100 * time.Millisecond, IdleLimit: 100 * time.Millisecond, PingLimit: 100 * time.Millisecond}
	for _, c := range []struct {
		name  string
		fault Fault
		cfg   wire.Config
		want  agent.ModelError // Class, Status, RetryAfter
		shown string
	}{
		{"429", Fault{Kind: Status, Status: 429, RetryAfter: "2"}, patient, agent.ModelError{Class: agent.FailRate, Status: 429, RetryAfter: 2 * time.Second}, ""},
		{"529", Fault{Kind: Status, Status: 529}, patient, agent.ModelError{Class: agent.FailServer, Status: 529}, ""},
		{"500", Fault{Kind: Status}, patient, agent.ModelError{Class: agent.FailServer, Status: 500}, ""},
		{"too long", Fault{Kind: Status, Status: 400, Message: "prompt is too long"}, patient, agent.ModelError{Class: agent.FailContext, Status: 400}, ""},
		{"with a header", Fault{Kind: Status, Status: 400, Header: map[string]string{"X-Should-Retry": "true"}}, patient, agent.ModelError{Class: agent.FailServer, Status: 400}, ""},
		{"a web page", Fault{Kind: HTML}, patient, agent.ModelError{Class: agent.FailProtocol, Status: 200}, ""},
		{"a gateway's page", Fault{Kind: HTML, Status: 502}, patient, agent.ModelError{Class: agent.FailServer, Status: 502}, ""},
		{"garbage", Fault{Kind: Garbage}, patient, agent.ModelError{Class: agent.FailProtocol}, ""},
		{"cut at once", Fault{Kind: Cut}, patient, agent.ModelError{Class: agent.FailServer}, ""},
		{"cut after five events", Fault{Kind: Cut, After: 5}, patient, agent.ModelError{Class: agent.FailServer}, "0123"},
		{"ended after five events", Fault{Kind: Cut, After: 5, Clean: true}, patient, agent.ModelError{Class: agent.FailServer}, "0123"},
		{"cut after 20 bytes", Fault{Kind: Cut, Bytes: 20}, patient, agent.ModelError{Class: agent.FailServer}, ""},
		{"ended after 20 bytes", Fault{Kind: Cut, Bytes: 20, Clean: true}, patient, agent.ModelError{Class: agent.FailServer}, ""},
		{"reset", Fault{Kind: Reset, After: 1}, patient, agent.ModelError{Class: agent.FailServer}, ""},
		{"an error event", Fault{Kind: Error, After: 4, Message: "busy"}, patient, agent.ModelError{Class: agent.FailServer}, "01"},
		{"another error event", Fault{Kind: Error, After: 1, Type: "rate_limit_error"}, patient, agent.ModelError{Class: agent.FailRate}, ""},
		{"silence", Fault{Kind: Stall, After: 5}, quick, agent.ModelError{Class: agent.FailTimeout}, "0123"},
		{"only pings", Fault{Kind: Pings, After: 5, EveryMS: 5}, quick, agent.ModelError{Class: agent.FailTimeout}, "0123"},
		{"no answer", Fault{Kind: Slow}, quick, agent.ModelError{Class: agent.FailTimeout}, ""},
		{"a late answer", Fault{Kind: Slow, ForMS: 1}, patient, agent.ModelError{}, "0123456789"},
		{"a short silence", Fault{Kind: Stall, After: 5, ForMS: 1}, patient, agent.ModelError{}, "0123456789"},
		{"a few pings", Fault{Kind: Pings, After: 5, ForMS: 3, EveryMS: 1}, patient, agent.ModelError{}, "0123456789"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Script{Replies: []Reply{{Text: "0123456789", Chunk: 2, Faults: []Fault{c.fault}}, {Text: "next"}}}
			srv, m := play(t, s, Options{}, c.cfg)
			shown, _, err := ask(t, m, user("hi"))
			var got agent.ModelError
			if e, ok := err.(*agent.ModelError); ok {
				got = agent.ModelError{Class: e.Class, Status: e.Status, RetryAfter: e.RetryAfter}
			} else if err != nil {
				t.Fatal(err)
			}
			if got != c.want || !strings.HasPrefix(c.shown, shown) || err == nil && shown != c.shown {
				t.Errorf("shown %q: %v", shown, err)
			}
			want := "0123456789"
			if err == nil {
				want = "next"
			}
			patient.BaseURL, patient.Info = srv.URL(), info
			again := anthropic.New(patient)
			defer again.Close()
			if _, a, err := ask(t, again, user("hi")); err != nil || a.Message.Text() != want {
				t.Errorf("the next attempt: %v, %v", a, err)
			}
			if n := len(srv.Requests()); n != 2 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestFaultsComeOneByOne(t *testing.T) {
	s := Script{ByStep: true, Replies: []Reply{{Text: "ok", Faults: []Fault{{Kind: Status, Status: 429}, {Kind: Cut, After: 2}, {Kind: Error}}}}}
	srv, m := play(t, s, Options{}, wire.Config{})
	var got []string
	for range 4 {
		_, a, err := ask(t, m, user("hi"))
		if err != nil {
			got = append(got, string(agent.ClassOf(err)))
		} else {
			got = append(got, a.Message.Text())
		}
	}
	if want := "[rate-limit server-error server-error ok]"; fmt.Sprint(got) != want {
		t.Errorf("got %v", got)
	}
	var statuses []int
	for _, r := range srv.Requests() {
		statuses = append(statuses, r.Status)
	}
	if fmt.Sprint(statuses) != "[429 200 200 200]" {
		t.Errorf("recorded %v", statuses)
	}
}

func TestTheCacheIsSimulated(t *testing.T) {
	call := []Call{{Tool: "a", Input: json.RawMessage(`{"x":"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}`)}}
	many := make([]Call, 15) // 15 calls and 15 results are more blocks than the cache looks back
	for i := range many {
		many[i] = call[0]
	}
	_, m := play(t, Script{Replies: []Reply{{Calls: call}, {Calls: many}, {Calls: call}, {Text: "done"}}}, Options{}, wire.Config{})
	r := user(strings.Repeat("mend the test ", 30))
	r.System = []agent.Section{{Text: strings.Repeat("rules ", 500), Cache: true}}
	r.Tools = []agent.Spec{{Name: "a", Description: "does a", Input: json.RawMessage(`{"type":"object"}`)}}
	var before agent.Usage
	for step := range 4 {
		r.Tail = fmt.Sprint("step ", step)
		_, a, err := ask(t, m, r)
		if err != nil {
			t.Fatal(err)
		}
		u := a.Usage
		if step == 0 && (u.CacheRead != 0 || u.CacheWrite < 800) || step > 0 && u.CacheRead < before.CacheRead+before.CacheWrite-1 || u.Input > 20 {
			t.Errorf("step %d: %+v after %+v", step, u, before)
		}
		before = u
		r = grow(r, a, strings.Repeat("result ", 50))
	}
}

func TestRequestsAreChecked(t *testing.T) {
	srv, _ := play(t, Script{Replies: []Reply{{Text: "ok"}}, Models: []string{"m"}}, Options{Key: "right", Keep: 3}, wire.Config{})
	const (
		call   = `{"type":"tool_use","id":"c1","name":"t","input":{}}`
		result = `{"type":"tool_result","tool_use_id":"c1","content":"x"}`
		mark   = `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
	)
	post := func(key, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Anthropic-Version", "2023-06-01")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	defer http.DefaultClient.CloseIdleConnections()
	messages := func(list ...string) string {
		return `{"model":"m","max_tokens":1,"stream":true,"messages":[` + strings.Join(list, ",") + `]}`
	}
	image := func(media string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"aGk="}}`
	}
	from := func(role string, blocks ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	hello := `{"role":"user","content":"hello"}`
	for _, c := range []struct{ name, body, say string }{
		{"no JSON", `{`, "no valid JSON"},
		{"no model", `{"max_tokens":1,"stream":true,"messages":[` + hello + `]}`, "model: field required"},
		{"an unknown model", strings.Replace(messages(hello), `"m"`, `"x"`, 1), "model: x"},
		{"no limit", `{"model":"m","stream":true,"messages":[` + hello + `]}`, "max_tokens"},
		{"no stream", `{"model":"m","max_tokens":1,"messages":[` + hello + `]}`, "stream"},
		{"no message", messages(), "first message"},
		{"the assistant first", messages(from("assistant", `{"type":"text","text":"x"}`)), "first message"},
		{"an unknown role", messages(hello, from("system", `{"type":"text","text":"x"}`)), "unknown role"},
		{"an empty message", messages(from("user")), "must not be empty"},
		{"empty text", messages(from("user", `{"type":"text","text":" "}`)), "must not be empty"},
		{"a call without result", messages(hello, from("assistant", call), hello), "without `tool_result`"},
		{"a call at the end", messages(hello, from("assistant", call)), "without `tool_result`"},
		{"a result without call", messages(from("user", result)), "unexpected `tool_use_id`"},
		{"two results", messages(hello, from("assistant", call), from("user", result, result)), "unexpected `tool_use_id`"},
		{"a late result", messages(hello, from("assistant", call), from("user", `{"type":"text","text":"x"}`, result)), "must come first"},
		{"one ID twice", messages(hello, from("assistant", call, call), from("user", result)), "must be unique"},
		{"a bad name", messages(hello, from("assistant", strings.Replace(call, `"t"`, `"a.b"`, 1)), from("user", result)), "tool_use needs"},
		{"input that is no object", messages(hello, from("assistant", strings.Replace(call, `{}`, `[]`, 1)), from("user", result)), "tool_use needs"},
		{"a wrong signature", messages(hello, from("assistant", `{"type":"thinking","thinking":"x","signature":"y"}`), hello), "invalid `signature`"},
		{"a bad tool", `{"model":"m","max_tokens":1,"stream":true,"tools":[{"name":"a b","input_schema":{}}],"messages":[` + hello + `]}`, "tools.0"},
		{"an error that says nothing", messages(hello, from("assistant", call), from("user", `{"type":"tool_result","tool_use_id":"c1","is_error":true}`)), "content cannot be empty"},
		{"one ID in two answers", messages(hello, from("assistant", call), from("user", result), from("assistant", call), from("user", result)), "must be unique"},
		{"an ID with other characters", messages(hello, from("assistant", strings.Replace(call, "c1", "c:1", 1)), from("user", result)), "match pattern"},
		{"an unknown block", messages(from("user", `{"type":"poem"}`)), "unknown type poem"},
		{"an unknown block in a result", messages(hello, from("assistant", call), from("user", `{"type":"tool_result","tool_use_id":"c1","content":[{"type":"tool_use"}]}`)), "cannot hold"},
		{"an empty part of a result", messages(hello, from("assistant", call), from("user", `{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":""}]}`)), "must not be empty"},
		{"a picture of another kind", messages(from("user", image("image/tiff"))), "source"},
		{"a picture by the assistant", messages(hello, from("assistant", image("image/png")), hello), "user message"},
		{"two tools of one name", `{"model":"m","max_tokens":1,"stream":true,"tools":[{"name":"a","input_schema":{}},{"name":"a","input_schema":{}}],"messages":[` + hello + `]}`, "unique"},
		{"five marks", messages(from("user", mark, mark, mark, mark, mark)), "maximum of 4"},
	} {
		if status, text := post("right", "/v1/messages", c.body); status/100 != 4 || !strings.Contains(text, c.say) {
			t.Errorf("%s: %d %s", c.name, status, text)
		}
	}
	if status, text := post("wrong", "/v1/messages", messages(hello)); status != 401 || !strings.Contains(text, "authentication_error") {
		t.Errorf("wrong key: %d %s", status, text)
	}
	if status, _ := post("right", "/v1/other", messages(hello)); status != 404 {
		t.Errorf("wrong path: %d", status)
	}
	good := messages(from("user", mark, mark), from("assistant", `{"type":"thinking","thinking":"x","signature":"`+sign("x")+`"}`, call), from("user", result), from("user", `{"type":"text","text":"x"}`))
	if status, text := post("right", "/v1/messages", good); status != 200 || !strings.Contains(text, "message_stop") {
		t.Errorf("a good request: %d %s", status, text)
	}
	all := srv.Requests()
	if len(all) != 3 || string(all[2].Body) != good || all[2].Header.Get("X-Api-Key") != "right" {
		t.Errorf("%d recorded: %+v", len(all), all)
	}
}

func TestParse(t *testing.T) {
	s, err := Parse([]byte(`{"by_step":true,"replies":[{"text":"a","calls":[{"tool":"t","input":{"x":1}}],"faults":[{"kind":"status","status":429,"retry_after":"1"}]}]}`))
	if err != nil || !s.ByStep || s.Replies[0].Faults[0].RetryAfter != "1" || string(s.Replies[0].Calls[0].Input) != `{"x":1}` {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{``, `{`, `{"replys":[]}`, `{} {}`, `{"replies":[{"faults":[{"kind":"fire"}]}]}`, `{"replies":[{"calls":[{}]}]}`} {
		if _, err := Parse([]byte(bad)); err == nil || !strings.HasPrefix(err.Error(), "reading script: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	srv, m := play(t, Script{Replies: []Reply{{Text: "x", Faults: []Fault{{Kind: Stall, After: 1}}}}}, Options{}, wire.Config{})
	seen := make(chan struct{})
	done := make(chan error)
	go func() {
		for d, err := range m.Stream(t.Context(), user("hi")) {
			if err != nil {
				done <- err
				return
			}
			if d.Kind == agent.DeltaUsage {
				close(seen)
			}
		}
		done <- nil
	}()
	<-seen
	_ = srv.Close()
	if err := <-done; agent.ClassOf(err) != agent.FailServer {
		t.Errorf("got %v", err)
	}
}

// BenchmarkLoopback streams 800 KB in pieces of four bytes through both ends.
func BenchmarkLoopback(b *testing.B) {
	s := Script{ByStep: true, Replies: []Reply{{Text: strings.Repeat("abc\n", 200_000), Chunk: 5}}}
	_, m := play(b, s, Options{Trust: true, Keep: -1}, wire.Config{})
	for b.Loop() {
		shown := 0
		for d, err := range m.Stream(b.Context(), user("hi")) {
			if err != nil {
				b.Fatal(err)
			}
			shown += len(d.Text)
		}
		if shown != 800_000 {
			b.Fatal(shown)
		}
	}
}

// BenchmarkServer is the share of the server.
func BenchmarkServer(b *testing.B) {
	h := NewHandler(Script{ByStep: true, Replies: []Reply{{Text: strings.Repeat("abc\n", 200_000), Chunk: 5}}}, Options{Trust: true, Keep: -1})
	for b.Loop() {
		req, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/messages", bytes.NewReader([]byte(`{}`)))
		h.ServeHTTP(&discard{header: http.Header{}}, req)
	}
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}
