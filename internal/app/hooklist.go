package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/extend/hooks"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// listHooks returns the hooks of a session, or those that one in the working folder would
// have.
func (a *App) listHooks(q query.ListHooks) (query.HookReport, error) {
	cfg, workdir := a.cfg, a.opts.Workdir
	var all []hooks.Hook
	if q.Session != "" {
		h := a.hookedOf(q.Session)
		if h == nil {
			return query.HookReport{}, &agent.Problem{
				Code: agent.ProblemMissing, Message: "no hooks run in the session " + q.Session + ": it is not open", Fix: "open it first",
				Args: map[string]string{"session": q.Session},
			}
		}
		h.unheld(h.refresh)
		h.mu.Lock()
		all, cfg.Hooks, workdir = h.all, h.cfg, h.workdir
		h.mu.Unlock()
	}
	sources := hookSources(cfg, a.moreHooks(workdir)...)
	read, faults := readHooks(sources)
	if q.Session == "" {
		all = read
	}
	r := query.HookReport{Hooks: []query.HookInfo{}}
	for _, h := range all {
		r.Hooks = append(r.Hooks, hookInfo(h))
		for _, f := range hooks.Check([]hooks.Hook{h}) {
			faults = append(faults, HookFault{h.Source.String(), f})
		}
	}
	for _, f := range faults {
		r.Faults = append(r.Faults, query.HookFault{Source: config.PlaceOf(f.File, f.At), At: f.At, Message: f.Message, Fix: f.Fix})
	}
	r.Off = a.hooksOff(cfg, a.moreHooks(workdir), sources)
	return r, nil
}

// hooksOff returns the sources whose hooks do not run.
func (a *App) hooksOff(cfg config.Config, more, on []hookSource) (off []query.HooksOff) {
	for _, i := range cfg.Inert {
		if i.Key != "hooks" {
			continue
		}
		o := query.HooksOff{Source: i.Origin.Where, Why: string(i.Why)}
		if f, err := a.Folder(a.opts.Workdir); err == nil && i.Why == config.Untrusted && f.Stale() != nil {
			o.Why, o.Changed = "changed", f.Stale()
		}
		off = append(off, o)
	}
	running := map[string]bool{}
	for _, s := range on {
		running[s.String()] = true
	}
	why := "disabled"
	if cfg.Hooks.ManagedOnly {
		why = "managed"
	}
	silent := cfg.Hooks
	silent.Off, silent.ManagedOff, silent.ManagedOnly = false, false, false
	for _, s := range hookSources(config.Config{Hooks: silent}, more...) {
		if !running[s.String()] {
			off = append(off, query.HooksOff{Source: s.String(), Why: why})
		}
	}
	return off
}

// hookInfo is a hook as it is listed.
func hookInfo(h hooks.Hook) query.HookInfo {
	return query.HookInfo{
		Event: string(h.Event), Matcher: h.Matcher, Type: string(h.Type),
		Run:  cmp.Or(h.Command, h.URL, h.Prompt, h.Callback, strings.TrimSpace(h.Server+" "+h.Tool)),
		Args: h.Args, If: h.If, Seconds: h.Limit().Seconds(), Status: h.Status, Once: h.Once, Async: h.Async, Rewake: h.Rewake, Block: h.Block,
		Layer: h.Source.Layer, Source: h.Source.String(), At: h.At,
	}
}

// HookEvents returns the events at which hooks run, sorted.
func HookEvents() []hooks.Event { return hooks.Events() }

// HookEvent returns the event that a word means in any spelling.
func HookEvent(word string) (hooks.Event, bool) { return hooks.EventOf(word) }

// MaxTold is how much may be written down for a trial of hooks, in bytes.
const MaxTold = 4 << 20

