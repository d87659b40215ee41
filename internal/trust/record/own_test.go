package record

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestOpenFollowsNoLinks(t *testing.T) {
	dir := t.TempDir()
	file, link, folder := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	f, err := Open(file, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("links need a privilege on Windows")
		}
		t.Fatal(err)
	}
	for _, path := range []string{link, folder} {
		if f, err := Open(path, os.O_RDONLY); !errors.Is(err, ErrIrregular) {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
}
