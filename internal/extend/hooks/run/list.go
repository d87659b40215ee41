package run

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/hooks"
	"dure/internal/kernel/plug"
)

// Answers returns the queries that the extension answers. Only an open session has hooks of
// its own, and so no store is opened for them.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(x.list), plug.Storeless(x.try)}
}

// list returns the hooks of a session, or those that one in the working folder would have.
func (x *Extension) list(_ context.Context, q query.ListHooks) (query.HookReport, error) {
	settings, workdir := x.c.Settings, x.c.Workdir
	var all []hooks.Hook
	if q.Session != "" {
		h := x.Of(q.Session)
		if h == nil {
			return query.HookReport{}, &agent.Problem{
				Code: agent.ProblemMissing, Message: "no hooks run in the session " + q.Session + ": it is not open", Fix: "open it first",
				Args: map[string]string{"session": q.Session},
			}
		}
		h.Unheld(h.refresh)
		h.mu.Lock()
		all, settings, workdir = h.all, h.settings, h.b.Workdir
		h.mu.Unlock()
	}
	more := x.c.More(workdir)
	read, faults := hooks.Read(settings.On(more...))
	if q.Session == "" {
		all = read
	}
	r := query.HookReport{Hooks: []query.HookInfo{}, Off: x.off(settings, more)}
	for _, h := range all {
		r.Hooks = append(r.Hooks, hookInfo(h))
	}
	for _, f := range append(faults, hooks.Check(all)...) {
		r.Faults = append(r.Faults, query.HookFault{Source: x.c.Place(f.Source, f.At), At: f.At, Message: f.Message, Fix: f.Fix})
	}
	return r, nil
}

// off returns the sources whose hooks do not run.
func (x *Extension) off(s hooks.Settings, more []hooks.Defined) []query.HooksOff {
	off, running := x.c.Off(), map[string]bool{}
	for _, d := range s.On(more...) {
		running[d.String()] = true
	}
	why := "disabled"
	if s.ManagedOnly {
		why = "managed"
	}
	for _, d := range slices.Concat(s.Sources, more) {
		if !running[d.String()] {
			off = append(off, query.HooksOff{Source: d.String(), Why: why})
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
