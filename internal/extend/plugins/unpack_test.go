package plugins

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// unpacked unpacks an archive into a folder of its own.
func unpacked(t testing.TB, data []byte, limits Limits) (dir string, err error) {
	t.Helper()
	top := t.TempDir()
	file, dir := filepath.Join(top, "archive"), filepath.Join(top, "a", "b", "tree")
	if err := errors.Join(os.WriteFile(file, data, 0o600), os.MkdirAll(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = unpack(f, root, limits.withDefaults())
	if outside := slices.DeleteFunc(tree(t, top), func(line string) bool {
		return strings.HasPrefix(line, "archive ") || strings.HasPrefix(line, "a/b/tree/")
	}); len(outside) > 0 {
		t.Errorf("written outside of its folder: %q", outside)
	}
	return dir, err
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	many := make([]member, 51)
	for i := range many {
		many[i] = member{name: fmt.Sprintf("f%d", i)}
	}
	zeros := strings.Repeat("\x00", 17<<20)
	for _, c := range []struct {
		name string
		list []member
		want error
		says string
	}{
		{"a way out", []member{{name: "../evil"}}, ErrUnsafe, "leads out"},
		{"a way out within", []member{{name: "a/../../../evil"}}, ErrUnsafe, "leads out"},
		{"a way out of dots alone", []member{{name: ".."}}, ErrUnsafe, "leads out"},
		{"an absolute path", []member{{name: "/tmp/evil"}}, ErrUnsafe, "absolute"},
		{"a backslash", []member{{name: `..\evil`}}, ErrUnsafe, "not every system"},
		{"a drive", []member{{name: "C:/evil"}}, ErrUnsafe, "not every system"},
		{"a stream", []member{{name: "file.txt:hidden"}}, ErrUnsafe, "not every system"},
		{"a device of Windows", []member{{name: "aux.txt"}}, ErrUnsafe, "device"},
		{"a numbered device of Windows", []member{{name: "dir/COM1"}}, ErrUnsafe, "device"},
		{"a dot at the end", []member{{name: "name."}}, ErrUnsafe, "not every system"},
		{"a line end in a name", []member{{name: "a\nb"}}, ErrUnsafe, "cannot be seen"},
		{"a turn of direction in a name", []member{{name: "a\u202eb"}}, ErrUnsafe, "cannot be seen"},
		{"a name that is no text", []member{{name: "a\xffb"}}, ErrUnsafe, "UTF-8"},
		{"an empty part", []member{{name: "a//b"}}, ErrUnsafe, "leads out"},
		{"a long path", []member{{name: strings.Repeat("a/", 300) + "b"}}, ErrUnsafe, "too long"},
		{"a deep path", []member{{name: strings.Repeat("a/", 40) + "b"}}, ErrUnsafe, "too deep"},
		{"a file twice", []member{{name: "a"}, {name: "a"}}, ErrUnsafe, "twice"},
		{"a file that is a folder too", []member{{name: "a"}, {name: "a/b"}}, ErrUnsafe, "twice"},
		{"a folder that is a file too", []member{{name: "a/b"}, {name: "a"}}, ErrUnsafe, "twice"},
		{"two cases of a name", []member{{name: "Readme"}, {name: "README"}}, ErrUnsafe, "one name"},
		{"two cases of a folder", []member{{name: "Skills/a"}, {name: "skills/b"}}, ErrUnsafe, "one name"},
		{"two ways to write an accent", []member{{name: "caf\u00e9"}, {name: "cafe\u0301"}}, ErrUnsafe, "one name"},
		{"a letter that folds to two", []member{{name: "straße"}, {name: "STRASSE"}}, ErrUnsafe, "one name"},
		{"a letter that looks like another", []member{{name: "\ufb01le"}, {name: "file"}}, ErrUnsafe, "one name"},
		{"too many files", many, ErrLarge, "50"},
		{"a bomb", []member{{name: "zeros", data: zeros}}, ErrUnsafe, "times its size"},
		{"a bomb in pieces", []member{{name: "a", data: zeros[:9<<20]}, {name: "b", data: zeros[:9<<20]}}, ErrUnsafe, "times its size"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for kind, data := range map[string][]byte{"zip": zipOf(t, c.list...), "tar": tarOf(t, c.list...)} {
				if _, err := unpacked(t, data, Limits{Files: 50}); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v", kind, err)
				}
			}
		})
	}
}

