package swarms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/exthost"
	"dure/internal/extend/bundle/toolkit"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// Code is the code of a swarm of a bundle: what its agents have of tools that are no
// part of the program. It is not changed once it is made, but for what it remembers of the
// code that has run.
type Code struct {
	dir    string
	file   string                       // the one file of it that counts; "" = all
	agents map[string]*bundle.Effective // by the names of their types
	locks  []bundle.Lock                // packages that code may be from
	apps   map[string]*oauth.App        // by the tools that sign in with them
	off    map[string]bool              // extensions that are not started
	Reload bool                         // code that has changed is run as it is then; set before anything runs

	mu       sync.Mutex
	ran      map[string]string // hash of each entry as it was at the start, or first ran; guarded by mu
	subjects map[string]string // for whom sessions act, but for those of the person here; guarded by mu
	parents  map[string]string // of sessions that work for others; guarded by mu
}

// fromBundle is who brings the tools of a bundle to a catalog.
const fromBundle = "bundle"

// runs says why code of a bundle cannot be run; nil = it can.
func runs(r *bundle.Resource, runtime string, known ...string) error {
	if slices.Contains(known, runtime) {
		return nil
	}
	return &agent.Problem{
		Code: agent.ProblemBundle, Message: fmt.Sprintf("%s has code of its own (%s), which dure bundle run does not start", r.ID(), runtime),
		Fix: "use another runtime, such as node, process or builtin",
	}
}

// approves keeps code as it was when the bundle was started: what has changed since is not
// what somebody has looked at, and may be the work of a model. Who works on a bundle says
// that they want that run too.
func (k *Code) approves(entry, hash string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, ran := k.ran[entry]
	switch {
	case ran && before == hash:
		return nil
	case ran && before == unseen && !k.Reload:
		return errors.New("it could not be looked at when the bundle was started; look at it, and start the bundle again")
	case ran && !k.Reload:
		return errors.New("it was changed since the bundle was started; look at it, and start the bundle again")
	case !k.locked(entry):
		return errors.New("its package is not what was locked any more; look at what has changed in it, then: dure bundle lock")
	}
	k.ran[entry] = hash
	return nil
}

// locked reports whether the package that code is from is as it was locked; that of the bundle
// itself is from none.
func (k *Code) locked(entry string) bool {
	i := slices.IndexFunc(k.locks, func(l bundle.Lock) bool { return strings.HasPrefix(entry, l.Dir+"/") })
	if i < 0 {
		return true
	}
	root, err := os.OpenRoot(k.dir)
	if err != nil {
		return false
	}
	defer root.Close()
	files, err := fs.Sub(root.FS(), k.locks[i].Dir)
	return err == nil && k.locks[i].Same(files)
}

// entryOf is where the code of a resource is in the folder of the bundle: it is named in that
// of its package. What is no file is as it is.
func entryOf(r *bundle.Resource, runtime, entry string) string {
	if runtime == bundle.RuntimeNode || runtime == bundle.RuntimeProcess {
		return path.Join(r.Dir(), entry)
	}
	return entry
}

// of returns what the agent of a type has; nil = the type is none of the bundle's.
func (k *Code) of(kind string) *bundle.Effective {
	if k == nil {
		return nil
	}
	return k.agents[kind]
}

// Has reports of the tools in a catalog which an agent has by its bundle: those are its own,
// whatever the agent that it works for has. nil = none is.
func (k *Code) Has(cat *catalog.Catalog, kind string) func(agent.Spec) bool {
	if k.of(kind) == nil {
		return nil
	}
	return func(s agent.Spec) bool {
		e, ok := cat.Get(s.Name)
		return ok && e.From == fromBundle && (e.Source == catalog.Configured || e.Source == catalog.Extension)
	}
}

// Dir is the folder of the bundle.
func (k *Code) Dir() string { return k.dir }

// A Session is the code that runs for a session.
type Session struct {
	ext       *Extension
	effective *bundle.Effective
	host      *exthost.Host
	set       *exthost.Set // of extensions; nil = there are none
	agent     string
	instance  string
	cat       *catalog.Catalog
	standing  // where the turn is that extensions take part in

	mu    sync.Mutex
	added []agent.Spec // tools of extensions, as they are in the catalog; guarded by mu
	shown []agent.Spec // the tools that extensions have made of a catalog; guarded by mu
}

