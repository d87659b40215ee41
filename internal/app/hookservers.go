package app

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"dure/agent"
	"dure/internal/extend/hooks"
	"dure/internal/extend/mcp"
	"dure/internal/frontend/text"
)

// A toldServer is a server as hooks are told of it.
type toldServer struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

// serverOf returns the server of a tool; nil = it is none of a server.
func (c *connected) serverOf(tool string) *toldServer {
	if c == nil {
		return nil
	}
	for _, t := range c.set.Tools() {
		own, ok := t.(*mcp.Tool)
		if !ok || t.Spec().Name != tool {
			continue
		}
		for _, s := range c.set.Status() {
			if s.Server.Name == own.Server() {
				return &toldServer{s.Server.Name, s.Server.Scope}
			}
		}
	}
	return nil
}

// toolOf returns the name of a tool of a server, and whether that is connected.
func (c *connected) toolOf(server, tool string) (name string, up bool) {
	if c == nil {
		return "", false
	}
	up = slices.ContainsFunc(c.set.Status(), func(s mcp.Status) bool { return s.Server.Name == server && s.State == mcp.Connected })
	for _, t := range c.set.Tools() {
		if own, ok := t.(*mcp.Tool); ok && own.Server() == server && own.Remote() == tool {
			return t.Spec().Name, up
		}
	}
	return "", up
}

// calls calls a tool of a server on behalf of a hook.
func (h *hooked) calls(ctx context.Context, inv agent.Invocation) (agent.Result, error) {
	c := h.app.serversOf(h.b.ID)
	if s := c.serverOf(inv.Tool); s != nil {
		c.counts(s.Name, 1)
		defer c.counts(s.Name, -1)
	}
	return h.b.Reach.Invoke(ctx, inv)
}

// counts counts the calls of hooks that a server has to answer.
func (c *connected) counts(server string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooking[server] += n
}

// inTurn reports whether a question of a server may come of a call that a hook has made, and
// would have hooks run: hooks do not bring about hooks.
func (c *connected) inTurn(h *hooked, server string) bool {
	if h == nil || !h.set.Has(hooks.Elicitation) && !h.set.Has(hooks.ElicitationResult) && !h.set.Has(hooks.Notification) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hooking[server] > 0
}

// eliciting asks the hooks before a question of a server is put to the person. What they
// answer is the answer; what they forbid is declined.
func (h *hooked) eliciting(ctx context.Context, q mcp.Elicitation) (r mcp.Reply, decided bool, err error) {
	if h == nil || !h.set.Has(hooks.Elicitation) {
		return r, false, nil
	}
	fields := map[string]any{"mcp_server_name": q.Server, "message": q.Message, "mode": modeOf(q)}
	if q.URL != "" {
		fields["url"] = q.URL
	} else {
		fields["requested_schema"] = q.Schema
	}
	if q.ID != "" {
		fields["elicitation_id"] = q.ID
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.Elicitation, Match: q.Server, Fields: fields})
	if ctx.Err() != nil {
		return r, false, context.Cause(ctx)
	}
	return replyOf(out)
}

// elicits tells the hooks that a question of a server waits for the person.
func (h *hooked) elicits(q mcp.Elicitation) {
	if h == nil {
		return
	}
	kind := "elicitation_dialog"
	if q.URL != "" {
		kind = "elicitation_url_dialog"
	}
	h.tell(notification(kind, text.For(h.app.cfg.Language).Say(text.HookElicits, "server", q.Server)))
}

// elicited tells the hooks what the person has answered, before the server is. They may put
// another answer in its place, or decline.
func (h *hooked) elicited(ctx context.Context, q mcp.Elicitation, r mcp.Reply) (mcp.Reply, error) {
	if h == nil {
		return r, nil
	}
	if h.set.Has(hooks.ElicitationResult) {
		fields := map[string]any{"mcp_server_name": q.Server, "action": r.Action, "mode": modeOf(q)}
		if r.Content != nil {
			fields["content"] = r.Content
		}
		if q.ID != "" {
			fields["elicitation_id"] = q.ID
		}
		out := h.set.Fire(ctx, hooks.Moment{Event: hooks.ElicitationResult, Match: q.Server, Fields: fields})
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		other, decided, err := replyOf(out)
		if err != nil {
			return r, err
		}
		if decided {
			if other.Action == mcp.Accept && other.Content == nil {
				other.Content = r.Content
			}
			r = other
		}
	}
	h.tell(notification("elicitation_response", text.For(h.app.cfg.Language).Say(text.HookElicited, "server", q.Server, "action", r.Action)))
	return r, nil
}

// modeOf is the form of a question of a server.
func modeOf(q mcp.Elicitation) string {
	if q.URL != "" {
		return "url"
	}
	return "form"
}

// replyOf is the answer to a server that hooks have given, if they have.
func replyOf(out hooks.Outcome) (r mcp.Reply, decided bool, err error) {
	switch {
	case out.Block, out.Stop, out.Verdict == agent.Deny:
		return mcp.Reply{Action: mcp.Decline}, true, nil
	case out.Action == "":
		return r, false, nil
	}
	r.Action = out.Action
	if len(out.Content) > 0 && json.Unmarshal(out.Content, &r.Content) != nil {
		return mcp.Reply{Action: mcp.Decline}, true, errors.New("content of a hook's answer is no object")
	}
	return r, true, nil
}
