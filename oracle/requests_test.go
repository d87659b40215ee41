package oracle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/models/anthropic"
	"dure/internal/models/chat"
	"dure/internal/models/gemini"
	"dure/internal/models/responses"
	"dure/internal/models/wire"
)

const conversations = 200 // for each target

// nothing is why a member is an extra when it is null or empty, and only then.
const nothing = "the library leaves out what is null or empty"

// A target is an adapter with a configuration, and the library that can say what
// it says.
type target struct {
	name string
	api  api
	open func(baseURL string) model

	// send reads the body of a request into the library's types and has the
	// library send it to baseURL: what it has no type for is lost.
	send func(ctx context.Context, baseURL string, body []byte) error

	// extras are the members that only one side sends, by their paths, each with
	// the reason.
	extras map[string]string
}

func targets() []target {
	claude := func(i agent.ModelInfo) func(string) model {
		return func(url string) model { return anthropic.New(wire.Config{BaseURL: url, Key: "key", Info: i}) }
	}
	talk := func(i agent.ModelInfo, c chat.Compat) func(string) model {
		return func(url string) model {
			return chat.New(chat.Config{Config: wire.Config{BaseURL: url, Key: "key", Info: i}, Compat: c})
		}
	}
	respond := func(i agent.ModelInfo) func(string) model {
		return func(url string) model { return responses.New(wire.Config{BaseURL: url, Key: "key", Info: i}) }
	}
	google := func(i agent.ModelInfo) func(string) model {
		return func(url string) model { return gemini.New(wire.Config{BaseURL: url, Key: "key", Info: i}) }
	}
	absent := map[string]string{"messages[].content": nothing}
	proto := map[string]string{
		"contents[].parts[].text":                    nothing,
		"contents[].parts[].functionCall.args":       nothing,
		"tools[].functionDeclarations[].description": nothing,
		"systemInstruction.role":                     "the library writes one, and the API reads none",
	}
	local := chat.Compat{Reasoning: "reasoning_content", EmptyText: true}
	return []target{
		{"messages", apis[0], claude(info("claude-sonnet-4-5", "anthropic", "budget")), sendMessages, nil},
		{"messages adaptive", apis[0], claude(info("claude-opus-5", "anthropic", "adaptive")), sendMessages, nil},
		{"messages preserved", apis[0], claude(info("claude-opus-5-5", "anthropic", "preserved")), sendBetaMessages, nil},
		{"chat", apis[1], talk(info("gpt-5.4", "openai", "effort"), chat.CompatFor("")), sendChat, absent},
		{"chat local", apis[1], talk(info("qwen", "local", "effort"), local), sendChat, map[string]string{
			"messages[].reasoning_content": "thinking that goes back, as compatible servers take it",
		}},
		{"chat mistral", apis[1], talk(info("mistral-large", "mistral", ""), chat.CompatFor("https://api.mistral.ai/v1")), sendChat, nil},
		{"responses", apis[2], respond(info("gpt-5.4", "openai", "effort")), sendResponses, nil},
		{"responses marked", apis[2], respond(priced(info("gpt-6-sol", "openai", "effort"))), sendResponses, nil},
		{"gemini", apis[3], google(info("gemini-3-pro", "google", "level")), geminiSender("gemini-3-pro"), proto},
		{"gemini budget", apis[3], google(info("gemini-2.5-pro", "google", "budget")), geminiSender("gemini-2.5-pro"), proto},
	}
}

// A request is what came in on loopback.
type request struct {
	Line   string // method, path and query
	Header http.Header
	Body   any
}

// head returns the request without its body. The beta part of Anthropic's library
// marks its addresses; the API needs no more than the header.
func (r *request) head() request {
	return request{Line: strings.TrimSuffix(r.Line, "?beta=true"), Header: r.Header}
}

// compared are the headers that the API reads.
var compared = []string{
	"Content-Type", "Authorization", "X-Api-Key", "X-Goog-Api-Key", "Anthropic-Version", "Anthropic-Beta",
}

// An inbox takes requests and answers them with a stream that ends at once.
type inbox struct {
	*httptest.Server
	last *request
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.last = &request{Line: r.Method + " " + r.URL.RequestURI(), Header: http.Header{}}
		for _, name := range compared {
			if v := r.Header.Values(name); v != nil {
				in.last.Header[name] = v
			}
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &in.last.Body)
		}
		if err != nil {
			in.last.Body = err.Error()
		}
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	t.Cleanup(in.Close)
	return in
}

