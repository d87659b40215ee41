package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// walk goes through an input beside its schema, mends what may be mended, and
// notes what is wrong.
type walk struct {
	problems []string
	more     int // problems that were not noted
	changed  bool
}

// add notes a problem of the value at path; "" is the whole input.
func (w *walk) add(path, problem string) {
	if len(w.problems) == maxProblems {
		w.more++
		return
	}
	if path == "" {
		path = "the input"
	}
	w.problems = append(w.problems, path+" "+problem)
}

func (w *walk) message() string {
	s := "the input does not fit the tool:\n- " + strings.Join(w.problems, "\n- ")
	if w.more > 0 {
		s += fmt.Sprintf("\n- and %d more", w.more)
	}
	return s
}

// object checks an object and changes it in place.
func (w *walk) object(s *jsonschema.Schema, object map[string]any, path string) {
	for _, name := range s.Required {
		v, ok := object[name]
		p := s.Properties[name]
		if ok && (v != nil || p == nil || allows(p, "null")) {
			continue
		}
		if p != nil && p.Default != nil {
			continue // it is set below
		}
		delete(object, name)
		w.add(join(path, name), "is missing"+wanted(p))
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		p, ok := s.Properties[name]
		switch {
		case ok && object[name] == nil && !allows(p, "null"):
			delete(object, name)
			w.changed = true
		case ok:
			object[name] = w.value(p, object[name], join(path, name))
		case len(s.PatternProperties) > 0 || s.AdditionalProperties == nil:
		case s.AdditionalProperties.Not != nil: // false
			w.add(join(path, name), "is not known"+nearest(name, s))
		default:
			object[name] = w.value(s.AdditionalProperties, object[name], join(path, name))
		}
	}
	for name, p := range s.Properties {
		if _, ok := object[name]; !ok && p != nil && p.Default != nil {
			var v any
			if json.Unmarshal(p.Default, &v) == nil {
				object[name] = v
				w.changed = true
			}
		}
	}
}

// value checks a value and returns it mended.
func (w *walk) value(s *jsonschema.Schema, v any, path string) any {
	if s == nil {
		return v
	}
	if types := typesOf(s); len(types) > 0 {
		mended, ok := fit(types, v)
		if !ok {
			w.add(path, "has to be "+article(types)+", not "+show(v))
			return v
		}
		w.changed = w.changed || differs(mended, v)
		v = mended
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return sameValue(e, v) }) {
		w.add(path, "has to be one of "+list(s.Enum)+", not "+show(v))
		return v
	}
	switch v := v.(type) {
	case string:
		w.length(s, utf8.RuneCountInString(v), path)
	case json.Number:
		w.number(s, v, path)
	case []any:
		w.count(s, len(v), path)
		for i := range v {
			v[i] = w.value(s.Items, v[i], path+"["+strconv.Itoa(i)+"]")
		}
	case map[string]any:
		w.object(s, v, path)
	}
	return v
}

func (w *walk) length(s *jsonschema.Schema, n int, path string) {
	if s.MinLength != nil && n < *s.MinLength {
		if n == 0 {
			w.add(path, "is empty")
			return
		}
		w.add(path, fmt.Sprintf("has %d characters, fewer than %d", n, *s.MinLength))
	}
	if s.MaxLength != nil && n > *s.MaxLength {
		w.add(path, fmt.Sprintf("has %d characters, more than %d", n, *s.MaxLength))
	}
}

func (w *walk) count(s *jsonschema.Schema, n int, path string) {
	if s.MinItems != nil && n < *s.MinItems {
		w.add(path, fmt.Sprintf("has %d items, fewer than %d", n, *s.MinItems))
	}
	if s.MaxItems != nil && n > *s.MaxItems {
		w.add(path, fmt.Sprintf("has %d items, more than %d", n, *s.MaxItems))
	}
}

func (w *walk) number(s *jsonschema.Schema, v json.Number, path string) {
	if s.Minimum == nil && s.Maximum == nil {
		return
	}
	f, err := v.Float64()
	if err != nil {
		w.add(path, "is out of range: "+show(v))
		return
	}
	if s.Minimum != nil && f < *s.Minimum {
		w.add(path, fmt.Sprintf("is %s, less than %v", show(v), *s.Minimum))
	}
	if s.Maximum != nil && f > *s.Maximum {
		w.add(path, fmt.Sprintf("is %s, more than %v", show(v), strconv.FormatFloat(*s.Maximum, 'f', -1, 64)))
	}
}

func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

// allows reports whether a value of a type can fit, as far as types say.
func allows(s *jsonschema.Schema, typ string) bool {
	if s == nil {
		return true
	}
	types := typesOf(s)
	return len(types) == 0 || slices.Contains(types, typ)
}

// fit returns v as one of the types, mended if that is safe.
func fit(types []string, v any) (any, bool) {
	for _, t := range types {
		if is(t, v) {
			if n, ok := v.(json.Number); ok && t == "integer" {
				return whole(n), true
			}
			return v, true
		}
	}
	text, ok := v.(string)
	if !ok || len(text) > maxInput {
		return v, false
	}
	trimmed := strings.TrimSpace(text)
	for _, t := range types {
		if mended, ok := fromText(t, trimmed); ok {
			return mended, true
		}
	}
	return v, false
}

// fromText reads a value that was sent inside a string.
func fromText(typ, text string) (any, bool) {
	switch typ {
	case "boolean":
		switch strings.ToLower(text) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	case "integer", "number":
		if len(text) == 0 || len(text) > maxDigits {
			return nil, false
		}
	case "array", "object":
	default:
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() || !is(typ, v) {
		return nil, false
	}
	if n, ok := v.(json.Number); ok && typ == "integer" {
		return whole(n), true
	}
	return v, true
}

// is reports whether v, as decoded with numbers kept as text, is of a type.
func is(typ string, v any) bool {
	switch v := v.(type) {
	case nil:
		return typ == "null"
	case bool:
		return typ == "boolean"
	case string:
		return typ == "string"
	case []any:
		return typ == "array"
	case map[string]any:
		return typ == "object"
	case json.Number:
		if len(v) > maxDigits {
			return false
		}
		if typ == "integer" {
			r := rational(v)
			return r != nil && r.IsInt()
		}
		return typ == "number"
	}
	return false
}

// rational returns a number's exact value, or nil when it is beyond reason: an
// exact value has as many digits as its exponent says.
func rational(n json.Number) *big.Rat {
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		if e, err := strconv.Atoi(string(n[i+1:])); err != nil || e > maxDigits || e < -maxDigits {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return nil
	}
	return r
}

// whole writes an integer as programs expect it: 5.0 and 5e0 as 5.
func whole(n json.Number) json.Number {
	if !strings.ContainsAny(string(n), ".eE") {
		return n
	}
	return json.Number(rational(n).Num().String())
}

// differs reports whether mending has changed v.
func differs(a, b any) bool {
	switch a := a.(type) {
	case string, bool, nil:
		return a != b
	case json.Number:
		return a != b
	}
	_, wasText := b.(string)
	return wasText
}

// sameValue compares a value of a schema with one of an input.
func sameValue(e, v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return string(encode(e)) == string(encode(v))
	}
	f, isNumber := e.(float64)
	g, err := n.Float64()
	return isNumber && err == nil && f == g
}
