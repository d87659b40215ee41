// Package forms reads JSON Schemas that others have written, and checks values against them,
// within bounds: what comes from servers, hosts and users of a server may refer to itself
// without end, or branch so often that no check of it ends.
package forms

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// The bounds of schemas, and of checks.
const (
	MaxText = 256 << 10 // bytes of a schema

	maxNested  = 128       // brackets of a schema that lie in each other
	maxPaths   = 8 << 20   // bytes of the paths of all its parts
	maxPattern = 100_000   // instructions of all its patterns
	maxDepth   = 256       // schemas that are looked at within each other
	maxSteps   = 1_000_000 // of a check; a schema that is looked at is one or more

	stepText    = 256 // bytes that may be said again for one step
	stepPattern = 64  // instructions times bytes that are matched in one step
)

// ErrCost is a value that cannot be checked in the time, or on the stack, that there is.
var ErrCost = errors.New("it would take too long to check")

// Read reads a schema.
func Read(text []byte) (s *jsonschema.Schema, err error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(text), MaxText)
	}
	if nested(text) > maxNested {
		return nil, fmt.Errorf("schemas lie more than %d deep in each other", maxNested)
	}
	s = new(jsonschema.Schema)
	if err := safely(func() error { return json.Unmarshal(text, s) }); err != nil {
		return nil, err
	}
	return s, nil
}

// nested is how many brackets lie in each other, at most.
func nested(text []byte) (most int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			depth++
			most = max(most, depth)
		case c == '}', c == ']':
			depth--
		}
	}
	return most
}

// safely has what panics be an error: schemas of others reach code that takes them for sound.
func safely(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it cannot be read: %v", v)
		}
	}()
	return do()
}

// Form is a schema against which values are checked. It is safe for concurrent use.
type Form struct {
	full  *jsonschema.Resolved
	root  *jsonschema.Schema
	parts map[*jsonschema.Schema]*part
}

// part is what is known of a schema within a form.
type part struct {
	weight   int64 // steps to look at it
	ref      *jsonschema.Schema
	pattern  int64 // instructions
	patterns []pattern
}

// pattern is one of patternProperties.
type pattern struct {
	re   *regexp.Regexp
	size int64
	then *jsonschema.Schema
}

