package policy

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/prooftest"
)

// A pattern, and which of the paths below it allows and denies.
func TestPaths(t *testing.T) {
	all := []string{
		"/w/.env", "/w/a/.env", "/w/src/main.go", "/w/src/a/b.go", "/w/docs/src/x.go", "/w/build", "/w/a b.txt", "/w/[x].md",
		"/home/u/.ssh/id", "/etc/passwd", "/p/src/main.go", "/workspace/.env",
	}
	for _, tt := range []struct{ pattern, allows, denies string }{
		{".env", "/w/.env /w/a/.env", "/w/.env /w/a/.env"},
		{"./.env", "/w/.env", "/w/.env"},
		{"/.env", "", ""}, // of the source, /p
		{"/src/**", "/p/src/main.go", "/p/src/main.go"},
		{"src/**", "/w/src/main.go /w/src/a/b.go", "/w/src/main.go /w/src/a/b.go /w/docs/src/x.go"},
		{"src/*", "/w/src/main.go", "/w/src/main.go /w/src/a/b.go"},
		{"src/*.go", "/w/src/main.go", "/w/src/main.go"},
		{"src/**/*.go", "/w/src/main.go /w/src/a/b.go", "/w/src/main.go /w/src/a/b.go"},
		{"**/src/*.go", "/w/src/main.go /w/docs/src/x.go", "/w/src/main.go /w/docs/src/x.go"},
		{"src", "/w/src/main.go /w/src/a/b.go /w/docs/src/x.go", "/w/src/main.go /w/src/a/b.go /w/docs/src/x.go"},
		{"src/", "/w/src/main.go /w/src/a/b.go /w/docs/src/x.go", "/w/src/main.go /w/src/a/b.go /w/docs/src/x.go"},
		{"build/", "", "/w/build"}, // it may be a file
		{"*.go", "/w/src/main.go /w/src/a/b.go /w/docs/src/x.go", "/w/src/main.go /w/src/a/b.go /w/docs/src/x.go"},
		{"ma?n.go", "/w/src/main.go", "/w/src/main.go"},
		{"[l-n]ain.[!a-f]o", "/w/src/main.go", "/w/src/main.go"},
		{`\[x\].md`, "/w/[x].md", "/w/[x].md"},
		{"[[]x[]].md", "/w/[x].md", "/w/[x].md"},
		{"a b.txt", "/w/a b.txt", "/w/a b.txt"},
		{"~/.ssh/**", "/home/u/.ssh/id", "/home/u/.ssh/id"},
		{"~/.ssh", "/home/u/.ssh/id", "/home/u/.ssh/id"},
		{"//etc/passwd", "/etc/passwd", "/etc/passwd"},
		{"//etc", "/etc/passwd", "/etc/passwd"},
		{"//w/*/*.go", "/w/src/main.go", "/w/src/main.go"},
		{"../workspace/.env", "/workspace/.env", "/workspace/.env"},
		{"**", "/w/.env /w/a/.env /w/src/main.go /w/src/a/b.go /w/docs/src/x.go /w/build /w/a b.txt /w/[x].md", "/w/.env /w/a/.env /w/src/main.go /w/src/a/b.go /w/docs/src/x.go /w/build /w/a b.txt /w/[x].md"},
		{"//**", strings.Join(all, " "), strings.Join(all, " ")},
	} {
		for _, v := range []agent.Verdict{agent.Allow, agent.Deny} {
			c, want := plainConfig(), tt.allows
			c.Inside = nil // so that nothing is allowed but by the rule
			c.Rules = []Rule{{Text: "Read(" + tt.pattern + ")", Verdict: v, Source: Source{Dir: "/p"}}}
			if v == agent.Deny {
				want = tt.denies
			}
			p := mustNew(t, c)
			var got []string
			for _, at := range all {
				if d := p.Decide(reads(at)); d.Verdict == v {
					got = append(got, at)
				}
			}
			if s := strings.Join(got, " "); s != want || len(p.Warnings()) > 0 {
				t.Errorf("%s Read(%s):\n%s\nwant\n%s\n%v", v, tt.pattern, s, want, p.Warnings())
			}
		}
	}
}

