package bundle

import (
	"cmp"

	"dure/agent/query"
)

// Graph returns what names what, in the order of the resources.
func (b *Bundle) Graph() []query.BundleEdge {
	var all []query.BundleEdge
	for _, r := range b.Resources {
		add := func(to, as string) { all = append(all, query.BundleEdge{From: r.ID(), To: to, As: as}) }
		ref := func(to Ref, as string) {
			if to.Given() {
				if to.Package == "" {
					to.Package = r.Package
				}
				add(to.ID(), as)
			}
		}
		switch s := r.Spec.(type) {
		case *Package:
			for _, d := range s.Dependencies {
				add(d.Name+":Package/"+d.Name, "needs")
			}
		case *Agent:
			ref(s.Model, "model")
			e := b.agents[r.ID()]
			for _, t := range e.Tools {
				add(t.ID(), "tool")
			}
			for _, x := range e.Extensions {
				add(x.ID(), "extension")
			}
		case *Swarm:
			ref(s.Entry, "entry")
			for _, a := range s.Agents {
				if a.ID() != s.Entry.ID() {
					ref(a, "agent")
				}
			}
		case *Tool:
			ref(s.Auth.App, "sign-in")
		case *Connection:
			ref(s.Connector, "from")
			ref(s.Swarm, "to")
			for _, rule := range s.Rules {
				ref(rule.Agent, "route")
			}
		}
	}
	return all
}

// Report returns what a bundle comes to, for front-ends.
func (b *Bundle) Report(list []Problem) query.BundleInfo {
	info := query.BundleInfo{OK: !Failed(list), Problems: list, Resources: []query.BundleResource{}, Edges: b.Graph()}
	if info.Problems == nil {
		info.Problems = []Problem{}
	}
	if info.Edges == nil {
		info.Edges = []query.BundleEdge{}
	}
	for _, r := range b.Resources {
		one := query.BundleResource{ID: r.ID(), Kind: r.Kind, Name: r.Name, Package: r.Package, File: r.Place.File, Line: r.Place.Line}
		if e, ok := r.Spec.(*Extension); ok {
			one.Runtime, one.Version = e.Runtime, cmp.Or(r.Labels["version"], e.version)
		}
		info.Resources = append(info.Resources, one)
	}
	return info
}
