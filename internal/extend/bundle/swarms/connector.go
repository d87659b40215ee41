package swarms

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
	"dure/internal/extend/bundle/exthost"
	"dure/internal/extend/bundle/inbound"
	"dure/internal/safety/sandbox"
)

// connectors are the code of the connectors of a bundle: each of its connections has a process.
type connectors struct {
	box  *sandbox.Box
	host *exthost.Host
}

// connectorCode returns what runs the code of connectors; nil = no connection to a swarm needs it.
func (ext *Extension) connectorCode(b *bundle.Bundle, to *bundle.Resource, code *Code) (*connectors, error) {
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
			return nil, problem(r.Name, err)
		}
		secrets = slices.AppendSeq(secrets, maps.Values(values))
	}
	if !some {
		return nil, nil
	}
	box, root, find, err := ext.cfg.Box()
	if err != nil {
		return nil, err
	}
	return &connectors{box, exthost.New(exthost.Config{
		Box: box, Root: code.dir, Dir: root, Env: ext.cfg.Env(), Grant: sandbox.Grant{Reads: []string{code.dir}}, Node: node(find),
		Approve: code.approves, Clean: without(secrets, ext.cfg.Redact), Logger: ext.cfg.Logger,
	})}, nil
}

func (o *connectors) close() error {
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
func (o *connectors) connector(name string, from *bundle.Resource, config, secrets map[string]string) (line, error) {
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
