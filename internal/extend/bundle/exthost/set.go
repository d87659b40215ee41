package exthost

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"dure/agent"
)

// A Set is the extensions of a session, in the order in which they were added. It has a
// goroutine that tells events, until it is closed. It is safe for concurrent use.
type Set struct {
	emitted func(extension, event string, data json.RawMessage)
	noted   func(text string) // for people; nil = nobody reads it
	logger  *slog.Logger
	only    []Point // where extensions take part; nil = everywhere
	events  chan event
	end     context.CancelFunc
	wg      sync.WaitGroup

	mu   sync.Mutex // of what extensions have registered and kept, too
	exts []*extension
}

// event is something that was said.
type event struct {
	from, name string
	data       json.RawMessage
}

// maxEvents is how many wait to be told; what comes beyond is dropped.
const maxEvents = 256

// NewSet returns a set without extensions. Emitted is told every event of theirs, one
// after the other; nil = nobody is.
func NewSet(logger *slog.Logger, emitted func(extension, event string, data json.RawMessage)) *Set {
	ctx, end := context.WithCancel(context.Background())
	s := &Set{emitted: emitted, logger: logger, events: make(chan event, maxEvents), end: end}
	s.wg.Go(func() { s.pump(ctx) })
	return s
}

// Only has extensions take part at these points alone: a point that never comes is refused
// when it is registered. It is called before [Set.Add].
func (s *Set) Only(points ...Point) { s.only = points }

// comes returns a point that has been found, unless it never comes.
func (s *Set) comes(p Point, err error) (Point, error) {
	if err == nil && s.only != nil && !slices.Contains(s.only, p) {
		return "", fmt.Errorf("nothing is told at %q here: known are %v", p, s.only)
	}
	return p, err
}

// Close ends the telling of events. Workers end with their hosts.
func (s *Set) Close() {
	s.end()
	s.wg.Wait()
}

// Add adds an extension and has it register. One that fails is not in the set.
func (s *Set) Add(ctx context.Context, x Extension) error {
	e := &extension{Extension: x, set: s, state: x.State}
	if err := s.enter(e); err != nil {
		return fmt.Errorf("the extension %s: %w", x.Name, err)
	}
	var err error
	if x.Register != nil {
		err = s.native(ctx, e)
	} else {
		var w *worker
		if _, w, err = e.all(ctx); err == nil {
			w.leave()
		}
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.exts = slices.DeleteFunc(s.exts, func(o *extension) bool { return o == e })
	}
	return err
}

// enter finds a place for an extension.
func (s *Set) enter(e *extension) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !toolPart.MatchString(e.Name):
		return errors.New("its name has more than letters, digits, _ and -")
	case slices.ContainsFunc(s.exts, func(o *extension) bool { return o.Name == e.Name }):
		return errors.New("there is another one of that name")
	}
	if e.Register == nil {
		if e.Host == nil || e.Runtime != Node && e.Runtime != Process {
			return fmt.Errorf("nothing here runs %q: node and process are known", e.Runtime)
		}
		program, err := e.Host.below(e.Entry)
		if err != nil {
			return err
		}
		if !e.Host.listens(s) {
			return errors.New("its host belongs to another set")
		}
		if e.Runtime == Process {
			argv := e.Host.bounded(append([]string{program}, e.Args...))
			e.slot = newSlot(e.Host, func(context.Context) (*worker, error) {
				if err := e.Host.approved(e.Entry, program); err != nil {
					return nil, err
				}
				return e.Host.begin(argv, e.Host.hear)
			})
		}
	}
	s.exts = append(s.exts, e)
	return nil
}

// native has an extension in Go register.
func (s *Set) native(ctx context.Context, e *extension) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the extension %s panicked: %v", e.Name, p)
		}
	}()
	return e.Register(ctx, &API{
		Name: e.Name, Metadata: e.Metadata, Config: e.Config, Logger: s.logger.With("extension", e.Name), set: s, ext: e,
	})
}

