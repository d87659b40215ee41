package exthost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"dure/internal/safety/sandbox"
)

// A Connector is code that waits for messages from outside. It parses and verifies them,
// in a process of its own, and decides nothing about them.
type Connector struct {
	Runtime Runtime // Node or Process
	Entry   string  // a path below the root

	Config, Secrets map[string]string // it is told these and no others

	// Emit takes a message. What it returns is the answer to who has emitted it. It may be
	// called from several goroutines, maxEmitted at a time.
	Emit func(ctx context.Context, e Emitted) (any, error)
}

// Emitted is a message that a connector brings. It is hostile, and nothing of it is bounded
// but all together.
type Emitted struct {
	ID         string         // the same for a message that comes twice; "" = it comes once
	Name       string         // of the event
	Text       string         //
	Properties map[string]any // texts, numbers, true and false
	Key        string         // of the conversation that it belongs to, among those of its connection
	Answer     bool           // it waits for what is said to it
}

// Bounds of connectors.
const (
	maxEmitted    = 64 // messages that are on their way
	maxProperties = 64 // of a message
)

// Suits says what is wrong with the code of a connector, as far as that can be told without
// running it.
func (h *Host) Suits(c Connector) error {
	if _, err := h.below(c.Entry); err != nil {
		return err
	}
	switch c.Runtime {
	case Process:
		return nil
	case Node:
		_, err := h.nodeArgv()
		return err
	}
	return fmt.Errorf("nothing here runs %q: node and process are known", c.Runtime)
}

// Connect runs a connector until its process ends or ctx is done, and returns when what it
// has emitted is taken. nil = it has ended by itself, and brings no more.
func (h *Host) Connect(ctx context.Context, c Connector) error {
	params := map[string]any{"config": some(c.Config), "secrets": some(c.Secrets)}
	argv, err := h.connectorArgv(ctx, c, params)
	if err != nil {
		return err
	}
	taking, cancel := context.WithCancel(ctx)
	defer cancel()
	e := &emitting{ctx: taking, emit: c.Emit, slots: make(chan struct{}, maxEmitted)}
	w, err := h.beginWith(argv, e.hear, sandbox.Grant{ReadOnly: true, Reads: h.c.Grant.Reads})
	if err != nil {
		return err
	}
	failed := h.attended(ctx, c.Runtime, w, params)
	if failed != nil {
		cancel()
	}
	e.wg.Wait()
	if failed != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return failed
}

// some is a map that is empty rather than missing.
func some(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// connectorArgv is how a connector is started, as its files are now.
func (h *Host) connectorArgv(ctx context.Context, c Connector, params map[string]any) ([]string, error) {
	if c.Runtime == Process {
		program, err := h.below(c.Entry)
		if err == nil {
			err = h.approved(c.Entry, program)
		}
		return h.bounded([]string{program}), err
	}
	argv, err := h.nodeArgv()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.c.Limits.Start, overdue{h.c.Limits.Start})
	defer cancel()
	m, err := h.node.modules.get(ctx, c.Entry)
	if err != nil {
		return nil, err
	}
	params["code"] = m.code
	return argv, nil
}