// take returns the request that came since it was last asked.
func (in *inbox) take() *request {
	r := in.last
	in.last = nil
	return r
}

// TestRequestsCanBeSaid makes conversations, asks with the adapter, and has the
// library read and send the same: address, headers and body.
func TestRequestsCanBeSaid(t *testing.T) {
	list := targets()
	answers := pool(t, list)
	for _, target := range list {
		t.Run(target.name, func(t *testing.T) {
			in := newInbox(t)
			m := target.open(in.URL)
			defer m.Close()
			found, used, size := map[string]string{}, map[string]int{}, 0
			for n := range conversations {
				r := maker{rand.New(rand.NewPCG(seed, uint64(n)))}.request(answers, m.Info().Provider)
				body, err := m.Encode(r)
				if err != nil {
					t.Fatalf("conversation %d: %v", n, err)
				}
				size += len(body)
				for _, err := range m.Stream(t.Context(), r) {
					if agent.ClassOf(err) != agent.FailServer { // nothing is answered
						t.Fatalf("conversation %d: %v", n, err)
					}
				}
				ours := in.take()
				if err := target.send(t.Context(), in.URL, body); err != nil {
					t.Fatalf("conversation %d: the library: %v\n%s", n, err, body)
				}
				theirs := in.take()
				if diff := cmp.Diff(theirs.head(), ours.head()); diff != "" {
					t.Fatalf("conversation %d: the library's request (-) and the adapter's (+): %s", n, diff)
				}
				d := differences{extras: target.extras, used: used, found: found}
				d.compare(theirs.Body, ours.Body, "")
			}
			for _, path := range slices.Sorted(maps.Keys(found)) {
				t.Errorf("%s: %s", path, found[path])
			}
			for path, why := range target.extras {
				if used[path] == 0 {
					t.Errorf("%s is never sent, but it is an extra: %s", path, why)
				}
			}
			t.Logf("%d conversations, %d bytes, extras %v", conversations, size, used)
		})
	}
}

// differences compares the bodies of two requests.
type differences struct {
	extras map[string]string
	used   map[string]int    // how often each extra was sent
	found  map[string]string // the first difference of each path
}

func (d differences) compare(theirs, ours any, path string) {
	switch o := ours.(type) {
	case map[string]any:
		if t, ok := theirs.(map[string]any); ok {
			d.members(t, o, path)
			return
		}
	case []any:
		if t, ok := theirs.([]any); ok && len(t) == len(o) {
			for i := range o {
				d.compare(t[i], o[i], path+"[]")
			}
			return
		}
	case string:
		if _, ok := theirs.([]any); ok { // of which a string is the short form
			ours = []any{map[string]any{"type": "text", "text": o}}
		} else if strings.HasSuffix(path, ".thoughtSignature") { // bytes, in either alphabet
			ours = standard.Replace(o)
		}
	}
	if diff := cmp.Diff(theirs, ours); diff != "" && d.found[path] == "" {
		d.found[path] = "the library's (-) and the adapter's (+): " + diff
	}
}

func (d differences) members(theirs, ours map[string]any, path string) {
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		value, kept := theirs[name]
		switch why, extra := d.extras[at]; {
		case kept:
			d.compare(value, ours[name], at)
		case extra && (why != nothing || empty(ours[name])):
			d.used[at]++
		case d.found[at] == "":
			d.found[at] = fmt.Sprintf("the library drops %v", ours[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		if _, sent := ours[name]; sent {
			continue
		}
		if why, extra := d.extras[at]; extra && why != nothing {
			d.used[at]++
		} else if d.found[at] == "" {
			d.found[at] = fmt.Sprintf("the library adds %v", theirs[name])
		}
	}
}

// standard writes base64 of the alphabet for addresses in the other one.
var standard = strings.NewReplacer("-", "+", "_", "/")

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	}
	return false
}

const genuine = 40 // answers of each target in the pool

