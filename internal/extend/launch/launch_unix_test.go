//go:build unix

package launch

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe among the snippets is told of, and keeps nobody waiting.
func TestAPipeIsNoSnippet(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "a.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Snippets{Dir: dir}.List()
	if err != nil || len(all) != 1 || !strings.Contains(all[0].Error, "it is no file") {
		t.Errorf("%+v, %v", all, err)
	}
}
