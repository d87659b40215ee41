package forms

import "github.com/google/jsonschema-go/jsonschema"

// value is one that is to be checked, as far as it matters how long that takes.
type value struct {
	size  int64 // bytes of it, about
	text  bool
	named map[string]*value
	list  []*value
}

func measure(v any) *value {
	const least = 8
	m := &value{size: least}
	switch v := v.(type) {
	case string:
		m.size, m.text = int64(len(v)), true
	case []any:
		for _, one := range v {
			below := measure(one)
			m.list, m.size = append(m.list, below), m.size+below.size
		}
	case map[string]any:
		m.named = make(map[string]*value, len(v))
		for name, one := range v {
			below := measure(one)
			m.named[name], m.size = below, m.size+below.size+int64(len(name))
		}
	}
	return m
}

// count walks as a check would that finds everything wrong, and counts its steps. What a check
// says again of what does not fit counts, too, and so does what patterns are matched with.
type count struct {
	f    *Form
	left int64
}

// look looks at a value by a schema, and reports whether that is done in the steps there are.
func (c *count) look(s *jsonschema.Schema, v *value, depth int) bool {
	if s == nil {
		return true
	}
	p := c.f.parts[s]
	c.left -= p.weight + v.size/stepText
	if v.text {
		c.left -= v.size * p.pattern / stepPattern
	}
	if c.left < 0 || depth > maxDepth {
		return false
	}
	for _, one := range [...]*jsonschema.Schema{p.ref, s.Not, s.If, s.Then, s.Else} {
		if !c.look(one, v, depth+1) {
			return false
		}
	}
	for _, list := range [...][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, one := range list {
			if !c.look(one, v, depth+1) {
				return false
			}
		}
	}
	return c.items(s, v, depth+1) && c.properties(s, p, v, depth+1)
}

func (c *count) items(s *jsonschema.Schema, v *value, depth int) bool {
	for i, one := range v.list {
		by := [...]*jsonschema.Schema{s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems}
		if i < len(s.PrefixItems) {
			by[0] = s.PrefixItems[i]
		}
		if i < len(s.ItemsArray) {
			by[1] = s.ItemsArray[i]
		}
		for _, by := range by {
			if !c.look(by, one, depth) {
				return false
			}
		}
	}
	return true
}

func (c *count) properties(s *jsonschema.Schema, p *part, v *value, depth int) bool {
	for name, one := range v.named {
		by, known := s.Properties[name]
		if !c.look(by, one, depth) {
			return false
		}
		for _, pattern := range p.patterns {
			if c.left -= 1 + int64(len(name))*pattern.size/stepPattern; c.left < 0 {
				return false
			}
			if pattern.re.MatchString(name) {
				if known = true; !c.look(pattern.then, one, depth) {
					return false
				}
			}
		}
		if !known && !c.look(s.AdditionalProperties, one, depth) {
			return false
		}
		if !c.look(s.UnevaluatedProperties, one, depth) || s.PropertyNames != nil && !c.look(s.PropertyNames, &value{size: int64(len(name)), text: true}, depth) {
			return false
		}
		if !c.look(s.DependentSchemas[name], v, depth) || !c.look(s.DependencySchemas[name], v, depth) {
			return false
		}
	}
	return true
}
