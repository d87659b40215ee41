package exthost

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// listens has what workers of a host say of extensions go to a set, the first that asks.
func (h *Host) listens(s *Set) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.set == nil {
		h.set = s
	}
	return h.set == s
}

// begins begins a run of a wrapper: what it asks for arrives there.
func (w *worker) begins() (uint64, <-chan message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run++
	asks := make(chan message, 1)
	w.runs[w.run] = asks
	return w.run, asks
}

func (w *worker) ends(run uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, run)
}

// extended takes what a worker says of its extensions.
func (h *Host) extended(w *worker, m message) error {
	h.mu.Lock()
	s := h.set
	h.mu.Unlock()
	if s == nil {
		return fmt.Errorf("there is nothing that is called %q", m.Method)
	}
	if m.Method == "next" {
		return w.nextAsked(m)
	}
	var p struct {
		Extension   string          `json:"extension"`
		Kind        string          `json:"kind"`
		Hook        uint64          `json:"hook"`
		Point       Point           `json:"point"`
		Priority    int             `json:"priority"`
		Optional    bool            `json:"optional"`
		Tool        string          `json:"tool"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Event       string          `json:"event"`
		Data        json.RawMessage `json:"data"`
		Value       json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return err
	}
	e := s.one(p.Extension)
	if e == nil || e.Host != h {
		return fmt.Errorf("there is no extension %q", shortened(p.Extension, 100))
	}
	switch m.Method {
	case "register":
		r := registered{kind: p.Kind, hook: p.Hook, point: p.Point, priority: p.Priority, optional: p.Optional, event: p.Event}
		if p.Kind == "tool" {
			r.tool = &ownTool{ext: e, name: p.Tool, about: p.Description, input: p.Parameters}
		} else if !slices.Contains([]string{"mutate", "wrap", "on"}, p.Kind) {
			return fmt.Errorf("%q cannot be registered", shortened(p.Kind, 100))
		}
		if err := w.register(e, r); err != nil {
			w.refused(e, err)
		}
	case "unregister":
		w.mu.Lock()
		defer w.mu.Unlock()
		w.registered[e.Name] = slices.DeleteFunc(slices.Clone(w.registered[e.Name]), func(r registered) bool { return r.hook == p.Hook })
	case "emit":
		s.tell(e.Name, shortened(p.Event, 200), p.Data)
	case "state":
		return e.keep(p.Value)
	default:
		return fmt.Errorf("there is nothing that is called %q", shortened(m.Method, 100))
	}
	return nil
}

// one returns the extension of a name.
func (s *Set) one(name string) *extension {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.exts {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// register takes what an extension registers in a worker. Lists that were read stay as
// they are.
func (w *worker) register(e *extension, r registered) error {
	if err := r.fits(e); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	list, err := joined(slices.Clone(w.registered[e.Name]), r)
	w.registered[e.Name] = list
	return err
}

// refused remembers what was wrong with what an extension registers: while it is loaded,
// that is why it cannot be.
func (w *worker) refused(e *extension, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faults[e.Name] == nil {
		w.faults[e.Name] = err
	}
	w.host.c.Logger.Warn("registering", "extension", e.Name, "error", err)
}

// nextAsked passes on that a wrapper wants to go on.
func (w *worker) nextAsked(m message) error {
	var p struct {
		Run uint64 `json:"run"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return err
	}
	if m.ID == nil {
		return errors.New("next without a number")
	}
	w.mu.Lock()
	asks := w.runs[p.Run]
	w.mu.Unlock()
	select {
	case asks <- m: // nil = nobody waits
		return nil
	default:
		return w.post(answer(*m.ID, nil, errAgain))
	}
}
