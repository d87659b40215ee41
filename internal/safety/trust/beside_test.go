package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder is proven while each file in it is as it was under its name, behind links too;
// what came, changed or cannot be read is named. A folder that stands in itself has an end.
func TestUnproven(t *testing.T) {
	skipWindows(t)
	const skill = ".claude/skills/a/"
	dir := repo(t,
		[2]string{skill + "SKILL.md", "a"}, [2]string{skill + "scripts/go.sh", "go"}, [2]string{"tools/lib.sh", "lib"},
		[2]string{skill + "lib", "-> ../../../tools"}, [2]string{skill + "self", "-> ."}, [2]string{skill + "nowhere", "-> gone"},
	)
	s := Store{Path: filepath.Join(t.TempDir(), "trust.json")}
	if err := s.Trust(lookAt(t, dir), "test"); err != nil {
		t.Fatal(err)
	}
	covers := s.Held(Held{}).Covers
	at := filepath.Join(dir, filepath.FromSlash(skill))
	expect := func(when, want string) {
		t.Helper()
		if want != "" {
			want = filepath.Join(at, filepath.FromSlash(want))
		}
		if got := Unproven(at, covers); got != want {
			t.Errorf("%s: %q is unproven, want %q", when, got, want)
		}
	}
	expect("as it was", "")
	for name, data := range map[string]string{"scripts/go.sh": "come", "scripts/new.sh": "new", "lib/lib.sh": "bil"} {
		path := filepath.Join(at, filepath.FromSlash(name))
		before, err := os.ReadFile(path)
		lay(t, at, [2]string{name, data})
		expect(name, name)
		if Proven(path, covers) {
			t.Errorf("%s is proven", name)
		}
		if err == nil {
			lay(t, at, [2]string{name, string(before)})
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if !Proven(path, covers) {
			t.Errorf("%s is unproven as it was", name)
		}
	}
	expect("as it was again", "")
	lay(t, at, [2]string{"scripts/big", strings.Repeat("x", MaxBytes)})
	if got := Unproven(at, func(string, []byte) bool { return true }); got != filepath.Join(at, "scripts", "big") {
		t.Errorf("too much is unproven: %q", got)
	}
	if got := Unproven(filepath.Join(at, "missing"), covers); got == "" {
		t.Error("what is not there is proven")
	}
}
