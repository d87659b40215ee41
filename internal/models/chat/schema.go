package chat

import (
	"encoding/json"
	"slices"
)

const maxStrictDepth = 10 // levels of objects that strict schemas may have

// strictKeywords are those that strict mode understands.
var strictKeywords = []string{
	"type", "properties", "required", "additionalProperties", "items", "enum", "const",
	"description", "title", "anyOf", "minimum", "maximum", "minItems", "maxItems",
}

// strict reports whether a schema is fit for strict mode as it stands: every
// object is closed and all its properties are required. A schema that is not
// would have to be changed in its meaning.
func strict(schema json.RawMessage, depth int) bool {
	var keys map[string]json.RawMessage
	if depth > maxStrictDepth || json.Unmarshal(schema, &keys) != nil {
		return false
	}
	for k := range keys {
		if !slices.Contains(strictKeywords, k) {
			return false
		}
	}
	var s struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Items      json.RawMessage            `json:"items"`
		AnyOf      []json.RawMessage          `json:"anyOf"`
	}
	if json.Unmarshal(schema, &s) != nil || s.Type == nil && s.AnyOf == nil {
		return false
	}
	if s.Type == "object" {
		if string(keys["additionalProperties"]) != "false" || len(s.Required) != len(s.Properties) {
			return false
		}
		for name := range s.Properties {
			if !slices.Contains(s.Required, name) {
				return false
			}
		}
	}
	if list, ok := s.Type.([]any); ok && (slices.Contains(list, any("object")) || slices.Contains(list, any("array"))) {
		return false
	}
	if s.Type == "array" && s.Items == nil {
		return false
	}
	parts := s.AnyOf
	for _, p := range s.Properties {
		parts = append(parts, p)
	}
	if s.Items != nil {
		parts = append(parts, s.Items)
	}
	return !slices.ContainsFunc(parts, func(p json.RawMessage) bool { return !strict(p, depth+1) })
}
