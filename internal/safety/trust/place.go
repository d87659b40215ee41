package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Folder is a folder as it really is: after links, and with the number that
// its file system knows it by. Neither what a repository says of itself (its
// remotes, the main checkout of a worktree) nor a folder above it counts.
type Folder struct {
	Path string `json:"path"` // absolute; no part of it is a link

	// Device and Inode name the folder to the system; 0 = it gives no number. The
	// device is for information alone: many systems number them anew at each start.
	Device uint64 `json:"device,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
}

// Find returns the folder that dir leads to.
func Find(dir string) (Folder, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Folder{}, fmt.Errorf("looking at %q: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return Folder{}, fmt.Errorf("looking at %q: %w", abs, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return Folder{}, fmt.Errorf("looking at %q: %w", abs, err)
	}
	if !info.IsDir() {
		return Folder{}, fmt.Errorf("looking at %q: it is no folder", abs)
	}
	f := Folder{Path: real}
	f.Device, f.Inode = numbers(real, info)
	return f, nil
}

// Names reports whether a path, as it was recorded once, names the folder now. On
// a volume that does not tell letters by their case one folder has many
// spellings; which volumes those are is asked of the system, not guessed.
func (f Folder) Names(path string) bool {
	if path == f.Path {
		return true
	}
	if !strings.EqualFold(path, f.Path) {
		return false
	}
	a, err := os.Lstat(path)
	if err != nil {
		return false
	}
	b, err := os.Lstat(f.Path)
	return err == nil && os.SameFile(a, b)
}

// Replaced reports whether another folder than f had the same path when then was
// recorded.
func (f Folder) Replaced(then Folder) bool { return f.Inode != then.Inode }

// Repository returns the folder at or above dir that has a .git; "" = there is none.
func Repository(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