// Tools returns the tools that extensions have registered by now. The error names those
// that cannot say so.
func (s *Set) Tools(ctx context.Context) ([]agent.Tool, error) {
	s.mu.Lock()
	exts := slices.Clone(s.exts)
	s.mu.Unlock()
	var all []agent.Tool
	var errs []error
	for _, e := range exts {
		list, w, err := e.all(ctx)
		if w != nil {
			w.leave()
		}
		errs = append(errs, err)
		for _, r := range list {
			if r.kind == "tool" {
				all = append(all, r.tool)
			}
		}
	}
	return all, errors.Join(errs...)
}

// State returns what an extension has kept, to be given to it the next time.
func (s *Set) State(name string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.exts {
		if e.Name == name {
			return e.state
		}
	}
	return nil
}

// States returns what each extension has kept.
func (s *Set) States() map[string]json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]json.RawMessage{}
	for _, e := range s.exts {
		if len(e.state) > 0 {
			all[e.Name] = e.state
		}
	}
	return all
}

// place is something registered, with who has it.
type place struct {
	registered
	ext *extension
	w   *worker // nil = it is in Go
	key string  // by which the extension knows the function
}

// at returns what extensions have registered that fits, in its order, and what lets go
// of the workers that have it.
func (s *Set) at(ctx context.Context, fits func(registered) bool) (list []place, leave func(), err error) {
	s.mu.Lock()
	exts := slices.Clone(s.exts)
	s.mu.Unlock()
	var used []*worker
	leave = func() {
		for _, w := range used {
			w.leave()
		}
	}
	for _, e := range exts {
		all, w, err := e.all(ctx)
		if err != nil && ctx.Err() == nil && s.without(e, fits, err) {
			continue
		}
		if err != nil {
			leave()
			return nil, func() {}, err
		}
		if w != nil {
			used = append(used, w)
		}
		for i, r := range slices.DeleteFunc(slices.Clone(all), func(r registered) bool { return !fits(r) }) {
			list = append(list, place{r, e, w, fmt.Sprint(r.kind, " ", r.point, " ", i)})
		}
	}
	slices.SortStableFunc(list, func(a, b place) int { return cmp.Compare(a.priority, b.priority) })
	return list, leave, nil
}

// Mutate shows a moment to the mutators of a point, one after the other. An error is that
// of the first that fails, and the moment does not count then: a call is not made, a
// result not passed on, a step not begun.
func (s *Set) Mutate(ctx context.Context, p Point, m Moment) (Moment, error) {
	list, leave, err := s.at(ctx, func(r registered) bool { return r.kind == "mutate" && r.point == p })
	defer leave()
	if err != nil {
		return m, err
	}
	for _, at := range list {
		if m, err = s.mutated(ctx, at, m); err != nil {
			return m, err
		}
	}
	return m, nil
}

// mutated returns what one mutator makes of a moment.
func (s *Set) mutated(ctx context.Context, at place, m Moment) (Moment, error) {
	if off := s.off(at); off != nil {
		if at.optional {
			return m, nil
		}
		return m, at.named(off)
	}
	to, err := at.change(ctx, m)
	if err == nil {
		to, err = m.changed(at.point, to, s.knows)
	}
	if err == nil {
		to.signed(m, at.ext.Name)
		s.worked(at)
		return to, nil
	}
	if err = at.named(err); s.failed(ctx, at, err) {
		return m, nil
	}
	return m, err
}

// knows reports whether an extension has registered a tool.
func (s *Set) knows(tool string) bool {
	s.mu.Lock()
	exts := slices.Clone(s.exts)
	s.mu.Unlock()
	return slices.ContainsFunc(exts, func(e *extension) bool {
		list, _ := e.present()
		return slices.ContainsFunc(list, func(r registered) bool { return r.kind == "tool" && r.tool.spec.Name == tool })
	})
}

