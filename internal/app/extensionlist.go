package app

import (
	"maps"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/extend/bundle"
	"dure/internal/extend/exthost"
)

// shippedExtensions are those that dure itself has compiled in.
var shippedExtensions = []exthost.Compiled{exthost.Logging}

// compiled returns the extension of a name that is compiled in.
func (a *App) compiled(name string) (exthost.Compiled, bool) {
	for _, x := range slices.Concat(a.opts.Extensions, shippedExtensions) {
		if x.Name == name {
			return x, true
		}
	}
	return exthost.Compiled{}, false
}

func (a *App) compiledVersion(name string) (string, bool) {
	x, ok := a.compiled(name)
	return x.Version, ok
}

// inGo is an extension that is compiled in: the one of its entry, which loading has found.
func (a *App) inGo(x exthost.Extension, entry string) exthost.Extension {
	c, _ := a.compiled(entry)
	about := map[string]string{"version": c.Version}
	maps.Copy(about, x.Metadata)
	return exthost.Extension{Name: x.Name, Register: c.Register, Config: x.Config, Metadata: about, State: x.State}
}

// Without has extensions of a bundle not started, by somebody's word: what they guard goes
// unguarded.
func (r *BundleRun) Without(names []string) error {
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
func (k *BundleCode) left(e *bundle.Effective) []*bundle.Resource {
	return slices.DeleteFunc(slices.Clone(e.Extensions), func(x *bundle.Resource) bool { return k.off[x.Name] })
}
