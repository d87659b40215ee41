package servers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// State is whether a server is used.
type State string

// The states.
const (
	Ready     State = "ready"
	Waiting   State = "waiting"   // a project names it, and nobody has said yes to it
	Changed   State = "changed"   // somebody has said yes to another definition of that name
	Rejected  State = "rejected"  // somebody has said no
	Untrusted State = "untrusted" // the folder that names it is not trusted
	Off       State = "off"
	Forbidden State = "forbidden" // by the administrator or a list of the person's own
	Broken    State = "broken"    // a variable is missing
	Hidden    State = "hidden"    // a stronger source names another server so
)

// A Known is a server that some source names, and whether it is used.
type Known struct {
	Definition        // as it was written
	Expanded   Server // with its variables; only of Ready
	State      State
	Why        string // "" = State says it
}

// Settings are what the settings say of servers.
type Settings struct {
	AllProject bool     // servers of trusted projects are used without a question
	Enabled    []string // and those of these names
	Disabled   []string // no server of a project of these names is used

	Policy
	ManagedOnly bool // what others allow does not count: only servers of the administrator's own list
}

// Config is what decides on servers.
type Config struct {
	Definitions []Definition
	Choices     Choices
	Settings

	// Lookup returns variables for definitions; Secret says which of them no project
	// gets. Required.
	Lookup func(name string) (string, bool)
	Secret func(name string) bool
}

// rank orders scopes: the smallest one counts.
var rank = map[string]int{Managed: 0, Given: 1, Local: 2, Project: 3, User: 4, Agent: 5, Plugin: 6}

// Resolve says which servers are used. Of those of one name the one of the strongest scope
// counts, whether it is used or not: a weaker one never takes the place of one that was
// switched off or rejected. They are in the order of their names, the strongest first.
func Resolve(c Config) []Known {
	list := slices.Clone(c.Definitions)
	slices.SortStableFunc(list, func(a, b Definition) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(rank[a.Scope], rank[b.Scope]))
	})
	var all []Known
	for i, d := range list {
		k := Known{Definition: d}
		if i > 0 && list[i-1].Name == d.Name {
			k.State, k.Why = Hidden, "the one in "+winner(all, d.Name).Source+" counts"
		} else {
			c.judge(&k)
		}
		all = append(all, k)
	}
	return all
}

func winner(all []Known, name string) Known {
	return all[slices.IndexFunc(all, func(k Known) bool { return k.Name == name })]
}

// judge decides on one definition.
func (c Config) judge(k *Known) {
	d := k.Definition
	if c.ManagedOnly && d.Scope != Managed {
		k.State, k.Why = Forbidden, "only the administrator's servers are used"
		return
	}
	if d.Off || slices.Contains(c.Choices.Off, d.Name) {
		k.State = Off
		return
	}
	if k.State = c.project(d); k.State != Ready {
		return
	}
	if d.Scope == Project {
		for _, name := range d.Vars {
			if c.Secret(name) {
				k.State, k.Why = Broken, fmt.Sprintf("a project gets no keys: %s is one", name)
				return
			}
		}
	}
	s, err := d.Expand(func(name string) (string, bool) {
		if d.Lookup != nil {
			if v, ok := d.Lookup(name); ok {
				return v, true
			}
		}
		return c.Lookup(name)
	})
	if err != nil {
		k.State, k.Why = Broken, err.Error()
		return
	}
	if why := c.Policy.Forbids(s); d.Scope != Managed && why != "" {
		k.State, k.Why = Forbidden, why
		return
	}
	k.Expanded = s
}

// project decides on what a project names; of other scopes nobody is asked.
func (c Config) project(d Definition) State {
	if d.Scope != Project {
		return Ready
	}
	approved, was := c.Choices.Approved[d.Name]
	switch {
	case slices.ContainsFunc(c.Disabled, func(name string) bool { return called(d.Name, name) }):
		return Off
	case c.Choices.Rejected[d.Name] == d.Hash && d.Hash != "":
		return Rejected
	case !d.Trusted:
		return Untrusted
	case d.Hash == "":
		return Waiting
	case was && approved == d.Hash, c.AllProject, slices.Contains(c.Enabled, d.Name):
		return Ready
	case was:
		return Changed
	}
	return Waiting
}
