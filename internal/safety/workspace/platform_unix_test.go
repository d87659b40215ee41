//go:build unix

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

func makePipe(t *testing.T, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
}

func TestWriteKeepsModeLinksAndOwner(t *testing.T) {
	w, ws, out := open(t)
	path := filepath.Join(ws, "tool.sh")
	put(t, path, "old")
	must(t, os.Chmod(path, 0o751))
	if os.Geteuid() == 0 {
		must(t, os.Chown(path, 12, 34))
	}
	must(t, os.Link(path, filepath.Join(out, "other-name")))
	link(t, "tool.sh", filepath.Join(ws, "link"))

	_, err := w.Write(filepath.Join(ws, "link"), []byte("new"), WriteOptions{})
	must(t, err)
	info, err := os.Lstat(path)
	must(t, err)
	st := info.Sys().(*syscall.Stat_t)
	if os.Geteuid() == 0 && (st.Uid != 12 || st.Gid != 34) {
		t.Errorf("owner is %d:%d", st.Uid, st.Gid)
	}
	if info.Mode() != 0o751 || read(t, path) != "new" {
		t.Errorf("mode %v, content %q", info.Mode(), read(t, path))
	}
	if l, err := os.Lstat(filepath.Join(ws, "link")); err != nil || l.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if got := read(t, filepath.Join(out, "other-name")); got != "old" {
		t.Errorf("the other name was written through: %q", got)
	}
}

func TestNewFileFollowsUmask(t *testing.T) {
	w, ws, _ := open(t)
	defer syscall.Umask(syscall.Umask(0o027))
	info, err := w.Write(filepath.Join(ws, "a/b"), []byte("x"), WriteOptions{})
	must(t, err)
	if info.Mode() != 0o640 {
		t.Error(info.Mode())
	}
}

func TestWriteRefusesPipe(t *testing.T) {
	w, ws, _ := open(t)
	makePipe(t, filepath.Join(ws, "pipe"))
	if _, err := w.Write(filepath.Join(ws, "pipe"), nil, WriteOptions{}); err == nil {
		t.Error("written")
	}
}

// The system's own folders refuse new files even to root.
func TestWriteToForbiddenFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /sys/kernel, a folder that refuses new files to everybody")
	}
	w, _, _ := open(t)
	if _, err := w.Write("/sys/kernel/none", []byte("x"), WriteOptions{}); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}
