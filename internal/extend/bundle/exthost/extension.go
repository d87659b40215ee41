package exthost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"dure/agent"
)

// The bounds of an extension.
const (
	maxRegistered = 256       // of all that it registers
	maxState      = 256 << 10 // bytes
	maxEvent      = 64 << 10  // bytes of what is said with one
)

// An Extension is code that takes part in the work of an agent: a module or an executable
// of a bundle, or a function in Go. They have the same API.
type Extension struct {
	Name string

	// Host runs it, with Runtime and Entry: [Node], or [Process] for an executable that
	// speaks as workers do. Register is the extension in Go instead.
	Host     *Host
	Runtime  Runtime
	Entry    string
	Args     []string
	Register func(context.Context, *API) error

	Config   json.RawMessage   // its own, an object
	Metadata map[string]string // version and the like, beside the name
	State    json.RawMessage   // as [Set.State] had it
}

// API is what an extension in Go is given; in JavaScript it is the same by other means.
type API struct {
	Name     string
	Metadata map[string]string
	Config   json.RawMessage
	Logger   *slog.Logger

	set *Set
	ext *extension
}

// A Mutator sees a moment and returns what is to become of it.
type Mutator func(context.Context, Moment) (Moment, error)

// Next goes on with what a wrapper is around. It can be called once.
type Next func(context.Context, Moment) (json.RawMessage, error)

// A Wrapper is around what happens: it calls next, or has an outcome of its own.
type Wrapper func(ctx context.Context, m Moment, next Next) (json.RawMessage, error)

// registered is something that an extension has registered.
type registered struct {
	kind     string // tool, mutate, wrap, on
	point    Point
	priority int
	optional bool
	hook     uint64 // in a worker
	event    string

	tool   *ownTool
	mutate Mutator
	wrap   Wrapper
	on     func(name string, data json.RawMessage)
}

// RegisterTool adds a tool, or replaces the one of that name. Its name for models is the
// name of the extension, two underscores, and its own.
func (a *API) RegisterTool(name, description string, parameters json.RawMessage, f Func) error {
	return a.ext.add(registered{kind: "tool", tool: &ownTool{ext: a.ext, name: name, about: description, input: parameters, native: f}})
}

// Optional says of a function that it guards nothing: what it fails at goes on without it.
const Optional Option = true

// An Option of a mutator or wrapper is [Optional].
type Option bool

// Mutate adds a mutator at a point. Those with lower numbers come first; equal ones in
// the order in which they were registered.
func (a *API) Mutate(p Point, priority int, f Mutator, o ...Option) error {
	return a.ext.add(registered{kind: "mutate", point: p, priority: priority, optional: slices.Contains(o, Optional), mutate: f})
}

// Wrap adds a wrapper at a point. Those with lower numbers are further outside; of equal
// ones, those that were registered earlier.
func (a *API) Wrap(p Point, priority int, f Wrapper, o ...Option) error {
	return a.ext.add(registered{kind: "wrap", point: p, priority: priority, optional: slices.Contains(o, Optional), wrap: f})
}

// On calls f for each event of a name, one after the other: the kind of one of the
// session, or EXTENSION:NAME for what an extension tells.
func (a *API) On(event string, f func(name string, data json.RawMessage)) error {
	return a.ext.add(registered{kind: "on", event: event, on: f})
}

// Emit tells an event.
func (a *API) Emit(event string, data json.RawMessage) { a.set.tell(a.Name, event, data) }

// State returns what the extension has kept.
func (a *API) State() json.RawMessage { return a.set.State(a.Name) }

// SetState keeps something for the extension.
func (a *API) SetState(v json.RawMessage) error { return a.ext.keep(v) }

// extension is one of a [Set].
type extension struct {
	Extension
	set  *Set
	slot *slot // of an executable's worker

	list  []registered // in Go
	state json.RawMessage

	seen    []registered       // as it was found last; nil = never; guarded by mu of set, as the rest is
	hash    string             // of the code that was found then
	strikes map[string]*strike // by function
}

// add takes what the extension registers.
func (e *extension) add(r registered) error {
	if err := r.fits(e); err != nil {
		return err
	}
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	list, err := joined(e.list, r)
	e.list = list
	return err
}

// joined adds to a list; a tool takes the place of the one of its name.
func joined(list []registered, r registered) ([]registered, error) {
	for i := range list {
		if r.kind == "tool" && list[i].kind == "tool" && list[i].tool.spec.Name == r.tool.spec.Name {
			list[i] = r
			return list, nil
		}
	}
	if len(list) >= maxRegistered {
		return list, fmt.Errorf("it registers more than %d things", maxRegistered)
	}
	return append(list, r), nil
}

var (
	toolPart = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	longest  = 64 // characters of the name of a tool
)

