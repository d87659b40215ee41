package wire

import (
	"bytes"
	"encoding/json"
	"slices"
)

// maxSchemaDepth is how deep a schema is looked into; what is deeper stays as
// it is.
const maxSchemaDepth = 64

// ToolSchema returns the input schema of a tool in the form that OpenAI's APIs
// take, in which the outermost schema has the type object and properties and
// none of anyOf, oneOf, allOf, not and enum, and every array has items: a schema,
// not a list of them. What had to be taken out of the outermost schema is rules,
// a schema of its own, for the description to tell. A schema that fits is only
// brought into its canonical form. The order of members is kept. It reports false
// for what is no object.
func ToolSchema(raw json.RawMessage) (schema, rules []byte, ok bool) {
	whole, ok := Canonical(nil, raw)
	if !ok || !Object(whole) {
		return nil, nil, false
	}
	members, _ := ParseMembers(whole)
	var kept, taken Members
	properties := false
	for _, m := range members {
		switch m.Name {
		case "type": // object, whatever it said
		case "anyOf", "oneOf", "allOf", "not", "enum":
			taken = append(taken, m)
		case "properties":
			if Object(m.Value) {
				kept, properties = append(kept, m), true
			}
		default:
			kept = append(kept, m)
		}
	}
	if !properties {
		kept = append(Members{{"properties", []byte(`{}`)}}, kept...)
	}
	kept = append(Members{{"type", []byte(`"object"`)}}, kept...)
	for i := range kept {
		kept[i].Value = keyword(kept[i], 1)
	}
	if taken != nil {
		rules = taken.Bytes()
	}
	return kept.Bytes(), rules, true
}

// keyword returns the value of a keyword, in which all schemas are mended.
func keyword(m Member, depth int) []byte {
	switch m.Name {
	case "enum", "const", "default", "examples": // no schemas
		return m.Value
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		if !Object(m.Value) {
			return m.Value
		}
		named, _ := ParseMembers(m.Value)
		for i := range named {
			named[i].Value = mended(named[i].Value, depth)
		}
		return named.Bytes()
	}
	return mended(m.Value, depth)
}

// tuples renames the members of a schema that describe a list one by one, and
// what follows in it, from the names in drafts of JSON Schema before 2020-12.
func tuples(members Members) {
	old := slices.ContainsFunc(members, func(m Member) bool { return m.Name == "items" && m.Value[0] == '[' })
	for i := range members {
		switch name := &members[i].Name; {
		case old && *name == "items":
			*name = "prefixItems"
		case old && *name == "additionalItems":
			*name = "items"
		}
	}
}

// mended returns a schema, or a list of them, in which every array has items.
func mended(raw []byte, depth int) []byte {
	if depth > maxSchemaDepth || len(raw) == 0 {
		return raw
	}
	if raw[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return raw
		}
		b := []byte{'['}
		for i, one := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, mended(one, depth+1)...)
		}
		return append(b, ']')
	}
	if raw[0] != '{' {
		return raw
	}
	members, _ := ParseMembers(raw)
	tuples(members)
	array, items := false, false
	for i, m := range members {
		array = array || m.Name == "type" && bytes.Contains(m.Value, []byte(`"array"`)) && m.Value[0] != '{'
		items = items || m.Name == "items" || m.Name == "prefixItems"
		members[i].Value = keyword(m, depth+1)
	}
	if array && !items {
		members = append(members, Member{"items", []byte(`{}`)})
	}
	return members.Bytes()
}
