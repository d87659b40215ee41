package control

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"dure/client/protocol"
)

// registered are the hooks of a host, as settings have hooks. Each has its place in the list
// for a name. What goes wrong with one forbids what it was asked about: the host may have
// had a no on its way.
func registered(list []protocol.HookRegistration) json.RawMessage {
	if len(list) == 0 {
		return nil
	}
	type hook struct {
		Type      string  `json:"type"`
		Callback  string  `json:"callback"`
		Timeout   float64 `json:"timeout"` // seconds
		OnFailure string  `json:"onFailure"`
	}
	type group struct {
		Matcher string `json:"matcher,omitempty"`
		Hooks   []hook `json:"hooks"`
	}
	all := map[string][]group{}
	for i, h := range list {
		all[h.Event] = append(all[h.Event], group{h.Matcher, []hook{{"callback", strconv.Itoa(i), float64(h.Timeout) / 1000, "block"}}})
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic(err) // of strings and numbers
	}
	return data
}

var (
	errDeaf = errors.New("the host answers nothing any more")
	errLate = errors.New("the host has not answered in time")
)

// hook tells the host of an event that it has registered for, and returns its answer.
func (c *conn) hook(ctx context.Context, name string, input []byte, call string) ([]byte, error) {
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(c.host.Hooks) {
		return nil, errors.New("the host has no such hook")
	}
	var about struct {
		Session string `json:"session_id"`
		Event   string `json:"hook_event_name"`
	}
	if err := json.Unmarshal(input, &about); err != nil {
		return nil, err
	}
	d := protocol.HookEventData{Event: about.Event, Hook: i, Call: call, Input: input, Timeout: c.host.Hooks[i].Timeout}
	a := c.register("hook")
	if a == nil { // it is told, and that is all
		d.Timeout = 0
		c.tellHook("hook-"+name, about.Session, d)
		return nil, errDeaf
	}
	if !c.tellHook(a.id, about.Session, d) {
		c.retire(a, "it was too long to be shown")
		return nil, errors.New("it is too long to be shown to the host")
	}
	select {
	case r := <-a.reply:
		return c.heardHook(r, about.Session)
	case <-a.none:
		err = errDeaf
	case <-ctx.Done():
		err = errLate
	}
	if c.retire(a, "the time was over") {
		return nil, err
	}
	return c.heardHook(<-a.reply, about.Session) // it came just now
}

func (c *conn) tellHook(id, session string, d protocol.HookEventData) bool {
	data, err := protocol.Encode(protocol.TypeHookEvent, id, session, d)
	if err != nil {
		return false
	}
	c.out.put(data, eventRoom)
	return true
}

// heardHook takes the host's answer to an event of hooks.
func (c *conn) heardHook(r *request, session string) ([]byte, error) {
	c.reply(r, session)
	p, _ := protocol.Payload[protocol.HookCallbackPayload](r.Message) // it was read before
	if p.Error != "" {
		return nil, errors.New(p.Error)
	}
	return p.Output, nil
}

// hookTime fills in how long the answers to hooks are waited for.
func hookTime(list []protocol.HookRegistration) error {
	for i := range list {
		h := &list[i]
		if h.Timeout == 0 {
			h.Timeout = protocol.DefaultAskTime
		}
		switch {
		case h.Event == "":
			return &protocol.Error{Code: protocol.CodePayload, Message: "the payload of Initialize: a hook has no event"}
		case h.Timeout < 1 || h.Timeout > protocol.MaxAskTime:
			return &protocol.Error{Code: protocol.CodePayload, Message: "the payload of Initialize: timeout_ms of a hook is not 1 to " + strconv.Itoa(protocol.MaxAskTime)}
		}
	}
	return nil
}
