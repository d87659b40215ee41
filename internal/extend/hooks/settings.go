package hooks

import (
	"encoding/json"
	"slices"
)

// Settings are the hooks of all files, and what applies to all of them.
type Settings struct {
	Sources []Defined // the administrator's first, then the weaker layers before the stronger

	Off         bool // no hooks but the administrator's run
	ManagedOff  bool // nor do those
	ManagedOnly bool // only the administrator's, and those of plugins that he has switched on

	// URLs are patterns of addresses that hooks may ask, and OwnURLs those of them that
	// no repository has named; nil = any.
	URLs, OwnURLs []string

	// Vars are variables of the environment that headers of hooks may have, as far as a
	// hook asks for them; nil = any.
	Vars []string

	// Leave are variables that hooks may leave behind for later commands although they
	// decide which programs run: PATH and the like.
	Leave []string
}

// Defined is the value of "hooks" in one source.
type Defined struct {
	Source
	JSON    json.RawMessage
	Managed bool // by the word of the administrator: it runs where only his hooks do
}

// On returns the sources whose hooks run, with more of them.
func (s Settings) On(more ...Defined) []Defined {
	return slices.DeleteFunc(slices.Concat(s.Sources, more), func(d Defined) bool {
		return s.ManagedOff || (s.Off || s.ManagedOnly && d.Layer != HostLayer) && !d.Managed
	})
}

// Read reads the hooks of sources. What cannot be read is left out and told.
func Read(sources []Defined) (all []Hook, faults []Fault) {
	for _, s := range sources {
		list, bad := Parse(s.JSON, s.Source)
		all, faults = append(all, list...), append(faults, bad...)
	}
	return all, faults
}
