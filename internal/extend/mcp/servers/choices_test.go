package servers

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChoices(t *testing.T) {
	base := t.TempDir()
	dir, s := filepath.Join(base, "repo"), Store{Dir: filepath.Join(base, "data", "mcp")}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Of(dir); err != nil || !cmp.Equal(c, Choices{}) {
		t.Fatal(c, err)
	}
	err := s.Change(dir, func(c *Choices) error {
		c.Approve("a", "1", false)
		c.Approve("a", "1", true)
		c.Approve("b", "2", false)
		c.Switch("x", false)
		c.Switch("x", false)
		c.Add("mine", json.RawMessage(`{"command":"x"}`))
		return c.Accept("a", map[string]string{"t": "h"})
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Of(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.Approved["a"] != "1" || c.Rejected["a"] != "" || c.Rejected["b"] != "2" || len(c.Off) != 1 {
		t.Errorf("%+v", c)
	}
	if list, faults := Read(c.Source("here")); len(list) != 1 || list[0].Command != "x" || list[0].Scope != Local || len(faults) > 0 {
		t.Error(list, faults)
	}
	now := map[string]string{"t": "other", "new": "1"}
	if changed, added := c.Differ("a", now), c.New("a", now); !cmp.Equal(changed, []string{"t"}) || !cmp.Equal(added, map[string]string{"new": "1"}) {
		t.Error(changed, added)
	}
	if changed := c.Differ("never seen", now); changed != nil {
		t.Error(changed)
	}
	c.Withhold("a", map[string]string{"t": "other"})
	if n := c.Agree("a"); n != 1 || c.Agree("a") != 0 || c.Differ("a", now) != nil {
		t.Errorf("%d, %+v", n, c)
	}
	if n := c.Reset(); n != 2 || len(c.Approved)+len(c.Rejected) > 0 || len(c.Added) != 1 {
		t.Errorf("%d, %+v", n, c)
	}

	// another folder of the same path has decided nothing
	if err := errors.Join(os.Rename(dir, dir+"2"), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Of(dir); err != nil || !cmp.Equal(c, Choices{}) {
		t.Error(c, err)
	}
}

// While what was decided cannot be read, nothing is, and nothing is written over it.
func TestDamagedChoices(t *testing.T) {
	dir, s := t.TempDir(), Store{Dir: t.TempDir()}
	if err := s.Change(dir, func(c *Choices) error { c.Approve("a", "1", true); return nil }); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(s.Dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for _, text := range []string{`{"version":1`, `{"version":9}`} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := s.Of(dir)
		if err == nil || c.Approved != nil {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
		if err := s.Change(dir, func(*Choices) error { return nil }); err == nil {
			t.Errorf("%s was written over", text)
		}
	}
}

func TestTooManyChoices(t *testing.T) {
	dir, s := t.TempDir(), Store{Dir: t.TempDir()}
	err := s.Change(dir, func(c *Choices) error {
		for i := range maxChoices + 1 {
			c.Switch(fmt.Sprint(i), false)
		}
		return nil
	})
	if !errors.Is(err, ErrMany) {
		t.Error(err)
	}
}
