//go:build unix

package trust

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What is no file is refused, and does not keep anybody waiting.
func TestLookAtSpecialFiles(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }, `unfit: ".mcp.json" is neither file nor folder nor link`},
		{"socket", func(path string) error {
			t.Chdir(filepath.Dir(path)) // a socket's path has to be short
			l, err := net.Listen("unix", filepath.Base(path))
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		}, `unfit: ".mcp.json" is neither file nor folder nor link`},
		{"link to a pipe", func(path string) error {
			pipe := filepath.Join(filepath.Dir(path), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				return err
			}
			return os.Symlink(pipe, path)
		}, `unfit: ".mcp.json" leads to what is neither file nor folder, "BASE/repo/pipe"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := repo(t)
			if err := tt.make(filepath.Join(dir, ".mcp.json")); err != nil {
				t.Fatal(err)
			}
			if got := say(lookAt(t, dir)); got != tt.want {
				t.Error(got)
			}
		})
	}
}

// A folder or a file that becomes a link out of the folder while it is looked at is
// refused, and nothing of what it leads to is taken in.
func TestLookAtWhatIsSwapped(t *testing.T) {
	for _, at := range []string{".dure/skills", ".dure/skills/SKILL.md"} {
		dir := repo(t, [2]string{".dure/skills/SKILL.md", "fine"})
		out := t.TempDir()
		if err := os.WriteFile(filepath.Join(out, "SKILL.md"), []byte("outside"), 0o600); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		info, err := root.Lstat(at)
		if err == nil {
			err = os.RemoveAll(filepath.Join(dir, at))
		}
		if err == nil {
			to := out
			if !info.IsDir() {
				to = filepath.Join(out, "SKILL.md")
			}
			err = os.Symlink(to, filepath.Join(dir, at))
		}
		if err != nil {
			t.Fatal(err)
		}
		l := &look{folder: Folder{Path: dir}, root: root, small: map[string][]byte{}}
		if err := l.visit(entryAt{root, at, at}, at, info); err == nil || len(l.files) > 0 {
			t.Errorf("%s: %v, %v", at, l.files, err)
		}
	}
}
