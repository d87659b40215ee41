package exthost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"dure/agent"
)

// The bounds of calls that are answered later.
const (
	maxPending = 64  // of one worker
	maxHandle  = 100 // characters of a handle
)

// A settlement is what became of a call that was answered later, as a worker says it.
type settlement struct {
	Question uint64          `json:"question"`
	Value    json.RawMessage `json:"value"`
	Error    *thrown         `json:"error"`
}

// later answers a call whose outcome comes later, under a handle that no other call has.
func (w *worker) later(question uint64, call string, a callAnswer) (agent.Result, error) {
	if w.host.c.Settle == nil {
		return agent.Result{}, errors.New("it wants to answer later, and nobody here waits for that")
	}
	handle := fmt.Sprintf("code:%s:%s", call, shortened(a.Pending.Handle, maxHandle))
	w.mu.Lock()
	s, early := w.early[question]
	delete(w.early, question)
	many := len(w.pending) >= maxPending
	if !early && !many {
		w.pending[question] = handle
		w.using++ // it has to live until then
	}
	w.mu.Unlock()
	if many && !early {
		return agent.Result{}, fmt.Errorf("its worker has %d calls without an outcome already", maxPending)
	}
	if early {
		w.settle(handle, s.result())
	}
	select {
	case <-w.over: // what was pending by then was settled before this one was known
		w.lose()
	default:
	}
	text := a.Pending.Message
	if text == "" {
		text = "It has begun. The outcome is told when it is there."
	}
	return agent.Result{Status: agent.StatusPending, Handle: handle, Text: text}, nil
}

// settled takes an outcome. It may come before the call is known to be answered.
func (w *worker) settled(params json.RawMessage) error {
	var s settlement
	if err := json.Unmarshal(params, &s); err != nil {
		return err
	}
	w.mu.Lock()
	handle, known := w.pending[s.Question]
	delete(w.pending, s.Question)
	if !known {
		w.early[s.Question] = s
	}
	many := len(w.early) > maxPending
	w.mu.Unlock()
	if many {
		return errors.New("outcomes of calls that nobody made")
	}
	if known {
		w.settle(handle, s.result())
		w.leave()
	}
	return nil
}

func (s settlement) result() agent.Result {
	if s.Error != nil {
		return failure(s.Error, usualErrors)
	}
	return result(s.Value)
}

// settle tells the session, beside everything else.
func (w *worker) settle(handle string, r agent.Result) {
	h := w.host
	h.apart(func() {
		err := h.c.Settle(h.life, agent.Settlement{Handle: handle, Result: r})
		if err != nil && !errors.Is(err, context.Canceled) {
			h.c.Logger.Warn("telling the outcome of a call", "handle", handle, "error", err)
		}
	})
}

// lose settles what a worker that has ended will not.
func (w *worker) lose() {
	w.mu.Lock()
	lost := w.pending
	w.pending = map[uint64]string{}
	w.mu.Unlock()
	for _, handle := range lost {
		w.settle(handle, agent.Failure(agent.ErrLost, shortened(w.reason().Error(), usualErrors), "What it had done by then is not known: look before you call it again."))
	}
}
