package swarm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/swarm"
	"dure/internal/prooftest"
)

var mine = frontmatter.Place{Scope: frontmatter.User, Trusted: true}

// What a file says, and what is said of it: line, column, field and what to do.
func TestParse(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"whole": {
			"---\nname: helper-one\ndescription: Helps.\ntools: Read, Bash(git diff *), Agent(Explore, Plan)\ndisallowed-tools: [Write]\nmodel: opus\npermissionMode: acceptEdits\nmaxTurns: 7\nskills: [a, b]\nmemory: project\nbackground: yes\neffort: max\ncolor: red\ninitialPrompt: Begin.\nomitClaudeMd: true\nhooks:\n  Stop: []\n---\n\nYou help.\n",
			`helper-one "Helps." prompt "You help." tools [Read Bash(git diff *) Agent] types [Explore Plan] without [Write] opus acceptEdits 7 high [a b] project background bare red "Begin." {"Stop":[]}`,
		},
		"inherit":        {"---\nname: a\ndescription: b\nmodel: Inherit\ntools: '*'\n---\nx", `a "b" prompt "x"`},
		"no tools":       {"---\nname: a\ndescription: b\ntools: []\n---\nx", `a "b" prompt "x" tools []`},
		"no fields":      {"You help.", `file ! line 1, column 1: the file does not begin with fields (begin it with lines of ---, name: file, description: when to use it, ---)`},
		"no name":        {"---\ndescription: b\n---\nx", `file "b" prompt "x" ! line 1: the agent has no name (add the field name: file)`},
		"no description": {"---\nname: a\n---\nx", `a "" prompt "x" ! line 1: the agent has no description, so nobody knows when to use it (add the field description: when to use it)`},
		"a colon":        {"---\nname: a:b\ndescription: b\n---\nx", `a:b "b" prompt "x" ! line 2, column 7: name has a colon in it, which separates the name of a plugin (use letters, digits and -, as in a-b)`},
		"capitals":       {"---\nname: Ab\ndescription: b\n---\nx", `Ab "b" prompt "x" ? line 2, column 7: name has capital letters, which other programs refuse (write it as ab)`},
		"an option":      {"---\nname: --rm\ndescription: b\n---\nx", `--rm "b" prompt "x" ! line 2, column 7: name begins with - (use letters, digits and -, as in rm)`},
		"no YAML":        {"---\nname: [\n---\nx", `file ! line 2, column 1: did not find expected node content (write a value there, or close what begins there)`},
		"a mode":         {"---\nname: a\ndescription: b\npermissionMode: auto\n---\nx", `a "b" prompt "x" ? line 4, column 17: permissionMode is "auto", which is no mode that is known here; that of the session is taken (write one of: default, acceptEdits, plan, dontAsk, bypassPermissions)`},
		"a number":       {"---\nname: a\ndescription: b\nmaxTurns: many\n---\nx", `a "b" prompt "x" ! line 4, column 11: maxTurns has to be a whole number (write it in digits)`},
		"too many steps": {"---\nname: a\ndescription: b\nmaxTurns: 0\n---\nx", `a "b" prompt "x" ! line 4, column 11: maxTurns is 0, which is no number of steps (write a number from 1 to 1000)`},
		"a memory":       {"---\nname: a\ndescription: b\nmemory: all\n---\nx", `a "b" prompt "x" ! line 4, column 9: memory is "all", which is none of them (write one of: user, project, local)`},
		"misspelt":       {"---\nname: a\ndescription: b\ndissallowedTools: Bash\n---\nx", `a "b" prompt "x" ? line 4, column 1: the field dissallowedTools is not known (write it as disallowedTools)`},
		"of others":      {"---\nname: a\ndescription: b\nexperimental:\n  cacheTtl: 1h\n---\nx", `a "b" prompt "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(swarm.Parse(mine, "file.md", "file.md", []byte(c.file))); got != c.want {
				t.Errorf("it is\n%s\nand not\n%s", got, c.want)
			}
		})
	}
}

// told is a definition on one line.
func told(d swarm.Definition) string {
	s := d.Name
	if d.Prompt != "" || d.Description != "" {
		s += fmt.Sprintf(" %q prompt %q", d.Description, d.Prompt)
	}
	add := func(is bool, format string, args ...any) {
		if is {
			s += " " + fmt.Sprintf(format, args...)
		}
	}
	add(d.Tools != nil, "tools %v", d.Tools)
	add(d.Types != nil, "types %v", d.Types)
	add(d.Without != nil, "without %v", d.Without)
	add(d.Model != "", "%s", d.Model)
	add(d.Mode != "", "%s", d.Mode)
	add(d.Steps != 0, "%d", d.Steps)
	add(d.Effort != "", "%s", d.Effort)
	add(d.Skills != nil, "%v", d.Skills)
	add(d.Memory != "", "%s", d.Memory)
	add(d.Background, "background")
	add(d.Bare, "bare")
	add(d.Color != "", "%s", d.Color)
	add(d.Initial != "", "%q", d.Initial)
	add(d.Hooks != nil, "%s", d.Hooks)
	for _, f := range d.Faults {
		add(true, "! %v (%s)", &f, f.Fix)
	}
	for _, f := range d.Warnings {
		add(true, "? %v (%s)", &f, f.Fix)
	}
	return s
}

// An agent of a plugin has its name from where it lies, and brings neither hooks nor
// servers nor a mode.
func TestAnAgentOfAPlugin(t *testing.T) {
	place := frontmatter.Place{Scope: frontmatter.Plugin, Plugin: "kit", Trusted: true}
	d := swarm.Parse(place, "x.md", "deep/er/looker.md", []byte("---\npermissionMode: bypassPermissions\nhooks:\n  Stop: []\nmcpServers: [a]\n---\nYou look.\n"))
	if d.Name != "kit:deep:er:looker" || d.Mode != "" || d.Hooks != nil || d.Servers != nil || len(d.Warnings) != 3 || !d.Usable() {
		t.Errorf("it is %+v", d)
	}
}

// Of two of one name the nearer one counts; one that is wrong, or not trusted, counts
// for nothing and is listed all the same.
func TestWhichCounts(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kind := func(name, about string) string { return "---\nname: " + name + "\ndescription: " + about + "\n---\nx" }
	put("user/a.md", kind("twice", "the user's"))
	put("user/explore.md", kind("explore", "my own"))
	put("user/README.md", "no agent")
	put("user/.hidden/b.md", kind("hidden", "not seen"))
	put("near/deep/x.md", kind("twice", "the project's"))
	put("near/bad.md", "---\nname: bad\n---\n")
	put("far/x.md", kind("twice", "too far"))
	put("far/y.md", kind("far", "from above"))
	put("strange/z.md", kind("strange", "not trusted"))
	named, err := swarm.ParseNamed(`{"line": {"description": "of the line", "prompt": "x", "tools": ["Read"], "maxTurns": 3}}`)
	if err != nil {
		t.Fatal(err)
	}
	types := &swarm.Types{Named: named, Own: swarm.Presets()[:3], Places: func() []frontmatter.Place {
		return []frontmatter.Place{
			{Scope: frontmatter.User, Dir: filepath.Join(dir, "user"), Trusted: true},
			{Scope: frontmatter.Project, Dir: filepath.Join(dir, "near"), Trusted: true},
			{Scope: frontmatter.Project, Dir: filepath.Join(dir, "far"), Trusted: true},
			{Scope: frontmatter.Project, Dir: filepath.Join(dir, "strange")},
			{Scope: frontmatter.Project, Dir: filepath.Join(dir, "none"), Trusted: true},
		}
	}}
	list := func() string {
		var b strings.Builder
		for _, d := range types.All() {
			fmt.Fprintf(&b, "%s %s %s\n", d.Place.Scope, d.Name, d.State())
		}
		return b.String()
	}
	want := "flag line active\nproject bad invalid\nproject twice active\nproject twice hidden\nproject far active\nproject strange untrusted\n" +
		"user twice hidden\nuser explore active\nbuiltin Explore hidden\nbuiltin general-purpose active\nbuiltin Plan active\n"
	if got := list(); got != want {
		t.Errorf("there are\n%s\nand not\n%s", got, want)
	}
	if d, ok := types.Find("TWICE"); !ok || d.Description != "the project's" {
		t.Errorf("twice is %+v", d)
	}
	// What changes is read again.
	put("near/bad.md", kind("good", "mended"))
	if err := os.Remove(filepath.Join(dir, "near", "deep", "x.md")); err != nil {
		t.Fatal(err)
	}
	if d, ok := types.Find("twice"); !ok || d.Description != "too far" {
		t.Errorf("twice is now %+v", d)
	}
	if _, ok := types.Find("good"); !ok {
		t.Errorf("a mended file is not read again:\n%s", list())
	}
}

// Links lead nowhere in a project that is not trusted, and not out of one that is; and a file that is too long
// is not read.
func TestHostileFolders(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.md")
	if err := os.WriteFile(secret, []byte("---\nname: secret\ndescription: b\n---\nx"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(dir, ".claude", "agents")
	if err := os.MkdirAll(in, 0o700); err != nil {
		t.Fatal(err)
	}
	prooftest.Link(t, os.Symlink(secret, filepath.Join(in, "a.md")))
	if err := os.Symlink(filepath.Join(t.TempDir(), "key.md"), filepath.Join(in, "gone.md")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.md")
	if err := errors.Join(os.WriteFile(out, []byte("---\nname: out\ndescription: b\n---\nkey"), 0o600), os.Symlink(out, filepath.Join(in, "b.md"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(in, "round")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in, "long.md"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for trusted, want := range map[bool]string{false: "long invalid ", true: "secret active b invalid long invalid "} {
		types := &swarm.Types{Places: func() []frontmatter.Place {
			return []frontmatter.Place{{Scope: frontmatter.Project, Dir: in, Trusted: trusted}}
		}}
		got := ""
		for _, d := range types.All() {
			got += d.Name + " " + d.State() + " "
		}
		if got != want {
			t.Errorf("trusted %v: %s", trusted, got)
		}
	}
}

func TestNamedAgents(t *testing.T) {
	for in, want := range map[string]string{
		`{`:                             "reading agents at byte 1: unexpected end of JSON input",
		`[]`:                            `reading agents, which are {"NAME": {"description": "...", "prompt": "..."}}: json: cannot unmarshal array into Go value of type map[string]map[string]json.RawMessage`,
		`{"a:b": {}}`:                   `reading the agent "a:b": its name has a colon in it, which separates the name of a plugin`,
		`{"": {}}`:                      `reading the agent "": it has no name`,
		`{"a": {"prompt": "x"}}`:        `reading the agent "a": it needs a description and a prompt`,
		`{"a": {"maxTurns": "x"}}`:      `reading the agent "a": maxTurns has to be a whole number`,
		`{"a": {"description": ["x"]}}`: `reading the agent "a": description has to be a text, and is a list`,
		`{"a": {"tools": {"x": "y"}}}`:  `reading the agent "a": tools has to be a list of texts, and is a group of fields`,
	} {
		if _, err := swarm.ParseNamed(in); err == nil || err.Error() != want {
			t.Errorf("%s: %v", in, err)
		}
	}
	all, err := swarm.ParseNamed(`{"b": {"description": "d", "prompt": "p", "permissionMode": "plan", "effort": "low"}, "a": {"description": "d", "prompt": "p", "model": "inherit"}}`)
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[1].Mode != agent.ModePlan || all[1].Effort != "low" {
		t.Errorf("%+v, %v", all, err)
	}
}

// A new file is one that can be used.
func TestTemplate(t *testing.T) {
	d := swarm.Parse(mine, "x.md", "x.md", []byte(swarm.Template("My Reviewer!", `Reads: "all" of it`)))
	if d.Name != "my-reviewer" || d.Description != `Reads: "all" of it` || !d.Usable() || len(d.Warnings) > 0 || !strings.HasPrefix(d.Prompt, "You are my reviewer.") {
		t.Errorf("it is %s", told(d))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("---\nname: a\ndescription: b\ntools: Read, Bash(git *)\n---\nx"))
	f.Add([]byte("---\nname: &a [*a]\n---\n"))
	f.Add([]byte(swarm.Template("a", "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := swarm.Parse(mine, "f.md", "f.md", data)
		if d.Name == "" || d.Usable() && (d.Description == "" || d.Steps < 0 || len(d.Name) > 64 || strings.ContainsAny(d.Name, "/\\:. \n")) {
			t.Errorf("%q: %+v", data, d)
		}
	})
}

// A definition that is not what was trusted says what an agent is told, and gives it
// neither hooks nor servers nor another model, until it is trusted.
func TestPowers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.md")
	if err := os.WriteFile(file, []byte("---\nname: a\ndescription: b\nmodel: big\ndisallowedTools: Write\nhooks:\n  Stop: []\n---\nYou help.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	covered, mark := false, "1"
	types := &swarm.Types{
		Places: func() []frontmatter.Place {
			return []frontmatter.Place{{Scope: frontmatter.Project, Dir: dir, Trusted: true, Covers: func(string, []byte) bool { return covered }}}
		},
		Trust: func() string { return mark },
	}
	d, ok := types.Find("a")
	if !ok || !d.Powerless || d.Hooks != nil || d.Model != "" || len(d.Without) != 1 || d.Prompt != "You help." || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0].Message, "hooks, model in it count for nothing") {
		t.Errorf("%+v", d)
	}
	covered, mark = true, "2"
	if d, _ = types.Find("a"); d.Powerless || d.Hooks == nil || d.Model != "big" {
		t.Errorf("trusted, it is %+v", d)
	}
}
