package app

import (
	"os"
	"path/filepath"
	"testing"

	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
)

// Confined commands do not change settings of the user that stand in the project, and change
// the rest of it; whatever the environment says, what is outside of it stays as it is.
func TestOwnSettingsAreHeld(t *testing.T) {
	t.Parallel()
	for name, tt := range ownCases {
		t.Run(name, func(t *testing.T) {
			a, project, beside := ownRig(t, name, nil)
			ws, err := workspace.New(workspace.Config{Root: project})
			if err != nil {
				t.Fatal(err)
			}
			box, level := a.boxes.Box(ws.Root(), project, nil)
			t.Cleanup(func() {
				if err := box.Close(); err != nil {
					t.Error(err)
				}
			})
			if level() == string(sandbox.None) {
				prooftest.Lacking(t, "sandbox", "nothing confines commands")
			}
			write := func(path string) {
				script := `mkdir -p "$(dirname "$1")" && echo MADE > "$1"`
				if _, err := box.Run(t.Context(), sandbox.Cmd{Argv: []string{"/bin/sh", "-c", script, "sh", path}, Dir: project}); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
			made := func(path string) bool {
				data, err := os.ReadFile(path)
				return err == nil && string(data) == "MADE\n"
			}
			for _, path := range tt.held {
				path = filepath.Join(project, path)
				if write(path); made(path) {
					t.Errorf("%s was written", path)
				}
			}
			for _, path := range tt.free {
				path = filepath.Join(project, path)
				if write(path); !made(path) {
					t.Errorf("%s was not written", path)
				}
			}
			out := filepath.Join(beside, "escaped")
			if write(out); made(out) {
				t.Error("it wrote outside of the project")
			}
		})
	}
}
