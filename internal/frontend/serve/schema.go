package serve

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"dure/agent"
)

// schema is a JSON Schema of the dialect of OpenAPI 3.1.
type schema = map[string]any

// schemas describes Go types as they are in JSON. Structs with a name are described once,
// and referred to.
type schemas struct {
	named map[string]schema
	types map[string]reflect.Type // by their name here
}

func newSchemas() *schemas {
	return &schemas{named: map[string]schema{}, types: map[string]reflect.Type{}}
}

var (
	timeType    = reflect.TypeFor[time.Time]()
	rawType     = reflect.TypeFor[json.RawMessage]()
	eventType   = reflect.TypeFor[agent.Event]()
	jsonMarshal = reflect.TypeFor[json.Marshaler]()
	textMarshal = reflect.TypeFor[encoding.TextMarshaler]()
)

// of returns the schema of a type.
func (s *schemas) of(t reflect.Type) schema {
	switch {
	case t == timeType:
		return schema{"type": "string", "format": "date-time"}
	case t == rawType:
		return schema{}
	case t == eventType:
		return s.event()
	case t.Kind() == reflect.Pointer:
		return s.of(t.Elem())
	case t.Implements(jsonMarshal):
		return schema{}
	case t.Implements(textMarshal):
		return schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schema{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return schema{"type": "string", "contentEncoding": "base64"}
		}
		return schema{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.structure(t)
	}
	return schema{} // anything
}

// structure returns a reference to the schema of a struct that has a name, or the schema.
func (s *schemas) structure(t reflect.Type) schema {
	if t.Name() == "" || strings.Contains(t.Name(), "[") {
		return s.object(t)
	}
	name := t.Name()
	if was := s.types[name]; was != nil && was != t {
		name = strings.ToUpper(name[:1]) + name[1:] + "Of" + lastOf(t.PkgPath())
	}
	if s.types[name] == nil {
		s.types[name] = t // before what is in it, which may refer to it
		s.named[name] = s.object(t)
	}
	return schema{"$ref": "#/components/schemas/" + name}
}

func lastOf(path string) string {
	last := path[strings.LastIndex(path, "/")+1:]
	return strings.ToUpper(last[:1]) + last[1:]
}

func (s *schemas) object(t reflect.Type) schema {
	properties, required := schema{}, []string{}
	s.fields(t, properties, &required)
	o := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// fields adds the fields of a struct, and those of what it embeds.
func (s *schemas) fields(t reflect.Type, properties schema, required *[]string) {
	for f := range fieldsOf(t) {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			s.fields(inner, properties, required)
			continue
		case name == "":
			name = f.Name
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		property := s.of(f.Type)
		if strings.Contains(options, "string") {
			property = schema{"type": "string"}
		}
		if !optional {
			*required = append(*required, name)
			if k := f.Type.Kind(); (k == reflect.Pointer || k == reflect.Slice || k == reflect.Map) && f.Type != rawType {
				property = schema{"anyOf": []schema{property, {"type": "null"}}}
			}
		}
		properties[name] = property
	}
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// event is the schema of events: one form for each kind.
func (s *schemas) event() schema {
	if s.named["Event"] == nil {
		s.named["Event"] = schema{} // before what is in it
		var forms []schema
		for _, kind := range agent.Kinds() {
			b, err := agent.DecodeBody(agent.Version, kind, []byte("{}"))
			if err != nil {
				continue // the tests of the vocabulary say that each can be empty
			}
			forms = append(forms, schema{"properties": schema{"k": schema{"const": kind}, "d": s.of(reflect.TypeOf(b))}})
		}
		s.named["Event"] = schema{
			"type": "object", "required": []string{"v", "seq", "ep", "ts", "k", "id", "d"},
			"properties": schema{
				"v":   schema{"type": "integer", "description": "version of the format"},
				"seq": schema{"type": "integer", "description": "sequence number; 0 = live, and not stored"},
				"ep":  schema{"type": "integer", "description": "which owner of the session has written it"},
				"ts":  schema{"type": "string", "format": "date-time"},
				"k":   schema{"type": "string", "description": "kind; those that are not known are passed over"},
				"id":  schema{"type": "string"},
			},
			"anyOf": append(forms, schema{"properties": schema{"k": schema{"not": schema{"enum": agent.Kinds()}}}}),
		}
	}
	return schema{"$ref": "#/components/schemas/Event"}
}
