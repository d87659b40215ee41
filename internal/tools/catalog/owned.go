package catalog

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
)

// The bounds of what others bring.
const (
	maxOwned       = 1024      // tools of one owner
	maxDescription = 32 << 10  // bytes
	maxSchema      = 256 << 10 // bytes
)

// owner is who brings tools: a source, and which plugin, server, ... of it.
type owner struct {
	source Source
	from   string
}

// Refused is a tool that was not taken.
type Refused struct {
	Name   string
	Source Source
	From   string
	Err    error
}

// Set makes the tools of an owner be these, in one change, and returns those that it does
// not take: what it had and is not among them is gone from the next step on, and steps that
// have begun keep it. It is for what comes and goes while sessions run: plugins, servers,
// extensions.
//
// A name means the tool of the source that is trusted most: a tool that comes with a name of
// a built-in one, or with one that an earlier source has, gets another name, and which one
// does not depend on who came first. See [Entry.Own].
func (c *Catalog) Set(source Source, from string, tools []agent.Tool) (refused []Refused) {
	who := owner{source, from}
	var list []*Entry
	seen := map[string]bool{}
	for i, t := range tools {
		spec := t.Spec()
		err := checkForeign(spec, who)
		switch {
		case err == nil && i >= maxOwned:
			err = fmt.Errorf("there are more than %d", maxOwned)
		case err == nil && seen[spec.Name]:
			err = errors.New("there is another one with its name")
		}
		if err != nil {
			refused = append(refused, Refused{spec.Name, source, from, err})
			continue
		}
		seen[spec.Name] = true
		if len(spec.Input) == 0 {
			spec.Input = json.RawMessage(`{"type":"object"}`)
		}
		list = append(list, &Entry{Tool: t, Spec: spec, Own: spec.Name, Source: source, From: from, Registered: c.now()})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier := map[string]*Entry{}
	for _, e := range c.owned[who] {
		earlier[e.Own] = e
	}
	for _, e := range list { // when it was registered is kept, and with it the step
		if was := earlier[e.Own]; was != nil {
			e.Registered = was.Registered
		}
	}
	if delete(c.owned, who); len(list) > 0 {
		c.owned[who] = list
	}
	if delete(c.refused, who); len(refused) > 0 {
		c.refused[who] = refused
	}
	c.settle()
	for _, r := range c.nameless {
		if r.Source == source && r.From == from {
			refused = append(refused, r)
		}
	}
	return refused
}

// Refused returns what owners have brought and the catalog has not, in the order of their
// sources.
func (c *Catalog) Refused() []Refused {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := slices.Clone(c.nameless)
	for _, list := range c.refused {
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b Refused) int {
		return cmp.Or(before(owner{a.Source, a.From}, owner{b.Source, b.From}), strings.Compare(a.Name, b.Name))
	})
	return all
}

// before orders owners: those that are trusted most come first.
func before(a, b owner) int {
	return cmp.Or(slices.Index(sources, a.source)-slices.Index(sources, b.source), strings.Compare(a.from, b.from))
}

// checkForeign reports why a tool cannot be put before a model.
func checkForeign(spec agent.Spec, who owner) error {
	if err := checkName(spec.Name); err != nil {
		return err
	}
	if !slices.Contains(sources[1:], who.source) {
		return fmt.Errorf("nobody else brings tools of the source %q", who.source)
	}
	if err := checkPrefix(spec.Name, who.source); err != nil {
		return err
	}
	if len(spec.Description) > maxDescription || len(spec.Input) > maxSchema {
		return fmt.Errorf("its description has %d bytes and its schema %d, and they may have %d and %d", len(spec.Description), len(spec.Input), maxDescription, maxSchema)
	}
	if len(spec.Input) == 0 {
		return nil
	}
	var schema struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(spec.Input, &schema); err != nil {
		return fmt.Errorf("its schema cannot be read: %w", err)
	}
	if schema.Type != "object" || bytes.ContainsRune(spec.Input, 0) {
		return errors.New("its schema is not that of an object")
	}
	return nil
}

func checkPrefix(name string, source Source) error {
	if source == MCP != strings.HasPrefix(name, mcpPrefix) {
		return fmt.Errorf("names that begin with %s are those of MCP servers, and theirs do", mcpPrefix)
	}
	return nil
}

// settle gives all tools their names. mu is held.
func (c *Catalog) settle() {
	owners := make([]owner, 0, len(c.owned))
	for o := range c.owned {
		owners = append(owners, o)
	}
	slices.SortFunc(owners, before)
	clear(c.entries)
	c.nameless = nil
	for _, o := range owners {
		for _, e := range slices.SortedFunc(slices.Values(c.owned[o]), func(a, b *Entry) int { return strings.Compare(a.Own, b.Own) }) {
			name, ok := c.free(e)
			if !ok {
				c.nameless = append(c.nameless, Refused{e.Own, o.source, o.from, errors.New("all names for it are taken")})
				continue
			}
			if name != e.Spec.Name { // an entry that steps may have is never changed
				copied := *e
				copied.Spec.Name = name
				e = &copied
			}
			c.entries[name] = e
		}
	}
	c.changed()
}

// free returns the name that a tool gets: its own, or another one where that is another's
// already. It is not ok where there is none.
func (c *Catalog) free(e *Entry) (name string, ok bool) {
	for i, get := range []func() string{func() string { return e.Own }, e.named, e.marked} {
		name := get()
		_, taken := c.entries[name]
		_, known := dialects[Claude][name]
		if own, ok := presented(name); ok && own != name {
			taken = true
		}
		if (e.Source == BuiltIn || !known) && !taken && checkName(name) == nil && (i == 0 || e.Source != BuiltIn) {
			return name, true
		}
	}
	return "", false
}

// named is the name of a tool with that of its owner in front.
func (e *Entry) named() string {
	prefix := strings.Map(func(r rune) rune {
		if fits(string(r)) {
			return r
		}
		return '-'
	}, e.From)
	for strings.Contains(prefix, "__") {
		prefix = strings.ReplaceAll(prefix, "__", "_")
	}
	if e.Source == MCP || prefix == "" {
		return e.marked()
	}
	return prefix + "-" + e.Own
}

// marked is the name of a tool with a mark that follows from where it comes from.
func (e *Entry) marked() string {
	sum := sha256.Sum256([]byte(string(e.Source) + "\x00" + e.From + "\x00" + e.Own))
	mark := "-" + hex.EncodeToString(sum[:4])
	return e.Own[:min(len(e.Own), maxName-len(mark))] + mark
}

// renamed is a tool that has another name here than it has for itself. It is called by that.
type renamed struct {
	agent.Tool
	spec agent.Spec
}

func (r renamed) Spec() agent.Spec { return r.spec }

// probed is one that can say whether a call took effect.
type probed struct {
	renamed
	agent.Checker
}

// runs is the tool under the name that it has here.
func (e *Entry) runs() agent.Tool {
	if e.Own == e.Spec.Name {
		return e.Tool
	}
	r := renamed{e.Tool, e.Spec}
	if checker, ok := e.Tool.(agent.Checker); ok {
		return probed{r, checker}
	}
	return r
}
