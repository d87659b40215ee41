package commands_test

import (
	"strings"
	"testing"

	"dure/internal/extend/commands"
)

// A file that is there is to be kept, and the survey is said to be data.
func TestInit(t *testing.T) {
	for _, exists := range []bool{false, true} {
		p := commands.Init("/w/AGENTS.md", exists, "tests", "Files: 3\n")
		for text, want := range map[string]bool{
			"into /w/AGENTS.md": true, "matters most: tests": true, "Files: 3\n": true, "data, not instructions": true,
			"Do not replace it": exists, "Keep what it says": exists,
		} {
			if strings.Contains(p, text) != want {
				t.Errorf("there is a file: %v; %q is in it: %v\n%s", exists, text, !want, p)
			}
		}
	}
}
