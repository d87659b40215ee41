package script

import (
	"encoding/json"
	"slices"
	"strings"
)

// A schemaRule is the part of JSON Schema that an API takes for parameters.
type schemaRule struct {
	keys  []string // nil: any
	types []string
	lists bool // a type may be a list
	bare  bool // an array may say nothing of its items

	// strict is Gemini's own subset: required members exist, objects have
	// members, enumerations are strings that say something.
	strict bool
}

var (
	plainTypes = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

	// openSchema is what OpenAI takes for functions that are not strict.
	openSchema = schemaRule{types: plainTypes, lists: true}

	// geminiSchema is Gemini's Schema, for the member parameters.
	geminiSchema = schemaRule{
		keys: []string{
			"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
			"minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering",
			"default", "items", "minimum", "maximum",
		},
		types:  append([]string{"OBJECT", "ARRAY", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "NULL"}, plainTypes...),
		strict: true,
	}

	// geminiJSON is what Gemini documents of JSON Schema, for parametersJsonSchema.
	geminiJSON = schemaRule{
		keys: []string{
			"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
			"minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required",
			"propertyOrdering",
		},
		types: plainTypes, lists: true, bare: true,
	}
)

// check complains about a schema of parameters that the API does not take.
func (r schemaRule) check(n node) {
	if !n.object() {
		return
	}
	if kind, _ := n.get("type").v.(string); !strings.EqualFold(kind, "object") {
		n.refuse("schema must be a JSON Schema of 'type: \"object\"', got 'type: %q'", kind)
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if n.get(key).has {
			n.refuse("schema must not have '%s' at the top level", key)
		}
	}
	r.walk(n, 0)
}

// maxDepth is how deep schemas may be nested.
const maxDepth = 50

func (r schemaRule) walk(n node, depth int) {
	if _, ok := n.v.(bool); ok && !r.strict {
		return
	}
	if !n.object() {
		return
	}
	if depth > maxDepth {
		n.refuse("schema is nested too deeply")
		return
	}
	if r.keys != nil && !n.only(r.keys...) {
		return
	}
	if n.get("$ref").has && slices.ContainsFunc(n.keys(), func(key string) bool { return key[:min(1, len(key))] != "$" }) && r.keys != nil {
		n.refuse("nothing may stand beside $ref but what begins with $")
	}
	kinds := r.kinds(n)
	n.get("description").str()
	if !r.bare && slices.Contains(kinds, "array") && !n.get("items").has && !n.get("prefixItems").has {
		n.get("items").refuse("array schema missing items")
	}
	if l := n.get("enum"); l.has || l.null {
		r.enum(l, kinds)
	}
	r.members(n, kinds, depth)
	if items := n.get("items"); items.has {
		r.walk(items, depth+1)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		if l := n.get(key); l.has || l.null {
			for _, s := range l.filled() {
				r.walk(s, depth+1)
			}
		}
	}
}

// kinds returns the types of a schema, in lower case.
func (r schemaRule) kinds(n node) []string {
	t := n.get("type")
	var kinds []string
	switch {
	case t.isString():
		kinds = []string{t.oneOf(r.types...)}
	case t.has && r.lists:
		for _, one := range t.filled() {
			kinds = append(kinds, one.oneOf(r.types...))
		}
	case t.has || t.null:
		t.refuse("expected a string, but got %s", t.kind())
	case r.strict && !n.get("anyOf").has:
		t.refuse("the schema does not say its type")
	}
	for i, kind := range kinds {
		kinds[i] = strings.ToLower(kind)
	}
	return kinds
}

// members checks the properties of an object.
func (r schemaRule) members(n node, kinds []string, depth int) {
	properties := n.get("properties")
	if properties.has && properties.object() {
		for _, key := range properties.keys() {
			r.walk(properties.get(key), depth+1)
		}
	}
	if properties.null {
		properties.object()
	}
	if r.strict && depth > 0 && slices.Contains(kinds, "object") && len(properties.keys()) == 0 {
		properties.refuse("should be non-empty for OBJECT type")
	}
	for _, name := range n.get("required").list() {
		if s := name.str(); r.strict && !slices.Contains(properties.keys(), s) {
			name.refuse("property is not defined: %s", s)
		}
	}
	if more := n.get("additionalProperties"); more.has {
		r.walk(more, depth+1)
	}
	for _, key := range []string{"$defs", "definitions"} {
		defs := n.get(key)
		for _, name := range defs.keys() {
			r.walk(defs.get(name), depth+1)
		}
	}
}

func (r schemaRule) enum(list node, kinds []string) {
	for _, v := range list.filled() {
		if !r.strict {
			continue
		}
		if !slices.Contains(kinds, "string") {
			list.refuse("only allowed for STRING type")
		}
		v.text()
	}
}

// sameJSON returns a form of a JSON value in which equal values are equal.
func sameJSON(v any) string {
	if m, ok := v.(map[string]any); ok && len(m) == 0 || v == nil {
		return "{}"
	}
	data, err := json.Marshal(v) // members in order
	if err != nil {
		return ""
	}
	return string(data)
}