// fits completes what is registered, and says what is wrong with it.
func (r *registered) fits(e *extension) error {
	switch r.kind {
	case "mutate":
		p, err := e.set.comes(mutable(r.point))
		r.point = p
		return err
	case "wrap":
		p, err := e.set.comes(wrappable(r.point))
		r.point = p
		return err
	case "on":
		if r.event == "" || len(r.event) > 200 {
			return errors.New("events.on: an event has a name of at most 200 bytes")
		}
		return nil
	}
	t := r.tool
	part := strings.ReplaceAll(t.name, ".", "_")
	name := strings.ReplaceAll(e.Name, ".", "_") + "__" + part
	if !toolPart.MatchString(part) || strings.Contains(part, "__") || strings.HasPrefix(part, "_") || len(name) > longest {
		return fmt.Errorf("tools.register: %q is no name of a tool: letters, digits, dots, _ and -, %d at most with the name of the extension", t.name, longest)
	}
	if len(t.input) == 0 || string(t.input) == "null" {
		t.input = json.RawMessage(`{"type":"object"}`)
	}
	var schema struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(t.input, &schema) != nil || schema.Type != "object" {
		return fmt.Errorf("tools.register: the parameters of %q are no schema of an object", t.name)
	}
	t.spec = agent.Spec{Name: name, Description: shortened(t.about, 4000), Input: t.input}
	return nil
}

// keep takes the state of the extension.
func (e *extension) keep(v json.RawMessage) error {
	if len(v) > maxState || !json.Valid(v) {
		return fmt.Errorf("its state is no JSON of at most %d bytes", maxState)
	}
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	e.state = append(json.RawMessage(nil), v...)
	return nil
}

// ready returns a worker that has the extension loaded, counted in.
func (e *extension) ready(ctx context.Context) (*worker, error) {
	h := e.Host
	ctx, cancel := context.WithTimeoutCause(ctx, h.c.Limits.Start, overdue{h.c.Limits.Start})
	defer cancel()
	e.set.mu.Lock()
	about := map[string]any{"metadata": e.Metadata, "config": orNull(e.Config), "state": orNull(e.state)}
	e.set.mu.Unlock()
	about["metadata"] = e.Metadata
	params := map[string]any{"module": e.Name, "extension": about}
	if e.Runtime == Node {
		w, m, err := h.node.loaded(ctx, e.Entry, "extension "+e.Name, params)
		if err == nil {
			e.forgive(m.hash)
		}
		return w, err
	}
	w, err := e.slot.take(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := w.has(ctx, "extension "+e.Name, "", params); err != nil {
		w.leave()
		return nil, err
	}
	return w, nil
}

func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}

// all returns what the extension has registered, and the worker that has it, counted in;
// nil = it is in Go.
func (e *extension) all(ctx context.Context) ([]registered, *worker, error) {
	if e.Register != nil {
		e.set.mu.Lock()
		defer e.set.mu.Unlock()
		return e.list, nil, nil
	}
	w, err := e.ready(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("the extension %s: %w", e.Name, err)
	}
	w.mu.Lock()
	list := w.registered[e.Name]
	w.mu.Unlock()
	e.set.mu.Lock()
	e.seen = append([]registered{}, list...)
	e.set.mu.Unlock()
	return list, w, nil
}

// ownTool is a tool that an extension has registered.
type ownTool struct {
	ext    *extension
	name   string
	about  string
	input  json.RawMessage
	native Func

	spec agent.Spec
}

func (t *ownTool) Spec() agent.Spec {
	s := t.spec
	if h := t.ext.Host; h != nil {
		s.Limit = h.c.Limits.Call
	}
	return s
}

// Plan knows nothing of what the code does: the rules for the tool itself decide.
func (t *ownTool) Plan(context.Context, agent.ToolContext, agent.Call) (agent.Effects, error) {
	return agent.Effects{}, nil
}

func (t *ownTool) Run(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	r, err := t.run(ctx, tc, c)
	if err != nil {
		return failure(err, usualErrors), nil
	}
	return r, nil
}

func (t *ownTool) run(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	if t.native != nil {
		return native(ctx, t.native, tc, c.Input)
	}
	limit := t.Spec().Limit
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overdue{limit})
	defer cancel()
	list, w, err := t.ext.all(ctx)
	if err != nil {
		return agent.Result{}, err
	}
	defer w.leave()
	for _, r := range list {
		if r.kind == "tool" && r.tool.spec.Name == t.spec.Name {
			return w.tool(ctx, callParams{Export: t.name, Hook: r.hook, Context: told(tc), Input: c.Input}, tc.Logger)
		}
	}
	return agent.Result{}, fmt.Errorf("the extension %s has no tool %s any more", t.ext.Name, t.name)
}
