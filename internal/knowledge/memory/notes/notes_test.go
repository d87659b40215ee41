package notes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func store(t *testing.T) Store {
	dir := t.TempDir()
	return Store{
		User: filepath.Join(dir, "home/.dure"), Project: filepath.Join(dir, "p/.dure"),
		Now: func() time.Time {
			return time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC).In(time.FixedZone("KST", 9*60*60))
		},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNotesAreKeptByScopeAndType(t *testing.T) {
	s := store(t)
	must(t, s.Append("", "reviewer", "  look at\nerrors\x1b first "))
	must(t, s.Append(Project, "reviewer", "second"))
	must(t, s.Append(User, "tester", "mine"))
	must(t, s.Save(Local, "tester", "# Local\n"))
	must(t, s.Append(Local, "tester", "한글"))
	for _, tt := range []struct {
		scope       Scope
		agent, want string
	}{
		{Project, "reviewer", "- [2031-02-03 04:05] look at errors first\n- [2031-02-03 04:05] second\n"},
		{User, "tester", "- [2031-02-03 04:05] mine\n"},
		{Local, "tester", "# Local\n- [2031-02-03 04:05] 한글\n"},
		{User, "reviewer", ""},
	} {
		n, err := s.Load(tt.scope, tt.agent)
		must(t, err)
		if d := cmp.Diff(tt.want, n.Text); d != "" || n.Truncated {
			t.Errorf("%s %s: %s", tt.scope, tt.agent, d)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Project, "agent-memory-local/tester/MEMORY.md")); err != nil {
		t.Error(err)
	}
	must(t, s.Delete(User, "tester"))
	for scope, want := range map[Scope][]string{User: nil, Project: {"reviewer"}, Local: {"tester"}} {
		got, err := s.List(scope)
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", scope, d)
		}
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	s := store(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "a.b", "-x", "_x", "con", "Nul", "COM1", "lpt9", "a b", "가", strings.Repeat("a", 65), "a\x00"} {
		if err := s.Append(User, name, "x"); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"a", "Z9_-", "9", "com", "com10", "coma", "conn", strings.Repeat("a", 64)} {
		if err := s.Append(User, name, "x"); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := s.Append("elsewhere", "a", "x"); !errors.Is(err, ErrScope) {
		t.Error(err)
	}
	if err := s.Append(User, "a", " \n\t"); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
	if err := s.Save(User, "a", strings.Repeat("x", maxSaved+1)); !errors.Is(err, ErrLarge) {
		t.Error(err)
	}
	if err := (Store{}).Append(User, "a", "x"); err == nil {
		t.Error("notes without a folder")
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	for _, at := range []string{".dure", ".dure/agent-memory", ".dure/agent-memory/x", ".dure/agent-memory/x/MEMORY.md", ".dure/agent-memory/x/ARCHIVE.md", ".dure/agent-memory/x/.lock"} {
		s := store(t)
		out := t.TempDir()
		target := out
		if filepath.Ext(at) != "" && at != ".dure" {
			target = filepath.Join(out, "file")
			must(t, os.WriteFile(target, []byte("theirs"), 0o600))
		}
		link := filepath.Join(filepath.Dir(s.Project), filepath.FromSlash(at))
		must(t, os.MkdirAll(filepath.Dir(link), 0o755))
		must(t, os.Symlink(target, link))
		if err := s.Append(Project, "x", "note"); !errors.Is(err, ErrLink) {
			t.Errorf("%s: %v", at, err)
		}
		if entries, _ := os.ReadDir(out); target == out && len(entries) > 0 {
			t.Errorf("%s: something was written elsewhere", at)
		}
	}
}

func TestOldNotesMoveToTheArchive(t *testing.T) {
	s := store(t)
	must(t, s.Save(User, "x", "# Heading\n"))
	const all = 260
	for i := range all {
		must(t, s.Append(User, "x", fmt.Sprintf("note %d", i)))
	}
	n, err := s.Load(User, "x")
	must(t, err)
	old, err := os.ReadFile(filepath.Join(filepath.Dir(n.Path), archive))
	must(t, err)
	if n.Truncated || !strings.HasPrefix(n.Text, "# Heading\n") || !strings.HasSuffix(n.Text, fmt.Sprintf("note %d\n", all-1)) {
		t.Errorf("truncated %v: %.80q", n.Truncated, n.Text)
	}
	var want strings.Builder
	for i := range all {
		fmt.Fprintf(&want, "- [2031-02-03 04:05] note %d\n", i)
	}
	if d := cmp.Diff(want.String(), string(old)+strings.TrimPrefix(n.Text, "# Heading\n")); d != "" {
		t.Errorf("notes are lost or in another order: %s", d)
	}
	must(t, s.Save(User, "x", strings.Repeat("line\n", 300)))
	if n, err = s.Load(User, "x"); err != nil || !n.Truncated || strings.Count(n.Text, "\n") != MaxLines {
		t.Errorf("%v, truncated %v, %d lines", err, n.Truncated, strings.Count(n.Text, "\n"))
	}
}

func TestManyWritersLoseNothing(t *testing.T) {
	s := store(t)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 5 {
				if err := s.Append(Project, "x", fmt.Sprintf("%d-%d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n, err := s.Load(Project, "x")
	must(t, err)
	for w := range 8 {
		for i := range 5 {
			if !strings.Contains(n.Text, fmt.Sprintf("] %d-%d\n", w, i)) {
				t.Errorf("note %d-%d is lost", w, i)
			}
		}
	}
}