// A Place is a session that code runs for, and where it works.
type Place struct {
	plug.Session
	Catalog   *catalog.Catalog
	Workspace *workspace.Workspace
	Box       *sandbox.Box
	Find      func(program string) string // of programs that are started without asking
	Skills    func() []toolkit.Skill      // nil = there are none
}

// Begin puts the tools of the bundle that a session's agent, of a type, has into its catalog.
// nil = it has none.
func (ext *Extension) Begin(p Place, kind string) (*Session, error) {
	k := ext.cfg.Code
	e := k.of(kind)
	if e == nil {
		return nil, nil
	}
	run := &Session{effective: e, ext: ext, agent: kind, instance: p.ID, cat: p.Catalog, standing: standing{build: p.Session}}
	run.host = exthost.New(exthost.Config{
		Box: p.Box, Root: k.dir, Dir: p.Workspace.Root(), Env: ext.cfg.Env(), Grant: sandbox.Grant{Reads: []string{k.dir}}, Node: node(p.Find),
		Approve: k.approves, Post: ext.cfg.Post, Settle: p.Reach.Settle, Clean: ext.cfg.Redact, Logger: ext.cfg.Logger,
		Invoke: func(ctx context.Context, server, tool string, input json.RawMessage) (agent.Result, error) {
			return ext.cfg.Invoke(ctx, p, server, tool, input)
		},
		Asks: func(ctx context.Context, server, tool string) (bool, error) {
			return ext.cfg.Asks(ctx, p, server, tool)
		},
	})
	k.follows(p.ID, p.Parent)
	err := run.tools(p, k, e)
	if err == nil {
		err = run.extend(e)
	}
	if err != nil {
		run.Close()
		return nil, problem(kind, err)
	}
	return run, nil
}

// node returns what finds Node.js.
func node(find func(program string) string) func() (string, error) {
	return func() (string, error) {
		if node := find("node"); node != "" {
			return node, nil
		}
		return "", errors.New("there is no node outside of the folder")
	}
}

// tools registers the tools of an agent.
func (r *Session) tools(p Place, k *Code, e *bundle.Effective) error {
	var all []agent.Tool
	kits := r.ext.kits(p, k, e)
	for _, t := range e.Tools {
		spec := t.Spec.(*bundle.Tool)
		if spec.Kit {
			for _, x := range spec.Exports {
				if one, ok := kits(spec.Entry, x.Name, x.Call, x.Description); ok {
					all = append(all, one)
				}
			}
			continue
		}
		if spec.Runtime == bundle.RuntimeBuiltin {
			continue
		}
		settle := p.Reach.Settle
		if p.Child != nil {
			settle = nil
		}
		sign, err := r.signs(k, t, settle)
		if err != nil {
			return err
		}
		from := exthost.Resource{Sign: sign, Name: t.Name, Runtime: exthost.Runtime(spec.Runtime), Entry: entryOf(t, spec.Runtime, spec.Entry), ErrorLimit: spec.ErrorLimit}
		for _, x := range spec.Exports {
			from.Exports = append(from.Exports, exthost.Export{Name: x.Name, Spec: agent.Spec{
				Name: x.Call, Description: x.Description, Input: x.Parameters,
			}})
		}
		tools, err := r.host.Tools(from)
		if err != nil {
			return err
		}
		all = append(all, tools...)
	}
	return brought(p.Catalog, catalog.Configured, all)
}

// brought puts tools into a catalog, all of them, under their own names: what an agent of a
// bundle is told of its tools holds.
func brought(cat *catalog.Catalog, source catalog.Source, tools []agent.Tool) error {
	var errs []error
	for _, r := range cat.Set(source, fromBundle, tools) {
		errs = append(errs, fmt.Errorf("the tool %s: %w", r.Name, r.Err))
	}
	for _, t := range tools {
		if e, ok := cat.Get(t.Spec().Name); errs == nil && (!ok || e.From != fromBundle) {
			errs = append(errs, fmt.Errorf("the tool %s: there is another one of that name", t.Spec().Name))
		}
	}
	return errors.Join(errs...)
}

// Close ends the code.
func (r *Session) Close() {
	if r == nil {
		return
	}
	if r.set != nil {
		r.hush()
		r.set.Close()
	}
	r.host.Close()
}
