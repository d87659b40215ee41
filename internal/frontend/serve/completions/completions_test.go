package completions

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// play is a transport whose sessions say what the test has written down.
type play struct {
	mu     sync.Mutex
	opened []agent.Open
	sent   []agent.Command
	gone   []string // sessions that were removed
	closed int
	turn   []agent.Body // that follow the input of a prompt; nil = nothing ever does
	prompt chan agent.Prompt
	told   chan struct{} // has one when somebody has read the turn
}

func newPlay(turn ...agent.Body) *play {
	return &play{turn: turn, prompt: make(chan agent.Prompt, 100), told: make(chan struct{}, 100)}
}

func (p *play) Open(_ context.Context, o agent.Open) (agent.SessionInfo, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Model == "nobody" {
		return agent.SessionInfo{}, &agent.Problem{Code: agent.ProblemModel, Message: "there is no model nobody"}
	}
	p.opened = append(p.opened, o)
	if o.Session != "" {
		return agent.SessionInfo{ID: o.Session, Model: "m1"}, nil
	}
	return agent.SessionInfo{ID: fmt.Sprintf("s%d", len(p.opened)), Model: "m1"}, nil
}

func (p *play) Send(_ context.Context, _ string, c agent.Command) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, c)
	if c, ok := c.(agent.Prompt); ok {
		p.prompt <- c
	}
	return nil
}

func (p *play) Events(ctx context.Context, _ string, _ int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		var input agent.Prompt
		select {
		case input = <-p.prompt:
		case <-ctx.Done():
			return
		}
		seq := int64(0)
		for _, b := range slices.Concat([]agent.Body{agent.Fragment{What: agent.DeltaText, Text: "of another turn"}, agent.InputAdded{Input: input.ID}}, p.turn) {
			seq++
			if !yield(agent.Event{Seq: seq, Body: b}, nil) {
				return
			}
		}
		p.told <- struct{}{}
		<-ctx.Done()
	}
}

func (p *play) Query(_ context.Context, q agent.Query) (any, error) {
	switch q := q.(type) {
	case query.ListModels:
		return []agent.ModelInfo{{ID: "m1", Provider: "a", Aliases: []string{"one"}}, {ID: "x/m2", Provider: "b"}, {ID: "m3", Provider: "c"}}, nil
	case query.ListProviders:
		return []query.ProviderInfo{{Name: "a", Key: "env"}, {Name: "b", Local: true}, {Name: "c"}}, nil
	case agent.FindSession:
		switch q.Name {
		case "there":
			return agent.SessionInfo{ID: "there", Model: "m1", Head: 7}, nil
		case "runs":
			return agent.SessionInfo{ID: "runs", Status: "running"}, nil
		case "the":
			return agent.SessionInfo{ID: "there"}, nil
		}
		return nil, &agent.Problem{Code: agent.ProblemMissing, Message: "no session " + q.Name}
	case query.RemoveSession:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.gone = append(p.gone, q.Session)
		return query.RemovedSession{Session: q.Session}, nil
	}
	return nil, fmt.Errorf("query %T", q)
}

func (p *play) Close(context.Context, string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed++
	return nil
}

func (p *play) named() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, c := range p.sent {
		names = append(names, c.Command())
	}
	return names
}

// served is a server over a play.
func served(t *testing.T, p *play) (*httptest.Server, *Desk) {
	t.Helper()
	d := New(Config{Client: client.New(p), Workdir: "/work", Logger: slog.New(slog.DiscardHandler)})
	mux := http.NewServeMux()
	for _, r := range d.Routes() {
		mux.HandleFunc(r.Method+" "+r.Path, r.Serve)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s, d
}

func post(t *testing.T, s *httptest.Server, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(data)
}

func text(s string) agent.Fragment { return agent.Fragment{What: agent.DeltaText, Text: s} }

func says(s string, stop agent.StopReason) agent.ModelAnswered {
	return agent.ModelAnswered{Answer: agent.Answer{
		Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: s}}}, Stop: stop,
	}}
}

func ended(reason agent.EndReason) agent.TurnEnded {
	return agent.TurnEnded{Reason: reason, Usage: agent.Usage{Input: 10, CacheRead: 4, CacheWrite: 1, Output: 3}}
}

const hello = `{"model":"dure","messages":[{"role":"user","content":"hello"}]}`

