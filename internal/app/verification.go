package app

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory/lessons"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
	"dure/internal/tools/verify"
)

// verification has the files that calls have changed looked at once more, and gives the
// user's own checks to the model after the first change of a turn. It is safe for
// concurrent use.
type verification struct {
	app *App
	cfg verify.Config

	mu      sync.Mutex
	turn    int
	changed bool
	checks  string // of this turn; "" = none
}

// newVerification returns the verification of a session; nil = its profile has none.
func (a *App) newVerification(ws *workspace.Workspace, workdir string, wanted bool) *verification {
	if !wanted {
		return nil
	}
	v := &verification{app: a}
	v.cfg = verify.Config{
		Read: func(path string, limit int) ([]byte, bool, error) {
			f, err := ws.Open(path)
			if err != nil {
				return nil, false, err
			}
			defer func() { _ = f.Close() }() // only read
			data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
			if err != nil {
				return nil, false, err
			}
			return data[:min(len(data), limit)], len(data) > limit, nil
		},
		Real: func(path string) string {
			if _, resolved, err := ws.Resolve(path); err == nil {
				return resolved
			}
			return path
		},
		Shown: func(path string) string { return kit.Name(kit.Relative(path, workdir, ws.Root())) },
		Changed: func(agent.ToolContext, []string) {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.changed = true
		},
	}
	return v
}

func (v *verification) wrap(_ agent.Tool, next plug.Run) plug.Run {
	return plug.Run(v.cfg.Wrap(verify.Run(next)))
}

// extra returns the user's own checks in turns that have changed something, once in each.
func (v *verification) extra(_ context.Context, at plug.Moment) []agent.ContextAdded {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if at.Turns != v.turn {
		v.turn, v.changed, v.checks = at.Turns, false, ""
	}
	if !v.changed {
		return nil
	}
	if v.checks == "" {
		v.checks = v.own()
	}
	return []agent.ContextAdded{{Source: "checklist", Key: fmt.Sprint(v.turn), From: []string{checklistFile}, Text: v.checks}}
}

// own returns the checks that the user has written, for the model; "" = none.
func (v *verification) own() string {
	list, err := lessons.LoadChecklist(v.app.checklist())
	if err != nil {
		v.app.opts.Logger.Warn("reading the checklist", "error", err)
		return ""
	}
	usual := lessons.Checks()
	var b strings.Builder
	for _, item := range slices.Concat(list.Code, list.Files) {
		if !slices.Contains(usual.Code, item) && !slices.Contains(usual.Files, item) {
			b.WriteString("- " + item + "\n")
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Files have been changed. The user wants this to be checked before you end:\n" + b.String()
}

// checklistFile is the user's checklist, in the data folder.
const checklistFile = "verification_checklist.json"

func (a *App) checklist() string { return filepath.Join(a.cfg.Data, checklistFile) }
