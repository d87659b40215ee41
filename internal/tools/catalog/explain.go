package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"dure/internal/base/near"
)

// suggestion says what an input looks like: every parameter, and an example.
func suggestion(s *jsonschema.Schema) string {
	if s == nil || len(s.Properties) == 0 {
		return "Send a JSON object."
	}
	var params []string
	for _, name := range order(s) {
		p := s.Properties[name]
		text := name + " (" + strings.Join(typeNames(p), " or ")
		if slices.Contains(s.Required, name) {
			text += ", required"
		}
		params = append(params, text+")")
	}
	return "Parameters: " + cut(strings.Join(params, ", "), 500) + ". Example: " + cut(string(encode(example(s, 0))), 400)
}

// order lists required parameters first, in their order, then the others.
func order(s *jsonschema.Schema) []string {
	names := slices.DeleteFunc(slices.Clone(s.Required), func(n string) bool { return s.Properties[n] == nil })
	for _, n := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func typeNames(s *jsonschema.Schema) []string {
	if s == nil || len(typesOf(s)) == 0 {
		return []string{"any"}
	}
	return typesOf(s)
}

// example makes an input with the required parameters.
func example(s *jsonschema.Schema, depth int) any {
	if s == nil || depth > 4 {
		return nil
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	switch typeNames(s)[0] {
	case "string":
		return "..."
	case "integer", "number":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 1
	case "boolean":
		return true
	case "array":
		n := 1
		if s.MinItems != nil {
			n = min(max(n, *s.MinItems), 2)
		}
		items := make([]any, n)
		for i := range items {
			items[i] = example(s.Items, depth+1)
		}
		return items
	case "object":
		object := map[string]any{}
		for _, name := range s.Required {
			object[name] = example(s.Properties[name], depth+1)
		}
		return object
	}
	return nil
}

// wanted describes what a missing parameter should be.
func wanted(s *jsonschema.Schema) string {
	if s == nil {
		return ""
	}
	text := ""
	if len(typesOf(s)) > 0 {
		text = " (" + strings.Join(typesOf(s), " or ") + ")"
	}
	if s.Description != "" {
		text += ": " + cut(s.Description, 80)
	}
	return text
}

func article(types []string) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = "a " + t
		if strings.ContainsAny(t[:min(1, len(t))], "aeiou") {
			names[i] = "an " + t
		}
	}
	return strings.Join(names, " or ")
}

// show quotes a value so that it can be recognised.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case map[string]any:
		return "an object"
	case json.Number:
		return cut(v.String(), 40)
	}
	return cut(string(encode(v)), 60)
}

func list(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(encode(v))
	}
	return cut(strings.Join(texts, ", "), 200)
}

// nearest proposes the parameter that an unknown name may have meant.
func nearest(name string, s *jsonschema.Schema) string {
	plain := fold(name)
	best, at := "", min(3, 1+(len(plain)+1)/3) // farther than two changes is another word
	for _, n := range order(s) {
		if d := near.Distance(plain, fold(n), at); d < at {
			best, at = n, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

func fold(s string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(cut(s, 64)))
}

func join(path, name string) string {
	name = cut(name, 64)
	if path == "" {
		return name
	}
	return path + "." + name
}

// cut shortens a text for people to n bytes, on a rune, and says so.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
