package run

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/extend/hooks"
	"dure/internal/kernel/plug"
)

// maxWords bounds the calls of a turn whose hooks are remembered; with more, the oldest
// are asked about again.
const maxWords = 1000

// words are what hooks have said of the calls of a turn: the gate asks more than once.
type words struct {
	mu     sync.Mutex
	said   map[string]agent.Decision // by call and input
	ahead  map[string]agent.Decision // of a call whose input a hook has just changed
	spoken map[string]agent.Decision // of one that a hook has changed in the place of a person
}

func (w *words) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said, w.ahead, w.spoken = nil, nil, nil
}

// room makes room for one more call. mu is held.
func (w *words) room() {
	if w.said == nil || len(w.said) > maxWords {
		w.said = map[string]agent.Decision{}
	}
}

// word returns what is known of a call.
func (w *words) word(c agent.Call) (agent.Decision, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := c.ID + "\x00" + string(c.Input)
	w.room()
	if d, ok := w.said[key]; ok {
		return d, true
	}
	if d, ok := w.ahead[c.ID]; ok { // this is the input that the hook has put there
		delete(w.ahead, c.ID)
		w.said[key] = d
		return d, true
	}
	return agent.Decision{}, false
}

// keep remembers what was said of a call. A changed input stands for what comes of it:
// whoever has changed it is not asked about that once more.
func (w *words) keep(c agent.Call, d agent.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(d.Input) == 0 {
		w.room() // a turn may have begun since the call was looked up
		w.said[c.ID+"\x00"+string(c.Input)] = d
		return
	}
	if w.ahead == nil {
		w.ahead = map[string]agent.Decision{}
	}
	d.Input = nil
	w.ahead[c.ID] = d
}

// speak remembers what was said in the place of a person of a call that it changes.
func (w *words) speak(c agent.Call, d agent.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spoken == nil {
		w.spoken = map[string]agent.Decision{}
	}
	d.Input = nil
	w.spoken[c.ID] = d
}

// heard returns what was said of a call in the place of a person, and forgets it.
func (w *words) heard(c agent.Call) (agent.Decision, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, ok := w.spoken[c.ID]
	delete(w.spoken, c.ID)
	return d, ok
}

// stage is that of hooks in the gate.
func (h *Session) stage() plug.Stage {
	return plug.Stage{
		Name: "hooks",
		Waits: func(p agent.Proposal) bool {
			return !unheard(p) && h.set.Concerns(hooks.PreToolUse, h.c.Dialect.Name(p.Call.Tool))
		},
		Decide: h.decide,
	}
}

// decide asks the hooks before a call. What they allow is looked at by the rules that
// follow; what they deny is denied.
func (h *Session) decide(ctx context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
	if unheard(p) {
		return agent.Decision{}, nil
	}
	if d, known := h.words.word(p.Call); known {
		return d, nil
	}
	if !h.set.Concerns(hooks.PreToolUse, h.c.Dialect.Name(p.Call.Tool)) {
		return agent.Decision{}, nil
	}
	out := h.set.Fire(ctx, h.about(hooks.PreToolUse, p, nil))
	if ctx.Err() != nil {
		return agent.Decision{}, context.Cause(ctx)
	}
	d := wordOf(out)
	d.Reason = h.masked(d.Reason)
	for i := range d.Trace {
		d.Trace[i].Reason = d.Reason
	}
	if !d.Defer { // one that is put off is asked about anew
		h.words.keep(p.Call, d)
	}
	return d, nil
}

// wordOf is the decision that the outcome before a call stands for. One that puts the
// call off until the program is run again asks where somebody is there.
func wordOf(out hooks.Outcome) agent.Decision {
	d := agent.Decision{Verdict: out.Verdict, Input: out.Input}
	switch {
	case out.Stop, out.Block, out.Verdict == agent.Deny:
		d = agent.Decision{Verdict: agent.Deny, Code: agent.ErrBlockedByHook, Stop: out.Stop}
	case out.Defer:
		d.Verdict, d.Defer, d.Input = agent.AskUser, true, nil
	}
	if d.Verdict == agent.Pass {
		return d
	}
	d.By = by(out)
	if d.Verdict == agent.Deny {
		d.Reason = reason(out)
	} else if d.Reason = strings.Join(out.Reasons, "\n"); d.Reason == "" {
		d.Reason = "a hook says so"
	}
	d.Trace = []agent.Opinion{{Stage: d.By, Verdict: d.Verdict, Reason: d.Reason}}
	return d
}

// about is what hooks are told of a call.
func (h *Session) about(e hooks.Event, p agent.Proposal, more map[string]any) hooks.Moment {
	name := h.c.Dialect.Name(p.Call.Tool)
	fields := map[string]any{"tool_name": name, "tool_input": h.absolute(p.Call.Input)}
	if e != hooks.PermissionRequest {
		fields["tool_use_id"] = p.Call.ID
	}
	if strings.HasPrefix(p.Call.Tool, "mcp__") {
		if name, source := h.c.Server(h.b.ID, p.Call.Tool); name != "" {
			fields["mcp_server"] = map[string]string{"name": name, "source": source}
		}
	}
	for k, v := range more {
		fields[k] = v
	}
	return hooks.Moment{Event: e, Match: name, Fields: fields, Proposal: &p}
}

// pathFields are the inputs of tools that name a file: hooks are told where it is.
var pathFields = []string{"file_path", "notebook_path"}

