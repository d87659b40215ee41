package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// names returns what is in a folder, temporary files included.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func TestWriteMakesFolders(t *testing.T) {
	w, ws, out := open(t)
	for _, path := range []string{filepath.Join(ws, "a/b/c"), filepath.Join(out, "d/e")} {
		info, err := w.Write(path, []byte("text"), WriteOptions{Create: true})
		must(t, err)
		if read(t, path) != "text" || info.Size() != 4 {
			t.Errorf("%s: %q", path, read(t, path))
		}
	}
}

func TestFullDiskLeavesTheOldFile(t *testing.T) {
	w, ws, _ := open(t)
	path := filepath.Join(ws, "file")
	put(t, path, "old")
	big := make([]byte, 3<<20)
	w.fault = func(written int) error {
		if written >= 1<<20 {
			return &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
		}
		return nil
	}
	for _, p := range []string{path, filepath.Join(ws, "new")} {
		_, err := w.Write(p, big, WriteOptions{})
		if !Full(err) || !strings.Contains(err.Error(), p) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if read(t, path) != "old" || names(t, ws) != "file" {
		t.Errorf("left: %q in %s", read(t, path), names(t, ws))
	}
}

func TestWriteRefusesWhatChanged(t *testing.T) {
	w, ws, _ := open(t)
	path := filepath.Join(ws, "file")
	put(t, path, "old")
	seen, err := os.Stat(path)
	must(t, err)

	put(t, filepath.Join(ws, "dir/x"), "")
	put(t, filepath.Join(ws, "fixed"), "")
	must(t, os.Chmod(filepath.Join(ws, "fixed"), 0o444))
	for _, c := range []struct {
		name, path string
		o          WriteOptions
		during     func()
		want       string
	}{
		{"exists by now", path, WriteOptions{Create: true}, nil, "exists by now"},
		{"appears while it is written", filepath.Join(ws, "late"), WriteOptions{Create: true}, func() { put(t, filepath.Join(ws, "late"), "theirs") }, "exists by now"},
		{"changes while it is written", path, WriteOptions{Old: seen}, func() { put(t, path, "theirs, longer") }, "since it was read"},
		{"changed before", path, WriteOptions{Old: seen}, nil, "since it was read"},
		{"gone", filepath.Join(ws, "gone"), WriteOptions{Old: seen}, nil, "gone"},
		{"folder", filepath.Join(ws, "dir"), WriteOptions{}, nil, "a folder"},
		{"below a file", filepath.Join(path, "x"), WriteOptions{}, nil, ErrNoFolder.Error()},
		{"read-only", filepath.Join(ws, "fixed"), WriteOptions{}, nil, ErrReadOnly.Error()},
	} {
		w.fault = func(int) error {
			if c.during != nil {
				c.during()
			}
			return nil
		}
		before := names(t, ws)
		_, err := w.Write(c.path, []byte("ours"), c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if after := names(t, ws); c.during == nil && after != before {
			t.Errorf("%s: left %s", c.name, after)
		}
	}
	if got := fmt.Sprint(read(t, path), read(t, filepath.Join(ws, "late"))); strings.Contains(got, "ours") || strings.Contains(names(t, ws), tempPrefix) {
		t.Error(got, names(t, ws))
	}
	if _, err := w.Write(path, []byte("ours"), WriteOptions{Old: seen}); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
}

// What a writer left behind that was killed goes with its next attempt.
func TestWriteClearsWhatIsLeft(t *testing.T) {
	w, ws, _ := open(t)
	path := filepath.Join(ws, "file")
	w.fault = func(int) error { panic("killed") }
	func() {
		defer func() { _ = recover() }()
		_, _ = w.Write(path, []byte("text"), WriteOptions{Key: "call-1"})
	}()
	w.fault = nil
	if left := names(t, ws); !strings.HasPrefix(left, tempPrefix) {
		t.Fatalf("left: %q", left)
	}
	if l, err := w.List(t.Context(), ws); err != nil || len(l.Paths) != 0 {
		t.Errorf("listed: %v, %v", l.Paths, err)
	}
	_, err := w.Write(path, []byte("text"), WriteOptions{Key: "call-1"})
	must(t, err)
	if read(t, path) != "text" || names(t, ws) != "file" {
		t.Error(names(t, ws))
	}
}

func TestWriteThroughDanglingLink(t *testing.T) {
	w, ws, _ := open(t)
	link(t, "sub/target", filepath.Join(ws, "link"))
	_, err := w.Write(filepath.Join(ws, "link"), []byte("text"), WriteOptions{Create: true})
	must(t, err)
	if got := read(t, filepath.Join(ws, "sub/target")); got != "text" {
		t.Error(got)
	}
}