// streamed adds the pieces of a stream up.
func streamed(t *testing.T, body string) (content, finish string, last chunk, failed string) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(body))
	done := false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || done {
			if lines.Text() != "" && !strings.HasPrefix(lines.Text(), ":") {
				t.Errorf("a line of its own: %q", lines.Text())
			}
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var c struct {
			chunk
			Error *struct{ Code string }
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if c.Error != nil {
			return content, finish, last, c.Error.Code
		}
		last = c.chunk
		for _, ch := range c.Choices {
			if ch.Delta.Content != nil {
				content += *ch.Delta.Content
			}
			if ch.Finish != nil {
				finish = *ch.Finish
			}
		}
	}
	if !done {
		t.Errorf("the stream has no end: %s", body)
	}
	return content, finish, last, ""
}

// What a turn says is the answer, the same as a whole and in pieces.
func TestAnswers(t *testing.T) {
	call := agent.ModelAnswered{Answer: agent.Answer{Stop: agent.StopCalls}}
	hidden := says("secret", agent.StopEnd)
	hidden.Shown = new(string)
	for _, tt := range []struct {
		name    string
		turn    []agent.Body
		content string
		finish  string
	}{
		{"one step", []agent.Body{text("Hel"), text("lo"), says("Hello", agent.StopEnd), ended(agent.EndDone)}, "Hello", "stop"},
		{"no fragments came", []agent.Body{says("Hello", agent.StopEnd), ended(agent.EndDone)}, "Hello", "stop"},
		{"the end of them is missing", []agent.Body{text("Hel"), says("Hello", agent.StopEnd), ended(agent.EndDone)}, "Hello", "stop"},
		{"steps", []agent.Body{text("I look."), says("I look.", agent.StopCalls), call, text("Found"), says("Found it.", agent.StopEnd), ended(agent.EndDone)}, "I look.\n\nFound it.", "stop"},
		{"an attempt that says the same again", []agent.Body{text("Hello"), agent.ModelFailed{Retry: true}, text("Hel"), text("lo wor"), text("ld"), says("Hello world", agent.StopEnd), ended(agent.EndDone)}, "Hello world", "stop"},
		{"an attempt that says something else", []agent.Body{text("Hello"), agent.ModelFailed{Retry: true}, text("Good "), text("day"), says("Good day", agent.StopEnd), ended(agent.EndDone)}, "Hello\n\nGood day", "stop"},
		{"a side question", []agent.Body{agent.ModelAnswered{Purpose: "title", Answer: says("A title", "").Answer}, says("Hi", agent.StopEnd), ended(agent.EndDone)}, "Hi", "stop"},
		{"thinking", []agent.Body{agent.Fragment{What: agent.DeltaThinking, Text: "hm"}, says("Hi", agent.StopEnd), ended(agent.EndDone)}, "Hi", "stop"},
		{"what a hook hides", []agent.Body{hidden, ended(agent.EndDone)}, "", "stop"},
		{"cut", []agent.Body{says("Hi", agent.StopLength), ended(agent.EndDone)}, "Hi", "length"},
		{"too many steps", []agent.Body{says("Hi", agent.StopCalls), ended(agent.EndLimit)}, "Hi", "length"},
		{"refused", []agent.Body{says("No", agent.StopRefusal), ended(agent.EndRefused)}, "No", "content_filter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlay(tt.turn...)
			s, _ := served(t, p)
			res, body := post(t, s, hello)
			var got struct {
				Model   string
				Choices []struct {
					Message struct{ Content string }
					Finish  string `json:"finish_reason"`
				}
				Usage    usage
				Metadata map[string]string
			}
			if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != 200 || len(got.Choices) != 1 {
				t.Fatalf("%d %s: %v", res.StatusCode, body, err)
			}
			if c := got.Choices[0]; c.Message.Content != tt.content || c.Finish != tt.finish {
				t.Errorf("as a whole: %+v", c)
			}
			if d := cmp.Diff(usage{15, 3, 18, promptUsage{4}}, got.Usage); d != "" {
				t.Error(d)
			}
			if got.Model != "m1" || got.Metadata["session"] != "s1" || res.Header.Get(Header) != "s1" {
				t.Errorf("%+v %v", got, res.Header)
			}

			_, body = post(t, s, `{"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello"}]}`)
			content, finish, last, _ := streamed(t, body)
			if content != tt.content || finish != tt.finish || last.Usage == nil || last.Usage.Total != 18 || len(last.Choices) != 0 {
				t.Errorf("in pieces: %q %q %+v", content, finish, last)
			}
		})
	}
}