func TestUnpackRefusesLinksAndDevices(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"a link in a zip":     zipOf(t, member{name: "evil", data: "/etc/passwd", mode: 0o777 | os.ModeSymlink}, member{name: "evil/x"}),
		"a device in a zip":   zipOf(t, member{name: "null", mode: 0o666 | os.ModeDevice | os.ModeCharDevice}),
		"a pipe in a zip":     zipOf(t, member{name: "pipe", mode: 0o666 | os.ModeNamedPipe}),
		"a link in a tar":     tarOf(t, member{name: "evil", link: "/etc", kind: tar.TypeSymlink}, member{name: "evil/passwd"}),
		"a hard link":         tarOf(t, member{name: "evil", link: "/etc/passwd", kind: tar.TypeLink}),
		"a character device":  tarOf(t, member{name: "null", kind: tar.TypeChar}),
		"a block device":      tarOf(t, member{name: "sda", kind: tar.TypeBlock}),
		"a pipe in a tar":     tarOf(t, member{name: "pipe", kind: tar.TypeFifo}),
		"an unknown kind":     tarOf(t, member{name: "odd", kind: 'Z'}),
		"no archive":          []byte("hello"),
		"nothing":             nil,
		"the start of a zip":  []byte("PK\x03\x04"),
		"the start of a gzip": {0x1f, 0x8b, 8},
		"a zip that was cut":  zipOf(t, member{name: "a", data: "hello"})[:40],
	} {
		if dir, err := unpacked(t, data, Limits{}); err == nil {
			t.Errorf("%s: %q", name, tree(t, dir))
		}
	}
}

func TestUnpackBoundsSizes(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 1<<16) // a mebibyte
	for name, l := range map[string]Limits{
		"a file":     {File: 1 << 19},
		"a tree":     {Tree: 1 << 19},
		"an archive": {Archive: 100},
	} {
		if _, err := unpacked(t, zipOf(t, member{name: "a", data: text}), l); !errors.Is(err, ErrLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A zip may say that it has more entries than fit into memory.
func TestUnpackCountsEntriesFirst(t *testing.T) {
	data := zipOf(t, member{name: "a", data: "b"})
	data = append([]byte("PK\x03\x04"+strings.Repeat("PK\x01\x02", 600_000)), data...)
	if _, err := unpacked(t, data, Limits{}); !errors.Is(err, ErrLarge) || !strings.Contains(err.Error(), "its list") {
		t.Error(err)
	}
}

// Of modes it is kept whether a file can be run, and nothing else.
func TestUnpackLeavesOutFoldersOfGit(t *testing.T) {
	list := []member{
		{name: ".git/hooks/pre-commit", mode: 0o755, data: "x"},
		{name: "sub/.GIT/config", mode: 0o644, data: "x"},
		{name: "other/.git", mode: 0o644, data: "gitdir: ../elsewhere"},
		{name: "sub/.gitignore", mode: 0o644, data: "x"},
		{name: "skill.git/a", mode: 0o644, data: "x"},
	}
	want := []string{"skill.git/a -rw-------", "sub/.gitignore -rw-------"}
	for kind, data := range map[string][]byte{"zip": zipOf(t, list...), "tar": tarOf(t, list...)} {
		dir, err := unpacked(t, data, Limits{})
		if got := tree(t, dir); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
	}
}

func TestUnpackDropsModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	list := []member{
		{name: "bin/", mode: 0o777 | os.ModeDir | os.ModeSticky},
		{name: "bin/suid", mode: 0o4755 | os.ModeSetuid, data: "x"},
		{name: "bin/sgid", mode: 0o2755 | os.ModeSetgid, data: "x"},
		{name: "all", mode: 0o666, data: "x"},
	}
	want := []string{"all -rw-------", "bin/sgid -rwx------", "bin/suid -rwx------"}
	dir, err := unpacked(t, zipOf(t, list...), Limits{})
	if got := tree(t, dir); err != nil || !slices.Equal(got, want) {
		t.Errorf("zip: %q, %v", got, err)
	}
	dir, err = unpacked(t, tarOf(t, list[1:]...), Limits{})
	if got := tree(t, dir); err != nil || !slices.Equal(got, want) {
		t.Errorf("tar: %q, %v", got, err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(zipOf(f, member{name: "skills/a/SKILL.md", data: "text"}, member{name: "bin/run", mode: 0o755}))
	f.Add(tarOf(f, member{name: "package/plugin.json", data: "{}"}, member{name: "l", link: "x", kind: tar.TypeSymlink}))
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := Limits{Files: 20, File: 1 << 16, Tree: 1 << 17, Archive: 1 << 20}
		dir, err := unpacked(t, data, limits)
		if err != nil {
			return
		}
		size, lines := int64(0), tree(t, dir)
		for _, line := range lines {
			name, mode, _ := strings.Cut(line, " -")
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if size += info.Size(); mode != "rw-------" && mode != "rwx------" {
				t.Errorf("%s", line)
			}
		}
		if len(lines) > limits.Files || size > limits.Tree {
			t.Errorf("%d files with %d bytes", len(lines), size)
		}
		if _, err := hashTree(dir, limits.withDefaults()); err != nil {
			t.Error(err)
		}
	})
}
