package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// open returns a workspace at dir/ws, beside which there is dir/out.
func open(t *testing.T) (w *Workspace, ws, out string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	ws, out = filepath.Join(dir, "ws"), filepath.Join(dir, "out")
	must(t, os.Mkdir(ws, 0o755))
	must(t, os.Mkdir(out, 0o755))
	w, err = New(Config{Root: ws})
	must(t, err)
	return w, ws, out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("making links needs a privilege on Windows")
	}
	must(t, os.Symlink(target, path))
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "")
	for name, root := range map[string]string{"relative": "x", "missing": filepath.Join(dir, "no"), "file": filepath.Join(dir, "file")} {
		if _, err := New(Config{Root: root}); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

func TestResolve(t *testing.T) {
	w, ws, out := open(t)
	put(t, filepath.Join(ws, "a/file"), "")
	link(t, "a", filepath.Join(ws, "near"))
	link(t, out, filepath.Join(ws, "away"))
	link(t, "../out/none/yet", filepath.Join(ws, "dangling"))
	link(t, "loop2", filepath.Join(ws, "loop1"))
	link(t, "loop1", filepath.Join(ws, "loop2"))
	link(t, "near/../../out", filepath.Join(ws, "dots"))

	for _, c := range []struct{ path, given, resolved string }{
		{"a/file", "WS/a/file", "WS/a/file"},
		{ws + "/a/../a//file", "WS/a/file", "WS/a/file"},
		{"near/file", "WS/near/file", "WS/a/file"},
		{"near/new/er", "WS/near/new/er", "WS/a/new/er"},
		{"a/file/below", "WS/a/file/below", "WS/a/file/below"},
		{"away/x", "WS/away/x", "OUT/x"},
		{"dangling", "WS/dangling", "OUT/none/yet"},
		{"dangling/more", "WS/dangling/more", "OUT/none/yet/more"},
		{"dots/x", "WS/dots/x", "OUT/x"}, // near is a: a/../../out
		{"../out", "OUT", "OUT"},
		{"/", "/", "/"},
	} {
		given, resolved, err := w.Resolve(c.path)
		short := strings.NewReplacer(ws, "WS", out, "OUT")
		if got := [2]string{short.Replace(given), short.Replace(resolved)}; err != nil || got != [2]string{c.given, c.resolved} {
			t.Errorf("Resolve(%s) = %v, %v; want %s, %s", c.path, got, err, c.given, c.resolved)
		}
	}
	if _, _, err := w.Resolve("loop1"); !errors.Is(err, ErrLoop) {
		t.Errorf("loop: %v", err)
	}
	if _, _, err := w.Resolve("a\x00b"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("NUL: %v", err)
	}
}

func TestInside(t *testing.T) {
	_, ws, out := open(t)
	extra := filepath.Join(out, "extra")
	link(t, ws, filepath.Join(out, "alias"))
	w, err := New(Config{Root: filepath.Join(out, "alias"), Extra: []string{extra}})
	must(t, err)
	for path, want := range map[string]bool{
		ws:                                 true,
		filepath.Join(ws, "x"):             true,
		ws + "-evil/x":                     false, // a prefix, not a folder
		filepath.Join(out, "alias", "x"):   true,
		filepath.Join(ws, "x", "..", ".."): false,
		filepath.Join(extra, "x"):          true,
		out:                                false,
		"/":                                false,
		"x":                                false,
	} {
		if got := w.Inside(path); got != want {
			t.Errorf("Inside(%s) = %v", path, got)
		}
	}
	folded := &Workspace{roots: []string{strings.ToLower(ws)}, folded: true}
	if !folded.Inside(strings.ToUpper(ws) + "/x") {
		t.Error("case is told apart where the file system does not")
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	w, ws, _ := open(t)
	put(t, filepath.Join(ws, "dir/file"), "x")
	kinds := map[string]string{"dir": "a folder"}
	if runtime.GOOS != "windows" {
		makePipe(t, filepath.Join(ws, "pipe"))
		link(t, "/dev/zero", filepath.Join(ws, "zero"))
		kinds["pipe"], kinds["zero"], kinds["/dev/null"] = "a named pipe", "a device", "a device"
	}
	for name, kind := range kinds {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(ws, name)
		}
		_, err := w.Open(path) // must not hang
		te, ok := errors.AsType[*TypeError](err)
		if !ok || te.Kind() != kind || te.Path != path {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"none", "dir/file/x", "no/no"} {
		if _, err := w.Open(filepath.Join(ws, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, err := w.Open(filepath.Join(ws, "dir/file"))
	must(t, err)
	f.Close()
}

// A folder that is replaced by a link after its path was resolved must not lead
// out of the workspace.
func TestSwappedLinkDoesNotLeadOut(t *testing.T) {
	w, ws, out := open(t)
	put(t, filepath.Join(ws, "dir/file"), "inside")
	put(t, filepath.Join(out, "file"), "secret")
	err := w.at(filepath.Join(ws, "dir/file"), func(root *os.Root, rel, _ string) error {
		must(t, os.RemoveAll(filepath.Join(ws, "dir")))
		link(t, out, filepath.Join(ws, "dir"))
		if f, err := OpenRegular(root, rel); err == nil {
			f.Close()
			t.Error("the file outside was opened")
		}
		_, err := w.replace(root, rel, []byte("overwritten"), WriteOptions{})
		return err
	})
	if err == nil {
		t.Error("the file outside was written")
	}
	if data, _ := os.ReadFile(filepath.Join(out, "file")); string(data) != "secret" {
		t.Errorf("outside: %q", data)
	}
}

func TestReadDirIsSorted(t *testing.T) {
	w, ws, _ := open(t)
	for _, n := range []string{"b", "a", "c/d"} {
		put(t, filepath.Join(ws, n), "")
	}
	entries, err := w.ReadDir(ws)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "a b c" {
		t.Error(got)
	}
	if _, err := w.ReadDir(filepath.Join(ws, "a")); err == nil {
		t.Error("a file was listed")
	}
}
