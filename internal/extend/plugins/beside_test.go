package plugins

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/internal/prooftest"
)

// A plugin of a project is used whole or not at all: every file of it has to be as it was
// when somebody trusted it, and is read as it was looked at.
func TestLoadBeside(t *testing.T) {
	const files = "-- .claude-plugin/plugin.json --\n{\"name\": \"tool\"}\n-- skills/a/SKILL.md --\nText.\n-- hooks/hooks.json --\n{\"hooks\": {}}\n-- run.sh --\necho\n"
	dir, s := folder(t, files), newStore(t)
	if !Beside(dir) || Beside(filepath.Join(dir, "skills")) {
		t.Error("it is not told apart from a skill")
	}
	for _, c := range []struct {
		what   string
		covers func(path string, data []byte) bool
		ok     bool
	}{
		{"the user's own", nil, true},
		{"all is covered", func(string, []byte) bool { return true }, true},
		{"nothing is covered", func(string, []byte) bool { return false }, false},
		{"a script is not", func(path string, _ []byte) bool { return !strings.HasSuffix(path, "run.sh") }, false},
		{"its text is another", func(path string, data []byte) bool {
			return !strings.HasSuffix(path, "SKILL.md") || string(data) != "Text.\n"
		}, false},
	} {
		l, err := s.LoadBeside(dir, c.covers)
		if (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", c.what, err)
		}
		if c.ok && (l.ID != "tool@skills-dir" || len(l.Skills) != 1 || len(l.Hooks) != 1) {
			t.Errorf("%s: %+v", c.what, l)
		}
	}
	s.Allow = Allow{Strict: true}
	if _, err := s.LoadBeside(dir, nil); !errors.Is(err, ErrForbidden) {
		t.Error(err)
	}
	s.Allow = Allow{}
	prooftest.Link(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	if _, err := s.LoadBeside(dir, func(string, []byte) bool { return true }); err == nil {
		t.Error("a link leads out of it")
	}
}
