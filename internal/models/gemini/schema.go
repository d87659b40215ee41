package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dure/internal/models/wire"
)

// Limits of the schemas that are sent, which tools of others bring along: what
// is deeper or more is sent as "anything".
const (
	maxSchemaDepth = 32
	maxSchemaNodes = 10_000
)

const defsPrefix = "#/$defs/"

// parameters returns the schema of a tool's input in the part of JSON Schema
// that the API documents, nil when it has no parameters. What it does not
// document is said in words, in the description that it applies to; recursion
// is cut where it closes.
func parameters(schema json.RawMessage) ([]byte, error) {
	root, ok := wire.ParseMembers(schema)
	if !ok {
		return nil, errors.New("no JSON object")
	}
	c := &converter{defs: map[string]json.RawMessage{}, names: map[string]string{}, done: map[string][]byte{}}
	for _, name := range []string{"definitions", "$defs"} {
		defs, _ := wire.ParseMembers(root.Get(name))
		for _, d := range defs {
			c.defs[d.Name] = d.Value
		}
	}
	if ref := root.Get("$ref"); ref != nil && root.Get("allOf") == nil {
		root = slices.DeleteFunc(root, func(m wire.Member) bool { return m.Name == "$ref" })
		root.Set("allOf", reference(ref))
	}
	if nothing(root) {
		return nil, nil
	}
	out := c.convert(root, 0)
	if !slices.Equal(root.Get("type"), []byte(`"object"`)) {
		out = drop(out, "type")
		out = append([]byte(`{"type":"object"`), separated(out)...)
	}
	return c.withDefs(out), nil
}

// inlined returns what o means when it is a reference.
func (c *converter) inlined(o wire.Members) wire.Members {
	for range maxSchemaDepth {
		name, ok := pointed(text(o.Get("$ref")))
		next, found := wire.ParseMembers(c.defs[name])
		if !ok || !found {
			break
		}
		o = next
	}
	return o
}

// nothing reports whether a schema takes no parameters.
func nothing(root wire.Members) bool {
	for _, m := range root {
		switch m.Name {
		case "type", "$schema", "title", "description", "required", "$defs", "definitions":
		case "properties":
			if p, ok := wire.ParseMembers(m.Value); !ok || len(p) > 0 {
				return false
			}
		case "additionalProperties":
			if string(m.Value) != "false" {
				return false
			}
		default:
			return false
		}
	}
	return root.Get("properties") != nil
}

// converter converts one schema.
type converter struct {
	defs  map[string]json.RawMessage // what can be referred to
	names map[string]string          // what is, and as what
	done  map[string][]byte          // converted; nil while it is being done
	order []string
	nodes int
}

// withDefs adds what was referred to.
func (c *converter) withDefs(out []byte) []byte {
	if len(c.order) == 0 {
		return out
	}
	out = append(out[:len(out)-1], `,"$defs":{`...)
	for i, name := range c.order {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(wire.Quote(out, c.names[name]), ':'), c.done[name]...)
	}
	return append(out, `}}`...)
}

// schema converts a schema: an object, true or false.
func (c *converter) schema(raw json.RawMessage, depth int) []byte {
	o, ok := wire.ParseMembers(raw)
	switch c.nodes++; {
	case !ok && string(bytes.TrimSpace(raw)) == "false":
		return []byte(`{"description":"No value is valid."}`)
	case !ok, depth > maxSchemaDepth, c.nodes > maxSchemaNodes:
		return []byte(`{}`)
	}
	return c.convert(o, depth)
}

// conversion is one schema on its way.
type conversion struct {
	out         wire.Members
	description string
	notes       wire.Members // what has to be said in words
}

func (c *converter) convert(o wire.Members, depth int) []byte {
	v := &conversion{}
	o = c.merged(o, v)
	for _, m := range o {
		c.keyword(v, o, m, depth)
	}
	if bytes.Contains(v.out.Get("type"), []byte(`"array"`)) && v.out.Get("items") == nil && v.out.Get("prefixItems") == nil {
		v.out.Set("items", []byte(`{}`)) // without, some models refuse the tool
	}
	if ref := v.out.Get("$ref"); ref != nil && (len(v.out) > 1 || v.description != "" || len(v.notes) > 0) {
		v.out = slices.DeleteFunc(v.out, func(m wire.Member) bool { return m.Name == "$ref" })
		if v.out.Get("anyOf") == nil {
			v.out.Set("anyOf", reference(ref)) // beside a reference nothing else may stand
		} else {
			v.notes.Set("$ref", ref)
		}
	}
	return v.bytes()
}

// bytes writes the schema, the description last.
func (v *conversion) bytes() []byte {
	said := v.description
	if len(v.notes) > 0 {
		if said != "" {
			said += "\n"
		}
		said += "As JSON Schema: " + string(v.notes.Bytes())
	}
	if said != "" {
		v.out.Set("description", wire.Quote(nil, said))
	}
	return v.out.Bytes()
}

