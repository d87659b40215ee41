package checkpoint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rig is a store over one folder.
type rig struct {
	*Store
	t    testing.TB
	root string
	c    Config
}

func newRig(t testing.TB, files ...string) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, root: filepath.Join(dir, "ws"), c: Config{Dir: filepath.Join(dir, "store"), NoSync: true}}
	must(t, os.Mkdir(r.root, 0o755))
	r.c.Roots = []string{r.root}
	r.write(files...)
	r.open()
	t.Cleanup(func() {
		r.Close()
		_ = filepath.WalkDir(r.root, func(p string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				return os.Chmod(p, 0o700) // so that it can be removed
			}
			return err
		})
	})
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) open() {
	r.t.Helper()
	s, err := Open(r.c)
	must(r.t, err)
	r.Store = s
}

func (r *rig) reopen() {
	r.t.Helper()
	must(r.t, r.Close())
	r.open()
}

func (r *rig) path(name string) string { return filepath.Join(r.root, name) }

// write makes files of "name=content", folders of "name/", links of "name->target".
func (r *rig) write(files ...string) {
	r.t.Helper()
	for _, f := range files {
		name, content, isFile := strings.Cut(f, "=")
		if link, target, ok := strings.Cut(f, "->"); ok && !strings.Contains(link, "=") {
			must(r.t, os.MkdirAll(filepath.Dir(r.path(link)), 0o755))
			must(r.t, os.Symlink(target, r.path(link)))
			continue
		}
		if !isFile {
			must(r.t, os.MkdirAll(r.path(name), 0o755))
			continue
		}
		must(r.t, os.MkdirAll(filepath.Dir(r.path(name)), 0o755))
		must(r.t, os.WriteFile(r.path(name), []byte(content), 0o644))
	}
}

func (r *rig) remove(names ...string) {
	r.t.Helper()
	for _, n := range names {
		must(r.t, os.RemoveAll(r.path(n)))
	}
}

func (r *rig) take(ours bool) ID {
	r.t.Helper()
	s, err := r.Take(r.t.Context(), Label{Ours: ours})
	must(r.t, err)
	return s.ID
}

func (r *rig) rewind(to ID, sel Select) Result {
	r.t.Helper()
	p, err := r.Plan(r.t.Context(), to, sel)
	must(r.t, err)
	res, err := r.Apply(r.t.Context(), p)
	must(r.t, err)
	return res
}

// picture is everything in a folder, with modes and bytes, one entry a line.
func picture(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			fmt.Fprintf(&b, "%s/ %o\n", rel, info.Mode().Perm())
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s -> %s\n", rel, target)
		case d.Type().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %o %q\n", rel, info.Mode().Perm(), data)
		default:
			fmt.Fprintf(&b, "%s %v\n", rel, d.Type())
		}
		return nil
	}))
	return b.String()
}

func (r *rig) picture() string { r.t.Helper(); return picture(r.t, r.root) }

// changes is a list of changes as text.
func (r *rig) changes(all []Change) string {
	var b strings.Builder
	rel := func(p string) string { s, _ := filepath.Rel(r.root, p); return filepath.ToSlash(s) }
	for _, c := range all {
		fmt.Fprintf(&b, "%s %s", c.Status, rel(c.Path))
		if c.From != "" {
			fmt.Fprintf(&b, " from %s", rel(c.From))
		}
		if c.Before.Kind != c.After.Kind && c.Before.Kind != None && c.After.Kind != None {
			fmt.Fprintf(&b, " %s to %s", c.Before.Kind, c.After.Kind)
		}
		if c.Added+c.Removed > 0 {
			fmt.Fprintf(&b, " +%d -%d", c.Added, c.Removed)
		}
		if c.Binary {
			b.WriteString(" binary")
		}
		if c.Cut {
			b.WriteString(" cut")
		}
		if c.Unkept {
			b.WriteString(" unkept")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (r *rig) diff(from, to ID) string {
	r.t.Helper()
	all, err := r.Diff(r.t.Context(), from, to)
	must(r.t, err)
	return r.changes(all)
}

// plan is a plan as text: its items, and why some are left.
func (r *rig) plan(to ID, sel Select) string {
	r.t.Helper()
	p, err := r.Plan(r.t.Context(), to, sel)
	must(r.t, err)
	return r.items(p.Items)
}

func (r *rig) items(items []Item) string {
	var b strings.Builder
	for _, it := range items {
		rel, _ := filepath.Rel(r.root, it.Path)
		fmt.Fprintf(&b, "%s %s", it.Action, filepath.ToSlash(rel))
		if it.Conflict != nil {
			fmt.Fprintf(&b, ": %s", it.Conflict.Code)
		}
		if it.Forced {
			b.WriteString(" forced")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func equal(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

// age makes files older than the racy moment, so that a walk trusts their stat.
func (r *rig) age() {
	r.t.Helper()
	then := time.Now().Add(-time.Hour)
	must(r.t, filepath.WalkDir(r.root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			err = os.Chtimes(p, then, then)
		}
		return err
	}))
}
