package swarms

import (
	"maps"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/exthost"
)

// shippedExtensions are those that dure itself has compiled in.
var shippedExtensions = []exthost.Compiled{exthost.Logging}

// compiled returns the extension of a name that is compiled in.
func (ext *Extension) compiled(name string) (exthost.Compiled, bool) {
	for _, x := range slices.Concat(ext.cfg.Compiled, shippedExtensions) {
		if x.Name == name {
			return x, true
		}
	}
	return exthost.Compiled{}, false
}

// inGo is an extension that is compiled in: the one of its entry, which loading has found.
func (ext *Extension) inGo(x exthost.Extension, entry string) exthost.Extension {
	c, _ := ext.compiled(entry)
	about := map[string]string{"version": c.Version}
	maps.Copy(about, x.Metadata)
	return exthost.Extension{Name: x.Name, Register: c.Register, Config: x.Config, Metadata: about, State: x.State}
}

// Without has extensions of a bundle not started, by somebody's word: what they guard goes
// unguarded.
func (r *Run) Without(names []string) error {
	known := map[string]bool{}
	for _, e := range r.Code.agents {
		for _, x := range e.Extensions {
			known[x.Name] = true
		}
	}
	r.Code.off = map[string]bool{}
	for _, name := range names {
		if !known[name] {
			return &agent.Problem{
				Code: agent.ProblemBundle, Message: "no agent of the swarm has an extension " + name,
				Fix: "name one of: " + strings.Join(slices.Sorted(maps.Keys(known)), ", "),
			}
		}
		r.Code.off[name] = true
	}
	return nil
}

// left are the extensions of an agent that are started.
func (k *Code) left(e *bundle.Effective) []*bundle.Resource {
	return slices.DeleteFunc(slices.Clone(e.Extensions), func(x *bundle.Resource) bool { return k.off[x.Name] })
}
