// Package tools holds the built-in tools: files, shell, todo list, questions.
//
// A tool says what it would touch (Plan) and does its work (Run). It never asks
// for permission, never cuts its output to save the context beyond its own
// paging, and never redacts: the gate before it and the guard behind it do.
// The description that the model reads stands in a .md file beside each tool.
//
// Tools start no goroutines that outlive a call.
package tools

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

// tool is an [agent.Tool] made of two functions.
type tool struct {
	spec agent.Spec
	plan func(agent.ToolContext, agent.Call) (agent.Effects, error)
	run  func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error)
}

func (t tool) Spec() agent.Spec { return t.spec }

func (t tool) Plan(_ context.Context, tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
	return t.plan(tc, c)
}

// Run turns a [*agent.ToolError] into the result that the model reads.
func (t tool) Run(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	r, err := t.run(ctx, tc, c)
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		return agent.Failure(te.Code, te.Message, te.Suggestion), nil
	}
	return r, err
}

// decode reads the input of a call into a struct with JSON tags. The input has
// been checked against the schema before, so what fails here is a misuse that
// the model can still mend.
func decode[T any](c agent.Call) (T, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(c.Input))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, refuse(agent.ErrInput, "the input does not fit the tool: "+err.Error(), "Call it again with the parameters of its schema.")
	}
	return v, nil
}

// whole is an integer as models write it: 10 and 10.0 are the same.
type whole int

// UnmarshalJSON reads a number without a fraction, of at most a billion.
func (w *whole) UnmarshalJSON(data []byte) error {
	var f float64
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if f != math.Trunc(f) || math.Abs(f) > 1e9 {
		return fmt.Errorf("%s is not an integer of at most a billion", data)
	}
	*w = whole(f)
	return nil
}

// refuse returns the error for what the model can mend.
func refuse(code agent.ErrorCode, message, suggestion string) error {
	return &agent.ToolError{Code: code, Message: message, Suggestion: suggestion}
}

// structured encodes the answer for hooks and hosts.
func structured(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("tools: output that cannot be encoded: " + err.Error()) // a programmer's mistake
	}
	return bytes.TrimSpace(b.Bytes())
}

// describe returns an embedded description without the space around it.
func describe(md string) string { return strings.TrimSpace(md) }