// A rule on reading is against changing, and against commands; one on changing is
// against every tool that changes. Both forms of a path count.
func TestPathRules(t *testing.T) {
	command := func(c agent.SimpleCommand) agent.Proposal {
		return prop(shellTool, agent.Unsafe, agent.Effects{Reads: c.Reads, Writes: c.Writes, Commands: []agent.SimpleCommand{c}})
	}
	for _, tt := range []struct {
		name        string
		allow, deny []string
		prop        agent.Proposal
		want        agent.Verdict
	}{
		{"a denied file is not edited", nil, []string{"Read(x)"}, edits("/w/x"), agent.Deny},
		{"nor written", nil, []string{"Read(x)"}, prop("file-system__write", agent.Unsafe, agent.Effects{Writes: []string{"/w/x"}}), agent.Deny},
		{"nor read by a command", []string{"Bash"}, []string{"Read(x)"}, command(agent.SimpleCommand{Argv: []string{"cat", "x"}, Reads: []string{"/w/x"}}), agent.Deny},
		{"nor by one within another", []string{"Bash"}, []string{"Read(x)"}, command(agent.SimpleCommand{Argv: []string{"env"}, Runs: []agent.SimpleCommand{{Argv: []string{"cat"}, Reads: []string{"/w/x"}}}}), agent.Deny},
		{"a redirection", []string{"Bash"}, []string{"Edit(x)"}, prop(shellTool, agent.Unsafe, agent.Effects{Writes: []string{"/w/x"}}), agent.Deny},
		{"denied to change may be read", nil, []string{"Edit(x)"}, reads("/w/x"), agent.Allow},
		{"written as Write", nil, []string{"Write(x)"}, edits("/w/x"), agent.Deny},
		{"written as Grep", nil, []string{"Grep(x)"}, reads("/w/x"), agent.Deny},
		{"the target of a link is denied", nil, []string{"Read(//etc/**)"}, reads("/w/link/passwd"), agent.Deny},
		{"the link is denied", nil, []string{"Read(link/**)"}, reads("/w/link/passwd"), agent.Deny},
		{"allowed as it is given only", []string{"Read(link/**)"}, nil, reads("/w/link/passwd"), agent.AskUser},
		{"allowed as it resolves only", []string{"Read(//etc/**)"}, nil, reads("/w/link/passwd"), agent.AskUser},
		{"allowed as both", []string{"Read(link/**)", "Read(//etc/**)"}, nil, reads("/w/link/passwd"), agent.Allow},
		{"an edit that is allowed may read", []string{"Edit(//etc/hosts)"}, nil, edits("/etc/hosts"), agent.Allow},
		{"a read that is allowed may not edit", []string{"Read(//etc/hosts)"}, nil, edits("/etc/hosts"), agent.AskUser},
		{"a command that prints what may be read", []string{"Read(//etc/**)"}, nil, command(agent.SimpleCommand{Argv: []string{"cat"}, Kind: agent.CommandReads, Reads: []string{"/etc/hosts"}}), agent.Allow},
		{"an exception", nil, []string{"Read(.env.*)", "Read(!.env.example)"}, reads("/w/.env.example"), agent.Allow},
		{"no exception", nil, []string{"Read(.env.*)", "Read(!.env.example)"}, reads("/w/.env.local"), agent.Deny},
		{"an exception by name alone", nil, []string{"Read(//etc/**)", "Read(!link/**)"}, reads("/w/link/passwd"), agent.Deny},
		{"an exception from what is allowed", []string{"Read(//etc/**)", "Read(!//etc/shadow)"}, nil, reads("/etc/shadow"), agent.AskUser},
		{"removing what holds it", []string{"Bash"}, []string{"Edit(a/b/keep/**)"}, command(agent.SimpleCommand{Argv: []string{"rm", "-rf", "a"}, Writes: []string{"/w/a"}, Removes: []string{"/w/a"}}), agent.Deny},
		{"reading as a whole", []string{"Bash"}, []string{"Read"}, command(agent.SimpleCommand{Argv: []string{"cat", "x"}, Reads: []string{"/w/x"}}), agent.Deny},
		{"changing as a whole", []string{"Bash"}, []string{"Edit"}, prop(shellTool, agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{cmd("a")}, Writes: []string{"/w/x"}}), agent.Deny},
		{"changing as a whole, and it reads", nil, []string{"Edit"}, command(agent.SimpleCommand{Argv: []string{"cat"}, Kind: agent.CommandReads, Reads: []string{"/w/x"}}), agent.Allow},
		{"changing as a whole is allowed", []string{"Bash(a)", "Edit"}, nil, prop(shellTool, agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{cmd("a")}, Writes: []string{"/etc/x"}}), agent.Allow},
		{"changing as a whole is allowed, and not what is protected", []string{"Bash(a)", "Edit"}, nil, prop(shellTool, agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{cmd("a")}, Writes: []string{"/w/.git/x"}}), agent.AskUser},
		{"writing beside", []string{"Bash", "Edit"}, []string{"Edit(a/b/keep/**)"}, edits("/w/a"), agent.Allow},
	} {
		c := config()
		c.Allow, c.Deny = tt.allow, tt.deny
		if d := mustNew(t, c).Decide(tt.prop); d.Verdict != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.name, d.Verdict, d.Reason, tt.want)
		}
	}
}

