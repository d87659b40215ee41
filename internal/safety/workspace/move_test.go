package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// below lists what is below a folder, with the content of files.
func below(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if e.Type().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			rel += "=" + string(data)
		}
		lines = append(lines, rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, " ")
}

func sow(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, n := range names {
		p := filepath.Join(dir, n)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(n), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
}

func placed(t *testing.T) (*Workspace, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Config{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	return w, dir
}

func lstat(t *testing.T, p string) fs.FileInfo {
	t.Helper()
	info, err := os.Lstat(p)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestRemove(t *testing.T) {
	w, dir := placed(t)
	sow(t, dir, "a", "d/b", "d/e/c")
	old := lstat(t, filepath.Join(dir, "a"))
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(filepath.Join(dir, "a"), old, "k"); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	d := filepath.Join(dir, "d")
	if err := w.Remove(d, lstat(t, d), "k"); err != nil || below(t, dir) != "a=changed" {
		t.Errorf("%v: %s", err, below(t, dir))
	}
	// What died between the new name and the removal is finished by the next.
	sow(t, dir, "f/x")
	f := filepath.Join(dir, "f")
	if err := os.Rename(f, filepath.Join(dir, tempName(".", "f", "key"))); err != nil {
		t.Fatal(err)
	}
	if gone, err := w.Removed(f, "key"); err != nil || !gone || below(t, dir) != "a=changed" {
		t.Errorf("%v, %v: %s", gone, err, below(t, dir))
	}
	if gone, err := w.Removed(filepath.Join(dir, "a"), "key"); err != nil || gone {
		t.Error(gone, err)
	}
	if gone, err := w.Removed(filepath.Join(dir, "none/a"), "key"); err != nil || !gone {
		t.Error(gone, err)
	}
}

// A folder that has become a link since it was looked at leads nowhere.
func TestPlaceTurned(t *testing.T) {
	w, dir := placed(t)
	out := t.TempDir()
	sow(t, out, "x")
	sow(t, dir, "d/x")
	_, place, err := w.Place("d/x")
	if err != nil {
		t.Fatal(err)
	}
	old := lstat(t, place)
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "d")), os.Symlink(out, filepath.Join(dir, "d"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(place, old, ""); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if err := w.Move(t.Context(), place, filepath.Join(dir, "y"), MoveOptions{Old: old}); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if got := below(t, out); got != "x=x" {
		t.Error(got)
	}
}

func TestMove(t *testing.T) {
	w, dir := placed(t)
	sow(t, dir, "a", "b", "d/c")
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := w.Move(t.Context(), at("a"), at("b"), MoveOptions{Old: lstat(t, at("a"))}); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := w.Move(t.Context(), at("a"), at("c"), MoveOptions{Old: lstat(t, at("b"))}); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if err := w.Move(t.Context(), at("a"), at("b"), MoveOptions{Old: lstat(t, at("a")), Over: lstat(t, at("b"))}); err != nil {
		t.Error(err)
	}
	if err := w.Move(t.Context(), at("d"), at("n/m/d"), MoveOptions{Old: lstat(t, at("d"))}); err != nil {
		t.Error(err)
	}
	if got := below(t, dir); got != "b=a n n/m n/m/d n/m/d/c=d/c" {
		t.Error(got)
	}
}

// Across file systems the copy is whole before the original goes.
func TestMoveAcrossFileSystems(t *testing.T) {
	const shm = "/dev/shm"
	w, dir := placed(t)
	other, err := os.MkdirTemp(shm, "move")
	if err != nil {
		t.Skip("no second file system: ", err)
	}
	defer os.RemoveAll(other)
	sow(t, dir, "d/a", "d/e/b", "f", "probe")
	if err := os.Rename(filepath.Join(dir, "probe"), filepath.Join(other, "probe")); !crossDevice(err) {
		t.Skip("one file system")
	}
	if err := os.Symlink("a", filepath.Join(dir, "d/link")); err != nil {
		t.Fatal(err)
	}
	d := filepath.Join(dir, "d")
	before := lstat(t, filepath.Join(d, "a"))
	if err := w.Move(t.Context(), d, filepath.Join(other, "to/d"), MoveOptions{Old: lstat(t, d), Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if got := below(t, other); got != "to to/d to/d/a=d/a to/d/e to/d/e/b=d/e/b to/d/link" {
		t.Error(got)
	}
	after := lstat(t, filepath.Join(other, "to/d/a"))
	if after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("%v %v, was %v %v", after.Mode(), after.ModTime(), before.Mode(), before.ModTime())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := filepath.Join(dir, "f")
	if err := w.Move(ctx, f, filepath.Join(other, "f"), MoveOptions{Old: lstat(t, f)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := below(t, dir) + "|" + below(t, other); got != "f=f probe=probe|to to/d to/d/a=d/a to/d/e to/d/e/b=d/e/b to/d/link" {
		t.Error(got)
	}
}

func TestTree(t *testing.T) {
	w, dir := placed(t)
	sow(t, dir, "d/a", "d/e/b", "d/z")
	entries, err := w.Tree(t.Context(), filepath.Join(dir, "d"), 5)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Path)
	}
	if want := []string{".", "a", "e", "e/b", "z"}; !slices.Equal(got, want) {
		t.Error(got)
	}
	if _, err := w.Tree(t.Context(), filepath.Join(dir, "d"), 4); !errors.Is(err, ErrMany) {
		t.Error(err)
	}
}

func TestHolds(t *testing.T) {
	w, dir := placed(t)
	for p, want := range map[string]bool{dir: true, filepath.Dir(dir): true, "/": true, filepath.Join(dir, "x"): false, dir + "x": false} {
		if got := w.Holds(p); got != want {
			t.Errorf("%s: %v", p, got)
		}
	}
}

func TestEncodingsByName(t *testing.T) {
	for name, want := range map[string]Encoding{
		"UTF-8": UTF8, "utf8": UTF8, "CP949": EUCKR, "ks_c_5601-1987": EUCKR, "EUC-KR": EUCKR, "Shift_JIS": "shift_jis", "GBK": "gb18030",
		"latin1": "iso-8859-1", "ISO-8859-15": "iso-8859-15", "utf-16": UTF16LE, "windows-1252": Windows1252, "klingon": "", "": "",
	} {
		if got, ok := EncodingNamed(name); got != want || ok != (want != "") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, name := range EncodingNames() {
		if e, ok := EncodingNamed(name); !ok || string(e) != name {
			t.Errorf("%s: %s", name, e)
		}
	}
	text, err := DecodeTextAs([]byte("\x93\xfa\x96{"), "shift_jis")
	if err != nil || text.Content != "日本" || text.Damaged {
		t.Errorf("%+v, %v", text, err)
	}
}
