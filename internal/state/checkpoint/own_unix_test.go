//go:build unix

package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What stands in the place of a file of the store and is none is neither followed nor
// waited for.
func TestFilesThatAreNone(t *testing.T) {
	for _, name := range []string{"log", "lock"} {
		for kind, put := range map[string]func(victim, path string) error{
			"pipe": func(_, path string) error { return syscall.Mkfifo(path, 0o600) },
			"link": os.Symlink,
		} {
			dir, root, victim := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "victim")
			if err := errors.Join(os.WriteFile(victim, []byte("x"), 0o600), put(victim, filepath.Join(dir, name))); err != nil {
				t.Fatal(err)
			}
			s, err := Open(Config{Dir: dir, Roots: []string{root}})
			if err == nil {
				err = s.Close()
			}
			if err == nil && (name == "log" || kind == "link") {
				t.Errorf("%s as a %s was taken", name, kind)
			}
			if got, err := os.ReadFile(victim); string(got) != "x" || err != nil {
				t.Errorf("the file behind the link has %q, %v", got, err)
			}
		}
	}
}
