package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/base/forms"
	"dure/internal/tools/kit"
)

// MaxForm is how long the schema of an answer may be, in bytes: it is sent with every
// request.
const MaxForm = forms.MaxText

const formText = "Give your final answer with this tool when the work is done: its input is the answer, in the form that the user asked for. " +
	"Call it once, at the end, and say nothing behind it: text is not read."

// Form returns answer__structured, by which a model gives an answer that a JSON Schema of
// an object describes. The error says what is wrong with the schema.
func Form(schema json.RawMessage) (agent.Tool, error) {
	fits, input, err := readForm(schema)
	if err != nil {
		return nil, &agent.Problem{
			Code: agent.ProblemUsage, Message: "the form of the answer is not a valid JSON Schema: " + err.Error(), Err: err,
			Fix: "give a JSON Schema of an object", Args: map[string]string{"flag": "--json-schema", "error": err.Error()},
		}
	}
	return kit.Tool{
		About: agent.Spec{
			Name: agent.FormTool, Description: formText, Input: input,
			Class: agent.Idempotent, Group: "planning", Risk: agent.RiskLow,
		},
		Touches: func(agent.ToolContext, agent.Call) (agent.Effects, error) { return agent.Effects{}, nil },
		Does: func(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			var v any
			if err := json.Unmarshal(c.Input, &v); err != nil {
				return agent.Result{}, kit.Refuse(agent.ErrInput, "the answer is no JSON: "+err.Error(), "")
			}
			if err := fits.Validate(v); err != nil {
				return agent.Result{}, kit.Refuse(agent.ErrInput, "the answer does not fit its schema: "+kit.Cut(err.Error(), 2000), "Call the tool again with an input that does.")
			}
			return agent.OK("The answer was taken in."), nil
		},
	}, nil
}

// readForm reads the schema of an answer, and returns it as models are shown it.
func readForm(schema json.RawMessage) (*forms.Form, json.RawMessage, error) {
	if len(schema) > MaxForm {
		return nil, nil, fmt.Errorf("it has %d bytes, and may have %d", len(schema), MaxForm)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(schema, &fields); err != nil {
		return nil, nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	s, err := forms.Read(schema)
	if err != nil {
		return nil, nil, err
	}
	if s.Type == "" && len(s.Types) == 0 && len(s.Properties) > 0 {
		s.Type = "object"
		fields["type"] = json.RawMessage(`"object"`)
	}
	if s.Type != "object" {
		return nil, nil, errors.New(`an answer is an object: it needs "type": "object" at the top`)
	}
	if err := checkTypes(schema, "", maxFormDepth); err != nil {
		return nil, nil, err
	}
	fits, err := forms.New(s)
	if err != nil {
		return nil, nil, err
	}
	shown, err := json.Marshal(fields)
	if err != nil {
		return nil, nil, err
	}
	var small bytes.Buffer
	if err := json.Compact(&small, shown); err != nil {
		return nil, nil, err
	}
	return fits, small.Bytes(), nil
}

// maxFormDepth is how deep schemas may lie in each other.
const maxFormDepth = 64

// jsonTypes are the types that a schema can name.
var jsonTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// The keywords under which a schema has others: one, a list, or by name.
var (
	formOne   = []string{"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	formLists = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	formNamed = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

// checkTypes finds types that JSON does not have: such a schema would fit nothing. What is
// not as a schema has it is left to who reads that.
func checkTypes(schema json.RawMessage, at string, depth int) error {
	if depth == 0 {
		return fmt.Errorf("schemas lie more than %d deep in each other", maxFormDepth)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(schema, &fields) != nil {
		return nil
	}
	types := make([]string, 1)
	if json.Unmarshal(fields["type"], &types[0]) == nil || json.Unmarshal(fields["type"], &types) == nil {
		for _, name := range types {
			if !slices.Contains(jsonTypes, name) {
				return fmt.Errorf("%s/type: there is no type %q: %s", at, kit.Cut(name, 40), strings.Join(jsonTypes, ", "))
			}
		}
	}
	for _, key := range formOne {
		if err := checkTypes(fields[key], at+"/"+key, depth-1); err != nil {
			return err
		}
	}
	for _, key := range formLists {
		var list []json.RawMessage
		_ = json.Unmarshal(fields[key], &list) // else there is nothing to look at
		for i, s := range list {
			if err := checkTypes(s, fmt.Sprintf("%s/%s/%d", at, key, i), depth-1); err != nil {
				return err
			}
		}
	}
	for _, key := range formNamed {
		var named map[string]json.RawMessage
		_ = json.Unmarshal(fields[key], &named) // else there is nothing to look at
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if err := checkTypes(named[name], at+"/"+key+"/"+kit.Cut(name, 40), depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}
