package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/safety/workspace"
	"dure/internal/state/checkpoint"
)

// kept reports whether there are snapshots of a family. A look at what is not there
// makes none.
func (f *family) kept() bool {
	_, err := os.Stat(filepath.Join(f.cfg.Dir, "log"))
	return f.store != nil || err == nil
}

// gaze is what a query sees of a session's files.
type gaze struct {
	told
	id, head, root string
	store          *checkpoint.Store
	gone           bool // the folder is: nothing can be compared with what is there now
}

// snapshotsOf calls f with the snapshots of a session: those that are in use here, or
// for the time of the call those on the disk, which another process may be using.
// It does not when there are none.
func (a *App) snapshotsOf(ctx context.Context, id string, look bool, f func(gaze) error) error {
	info, err := a.reg.Query(ctx, agent.FindSession{Name: id})
	if err != nil {
		return err
	}
	row, _ := info.(agent.SessionInfo)
	g := gaze{id: row.ID}
	if own := a.families.of(row.ID); own != nil {
		own.mu.Lock()
		defer own.mu.Unlock()
		if g.told, err = tell(a.store.Read(ctx, row.ID, 0)); err != nil {
			return err
		}
		i := slices.IndexFunc(own.keepers, func(k *keeper) bool { return k.session == row.ID })
		if i < 0 {
			return nil // it was closed just now
		}
		k := own.keepers[i]
		if g.head, g.root = own.session, k.root; !own.kept() {
			return nil
		}
		if g.store = k.open(ctx); g.store == nil {
			return fmt.Errorf("the snapshots in %s cannot be read: the newest note of the session says why", k.cfg.Dir)
		}
		if look && own.working() == 0 {
			g.look(ctx)
		}
		return f(g)
	}
	if g.told, err = tell(a.store.Read(ctx, row.ID, 0)); err != nil {
		return err
	}
	ws, err := workspace.New(workspace.Config{Root: row.Workdir, Absent: true})
	if err != nil {
		return workdirProblem(row.Workdir, err)
	}
	g.root, g.gone = ws.Root(), !isDir(ws.Root())
	g.head = a.rootOf(ctx, row.ID, worksFor(row), g.root)
	cfg := a.snapshots(g.head, g.root)
	if _, err := os.Stat(filepath.Join(cfg.Dir, "log")); err != nil {
		return nil
	}
	cfg.ReadOnly = g.gone
	g.store, err = checkpoint.Open(cfg)
	if errors.Is(err, checkpoint.ErrInUse) {
		cfg.ReadOnly = true
		g.store, err = checkpoint.Open(cfg)
	}
	if err != nil {
		return err
	}
	if look && !cfg.ReadOnly && !g.gone {
		g.look(ctx)
	}
	return errors.Join(f(g), g.store.Close())
}

// look takes a snapshot of what is there now. Without one, what the newest has is shown.
func (g *gaze) look(ctx context.Context) {
	_, _ = g.store.Take(ctx, checkpoint.Label{Text: "a look"}) // what was seen last does, too
}

// diff tells what a session changed.
func (a *App) diff(ctx context.Context, q query.Diff) (query.DiffReport, error) {
	report := query.DiffReport{Session: q.Session, Files: []query.FileDiff{}}
	err := a.snapshotsOf(ctx, q.Session, q.To == 0, func(g gaze) error {
		report.Session = g.id
		from, to := g.snapshotAt(q.From), checkpoint.ID("")
		if from == "" {
			return nil
		}
		if q.To > 0 {
			to = g.snapshotAt(q.To)
		}
		all := g.store.List()
		report.Gone = !slices.ContainsFunc(all, func(s checkpoint.Snapshot) bool { return s.ID == from })
		open, last, err := g.store.Open(ctx, g.review(g.id, g.head, g.root, from, to, q.All))
		if err != nil {
			return err
		}
		report.From, report.To = string(from), string(last)
		if report.Gone && len(all) > 0 {
			report.From = string(all[0].ID)
		}
		for _, it := range open {
			if !selects(g.root, q.Paths, it.Change) {
				continue
			}
			d := g.file(it)
			report.Added, report.Removed = report.Added+d.Added, report.Removed+d.Removed
			report.Files = append(report.Files, d)
		}
		return nil
	})
	return report, err
}

