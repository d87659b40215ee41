package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
)

// Search is the tool that finds those that are only named. A step has it when there are
// some, and nobody takes it from the model otherwise: then all tools are listed.
const Search = "tool__search"

// maxChosen bounds the tools that [Catalog.Choose] keeps.
const maxChosen = 512

// Deferral says when the tools that others bring are only named to the model, which looks
// for what it needs. The tools of one owner are listed or named together, and of the
// owners those that take up least come first, so that small sets are always listed.
type Deferral struct {
	On   bool // else all are listed
	Room int  // bytes that the listed ones may take up together; 0 = none are
}

// pinned is a tool that is always listed, if it says so.
type pinned interface{ AlwaysLoad() bool }

// Defer says from now on when tools are only named.
func (c *Catalog) Defer(d Deferral) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deferral = d
	c.changed()
}

// Choose has tools listed from the next step on that are only named until then, or will be.
func (c *Catalog) Choose(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if len(c.chosen) < maxChosen {
			c.chosen[name] = true
		}
	}
	c.changed()
}

// defers parts the tools of a step into those that are listed and those that are named.
func (d Deferral) defers(in []*Entry, chosen map[string]bool) (listed, named []*Entry) {
	search := func(e *Entry) bool { return e.Spec.Name == Search }
	if !d.On || !slices.ContainsFunc(in, search) {
		return slices.DeleteFunc(slices.Clone(in), search), nil
	}
	type set struct {
		owner
		size int
	}
	sizes := map[owner]int{}
	optional := func(e *Entry) bool {
		p, ok := e.Tool.(pinned)
		return e.Source != BuiltIn && !chosen[e.Spec.Name] && !(ok && p.AlwaysLoad())
	}
	for _, e := range in {
		if e.Source != BuiltIn {
			sizes[owner{e.Source, e.From}] += len(e.Spec.Name) + len(e.Spec.Description) + len(e.Spec.Input)
		}
	}
	sets := make([]set, 0, len(sizes))
	for o, size := range sizes {
		sets = append(sets, set{o, size})
	}
	slices.SortFunc(sets, func(a, b set) int {
		return cmp.Or(a.size-b.size, strings.Compare(string(a.source), string(b.source)), strings.Compare(a.from, b.from))
	})
	fit, room := map[owner]bool{}, d.Room
	for _, s := range sets {
		if room -= s.size; room < 0 {
			break
		}
		fit[s.owner] = true
	}
	for _, e := range in {
		if optional(e) && !fit[owner{e.Source, e.From}] {
			named = append(named, e)
		} else {
			listed = append(listed, e)
		}
	}
	if named == nil {
		listed = slices.DeleteFunc(listed, search)
	}
	return listed, named
}

// Named returns the tools that the model has to look for before it can call them, in the
// order of [Step.Specs].
func (s *Step) Named() []agent.Spec { return s.named }

// Refuse says why the model cannot call what [Step.Lookup] does not find.
func (s *Step) Refuse(name string) *agent.ToolError {
	unknown := &agent.ToolError{Code: agent.ErrToolNotFound, Message: "Unknown tool: " + cut(name, maxName), Suggestion: "Use only the tools that are listed."}
	canonical, ok := presented(name)
	if !ok {
		canonical = name
	}
	for _, spec := range s.named {
		if spec.Name == canonical {
			return &agent.ToolError{
				Code: agent.ErrNotInCatalog, Message: fmt.Sprintf("%s is not loaded.", name),
				Suggestion: fmt.Sprintf("Load it first, and call it in your next step: %s with the query \"select:%s\".", cmp.Or(s.names[Search], Search), name),
			}
		}
	}
	if s.known(canonical) {
		return &agent.ToolError{Code: agent.ErrNotInCatalog, Message: "Unknown tool in this step: " + cut(name, maxName), Suggestion: unknown.Suggestion}
	}
	if canonical, ok = alias(name); ok {
		if _, ok = s.tools[canonical]; ok {
			unknown.Suggestion = "Its name is " + cmp.Or(s.names[canonical], canonical) + "."
		}
	}
	return unknown
}