// Wrap has the wrappers of a point around core, the first outermost. Once core has run
// its outcome stands, whatever fails around it: what was done is not hidden. Core runs
// once at most.
func (s *Set) Wrap(ctx context.Context, p Point, m Moment, core Next) (json.RawMessage, error) {
	list, leave, err := s.at(ctx, func(r registered) bool { return r.kind == "wrap" && r.point == p })
	defer leave()
	if err != nil {
		return nil, err
	}
	return s.around(ctx, p, list, m, core)
}

// errCut says that core did not return.
var errCut = errors.New("it did not come to its end")

// errAgain says that a wrapper goes on twice.
var errAgain = errors.New("next was called already: what it does is done once")

func (s *Set) around(ctx context.Context, p Point, list []place, m Moment, core Next) (json.RawMessage, error) {
	if len(list) == 0 {
		return core(ctx, m)
	}
	at := list[0]
	if off := s.off(at); off != nil {
		if at.optional {
			return s.around(ctx, p, list[1:], m, core)
		}
		return nil, at.named(off)
	}
	var ran bool
	var value json.RawMessage
	var failed error
	outcome, err := at.surround(ctx, m, func(ctx context.Context, to Moment) (json.RawMessage, error) {
		if ran {
			return nil, errAgain
		}
		ran, failed = true, errCut
		if p == AtStep || p == StepModel { // of a call, nothing: it was decided about as it is
			m.ToolCatalog = catalog(m.ToolCatalog, to.ToolCatalog, s.knows)
		}
		value, failed = s.around(ctx, p, list[1:], m, core)
		return value, failed
	})
	if err == nil && p == CallExec {
		err = outcomeOf(outcome)
	}
	if err == nil {
		s.worked(at)
		return outcome, nil
	}
	err = at.named(err)
	over := failed == nil && s.failed(ctx, at, err) // it may have passed on what core failed with
	switch {
	case !ran && over:
		return s.around(ctx, p, list[1:], m, core)
	case !ran:
		return nil, err
	}
	s.logger.Warn("an extension that was around what happened", "error", err)
	return value, failed
}

// outcomeOf says what is wrong with the outcome of a call.
func outcomeOf(data json.RawMessage) error {
	var r ToolResult
	if err := json.Unmarshal(data, &r); err != nil || r.Status == "" {
		return fmt.Errorf("it returned what is no result: %.80q", data)
	}
	return nil
}