// attended tells a connector to begin, and waits until it has ended. Whether one of Node.js
// hangs is looked at all the time: nobody else would notice.
func (h *Host) attended(ctx context.Context, runtime Runtime, w *worker, params map[string]any) error {
	defer func() {
		w.end(nil)
		<-w.over
	}()
	answer, _, err := w.ask(ctx, "connect", params)
	if err != nil {
		return h.ofConnector(err)
	}
	pulse := time.NewTicker(h.c.Limits.Pulse)
	defer pulse.Stop()
	for {
		select {
		case m := <-answer:
			if _, err := m.value(); err != nil {
				return h.ofConnector(err)
			}
			answer = nil // it has begun, or has no more; its end is that of its process
		case <-pulse.C:
			if runtime == Node {
				w.check()
			}
		case <-w.over:
			err := w.reason()
			if e, ok := errors.AsType[*Ended](err); ok && e.Why == nil && e.Exit.Code == 0 && e.Exit.Signal == "" {
				return nil
			}
			return h.ofConnector(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ofConnector is an error of a connector, which may have written its secrets into it.
func (h *Host) ofConnector(err error) error {
	return errors.New(shortened(h.c.Clean(err.Error()), usualErrors))
}

// emitting takes what a connector emits.
type emitting struct {
	ctx   context.Context
	emit  func(context.Context, Emitted) (any, error)
	slots chan struct{}
	wg    sync.WaitGroup
}

// errFull says that a connector does not wait for its messages.
var errFull = fmt.Errorf("%d messages are on their way: wait for one to be taken", maxEmitted)

func (e *emitting) hear(w *worker, m message) {
	var err error
	switch m.Method {
	case "log":
		err = w.host.logged(w, m.Params)
	case "message":
		err = e.take(w, m)
	default:
		err = fmt.Errorf("there is nothing that is called %q", shortened(m.Method, 100))
	}
	if err != nil {
		w.end(fmt.Errorf("it said what cannot be understood: %w", err))
	}
}

// take has a message delivered beside everything else. A message that is not right is
// refused; only one that is none ends the connector.
func (e *emitting) take(w *worker, m message) error {
	one, err := emitted(m.Params)
	if err == nil {
		select {
		case e.slots <- struct{}{}:
		default:
			err = errFull
		}
	}
	if err != nil {
		return reply(w, m, nil, err)
	}
	e.wg.Go(func() {
		defer func() { <-e.slots }()
		v, err := e.emit(e.ctx, one)
		if err := reply(w, m, v, err); err != nil {
			w.end(err)
		}
	})
	return nil
}

// reply answers who has emitted; one that has not asked is not told, but it is noted.
func reply(w *worker, m message, v any, err error) error {
	if m.ID == nil {
		if err != nil {
			w.host.c.Logger.Warn("a message of a connector was not taken", "error", err)
		}
		return nil
	}
	if perr := w.post(answer(*m.ID, v, err)); perr != nil && !w.dead() {
		return perr
	}
	return nil
}

// emitted reads a message.
func emitted(params json.RawMessage) (Emitted, error) {
	var p struct {
		ID          string                     `json:"id"`
		Name        string                     `json:"name"`
		Message     json.RawMessage            `json:"message"`
		Properties  map[string]json.RawMessage `json:"properties"`
		InstanceKey string                     `json:"instanceKey"`
		Answer      bool                       `json:"answer"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return Emitted{}, fmt.Errorf("a message has other fields: %w", err)
	}
	e := Emitted{ID: p.ID, Name: p.Name, Key: p.InstanceKey, Answer: p.Answer, Properties: map[string]any{}}
	if json.Unmarshal(p.Message, &e.Text) != nil {
		var m struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if err := json.Unmarshal(p.Message, &m); err != nil {
			return e, errors.New("the field message is a text, or an object with type and text")
		}
		if m.Type != "" && m.Type != "text" {
			return e, fmt.Errorf("a message of the type %q is not taken: only text is", shortened(m.Type, 100))
		}
		e.Text = m.Text
	}
	switch {
	case e.Name == "":
		return e, errors.New("the field name is missing: which event it is")
	case strings.TrimSpace(e.Text) == "":
		return e, errors.New("the message has no text")
	case len(p.Properties) > maxProperties:
		return e, fmt.Errorf("a message has more than %d properties", maxProperties)
	}
	for name, data := range p.Properties {
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			return e, fmt.Errorf("the property %s: %w", shortened(name, 100), err)
		}
		switch v.(type) {
		case string, float64, bool:
			e.Properties[name] = v
		default:
			return e, fmt.Errorf("the property %q is no text, number, true or false", shortened(name, 100))
		}
	}
	return e, nil
}
