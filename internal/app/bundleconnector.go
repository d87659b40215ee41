package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/internal/extend/bundle"
	"dure/internal/extend/exthost"
	"dure/internal/extend/inbound"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
)

// bringers are the code of the connectors of a bundle: each of its connections has a process.
type bringers struct {
	box  *sandbox.Box
	host *exthost.Host
}

// connectorCode returns what runs the code of connectors; nil = no connection to a swarm needs it.
func (a *App) connectorCode(b *bundle.Bundle, to *bundle.Resource, code *BundleCode) (*bringers, error) {
	var secrets []string
	some := false
	for _, r := range b.Of(bundle.KindConnection) {
		c := r.Spec.(*bundle.Connection)
		from, ok := b.Find(c.Connector)
		if !ok || !leads(r, to) || from.Spec.(*bundle.Connector).Runtime == bundle.RuntimeBuiltin {
			continue
		}
		some = true
		values, err := resolvedOf(b, c.Secrets)
		if err != nil {
			return nil, bundleProblem(r.Name, err)
		}
		secrets = slices.AppendSeq(secrets, maps.Values(values))
	}
	if !some {
		return nil, nil
	}
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir, Extra: a.cfg.AddDirs})
	if err != nil {
		return nil, workspace.Problem(a.opts.Workdir, err)
	}
	find := finder(ws)
	o := &bringers{}
	o.box, _ = a.boxes.Box(ws.Root(), a.opts.Workdir, nil)
	o.host = exthost.New(exthost.Config{
		Box: o.box, Root: code.dir, Dir: ws.Root(), Env: a.commandEnv(), Grant: sandbox.Grant{Reads: []string{code.dir}},
		Node: func() (string, error) {
			if node := find("node"); node != "" {
				return node, nil
			}
			return "", errors.New("there is no node outside of the folder")
		},
		Approve: code.approves, Clean: without(secrets, a.patterns.Redact), Logger: a.opts.Logger,
	})
	return o, nil
}

func (o *bringers) close() error {
	if o == nil {
		return nil
	}
	o.host.Close()
	return o.box.Close()
}

// without returns what takes secrets out of a text, and then does more. Shorter ones would
// tear texts apart, and are none.
func without(secrets []string, more func(string) string) func(string) string {
	const least = 4 // bytes
	var pairs []string
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		if len(s) >= least {
			pairs = append(pairs, s, "[…]")
		}
	}
	known := strings.NewReplacer(pairs...)
	return func(s string) string { return more(known.Replace(s)) }
}

// leads reports whether a connection leads to a swarm. Those of packages lead nowhere.
func leads(r, to *bundle.Resource) bool {
	return r.Package == "" && r.Spec.(*bundle.Connection).Swarm.Name == to.Name
}

// connector returns a connection whose connector has code of its own.
func (o *bringers) connector(name string, from *bundle.Resource, config, secrets map[string]string) (line, error) {
	spec := from.Spec.(*bundle.Connector)
	if err := runs(from, spec.Runtime, bundle.RuntimeNode, bundle.RuntimeProcess); err != nil {
		return line{}, err
	}
	c := exthost.Connector{
		Runtime: exthost.Runtime(spec.Runtime), Entry: entryOf(from, spec.Runtime, spec.Entry), Config: config, Secrets: secrets,
	}
	if err := o.host.Suits(c); err != nil {
		return line{}, err
	}
	var events []string
	for _, s := range spec.Events {
		events = append(events, s.Name)
	}
	return line{name: name, visitors: true, start: func(well func()) (inbound.Connector, string, error) {
		return &coded{host: o.host, code: c, events: events, well: well}, filepath.ToSlash(c.Entry), nil
	}}, nil
}

// coded is a connector with code of its own.
type coded struct {
	host   *exthost.Host
	code   exthost.Connector
	events []string // that it may bring; none = any
	well   func()
}

// answerTime is how long code waits for an answer.
const answerTime = 5 * time.Minute

// Run implements [inbound.Connector].
func (c *coded) Run(ctx context.Context, sink inbound.Sink) error {
	var taken sync.WaitGroup
	defer taken.Wait()
	code := c.code
	code.Emit = func(emitting context.Context, e exthost.Emitted) (any, error) {
		if c.events != nil && !slices.Contains(c.events, e.Name) {
			return nil, fmt.Errorf("the connector has no event of that name: it has %s", strings.Join(c.events, ", "))
		}
		d, err := sink(emitting, bundle.Message{ID: e.ID, Event: e.Name, Properties: e.Properties, Text: e.Text, Key: e.Key})
		if err != nil {
			return nil, err
		}
		c.well()
		if !e.Answer {
			taken.Go(func() { _, _ = d.Wait(ctx) }) // its session says how that came out
			return map[string]any{"session": d.Session}, nil
		}
		wait, cancel := context.WithTimeout(emitting, answerTime)
		defer cancel()
		text, err := d.Wait(wait)
		if err != nil {
			return nil, errors.New("there is no answer yet")
		}
		said := map[string]any{"session": d.Session, "text": text}
		if len(d.SignIns) > 0 {
			said["authorization"] = d.SignIns
		}
		return said, nil
	}
	return c.host.Connect(ctx, code)
}