// change runs a mutator.
func (p place) change(ctx context.Context, m Moment) (to Moment, err error) {
	if p.w == nil {
		defer caught(&err)
		if to, err = p.mutate(ctx, m); err != nil {
			err = word{err}
		}
		return to, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.w.host.c.Limits.Hook, overdue{p.w.host.c.Limits.Hook})
	defer cancel()
	data, err := p.w.call(ctx, "mutate", map[string]any{"hook": p.hook, "context": m})
	if err != nil {
		return m, err
	}
	var answer struct {
		Value *Moment `json:"value"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || answer.Value == nil {
		return m, errors.New("it returned what is no context")
	}
	p.ext.place().worked()
	return *answer.Value, nil
}

// caught makes an error of a panic.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it panicked: %v", p)
	}
}

// surround runs a wrapper. Its time stands still while next runs.
func (p place) surround(ctx context.Context, m Moment, next Next) (v json.RawMessage, err error) {
	if p.w == nil {
		defer caught(&err)
		if v, err = p.wrap(ctx, m, next); err != nil {
			err = word{err}
		}
		return v, err
	}
	w, left := p.w, p.w.host.c.Limits.Hook
	run, asks := w.begins()
	defer w.ends(run)
	answered, id, err := w.ask(ctx, "wrap", map[string]any{"hook": p.hook, "run": run, "context": m})
	if err != nil {
		return nil, err
	}
	for {
		begun := time.Now()
		t := time.NewTimer(left)
		select {
		case got := <-answered:
			t.Stop()
			p.ext.place().worked()
			return wrapped(got)
		case q := <-asks:
			t.Stop()
			left = max(left-time.Since(begun), time.Millisecond)
			var to struct {
				Context *Moment `json:"context"`
			}
			if json.Unmarshal(q.Params, &to) != nil || to.Context == nil {
				to.Context = &m
			}
			value, err := next(ctx, *to.Context)
			if err := w.send(ctx, answer(*q.ID, map[string]any{"result": orNull(value)}, err)); err != nil {
				w.drop(id)
				return nil, err
			}
		case <-w.over:
			t.Stop()
			return nil, w.reason()
		case <-ctx.Done():
			t.Stop()
			w.drop(id)
			return nil, context.Cause(ctx)
		case <-t.C:
			w.drop(id)
			return nil, overdue{w.host.c.Limits.Hook}
		}
	}
}

func wrapped(m message) (json.RawMessage, error) {
	data, err := m.value()
	if err != nil {
		return nil, err
	}
	var answer struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, errors.New("it returned what is no outcome")
	}
	return answer.Value, nil
}

// Hears reports whether an extension listens to an event of one of these names, as far as
// they run.
func (s *Set) Hears(names ...string) bool {
	s.mu.Lock()
	exts := slices.Clone(s.exts)
	s.mu.Unlock()
	return slices.ContainsFunc(exts, func(e *extension) bool {
		list, _ := e.present()
		return slices.ContainsFunc(list, func(r registered) bool { return r.kind == "on" && slices.Contains(names, r.event) })
	})
}

// Tell tells extensions an event of the program.
func (s *Set) Tell(name string, data json.RawMessage) { s.tell("", name, data) }

func (s *Set) tell(from, name string, data json.RawMessage) {
	if len(data) > maxEvent {
		s.logger.Warn("an event was dropped: it is too long", "extension", from, "event", shortened(name, 200))
		return
	}
	select {
	case s.events <- event{from, name, data}:
	default:
		s.logger.Warn("an event was dropped: too many wait", "extension", from, "event", shortened(name, 200))
	}
}

// pump tells events, in the order in which they came.
func (s *Set) pump(ctx context.Context) {
	for {
		select {
		case e := <-s.events:
			s.spread(e)
		case <-ctx.Done():
			return
		}
	}
}

// spread tells one event to all who listen. A worker that does not run does not learn it.
func (s *Set) spread(ev event) {
	if s.emitted != nil && ev.from != "" {
		s.emitted(ev.from, ev.name, ev.data)
	}
	s.mu.Lock()
	exts := slices.Clone(s.exts)
	s.mu.Unlock()
	name := ev.name
	if ev.from != "" { // what it tells is not taken for an event of the session
		name = ev.from + ":" + ev.name
	}
	for _, e := range exts {
		list, w := e.present()
		for _, r := range list {
			switch {
			case r.kind != "on" || r.event != name:
			case w == nil:
				var err error
				func() { defer caught(&err); r.on(name, ev.data) }()
				if err != nil {
					s.logger.Warn("an event", "extension", e.Name, "error", err)
				}
			default:
				params, _ := json.Marshal(map[string]any{"hook": r.hook, "event": name, "data": orNull(ev.data)})
				if err := w.post(message{Method: "event", Params: params}); err != nil {
					s.logger.Warn("an event was not told", "extension", e.Name, "error", err)
				}
			}
		}
	}
}

// place is where the worker of the extension is.
func (e *extension) place() *slot {
	if e.slot != nil {
		return e.slot
	}
	return e.Host.node.slot
}

// present returns what an extension has registered, if it runs.
func (e *extension) present() ([]registered, *worker) {
	if e.Register != nil {
		e.set.mu.Lock()
		defer e.set.mu.Unlock()
		return e.list, nil
	}
	w := e.place().now.Load()
	if w == nil || w.dead() {
		return nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.registered[e.Name], w
}
