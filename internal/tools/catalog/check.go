package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"dure/agent"
	"dure/internal/base/forms"
)

// The bounds of checking.
const (
	maxInput    = 16 << 20 // bytes of an input
	maxProblems = 8        // reported at once
	maxSchemas  = 4096     // kept compiled
	maxDigits   = 64       // characters of a number
)

// Check validates an input against the tool's schema and returns it as the tool
// wants it. In this order:
//
//   - a parameter under a name in Spec.Aliases gets its own name, unless the
//     schema knows the other name as well;
//   - null for a parameter that may be left out, and may not be null, is left out;
//   - a missing parameter that has a default gets it;
//   - where only another type is allowed, "5" becomes 5, "true" becomes true, 5.0
//     becomes 5, and a string that holds a JSON array or object becomes that.
//
// Nothing else is changed, and an input that needed nothing is returned as it
// came. The error names everything that is wrong, as far as it was looked at, so
// that the model can mend its call at once. Tools of MCP servers whose schema
// this program cannot read, or cannot check within bounds, get any object: their
// server checks it.
func (c *Catalog) Check(spec agent.Spec, input json.RawMessage) (json.RawMessage, *agent.ToolError) {
	return c.schemas.check(spec, input, nil)
}

// schemas compiles schemas when they are first needed. Its zero value is empty.
type schemas struct {
	mu   sync.RWMutex
	byIn map[string]*schema // by text
}

// schema is a compiled schema.
type schema struct {
	tree *jsonschema.Schema
	full *forms.Form // nil when tree has only keywords that walk knows
	err  error
}

func (s *schemas) get(text json.RawMessage) *schema {
	s.mu.RLock()
	c := s.byIn[string(text)]
	s.mu.RUnlock()
	if c != nil {
		return c
	}
	c = compile(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byIn == nil || len(s.byIn) >= maxSchemas {
		s.byIn = map[string]*schema{}
	}
	s.byIn[string(text)] = c
	return c
}

func compile(text json.RawMessage) *schema {
	if len(text) == 0 {
		text = json.RawMessage(`{"type":"object"}`)
	}
	c := &schema{tree: new(jsonschema.Schema)}
	tree, err := forms.Read(text)
	if c.err = err; err != nil {
		return c
	}
	c.tree = tree
	var raw any
	if c.err = json.Unmarshal(text, &raw); c.err != nil || simple(raw) {
		return c
	}
	c.full, c.err = forms.New(c.tree)
	return c
}

// known are the keywords that walk checks, or that check nothing.
var known = map[string]bool{
	"type": true, "enum": true, "properties": true, "required": true, "items": true, "additionalProperties": true,
	"minItems": true, "maxItems": true, "minLength": true, "maxLength": true, "minimum": true, "maximum": true,
	"title": true, "description": true, "default": true, "examples": true,
}

// simple reports whether walk alone can check a schema.
func simple(raw any) bool {
	m, ok := raw.(map[string]any)
	if !ok {
		return false
	}
	for key, v := range m {
		if !known[key] {
			return false
		}
		switch key {
		case "items":
			if !simple(v) {
				return false
			}
		case "additionalProperties":
			if _, ok := v.(bool); !ok && !simple(v) {
				return false
			}
		case "properties":
			props, ok := v.(map[string]any)
			if !ok {
				return false
			}
			for _, p := range props {
				if !simple(p) {
					return false
				}
			}
		}
	}
	return true
}

// only returns the names of parameters that one schema has beyond another.
func (s *schemas) only(more, less json.RawMessage) []string {
	m, l := s.get(more), s.get(less)
	var names []string
	for name := range m.tree.Properties {
		if _, ok := l.tree.Properties[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// check is [Catalog.Check] without the parameters in drop.
func (s *schemas) check(spec agent.Spec, input json.RawMessage, drop []string) (json.RawMessage, *agent.ToolError) {
	c := s.get(spec.Input)
	foreign := strings.HasPrefix(spec.Name, mcpPrefix)
	if c.err != nil && !foreign {
		return nil, &agent.ToolError{Code: agent.ErrTool, Message: "the schema of " + spec.Name + " cannot be read: " + c.err.Error()}
	}
	object, why := parse(input)
	if why != "" {
		return nil, &agent.ToolError{Code: agent.ErrInput, Message: why, Suggestion: suggestion(c.tree)}
	}
	if c.err != nil {
		return input, nil
	}
	w := &walk{}
	for _, name := range drop {
		if _, ok := object[name]; ok {
			delete(object, name)
			w.changed = true
		}
	}
	w.rename(object, spec.Aliases, c.tree)
	w.object(c.tree, object, "")
	if len(w.problems) == 0 && c.full != nil {
		w.rest(c.full, object, foreign)
	}
	if len(w.problems) > 0 {
		return nil, &agent.ToolError{Code: agent.ErrInput, Message: w.message(), Suggestion: suggestion(c.tree)}
	}
	if !w.changed {
		return input, nil
	}
	return encode(object), nil
}

// parse reads an input, which has to be an object that has each key once.
func parse(input json.RawMessage) (object map[string]any, why string) {
	if len(input) > maxInput {
		return nil, fmt.Sprintf("the input has %d bytes, more than %d", len(input), maxInput)
	}
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, "the input is no JSON object"
		}
		return nil, "the input is no valid JSON: " + err.Error()
	}
	if object == nil {
		return nil, "the input is no JSON object"
	}
	if len(bytes.TrimSpace(input[d.InputOffset():])) > 0 {
		return nil, "there is something behind the input's JSON object"
	}
	if key, ok := repeated(input, len(object)); ok {
		return nil, fmt.Sprintf("the parameter %q is given twice", key)
	}
	return object, ""
}

// repeated finds a key that a valid object has twice. Readers of the object
// could each see another value.
func repeated(input []byte, distinct int) (string, bool) {
	keys := make([]string, 0, distinct)
	depth, expect := 0, false // expect: the next string is a key
	for i := 0; i < len(input); i++ {
		switch input[i] {
		case '{', '[':
			depth++
			expect = depth == 1
		case '}', ']':
			depth--
		case ',':
			expect = depth == 1
		case '"':
			end := i + 1
			for input[end] != '"' {
				if input[end] == '\\' {
					end++
				}
				end++
			}
			if expect {
				var key string
				if err := json.Unmarshal(input[i:end+1], &key); err == nil {
					keys = append(keys, key)
				}
				expect = false
			}
			i = end
		}
	}
	if len(keys) == distinct {
		return "", false
	}
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			return keys[i], true
		}
	}
	return "", false
}

