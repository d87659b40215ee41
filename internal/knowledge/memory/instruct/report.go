package instruct

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strconv"

	"dure/agent/query"
	"dure/internal/knowledge/memory"
)

func (x *Extension) list(_ context.Context, q query.ListMemory) (query.MemoryReport, error) {
	return x.Report(q), nil
}

// Report describes the instruction files of a session or a folder.
func (x *Extension) Report(q query.ListMemory) query.MemoryReport {
	x.mu.Lock()
	in := x.open[q.Session]
	x.mu.Unlock()
	if in == nil {
		in = x.instructions(cmp.Or(q.Workdir, x.cfg.Workdir), nil)
	}
	return x.report(in, q)
}

// Findings says for a diagnosis which instruction files a model gets in the usual folder.
func (x *Extension) Findings(context.Context) []query.Finding {
	l, r, active := query.Findings{Group: query.Configured}, x.Report(query.ListMemory{}), 0
	for _, f := range r.Files {
		if f.State == string(memory.Active) {
			active++
		}
	}
	switch {
	case r.Off:
		l.Add("memory", query.Good, "memory.off", "where", x.cfg.Where)
	case active == 0:
		l.Add("memory", query.Good, "memory.none", "path", filepath.Join(r.Root, "AGENTS.md"))
	default:
		l.Add("memory", query.Good, "memory.ok", "n", strconv.Itoa(active), "chars", strconv.Itoa(r.Chars))
	}
	for _, f := range r.Findings {
		f.Group, f.Name = query.Configured, "memory"
		l.List = append(l.List, f)
	}
	return l.List
}

func (x *Extension) report(in *instructions, q query.ListMemory) query.MemoryReport {
	in.mu.Lock()
	defer in.mu.Unlock()
	c := in.cfg
	r := query.MemoryReport{
		Root: c.Root, Trusted: c.Trusted, Off: in.off, Files: []query.MemoryFile{}, Findings: []query.Finding{}, Places: in.places(),
	}
	if !in.load() {
		if in.err != nil {
			r.Findings = append(r.Findings, query.Finding{
				Group: "memory", Name: "memory", State: "warn", Code: memory.FindingRefused, Detail: in.err.Error(),
				Args: map[string]string{"path": c.Root, "error": in.err.Error()},
			})
		}
		return r
	}
	if n := x.above(c.Root); n > 0 {
		r.Findings = append(r.Findings, untold(x.cfg.Top(c.Root), n))
	}
	untrusted := 0
	for _, f := range in.set.Files() {
		r.Files = append(r.Files, query.MemoryFile{
			Path: f.Path, Scope: string(f.Scope), State: string(f.State), Why: f.Why, Note: f.Note,
			Rule: f.Rule, Name: f.Name, Paths: f.Paths, Chars: f.Chars, Includes: f.Includes, Trigger: f.Trigger,
		})
		switch f.State {
		case memory.Active:
			r.Chars += f.Chars
		case memory.Untrusted:
			untrusted++
		}
	}
	if untrusted > 0 {
		r.Findings = append(r.Findings, untold(c.Root, untrusted))
	}
	r.Findings = append(r.Findings, in.set.Findings()...)
	for i, f := range r.Findings { // one text for each, whoever has found it
		if detail, fix := x.cfg.Explain(f); detail != "" {
			r.Findings[i].Detail, r.Findings[i].Fix = detail, fix
		}
	}
	if q.Text {
		r.Text = in.merged
		if q.Scope != "" {
			var some []memory.File
			for _, f := range in.set.Level(memory.Scope(q.Scope)) {
				if f.State == memory.Active && f.Why == memory.AtStart {
					some = append(some, f)
				}
			}
			r.Text, _ = memory.Render(some, cmp.Or(c.Chars, memory.MaxText))
		}
	}
	return r
}

// untold are instruction files that are not read because nobody trusts their folder.
func untold(dir string, n int) query.Finding {
	return query.Finding{
		Group: "memory", Name: dir, State: "warn", Code: "memory-untrusted", Args: map[string]string{"path": dir, "n": strconv.Itoa(n)},
	}
}

// above returns how many instruction files the repository has whose root is above a
// folder, in its root.
func (x *Extension) above(root string) (n int) {
	top := x.cfg.Top(root)
	if top == "" || top == root {
		return 0
	}
	for _, name := range []string{"AGENTS.md", "CLAUDE.md"} {
		if _, err := os.Lstat(filepath.Join(top, name)); err == nil {
			n++
		}
	}
	return n
}

// places are the files in which a person writes instructions: those that are there,
// else the preferred ones.
func (in *instructions) places() (list []query.MemoryPlace) {
	c := in.cfg
	add := func(scope memory.Scope, paths ...string) {
		p := query.MemoryPlace{Scope: string(scope), Path: paths[0]}
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				p.Path, p.Exists = path, true
				break
			}
		}
		list = append(list, p)
	}
	if c.Own != "" {
		add(memory.User, c.Own)
	} else {
		home := c.User[len(c.User)-1]
		add(memory.User, filepath.Join(home, "AGENTS.md"), filepath.Join(home, "DURE.md"))
	}
	add(memory.Project, filepath.Join(c.Root, "AGENTS.md"), filepath.Join(c.Root, "CLAUDE.md"), filepath.Join(c.Root, "DURE.md"), filepath.Join(c.Root, "AX.md"))
	add(memory.Local, filepath.Join(c.Root, "AGENTS.local.md"), filepath.Join(c.Root, "CLAUDE.local.md"))
	if c.Managed != "" {
		add(memory.Managed, filepath.Join(c.Managed, "AGENTS.md"))
	}
	return list
}
