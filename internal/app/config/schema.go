package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Schema returns a JSON Schema (draft 2020-12) of a settings file, in our spelling of its
// keys. Others are not forbidden: they are warned about when the file is read.
func Schema() []byte {
	root := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Settings of dure",
		"type":    "object",
	}
	for _, k := range Keys() {
		at := root
		for word := range strings.SplitSeq(k.Path, ".") {
			if at["type"] == nil {
				at["type"] = "object"
			}
			if word == "*" {
				at = child(at, "additionalProperties")
				continue
			}
			at = child(child(at, "properties"), word)
		}
		for name, v := range k.schema() {
			at[name] = v
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(root); err != nil {
		panic(err) // maps of texts and numbers
	}
	return b.Bytes()
}

func child(of map[string]any, name string) map[string]any {
	if of[name] == nil {
		of[name] = map[string]any{}
	}
	return of[name].(map[string]any)
}

// schema is what a value has to be.
func (k Key) schema() map[string]any {
	s := map[string]any{"description": strings.ToUpper(k.Means[0][:1]) + k.Means[0][1:] + ". Who may set it: " + string(k.Who) + "."}
	text := map[string]any{"type": "string"}
	switch k.Type {
	case Text:
		s["type"] = "string"
	case Switch:
		s["type"] = "boolean"
	case Count:
		s["type"] = "integer"
	case Number:
		s["type"] = "number"
	case Texts:
		s["type"], s["items"] = "array", text
	case RuleSet:
		s["type"], s["items"] = "array", map[string]any{"type": []string{"string", "object"}}
	case List:
		s["type"], s["items"] = "array", map[string]any{"type": "object"}
	case Object:
		s["type"] = "object"
	case Strings:
		s["type"], s["additionalProperties"] = "object", text
	case Switches:
		s["type"], s["additionalProperties"] = "object", map[string]any{"type": "boolean"}
	}
	if k.Among != nil {
		among := slices.Clone(k.Among)
		if k.Path == "permissions.defaultMode" {
			among = append(among, "manual")
		}
		s["enum"] = among
	}
	if k.Most != 0 {
		s["minimum"], s["maximum"] = k.Least, k.Most
	}
	if k.Default != "" {
		s["default"] = json.RawMessage(k.Default)
	}
	return s
}