// TryHooks fires an event without a session: told is what hooks are to be told, an object
// as they get it. Commands run, confined as they are in a session, and servers are asked;
// what only a session can ask is not. With dry, nothing runs.
func (a *App) TryHooks(ctx context.Context, event string, told []byte, dry bool) (query.HookTrial, error) {
	e, ok := hooks.EventOf(event)
	if !ok {
		return query.HookTrial{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: event + " is no event of hooks", Fix: "see them with: dure hooks events", Args: map[string]string{"event": event},
		}
	}
	fields, err := toldFields(told)
	if err != nil {
		return query.HookTrial{}, err
	}
	m := hooks.MomentOf(e, fields)
	if m.Proposal != nil && m.Proposal.Call.Tool != "" {
		if x, err := a.Explain(ctx, m.Proposal.Call.Tool, m.Proposal.Call.Input); err == nil { // what is unknown of the call, rules cannot tell
			x.Proposal.Call.ID = m.Proposal.Call.ID
			m.Proposal = &x.Proposal
		}
	}
	sources := hookSources(a.cfg, a.moreHooks(a.opts.Workdir)...)
	set, done, err := a.trialSet(sources)
	if err != nil {
		return query.HookTrial{}, err
	}
	defer done()
	trials, out, err := set.Try(ctx, m, func(h hooks.Hook) bool { return !dry && (h.Type == hooks.Command || h.Type == hooks.HTTP) })
	if err != nil {
		return query.HookTrial{}, err
	}
	t := query.HookTrial{Event: string(e), Match: m.Match, Hooks: []query.TriedHook{}, Off: a.hooksOff(a.cfg, a.moreHooks(a.opts.Workdir), sources), Effect: effectOf(e, out)}
	if t.Told, err = set.Told(m); err != nil {
		return query.HookTrial{}, err
	}
	for _, tr := range trials {
		t.Hooks = append(t.Hooks, triedHook(tr, dry))
	}
	return t, ctx.Err()
}

// toldFields reads what hooks are to be told; nothing is an empty object.
func toldFields(told []byte) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	var err error
	switch {
	case len(told) > MaxTold:
		err = fmt.Errorf("it has more than %d bytes", MaxTold)
	case len(bytes.TrimSpace(told)) > 0:
		if err = json.Unmarshal(told, &fields); fields == nil {
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

// trialSet returns the hooks of the working folder, to be tried.
func (a *App) trialSet(sources []hookSource) (*hooks.Set, func(), error) {
	workdir := a.opts.Workdir
	ws, err := workspace.New(workspace.Config{Root: workdir, Extra: a.cfg.AddDirs})
	if err != nil {
		return nil, nil, workspace.Problem(workdir, err)
	}
	all, _ := readHooks(sources)
	h := &hooked{app: a, workdir: workdir, dialect: catalog.Dialect(a.cfg.Dialect), cfg: a.cfg.Hooks, reach: reachOf(a.cfg.Hooks, all)}
	box, _ := a.newBox(ws, workdir, nil)
	root := workdir
	if top := gitTop(workdir); top != "" {
		root = top
	}
	set := hooks.New(hooks.Config{
		Hooks: all, Box: box, Shell: hookShell(finder(ws)), Env: a.commandEnv(), Project: root,
		Facts: func() hooks.Facts {
			return hooks.Facts{Session: "trial", Cwd: workdir, Mode: string(a.cfg.Mode), Effort: a.cfg.Effort}
		},
		Post:    poster{a, func() hookReach { return h.reach }}.post,
		Allowed: h.reach.allows, Var: h.variable, Rule: h.rule,
		Record: func(...agent.Body) error { return nil }, NewID: func() string { return "" },
		Reads: hookFolders(a.cfg.Home, a.opts.UserHome),
	})
	return set, func() { set.Close(); _ = box.Close() }, nil
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
	t.Message = strings.Join(nonEmpty(a.Message, a.Because, a.Invalid), "\n")
	return t
}

func nonEmpty(all ...string) (kept []string) {
	for _, s := range all {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
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
