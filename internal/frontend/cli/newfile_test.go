package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A document takes the place of nothing unless its user says so, and then of a link and
// not of what it leads to.
func TestNewFileReplacesOnlyWhenTold(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	dir := t.TempDir()
	mine, link, folder := filepath.Join(dir, "mine"), filepath.Join(dir, "link"), filepath.Join(dir, "linked")
	if err := errors.Join(os.WriteFile(mine, []byte("mine"), 0o600), os.Symlink(mine, link), os.Symlink(dir, folder)); err != nil {
		t.Fatal(err)
	}
	say := func(s string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, s)
			return err
		}
	}
	for _, name := range []string{"mine", "link", "linked"} {
		if _, err := NewFile(dir, name, false, say("new")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := func(w io.Writer) error { return errors.Join(say("half")(w), io.ErrUnexpectedEOF) }
	if _, err := NewFile(dir, "late", false, broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if n, err := NewFile(dir, "link", true, say("new")); n != 3 || err != nil {
		t.Error(n, err)
	}
	if data, err := os.ReadFile(mine); string(data) != "mine" {
		t.Errorf("what the link led to: %q, %v", data, err)
	}
	if data, err := os.ReadFile(link); string(data) != "new" {
		t.Errorf("in the place of the link: %q, %v", data, err)
	}
	list, err := os.ReadDir(dir)
	if len(list) != 3 || err != nil {
		t.Errorf("something was left behind: %v, %v", list, err)
	}
	for rel, want := range map[string]string{"linked/sub": "linked", "sub/sub": "", ".": ""} {
		if got := linkedBelow(dir, rel); got != want {
			t.Errorf("%s: %q, not %q", rel, got, want)
		}
	}
}
