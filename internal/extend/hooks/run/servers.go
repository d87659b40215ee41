package run

import (
	"context"
	"encoding/json"
	"errors"

	"dure/agent"
	"dure/internal/extend/hooks"
	"dure/internal/kernel/plug"
)

// invoke calls a tool on behalf of a hook, and notes that its server is asked meanwhile.
func (h *Session) invoke(ctx context.Context, inv agent.Invocation) (agent.Result, error) {
	if name, _ := h.c.Server(h.b.ID, inv.Tool); name != "" {
		h.calls(name, 1)
		defer h.calls(name, -1)
	}
	return h.b.Reach.Invoke(ctx, inv)
}

// calls counts the calls of hooks that a server has to answer. It has its connection from this
// session, or from one that this works for.
func (h *Session) calls(server string, n int) {
	for ; h != nil; h = h.parent {
		h.mu.Lock()
		h.calling[server] += n
		h.mu.Unlock()
	}
}

// Eliciting asks the hooks before a question of a server is put to the person. What they
// answer is the answer; without an action they leave it to the person. What they forbid is
// declined. A question that may come of a call of a
// hook is declined, too, if hooks would run for it: hooks do not bring about hooks.
func (h *Session) Eliciting(ctx context.Context, server string, fields map[string]any) (plug.ElicitReply, error) {
	if h == nil {
		return plug.ElicitReply{}, nil
	}
	h.mu.Lock()
	calls := h.calling[server] > 0
	h.mu.Unlock()
	if calls && (h.set.Has(hooks.Elicitation) || h.set.Has(hooks.ElicitationResult) || h.set.Has(hooks.Notification)) {
		return plug.ElicitReply{Action: declined}, nil
	}
	return h.elicit(ctx, hooks.Elicitation, server, fields)
}

// Answering tells the hooks what the person has answered, before the server is. They may put
// another answer in its place, or decline.
func (h *Session) Answering(ctx context.Context, server string, fields map[string]any) (plug.ElicitReply, error) {
	if h == nil {
		return plug.ElicitReply{}, nil
	}
	return h.elicit(ctx, hooks.ElicitationResult, server, fields)
}

const declined = "decline"

func (h *Session) elicit(ctx context.Context, e hooks.Event, server string, fields map[string]any) (r plug.ElicitReply, err error) {
	if !h.set.Has(e) {
		return r, nil
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: e, Match: server, Fields: fields})
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case out.Block, out.Stop, out.Verdict == agent.Deny:
		return plug.ElicitReply{Action: declined}, nil
	case out.Action == "":
		return r, nil
	}
	r.Action = out.Action
	if len(out.Content) > 0 && json.Unmarshal(out.Content, &r.Content) != nil {
		return plug.ElicitReply{Action: declined}, errors.New("content of a hook's answer is no object")
	}
	return r, nil
}
