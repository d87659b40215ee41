//go:build unix

package skills

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe that stands where the file of a skill should keeps nobody waiting.
func TestPipe(t *testing.T) {
	s, dir, place := project(t, nil)
	put(t, dir, map[string]string{"work/.claude/skills/one/SKILL.md": skill("one", "d"), "work/.claude/skills/pipe/x": ""})
	if err := syscall.Mkfifo(filepath.Join(place, "pipe", File), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := table(s, dir); !strings.Contains(got, "one project d") || !strings.Contains(got, "pipe project  – it is not read: it is no ordinary file") {
		t.Errorf("%s", got)
	}
}
