package changeset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/bundle"
	"dure/internal/safety/workspace"
)

// A Change is what committing a changeset does.
type Change struct {
	ID       string
	Paths    []string // that it writes and removes: absolute, sorted
	Digest   string   // of all of it
	Warnings []bundle.Problem

	write  []edit
	remove []edit
}

// edit is what is made of one file.
type edit struct {
	Name string
	old  file // of the bundle; without info = there is none
	next file
}

// Written and Removed are the files that a change writes and removes, in the folder of the
// bundle.
func (c *Change) Written() []string { return names(c.write) }

// Removed are the files that a change removes.
func (c *Change) Removed() []string { return names(c.remove) }

// Content is what a file holds before and after a change; nothing where it is made or removed.
type Content struct{ Old, New []byte }

// Contents are the files of a change, the removed ones behind the others.
func (c *Change) Contents() iter.Seq2[string, Content] {
	return func(yield func(string, Content) bool) {
		for _, e := range slices.Concat(c.write, c.remove) {
			if !yield(e.Name, Content{e.old.data, e.next.data}) {
				return
			}
		}
	}
}

func names(list []edit) []string {
	all := make([]string, len(list))
	for i, e := range list {
		all[i] = e.Name
	}
	return all
}

// Look returns what committing a changeset would do, or why that cannot be.
func (c *Changesets) Look(id string) (*Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.look(id)
}

