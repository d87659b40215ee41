// Package valid_test proves that whatever is in a log, every adapter makes of it
// a request that its API takes: random sessions are folded into conversations,
// encoded, and checked by the validators of the scripted model.
package valid_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/models/anthropic"
	"dure/internal/models/chat"
	"dure/internal/models/gemini"
	"dure/internal/models/responses"
	"dure/internal/models/script"
	"dure/internal/models/wire"
	"dure/internal/prooftest"
	"dure/internal/state/transcript"
)

const (
	shortLogs = 150
	longLogs  = 10_000 // with DURE_LONG
	seed      = 1
	genuine   = 60 // answers that each provider's adapter reads for the pool
)

var providers = []string{"anthropic", "openai", "google", "local"}

// model is what the adapters have in common.
type model interface {
	agent.Model
	Encode(agent.Request) ([]byte, error)
	Close()
}

// A target is an adapter with a configuration, and the format that it speaks.
type target struct {
	name   string
	format script.Format
	path   string
	open   func(baseURL string) model
}

func targets() []target {
	info := func(id, provider, thinking string, sees bool) agent.ModelInfo {
		return agent.ModelInfo{ID: id, Provider: provider, Window: 200_000, MaxOut: 32_000, Thinking: thinking, Images: sees, PDF: sees}
	}
	rate := 1.0
	marked := info("gpt-6-sol", "openai", "effort", true)
	marked.Price = &agent.Price{Input: &rate, Output: &rate, CacheWrite: &rate}
	claude := func(i agent.ModelInfo) func(string) model {
		return func(url string) model { return anthropic.New(wire.Config{BaseURL: url, Info: i}) }
	}
	talk := func(i agent.ModelInfo, c chat.Compat) func(string) model {
		return func(url string) model {
			return chat.New(chat.Config{Config: wire.Config{BaseURL: url, Info: i}, Compat: c})
		}
	}
	respond := func(i agent.ModelInfo) func(string) model {
		return func(url string) model { return responses.New(wire.Config{BaseURL: url, Info: i}) }
	}
	google := func(i agent.ModelInfo) func(string) model {
		return func(url string) model { return gemini.New(wire.Config{BaseURL: url, Info: i}) }
	}
	path := func(id string) string { return "/v1beta/models/" + id + ":streamGenerateContent?alt=sse" }
	return []target{
		{"anthropic", script.Messages, "/v1/messages", claude(info("claude", "anthropic", "budget", true))},
		{"anthropic preserved", script.Messages, "/v1/messages", claude(info("claude-new", "anthropic", "preserved", true))},
		{"anthropic blind", script.Messages, "/v1/messages", claude(info("claude-blind", "anthropic", "", false))},
		{"chat", script.Chat, "/v1/chat/completions", talk(info("gpt-4.1", "openai", "", true), chat.CompatFor(""))},
		{"chat thinking", script.Chat, "/v1/chat/completions", talk(info("gpt-5.4", "openai", "effort", true), chat.CompatFor(""))},
		{"chat local", script.Chat, "/v1/chat/completions", talk(info("qwen", "local", "effort", false), chat.Compat{Reasoning: "reasoning_content"})},
		{"chat bridged", script.Chat, "/v1/chat/completions", talk(info("mistral-large", "bridged", "", true), chat.CompatFor("https://api.mistral.ai/v1"))},
		{"responses", script.Responses, "/v1/responses", respond(info("gpt-5.4", "openai", "effort", true))},
		{"responses marked", script.Responses, "/v1/responses", respond(marked)},
		{"responses blind", script.Responses, "/v1/responses", respond(info("gpt-4.1", "openai", "", false))},
		{"gemini", script.Gemini, path("gemini-3-pro"), google(info("gemini-3-pro", "google", "level", true))},
		{"gemini budget", script.Gemini, path("gemini-2.5-pro"), google(info("gemini-2.5-pro", "google", "budget", true))},
		{"gemini blind", script.Gemini, path("gemini-2.0-flash"), google(info("gemini-2.0-flash", "google", "", false))},
	}
}

