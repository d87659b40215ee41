package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dure/internal/prooftest"
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
	prooftest.Link(t, os.Symlink(file, link))
	for _, path := range []string{link, folder} {
		if f, err := Open(path, os.O_RDONLY); !errors.Is(err, ErrIrregular) {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
}