// keyword converts one member of the schema o.
func (c *converter) keyword(v *conversion, o wire.Members, m wire.Member, depth int) {
	if depth == 0 && slices.Contains([]string{"anyOf", "oneOf", "enum", "const", "$ref"}, m.Name) {
		outermost(v, o, m)
		return
	}
	switch m.Name {
	case "description":
		v.description = text(m.Value)
	case "$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "allOf", "nullable", "propertyOrdering":
	case "title":
		v.out.Set(m.Name, wire.Quote(nil, text(m.Value)))
	case "minItems", "maxItems", "minimum", "maximum":
		if number(m.Value) {
			v.out.Set(m.Name, m.Value)
		}
	case "type":
		typed(v, o, m)
	case "exclusiveMinimum", "exclusiveMaximum":
		exclusive(v, o, m)
	case "format":
		if slices.Contains([]string{"date-time", "date", "time", "int32", "int64", "float", "double"}, text(m.Value)) {
			v.out.Set(m.Name, m.Value)
		} else {
			v.notes.Set(m.Name, m.Value)
		}
	case "enum", "const":
		choice(v, m)
	case "required":
		required(v, o, m)
	case "$ref":
		c.reference(v, m, depth)
	case "properties":
		v.out.Set(m.Name, c.properties(m.Value, depth))
	case "items", "additionalProperties", "prefixItems", "anyOf", "oneOf":
		c.parts(v, m, depth)
	default:
		if !strings.HasPrefix(m.Name, "x-") {
			v.notes.Set(m.Name, m.Value)
		}
	}
}

// outermost says in words what the parameters as a whole may be: their schema
// is that of an object with properties. What it refers to is said with it.
func outermost(v *conversion, o wire.Members, m wire.Member) {
	v.notes.Set(m.Name, m.Value)
	if m.Name != "$ref" && !bytes.Contains(m.Value, []byte(`"$ref"`)) {
		return
	}
	for _, name := range []string{"$defs", "definitions"} {
		if defs := o.Get(name); defs != nil {
			v.notes.Set(name, defs)
		}
	}
}

// typed converts a type, or several, with the null that OpenAPI says elsewhere.
func typed(v *conversion, o wire.Members, m wire.Member) {
	list := parseList(m.Value)
	if list == nil {
		list = []json.RawMessage{m.Value}
	}
	if string(o.Get("nullable")) == "true" {
		list = append(list, json.RawMessage(`"null"`))
	}
	var types []byte
	for _, raw := range list {
		switch text(raw) {
		case "string", "number", "integer", "boolean", "array", "object", "null":
			types = append(append(types, ','), raw...)
		default:
			v.notes.Set(m.Name, m.Value)
			return
		}
	}
	switch {
	case len(list) == 1:
		v.out.Set(m.Name, list[0])
	case len(list) > 1:
		types[0] = '['
		v.out.Set(m.Name, append(types, ']'))
	}
}

// exclusive makes an inclusive limit of an exclusive one: the next integer, or
// the same number and a remark.
func exclusive(v *conversion, o wire.Members, m wire.Member) {
	inclusive := "minimum"
	step := int64(1)
	if m.Name == "exclusiveMaximum" {
		inclusive, step = "maximum", -1
	}
	n, err := strconv.ParseInt(string(m.Value), 10, 53)
	switch {
	case string(m.Value) == "false":
	case err == nil && text(o.Get("type")) == "integer" && o.Get(inclusive) == nil:
		v.out.Set(inclusive, strconv.AppendInt(nil, n+step, 10))
	default:
		v.notes.Set(m.Name, m.Value)
		if number(m.Value) && o.Get(inclusive) == nil {
			v.out.Set(inclusive, m.Value)
		}
	}
}

// choice converts the values that there are to choose from, of which the API
// takes texts and numbers.
func choice(v *conversion, m wire.Member) {
	values := parseList(m.Value)
	if m.Name == "const" {
		values = []json.RawMessage{m.Value}
	}
	texts, numbers := 0, 0
	for _, value := range values {
		switch {
		case text(value) != "":
			texts++
		case number(value):
			numbers++
		}
	}
	if n := len(values); n == 0 || texts != n && numbers != n || v.out.Get("enum") != nil {
		v.notes.Set(m.Name, m.Value)
		return
	}
	list := []byte{'['}
	for i, value := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, value...)
	}
	v.out.Set("enum", append(list, ']'))
}

