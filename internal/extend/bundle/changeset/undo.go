package changeset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	facts "dure/internal/base/record"
)

// Names beside the records of changesets.
const (
	undoFile = "commit" // what a commit replaces, while it is made
	lockFile = "lock"   // of whoever commits
)

// writeKey names what is left of a write that was cut short, for the next one to remove.
const writeKey = "changeset"

// replaced is a file that a commit writes or removes, as it was before.
type replaced struct {
	Name string      `json:"name"`
	Old  []byte      `json:"old,omitempty"`
	Mode fs.FileMode `json:"mode,omitempty"`
	Was  string      `json:"was,omitempty"` // SHA-256; "" = there was none
	Next string      `json:"next,omitempty"`
}

// lock has nobody else commit a changeset of the bundle, in this program or another one.
func lock(records string) (unlock func() error, err error) {
	return facts.Lock(filepath.Join(records, lockFile))
}

// note writes down what a change replaces before any of it is made.
func (c *Changesets) note(change *Change) error {
	var all []replaced
	for _, e := range slices.Concat(change.write, change.remove) {
		r := replaced{Name: e.Name, Old: e.old.data, Was: e.old.sum, Next: e.next.sum}
		if e.old.info != nil {
			r.Mode = e.old.info.Mode().Perm()
		}
		all = append(all, r)
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return facts.Write(filepath.Join(c.recordsDir(), undoFile), data)
}

// Restore makes a bundle what it was before a commit that was cut short, by the death of the
// program, say, and returns the files that were taken back; without one it does nothing. What
// somebody has changed since stays. Dir and records are those of [Config].
func Restore(dir, records string) ([]string, error) {
	records = recordsOf(dir, records)
	at := filepath.Join(records, undoFile)
	if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	unlock, err := lock(records)
	if err != nil {
		return nil, err
	}
	names, err := restore(dir, at)
	return names, errors.Join(err, unlock())
}

// restore takes back what the file at a path says, newest first, and removes it. Whoever
// calls it has the lock. Links are not followed out of the folder.
func restore(dir, at string) (names []string, err error) {
	data, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []replaced
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("taking a commit back that was cut short: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var failed []error
	for _, r := range slices.Backward(all) {
		now, err := readFile(root, r.Name, maxBytes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
			continue
		}
		if now.sum == r.Was || now.sum != r.Next {
			continue // it was not made yet, or is somebody else's
		}
		if err := r.back(root); err != nil {
			failed = append(failed, err)
			continue
		}
		names = append(names, r.Name)
	}
	if len(failed) > 0 {
		return names, errors.Join(failed...)
	}
	return names, os.Remove(at)
}

// back makes one file what it was, at once.
func (r replaced) back(root *os.Root) error {
	if r.Was == "" {
		return root.Remove(r.Name)
	}
	if err := root.MkdirAll(path.Dir(r.Name), 0o755); err != nil {
		return err
	}
	fresh := path.Join(path.Dir(r.Name), ".changeset-"+path.Base(r.Name))
	if err := root.RemoveAll(fresh); err != nil {
		return err
	}
	f, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, r.Mode)
	if err != nil {
		return err
	}
	_, err = f.Write(r.Old)
	if err = errors.Join(err, f.Chmod(r.Mode)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(fresh, r.Name)
	}
	if err != nil {
		return errors.Join(err, root.RemoveAll(fresh))
	}
	return nil
}
