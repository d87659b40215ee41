package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"
)

// A Model turns a request into a stream of deltas. It does not retry: one
// Stream is one request on the wire. It is safe for concurrent use.
type Model interface {
	Info() ModelInfo

	// Stream yields deltas and, as the last one of a complete answer, a delta
	// with Final set. An error, a [*ModelError] where the provider's side is to
	// blame, ends the stream; a stream that ends without either was cut.
	Stream(context.Context, Request) iter.Seq2[Delta, error]
}

// ModelInfo is an entry of the catalog of models.
type ModelInfo struct {
	ID       string   `json:"id"`
	Provider string   `json:"provider"` // anthropic, openai, google, script, ...
	Name     string   `json:"name,omitempty"`
	Aliases  []string `json:"aliases,omitempty"`
	Window   int      `json:"window"`     // tokens of context
	MaxOut   int      `json:"max_output"` // tokens of one answer
	Price    *Price   `json:"price,omitempty"`

	// Thinking is how the model is told to think: "", budget, adaptive, effort, level, or
	// preserved: it thinks adaptively anyway, and its thinking is lost as soon as
	// anything in front of it changes, a Tail of an earlier request included.
	Thinking string `json:"thinking,omitempty"`

	Images bool `json:"images,omitempty"`
	PDF    bool `json:"pdf,omitempty"`
}

// Price is in US dollars for a million tokens. A nil rate is unknown.
type Price struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cache_read,omitempty"`
	CacheWrite *float64 `json:"cache_write,omitempty"` // for five minutes
	CacheHour  *float64 `json:"cache_hour,omitempty"`  // for an hour

	// Long, if there is one, has the rates of a request whose prompt, cached
	// parts included, is longer than Above tokens.
	Above int    `json:"above,omitempty"`
	Long  *Price `json:"long,omitempty"`
}

// Request is what a model is asked. Everything in it comes from the log or is
// stored there by hash, so that it can be built again.
type Request struct {
	Model    string    `json:"model"`
	System   []Section `json:"system"`
	Tools    []Spec    `json:"tools"` // canonical names, stable order
	Messages []Message `json:"messages"`

	// Tail is text that changes from step to step. It goes behind the last
	// cache mark, at the end of the last user message.
	Tail string `json:"tail,omitempty"`

	MaxTokens   int      `json:"max_tokens,omitempty"` // 0 = the model's own limit
	Temperature *float64 `json:"temperature,omitempty"`
	Thinking    int      `json:"thinking,omitempty"` // budget in tokens; 0 = off
	NoTools     bool     `json:"no_tools,omitempty"` // tools stay in the prefix but may not be used

	// Names is the dialect: canonical tool name to the name the model sees.
	// Names that are missing are shown as they are.
	Names map[string]string `json:"names,omitempty"`
}

// Section is a part of the system prompt. Cache asks for a cache mark behind it.
type Section struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Cache bool   `json:"cache,omitempty"`
}

// Presented returns the name under which the model knows a tool.
func (r Request) Presented(canonical string) string {
	if n, ok := r.Names[canonical]; ok {
		return n
	}
	return canonical
}

// Canonical returns the tool that the model means by name.
func (r Request) Canonical(name string) string {
	for c, n := range r.Names {
		if n == name {
			return c
		}
	}
	return name
}

// DeltaKind names what a [Delta] adds.
type DeltaKind string

// The kinds of delta.
const (
	DeltaText     DeltaKind = "text"
	DeltaThinking DeltaKind = "thinking"
	DeltaCall     DeltaKind = "call"     // a call begins: CallID, Tool
	DeltaInput    DeltaKind = "input"    // Text is a piece of the call's JSON
	DeltaCallEnd  DeltaKind = "call_end" // the call's input is complete
	DeltaUsage    DeltaKind = "usage"
	DeltaFinal    DeltaKind = "final"
)

// A Delta is a fragment of an answer in progress. Deltas are never stored: the
// answer that follows them says the same in full.
type Delta struct {
	Kind   DeltaKind
	Index  int    // block in the answer; calls may be interleaved
	Text   string // for Text, Thinking, Input
	CallID string // for Call, Input, CallEnd
	Tool   string // for Call; the canonical name
	Usage  *Usage
	Final  *Answer
}

