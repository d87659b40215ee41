package swarms

import (
	"context"
	"errors"

	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/exthost"
	"dure/internal/safety/sandbox"
)

// unseen stands for code that could not be looked at when the bundle was started: whatever it
// is later, it is something else.
const unseen = "unseen"

// entry is where code of a bundle is.
type entry struct{ runtime, path string }

// pin keeps all code of a swarm as it is now, before any model works: what changes from now on
// is not run, also when it has not run yet.
func (k *Code) pin(ext *Extension, b *bundle.Bundle, swarm *bundle.Resource) error {
	all := k.entries(b, swarm)
	if len(all) == 0 {
		return nil
	}
	box, root, _, err := ext.cfg.Box()
	if err != nil {
		return err
	}
	host := exthost.New(exthost.Config{
		Box: box, Root: k.dir, Dir: root, Grant: sandbox.Grant{Reads: []string{k.dir}}, Approve: k.approves, Logger: ext.cfg.Logger,
	})
	for e := range all {
		if err := host.Look(context.Background(), exthost.Runtime(e.runtime), e.path); err != nil {
			ext.cfg.Logger.Warn("code of a bundle cannot be looked at", "entry", e.path, "error", err)
			k.miss(e.path)
		}
	}
	host.Close()
	return errors.Join(box.Close())
}

// entries are those of the tools and extensions of the agents of a swarm, and of the connectors
// that lead to it.
func (k *Code) entries(b *bundle.Bundle, swarm *bundle.Resource) map[entry]bool {
	all := map[entry]bool{}
	add := func(r *bundle.Resource, runtime, path string) {
		if runtime == bundle.RuntimeNode || runtime == bundle.RuntimeProcess {
			all[entry{runtime, entryOf(r, runtime, path)}] = true
		}
	}
	for _, e := range k.agents {
		for _, t := range e.Tools {
			spec := t.Spec.(*bundle.Tool)
			add(t, spec.Runtime, spec.Entry)
		}
		for _, x := range e.Extensions {
			spec := x.Spec.(*bundle.Extension)
			add(x, spec.Runtime, spec.Entry)
		}
	}
	for _, r := range b.Of(bundle.KindConnection) {
		if from, ok := b.Find(r.Spec.(*bundle.Connection).Connector); ok && leads(r, swarm) {
			spec := from.Spec.(*bundle.Connector)
			add(from, spec.Runtime, spec.Entry)
		}
	}
	return all
}

// miss has code not run that could not be looked at, but for what its package says of it.
func (k *Code) miss(entry string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.ran[entry]; !ok && k.locked(entry) {
		k.ran[entry] = unseen
	}
}