// Turns that fail are answered with errors in the shape of the API, also behind pieces.
func TestFailures(t *testing.T) {
	fail := func(class agent.FailureClass) []agent.Body {
		e := ended(agent.EndFailed)
		e.Fail, e.Error = class, "it did not work"
		return []agent.Body{e}
	}
	for _, tt := range []struct {
		turn   []agent.Body
		status int
		code   string
	}{
		{fail(agent.FailRate), 429, "rate_limit_exceeded"},
		{fail(agent.FailQuota), 429, "insufficient_quota"},
		{fail(agent.FailContext), 400, "context_length_exceeded"},
		{fail(agent.FailAuth), 502, "model_failed"},
		{fail(agent.FailServer), 502, "model_failed"},
		{fail(agent.FailTimeout), 504, "timeout"},
		{fail(""), 500, "turn_failed"},
		{[]agent.Body{ended(agent.EndInterrupted)}, 503, "interrupted"},
	} {
		for _, stream := range []string{"false", "true"} {
			s, _ := served(t, newPlay(tt.turn...))
			res, body := post(t, s, `{"stream":`+stream+`,"messages":[{"role":"user","content":"hello"}]}`)
			var got struct {
				Error struct{ Message, Type, Code string }
			}
			if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != tt.status || got.Error.Code != tt.code || got.Error.Message == "" {
				t.Errorf("%s: %d %s, want %d: %v", tt.code, res.StatusCode, body, tt.status, err)
			}
			if refused := tt.turn[0].(agent.TurnEnded).Fail == agent.FailAuth; refused != strings.Contains(got.Error.Message, "not your token") {
				t.Errorf("%s: whose key it is: %s", tt.code, got.Error.Message)
			}
			if res.Header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s: a client would have the turn run again", tt.code)
			}
		}
	}
	s, _ := served(t, newPlay(append([]agent.Body{text("Hel")}, fail(agent.FailServer)...)...))
	_, body := post(t, s, `{"stream":true,"messages":[{"role":"user","content":"hello"}]}`)
	if content, _, _, failed := streamed(t, body); content != "Hel" && content != "" || failed != "model_failed" && !strings.Contains(body, "model_failed") {
		t.Errorf("%q %q: %s", content, failed, body)
	}
}

// An input that a hook drops is answered with an error: no turn ever would.
func TestDropped(t *testing.T) {
	notes := newScribe("i")
	for _, id := range []string{"another", "i"} {
		_, end := notes.read(agent.Event{Seq: 1, Body: agent.InputDropped{Input: id, Reason: "not here"}})
		if (end != nil) != (id == "i") || end != nil && (end.err == nil || end.err.status != 400) {
			t.Errorf("%s: %+v", id, end)
		}
	}
}

