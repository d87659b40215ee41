package app

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/export"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view/stored"
	"dure/internal/kernel/plug"
	"dure/internal/kernel/replay"
	"dure/internal/safety/guard"
	"dure/internal/state/archive"
	"dure/internal/state/archive/audit"
	"dure/internal/state/archive/compare"
	"dure/internal/state/archive/imports"
	"dure/internal/state/archive/index"
	"dure/internal/state/archive/removal"
	"dure/internal/state/archive/repair"
	"dure/internal/state/archive/usage"
	"dure/internal/tools/catalog"
)

// archives makes the extensions that look through the logs of all sessions.
func (a *App) archives() []plug.Extension {
	path := func(name string) string { // of what is kept beside the sessions; "" when nothing is
		if a.opts.Flags.Scratch {
			return ""
		}
		return filepath.Join(a.cfg.Data, name)
	}
	replayed := func(ctx context.Context, id string) replay.Config { // how its log is read again
		return replay.Config{Session: id, Events: archive.Events(ctx, a.sessions.store, id)}
	}
	logs := func() archive.Logs { return a.sessions.store }
	canonical := func(name string) (string, bool) { return catalog.New(catalog.Config{}).Canonical(name) }
	a.audit = audit.New(audit.Config{
		Logs: logs, Mask: guard.MaskValue[[]agent.DecisionRecord],
		MaskOne: guard.MaskValue[query.ExplainedDecision], Again: policyOf(a.policyWith).again, Canonical: canonical,
	})
	replays := compare.New(compare.Config{
		Compare: func(ctx context.Context, x, y string) (agent.Comparison, [2]map[string]agent.FileState, error) {
			return replay.Compare(ctx, replayed(ctx, x), replayed(ctx, y))
		},
		At: func(ctx context.Context, id string, seq int64) (agent.SessionStand, bool, error) {
			return replay.At(ctx, replayed(ctx, id), seq)
		},
		Verify: func(ctx context.Context, id string) (agent.ReplayReport, error) {
			return verifyReplay(ctx, a.sessions.store, a.policyWith, id)
		},
		Look:           a.undo.Look,
		MaskComparison: guard.MaskValue[agent.Comparison], MaskStand: guard.MaskValue[agent.SessionStand],
	})
	mirrors, _ := a.opts.projects()
	redact := func(s string) string { return a.patterns.Redact(s) }
	a.removal = removal.New(removal.Config{
		Store: func() removal.Store { return a.sessions.store }, Checkpoints: a.cfg.Checkpoints, Mirrors: mirrors,
		Days: a.cfg.Retention.Days, Auto: a.cfg.Retention.Auto, Stamp: path("retention"),
		List: a.sessions.list, Logger: a.opts.Logger,
	})
	a.imports = imports.New(imports.Config{
		Store: func() imports.Store { return a.sessions.store }, Getenv: getenv(a.opts.Environ), Home: a.opts.UserHome, Workdir: a.opts.Workdir,
		Opened: func() agent.SessionOpened {
			host, _ := os.Hostname() // for messages only
			return agent.SessionOpened{
				Dialect: a.cfg.Dialect, Profile: a.cfg.Profile, Lane: "main", Version: a.opts.Version, Host: host, PID: os.Getpid(),
			}
		},
		Canonical: canonical, Known: func(model string) bool { _, err := a.models.Info(model); return err == nil },
		Redact: redact, Mask: guard.MaskJSON, Forget: a.removal.Forget, Logger: a.opts.Logger,
	})
	return []plug.Extension{
		a.audit, a.removal, a.imports, replays,
		repair.New(func() repair.Logs { return a.sessions.store }),
		export.New(export.Source{
			Logs: func() export.Logs { return a.sessions.store }, Find: a.sessions.find, Redact: redact, Text: text.For(a.cfg.Language),
		}),
		&stored.Extension{
			Events: func(ctx context.Context, id string) iter.Seq2[agent.Event, error] {
				return archive.Events(ctx, a.sessions.store, id)
			},
			Mask: guard.MaskValue[json.RawMessage],
		},
		usage.New(usage.Config{Logs: logs, Path: path(usage.File), Logger: a.opts.Logger}),
		index.New(index.Config{
			Options: index.Options{Dir: path("index"), Mask: guard.MaskJSON},
			Source:  func() index.Source { return a.sessions.store },
		}),
	}
}
