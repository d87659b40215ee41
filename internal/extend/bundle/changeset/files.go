package changeset

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"dure/agent"
	"dure/internal/extend/bundle"
	"dure/internal/safety/workspace"
)

// file is one of a bundle.
type file struct {
	data []byte
	sum  string
	info fs.FileInfo
}

// ours reports whether a changeset has a file or folder: what begins with a dot may hold
// secrets, and packages and their lock are the person's to change.
func ours(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part != "." && strings.HasPrefix(part, ".") || strings.EqualFold(part, "node_modules") {
			return false
		}
	}
	return !strings.EqualFold(name, bundle.LockFile)
}

// current reads the files of the bundle as they are now.
func (c *Changesets) current() (map[string]file, error) {
	root, err := os.OpenRoot(c.c.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return read(root, func(string) error { return nil })
}

// read returns the files of a folder that a changeset has. What it has not is told to other.
func read(root *os.Root, other func(name string) error) (map[string]file, error) {
	all := map[string]file{}
	entries, bytes := 0, 0
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > maxEntries {
			return tooLarge()
		}
		switch {
		case !ours(name):
			if err := other(name); err != nil || !d.IsDir() {
				return err
			}
			return fs.SkipDir
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return other(name)
		}
		one, err := readFile(root, name, maxBytes-bytes)
		if err != nil {
			return err
		}
		all[name] = one
		if bytes += len(one.data); len(all) > maxFiles {
			return tooLarge()
		}
		return nil
	})
	return all, err
}

func readFile(root *os.Root, name string, most int) (file, error) {
	f, err := workspace.OpenRegular(root, name)
	if err != nil {
		return file{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return file{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = tooLarge()
	}
	return file{data, workspace.Sum(data), info}, err
}

func tooLarge() error {
	return &agent.ToolError{
		Code: ErrLarge, Message: fmt.Sprintf("the folder of the bundle has more than %d files or %d MiB", maxFiles, maxBytes>>20),
		Suggestion: "Tell the user that the bundle needs a folder of its own.",
	}
}

// after is the folder of a bundle as it is once a changeset is committed: with its files, and
// with what the bundle has that is no part of changesets.
type after struct{ top, base fs.FS }

// Open opens what top has where changesets have it, and else what base has. Of a folder it
// opens one of these, whose entries ReadDir puts together.
func (a after) Open(name string) (fs.File, error) {
	if ours(name) {
		return a.top.Open(name)
	}
	return a.base.Open(name)
}

// ReadDir returns the entries of a folder.
func (a after) ReadDir(name string) ([]fs.DirEntry, error) {
	if !ours(name) {
		return fs.ReadDir(a.base, name)
	}
	var all []fs.DirEntry
	list, err := fs.ReadDir(a.top, name)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if ours(path.Join(name, e.Name())) {
			all = append(all, e)
		}
	}
	list, err = fs.ReadDir(a.base, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range list {
		if !ours(path.Join(name, e.Name())) {
			all = append(all, e)
		}
	}
	return all, nil
}

// matches reports whether a pattern has a file: ** stands for any number of folders.
func matches(pattern, name string) bool {
	return matchParts(strings.Split(path.Clean(pattern), "/"), strings.Split(name, "/"))
}

func matchParts(pattern, name []string) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == "**" {
		for i := range len(name) + 1 {
			if matchParts(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	}
	if len(name) == 0 {
		return false
	}
	ok, err := path.Match(pattern[0], name[0])
	return err == nil && ok && matchParts(pattern[1:], name[1:])
}
