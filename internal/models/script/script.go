// Package script is a model that says what a script tells it to: a server on
// loopback that speaks the APIs of Anthropic, OpenAI and Google, for the demo,
// for tests and for benchmarks. It goes through the real adapters, refuses what
// the real APIs would refuse, counts tokens and cache hits plausibly, and fails
// on demand.
//
// A [Handler] starts no goroutines. A [Server] starts one that accepts
// connections, and those of net/http; Close waits for them.
package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"dure/agent"
)

// Provider is the provider of the scripted model's catalog entry.
const Provider = "script"

// Script is what the model will say. The first reply whose When fits the
// request is given; the others are given in order, one after the other.
type Script struct {
	Replies []Reply `json:"replies"`

	// ByStep gives the n-th reply (of those without When) to the request that
	// has n answers already, so that a resumed conversation gets the right one.
	ByStep bool `json:"by_step,omitempty"`

	// Models are the IDs that the server knows; empty = any.
	Models []string `json:"models,omitempty"`
}

// Reply is one answer: thinking, text, calls, in this order.
type Reply struct {
	// When is a part of the last user text or tool result to which this is the
	// reply, any number of times. "" = the reply has its place in the order.
	When string `json:"when,omitempty"`

	Thinking string `json:"thinking,omitempty"`
	Redacted string `json:"redacted,omitempty"` // thinking that only the provider can read; in base64
	Text     string `json:"text,omitempty"`
	Calls    []Call `json:"calls,omitempty"`

	Stop     agent.StopReason `json:"stop,omitempty"`      // default end_turn, or tool_use with calls
	StopText string           `json:"stop_text,omitempty"` // the stop sequence, or why it refused
	Usage    *agent.Usage     `json:"usage,omitempty"`     // default: counted, four bytes a token

	Chunk      int  `json:"chunk,omitempty"`      // bytes of a delta, about; default 32
	DelayMS    int  `json:"delay_ms,omitempty"`   // before each delta
	Interleave bool `json:"interleave,omitempty"` // write the inputs of all calls at once

	// Quirks are what this reply does otherwise than the documented API, as some
	// compatible servers do. They concern [Chat].
	Quirks []Quirk `json:"quirks,omitempty"`

	// Faults befall the first attempts at this reply, one each. The attempt
	// after the last fault succeeds.
	Faults []Fault `json:"faults,omitempty"`
}

// Call is a tool call of a reply.
type Call struct {
	ID    string          `json:"id,omitempty"` // default: unique, and the same for the same request
	Tool  string          `json:"tool"`         // the name as the request presents it
	Input json.RawMessage `json:"input,omitempty"`
	Raw   string          `json:"raw,omitempty"` // instead of Input: what need not be JSON
}

// Quirk is a way in which compatible servers differ from Chat Completions.
type Quirk string

// The quirks.
const (
	NoDone      Quirk = "no_done"      // no [DONE] at the end
	NoIndex     Quirk = "no_index"     // calls come without their index
	NoID        Quirk = "no_id"        // calls come without an ID
	WholeCalls  Quirk = "whole_calls"  // a call comes in one piece
	RepeatCalls Quirk = "repeat_calls" // each piece of a call has its ID and name
	NoUsage     Quirk = "no_usage"     // the usage is never told
	UsageInside Quirk = "usage_inside" // the usage comes with the finish reason
	Reasoning   Quirk = "reasoning"    // reasoning comes as reasoning, not reasoning_content
)

var quirks = []Quirk{NoDone, NoIndex, NoID, WholeCalls, RepeatCalls, NoUsage, UsageInside, Reasoning}

// FaultKind names what goes wrong.
type FaultKind string

// The faults. Slow, Stall and Pings with ForMS go on with the reply afterwards;
// without, they last until the client leaves.
const (
	Status  FaultKind = "status"  // Status, Type, Message, RetryAfter
	Slow    FaultKind = "slow"    // the answer does not begin
	HTML    FaultKind = "html"    // a web page, with Status (default 200)
	Garbage FaultKind = "garbage" // a stream of something else
	Cut     FaultKind = "cut"     // the connection is closed; Clean: the stream just ends
	Reset   FaultKind = "reset"   // the connection is reset
	Stall   FaultKind = "stall"   // nothing more comes
	Pings   FaultKind = "pings"   // only pings come, one every EveryMS (default 10)
	Error   FaultKind = "error"   // an error event with Type, Code and Message
	Failed  FaultKind = "failed"  // as Error; in Responses a response.failed with Code and Message
)