// What cannot be answered is refused before a session is opened, and says which part is wrong.
func TestRefused(t *testing.T) {
	p := newPlay(ended(agent.EndDone))
	s, _ := served(t, p)
	user := `"messages":[{"role":"user","content":"x"}]`
	content := func(c string) string { return `{"messages":[{"role":"user","content":` + c + `}]}` }
	for _, tt := range []struct {
		body   string
		status int
		param  string
	}{
		{``, 400, ""},
		{`{`, 400, ""},
		{`[]`, 400, ""},
		{`null`, 400, "messages"},
		{`{}`, 400, "messages"},
		{`{"messages":[]}`, 400, "messages"},
		{`{"messages":"x"}`, 400, ""},
		{`{` + user + `} {}`, 400, ""},
		{`{` + user + `,"n":2}`, 400, "n"},
		{`{` + user + `,"tools":[{"type":"function"}]}`, 400, "tools"},
		{`{` + user + `,"functions":[{}]}`, 400, "functions"},
		{`{` + user + `,"stop":"x"}`, 400, "stop"},
		{`{` + user + `,"stop":["x"]}`, 400, "stop"},
		{`{` + user + `,"logprobs":true}`, 400, "logprobs"},
		{`{` + user + `,"modalities":["text","audio"]}`, 400, "modalities"},
		{`{` + user + `,"response_format":{"type":"json_object"}}`, 400, "response_format"},
		{`{` + user + `,"web_search_options":{}}`, 400, "web_search_options"},
		{`{` + user + `,"model":"nobody"}`, 404, "model"},
		{`{` + user + `,"model":"` + strings.Repeat("m", 300) + `"}`, 400, "model"},
		{`{` + user + `,"metadata":{"session":7}}`, 400, "metadata.session"},
		{`{` + user + `,"metadata":{"session":"absent"}}`, 404, "metadata.session"},
		{`{` + user + `,"metadata":{"session":"the"}}`, 404, "metadata.session"},
		{`{` + user + `,"metadata":{"session":"runs"}}`, 409, ""},
		{`{` + user + `,"metadata":{"session":"` + strings.Repeat("s", 300) + `"}}`, 400, "metadata.session"},
		{`{"messages":[{"role":"king","content":"x"}]}`, 400, "messages"},
		{`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`, 400, "messages"},
		{content(`" \n"`), 400, "messages"},
		{content(`null`), 400, "messages"},
		{content(`7`), 400, "messages"},
		{content(`[{"type":"input_audio"}]`), 400, "messages"},
		{content(`[{"type":"image_url"}]`), 400, "messages"},
		{content(`[{"type":"image_url","image_url":{"url":"http://example.org/a.png"}}]`), 400, "messages"},
		{content(`[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]`), 400, "messages"},
		{content(`[{"type":"image_url","image_url":{"url":"data:image/png,x"}}]`), 400, "messages"},
		{content(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,!!"}}]`), 400, "messages"},
		{content(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8="}}]`), 400, "messages"},
		{content(`[{"type":"image_url","image_url":{"url":"data:text/html;base64,aGVsbG8="}}]`), 400, "messages"},
		{content(`[{"type":"file","file":{"file_id":"f"}}]`), 400, "messages"},
		{content(`[` + strings.Repeat(`{"type":"text","text":"x"},`, maxParts) + `{"type":"text","text":"x"}]`), 400, "messages"},
		{`{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, maxMessages) + `{"role":"user","content":"x"}]}`, 400, "messages"},
		{`{"messages":[{"role":"user","content":"` + strings.Repeat("x", maxText+1) + `"}]}`, 400, "messages"},
		{`{"a":` + strings.Repeat("[", 100_000), 400, ""},
		{`{"messages":[{"role":"user","content":"` + strings.Repeat("x", maxBody), 413, ""},
	} {
		res, body := post(t, s, tt.body)
		var got struct {
			Error struct {
				Message, Type string
				Param, Code   *string
			}
		}
		shown := tt.body[:min(len(tt.body), 100)]
		if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != tt.status || got.Error.Message == "" || got.Error.Code == nil {
			t.Errorf("%s: %d %.200s, want %d: %v", shown, res.StatusCode, body, tt.status, err)
			continue
		}
		if param := got.Error.Param; (param == nil) != (tt.param == "") || param != nil && *param != tt.param {
			t.Errorf("%s: it is about %v: %s", shown, param, body)
		}
	}
	if len(p.opened) != 0 {
		t.Errorf("%d sessions were opened", len(p.opened))
	}
	if res, _ := post(t, s, hello, "Content-Type", "text/plain"); res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form of a page gets %d", res.StatusCode)
	}
}

const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// The messages of a request are one input: in a session that goes on, those behind the last answer.
func TestInput(t *testing.T) {
	past := `[{"role":"system","content":"Be brief."},{"role":"user","content":"one"},{"role":"assistant","content":"first","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","content":"r"},{"role":"assistant","content":[{"type":"text","text":"second"}]},{"role":"user","content":[{"type":"text","text":"two"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + dot + `"}}]}]`
	for _, tt := range []struct {
		name, body string
		text       string
		blocks     int
		open       agent.Open
		removed    bool
	}{
		{"one", hello, "hello", 0, agent.Open{Workdir: "/work"}, false},
		{"rules", `{"model":"one","messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":"a"},{"role":"user","content":"b"}]}`, "<instructions>\nBe brief.\n</instructions>\n\na\n\nb", 0, agent.Open{Workdir: "/work", Model: "m1"}, false},
		{
			"a conversation", `{"store":false,"messages":` + past + `}`,
			"<instructions>\nBe brief.\n</instructions>\n\n<conversation>\n[user]\none\n\n[assistant]\nfirst\n[called f with {}]\n\n[result of a call]\nr\n\n[assistant]\nsecond\n</conversation>\n\ntwo",
			1,
			agent.Open{Workdir: "/work"},
			true,
		},
		{"a session that goes on", `{"metadata":{"session":"there"},"store":false,"messages":` + past + `}`, "two", 1, agent.Open{Session: "there"}, false},
		{"the client's tools are not wanted", `{"tools":[{}],"tool_choice":"none","stop":[],"n":1,"response_format":{"type":"text"},"messages":[{"role":"user","content":"x"}]}`, "x", 0, agent.Open{Workdir: "/work"}, false},
		{"an address", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/a.jpg"}}]}]}`, "", 1, agent.Open{Workdir: "/work"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlay(says("Hi", agent.StopEnd), ended(agent.EndDone))
			s, _ := served(t, p)
			if res, body := post(t, s, tt.body); res.StatusCode != 200 {
				t.Fatalf("%d %s", res.StatusCode, body)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			said, ok := p.sent[len(p.sent)-1].(agent.Prompt)
			if !ok || said.Text != tt.text || len(said.Blocks) != tt.blocks {
				t.Errorf("%q, %d blocks", said.Text, len(said.Blocks))
			}
			if !slices.Equal(said.Without, []string{agent.WithoutAll}) {
				t.Error("what the messages mention would be read")
			}
			if d := cmp.Diff([]agent.Open{tt.open}, p.opened); d != "" {
				t.Error(d)
			}
			if p.closed != 1 || (len(p.gone) == 1) != tt.removed {
				t.Errorf("closed %d times, removed %v", p.closed, p.gone)
			}
		})
	}
}

// A header names the session, too; with another one in the body, nobody can tell which is meant.
func TestNamesSession(t *testing.T) {
	p := newPlay(ended(agent.EndDone))
	s, d := served(t, p)
	if res, body := post(t, s, hello, Header, "there"); res.StatusCode != 200 || p.opened[0].Session != "there" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if res, _ := post(t, s, `{"metadata":{"session":"other"},"messages":[{"role":"user","content":"x"}]}`, Header, "there"); res.StatusCode != 400 {
		t.Errorf("two sessions: %d", res.StatusCode)
	}
	if !d.reserve("there") {
		t.Fatal("the session was not given back")
	}
	if res, _ := post(t, s, hello, Header, "there"); res.StatusCode != 409 {
		t.Errorf("a session in use: %d", res.StatusCode)
	}
}

// A client that leaves has its turn interrupted, and its session closed.
func TestGoneInterrupts(t *testing.T) {
	for _, stream := range []string{"true", "false"} {
		p := newPlay(text("Hel"))
		s, d := served(t, p)
		ctx, leave := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(`{"stream":`+stream+`,"messages":[{"role":"user","content":"x"}]}`))
		r.Header.Set("Content-Type", "application/json")
		if stream == "true" {
			res, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			leave()
			_ = res.Body.Close()
		} else {
			go func() {
				<-p.told
				leave()
			}()
			if res, err := s.Client().Do(r); err == nil {
				_ = res.Body.Close()
				t.Error("it was answered")
			}
		}
		s.Close() // waits for the request
		if got := p.named(); !slices.Equal(got, []string{"change", "prompt", "interrupt"}) || p.closed != 1 {
			t.Errorf("stream %s: %v, closed %d times", stream, got, p.closed)
		}
		if len(d.slots) != 0 {
			t.Error("its place was not given back")
		}
	}
}

// A client that loses its access while its turn runs is told so, and treated as one that has left.
func TestRemovedInterrupts(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		begun      bool // something of the answer came before
	}{
		{"a stream", `{"stream":true,"messages":[{"role":"user","content":"x"}]}`, true},
		{"a stream that has not begun", `{"stream":true,"messages":[{"role":"user","content":"x"}]}`, false},
		{"an answer as a whole", `{"messages":[{"role":"user","content":"x"}]}`, false},
	} {
		p := newPlay()
		if tt.begun {
			p.turn = []agent.Body{text("Hel")}
		}
		s, d := served(t, p)
		read := make(chan struct{})
		d.pulse, d.c.Still = time.Millisecond, func(ctx context.Context) bool {
			if ctx.Value(http.ServerContextKey) == nil {
				t.Errorf("%s: somebody else is asked about", tt.name)
			}
			if !tt.begun {
				<-p.told // its turn has begun
				return false
			}
			select {
			case <-read:
				return false
			default:
				return true
			}
		}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		res, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		want := http.StatusUnauthorized
		if tt.begun {
			want = http.StatusOK
			if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			close(read)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != want || !strings.Contains(string(body), `"code":"unauthorized"`) || strings.Contains(string(body), "[DONE]") {
			t.Errorf("%s: %d %s, %v", tt.name, res.StatusCode, body, err)
		}
		s.Close() // waits for the request
		if got := p.named(); !slices.Equal(got, []string{"change", "prompt", "interrupt"}) || p.closed != 1 {
			t.Errorf("%s: %v, closed %d times", tt.name, got, p.closed)
		}
		if len(d.slots) != 0 {
			t.Errorf("%s: its place was not given back", tt.name)
		}
	}
}

// A client that does not read holds up nothing but itself, and memory only up to a bound.
func TestSlowClient(t *testing.T) {
	o := &outlet{news: make(chan struct{}, 1)}
	n := 0
	for o.add(strings.Repeat("x", 1000)) {
		n++
	}
	if n != maxPending/1000 {
		t.Errorf("%d pieces are held", n)
	}
	if got, _ := o.take(); len(got) != n*1000 || !o.add("x") {
		t.Error("what was taken is held")
	}
}

// More turns than the bound are refused, with the time after which to ask again.
func TestTooMany(t *testing.T) {
	p := newPlay()
	s, d := served(t, p)
	for range maxTurns {
		d.slots <- struct{}{}
	}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			res, err := s.Client().Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(hello))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
				t.Errorf("%d %v", res.StatusCode, res.Header)
			}
		})
	}
	wg.Wait()
}

