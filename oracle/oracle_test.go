// Package oracle_test reads with the official libraries of Anthropic, OpenAI and
// Google what the adapters of dure read: the same bytes have to be the same
// answer, and what an adapter asks has to be what the library can say.
//
// It is a module of its own, so that nothing the libraries need reaches the
// product. Everything happens on loopback, keys and addresses in the environment
// change nothing, and every goroutine that a test starts has ended when it
// returns.
package oracle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/models/anthropic"
	"dure/internal/models/chat"
	"dure/internal/models/gemini"
	"dure/internal/models/responses"
	"dure/internal/models/script"
	"dure/internal/models/wire"
)

// said is what an answer says, in the terms that all sides share.
type said struct {
	ID, Model string
	Stop      string
	Detail    string  // the stop sequence, or why the model refused
	Blocks    []block // in the order of the answer
	Usage     agent.Usage
}

// A block is a part of an answer: text, thinking, a call, or something else.
type block struct {
	Kind      string // text, thinking, call, raw
	Text      string // the input of a call as canonical JSON, or as it came if it is none
	ID, Tool  string // of a call
	Signature string
	Raw       string // what only the provider can read, as canonical JSON
}

// model is what the adapters have in common.
type model interface {
	agent.Model
	Encode(agent.Request) ([]byte, error)
	Close()
}

// An api is one wire format with both of its readers.
type api struct {
	format script.Format
	folder string // of the adapter below internal/models
	path   string // of its requests
	open   func(baseURL string) model

	// read asks at baseURL with the official library, and returns the answer as
	// far as the library tells it, which may be all of it beside an error.
	read func(ctx context.Context, baseURL string) (said, error)

	// keepsOrder says that the library tells in which order text, thinking and
	// calls came.
	keepsOrder bool

	// untold takes out of the adapter's answer what the library cannot tell.
	untold func(ours *said, theirs said)

	// floats says that the library reads numbers in the input of a call as
	// float64, and so not all of their digits.
	floats bool
}

var apis = []api{
	{
		format: script.Messages, folder: "anthropic", path: "/v1/messages", read: readMessages, keepsOrder: true,
		open: func(url string) model {
			return anthropic.New(wire.Config{BaseURL: url, Key: "key", Info: info("claude-sonnet-4-5", "anthropic", "budget")})
		},
	},
	{
		format: script.Chat, folder: "chat", path: "/v1/chat/completions", read: readChat, untold: chatUntold,
		open: func(url string) model {
			return chat.New(chat.Config{Config: wire.Config{BaseURL: url, Key: "key", Info: info("gpt-5.4", "openai", "effort")}, Compat: chat.CompatFor("")})
		},
	},
	{
		format: script.Responses, folder: "responses", path: "/v1/responses", read: readResponses, keepsOrder: true,
		open: func(url string) model {
			return responses.New(wire.Config{BaseURL: url, Key: "key", Info: priced(info("gpt-6-sol", "openai", "effort"))})
		},
	},
	{
		format: script.Gemini, folder: "gemini", path: "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", read: readGemini,
		keepsOrder: true, floats: true, untold: geminiUntold,
		open: func(url string) model {
			return gemini.New(wire.Config{BaseURL: url, Key: "key", Info: info("gemini-3-pro", "google", "level")})
		},
	},
}

func info(id, provider, thinking string) agent.ModelInfo {
	return agent.ModelInfo{ID: id, Provider: provider, Window: 200_000, MaxOut: 32_000, Thinking: thinking, Images: true, PDF: true}
}

// priced makes a model one that charges for what is written to its cache.
func priced(i agent.ModelInfo) agent.ModelInfo {
	rate := 1.0
	i.Price = &agent.Price{Input: &rate, Output: &rate, CacheWrite: &rate}
	return i
}

// question is what is asked whenever only the answer matters.
func question() agent.Request {
	return agent.Request{Thinking: 2000, Messages: []agent.Message{agent.UserText("hello")}}
}

// each runs a test for every wire format.
func each(t *testing.T, test func(t *testing.T, a api)) {
	for _, a := range apis {
		t.Run(string(a.format), func(t *testing.T) {
			t.Parallel()
			test(t, a)
		})
	}
}

// A tape gives whoever asks the same stream of events.
type tape struct {
	*httptest.Server
	now atomic.Pointer[recording]
}

// A recording is the body of an answer.
type recording struct {
	body []byte
	seed uint64 // of the places at which it is cut into writes
	torn bool   // the connection breaks behind it
}

const maxWrites = 6 // of one body, so that readers meet events in pieces

func newTape(t *testing.T) *tape {
	tp := &tape{}
	tp.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a request that breaks off has no reader
		w.Header().Set("Content-Type", "text/event-stream")
		rec := tp.now.Load()
		rest, rng, rc := rec.body, rand.New(rand.NewPCG(rec.seed, 0)), http.NewResponseController(w)
		for range rng.IntN(maxWrites) {
			n := rng.IntN(len(rest) + 1)
			_, _ = w.Write(rest[:n]) // the reader may have what it wants
			_ = rc.Flush()
			rest = rest[n:]
		}
		_, _ = w.Write(rest)
		if rec.torn {
			_ = rc.Flush()
			panic(http.ErrAbortHandler) // net/http's way to break a connection
		}
	}))
	t.Cleanup(tp.Close)
	return tp
}

