package exthost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"dure/agent"
)

// An overdue is why a call is given up at its time limit.
type overdue struct{ fmt.Stringer }

func (o overdue) Error() string { return "it was given up after " + o.String() }

// toolContext is what code is told of its call: the fields that a handler has, and
// nothing else.
type toolContext struct {
	AgentName   string      `json:"agentName"`
	InstanceKey string      `json:"instanceKey"`
	TurnID      string      `json:"turnId"`
	ToolCallID  string      `json:"toolCallId"`
	Message     toldMessage `json:"message"`
	Workdir     string      `json:"workdir"`
}

// toldMessage is the answer of the model that has the call.
type toldMessage struct {
	Role      agent.Role     `json:"role"`
	Content   string         `json:"content"`
	ToolCalls []toldToolCall `json:"toolCalls,omitempty"`
}

type toldToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func told(tc agent.ToolContext) toolContext {
	m := toldMessage{Role: tc.Message.Role, Content: tc.Message.Text()}
	for _, c := range tc.Message.Calls() {
		m.ToolCalls = append(m.ToolCalls, toldToolCall{c.ID, c.Tool, c.Input})
	}
	return toolContext{tc.AgentName, tc.InstanceKey, tc.TurnID, tc.ToolCallID, m, tc.Workdir}
}

// callParams ask a worker to run a function.
type callParams struct {
	Module  string          `json:"module,omitempty"`
	Export  string          `json:"export"`
	Hook    uint64          `json:"hook,omitempty"`
	Context toolContext     `json:"context"`
	Input   json.RawMessage `json:"input"`

	Credential *toldCredential `json:"credential,omitempty"`
}

// A callAnswer is what it returned: a value, or that the outcome comes later.
type callAnswer struct {
	Value   json.RawMessage `json:"value"`
	Pending *struct {
		Handle  string `json:"handle"`
		Message string `json:"message"`
	} `json:"pending"`
}

// nodeSide is the worker in which the modules of a bundle run.
type nodeSide struct {
	host    *Host
	modules *modules
	slot    *slot
}

func newNodeSide(h *Host) *nodeSide {
	n := &nodeSide{host: h, modules: newModules(h)}
	n.slot = newSlot(h, func(context.Context) (*worker, error) {
		argv, err := h.nodeArgv()
		if err != nil {
			return nil, err
		}
		return h.begin(argv, h.hear)
	})
	return n
}

// run calls an export of a module.
func (n *nodeSide) run(ctx context.Context, entry, export string, tc agent.ToolContext, c agent.Call, cred *Credential) (agent.Result, error) {
	w, m, err := n.ready(ctx, entry)
	if err != nil {
		return agent.Result{}, err
	}
	defer w.leave()
	r, err := w.tool(ctx, callParams{Module: m.hash, Export: export, Context: told(tc), Input: c.Input, Credential: cred.told()}, tc.Logger)
	if _, gone := errors.AsType[*Ended](err); !gone {
		n.slot.worked()
	}
	return r, err
}

// Check loads the code of a resource, which runs what stands at its top, and says which
// of its exports have no function there. Old says that the module gives them away in a
// way that is not the usual one any more. Only modules can be asked.
func (h *Host) Check(ctx context.Context, r Resource) (missing []string, old bool, err error) {
	if err := h.fits(r); err != nil || r.Runtime != Node {
		return nil, false, err
	}
	w, m, err := h.node.ready(ctx, r.Entry)
	if err != nil {
		return nil, false, err
	}
	defer w.leave()
	w.mu.Lock()
	know := w.loads[m.entry].know
	w.mu.Unlock()
	single := slices.Equal(know.Exports, []string{"default"}) && len(r.Exports) == 1
	for _, e := range r.Exports {
		if !single && !slices.Contains(know.Exports, e.Name) {
			missing = append(missing, e.Name)
		}
	}
	return missing, know.Old, nil
}

// ready returns a worker that has a module of tools as its files are now, counted in.
func (n *nodeSide) ready(ctx context.Context, entry string) (*worker, *module, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, n.host.c.Limits.Start, overdue{n.host.c.Limits.Start})
	defer cancel()
	return n.loaded(ctx, entry, entry, map[string]any{})
}