// Signs of life keep a stream open whose turn says nothing for a long time.
func TestPulse(t *testing.T) {
	p := newPlay()
	s, d := served(t, p)
	d.pulse = time.Millisecond
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(`{"stream":true,"messages":[{"role":"user","content":"x"}]}`))
	r.Header.Set("Content-Type", "application/json")
	res, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines, pulses := bufio.NewScanner(res.Body), 0
	for pulses < 3 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), ":") {
			pulses++
		}
	}
	if pulses < 3 {
		t.Error(lines.Err())
	}
}

// The models that can be asked are listed, and each is found by its name.
func TestModels(t *testing.T) {
	s, _ := served(t, newPlay())
	get := func(path string) (int, string) {
		res, err := s.Client().Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(data)
	}
	want := `{"object":"list","data":[{"id":"dure","object":"model","created":0,"owned_by":"dure"},{"id":"m1","object":"model","created":0,"owned_by":"a"},{"id":"x/m2","object":"model","created":0,"owned_by":"b"}]}`
	if status, body := get("/v1/models"); status != 200 || body != want {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get("/v1/models/x/m2"); status != 200 || !strings.Contains(body, `"id":"x/m2"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get("/v1/models/m3"); status != 404 || !strings.Contains(body, `"code":"model_not_found"`) {
		t.Errorf("%d %s", status, body)
	}
}

// Whatever a request holds, it is read within its bounds or refused in the shape of the API.
func FuzzParse(f *testing.F) {
	f.Add([]byte(hello), "")
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+dot+`"}}]}]}`), "s1")
	f.Add([]byte(`{"messages":[{"role":"tool","content":null}],"metadata":{"session":"x"},"stop":null}`), "")
	f.Add([]byte(`{"stream":true,"stream_options":null,"tools":null}`), "x")
	f.Fuzz(func(t *testing.T, data []byte, header string) {
		in, err := parse(data, []string{header})
		if err != nil {
			if r := refusalOf(err); r.status < 400 || r.status >= 500 || !json.Valid(r.body()) {
				t.Errorf("%d %s", r.status, r.body())
			}
			return
		}
		if in.text == "" && len(in.blocks) == 0 || len(in.text) > maxText || len(in.blocks) > maxMedia || len(in.session) > maxName {
			t.Errorf("%+v", in)
		}
	})
}