// absolute returns an input in which the file that it names is absolute.
func (h *Session) absolute(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return json.RawMessage("{}")
	}
	if !bytes.Contains(input, []byte(`_path"`)) {
		return input
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return input
	}
	changed := false
	for _, name := range pathFields {
		var path string
		if json.Unmarshal(fields[name], &path) != nil || path == "" || filepath.IsAbs(path) && filepath.Clean(path) == path {
			continue
		}
		if rest, ok := strings.CutPrefix(path, "~/"); ok && h.c.UserHome != "" {
			path = filepath.Join(h.c.UserHome, rest)
		} else if !filepath.IsAbs(path) {
			path = filepath.Join(h.b.Workdir, path)
		}
		data, err := json.Marshal(filepath.Clean(path))
		if err == nil {
			fields[name], changed = data, true
		}
	}
	if !changed {
		return input
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return input
	}
	return data
}

// asking asks the hooks in the place of a person. What only a person may decide, they do
// not: what no mode allows, and what leaves the confinement.
func (h *Session) asking(ctx context.Context, p agent.Proposal, d agent.Decision) (agent.Decision, bool) {
	said, changed := h.words.heard(p.Call)
	switch {
	case changed && !onlyPerson(d):
		return said, true
	case changed:
		h.note("info", "a hook has made a call of another that only a person may allow: "+d.Reason)
	case !unheard(p) && h.set.Has(hooks.PermissionRequest):
		if said, decided := h.speaking(ctx, p, d); decided || ctx.Err() != nil {
			return said, decided
		}
	}
	if h.Top().Open.Approver && !ofServer(p) { // who is asked what agents need
		h.Notify("permission_prompt", h.c.Asks(h.c.Dialect.Name(p.Call.Tool)))
	}
	return agent.Decision{}, false
}

// onlyPerson reports whether no hook may allow what is asked about.
func onlyPerson(d agent.Decision) bool { return d.By == "floor" || d.By == "confinement" }

// speaking asks the hooks for a decision that is a person's.
func (h *Session) speaking(ctx context.Context, p agent.Proposal, d agent.Decision) (agent.Decision, bool) {
	var suggested []map[string]any
	for _, c := range h.Policy.Suggest(p) {
		suggested = append(suggested, map[string]any{"type": "addRules", "behavior": "allow", "destination": c.Remember, "rules": c.Rules})
	}
	more := map[string]any{}
	if suggested != nil {
		more["permission_suggestions"] = suggested
	}
	out := h.set.Fire(ctx, h.about(hooks.PermissionRequest, p, more))
	if ctx.Err() != nil {
		return agent.Decision{}, false
	}
	switch {
	case out.Stop, out.Verdict == agent.Deny:
		return agent.Decision{
			Verdict: agent.Deny, Code: agent.ErrBlockedByHook, By: by(out), Reason: h.masked(reason(out)), Stop: out.Interrupt || out.Stop,
		}, true
	case out.Verdict == agent.Allow && onlyPerson(d) && !(p.Effects.User && len(out.Input) > 0):
		h.note("info", "a hook has allowed what only a person may: "+d.Reason)
		return agent.Decision{}, false
	case out.Verdict != agent.Allow:
		return agent.Decision{}, false
	}
	h.wished(ctx, p, out)
	said := agent.Decision{Verdict: agent.Allow, By: by(out), Reason: h.masked(strings.Join(out.Reasons, "\n")), Input: out.Input}
	if len(said.Input) > 0 && !p.Effects.User { // what it is now is decided on anew, and nobody asked who has just said it
		h.words.speak(p.Call, said)
	}
	return said, true
}

// wished has hold what hooks that have allowed a call want to hold beyond it: in the way,
// and no further, in which a person's answer would. What cannot hold is told.
func (h *Session) wished(ctx context.Context, p agent.Proposal, out hooks.Outcome) {
	w := out.Wishes()
	for _, g := range []struct {
		remember string
		rules    []string
	}{{agent.RememberSession, w.Session}, {agent.RememberAlways, w.Always}} {
		if len(g.rules) == 0 {
			continue
		}
		err := h.Policy.Grantable(g.rules, g.remember)
		if err == nil {
			err = h.b.Send(ctx, plug.GrantRules{RulesGranted: agent.RulesGranted{Remember: g.remember, Rules: g.rules, By: by(out), Call: p.Call.ID}})
		}
		if err != nil {
			w.Left = append(w.Left, err.Error())
		}
	}
	if w.Mode != "" && w.Mode != h.Policy.Mode() {
		if err := h.b.Send(ctx, plug.ChooseMode{Mode: w.Mode, By: by(out)}); err != nil {
			w.Left = append(w.Left, err.Error())
		}
	}
	if len(w.Left) > 0 {
		h.note("warn", "of updatedPermissions of "+by(out)+" this is not taken over: "+h.masked(strings.Join(w.Left, "; ")))
	}
}

// denied tells the hooks of a denial that was none of theirs.
func (h *Session) denied(ctx context.Context, p agent.Proposal, d agent.Decision) {
	if unheard(p) || strings.HasPrefix(d.By, originOfHooks) || !h.set.Has(hooks.PermissionDenied) {
		return
	}
	h.set.Fire(ctx, h.about(hooks.PermissionDenied, p, map[string]any{"reason": d.Reason}))
}
