// Package catalog knows the tools: the registry of all that can be executed, and
// the catalog of one step, which is what the model is shown.
//
// It owns names (canonical, dialects, older spellings) and checks inputs against
// schemas, which are compiled when a tool is first called. It never runs a tool
// and decides nothing about permission. It starts no goroutines.
package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
)

// Source says where a tool comes from.
type Source string

// The sources, in the order in which their tools are listed.
const (
	BuiltIn    Source = "built-in"
	Configured Source = "config"
	Skill      Source = "skill"
	Plugin     Source = "plugin"
	Extension  Source = "extension"
	MCP        Source = "mcp"
)

var sources = []Source{BuiltIn, Configured, Skill, Plugin, Extension, MCP}

// Config configures a [Catalog].
type Config struct {
	Dialect Dialect          // "" = Claude
	Now     func() time.Time // nil = time.Now
}

// Entry is a registered tool.
type Entry struct {
	Tool       agent.Tool // as its owner brought it, under its own name
	Spec       agent.Spec // as it was when the tool was registered, with the name that it has here
	Own        string     // the name that it came with; another one where that was taken
	Source     Source
	From       string // which plugin, server, ...; may be empty
	Registered time.Time
}

// Catalog is the registry of tools. It is safe for concurrent use.
type Catalog struct {
	names   map[string]string // the dialect
	dialect Dialect
	now     func() time.Time
	schemas schemas

	mu       sync.RWMutex
	owned    map[owner][]*Entry // as they came
	refused  map[owner][]Refused
	nameless []Refused         // for which no name was left
	entries  map[string]*Entry // by the names that they have
	deferral Deferral
	chosen   map[string]bool // see [Catalog.Choose]
	version  int             // counts changes
	order    []*Entry        // all of them as they are listed; nil when a change has come since
	step     *Step           // the last one; nil likewise
}

// New returns an empty catalog. It panics on an unknown dialect.
func New(c Config) *Catalog {
	if c.Dialect == "" {
		c.Dialect = Claude
	}
	names, ok := dialects[c.Dialect]
	if !ok {
		panic("catalog: unknown dialect " + string(c.Dialect))
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Catalog{
		names: names, dialect: c.Dialect, now: c.Now, owned: map[owner][]*Entry{}, refused: map[owner][]Refused{},
		entries: map[string]*Entry{}, chosen: map[string]bool{},
	}
}

// Register adds a tool for good. From names the plugin, server or the like it belongs to.
// What comes and goes, or is not to be trusted with its name, is for [Catalog.Set].
func (c *Catalog) Register(t agent.Tool, source Source, from string) error {
	spec := t.Spec()
	if err := checkName(spec.Name); err != nil {
		return fmt.Errorf("registering a tool: %w", err)
	}
	if !slices.Contains(sources, source) {
		return fmt.Errorf("registering %s: unknown source %q", spec.Name, source)
	}
	if err := checkPrefix(spec.Name, source); err != nil {
		return fmt.Errorf("registering %s: %w", spec.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rank := slices.Index(sources, source)
	if e, ok := c.entries[spec.Name]; ok && slices.Index(sources, e.Source) <= rank {
		return fmt.Errorf("tool already registered: %s", spec.Name)
	}
	if by, ok := presented(spec.Name); ok && by != spec.Name {
		return fmt.Errorf("registering %s: the name presents %s", spec.Name, by)
	}
	who := owner{source, from}
	e := &Entry{Tool: t, Spec: spec, Own: spec.Name, Source: source, From: from, Registered: c.now()}
	c.owned[who] = append(slices.Clip(c.owned[who]), e)
	if _, taken := c.entries[spec.Name]; taken { // by one that is trusted less
		c.settle()
		return nil
	}
	c.entries[spec.Name] = e
	c.changed()
	return nil
}

// Unregister removes a tool and reports whether it was there. Steps that have
// begun keep it.
func (c *Catalog) Unregister(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[name]
	if !ok {
		return false
	}
	who := owner{e.Source, e.From}
	c.owned[who] = slices.DeleteFunc(slices.Clone(c.owned[who]), func(o *Entry) bool { return o.Own == e.Own })
	c.settle()
	return true
}

// Get returns the tool with a canonical name.
func (c *Catalog) Get(name string) (Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e, ok := c.entries[name]; ok {
		return *e, true
	}
	return Entry{}, false
}

// Has reports whether there is a tool with a canonical name.
func (c *Catalog) Has(name string) bool {
	_, ok := c.Get(name)
	return ok
}

// List returns all tools, those too that no step has, in the order of [Step.Specs].
func (c *Catalog) List() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Entry, 0, len(c.entries))
	for _, e := range c.sorted() {
		list = append(list, *e)
	}
	return list
}

// sorted returns the tools in their order. mu is held; nobody changes an entry.
func (c *Catalog) sorted() []*Entry {
	if c.order == nil {
		c.order = slices.SortedFunc(maps.Values(c.entries), func(a, b *Entry) int {
			if d := slices.Index(sources, a.Source) - slices.Index(sources, b.Source); d != 0 {
				return d
			}
			return strings.Compare(a.Spec.Name, b.Spec.Name)
		})
	}
	return c.order
}

// ByGroup returns the tools of a group, in the order of [Catalog.List].
func (c *Catalog) ByGroup(group string) []Entry {
	return slices.DeleteFunc(c.List(), func(e Entry) bool { return e.Spec.Group != group })
}

// Meant returns the tools that a word means as [Catalog.Canonical] returns it: one, or those
// of a group.
func (c *Catalog) Meant(canonical string) []Entry {
	if group, ok := strings.CutPrefix(canonical, "group:"); ok {
		return c.ByGroup(group)
	}
	if e, ok := c.Get(canonical); ok {
		return []Entry{e}
	}
	return nil
}

// Shown returns the name under which the model sees a tool.
func (c *Catalog) Shown(canonical string) string { return c.dialect.Name(canonical) }

func (c *Catalog) changed() { c.version, c.order, c.step = c.version+1, nil, nil }

// Canonical returns the canonical name of the tool that any spelling means: a
// registered name, a name of a dialect, or an older one. A "group:NAME" is
// returned as it is. It is not ok for a name that nothing is known of.
func (c *Catalog) Canonical(name string) (string, bool) {
	if c.Has(name) || strings.HasPrefix(name, "group:") && len(name) > len("group:") {
		return name, true
	}
	if s, ok := presented(name); ok {
		return s, true
	}
	if _, ok := dialects[Claude][name]; ok {
		return name, true // built in, though not registered here
	}
	return alias(name)
}
