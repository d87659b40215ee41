package grants

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/internal/base/record"
	"dure/internal/safety/trust"
)

var noon = time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)

func newStore(t *testing.T) (s Store, dir string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(base, "repo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return Store{Dir: filepath.Join(base, "data", "grants"), Now: func() time.Time { return noon }}, dir
}

func allow(rule string) Grant { return Grant{Rule: rule, Behavior: "allow"} }

func TestGrants(t *testing.T) {
	s, dir := newStore(t)
	if list, err := s.List(dir); list != nil || err != nil {
		t.Errorf("at first: %v, %v", list, err)
	}
	first := Grant{Rule: "Bash(go test *)", Behavior: "allow", Session: "s1", From: "go test ./..."}
	if err := s.Add(dir, first, allow("WebFetch(domain:example.com)")); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(dir, Grant{Rule: first.Rule, Behavior: "allow", Session: "s2"}); err != nil { // once is enough
		t.Fatal(err)
	}
	first.At = noon
	want := []Grant{first, {Rule: "WebFetch(domain:example.com)", Behavior: "allow", At: noon}}
	list, err := s.List(filepath.Join(dir, "..", "repo"))
	if d := cmp.Diff(want, list); d != "" || err != nil {
		t.Error(d, err)
	}
	if n, err := s.Remove(dir, first.Rule, "Bash(none)"); n != 1 || err != nil {
		t.Error(n, err)
	}
	if list, err := s.List(dir); !cmp.Equal(want[1:], list) || err != nil {
		t.Error(list, err)
	}
	if n, err := s.Remove(dir); n != 1 || err != nil {
		t.Error(n, err)
	}
}

// Grants hold for the folder itself, whatever has its name later.
func TestGrantsAreOfOneFolder(t *testing.T) {
	s, dir := newStore(t)
	if err := s.Add(dir, allow("Bash(make)")); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(dir, "sub")
	if err := errors.Join(os.Mkdir(sub, 0o755), os.Rename(dir, dir+"2"), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{dir, dir + "2", filepath.Join(dir+"2", "sub"), filepath.Dir(dir)} {
		if list, err := s.List(other); list != nil || err != nil {
			t.Errorf("%s: %v, %v", other, list, err)
		}
	}
	if err := s.Add(dir, allow("Bash(ls)")); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(dir); len(list) != 1 || list[0].Rule != "Bash(ls)" || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

func TestWhatIsNotGranted(t *testing.T) {
	s, dir := newStore(t)
	for _, g := range []Grant{
		{},
		allow(""), allow(" "), allow("a\nb"), allow("a\x1b"), allow("\xff"), allow(strings.Repeat("x", maxRule+1)),
		{Rule: "Bash"},
		{Rule: "Bash", Behavior: "deny"},
	} {
		if err := s.Add(dir, allow("Bash(ls)"), g); !errors.Is(err, ErrRule) {
			t.Errorf("%+v: %v", g, err)
		}
	}
	if list, err := s.List(dir); list != nil || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	many := make([]Grant, maxGrants+1)
	for i := range many {
		many[i] = allow("Bash(" + strings.Repeat("x", i+1) + ")")
	}
	if err := s.Add(dir, many...); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}

// A damaged file grants nothing, names itself, and stays.
func TestDamagedGrants(t *testing.T) {
	s, dir := newStore(t)
	if err := s.Add(dir, allow("Bash(make)")); err != nil {
		t.Fatal(err)
	}
	f, err := trust.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := s.Path(f)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"torn":    string(whole[:len(whole)/2]),
		"planted": strings.Replace(string(whole), `"allow"`, `"deny"`, 1),
		"newer":   strings.Replace(string(whole), `"version": 1`, `"version": 9`, 1),
	} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		list, lerr := s.List(dir)
		_, rerr := s.Remove(dir)
		for what, err := range map[string]error{"list": lerr, "add": s.Add(dir, allow("Bash(ls)")), "remove": rerr} {
			if list != nil || err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %s: %v, %v", name, what, list, err)
			}
		}
		if now, err := os.ReadFile(path); string(now) != data || err != nil {
			t.Errorf("%s: the file was changed: %q, %v", name, now, err)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := errors.Join(os.WriteFile(path, whole, 0o600), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(dir); list != nil || !errors.Is(err, record.ErrLoose) {
		t.Errorf("%v, %v", list, err)
	}
}

func TestTwoWriters(t *testing.T) {
	s, dir := newStore(t)
	const writers = 8
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { errs[w] = s.Add(dir, allow("Bash(make "+strings.Repeat("x", w+1)+")")) })
	}
	wg.Wait()
	list, err := s.List(dir)
	if err := errors.Join(append(errs, err)...); err != nil || len(list) != writers {
		t.Errorf("%d grants, %v", len(list), err)
	}
}