// compare plays a body to both readers of an API.
type compare struct {
	api  api
	tape *tape
	ours model
}

func newCompare(t *testing.T, a api) *compare {
	tp := newTape(t)
	m := a.open(tp.URL)
	t.Cleanup(m.Close)
	return &compare{api: a, tape: tp, ours: m}
}

func (c *compare) play(t *testing.T, rec recording) (ours said, oursErr error, theirs said, theirsErr error) {
	t.Helper()
	c.tape.now.Store(&rec)
	ours, oursErr = c.readOurs(t)
	theirs, theirsErr = c.api.read(t.Context(), c.tape.URL)
	if !c.api.keepsOrder {
		ours.Blocks, theirs.Blocks = sortBlocks(ours.Blocks), sortBlocks(theirs.Blocks)
	}
	if c.api.untold != nil {
		c.api.untold(&ours, theirs)
	}
	return ours, oursErr, theirs, theirsErr
}

// same plays a whole answer and returns what the readers do not agree on.
func (c *compare) same(t *testing.T, rec recording) string {
	t.Helper()
	return difference(c.play(t, rec))
}

// difference returns what two readers do not agree on.
func difference(ours said, err error, theirs said, theirsErr error) string {
	switch {
	case err != nil && theirsErr != nil:
		return ""
	case err != nil:
		return fmt.Sprintf("only the adapter fails: %v", err)
	case theirsErr != nil:
		return fmt.Sprintf("only the library fails: %v", theirsErr)
	}
	return cmp.Diff(theirs, ours)
}

// readOurs reads the answer with the adapter, and checks that what was shown is
// what is kept.
func (c *compare) readOurs(t *testing.T) (said, error) {
	t.Helper()
	var final *agent.Answer
	shown := map[agent.DeltaKind]string{}
	for d, err := range c.ours.Stream(t.Context(), question()) {
		if err != nil {
			return said{}, err
		}
		shown[d.Kind] += d.Text
		final = d.Final
	}
	if final == nil {
		return said{}, fmt.Errorf("the adapter ends without an answer")
	}
	kept := map[agent.DeltaKind]string{}
	s := said{ID: final.ID, Model: final.Model, Stop: string(final.Stop), Detail: final.Detail, Usage: final.Usage}
	for _, b := range final.Message.Blocks {
		switch b.Type {
		case agent.TextBlock:
			kept[agent.DeltaText] += b.Text
		case agent.ThinkingBlock:
			kept[agent.DeltaThinking] += b.Text
		}
		s.Blocks = append(s.Blocks, c.block(b))
	}
	for _, kind := range []agent.DeltaKind{agent.DeltaText, agent.DeltaThinking} {
		if shown[kind] != kept[kind] {
			t.Errorf("%s: shown %q, kept %q", kind, shown[kind], kept[kind])
		}
	}
	return s, nil
}

// block returns a block of the adapter as the libraries' are returned.
func (c *compare) block(b agent.Block) block {
	switch b.Type {
	case agent.TextBlock:
		return block{Kind: "text", Text: b.Text, Signature: b.Signature}
	case agent.ThinkingBlock:
		return block{Kind: "thinking", Text: b.Text, Signature: b.Signature, Raw: canonical(string(b.Raw), false)}
	case agent.CallBlock:
		input := string(b.Call.Input)
		if b.Call.Invalid != "" {
			input = b.Call.Raw
		}
		own := call(b.Call.ID, b.Call.Tool, input)
		own.Text, own.Signature = canonical(own.Text, c.api.floats), b.Signature
		return own
	}
	return block{Kind: "raw", Raw: canonical(string(b.Raw), false)}
}

// call returns a call as a library tells of it. One without arguments has an
// input without members.
func call(id, tool, input string) block {
	if input == "" {
		input = "{}"
	}
	return block{Kind: "call", ID: id, Tool: tool, Text: canonical(input, false)}
}

// canonical writes a JSON value so that equal values are equal strings, and
// leaves what is none as it is.
func canonical(text string, floats bool) string {
	d := json.NewDecoder(strings.NewReader(text))
	if !floats {
		d.UseNumber()
	}
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	if _, err := d.Token(); err != io.EOF {
		return text
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return text
	}
	return strings.TrimSpace(b.String())
}

// sortBlocks puts thinking before text before calls, and joins texts, but leaves
// the calls in their order.
func sortBlocks(blocks []block) []block {
	slices.SortStableFunc(blocks, func(a, b block) int { return rank(a) - rank(b) })
	var joined []block
	for _, b := range blocks {
		if n := len(joined); n > 0 && b.Kind == joined[n-1].Kind && b.Kind != "call" {
			joined[n-1].Text += b.Text
			continue
		}
		joined = append(joined, b)
	}
	return joined
}

func rank(b block) int { return slices.Index([]string{"thinking", "text", "call", "raw"}, b.Kind) }