func (c *Changesets) look(id string) (*Change, error) {
	r, err := c.recorded(id)
	if err != nil {
		return nil, err
	}
	root, err := c.folder(id)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var others []string
	next, err := read(root, func(name string) error {
		others = append(others, name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		return nil, refused("a changeset has no files of these names, no links and no packages: "+listed(others), "Remove them from "+r.Place+".")
	}
	now, err := c.current()
	if err != nil {
		return nil, err
	}
	change, err := c.compare(id, r, now, next)
	if err != nil {
		return nil, err
	}
	base, err := os.OpenRoot(c.c.Dir)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	list := c.c.Load(after{top: root.FS(), base: base.FS()})
	if bundle.Failed(list) {
		return nil, invalid(list)
	}
	change.Warnings = list
	return change, nil
}

// folder opens the folder of a changeset.
func (c *Changesets) folder(id string) (*os.Root, error) {
	top, err := c.c.Workspace.OpenRoot(c.c.Workspace.Root())
	if err != nil {
		return nil, err
	}
	defer top.Close()
	for _, name := range []string{Folder, filepath.Join(Folder, id)} {
		if err := ordinary(top, name); errors.Is(err, fs.ErrNotExist) {
			return nil, refused("the folder of the changeset is gone", "Open a changeset again.")
		} else if err != nil {
			return nil, err
		}
	}
	return top.OpenRoot(filepath.Join(Folder, id))
}

// compare returns what changes. What is there already as it shall be is no change.
func (c *Changesets) compare(id string, r record, now, next map[string]file) (*Change, error) {
	change := &Change{ID: id}
	var conflicts, beyond []string
	digest := sha256.New()
	every := map[string]bool{}
	for name := range next {
		every[name] = true
	}
	for name := range r.Files {
		every[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(every)) {
		was, is, shall := r.Files[name], now[name].sum, next[name].sum
		switch {
		case shall == was, shall == is:
			continue
		case is != was:
			conflicts = append(conflicts, name)
		case len(c.c.Allowed) > 0 && !slices.ContainsFunc(c.c.Allowed, func(p string) bool { return matches(p, name) }):
			beyond = append(beyond, name)
		}
		e := edit{Name: name, old: now[name], next: next[name]}
		if shall == "" {
			change.remove = append(change.remove, e)
		} else {
			change.write = append(change.write, e)
		}
		fmt.Fprintf(digest, "%q %s %s\n", name, is, shall)
		change.Paths = append(change.Paths, filepath.Join(c.c.Dir, filepath.FromSlash(name)))
	}
	switch {
	case len(conflicts) > 0:
		return nil, &agent.ToolError{
			Code: ErrConflict, Message: "the bundle has changed since the changeset was opened, and nothing was written: " + listed(conflicts),
			Suggestion: "Open another changeset, and make your changes on what the files are now.",
		}
	case len(beyond) > 0:
		return nil, refused("this agent may not change: "+listed(beyond), "It may change: "+strings.Join(c.c.Allowed, ", ")+". Undo the other changes in the changeset.")
	case len(change.Paths) == 0:
		return nil, refused("the changeset changes nothing", "Change its files in "+r.Place+" first.")
	}
	change.Digest = hex.EncodeToString(digest.Sum(nil))
	return change, nil
}

// Commit makes a change of the bundle. Digest is that of the change that was agreed to.
// Either all of it is made, or nothing; when the program dies meanwhile, [Restore] takes back
// what was.
func (c *Changesets) Commit(ctx context.Context, id, digest string) (change *Change, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.recorded(id); err != nil {
		return nil, err
	}
	unlock, err := lock(c.recordsDir())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	at := filepath.Join(c.recordsDir(), undoFile)
	if _, err := restore(c.c.Dir, at); err != nil {
		return nil, stuck(err)
	}
	if change, err = c.look(id); err != nil {
		return nil, err
	}
	if digest != change.Digest {
		return nil, &agent.ToolError{
			Code: ErrConflict, Message: "the changeset, or the bundle, is not what it was when the commit was decided about; nothing was written",
			Suggestion: "Commit it again, as it is now.",
		}
	}
	if err := c.note(change); err != nil {
		return nil, err
	}
	if err := c.make(ctx, change); err != nil {
		_, failed := restore(c.c.Dir, at)
		return nil, undone(err, failed)
	}
	if err := os.Remove(at); err != nil {
		_, failed := restore(c.c.Dir, at)
		return nil, undone(err, failed)
	}
	c.over(id)
	return change, nil
}

// make writes and removes the files of a change.
func (c *Changesets) make(ctx context.Context, change *Change) error {
	for _, e := range change.write {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.put(e); err != nil {
			return err
		}
	}
	for _, e := range change.remove {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.drop(e); err != nil {
			return err
		}
	}
	return nil
}

// over ends a changeset that was committed. What cannot be removed of it stays, and changes
// nothing any more.
func (c *Changesets) over(id string) {
	if root, err := c.records(); err == nil {
		_ = root.Remove(id)
		root.Close()
	}
	if root, err := c.c.Workspace.OpenRoot(c.c.Workspace.Root()); err == nil {
		_ = root.RemoveAll(filepath.Join(Folder, id))
		root.Close()
	}
}

func (c *Changesets) path(name string) string {
	return filepath.Join(c.c.Dir, filepath.FromSlash(name))
}

func (c *Changesets) put(e edit) error {
	_, err := c.c.Workspace.Write(c.path(e.Name), e.next.data, workspace.WriteOptions{
		Old: e.old.info, Create: e.old.info == nil, Mode: e.next.info.Mode().Perm(), Key: writeKey,
	})
	return err
}

func (c *Changesets) drop(e edit) error {
	_, place, err := c.c.Workspace.Place(c.path(e.Name))
	if err != nil {
		return err
	}
	return c.c.Workspace.Remove(place, e.old.info, writeKey)
}

// undone is why nothing was changed, or what was not taken back.
func undone(why, failed error) error {
	e := &agent.ToolError{
		Code: ErrRefused, Message: "a file cannot be written, and nothing of the changeset was: " + why.Error(),
		Suggestion: "Look at what stands in the way; tell the user if you cannot change that.",
	}
	switch {
	case failed != nil:
		e.Message = "a file cannot be written: " + why.Error() + "; and what was written before cannot be taken back: " + failed.Error()
		e.Suggestion = "Tell the user: the bundle is changed in part until it is started again, or committed to."
	case errors.Is(why, workspace.ErrChanged):
		e.Code, e.Suggestion = ErrConflict, "Open another changeset, and make your changes on what the files are now."
	}
	return e
}

// stuck is a commit that was cut short, and cannot be taken back.
func stuck(err error) error {
	return refused("an earlier commit was cut short, and cannot be taken back: "+err.Error(), "Tell the user what stands in the way.")
}

// Bounds of what is told.
const (
	maxListed   = 20 // files
	maxProblems = 50
)

func listed(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// invalid tells all mistakes of a bundle.
func invalid(list []bundle.Problem) error {
	var b strings.Builder
	b.WriteString("the bundle would have mistakes, and nothing was written:")
	n := 0
	for _, p := range list {
		if p.Severity != query.BundleError {
			continue
		}
		if n++; n <= maxProblems {
			fmt.Fprintf(&b, "\n%s", Tell(p))
		}
	}
	if n > maxProblems {
		fmt.Fprintf(&b, "\nand %d more", n-maxProblems)
	}
	return &agent.ToolError{Code: ErrInvalid, Message: b.String(), Suggestion: "Mend them in the changeset, and commit it again."}
}

// Tell is a problem in one line.
func Tell(p bundle.Problem) string {
	s := fmt.Sprintf("%s:%d:%d: %s %s", p.File, p.Line, p.Column, p.Code, p.Message)
	if p.Suggestion != "" {
		s += "; " + p.Suggestion
	}
	return s
}
