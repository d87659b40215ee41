// Package kit is what the built-in tools are made of: a tool of three parts, its
// input decoded, its refusals, its structured answer; how they read and write
// paths and quote what they were given; what the commands that they run have in
// common; and what a call was decided about.
//
// It runs nothing and starts no goroutines.
package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"dure/agent"
)

// Tool is an [agent.Tool] made of its description and two functions.
type Tool struct {
	About agent.Spec

	// Touches is Plan: what a call would touch.
	Touches func(agent.ToolContext, agent.Call) (agent.Effects, error)

	// Does is Run. An error that is an [*agent.ToolError] becomes the result that
	// the model reads.
	Does func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error)
}

// Spec describes the tool.
func (t Tool) Spec() agent.Spec { return t.About }

// Plan says what a call would touch.
func (t Tool) Plan(_ context.Context, tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
	return t.Touches(tc, c)
}

// Run does the work, with [Answer].
func (t Tool) Run(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	return Answer(t.Does(ctx, tc, c))
}

// Answer turns a [*agent.ToolError] into the result that the model reads.
func Answer(r agent.Result, err error) (agent.Result, error) {
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		return agent.Failure(te.Code, te.Message, te.Suggestion), nil
	}
	return r, err
}

// Decode reads the input of a call into a struct with JSON tags. The input has
// been checked against the schema before, so what fails here is a misuse that
// the model can still mend.
func Decode[T any](c agent.Call) (T, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(c.Input))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, Refuse(agent.ErrInput, "the input does not fit the tool: "+err.Error(), "Call it again with the parameters of its schema.")
	}
	return v, nil
}

// Whole is an integer as models write it: 10 and 10.0 are the same.
type Whole int

// UnmarshalJSON reads a number without a fraction, of at most a billion.
func (w *Whole) UnmarshalJSON(data []byte) error {
	var f float64
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if f != math.Trunc(f) || math.Abs(f) > 1e9 {
		return fmt.Errorf("%s is not an integer of at most a billion", data)
	}
	*w = Whole(f)
	return nil
}

// Refuse returns the error for what the model can mend.
func Refuse(code agent.ErrorCode, message, suggestion string) error {
	return &agent.ToolError{Code: code, Message: message, Suggestion: suggestion}
}

// Structured encodes the answer for hooks and hosts.
func Structured(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("tools: output that cannot be encoded: " + err.Error()) // a programmer's mistake
	}
	return bytes.TrimSpace(b.Bytes())
}

// Describe returns an embedded description without the space around it.
func Describe(md string) string { return strings.TrimSpace(md) }
