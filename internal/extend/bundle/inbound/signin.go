package inbound

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/client"
)

// A SignIn is what a person has to do before a tool can work for them. It holds no secret.
type SignIn struct {
	Status      string    `json:"status"` // authorization_required
	AuthSession string    `json:"authSessionId"`
	URL         string    `json:"authorizationUrl"`
	UserCode    string    `json:"userCode,omitempty"` // to be typed at URL, if that asks for one
	ExpiresAt   time.Time `json:"expiresAt"`
	Message     string    `json:"message"`
}

// signInOf returns the sign-in that a call wants.
func signInOf(r agent.Result) (s SignIn, ok bool) {
	if r.Error == nil || r.Error.Code != agent.ErrOAuthRequired || json.Unmarshal(r.Output, &s) != nil {
		return s, false
	}
	return s, s.URL != ""
}

// heard is what came of a message: until the end of the turn that it is part of, and of those
// that follow from what was handed to agents in it.
type heard struct {
	from    int64 // ends of turns count behind this event
	text    string
	handed  map[string]bool // handles of the work of agents that has not come back
	unread  map[string]bool // inputs that bring what came of it, and wait for the end of the turn
	signIns []SignIn
	waiting []string // handles of calls that wait for a person
	seq     int64    // of the last event that was read

	progressed func(seq int64, p agent.CrewProgressed) // is told how far plans of agents are; nil = nobody is
}

// take takes an event in, and reports whether it ends the turn.
func (h *heard) take(e agent.Event) (ended bool, err error) {
	h.seq = e.Seq
	switch b := e.Body.(type) {
	case agent.ModelAnswered:
		if s := b.Message.Text(); b.Purpose == "" && s != "" {
			h.text = s
		}
	case agent.CrewProgressed:
		if h.progressed != nil && e.Seq > h.from {
			h.progressed(e.Seq, b)
		}
	case agent.CallSettled:
		delete(h.handed, b.Handle)
	case agent.InputQueued:
		if strings.HasPrefix(b.Input, settledInput(agent.ChildHandle)) {
			note(&h.unread, b.Input)
		}
	case agent.InputAdded:
		delete(h.unread, b.Input)
		h.waiting = slices.DeleteFunc(h.waiting, func(handle string) bool { return settledInput(handle) == b.Input })
	case agent.CallFinished:
		if b.Result.Status == agent.StatusPending && strings.HasPrefix(b.Result.Handle, agent.ChildHandle) {
			note(&h.handed, b.Result.Handle)
		}
		if s, ok := signInOf(b.Result); ok {
			h.signIns = append(h.signIns, s)
			if b.Result.Status == agent.StatusPending {
				h.waiting = append(h.waiting, b.Result.Handle)
			}
		}
	case agent.TurnEnded:
		switch {
		case e.Seq <= h.from:
			return false, nil
		case b.Reason == agent.EndDone:
			return len(h.handed)+len(h.unread) == 0, nil // else it goes on with what comes back
		case b.Reason == agent.EndLimit:
			return true, nil
		}
		return true, fmt.Errorf("the turn ended: %s %s", b.Reason, b.Error)
	}
	return false, nil
}

func note(set *map[string]bool, name string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[name] = true
}

// settledInput is the input by which a session has its model read what came of a call.
func settledInput(handle string) string { return "settled:" + handle }

// linger waits until what a session waits for has come out, and returns what it says then.
func linger(ctx context.Context, sess *client.Session, h heard) (string, error) {
	open := map[string]bool{}
	for _, handle := range h.waiting {
		open[settledInput(handle)] = true
	}
	return follow(ctx, sess, &heard{}, h.seq, func(input string) bool { return open[input] })
}

// follow reads the events of a session behind one, until a turn ends that has an input that is
// meant.
func follow(ctx context.Context, sess *client.Session, h *heard, after int64, mine func(input string) bool) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	meant := false
	for e, err := range sess.Events(ctx, after) {
		if err != nil {
			return "", err
		}
		if e.Live() {
			continue
		}
		if b, ok := e.Body.(agent.InputAdded); ok && mine(b.Input) {
			meant = true
		}
		if !meant {
			continue
		}
		if ended, err := h.take(e); ended {
			return h.text, err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	return "", errGone
}