// selects reports whether paths select a change.
func selects(root string, paths []string, c checkpoint.Change) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool {
		p = systemPath(root, p)
		for _, of := range []string{c.Path, c.From} {
			if of == p || of != "" && strings.HasPrefix(of, p+string(filepath.Separator)) {
				return true
			}
		}
		return false
	})
}

// file is a change that is open, as the wire has it.
func (g *gaze) file(it checkpoint.Reviewed) query.FileDiff {
	d := fileDiff(g.root, it.Change)
	d.ID, d.Others, d.Tangled = it.ID, it.Others, it.Tangled
	for i := range d.Hunks {
		d.Hunks[i].ID = it.Hunks[i]
	}
	for _, l := range it.By {
		tool, command := strings.CutPrefix(l.Text, byCommand)
		d.Command = d.Command || command
		if !slices.Contains(d.Tools, tool) {
			d.Tools = append(d.Tools, tool)
		}
		if l.Session != "" && l.Session != g.id && !slices.Contains(d.Children, l.Session) {
			d.Children = append(d.Children, l.Session)
		}
	}
	return d
}

func fileDiff(root string, c checkpoint.Change) query.FileDiff {
	d := query.FileDiff{
		Path: wirePath(root, c.Path), Status: string(c.Status), Added: c.Added, Removed: c.Removed,
		Mode: c.After.Mode, ModeWas: c.Before.Mode, Link: c.After.Target, LinkWas: c.Before.Target, Size: c.After.Size, SizeWas: c.Before.Size,
		Binary: c.Binary, Long: c.Cut, Unkept: c.Unkept,
	}
	if c.From != "" {
		d.From = wirePath(root, c.From)
	}
	if c.After.Kind != checkpoint.None {
		d.Kind = c.After.Kind.String()
	}
	if c.Before.Kind != checkpoint.None {
		d.KindWas = c.Before.Kind.String()
	}
	for _, h := range c.Hunks {
		d.Hunks = append(d.Hunks, query.HunkDiff{OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines, Lines: h.Lines})
	}
	return d
}

// planRewind tells what a rewind would do to files.
func (a *App) planRewind(ctx context.Context, q query.PlanRewind) (query.RewindPlan, error) {
	report := query.RewindPlan{Session: q.Session, Files: []query.RewindItem{}}
	err := a.snapshotsOf(ctx, q.Session, false, func(g gaze) error {
		report.Session = g.id
		to := g.snapshotAt(q.To)
		if to == "" {
			return nil
		}
		if g.gone {
			return noFolder(g.id, g.root, fs.ErrNotExist)
		}
		plan, err := g.store.Plan(ctx, to, g.selection(g.id, g.head, g.root, q.Only, q.Force))
		if errors.Is(err, checkpoint.ErrInUse) {
			return &agent.Problem{
				Code: agent.ProblemBusy, Message: "the session is in use by another process", Err: err,
				Fix: "ask there, or close it", Args: map[string]string{"session": g.id},
			}
		}
		if err != nil {
			return err
		}
		report.To, report.Added, report.Removed = string(to), plan.Totals.Added, plan.Totals.Removed
		for _, it := range plan.Items {
			item := query.RewindItem{FileDiff: fileDiff(g.root, it.Change), Action: string(it.Action), Forced: it.Forced}
			item.Path = wirePath(g.root, it.Path)
			if it.Conflict != nil {
				item.Conflict, item.Why = string(it.Conflict.Code), it.Conflict.Message
				if !it.Forced {
					report.Leaves++
				}
			}
			report.Files = append(report.Files, item)
		}
		return nil
	})
	return report, err
}
