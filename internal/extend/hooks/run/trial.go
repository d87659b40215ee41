package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/hooks"
)

// try fires an event without a session. Commands run, confined as they are in a session, and
// servers are asked; what only a session can ask is not.
func (x *Extension) try(ctx context.Context, q query.TryHooks) (query.HookTrial, error) {
	e, ok := hooks.EventOf(q.Event)
	if !ok {
		return query.HookTrial{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: q.Event + " is no event of hooks", Fix: "see them with: dure hooks events", Args: map[string]string{"event": q.Event},
		}
	}
	fields, err := toldFields(q.Told)
	if err != nil {
		return query.HookTrial{}, err
	}
	m := hooks.MomentOf(e, fields)
	if m.Proposal != nil && m.Proposal.Call.Tool != "" {
		if p, err := x.c.Explain(ctx, m.Proposal.Call.Tool, m.Proposal.Call.Input); err == nil { // what is unknown of the call, rules cannot tell
			p.Call.ID = m.Proposal.Call.ID
			m.Proposal = &p
		}
	}
	box, find, err := x.c.Confine()
	if err != nil {
		return query.HookTrial{}, err
	}
	defer func() { _ = box.Close() }() // nothing runs in it any more
	s, more := x.c.Settings, x.c.More(x.c.Workdir)
	all, _ := hooks.Read(s.On(more...))
	h := &Session{c: &x.c, settings: s, reach: reachOf(s, all)}
	c := x.base(box, find, x.c.Workdir)
	c.Hooks, c.Post, c.Allowed, c.Var, c.Rule = all, h.post, h.allowed, h.variable, x.c.Fits(x.c.Workdir)
	c.Facts = func() hooks.Facts {
		return hooks.Facts{Session: "trial", Cwd: x.c.Workdir, Mode: string(x.c.Mode), Effort: x.c.Effort}
	}
	c.Record, c.NewID = func(...agent.Body) error { return nil }, func() string { return "" }
	set := hooks.New(c)
	defer set.Close()
	trials, out, err := set.Try(ctx, m, func(h hooks.Hook) bool { return !q.Dry && (h.Type == hooks.Command || h.Type == hooks.HTTP) })
	if err != nil {
		return query.HookTrial{}, err
	}
	t := query.HookTrial{Event: string(e), Match: m.Match, Hooks: []query.TriedHook{}, Off: x.off(s, more), Effect: effectOf(e, out)}
	if t.Told, err = set.Told(m); err != nil {
		return query.HookTrial{}, err
	}
	for _, tr := range trials {
		t.Hooks = append(t.Hooks, triedHook(tr, q.Dry))
	}
	return t, ctx.Err()
}

// toldFields reads what hooks are to be told; nothing is an empty object.
func toldFields(told string) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	var err error
	switch {
	case len(told) > hooks.MaxTold:
		err = fmt.Errorf("it has more than %d bytes", hooks.MaxTold)
	case len(strings.TrimSpace(told)) > 0:
		if err = json.Unmarshal([]byte(told), &fields); fields == nil {
			fields = map[string]json.RawMessage{}
		}
	}
	if err != nil {
		return nil, &agent.Problem{
			Code: agent.ProblemUsage, Message: "what hooks are to be told is no JSON object: " + err.Error(),
			Fix: `write it like {"tool_name": "Bash", "tool_input": {"command": "ls"}}`, Err: err,
		}
	}
	return fields, nil
}

// triedHook is a trial as it is shown.
func triedHook(tr hooks.Trial, dry bool) query.TriedHook {
	t := query.TriedHook{HookInfo: hookInfo(tr.Hook), Skip: string(tr.Skip), Why: tr.Why}
	a := tr.Answer
	switch {
	case tr.Skip != "":
		return t
	case a == nil && dry:
		t.Skip = "dry"
		return t
	case a == nil:
		t.Skip = "session"
		return t
	}
	t.Outcome, t.Exit, t.Millis, t.Verdict, t.Reason, t.Context, t.Warn = a.Outcome, a.Exit, tr.Took.Milliseconds(), a.Verdict, a.Reason, a.Context, a.Warn
	t.Message = strings.Join(slices.DeleteFunc([]string{a.Message, a.Because, a.Invalid}, func(s string) bool { return s == "" }), "\n")
	return t
}

// effectOf is what would come of the answers at an event.
func effectOf(e hooks.Event, out hooks.Outcome) query.HookEffect {
	x := query.HookEffect{
		Verdict: out.Verdict, Reasons: out.Reasons, Stop: out.Stop, StopReason: out.Because, Context: out.Context, Input: out.Input, Output: out.Output,
	}
	if out.Block || out.Verdict == agent.Deny {
		x.Does, x.Input = cmp.Or(e.Blocks(), query.HookDenies), nil
	}
	if e != hooks.PreToolUse && e != hooks.PermissionRequest && e != hooks.PreModelSwitch {
		x.Verdict = ""
	}
	return x
}
