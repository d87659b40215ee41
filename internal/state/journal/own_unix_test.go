//go:build unix

package journal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What stands in the place of a file of a session and is none is neither followed,
// nor waited for, nor written to.
func TestFilesThatAreNone(t *testing.T) {
	const precious = "what is none of ours"
	for _, name := range []string{"log.000001.jsonl", "lock", "meta.json"} {
		for kind, put := range map[string]func(victim, path string) error{
			"pipe":   func(_, path string) error { return syscall.Mkfifo(path, 0o600) },
			"link":   os.Symlink,
			"device": func(_, path string) error { return os.Symlink("/dev/zero", path) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				dir := t.TempDir()
				s, err := NewLocal(LocalOptions{Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				stored(t, s, "one")
				at, err := s.find("one")
				if err != nil {
					t.Fatal(err)
				}
				path, victim := filepath.Join(dir, at, name), filepath.Join(t.TempDir(), "victim")
				err = errors.Join(os.WriteFile(victim, []byte(precious), 0o600), os.Remove(path))
				if err := errors.Join(err, put(victim, path)); err != nil {
					t.Fatal(err)
				}
				l, err := s.Acquire(t.Context(), "one", Owner{})
				if err == nil {
					err = l.Release(t.Context(), Runnable, Meta{})
				}
				if derived := name == "meta.json"; derived != (err == nil) || !derived && !errors.Is(err, errIrregular) {
					t.Errorf("taking the session: %v", err)
				}
				for _, err := range s.Read(t.Context(), "one", 0) {
					if bad := name == "log.000001.jsonl"; bad != errors.Is(err, errIrregular) {
						t.Errorf("reading the session: %v", err)
					}
				}
				for _, err := range s.List(t.Context(), Query{}) {
					if err != nil {
						t.Error(err)
					}
				}
				if err := s.Discard(t.Context(), "one"); err != nil && name != "lock" {
					t.Error(err)
				}
				if got, err := os.ReadFile(victim); string(got) != precious || err != nil {
					t.Errorf("the file behind the link has %q, %v", got, err)
				}
			})
		}
	}
}