// required keeps the names of properties that are described.
func required(v *conversion, o wire.Members, m wire.Member) {
	described, _ := wire.ParseMembers(o.Get("properties"))
	var known, other []byte
	for _, raw := range parseList(m.Value) {
		list := &other
		if described.Get(text(raw)) != nil {
			list = &known
		}
		*list = append(append(*list, ','), raw...)
	}
	if known != nil {
		known[0] = '['
		v.out.Set(m.Name, append(known, ']'))
	}
	if other != nil {
		other[0] = '['
		v.notes.Set(m.Name, append(other, ']'))
	}
}

func (c *converter) properties(raw json.RawMessage, depth int) []byte {
	list, _ := wire.ParseMembers(raw)
	for i := range list {
		list[i].Value = c.schema(list[i].Value, depth+1)
	}
	return list.Bytes()
}

// parts converts what holds one schema or several.
func (c *converter) parts(v *conversion, m wire.Member, depth int) {
	list, said := parseList(m.Value), m.Name
	switch {
	case m.Name == "additionalProperties" && !wire.Object(m.Value):
		if b := string(m.Value); b == "true" || b == "false" {
			v.out.Set(m.Name, m.Value)
		}
		return
	case list == nil && m.Name == "items" && string(m.Value) == "false":
		v.notes.Set(m.Name, m.Value)
		return
	case list == nil && (m.Name == "items" || m.Name == "additionalProperties"):
		v.out.Set(m.Name, c.schema(m.Value, depth+1))
		return
	case m.Name == "items":
		m.Name = "prefixItems"
	case m.Name == "oneOf":
		m.Name = "anyOf" // which is how the API reads it
	}
	if len(list) == 0 || v.out.Get(m.Name) != nil {
		v.notes.Set(said, m.Value)
		return
	}
	var all []byte
	for _, raw := range list {
		all = append(append(all, ','), c.schema(raw, depth+1)...)
	}
	all[0] = '['
	v.out.Set(m.Name, append(all, ']'))
}

// reference converts what is referred to, once. A reference to what is being
// converted would be recursion without an end.
func (c *converter) reference(v *conversion, m wire.Member, depth int) {
	ref := text(m.Value)
	name, ok := pointed(ref)
	raw, found := c.defs[name]
	if !ok || !found {
		v.notes.Set("$ref", m.Value)
		return
	}
	converted, seen := c.done[name]
	switch {
	case !seen:
		c.names[name] = c.free(name)
		c.done[name] = nil
		c.done[name] = c.schema(raw, depth+1)
		c.order = append(c.order, name)
	case converted == nil:
		v.notes.Set("$ref", wire.Quote(nil, ref))
		return
	}
	v.out.Set("$ref", wire.Quote(nil, defsPrefix+c.names[name]))
}

// free returns a name for a definition that needs no escapes and is not taken.
func (c *converter) free(name string) string {
	plain := wire.Or(wire.Plain(name), "any")
	free := plain
	for n := 2; ; n++ {
		taken := false
		for _, other := range c.names {
			taken = taken || other == free
		}
		if !taken {
			return free
		}
		free = plain + "_" + strconv.Itoa(n)
	}
}

// pointed returns the name of the definition that a reference means.
func pointed(ref string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(ref, defsPrefix); !ok {
		if name, ok = strings.CutPrefix(ref, "#/definitions/"); !ok {
			return "", false
		}
	}
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name), true
}

// merged returns o with the schemas of its allOf in it: properties and what is
// required are put together, and of everything else there can be one.
func (c *converter) merged(o wire.Members, v *conversion) wire.Members {
	list := parseList(o.Get("allOf"))
	if list == nil {
		return o
	}
	o = slices.Clone(o)
	for _, raw := range list {
		part, ok := wire.ParseMembers(raw)
		part = c.inlined(part)
		if !ok || part.Get("allOf") != nil || !c.fits(o, part) {
			v.notes.Set("allOf", o.Get("allOf"))
			continue
		}
		for _, m := range part {
			switch was := o.Get(m.Name); {
			case was == nil:
				o.Set(m.Name, m.Value)
			case m.Name == "properties":
				all, _ := wire.ParseMembers(was)
				more, _ := wire.ParseMembers(m.Value)
				o.Set(m.Name, append(slices.Clone(all), more...).Bytes())
			case m.Name == "required":
				o.Set(m.Name, joined(was, m.Value))
			}
		}
	}
	return o
}

// fits reports whether nothing that part says contradicts o.
func (c *converter) fits(o, part wire.Members) bool {
	for _, m := range part {
		was := o.Get(m.Name)
		switch {
		case was == nil, bytes.Equal(was, m.Value), m.Name == "required", m.Name == "title", m.Name == "description":
		case m.Name == "properties":
			all, _ := wire.ParseMembers(was)
			more, _ := wire.ParseMembers(m.Value)
			if slices.ContainsFunc(more, func(p wire.Member) bool { return all.Get(p.Name) != nil }) {
				return false
			}
		default:
			return false
		}
	}
	return true
}
