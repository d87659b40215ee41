package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/base/hosts"
	"dure/internal/extend/bundle"
	"dure/internal/extend/exthost"
	"dure/internal/extend/oauth"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/catalog"
)

// BundleCode is the code of a swarm of a bundle: what its agents have of tools that are no
// part of the program. It is not changed once it is made, but for what it remembers of the
// code that has run.
type BundleCode struct {
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

// maxPosted is the most bytes of an answer that a tool behind an address gives.
const maxPosted = 8 << 20

// runs says why code of a bundle cannot be run; nil = it can.
func runs(r *bundle.Resource, runtime string, known ...string) error {
	for _, k := range known {
		if runtime == k {
			return nil
		}
	}
	return unrunnable(r.ID(), runtime)
}

// approves keeps code as it was when the bundle was started: what has changed since is not
// what somebody has looked at, and may be the work of a model. Who works on a bundle says
// that they want that run too.
func (k *BundleCode) approves(entry, hash string) error {
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
func (k *BundleCode) locked(entry string) bool {
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
func (k *BundleCode) of(kind string) *bundle.Effective {
	if k == nil {
		return nil
	}
	return k.agents[kind]
}

// has reports of the tools in a catalog which an agent has by its bundle: those are its own,
// whatever the agent that it works for has. nil = none is.
func (k *BundleCode) has(cat *catalog.Catalog, kind string) func(agent.Spec) bool {
	if k.of(kind) == nil {
		return nil
	}
	return func(s agent.Spec) bool {
		e, ok := cat.Get(s.Name)
		return ok && e.From == fromBundle && (e.Source == catalog.Configured || e.Source == catalog.Extension)
	}
}

// either is what one of two lists of tools has; nil is all of the first, and none of the second.
func either(a, b func(agent.Spec) bool) func(agent.Spec) bool {
	if a == nil || b == nil {
		return a
	}
	return func(s agent.Spec) bool { return a(s) || b(s) }
}

// codeRun is the code that runs for a session.
type codeRun struct {
	app       *App
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

// runCode puts the tools of the bundle that the agent of a session has into its catalog.
// nil = it has none.
func (a *App) runCode(c toolConfig, kind string) (*codeRun, error) {
	k := a.opts.Flags.Code
	e := k.of(kind)
	if e == nil {
		return nil, nil
	}
	run := &codeRun{effective: e, app: a, agent: kind, instance: c.ID, cat: c.cat, standing: standing{build: c.Session}}
	run.host = exthost.New(exthost.Config{
		Box: c.box, Root: k.dir, Dir: c.ws.Root(), Env: a.commandEnv(), Grant: sandbox.Grant{Reads: []string{k.dir}},
		Node: func() (string, error) {
			if node := c.find("node"); node != "" {
				return node, nil
			}
			return "", errors.New("there is no node outside of the folder")
		},
		Approve: k.approves, Post: a.post, Settle: c.Reach.Settle, Clean: a.patterns.Redact, Logger: a.opts.Logger,
		Invoke: run.invoke, Asks: run.asks,
	})
	k.follows(c.ID, c.Parent)
	err := run.tools(c, k, e)
	if err == nil {
		err = run.extend(e)
	}
	if err != nil {
		run.close()
		return nil, bundleProblem(kind, err)
	}
	return run, nil
}

// tools registers the tools of an agent.
func (r *codeRun) tools(c toolConfig, k *BundleCode, e *bundle.Effective) error {
	var all []agent.Tool
	kits := r.app.kits(c, k, e)
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
		settle := c.Reach.Settle
		if c.Child != nil {
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
	return brought(c.cat, catalog.Configured, all)
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

func (r *codeRun) close() {
	if r == nil {
		return
	}
	if r.set != nil {
		r.hush()
		r.set.Close()
	}
	r.host.Close()
}

// post asks a tool behind an address, as far as the network mode lets it. It is not sent
// anywhere else.
func (a *App) post(ctx context.Context, q exthost.Request) (exthost.Response, error) {
	var none exthost.Response
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.URL, strings.NewReader(string(q.Body)))
	if err != nil {
		return none, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", q.Key)
	if q.Authorization != "" {
		req.Header.Set("Authorization", q.Authorization)
	}
	by := a.transport.Clone()
	by.DialContext, by.DisableKeepAlives = hosts.Dialer(true), true
	client := &http.Client{
		Transport:     signInWay{a, by},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return none, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPosted+1))
	return exthost.Response{Status: resp.StatusCode, Body: body}, err
}
