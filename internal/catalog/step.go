package catalog

import (
	"encoding/json"

	"dure/agent"
)

// conditional is a tool that is not always of use, such as one for repositories.
type conditional interface{ Enabled() bool }

// answered is a tool whose input a person may complete. See [Step.Check].
type answered interface{ AnswerSchema() json.RawMessage }

// Step is the catalog of one step. It never changes.
type Step struct {
	specs   []agent.Spec
	names   map[string]string // canonical to presented
	tools   map[string]agent.Tool
	schemas *schemas
}

// Step returns the catalog of the next step: the tools that are enabled and that
// keep wants; nil wants all. While nothing changes, it is the same catalog.
func (c *Catalog) Step(keep func(agent.Spec) bool) *Step {
	c.mu.RLock()
	step, version, off := c.step, c.version, c.disabled
	if step != nil && keep == nil {
		c.mu.RUnlock()
		return step
	}
	list := c.list()
	c.mu.RUnlock()
	s := &Step{names: map[string]string{}, tools: map[string]agent.Tool{}, schemas: &c.schemas}
	steady := keep == nil
	for _, e := range list {
		if cond, ok := e.Tool.(conditional); ok {
			steady = false
			if !cond.Enabled() {
				continue
			}
		}
		if off[e.Spec.Name] || off["group:"+e.Spec.Group] || keep != nil && !keep(e.Spec) {
			continue
		}
		s.specs = append(s.specs, e.Spec)
		s.tools[e.Spec.Name] = e.Tool
		if shown, ok := c.names[e.Spec.Name]; ok {
			s.names[e.Spec.Name] = shown
		}
	}
	if steady {
		c.mu.Lock()
		if version == c.version {
			c.step = s
		}
		c.mu.Unlock()
	}
	return s
}

// Specs returns the tools in a stable order: by source, then by name. The caller
// does not change them.
func (s *Step) Specs() []agent.Spec { return s.specs }

// Names maps canonical names to the names that the model sees, where they
// differ. The caller does not change it.
func (s *Step) Names() map[string]string { return s.names }

// Lookup finds the tool that a name of this catalog means, presented or
// canonical. Older spellings are none of this catalog's names.
func (s *Step) Lookup(name string) (agent.Tool, bool) {
	if t, ok := s.tools[name]; ok {
		return t, true
	}
	if canonical, ok := presented(name); ok {
		t, ok := s.tools[canonical]
		return t, ok
	}
	return nil, false
}

// Check validates an input of a tool and returns it as the tool wants it, by
// the rules of [Catalog.Check]. With byPerson the input was completed by a
// person: a tool with an AnswerSchema is then checked against that. Otherwise
// parameters that only a person can give are taken out of the input.
func (s *Step) Check(spec agent.Spec, input json.RawMessage, byPerson bool) (json.RawMessage, *agent.ToolError) {
	if a, ok := s.tools[spec.Name].(answered); ok {
		if byPerson {
			spec.Input = a.AnswerSchema()
		} else {
			return s.schemas.check(spec, input, s.schemas.only(a.AnswerSchema(), spec.Input))
		}
	}
	return s.schemas.check(spec, input, nil)
}
