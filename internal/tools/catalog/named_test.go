package catalog

import (
	"slices"
	"testing"
)

// Tools that are called foreign are not there under any name, and those that are here are
// found under each of theirs.
func TestUnknown(t *testing.T) {
	t.Parallel()
	if got := Unknown(foreign); !slices.Equal(got, foreign) {
		t.Errorf("of %q only %q are unknown", foreign, got)
	}
	known := []string{"Bash", "bash__exec", "read_file", "default", "group:files", "mcp__github__get", "BashOutput", "KillShell", "TodoWrite"}
	if got := Unknown(known); got != nil {
		t.Errorf("%q are unknown", got)
	}
	if name, nearest := Mistyped(append(known, "REPL", "Bsh")); name != "Bsh" || nearest != "Bash" {
		t.Errorf("%q, near %q", name, nearest)
	}
}