// New makes a form of a schema, which must not be changed any more. Nothing is fetched.
func New(root *jsonschema.Schema) (*Form, error) {
	f := &Form{root: root, parts: map[*jsonschema.Schema]*part{}}
	r := &reader{f: f, at: map[string]*jsonschema.Schema{}, anchors: map[string]*jsonschema.Schema{}}
	if err := r.read(root, ""); err != nil {
		return nil, err
	}
	for s, p := range f.parts {
		if s.Ref == "" {
			continue
		}
		var err error
		if p.ref, err = r.target(s.Ref); err != nil {
			return nil, fmt.Errorf("$ref %.100q: %w", s.Ref, err)
		}
	}
	if !(&count{f, maxSteps}).look(root, measure(nil), 0) {
		return nil, errors.New("it refers to itself without end, or branches too often")
	}
	err := safely(func() (err error) {
		f.full, err = root.Resolve(nil) // no loader
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// reader reads the parts of a schema.
type reader struct {
	f            *Form
	paths, insts int64
	at           map[string]*jsonschema.Schema // by path
	anchors      map[string]*jsonschema.Schema
}

// read takes in a schema, and those below it.
func (r *reader) read(s *jsonschema.Schema, path string) error {
	switch {
	case s == nil:
		return errors.New("there is null in the place of a schema")
	case r.f.parts[s] != nil:
		return errors.New("a schema is there twice")
	case s.DynamicRef != "" || s.ID != "" && s != r.f.root:
		return errors.New("$dynamicRef, and $id below the top, are not followed")
	}
	if r.paths += int64(len(path)); r.paths > maxPaths {
		return errors.New("the names in it are too long")
	}
	p := &part{weight: 1 + int64(len(s.Properties))/4 + (said(s)+int64(len(path)))/stepText}
	r.f.parts[s], r.at[path] = p, s
	for _, anchor := range []string{s.Anchor, s.DynamicAnchor} {
		if anchor != "" && r.anchors[anchor] != nil {
			return fmt.Errorf("there are two anchors %.100q", anchor)
		}
		r.anchors[anchor] = s
	}
	var err error
	if s.Pattern != "" {
		if p.pattern, err = r.size(s.Pattern); err != nil {
			return err
		}
	}
	for text, then := range s.PatternProperties {
		size, err := r.size(text)
		if err != nil {
			return err
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return err
		}
		p.patterns = append(p.patterns, pattern{re, size, then})
	}
	for name, below := range children(s) {
		if err := r.read(below, path+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// size is how many instructions a pattern has.
func (r *reader) size(pattern string) (int64, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("a pattern cannot be read: %w", err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, fmt.Errorf("a pattern cannot be read: %w", err)
	}
	n := int64(len(prog.Inst))
	if r.insts += n; r.insts > maxPattern {
		return 0, errors.New("the patterns in it are too long")
	}
	return n, nil
}

// said is how many bytes of a schema may be said again when something does not fit it.
func said(s *jsonschema.Schema) int64 {
	n := len(s.Pattern) + len(s.ID) + 16*len(s.Types)
	for _, below := range children(s) {
		if below != nil { // it is told as its anchor
			n += 16 + len(below.Anchor) + len(below.DynamicAnchor)
		}
	}
	for _, name := range s.Required {
		n += len(name)
	}
	for name, others := range s.DependentRequired {
		n += len(name) + 16*len(others)
	}
	for name, others := range s.DependencyStrings {
		n += len(name) + 16*len(others)
	}
	for _, v := range append(s.Enum[:len(s.Enum):len(s.Enum)], s.Const) {
		data, err := json.Marshal(v)
		if err == nil {
			n += len(data)
		}
	}
	return int64(n)
}

// target is the schema that a reference leads to, which is one of the same form.
func (r *reader) target(ref string) (*jsonschema.Schema, error) {
	before, after, _ := strings.Cut(ref, "#")
	if id, _, _ := strings.Cut(r.f.root.ID, "#"); before != "" && before != id {
		return nil, errors.New("it leads out of the schema, and nothing is fetched")
	}
	after, err := url.PathUnescape(after)
	if err != nil {
		return nil, err
	}
	if after == "" {
		return r.f.root, nil
	}
	if after[0] != '/' {
		if s := r.anchors[after]; s != nil {
			return s, nil
		}
		return nil, errors.New("there is no such anchor")
	}
	if s := r.at[after]; s != nil {
		return s, nil
	}
	return nil, errors.New("there is no such schema")
}

// children yields the schemas right below one, with their paths as references have them.
func children(s *jsonschema.Schema) func(yield func(string, *jsonschema.Schema) bool) {
	return func(yield func(string, *jsonschema.Schema) bool) {
		for _, f := range []struct {
			name string
			one  *jsonschema.Schema
		}{
			{"items", s.Items},
			{"additionalItems", s.AdditionalItems},
			{"contains", s.Contains},
			{"unevaluatedItems", s.UnevaluatedItems},
			{"additionalProperties", s.AdditionalProperties},
			{"propertyNames", s.PropertyNames},
			{"unevaluatedProperties", s.UnevaluatedProperties},
			{"not", s.Not},
			{"if", s.If},
			{"then", s.Then},
			{"else", s.Else},
			{"contentSchema", s.ContentSchema},
		} {
			if f.one != nil && !yield(f.name, f.one) {
				return
			}
		}
		for _, f := range []struct {
			name string
			list []*jsonschema.Schema
		}{{"prefixItems", s.PrefixItems}, {"items", s.ItemsArray}, {"allOf", s.AllOf}, {"anyOf", s.AnyOf}, {"oneOf", s.OneOf}} {
			for i, one := range f.list {
				if !yield(f.name+"/"+strconv.Itoa(i), one) {
					return
				}
			}
		}
		for _, f := range []struct {
			name string
			all  map[string]*jsonschema.Schema
		}{
			{"$defs", s.Defs},
			{"definitions", s.Definitions},
			{"dependencies", s.DependencySchemas},
			{"properties", s.Properties},
			{"patternProperties", s.PatternProperties},
			{"dependentSchemas", s.DependentSchemas},
		} {
			for name, one := range f.all {
				if !yield(f.name+"/"+escaped.Replace(name), one) {
					return
				}
			}
		}
	}
}

// escaped is how names stand in paths.
var escaped = strings.NewReplacer("~", "~0", "/", "~1")

// Validate checks a value that was read from JSON; ErrCost stands for one that is not checked.
func (f *Form) Validate(v any) error {
	c := &count{f: f, left: maxSteps}
	if !c.look(f.root, measure(v), 0) {
		return ErrCost
	}
	return safely(func() error { return f.full.Validate(v) })
}
