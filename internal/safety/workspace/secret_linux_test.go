package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The environment of a process, under whichever name, is not read; a file that
// is only called so is.
func TestEnvironmentsAreNotRead(t *testing.T) {
	w, ws, _ := open(t)
	link(t, "/proc/self/environ", filepath.Join(ws, "notes.txt"))
	self := "/proc/" + strconv.Itoa(os.Getpid())
	for _, path := range []string{"/proc/self/environ", self + "/environ", "/proc/thread-self/environ", filepath.Join(ws, "notes.txt")} {
		f, err := w.Open(path)
		if err == nil {
			f.Close()
		}
		if te, ok := errors.AsType[*TypeError](err); !ok || te.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
	root, err := w.OpenRoot(self)
	must(t, err)
	defer root.Close()
	if f, err := OpenRegular(root, "environ"); err == nil {
		f.Close()
		t.Error("the environment was opened below its process")
	}
	put(t, filepath.Join(ws, "environ"), "x")
	f, err := w.Open(filepath.Join(ws, "environ"))
	must(t, err)
	f.Close()
}
