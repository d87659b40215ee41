package record

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

type count struct {
	N int `json:"n"`
}

func TestChangeFromManySides(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b.json")
	const sides, each = 8, 10
	errs := make([]error, sides)
	var wg sync.WaitGroup
	for i := range sides {
		wg.Go(func() {
			for range each {
				errs[i] = errors.Join(errs[i], Change(path, func(c *count) error { c.N++; return nil }))
			}
		})
	}
	wg.Wait()
	c, err := Read[count](path)
	if err := errors.Join(append(errs, err)...); err != nil || c.N != sides*each {
		t.Errorf("%d, %v", c.N, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".new-*"))
	if len(left) > 0 || err != nil {
		t.Errorf("files are left over: %v, %v", left, err)
	}
}

// An edit that is given up changes nothing.
func TestChangeGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.json")
	no := errors.New("no")
	if err := Change(path, func(c *count) error { c.N = 1; return no }); !errors.Is(err, no) {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"torn": `{"n": 1`, "more": `{"n": 1} {}`, "unknown": `{"m": 1}`, "kind": `{"n": "1"}`, "nothing": ""} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := Read[count](path); !errors.Is(err, ErrDamaged) || c.N != 0 || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	if _, err := Read[count](dir); !errors.Is(err, ErrDamaged) {
		t.Errorf("a folder: %v", err)
	}
	large := filepath.Join(dir, "large")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, maxFile+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := Read[count](large); !errors.Is(err, ErrLarge) {
		t.Errorf("a large file: %v", err)
	}
}

// A file that others may write says nothing.
func TestReadRefusesLooseFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such modes")
	}
	path := filepath.Join(t.TempDir(), "a.json")
	if err := errors.Join(os.WriteFile(path, []byte(`{"n": 1}`), 0o600), os.Chmod(path, 0o620)); err != nil {
		t.Fatal(err)
	}
	if _, err := Read[count](path); !errors.Is(err, ErrLoose) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"n": 1}`, `{"n": 1} x`, `[]`, ``, `{"N":2}`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := decode[count](data); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%+v, %v", c, err)
		}
	})
}
