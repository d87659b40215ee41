package app

import (
	"context"
	"strconv"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/lsp"
)

// checks finds for a diagnosis what the settings say, and what of capabilities that are
// connected here.
type checks struct {
	plug.NoSession
	*App
}

// Name returns the name of the extension.
func (checks) Name() string { return "settings" }

// Findings implements [plug.Doctor].
func (c checks) Findings(context.Context) []query.Finding {
	l := query.Findings{Group: query.Configured, List: c.cfg.Findings(c.permissions.Source(), c.opts.Version)}
	l.Group = query.Enforced
	c.findSandbox(&l)
	c.findTrust(&l)
	return l.List
}

// findSandbox says what confines commands here: it is tried out.
func (a *App) findSandbox(l *query.Findings) {
	r, err := a.boxes.Explain(context.Background(), query.ExplainSandbox{})
	switch {
	case err != nil:
		l.Fault("sandbox", err)
	case r.Level == string(sandbox.None) && a.cfg.Mode == agent.ModeBypass:
		l.Add("sandbox", query.Warn, "sandbox.bypass")
	case r.Off:
		l.Add("sandbox", query.Warn, "sandbox.off", "where", a.cfg.From("sandbox.mode"))
	case r.Level == string(sandbox.Full):
		l.Add("sandbox", query.Good, "sandbox.full", "mechanism", r.Mechanism)
	default:
		l.Add("sandbox", query.Warn, "sandbox."+r.Level, "mechanism", r.Mechanism)
	}
}

// findTrust says whether what the folder brings counts.
func (a *App) findTrust(l *query.Findings) {
	f, err := a.trust.Look(a.opts.Workdir)
	switch {
	case err != nil:
		l.Fault("trust", err)
	case a.cfg.Trusted:
		l.Add("trust", query.Good, "trust.yes", "path", f.Path)
	case f.State.Nothing:
		l.Add("trust", query.Good, "trust.nothing", "path", f.Path)
	case f.Stale() != nil:
		l.Add("trust", query.Warn, "trust.stale", "path", f.Path, "list", text.Some(f.Stale()))
	default:
		l.Add("trust", query.Warn, "trust.no", "path", f.Path, "n", strconv.Itoa(len(f.Files)))
	}
}

// languageServers returns the names of the language servers that can be started.
func languageServers() (names []string) {
	for _, s := range lsp.Defaults() {
		if sandbox.Find(s.Argv[0]) != "" {
			names = append(names, s.Name)
		}
	}
	return names
}