// Who finds paths while it runs can ask for each, and who confines commands gets
// those that are known beforehand.
func TestDeniedPaths(t *testing.T) {
	c := config()
	c.Deny = []string{"Read(~/.ssh/**)", "Read(.env)", "Edit(./gen)", "Read(//etc/*.key)", "Bash(rm *)", "Read(//srv/a)"}
	p := mustNew(t, c)
	reads, edits := p.DeniedPaths()
	if r, e := strings.Join(reads, " "), strings.Join(edits, " "); r != "/home/u/.ssh /srv/a" || e != "/home/u/.ssh /w/gen /srv/a" {
		t.Errorf("%s; %s", r, e)
	}
	for path, want := range map[string][2]bool{
		"/w/a/.env": {true, true}, "/w/gen/x": {false, true}, "/etc/a.key": {true, true}, "/w/link/a.key": {true, true}, "/w/x": {false, false},
	} {
		if got := [2]bool{p.DeniesRead(path), p.DeniesEdit(path)}; got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// Where names that differ in case are the same file, rules see it that way.
func TestFoldedPaths(t *testing.T) {
	c := plainConfig()
	c.Key = strings.ToLower
	c.Deny, c.Allow = []string{"Read(.ENV)", "Bash(RM *)"}, []string{"Bash"}
	p := mustNew(t, c)
	for _, call := range []agent.Proposal{reads("/w/.Env"), prop(shellTool, agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{{Argv: []string{"rM", "x"}}}})} {
		if d := p.Decide(call); d.Verdict != agent.Deny {
			t.Errorf("%+v: %+v", call, d)
		}
	}
}

// Git and the matcher agree on what a pattern ignores.
func TestLikeGit(t *testing.T) {
	git := prooftest.Program(t, "git")
	dir := t.TempDir()
	if out, err := exec.Command(git, "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	names := []string{"a", "b", "ab", "a.go", ".a", "[a]", "a-b", "A"}
	rng := rand.New(rand.NewPCG(7, 7))
	pick := func(list []string) string { return list[rng.IntN(len(list))] }
	var paths []string
	for range 150 {
		p := pick(names)
		for range rng.IntN(4) {
			p += "/" + pick(names)
		}
		paths = append(paths, p)
	}
	pieces := []string{"a", "b", "ab", "a.go", "*", "**", "?", "a*", "*.go", "[ab]", "[!a]", "[a-c]*", "*b*", "[[:alpha:]]", `\[a\]`, ".*", "a?b", "[]a-]*"}
	for range 250 {
		pattern := pick(pieces)
		for range rng.IntN(4) {
			pattern += "/" + pick(pieces)
		}
		pattern = pick([]string{"", "", "/"}) + pattern + pick([]string{"", "", "/"})
		want := ignored(t, git, dir, pattern, paths)
		g := pathPattern{below: true, bases: []string{""}}
		text, anchored := strings.CutPrefix(pattern, "/")
		if f := g.read(text, anchored, true); f != nil {
			t.Errorf("%s: %v", pattern, f)
			continue
		}
		g.below = true
		for _, p := range paths {
			if got := g.matches("/" + p); got != want[p] {
				t.Errorf("pattern %s, path %s: %v, and git says %v", pattern, p, got, want[p])
			}
		}
	}
}

func ignored(t *testing.T, git, dir, pattern string, paths []string) map[string]bool {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(pattern+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(git, "-C", dir, "-c", "core.ignorecase=false", "check-ignore", "--stdin", "-z", "--no-index")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for p := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		set[string(p)] = true
	}
	return set
}

// Patterns of paths: nothing goes wrong, what is written exactly fits itself, and
// a deny reaches at least as far as an allow.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"src/**", "*.go", "[a-z]", `\*`, "a/**/b", "//x", "~/y", "../z", "!.env", "**/**", "[[:alpha:]", "a/", "가?"} {
		f.Add(s, "src/main.go")
		f.Add(s, "a/b/가나")
	}
	f.Fuzz(func(t *testing.T, pattern, rel string) {
		if len(pattern) > 200 || len(rel) > 200 {
			return
		}
		s, err := compile(plainConfig(), nil)
		if err != nil {
			t.Fatal(err)
		}
		clean := filepath.Clean("/w/" + rel)
		allow, f1 := s.readPath(pattern, 1, true, Source{})
		deny, f2 := s.readPath(pattern, 1, false, Source{})
		if (f1 == nil) != (f2 == nil) {
			t.Fatalf("%q is a pattern in one place only: %v, %v", pattern, f1, f2)
		}
		if f1 == nil && allow.matches(clean) && !deny.matches(clean) {
			t.Fatalf("%q allows %q and does not deny it", pattern, clean)
		}
		if strings.ContainsAny(clean, "\x00") || clean == "/" {
			return
		}
		own, fault := s.readPath("/"+escaped(clean), 1, true, Source{})
		if fault != nil || !own.matches(clean) || own.matches(clean+"x") || own.matches("/q"+clean) {
			t.Fatalf("the pattern of %q does not mean it: %v", clean, fault)
		}
	})
}
