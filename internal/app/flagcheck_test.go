package app

import (
	"slices"
	"testing"

	"dure/internal/app/config"
)

// Tools that are called foreign are not there under any name, and those that are here are
// found under each of theirs.
func TestToolsOfOthers(t *testing.T) {
	t.Parallel()
	if got := unknownTools(config.Config{Dialect: "claude"}, Flags{Tools: &theirTools}); !slices.Equal(got, theirTools) {
		t.Errorf("of %q only %q are unknown", theirTools, got)
	}
	known := []string{"Bash", "bash__exec", "read_file", "default", "group:files", "mcp__github__get", "BashOutput", "KillShell", "TodoWrite"}
	if got := unknownTools(config.Config{Dialect: "claude"}, Flags{Tools: &known}); got != nil {
		t.Errorf("%q are unknown", got)
	}
	if got := unknownTools(config.Config{}, Flags{}); got != nil {
		t.Errorf("without the flag, %q are unknown", got)
	}
}