// pool returns answers by provider, as the adapters read them.
func pool(t *testing.T, list []target) map[string][]agent.Message {
	t.Helper()
	all := map[string][]agent.Message{}
	for _, target := range list {
		tp := newTape(t)
		m := target.open(tp.URL)
		for n := range genuine {
			r := maker{rand.New(rand.NewPCG(seed, uint64(n)))}.reply(target.api.format)
			tp.now.Store(&recording{body: perform(t, target.api, r, 2*n+1)})
			for d, err := range m.Stream(t.Context(), question()) {
				if err != nil {
					t.Fatal(err)
				}
				if d.Final != nil && len(d.Final.Message.Blocks) > 0 {
					p := m.Info().Provider
					all[p] = append(all[p], d.Final.Message)
				}
			}
		}
		m.Close()
	}
	return all
}

// request returns a request with a random conversation: answers of the provider
// that is asked, and sometimes of another.
func (m maker) request(answers map[string][]agent.Message, provider string) agent.Request {
	r := agent.Request{
		System: []agent.Section{{Text: "Be brief.", Cache: m.chance(2)}, {Text: m.text(5), Cache: true}},
		Tail:   pick(m, "", "It is late."),
	}
	if !m.chance(5) {
		r.Tools = schemas
		r.NoTools = m.chance(6)
	}
	if m.chance(2) {
		r.MaxTokens = pick(m, 1, 3000, 1_000_000)
	}
	if m.chance(2) {
		temperature := pick(m, 0, 0.5, 1.0)
		r.Temperature = &temperature
	}
	if m.chance(2) {
		r.Thinking = pick(m, 1, 5000, 50_000)
	}
	r.Messages = []agent.Message{m.words()}
	others := slices.Sorted(maps.Keys(answers))
	for range m.IntN(8) {
		from := provider
		if m.chance(6) {
			from = pick(m, others...)
		}
		said := pick(m, answers[from]...)
		heard := m.words()
		if calls := said.Calls(); len(calls) > 0 {
			heard.Blocks = nil
			for _, c := range calls {
				result := m.result(c.ID)
				heard.Blocks = append(heard.Blocks, agent.Block{Type: agent.ResultBlock, Result: &result})
			}
		}
		r.Messages = append(r.Messages, said, heard)
	}
	return r
}

// words returns what a person says, images and documents included.
func (m maker) words() agent.Message {
	said := agent.UserText("hello " + m.text(6))
	for range m.IntN(2) * m.IntN(3) {
		said.Blocks = append(said.Blocks, m.media())
	}
	return said
}

func (m maker) media() agent.Block {
	data := []byte{1, 2, 3, 0xff}
	return pick(
		m,
		agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Data: data}},
		agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/jpeg", Name: "a.jpg", Data: data}},
		agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", URL: "https://example.com/a.png"}},
		agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: "application/pdf", Name: "a.pdf", Data: data}},
		agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: "text/plain", Name: "a.txt", Data: []byte("text")}},
		agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: "application/zip", Name: "a.zip", Data: data}},
	)
}

func (m maker) result(id string) agent.Result {
	r := agent.Result{ID: id, Status: agent.StatusOK, Text: m.text(m.IntN(8))}
	if m.chance(5) {
		r = agent.Failure(agent.ErrTool, "no such file", "look elsewhere")
		r.ID = id
	}
	if m.chance(5) {
		r.Blocks = append(r.Blocks, m.media())
	}
	return r
}

// schemas are tools as different servers describe them.
var schemas = []agent.Spec{
	{Name: "Read", Description: "Reads.", Input: json.RawMessage(`{"type":"object","properties":{"file_path":{"type":"string","minLength":1},"limit":{"type":["integer","null"],"minimum":1}},"required":["file_path"],"additionalProperties":false}`)},
	{Name: "Bash", Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","pattern":"^.+$"},"env":{"type":"object","additionalProperties":{"type":"string"}}}}`)},
	{Name: "tree", Description: "<b>é</b>", Input: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"p":{"type":"object","properties":{"next":{"$ref":"#/$defs/p"}}}},"properties":{"p":{"$ref":"#/$defs/p"}}}`)},
	{Name: "mcp__a__b", Input: json.RawMessage(`{"type":"object","properties":{"kind":{"enum":["a",1,null]},"u":{"oneOf":[{"type":"string"},{"type":"integer"}]}},"anyOf":[{"required":["kind"]},{"required":["u"]}]}`)},
	{Name: "empty", Input: json.RawMessage(`{"type":"object"}`)},
}

// decode reads the body of a request into the library's type, all of it.
func decode(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields() // concerns types that do not read themselves
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	return nil
}
