package bundle

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"dure/agent/query"
	"dure/internal/base/near"
)

// Effective is an agent with all that it refers to.
type Effective struct {
	Agent      *Resource
	Model      *Resource // nil = it cannot be told
	Prompt     string    // that of a file among them
	Tools      []*Resource
	Extensions []*Resource
}

// Agent returns what an agent comes to.
func (b *Bundle) Agent(r Ref) (*Effective, bool) {
	e, ok := b.agents[r.ID()]
	return e, ok
}

// Calls returns the exports that models see of an agent, by name.
func (e *Effective) Calls() map[string]Export {
	all := map[string]Export{}
	for _, r := range e.Tools {
		if t, ok := r.Spec.(*Tool); ok {
			for _, x := range t.Exports {
				all[x.Call] = x
			}
		}
	}
	return all
}

// resolve follows what resources name.
func (l *loader) resolve() {
	for _, r := range l.b.Resources {
		if r.Spec == nil {
			continue
		}
		switch s := r.Spec.(type) {
		case *Agent:
			l.b.agents[r.ID()] = l.agent(r, s)
		case *Swarm:
			l.refer(s.Entry, r)
			for _, a := range s.Agents {
				if a.ID() != s.Entry.ID() {
					l.refer(a, r)
				}
			}
		case *Tool:
			l.tool(r, s)
		case *Extension:
			l.extension(r, s)
		case *Connector:
			l.entry(r, s.entry, s.Runtime, s.Entry)
		case *Connection:
			l.connection(r, s)
		case *Model:
			l.value(s.APIKey, true)
		case *OAuthApp:
			l.value(s.ClientID, false)
			l.value(s.ClientSecret, true)
		}
	}
}

func (l *loader) agent(r *Resource, a *Agent) *Effective {
	e := &Effective{Agent: r, Model: l.refer(a.Model, r), Prompt: a.Prompt}
	if a.PromptFile != "" {
		if l.entry(r, a.promptNode, RuntimeNode, a.PromptFile) {
			data, err := read(r.src.FS, path.Clean(a.PromptFile))
			switch {
			case err != nil:
				l.at(query.BundleEntry, a.promptNode, "spec.prompt.systemRef", "look at its name and its permissions", "the file cannot be read: %s", reason(err))
			case len(data) > maxFile:
				l.at(query.BundleFileTooLarge, a.promptNode, "spec.prompt.systemRef", "shorten it", "the file has more than %d bytes", maxFile)
			default:
				e.Prompt = string(bytes.ToValidUTF8(data, []byte("\ufffd")))
			}
		}
	}
	e.Tools, e.Extensions = l.used(r, a.Tools), l.used(r, a.Extensions)
	calls := map[string]string{}
	for _, t := range e.Tools {
		spec, _ := t.Spec.(*Tool)
		if spec == nil {
			continue
		}
		for _, x := range spec.Exports {
			if before, twice := calls[x.Call]; twice && x.Call != "" && before != t.ID() {
				l.at(query.BundleDuplicate, r.n.get("spec").get("tools"), "spec.tools", "rename one of them", "models would know two tools as %s: those of %s and %s", x.Call, before, t.ID())
			}
			calls[x.Call] = t.ID()
		}
	}
	for i, name := range a.RequiredTools {
		fits := func(call string) bool { return call == name || strings.HasPrefix(call, name+"__") }
		names := slices.Sorted(maps.Keys(calls))
		if slices.ContainsFunc(names, fits) || len(l.lacks) > 0 {
			continue
		}
		fix := "name a tool of the agent"
		if like := near.Nearest(name, names); like != "" {
			fix = "did you mean " + like + "?"
		}
		at := a.required
		if i < len(at.items) {
			at = at.items[i]
		}
		l.at(query.BundleRefMissing, at, index("spec.requiredTools", i), fix, "the agent has no tool %s", name)
	}
	return e
}

