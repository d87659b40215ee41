package skills

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/internal/base/frontmatter"
)

// put writes files below a folder.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// about shows a skill in lines, with what is wrong with it.
func about(s Skill) string {
	var b strings.Builder
	fmt.Fprintf(&b, "valid %v", s.Valid)
	if s.Off != "" {
		b.WriteString(", off")
	}
	fmt.Fprintf(&b, ", %q", s.Description)
	for _, w := range s.Warnings() {
		b.WriteString("\n" + w)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"good", "---\nname: good\ndescription: Does it.\nlicense: MIT\nmetadata:\n  a: b\n---\nText.", `valid true, "Does it."`},
		{"plain", "# Title\n\nWhat it\ndoes.\n\nMore.", "valid false, \"What it does.\"\nit has no fields: the file does not begin with \"---\"; write name and description between two lines of ---"},
		{"empty", "", "valid false, off, \"\"\nnothing says what it is for; write a description into its fields\nit has no fields: the file does not begin with \"---\"; write name and description between two lines of ---"},
		{"other", "---\nname: another\ndescription: x\n---\n", "valid false, \"x\"\nline 2, column 1: the name \"another\" is not that of its folder, \"other\"; rename one of them"},
		{"Big", "---\nname: Big\ndescription: x\n---\n", "valid false, \"x\"\nline 2, column 1: the name \"Big\" has capital letters; write it in small letters"},
		{"a--b", "---\nname: a--b\ndescription: x\n---\n", "valid false, \"x\"\nline 2, column 1: the name \"a--b\" has two hyphens in a row; remove one"},
		{"more", "---\nname: more\ndescription: x\nmodel: opus\n---\n", "valid false, \"x\"\nline 4, column 1: model is no field of the standard; other programs may not know it"},
		{"broken", "---\nname: broken\ndescription: \"x\n---\nText.", "valid false, off, \"\"\nline 3, column 1: found unexpected end of stream; close the quotes"},
		{"colon", "---\nname: colon\ndescription: a: b\n---\n", "valid false, \"a: b\"\nline 3: the value needs quotes; it was read as text; put the value into quotes"},
		{"wrong", "---\nname: wrong\ndescription: x\nuser-invocable: perhaps\n---\n", "valid false, off, \"x\"\nline 4, column 17: user-invocable has to be true or false; write true or false\nline 4, column 1: user-invocable is no field of the standard; other programs may not know it"},
		{"meant", "---\nname: meant\ndescription: x\nlicens: MIT\n---\n", "valid false, \"x\"\nline 4, column 1: licens is no field of the standard; did you mean license?"},
		{"list", "---\nname: list\ndescription: x\nallowed-tools: [Bash(git *)\n---\n", "valid false, off, \"\"\nline 4, column 16: did not find expected ',' or ']'; close the list with ]"},
		{"typed", "---\nname: typed\ndescription: x\nallowed-tools: {a: b}\n---\n", "valid true, \"x\"\nline 4, column 16: allowed-tools has to be a list of texts, and is a group of fields; write it as a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := parse([]byte(tt.text), int64(len(tt.text)), tt.name)
			if got := about(s); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestFields(t *testing.T) {
	text := "---\nname: all\ndescription: D\nwhen_to_use: W\nargument-hint: \"[a] [b]\"\narguments: a, b\nallowedTools: Read, Bash(git add *)\n" +
		"disallowed-tools: [Write]\nmodel: inherit\neffort: high\nagent: general-purpose\nshell: bash\nversion: 1.0\ncontext: fork\npaths: \"src/**/*.{ts,tsx}, *.md\"\n" +
		"hooks:\n  Stop: []\ndisable_model_invocation: yes\nuser-invocable: 0\n---\nBody.\n"
	s, body := parse([]byte(text), int64(len(text)), "all")
	got := fmt.Sprintf("%s|%s|%q|%q|%q|%q|%s|%s|%s|%s|%v|%q|%s|%v|%v|%s", s.Title, s.Described(), s.Hint, s.Arguments, s.Allowed, s.Without, s.Model, s.Effort, s.Agent, s.Version, s.Fork, s.Paths, s.Hooks, s.NoModel, s.NoUser, body)
	want := `all|D W|"[a] [b]"|["a" "b"]|["Read" "Bash(git add *)"]|["Write"]||high|general-purpose|1.0|true|["src/**/*.{ts,tsx}" "*.md"]|{"Stop":[]}|true|true|Body.` + "\n"
	if got != want || s.Off != "" {
		t.Errorf("%s\n%s, off %q", got, want, s.Off)
	}
}

// A file of any size is read as far as its bounds go, and one that is too long is listed
// and not used.
func TestLongFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"big/SKILL.md": "---\nname: big\ndescription: Big.\n---\n"})
	if err := os.Truncate(filepath.Join(dir, "big", File), 100<<20); err != nil { // a hole takes no room
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"head/SKILL.md": "---\nname: head\ndescription: " + strings.Repeat("x", 2*maxHead) + "\n---\n"})
	s := New(Config{Workdir: dir, Places: places(frontmatter.Place{Scope: frontmatter.User, Dir: dir, Trusted: true})})
	var got []string
	for _, k := range s.List() {
		got = append(got, k.Name+": "+k.Off)
		if _, err := s.Text(k); err == nil && k.Name == "big" {
			t.Error("its text is read")
		}
	}
	want := "big: the file has 104857600 bytes; 262144 are the most\nhead: the fields that begin with \"---\" do not end"
	if strings.Join(got, "\n") != strings.ReplaceAll(want, "head: the fields that begin with \"---\" do not end", "head: line 1, column 1: the fields that begin with \"---\" do not end") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

func places(list ...frontmatter.Place) func() []frontmatter.Place {
	return func() []frontmatter.Place { return list }
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"---\nname: a\ndescription: b\n---\nc", "---\npaths: {a: b}\nhooks: 1\n---", "---\narguments: [a, 1, {}]\n---\n", "text", "---\nname: !x y\n...\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _ := parse(data, int64(len(data)), "a")
		if s.Valid && s.Off != "" && s.Description != "" {
			t.Errorf("valid and off: %s", s.Off)
		}
		if n := len([]rune(s.Described())); n > MaxDescribed+1 {
			t.Errorf("%d characters", n)
		}
		_ = s.For("a/b.go")
	})
}
