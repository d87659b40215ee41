package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/internal/base/frontmatter"
	"dure/internal/prooftest"
)

// What lies in the places, which of two of a name counts, and what links do.
func TestDiscover(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("secret.md", "the key is 12345")
	put("home/.claude/commands/fix.md", "user")
	put("repo/.claude/commands/fix.md", "project")
	put("repo/.claude/commands/a/b/c.md", "# Deep\nand more\n\nrest")
	put("repo/.claude/commands/two words.md", "x")
	put("repo/.claude/commands/notes.txt", "x")
	put("repo/.claude/commands/empty.md", "---\ndescription: d\n---\n")
	put("repo/.claude/commands/long.md", strings.Repeat("x", maxFile+1))
	put("repo/.claude/commands/fields.md", "---\nargument-hint: [n] [m]\nname: other\nnothing: x\n---\nbody")
	put("repo/.claude/commands/hint.md", "---\nargument-hint: [n]\ndescription: a\nallowed-tools: Bash(git add *), Read\n---\nbody")
	put("repo/shared/in.md", "inside")
	put("plug/commands/go.md", "plugin")
	links := map[string]string{"out.md": "../../../secret.md", "in.md": "../../shared/in.md", "loop": ".."}
	for name, to := range links {
		prooftest.Link(t, os.Symlink(filepath.FromSlash(to), filepath.Join(dir, "repo/.claude/commands", name)))
	}
	if err := os.Symlink(filepath.Join(dir, "secret.md"), filepath.Join(dir, "home/.claude/commands/linked.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "evil/.claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "evil/.claude/commands")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range Discover([]frontmatter.Place{
		{Scope: frontmatter.User, Dir: filepath.Join(dir, "home/.claude/commands"), Trusted: true},
		{Scope: frontmatter.Project, Dir: filepath.Join(dir, "repo/.claude/commands"), Trusted: true},
		{Scope: frontmatter.Project, Dir: filepath.Join(dir, "evil/.claude/commands"), Trusted: true},
		{Scope: frontmatter.Plugin, Plugin: "tools@market", Root: filepath.Join(dir, "plug"), Dir: filepath.Join(dir, "plug/commands")},
		{Scope: frontmatter.Project, Dir: filepath.Join(dir, "nowhere/.claude/commands")},
	}) {
		i := c.Info()
		line := strings.Join([]string{c.Name, string(c.Place.Scope), i.Hint, i.Description, i.Off, strings.Join(i.Warnings, "; ")}, " | ")
		got = append(got, strings.ReplaceAll(line, dir, "$DIR"))
	}
	want := []string{
		"a:b:c | project |  | Deep and more |  | ",
		"empty | project |  | d | it says nothing; write what the command asks for behind the fields | ",
		"fields | project | [n] [m] | body |  | line 2: the value needs quotes; it was read as text; put the value into quotes; line 3, column 7: name does not count for a command; leave it out, or make a skill of it; line 4, column 10: nothing is not known here; leave it out",
		"fix | user |  | user |  | ",
		"hint | project | [n] | a |  | ",
		"in | project |  |  | path escapes from parent | ",
		"linked | user |  | the key is 12345 |  | ",
		"long | project |  |  | it has 262145 bytes; 262144 are the most | ",
		"out | project |  |  | path escapes from parent | ",
		"tools:go | plugin |  | plugin | the folder is not trusted: dure trust | ",
		"two words | project |  | x | its name cannot be typed; name the file with letters, digits, - and _ | ",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a/b.md", "---\ndescription: d\nargument-hint: [a]\narguments: x y\nallowed-tools: Bash(ls *), Read\ncontext: fork\n---\nbody $x !`ls`")
	f.Add("x y.md", "---\n- a\n---\n")
	f.Fuzz(func(t *testing.T, name, data string) {
		c := Parse(frontmatter.Place{Scope: frontmatter.Project, Dir: "/p", Trusted: true}, name, []byte(data))
		if c.Broken == nil && (!typable(c.Name) || c.Body == "") {
			t.Fatalf("%q, %q can be used", c.Name, c.Body)
		}
		if len([]rune(c.Description)) > maxAbout || strings.ContainsAny(c.Description, "\n\r") || len(c.Warnings) > maxWarnings {
			t.Fatalf("%q, %d warnings", c.Description, len(c.Warnings))
		}
	})
}

// A file that is not what was trusted keeps its text and what it takes away, and nothing
// that it would allow.
func TestPowers(t *testing.T) {
	const armed = "---\nallowed-tools: Bash(touch *)\ndisallowed-tools: Write\nmodel: big\nhooks:\n  Stop: []\n---\nIt is !`date`."
	place := filepath.Join(t.TempDir(), "commands")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"kept.md": armed, "new.md": armed + " Now.", "plain.md": "x"} {
		if err := os.WriteFile(filepath.Join(place, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, c := range Discover([]frontmatter.Place{{Scope: frontmatter.User, Dir: place, Trusted: true, Covers: func(_ string, data []byte) bool { return string(data) == armed }}}) {
		got = append(got, fmt.Sprint(c.Name, " ", c.Powerless, c.Allowed, c.Forbidden, c.Model, string(c.Hooks), c.Info().Warnings))
	}
	want := []string{
		`kept false [Bash(touch *)] [Write]big{"Stop":[]}[]`,
		`new true [] [Write][the file came or changed after its folder was trusted: allowed-tools, commands in its text, hooks, model in it count for nothing; look at the file, then trust the folder that its .dure or .claude lies in: dure trust FOLDER]`,
		`plain false [] [][]`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