// loaded returns a worker that has loaded a module under a name.
func (n *nodeSide) loaded(ctx context.Context, entry, name string, params map[string]any) (*worker, *module, error) {
	for {
		w, err := n.slot.take(ctx) // it starts while the module is made
		if err != nil {
			return nil, nil, err
		}
		m, err := n.modules.get(ctx, entry)
		if err != nil {
			w.leave()
			return nil, nil, err
		}
		if _, named := params["extension"]; !named {
			params["module"] = m.hash
		}
		params["code"] = m.code
		switch fresh, err := w.has(ctx, name, m.hash, params); {
		case err != nil:
			w.leave()
			return nil, nil, fmt.Errorf("loading %s: %w", entry, err)
		case fresh:
			return w, m, nil
		}
		// It has the module as it was: what that had begun stays there.
		w.leave()
		if err := n.slot.renew(ctx, w); err != nil {
			return nil, nil, err
		}
	}
}

// loading is a module that a worker has, or is about to have.
type loading struct {
	hash string
	done chan struct{}
	err  error
	know loaded
}

// loaded is what a worker says of a module that it has loaded.
type loaded struct {
	Old     bool     `json:"old"`
	Exports []string `json:"exports"`
}

// has sees to it that a worker has loaded a module, and reports whether it has that, or
// another state of it.
func (w *worker) has(ctx context.Context, name, hash string, params map[string]any) (bool, error) {
	w.mu.Lock()
	l := w.loads[name]
	mine := l == nil
	if mine {
		l = &loading{hash: hash, done: make(chan struct{})}
		w.loads[name] = l
		if x, ok := params["extension"]; ok && x != nil {
			ext := params["module"].(string)
			delete(w.registered, ext)
			delete(w.faults, ext)
		}
	}
	w.mu.Unlock()
	if l.hash != hash {
		return false, nil
	}
	if mine {
		var data json.RawMessage
		data, l.err = w.call(ctx, "load", params)
		if l.err == nil {
			l.err = json.Unmarshal(data, &l.know)
		}
		if l.err == nil {
			w.mu.Lock()
			l.err = w.faults[fmt.Sprint(params["module"])]
			w.mu.Unlock()
		}
		if l.err != nil { // whoever comes next tries again
			w.mu.Lock()
			delete(w.loads, name)
			w.mu.Unlock()
		}
		close(l.done)
	}
	select {
	case <-l.done:
		return l.err == nil, l.err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// tool runs a function that is a tool, and makes a result of what it returns.
func (w *worker) tool(ctx context.Context, p callParams, log *slog.Logger) (agent.Result, error) {
	if w.full() {
		return agent.Result{}, fmt.Errorf("its worker has %d calls already: wait for one to end", w.host.c.Limits.Calls)
	}
	answer, id, err := w.ask(ctx, "call", p)
	if err != nil {
		return agent.Result{}, err
	}
	defer w.logs(p.Context.ToolCallID, log)()
	var m message
	select {
	case m = <-answer:
	case <-w.over:
		return agent.Result{}, w.reason()
	case <-ctx.Done():
		w.drop(id)
		return agent.Result{}, context.Cause(ctx)
	}
	data, err := m.value()
	if err != nil {
		return agent.Result{}, err
	}
	var a callAnswer
	if err := json.Unmarshal(data, &a); err != nil {
		err = fmt.Errorf("it answered a call with what is no answer: %w", err)
		w.end(err)
		return agent.Result{}, err
	}
	if a.Pending != nil {
		return w.later(id, p.Context.ToolCallID, a)
	}
	return result(a.Value), nil
}

// full reports whether a worker has as many calls as it may.
func (w *worker) full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.using > w.host.c.Limits.Calls
}

// logs has what a call logs go to its own logger, until it is called off.
func (w *worker) logs(call string, log *slog.Logger) (off func()) {
	if log == nil || call == "" {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loggers[call] = log
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.loggers, call)
	}
}

// hear takes what a worker says by itself.
func (h *Host) hear(w *worker, m message) {
	var err error
	switch m.Method {
	case "log":
		err = h.logged(w, m.Params)
	case "settled":
		err = w.settled(m.Params)
	default:
		err = h.extended(w, m)
	}
	if err != nil {
		w.end(fmt.Errorf("it said what cannot be understood: %w", err))
	}
}

// logged passes a line on to whoever reads the logs of its call.
func (h *Host) logged(w *worker, params json.RawMessage) error {
	var p struct {
		Level, Text, Call, Extension string
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	level := slog.LevelInfo
	switch p.Level {
	case "debug", "trace":
		level = slog.LevelDebug
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	}
	w.mu.Lock()
	log := w.loggers[p.Call]
	w.mu.Unlock()
	if log == nil {
		log = h.c.Logger
	}
	if p.Extension != "" {
		log = log.With("extension", p.Extension)
	}
	log.Log(w.life, level, shortened(h.c.Clean(p.Text), 8000))
	return nil
}