// used returns the resources that an agent uses, each once: the last that names one says
// what is different in it.
func (l *loader) used(r *Resource, uses []Use) []*Resource {
	var order []string
	last := map[string]*Resource{}
	add := func(one *Resource, u Use) {
		if one == nil {
			return
		}
		id := one.ID()
		if last[id] == nil {
			order = append(order, id)
		}
		last[id] = l.changed(one, u)
	}
	for _, u := range uses {
		if u.Ref.Given() {
			add(l.refer(u.Ref, r), u)
			continue
		}
		found := false
		for _, one := range l.b.Resources {
			if one.Kind == u.Kind && one.Package == r.Package && (u.Name == "" || one.Name == u.Name) && fit(one.Labels, u.Labels) {
				found = true
				add(one, u)
			}
		}
		if !found {
			l.at(query.BundleRefMissing, u.n, u.path, "look at the labels", "no %s fits the selector %s", u.Kind, strings.TrimSpace(u.Name+" "+texts(u.Labels)))
		}
	}
	all := make([]*Resource, len(order))
	for i, id := range order {
		all[i] = last[id]
	}
	return all
}

func fit(labels, want map[string]string) bool {
	for k, v := range want {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// changed returns a resource with what a use says otherwise.
func (l *loader) changed(r *Resource, u Use) *Resource {
	if u.overrides == nil && u.Config == nil {
		return r
	}
	one := *r
	if u.overrides != nil {
		if name := u.overrides.get("metadata").get("name"); name != nil {
			l.at(query.BundleSchema, name, join(u.path, "overrides.metadata.name"), "remove it", "the name of a resource cannot be overridden")
			return r
		}
		one.n = merge(r.n, u.overrides)
		if one.Spec = readSpec(&l.problems, &one); one.Spec == nil {
			return r
		}
		if t, ok := one.Spec.(*Tool); ok {
			l.tool(&one, t)
		}
		meta := &fields{ps: &problems{}, n: one.n.get("metadata"), path: "metadata"}
		one.Labels = meta.words("labels")
	}
	if e, ok := one.Spec.(*Extension); ok && u.Config != nil {
		own := *e
		own.Config = over(e.Config, u.Config)
		one.Spec = &own
	}
	return &one
}

// over lays the fields of one object over those of another.
func over(base, top json.RawMessage) json.RawMessage {
	all, more := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(base) > 0 && json.Unmarshal(base, &all) != nil || json.Unmarshal(top, &more) != nil {
		return top
	}
	maps.Copy(all, more)
	data, err := json.Marshal(all)
	if err != nil {
		return top
	}
	return data
}

func (l *loader) extension(r *Resource, e *Extension) {
	switch e.Runtime {
	case RuntimeBuiltin:
		if e.Entry == "" || l.opts.Compiled == nil {
			break
		}
		version, ok := l.opts.Compiled(e.Entry)
		if ok {
			e.version = version
			return
		}
	case RuntimeHTTP, RuntimeMCP:
		l.at(query.BundleSchema, r.n, "spec.runtime", "write it as a module, or as an executable", "there are no extensions of the runtime %s", e.Runtime)
		return
	default:
		l.entry(r, e.entry, e.Runtime, e.Entry)
		return
	}
	if e.Entry != "" {
		l.at(query.BundleEntry, e.entry, "spec.entry", "name an extension that the program has", "the program has no extension %s", e.Entry)
	}
}

func (l *loader) tool(r *Resource, t *Tool) {
	switch t.Runtime {
	case RuntimeHTTP, RuntimeMCP:
	case RuntimeBuiltin:
		if l.kit(t) {
			break
		}
		if t.Entry != "" && (l.opts.Builtin == nil || !l.opts.Builtin(t.Entry)) {
			l.at(query.BundleEntry, t.entry, "spec.entry", "name a tool that the program has", "the program has no tool %s", t.Entry)
		}
	default:
		l.entry(r, t.entry, t.Runtime, t.Entry)
	}
	app := l.refer(t.Auth.App, r)
	if app == nil || app.Spec == nil {
		return
	}
	for i, s := range t.Auth.Scopes {
		if !slices.Contains(app.Spec.(*OAuthApp).Scopes, s) {
			l.at(query.BundleSchema, t.Auth.n, index(join(t.Auth.path, "scopes"), i), "add it to the scopes of the OAuthApp", "the scope %q is none of those of %s", s, app.ID())
		}
	}
}

// kit reports whether a tool is a kit of the program, and checks what it exports of that.
func (l *loader) kit(t *Tool) bool {
	if l.opts.Kit == nil {
		return false
	}
	has := l.opts.Kit(t.Entry)
	if len(has) == 0 {
		return false
	}
	t.Kit = true
	for _, x := range t.Exports {
		name := x.Name[strings.LastIndexByte(x.Name, '.')+1:]
		if slices.Contains(has, name) {
			continue
		}
		fix := "name one of: " + strings.Join(has, ", ")
		if like := near.Nearest(name, has); like != "" {
			fix = "did you mean " + like + "?"
		}
		l.at(query.BundleEntry, x.n, join(x.path, "name"), fix, "the kit %s has no %s", t.Entry, x.Name)
	}
	return true
}

// entry checks that a file of a resource is there, and in its folder.
func (l *loader) entry(r *Resource, n *node, runtime, file string) bool {
	if file == "" || runtime != RuntimeNode && runtime != RuntimeProcess || r.src == nil {
		return false
	}
	clean := path.Clean(strings.TrimPrefix(file, "./"))
	if strings.Contains(file, `\`) || path.IsAbs(file) || !fs.ValidPath(clean) || slices.Contains(strings.Split(file, "/"), "..") {
		l.at(query.BundleTraversal, n, "spec.entry", "name a file in the folder of the bundle", "%s leads out of the folder of the bundle", file)
		return false
	}
	info, err := fs.Stat(r.src.FS, clean)
	switch {
	case err != nil:
		l.at(query.BundleEntry, n, "spec.entry", "write the file, or mend the path", "the file %s cannot be used: %s", file, reason(err))
		return false
	case !info.Mode().IsRegular():
		l.at(query.BundleEntry, n, "spec.entry", "name a file", "%s is no ordinary file", file)
		return false
	}
	return true
}

func (l *loader) connection(r *Resource, c *Connection) {
	for _, v := range c.Config {
		l.value(v, false)
	}
	for _, v := range c.Secrets {
		l.value(v, true)
	}
	var known []string
	if one := l.refer(c.Connector, r); one != nil && one.Spec != nil {
		for _, s := range one.Spec.(*Connector).Events {
			known = append(known, s.Name)
		}
	}
	swarm := l.swarmOf(r, c)
	for _, rule := range c.Rules {
		if rule.Event != "" && len(known) > 0 && !slices.Contains(known, rule.Event) {
			fix := "name one of: " + strings.Join(known, ", ")
			if like := near.Nearest(rule.Event, known); like != "" {
				fix = "did you mean " + like + "?"
			}
			l.at(query.BundleRefMissing, r.n.get("spec").get("ingress"), "spec.ingress", fix, "%s brings no event %s", c.Connector.ID(), rule.Event)
		}
		if l.refer(rule.Agent, r) == nil || swarm == nil || swarm.Spec == nil {
			continue
		}
		if !slices.ContainsFunc(swarm.Spec.(*Swarm).Agents, func(a Ref) bool { return a.ID() == rule.Agent.ID() }) {
			l.at(query.BundleSchema, rule.Agent.n, rule.Agent.Path, "add it to the agents of the swarm", "%s is none of the agents of %s", rule.Agent.ID(), swarm.ID())
		}
	}
}

// swarmOf is the swarm that a connection leads to.
func (l *loader) swarmOf(r *Resource, c *Connection) *Resource {
	if c.Swarm.Given() {
		return l.refer(c.Swarm, r)
	}
	if one := l.b.Swarm(""); one != nil {
		c.Swarm = Ref{Kind: KindSwarm, Name: one.Name, Package: one.Package}
		return one
	}
	l.at(query.BundleSchema, r.n, "spec.swarmRef", "write: swarmRef: Swarm/NAME", "it cannot be told which swarm is meant")
	return nil
}

// Swarm returns a swarm by its name; without one, that which is named default, or the only
// one. nil = there is none such.
func (b *Bundle) Swarm(name string) *Resource {
	all := slices.DeleteFunc(b.Of(KindSwarm), func(r *Resource) bool { return r.Package != "" })
	for _, r := range all {
		if r.Name == name || name == "" && r.Name == "default" {
			return r
		}
	}
	if name == "" && len(all) == 1 {
		return all[0]
	}
	return nil
}