// An Answer is everything that a model said to one request.
type Answer struct {
	Message Message    `json:"message"`
	Stop    StopReason `json:"stop"`
	Usage   Usage      `json:"usage"`

	ID        string `json:"id,omitempty"`         // of the answer, at the provider
	Model     string `json:"model,omitempty"`      // as the provider reports it
	RequestID string `json:"request_id,omitempty"` // for support
	Detail    string `json:"detail,omitempty"`     // the stop sequence, the refusal
}

// StopReason says why an answer ended.
type StopReason string

// The stop reasons. An unknown one of a provider is kept as it is and treated
// as StopEnd.
const (
	StopEnd      StopReason = "end_turn"
	StopCalls    StopReason = "tool_use"
	StopLength   StopReason = "max_tokens"
	StopSequence StopReason = "stop_sequence"
	StopRefusal  StopReason = "refusal"
	StopPause    StopReason = "pause_turn" // ask again, with the answer so far
	StopWindow   StopReason = "model_context_window_exceeded"
)

// Usage counts tokens. Input does not include what was read from or written to
// the provider's cache.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"` // all of it, CacheHour included
	CacheHour  int `json:"cache_hour,omitempty"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		u.Input + v.Input, u.Output + v.Output,
		u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.CacheHour + v.CacheHour,
	}
}

// Context is the size of the conversation that was sent, and answered, in tokens.
func (u Usage) Context() int { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// Money is an amount in billionths of a US dollar, so that prices per million
// tokens stay exact.
type Money int64

// Dollars returns m in US dollars.
func (m Money) Dollars() float64 { return float64(m) / 1e9 }

func (m Money) String() string { return fmt.Sprintf("$%.4f", m.Dollars()) }

// Cost returns what u, the usage of one request, costs at p. It is nil, unknown,
// when a rate that is needed is unknown.
func (p *Price) Cost(u Usage) *Money {
	if p == nil {
		return nil
	}
	if p.Long != nil && u.Input+u.CacheRead+u.CacheWrite > p.Above {
		return p.Long.Cost(u)
	}
	var sum float64
	for _, part := range []struct {
		n    int
		rate *float64
	}{
		{u.Input, p.Input},
		{u.Output, p.Output},
		{u.CacheRead, p.CacheRead},
		{u.CacheWrite - u.CacheHour, p.CacheWrite},
		{u.CacheHour, p.CacheHour},
	} {
		if part.n == 0 {
			continue
		}
		if part.rate == nil {
			return nil
		}
		sum += float64(part.n) * *part.rate * 1000
	}
	m := Money(sum + 0.5)
	return &m
}

// FailureClass says what went wrong with a request, and with it what to do.
type FailureClass string

// The classes of failure. The first three are worth another attempt.
const (
	FailRate     FailureClass = "rate-limit"
	FailServer   FailureClass = "server-error" // 5xx, 529, connection lost, stream cut
	FailTimeout  FailureClass = "timeout"      // nothing came for too long
	FailContext  FailureClass = "context-length"
	FailAuth     FailureClass = "auth"
	FailInvalid  FailureClass = "invalid-request"
	FailQuota    FailureClass = "quota"       // paid for nothing more; waiting will not help
	FailNotFound FailureClass = "not-found"   // no such model
	FailProtocol FailureClass = "protocol"    // the endpoint does not speak the protocol
	FailDown     FailureClass = "unreachable" // no connection could be made
)

// ModelError is a request that failed.
type ModelError struct {
	Class      FailureClass
	Status     int           // HTTP status, 0 when there was none
	Code       string        // the provider's own word for it
	Message    string        // the provider's explanation; never contains the key
	RetryAfter time.Duration // what the provider asked for; 0 = nothing
	RequestID  string
	Err        error // the cause, if there was one
}

func (e *ModelError) Error() string {
	s := string(e.Class)
	if e.Status != 0 {
		s = fmt.Sprintf("%s (HTTP %d)", s, e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	} else if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *ModelError) Unwrap() error { return e.Err }

// Retryable reports whether another attempt may succeed.
func (e *ModelError) Retryable() bool {
	switch e.Class {
	case FailRate, FailServer, FailTimeout, FailDown:
		return true
	}
	return false
}

// ClassOf returns the class of a model's error, or "" for other errors.
func ClassOf(err error) FailureClass {
	if e, ok := errors.AsType[*ModelError](err); ok {
		return e.Class
	}
	return ""
}

// InvalidInput returns a call whose input could not be read: raw is what came,
// why says what is wrong with it.
func InvalidInput(id, tool, raw, why string) Call {
	return Call{ID: id, Tool: tool, Input: json.RawMessage("{}"), Invalid: why, Raw: raw}
}
