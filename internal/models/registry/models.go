// Package registry is the catalog of models: windows, limits, prices, and how each
// is told to think. The facts are data (models.json), parsed when somebody first
// asks; users add their own. They are what the providers publish about their
// models and their list prices; what is not known is absent, never guessed.
//
// The packages beside it speak to providers. This one opens no connection and
// starts no goroutines.
package registry

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/base/near"
)

//go:embed models.json
var facts []byte

// builtin is the embedded catalog. It must not be changed.
var builtin = sync.OnceValue(func() []agent.ModelInfo {
	var list []agent.ModelInfo
	if err := json.Unmarshal(facts, &list); err != nil {
		panic("models.json: " + err.Error()) // a test reads the same file
	}
	return list
})

// A Catalog is a list of models. It is safe for concurrent use.
type Catalog struct {
	extra []agent.ModelInfo
	once  sync.Once
	list  []agent.ModelInfo
	names map[string]int // lower-case ID or alias to place in list
}

// New returns the embedded catalog with the user's models in front. An entry
// with the ID of an embedded one replaces it, and an alias means the first
// model that claims it. Nothing is parsed before the first question.
func New(extra []agent.ModelInfo) *Catalog { return &Catalog{extra: slices.Clone(extra)} }

func (c *Catalog) load() {
	c.once.Do(func() {
		c.names = make(map[string]int)
		for _, m := range slices.Concat(c.extra, builtin()) {
			id := strings.ToLower(m.ID)
			if i, ok := c.names[id]; ok && strings.EqualFold(c.list[i].ID, id) {
				continue
			}
			c.names[id] = len(c.list) // an ID is stronger than another model's alias
			c.list = append(c.list, m)
			for _, alias := range m.Aliases {
				if alias = strings.ToLower(alias); !c.has(alias) {
					c.names[alias] = len(c.list) - 1
				}
			}
		}
	})
}

func (c *Catalog) has(name string) bool {
	_, ok := c.names[name]
	return ok
}

// All returns the models, the user's first. The slice is the caller's.
func (c *Catalog) All() []agent.ModelInfo {
	c.load()
	return slices.Clone(c.list)
}

var dated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.+)-20\d{6}$`)
})

// Lookup returns the model that name means: an ID, an alias, or the ID of a
// dated snapshot of a model. Case does not matter. A snapshot keeps its ID.
func (c *Catalog) Lookup(name string) (agent.ModelInfo, bool) {
	c.load()
	name = strings.ToLower(strings.TrimSpace(name))
	if i, ok := c.names[name]; ok {
		return c.list[i], true
	}
	if parts := dated().FindStringSubmatch(name); parts != nil {
		if i, ok := c.names[parts[1]]; ok && strings.EqualFold(c.list[i].ID, parts[1]) {
			m := c.list[i]
			m.ID = name
			return m, true
		}
	}
	return agent.ModelInfo{}, false
}

// LookupAt is Lookup among the models of one provider.
func (c *Catalog) LookupAt(provider, name string) (agent.ModelInfo, bool) {
	if m, ok := c.Lookup(name); ok && m.Provider == provider {
		return m, true
	}
	for _, m := range c.list { // loaded by Lookup
		if m.Provider == provider && (strings.EqualFold(m.ID, name) || slices.ContainsFunc(m.Aliases, func(a string) bool { return strings.EqualFold(a, name) })) {
			return m, true
		}
	}
	return agent.ModelInfo{}, false
}

const maxNearest = 3

// Nearest returns up to three names that somebody who wrote name may have
// meant, the likeliest first.
func (c *Catalog) Nearest(name string) []string {
	c.load()
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return nil
	}
	type guess struct {
		id       string
		distance int
	}
	far := len(name)/3 + 2 // this is no slip any more
	var guesses []guess
	for _, m := range c.list {
		best := far
		for _, known := range append([]string{m.ID}, m.Aliases...) {
			known = strings.ToLower(known)
			d := near.Distance(name, known, best)
			if len(name) >= 3 && strings.Contains(known, name) {
				d = min(d, 1)
			}
			best = min(best, d)
		}
		if best < far {
			guesses = append(guesses, guess{m.ID, best})
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return cmp.Compare(a.distance, b.distance) })
	var ids []string
	for _, g := range guesses[:min(len(guesses), maxNearest)] {
		ids = append(ids, g.id)
	}
	return ids
}