// rest checks what walk does not know.
func (w *walk) rest(full *forms.Form, object map[string]any, foreign bool) {
	plain, ok := floats(object)
	if !ok {
		w.add("", fmt.Sprintf("has a number that is out of range, or of more than %d characters", maxDigits))
		return
	}
	if err := full.Validate(plain); err != nil && !(foreign && errors.Is(err, forms.ErrCost)) {
		text := err.Error()
		if i := strings.LastIndex(text, "validating "); i >= 0 { // the innermost place and what is wrong there
			text = text[i+len("validating "):]
		}
		w.add("", "does not fit: "+cut(text, 300))
	}
}

// floats copies v with its numbers as the validator wants them.
func floats(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil && len(v) <= maxDigits
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			var ok bool
			if list[i], ok = floats(e); !ok {
				return nil, false
			}
		}
		return list, true
	case map[string]any:
		object := make(map[string]any, len(v))
		for k, e := range v {
			var ok bool
			if object[k], ok = floats(e); !ok {
				return nil, false
			}
		}
		return object, true
	}
	return v, true
}

// rename gives parameters their own names.
func (w *walk) rename(object map[string]any, names map[string]string, s *jsonschema.Schema) {
	for _, other := range slices.Sorted(maps.Keys(names)) {
		own := names[other]
		v, given := object[other]
		if _, real := s.Properties[other]; real || !given {
			continue
		}
		if have, both := object[own]; both && !equal(have, v) {
			w.add(other, fmt.Sprintf("is another name of %q, and both are given", own))
		}
		delete(object, other)
		object[own] = v
		w.changed = true
	}
}

func equal(a, b any) bool { return bytes.Equal(encode(a), encode(b)) }

func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("catalog: " + err.Error()) // what was decoded can be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
