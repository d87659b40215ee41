//go:build unix

package index

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// An index file that is a link or a pipe is made again, and what it led to is not
// touched.
func TestFilesThatAreNone(t *testing.T) {
	for _, name := range []string{fileName, fileName + "-wal"} {
		for kind, put := range map[string]func(victim, path string) error{
			"pipe": func(_, path string) error { return syscall.Mkfifo(path, 0o600) },
			"link": os.Symlink,
		} {
			dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
			if err := errors.Join(os.WriteFile(victim, []byte("x"), 0o600), put(victim, filepath.Join(dir, name))); err != nil {
				t.Fatal(err)
			}
			x, err := Open(t.Context(), Options{Dir: dir})
			if err != nil {
				t.Errorf("%s as a %s: %v", name, kind, err)
				continue
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
			if got, err := os.ReadFile(victim); string(got) != "x" || err != nil {
				t.Errorf("the file behind the link has %q, %v", got, err)
			}
		}
	}
}
