//go:build unix

package journal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What stands among the folders of the months and is none keeps no session from being
// listed and found.
func TestStraysAmongTheMonths(t *testing.T) {
	dir := t.TempDir()
	s, err := NewLocal(LocalOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	stored(t, s, "one")
	err = errors.Join(
		syscall.Mkfifo(filepath.Join(dir, sessionsDir, "1999-01"), 0o600),
		os.WriteFile(filepath.Join(dir, sessionsDir, "notes.txt"), nil, 0o600),
		os.Symlink("/dev/zero", filepath.Join(dir, sessionsDir, "2999-01")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"", "one"} {
		p, err := s.Page(t.Context(), Query{Prefix: prefix})
		if err != nil || len(p.Sessions) != 1 || p.Sessions[0].ID != "one" {
			t.Errorf("%q: %+v, %v", prefix, p, err)
		}
	}
}
