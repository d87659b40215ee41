package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// Remove removes the file, link or folder at a place, with all that is below
// it. It fails with [ErrChanged] when something else than old stands there. The
// entry first gets the name of a leftover, which is done at once or not at all;
// when what has it cannot be removed in full, the rest gets its name back. Key
// is that of [WriteOptions]: what a dead attempt left is removed with it.
func (w *Workspace) Remove(place string, old fs.FileInfo, key string) error {
	err := func() error {
		root, base, err := w.folder(place)
		if err != nil {
			return err
		}
		defer root.Close()
		now, err := root.Lstat(base)
		switch {
		case absent(err) && key != "": // a dead attempt may have come so far
			return root.RemoveAll(tempName(".", base, key))
		case err != nil:
			return err
		case old != nil && !sameEntry(old, now):
			return ErrChanged
		}
		gone := tempName(".", base, key)
		if err := root.RemoveAll(gone); err != nil {
			return err
		}
		if err := root.Rename(base, gone); err != nil {
			return err
		}
		if err := root.RemoveAll(gone); err != nil {
			if back := rename(root, gone, root, base, false); back != nil {
				return fmt.Errorf("%w; what is left is named %s", err, gone)
			}
			return err
		}
		return syncFolder(root, ".")
	}()
	if err != nil {
		return retype("removing", place, err)
	}
	return nil
}

// Removed finishes a removal that the death of the program has cut short: it
// reports whether the entry is gone, and removes what was left of it.
func (w *Workspace) Removed(place, key string) (bool, error) {
	if _, err := w.Lstat(place); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if _, err := w.Lstat(filepath.Dir(place)); err != nil {
		return errors.Is(err, fs.ErrNotExist), nil // with its folder
	}
	if key == "" {
		return true, nil
	}
	return true, w.Remove(place, nil, key)
}

// sameEntry reports whether two looks saw the same entry. The times of a folder
// change with what is in it.
func sameEntry(a, b fs.FileInfo) bool {
	if a.IsDir() {
		return os.SameFile(a, b)
	}
	return unchanged(a, b)
}

// MoveOptions says what a move may replace.
type MoveOptions struct {
	Old  fs.FileInfo // what is moved, as the caller has seen it; required
	Over fs.FileInfo // the file that may be replaced; nil = nothing may be
	Key  string      // as in [WriteOptions]
}

// Move gives the file, link or folder at a place another name, making the
// folders that the name needs. It is done at once or not at all, except across
// file systems: there a full copy appears under the new name, on the disk, and
// then the old one is removed. It is [fs.ErrExist] when the name is taken.
func (w *Workspace) Move(ctx context.Context, from, to string, o MoveOptions) error {
	src, base, err := w.folder(from)
	if err != nil {
		return retype("moving", from, err)
	}
	defer src.Close()
	if now, err := src.Lstat(base); err != nil {
		return retype("moving", from, err)
	} else if !sameEntry(o.Old, now) {
		return retype("moving", from, ErrChanged)
	}
	if err := w.makeFolder(filepath.Dir(to)); err != nil {
		return retype("moving to", to, err)
	}
	dst, name, err := w.folder(to)
	if err != nil {
		return retype("moving to", to, err)
	}
	defer dst.Close()
	if err := free(dst, name, o.Over); err != nil {
		return retype("moving to", to, err)
	}
	err = rename(src, base, dst, name, o.Over != nil)
	if crossDevice(err) {
		err = transfer(ctx, src, base, dst, name, o)
	}
	if err != nil {
		return retype("moving", from, err)
	}
	if err := syncFolder(dst, "."); err != nil {
		return fmt.Errorf("bringing the folder of %s to the disk: %w", to, err)
	}
	return syncFolder(src, ".")
}

// free checks that a name is free, or taken by the file that may be replaced.
func free(dst *os.Root, name string, over fs.FileInfo) error {
	now, err := dst.Lstat(name)
	switch {
	case absent(err) && over == nil:
		return nil
	case absent(err):
		return ErrChanged
	case err != nil:
		return err
	case over == nil:
		return fs.ErrExist
	case !sameEntry(over, now):
		return ErrChanged
	}
	return nil
}

// makeFolder makes a folder and those above it.
func (w *Workspace) makeFolder(dir string) error {
	err := w.at(dir, func(root *os.Root, rel, _ string) error { return root.MkdirAll(rel, 0o777) })
	if errors.Is(err, fs.ErrExist) {
		return ErrNoFolder
	}
	return err
}

// transfer moves an entry to another file system.
func transfer(ctx context.Context, src *os.Root, base string, dst *os.Root, name string, o MoveOptions) error {
	temp := tempName(".", name, o.Key)
	if err := dst.RemoveAll(temp); err != nil {
		return err
	}
	err := copyEntry(ctx, src, base, dst, temp)
	if err == nil {
		err = rename(dst, temp, dst, name, o.Over != nil)
	}
	if err != nil {
		return errors.Join(err, dst.RemoveAll(temp))
	}
	if err := syncFolder(dst, "."); err != nil {
		return err
	}
	if err := src.RemoveAll(base); err != nil {
		return fmt.Errorf("removing it after it was copied: %w", err)
	}
	return nil
}

// copyEntry copies a file, a link or a folder with all below it, to the disk.
func copyEntry(ctx context.Context, src *os.Root, from string, dst *os.Root, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := src.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := src.Readlink(from)
		if err != nil {
			return err
		}
		return dst.Symlink(target, to)
	case info.IsDir():
		return copyFolder(ctx, src, from, dst, to, info)
	case !info.Mode().IsRegular():
		return &TypeError{from, info.Mode()}
	}
	return copyFile(ctx, src, from, dst, to, info)
}

func copyFolder(ctx context.Context, src *os.Root, from string, dst *os.Root, to string, info fs.FileInfo) error {
	if err := dst.Mkdir(to, 0o700); err != nil {
		return err
	}
	d, err := src.Open(from)
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	d.Close()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyEntry(ctx, src, filepath.Join(from, e.Name()), dst, filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	if err := syncFolder(dst, to); err != nil {
		return err
	}
	return keep(dst, to, info)
}

func copyFile(ctx context.Context, src *os.Root, from string, dst *os.Root, to string, info fs.FileInfo) error {
	in, err := OpenRegular(src, from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := dst.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	for { // a piece at a time, so that it can be cancelled
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := io.CopyN(out, in, 8<<20)
		if isEOF(err) {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := out.Sync(); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return keep(dst, to, info)
}

// keep gives a copy the owner, the mode and the time of what it is a copy of.
func keep(dst *os.Root, name string, info fs.FileInfo) error {
	if err := keepOwner(dst, name, info); err != nil {
		return fmt.Errorf("keeping the owner: %w", err)
	}
	if err := dst.Chmod(name, info.Mode().Perm()); err != nil {
		return fmt.Errorf("keeping the mode: %w", err)
	}
	return dst.Chtimes(name, info.ModTime(), info.ModTime())
}