// tools are what the models are offered.
var tools = []agent.Spec{
	{Name: "file-system__read", Description: "Reads.", Input: json.RawMessage(`{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}`)},
	{Name: "bash__exec", Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
}

// oddTools have schemas as other people's servers write them.
var oddTools = []agent.Spec{
	{Name: "file-system__read", Description: "Reads.", Input: json.RawMessage(`{"type":"object","properties":{"file_path":{"type":"string","minLength":1},"limit":{"type":["integer","null"],"minimum":1}},"required":["file_path"],"additionalProperties":false}`)},
	{Name: "patterns", Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","pattern":"^.+$","examples":["ls"]},"mode":{"const":"x"},"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command","gone"]}`)},
	{Name: "references", Input: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"p":{"type":"object","properties":{"next":{"$ref":"#/$defs/p"}}}},"properties":{"p":{"$ref":"#/$defs/p","description":"one"},"q":{"$ref":"#/$defs/none"}}}`)},
	{Name: "definitions", Input: json.RawMessage(`{"$ref":"#/definitions/in","definitions":{"in":{"type":"object","properties":{"a":{"type":"string"}}}}}`)},
	{Name: "anything", Input: json.RawMessage(`{"type":"object","properties":{"any":{},"yes":true,"no":false,"list":{"type":"array"},"object":{"type":"object"}}}`)},
	{Name: "tuples", Input: json.RawMessage(`{"type":"object","properties":{"pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}]},"old":{"type":"array","items":[{"type":"string"}]}}}`)},
	{Name: "choices", Input: json.RawMessage(`{"type":"object","properties":{"kind":{"enum":["a","",1,null]},"u":{"oneOf":[{"type":"string"},{"type":"integer"}]},"all":{"allOf":[{"type":"object","properties":{"q":{"type":"string"}}}]}}}`)},
	{Name: "conditions", Input: json.RawMessage(`{"type":"object","properties":{"if":{"if":{"type":"string"},"then":{"minLength":2}},"when":{"type":"string","format":"date"}},"dependentRequired":{"if":["when"]}}`)},
	{Name: "top", Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`)},
	{Name: "union", Input: json.RawMessage(`{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"string"}}}]}`)},
	{Name: "bare", Input: json.RawMessage(`{}`)},
	{Name: "empty", Input: json.RawMessage(`{"type":"object","properties":{}}`)},
	{Name: "true__" + strings.Repeat("n", 90), Input: json.RawMessage(`{"type":"object"}`)},
	{Name: "日本 odd:name", Input: json.RawMessage(`{"type":["object","null"],"properties":{"日本":{"type":"string","description":"\ud800"}}}`)},
}

// request returns a request for a conversation, with all that may vary.
func (m *maker) request(messages []agent.Message) agent.Request {
	r := agent.Request{
		Messages: messages,
		System:   []agent.Section{{Name: "a", Text: "Be brief.", Cache: m.chance(2)}, {Name: "b", Text: m.text(), Cache: true}},
		Tail:     pick(m, "", "", " ", "It is late."),
		Names:    map[string]string{"file-system__read": "Read", "bash__exec": "Bash"},
	}
	if !m.chance(6) {
		r.Tools = tools
		r.NoTools = m.chance(6)
	}
	if m.chance(3) {
		r.MaxTokens = pick(m, 1, 100, 1_000_000)
	}
	if m.chance(3) {
		t := pick(m, 0.0, 0.7, 1.0)
		r.Temperature = &t
	}
	if m.chance(2) {
		r.Thinking = pick(m, 1, 2000, 50_000)
	}
	return r
}

// fold returns the conversation of a log. With stored, the log has been on disk.
func fold(t *testing.T, events []agent.Event, stored bool) []agent.Message {
	t.Helper()
	s := transcript.New()
	for _, e := range events {
		if stored {
			data, err := json.Marshal(e.Body)
			if err != nil {
				t.Fatal(err)
			}
			if e.Body, err = agent.DecodeBody(agent.Version, e.Kind(), data); err != nil {
				t.Fatal(err)
			}
		}
		s.Apply(e)
	}
	messages, _ := s.Conversation()
	return messages
}

// pool returns genuine answers by provider: random replies, played by the
// scripted model and read by an adapter.
func pool(t *testing.T, list []target) map[string][]agent.Answer {
	t.Helper()
	all := map[string][]agent.Answer{}
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 0))}
	for _, target := range list {
		srv, err := script.NewServer(script.Script{}, script.Options{Keep: -1, Func: func(script.Request) script.Reply { return m.reply() }})
		if err != nil {
			t.Fatal(err)
		}
		model := target.open(srv.URL())
		for i := range genuine {
			r := agent.Request{Thinking: 2000, Messages: []agent.Message{agent.UserText(fmt.Sprint(target.name, i))}}
			for d, err := range model.Stream(t.Context(), r) {
				if err != nil {
					t.Fatalf("%s: %v", target.name, err)
				}
				if d.Final != nil && len(d.Final.Message.Blocks) > 0 {
					p := model.Info().Provider
					all[p] = append(all[p], *d.Final)
				}
			}
		}
		model.Close()
		_ = srv.Close()
	}
	return all
}

// reply returns a random reply.
func (m *maker) reply() script.Reply {
	r := script.Reply{Text: pick(m, "", "Hello.", "I look.", "é😀\n\nand on"), Chunk: 1 + m.IntN(20), Interleave: m.chance(2)}
	if m.chance(2) {
		r.Thinking = pick(m, "Hm.", "First.\n\nThen.", "é😀")
	}
	if m.chance(6) {
		r.Redacted = "c2VjcmV0"
	}
	for range max(0, m.IntN(6)-2) {
		r.Calls = append(r.Calls, script.Call{Tool: pick(m, "Read", "Bash", "mcp__a__b"), Input: json.RawMessage(pick(m, `{}`, `{"file_path":"a.go"}`, `{"a":[1,2.50,"<é>"]}`))})
	}
	if r.Text == "" && r.Calls == nil {
		r.Text = "Done."
	}
	if m.chance(8) {
		r.Stop = pick(m, agent.StopLength, agent.StopPause)
	}
	return r
}

// TestEverySchemaIsTaken offers tools with odd schemas, one by one.
func TestEverySchemaIsTaken(t *testing.T) {
	for _, target := range targets() {
		m := target.open("http://127.0.0.1:1") // never dialled
		for _, tool := range oddTools {
			body, err := m.Encode(agent.Request{Tools: []agent.Spec{tool}, Messages: []agent.Message{agent.UserText("hello")}})
			if err == nil {
				err = script.Validate(target.format, target.path, nil, body)
			}
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", target.name, tool.Name, err, body)
			}
		}
		m.Close()
	}
}

// TestEveryLogMakesValidRequests makes logs until it has made enough of them.
func TestEveryLogMakesValidRequests(t *testing.T) {
	logs, rarely := shortLogs, 13 // the whole log goes to every adapter, its beginnings here and there
	if prooftest.Long() {
		logs, rarely = longLogs, 3
	}
	list := targets()
	models := make([]model, len(list))
	for i, target := range list {
		models[i] = target.open("http://127.0.0.1:1") // never dialled
	}
	answers := pool(t, list)
	found := findings{}
	requests := 0
	for n := range logs {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, uint64(n)+1)), pool: answers, used: map[string]bool{}}
		m.log(func(events []agent.Event, last bool) {
			r := m.request(fold(t, events, n%2 == 0))
			for i, target := range list {
				if !last && !m.chance(rarely) {
					continue
				}
				requests++
				body, err := models[i].Encode(r)
				if err == nil {
					err = script.Validate(target.format, target.path, nil, body)
				}
				if err == nil && m.chance(20) {
					err = sameAgain(target, r, body)
				}
				found.add(target.name, n, len(events), err, body)
			}
		})
	}
	for _, m := range models {
		m.Close()
	}
	t.Logf("%d logs, %d requests", logs, requests)
	found.report(t)
}

// sameAgain checks that an adapter without memory writes the same request.
func sameAgain(target target, r agent.Request, body []byte) error {
	fresh := target.open("http://127.0.0.1:1")
	defer fresh.Close()
	again, err := fresh.Encode(r)
	if err != nil {
		return err
	}
	if string(again) != string(body) {
		return fmt.Errorf("an adapter without memory writes another request: %s", again)
	}
	return nil
}

// findings are what is wrong, by adapter and kind, with the shortest example.
type findings map[string]*finding

type finding struct {
	count int
	err   error
	where string
	body  []byte
}

var varying = regexp.MustCompile(`[0-9]+|'[^']*'|: .*$`)

func (f findings) add(name string, n, events int, err error, body []byte) {
	if err == nil {
		return
	}
	key := name + " " + varying.ReplaceAllString(err.Error(), "*")
	if strings.Contains(err.Error(), "Invalid '") { // the path is a quotation: what is behind it counts
		_, rest, _ := strings.Cut(err.Error(), "': ")
		key = name + " " + varying.ReplaceAllString(rest, "*")
	}
	old := f[key]
	if old == nil {
		old = &finding{}
		f[key] = old
	}
	old.count++
	if old.body == nil || len(body) < len(old.body) {
		old.err, old.body, old.where = err, body, fmt.Sprintf("log %d, after event %d", n, events)
	}
}

const maxShown = 3000 // bytes of a request

func (f findings) report(t *testing.T) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(f)) {
		x := f[key]
		body := x.body
		if i := strings.Index(string(body), `"messages":[`); i > 0 {
			body = body[i:]
		}
		t.Errorf("%s\n%d times, as in %s: %v\n%s", key, x.count, x.where, x.err, body[:min(len(body), maxShown)])
	}
}
