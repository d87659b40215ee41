package undo

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

// A Target is what a query sees of a session's files.
type Target struct {
	history
	Root     string // of the workspace
	Store    *checkpoint.Store
	id, head string
	gone     bool // the folder is: nothing can be compared with what is there now
}

// Look calls f with the snapshots of a session: those that are in use here, or
// for the time of the call those on the disk, which another process may be using.
// It does not when there are none.
func (x *Extension) Look(ctx context.Context, id string, look bool, f func(Target) error) error {
	row, err := x.cfg.Find(ctx, id)
	if err != nil {
		return err
	}
	g := Target{id: row.ID}
	if own := x.families.of(row.ID); own != nil {
		own.mu.Lock()
		defer own.mu.Unlock()
		if g.history, err = read(x.cfg.Read(ctx, row.ID)); err != nil {
			return err
		}
		i := slices.IndexFunc(own.keepers, func(k *keeper) bool { return k.session == row.ID })
		if i < 0 {
			return nil // it was closed just now
		}
		k := own.keepers[i]
		if g.head, g.Root = own.session, k.root; !own.kept() {
			return nil
		}
		if g.Store = k.open(ctx); g.Store == nil {
			return fmt.Errorf("the snapshots in %s cannot be read: the newest note of the session says why", k.cfg.Dir)
		}
		if look && own.working() == 0 {
			g.look(ctx)
		}
		return f(g)
	}
	if g.history, err = read(x.cfg.Read(ctx, row.ID)); err != nil {
		return err
	}
	ws, err := workspace.New(workspace.Config{Root: row.Workdir, Absent: true})
	if err != nil {
		return workspace.Problem(row.Workdir, err)
	}
	g.Root, g.gone = ws.Root(), !isDir(ws.Root())
	g.head = x.rootOf(ctx, row.ID, worksFor(row), g.Root)
	cfg := x.snapshots(g.head, g.Root)
	if _, err := os.Stat(filepath.Join(cfg.Dir, "log")); err != nil {
		return nil
	}
	cfg.ReadOnly = g.gone
	g.Store, err = checkpoint.Open(cfg)
	if errors.Is(err, checkpoint.ErrInUse) {
		cfg.ReadOnly = true
		g.Store, err = checkpoint.Open(cfg)
	}
	if err != nil {
		return err
	}
	if look && !cfg.ReadOnly && !g.gone {
		g.look(ctx)
	}
	return errors.Join(f(g), g.Store.Close())
}

// look takes a snapshot of what is there now. Without one, what the newest has is shown.
func (g *Target) look(ctx context.Context) {
	_, _ = g.Store.Take(ctx, checkpoint.Label{Text: "a look"}) // what was seen last does, too
}

// diff tells what a session changed.
func (x *Extension) diff(ctx context.Context, q query.Diff) (query.DiffReport, error) {
	report := query.DiffReport{Session: q.Session, Files: []query.FileDiff{}}
	err := x.Look(ctx, q.Session, q.To == 0, func(g Target) error {
		report.Session = g.id
		from, to := g.SnapshotAt(q.From), checkpoint.ID("")
		if from == "" {
			return nil
		}
		if q.To > 0 {
			to = g.SnapshotAt(q.To)
		}
		all := g.Store.List()
		report.Gone = !slices.ContainsFunc(all, func(s checkpoint.Snapshot) bool { return s.ID == from })
		open, last, err := g.Store.Open(ctx, g.review(g.id, g.head, g.Root, from, to, q.All))
		if err != nil {
			return err
		}
		report.From, report.To = string(from), string(last)
		if report.Gone && len(all) > 0 {
			report.From = string(all[0].ID)
		}
		for _, it := range open {
			if !selects(g.Root, q.Paths, it.Change) {
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

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// selects reports whether paths select a change.
func selects(root string, paths []string, c checkpoint.Change) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool {
		p = SystemPath(root, p)
		for _, of := range []string{c.Path, c.From} {
			if of == p || of != "" && strings.HasPrefix(of, p+string(filepath.Separator)) {
				return true
			}
		}
		return false
	})
}

// file is a change that is open, as the wire has it.
func (g *Target) file(it checkpoint.Reviewed) query.FileDiff {
	d := fileDiff(g.Root, it.Change)
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
		Path: WirePath(root, c.Path), Status: string(c.Status), Added: c.Added, Removed: c.Removed,
		Mode: c.After.Mode, ModeWas: c.Before.Mode, Link: c.After.Target, LinkWas: c.Before.Target, Size: c.After.Size, SizeWas: c.Before.Size,
		Binary: c.Binary, Long: c.Cut, Unkept: c.Unkept,
	}
	if c.From != "" {
		d.From = WirePath(root, c.From)
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

// plan tells what a rewind would do to files.
func (x *Extension) plan(ctx context.Context, q query.PlanRewind) (query.RewindPlan, error) {
	report := query.RewindPlan{Session: q.Session, Files: []query.RewindItem{}}
	err := x.Look(ctx, q.Session, false, func(g Target) error {
		report.Session = g.id
		to := g.SnapshotAt(q.To)
		if to == "" {
			return nil
		}
		if g.gone {
			return workspace.Gone(g.id, g.Root, fs.ErrNotExist)
		}
		plan, err := g.Store.Plan(ctx, to, g.selection(g.id, g.head, g.Root, q.Only, q.Force))
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
			item := query.RewindItem{FileDiff: fileDiff(g.Root, it.Change), Action: string(it.Action), Forced: it.Forced}
			item.Path = WirePath(g.Root, it.Path)
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

// export writes the files of a session as they were after an event into a folder
// that does not exist yet, and returns the workspace in it.
func (x *Extension) export(ctx context.Context, q query.ExportFiles) (query.ExportedFiles, error) {
	out, found := query.ExportedFiles{Workdir: q.Dir}, false
	err := x.Look(ctx, q.Session, false, func(g Target) error {
		id := g.SnapshotAt(q.Seq)
		if found = id != ""; !found {
			return nil
		}
		if err := g.Store.Export(ctx, id, q.Dir); err != nil {
			return err
		}
		if sub := filepath.Join(q.Dir, filepath.Base(g.Root)); len(x.cfg.Roots) > 0 && isDir(sub) {
			out.Workdir = sub // each root has a folder of its own
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return out, workspace.Problem(q.Dir, err)
	case err == nil && !found:
		return out, &agent.Problem{
			Code: agent.ProblemUndo, Message: "there is no snapshot of the files of session " + q.Session,
			Fix: "go on over the files as they are: --files keep", Args: map[string]string{"session": q.Session},
		}
	}
	return out, err
}