var faultKinds = []FaultKind{Status, Slow, HTML, Garbage, Cut, Reset, Stall, Pings, Error, Failed}

// Fault is one thing that goes wrong.
type Fault struct {
	Kind FaultKind `json:"kind"`

	After int `json:"after,omitempty"` // events that come first
	Bytes int `json:"bytes,omitempty"` // for Cut and Reset: bytes that come first, instead of After

	Status     int               `json:"status,omitempty"`
	Type       string            `json:"type,omitempty"` // default: that of Status; Gemini's status
	Code       string            `json:"code,omitempty"` // in the formats of OpenAI
	Message    string            `json:"message,omitempty"`
	RetryAfter string            `json:"retry_after,omitempty"` // the header, as it is
	Header     map[string]string `json:"header,omitempty"`
	ForMS      int               `json:"for_ms,omitempty"`
	EveryMS    int               `json:"every_ms,omitempty"`
	Clean      bool              `json:"clean,omitempty"`
}

// failure returns the fault as an error of the API.
func (f *Fault) failure() *failure {
	return &failure{status: f.Status, kind: f.Type, code: f.Code, message: f.Message, after: f.RetryAfter, last: f.Kind == Failed}
}

// fatal reports whether the reply does not come after all.
func (f *Fault) fatal() bool {
	if f == nil {
		return false
	}
	return f.Kind != Slow && f.Kind != Stall && f.Kind != Pings || f.ForMS <= 0
}

// Parse reads a script from JSON. Unknown fields are errors.
func Parse(data []byte) (Script, error) {
	var s Script
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Script{}, fmt.Errorf("reading script: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Script{}, errors.New("reading script: there is something behind it")
	}
	return s, s.check()
}

// check finds what no server could play.
func (s Script) check() error {
	for i, r := range s.Replies {
		for _, f := range r.Faults {
			if !slices.Contains(faultKinds, f.Kind) {
				return fmt.Errorf("reading script: reply %d: unknown fault %q", i, f.Kind)
			}
		}
		for _, q := range r.Quirks {
			if !slices.Contains(quirks, q) {
				return fmt.Errorf("reading script: reply %d: unknown quirk %q", i, q)
			}
		}
		for _, c := range r.Calls {
			if c.Tool == "" {
				return fmt.Errorf("reading script: reply %d: a call has no tool", i)
			}
		}
	}
	return nil
}

// stop returns the stop reason of a reply.
func (r Reply) stop() agent.StopReason {
	switch {
	case r.Stop != "":
		return r.Stop
	case len(r.Calls) > 0:
		return agent.StopCalls
	}
	return agent.StopEnd
}

// input returns what the model writes as the input of a call.
func (c Call) input() string {
	if c.Raw != "" {
		return c.Raw
	}
	if len(c.Input) == 0 {
		return ""
	}
	var compact bytes.Buffer
	if json.Compact(&compact, c.Input) != nil {
		return string(c.Input)
	}
	return compact.String()
}

// choose returns the reply to a request, and the fault that befalls it.
func (h *Handler) choose(r Request) (Reply, *Fault, error) {
	var told *Reply
	if h.opts.Func != nil {
		h.asking.Lock()
		reply := h.opts.Func(r)
		h.asking.Unlock()
		told = &reply
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	reply, key, ordered, err := h.find(r, told)
	if err != nil {
		return Reply{}, nil, err
	}
	var fault *Fault
	if n := h.attempts[key]; n < len(reply.Faults) {
		fault = &reply.Faults[n]
		h.attempts[key]++
	}
	if ordered && !fault.fatal() {
		h.next++
	}
	return reply, fault, nil
}

// find returns the reply to a request, and the key under which its attempts
// are counted. ordered says that it is the next one of the order. told is the
// answer of Options.Func, if there is one.
func (h *Handler) find(r Request, told *Reply) (reply Reply, key string, ordered bool, err error) {
	if told != nil {
		return *told, fmt.Sprint("step ", r.Step), false, nil
	}
	var queue []int
	for i, reply := range h.script.Replies {
		if reply.When == "" {
			queue = append(queue, i)
		} else if strings.Contains(r.Last, reply.When) {
			return reply, fmt.Sprint("when ", i), false, nil
		}
	}
	n := h.next
	if h.script.ByStep {
		n = r.Step
	}
	if n >= len(queue) {
		return Reply{}, "", false, fmt.Errorf("the script has %d replies and none for step %d", len(queue), n)
	}
	return h.script.Replies[queue[n]], fmt.Sprint("reply ", n), !h.script.ByStep, nil
}
