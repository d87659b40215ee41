package catalog

import (
	"encoding/json"
	"maps"
	"slices"

	"dure/agent"
)

// conditional is a tool that is not always of use, such as one for repositories.
type conditional interface{ Enabled() bool }

// answered is a tool whose input a person may complete. See [Step.Check].
type answered interface{ AnswerSchema() json.RawMessage }

// completing is a tool that fills in what an input leaves to it, where rules are to see
// what would run.
type completing interface {
	Complete(input json.RawMessage) json.RawMessage
}

// Step is the catalog of one step. It never changes.
type Step struct {
	entries []*Entry
	specs   []agent.Spec
	named   []agent.Spec
	names   map[string]string // canonical to presented
	tools   map[string]agent.Tool
	known   func(name string) bool // of a tool that there is, offered or not
	schemas *schemas
}

// Step returns the catalog of the next step: the tools that are of use and that
// keep wants; nil wants all. While they are the same, so is the catalog: what is made
// of it for a request holds.
func (c *Catalog) Step(keep func(agent.Spec) bool) *Step {
	c.mu.Lock()
	list, last, version := c.sorted(), c.step, c.version
	deferral, chosen := c.deferral, maps.Clone(c.chosen)
	c.mu.Unlock()
	in := make([]*Entry, 0, len(list))
	for _, e := range list {
		if keep != nil && !keep(e.Spec) {
			continue
		}
		if cond, ok := e.Tool.(conditional); ok && !cond.Enabled() {
			continue
		}
		in = append(in, e)
	}
	if last != nil && slices.Equal(last.entries, in) {
		return last
	}
	s := c.stepOf(in, deferral, chosen)
	c.mu.Lock()
	if version == c.version {
		c.step = s
	}
	c.mu.Unlock()
	return s
}

func (c *Catalog) stepOf(in []*Entry, d Deferral, chosen map[string]bool) *Step {
	s := &Step{entries: in, names: map[string]string{}, tools: map[string]agent.Tool{}, known: c.Has, schemas: &c.schemas}
	listed, named := d.defers(in, chosen)
	for _, e := range named {
		s.named = append(s.named, e.Spec)
	}
	for _, e := range listed {
		s.specs = append(s.specs, e.Spec)
		s.tools[e.Spec.Name] = e.runs()
		if shown, ok := c.names[e.Spec.Name]; ok {
			s.names[e.Spec.Name] = shown
		}
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
	input, problem := s.schemas.check(spec, input, nil)
	if t, ok := s.tools[spec.Name].(completing); ok && problem == nil {
		input = t.Complete(input)
	}
	return input, problem
}
