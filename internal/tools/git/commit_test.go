package git

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
)

func TestCommit(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "changed\n")
	b.put("new/c.txt", "c\n")
	if err := os.Remove(filepath.Join(b.top, "dir", "b.txt")); err != nil {
		t.Fatal(err)
	}
	shows := func(want string) {
		t.Helper()
		got := b.plain("show", "--format=%B--", "--name-status", "HEAD")
		if got != want {
			t.Errorf("the commit is\n%s\n-- want\n%s", got, want)
		}
	}
	fails := func(input in, parts ...string) {
		t.Helper()
		r := b.do(b.writing, input)
		for _, p := range parts {
			if !r.Failed() || !strings.Contains(r.Text, p) {
				t.Errorf("%v: %+v has no %q", input, r, p)
			}
		}
	}
	fails(in{"message": "Nothing staged"}, "no changes added to commit", "Name the changed files in paths, or set all.")
	fails(in{"message": " \n"}, "the message is empty")
	fails(in{"message": "x", "paths": []string{"../x"}}, "outside of the repository")
	fails(in{"message": "x", "paths": []string{"a.txt"}, "all": true}, "exclude each other")

	r := b.do(b.writing, in{"message": "# Not a comment\n\n--amend\n\n\n", "paths": []string{"new", "dir"}})
	if r.Failed() || !strings.Contains(r.Text, "[main ") {
		t.Fatalf("%+v", r)
	}
	var answer commitAnswer
	if err := json.Unmarshal(r.Output, &answer); err != nil || answer != (commitAnswer{b.plain("rev-parse", "HEAD"), "# Not a comment"}) {
		t.Errorf("the answer is %s: %v", r.Output, err)
	}
	shows("# Not a comment\n\n--amend\n--\n\nD\tdir/b.txt\nA\tnew/c.txt")
	if got := b.plain("status", "--short"); got != "M a.txt" {
		t.Errorf("left over: %s", got)
	}

	b.put("b.txt", "untracked\n")
	if r := b.do(b.writing, in{"message": "All", "all": true}); r.Failed() {
		t.Fatalf("%+v", r)
	}
	shows("All\n--\n\nM\ta.txt")
	b.plain("add", "b.txt")
	if r := b.do(b.writing, in{"message": "Amended", "amend": true}); r.Failed() {
		t.Fatalf("%+v", r)
	}
	shows("Amended\n--\n\nM\ta.txt\nA\tb.txt")
	if n := b.plain("rev-list", "--count", "HEAD"); n != "3" {
		t.Errorf("there are %s commits", n)
	}
}

// Some hunks of what is staged are committed, and the others stay staged, as does what
// was not. Hunks that are not there, or of what is not staged, commit nothing.
func TestCommitHunks(t *testing.T) {
	b := newBench(t)
	numbered := func(change map[int]string) string {
		var text strings.Builder
		for i := range 30 {
			line := strconv.Itoa(i)
			if now, ok := change[i]; ok {
				line = now
			}
			text.WriteString(line + "\n")
		}
		return text.String()
	}
	b.put("long.txt", numbered(nil))
	b.plain("add", ".")
	b.plain("commit", "-q", "-m", "Long")
	b.put("long.txt", numbered(map[int]string{2: "first", 25: "second"}))
	b.put("new file.txt", "new\n")
	b.put("pic.bin", "\x00\x01\x02")
	b.plain("add", ".")
	b.put("long.txt", numbered(map[int]string{2: "first", 14: "not staged", 25: "second"}))
	b.put("a.txt", "not staged\n")

	before := b.plain("rev-parse", "HEAD")
	for _, input := range []in{
		{"message": "x", "hunks": []string{"a.txt @@ -1,2 +1 @@"}},
		{"message": "x", "hunks": []string{"long.txt"}},
		{"message": "x", "hunks": []string{"pic.bin"}, "all": true},
		{"message": "x", "hunks": []string{"pic.bin"}, "amend": true},
	} {
		if r := b.do(b.writing, input); !r.Failed() || b.plain("rev-parse", "HEAD") != before {
			t.Errorf("%v: %+v", input, r)
		}
	}
	r := b.do(b.writing, in{"message": "Some", "hunks": []string{"long.txt @@ -23,7 +23,7 @@", "pic.bin"}})
	if r.Failed() {
		t.Fatalf("%+v", r)
	}
	if got, want := b.plain("show", "HEAD:long.txt"), strings.TrimSpace(numbered(map[int]string{25: "second"})); got != want {
		t.Errorf("the commit has\n%s", got)
	}
	if got := b.plain("show", "--format=%s", "--name-status", "HEAD"); got != "Some\n\nM\tlong.txt\nA\tpic.bin" {
		t.Errorf("the commit is\n%s", got)
	}
	if got := b.plain("status", "--short"); got != "M a.txt\nMM long.txt\nA  \"new file.txt\"" {
		t.Errorf("left over:\n%s", got)
	}
	if got := b.plain("diff", "--cached", "--", "long.txt"); !strings.Contains(got, "+first") || strings.Contains(got, "second\n+") || strings.Contains(got, "not staged") {
		t.Errorf("still staged:\n%s", got)
	}
	if left, _ := filepath.Glob(filepath.Join(b.top, ".git", "dure-index-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Hooks run as they do for people, and what they say reaches the model.
func TestCommitHooks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the hooks are shell scripts")
	}
	b := newBench(t)
	hook := b.program(".git/hooks/pre-commit", "echo lint: a.txt is bad; exit 1")
	b.put(".git/hooks/commit-msg", "not executable")
	b.put("a.txt", "x\n")
	r := b.do(b.writing, in{"message": "x", "all": true})
	want := "lint: a.txt is bad\nMend what it says, then commit again. What was to be committed is staged."
	if r.Text != want {
		t.Errorf("%q\nwant %q", r.Text, want)
	}
	b.program(".git/hooks/pre-commit", "echo checked")
	if r := b.do(b.writing, in{"message": "x", "all": true}); r.Failed() || !strings.Contains(r.Text, "checked") {
		t.Errorf("%+v", r)
	}
	e, err := b.writing.Plan(t.Context(), b.context(), b.call(in{"message": "m", "all": true}))
	if err != nil {
		t.Fatal(err)
	}
	runs := [][]string{{"git", "commit", "--message=m", "--all"}, {hook}}
	if d := cmp.Diff(agent.Effects{Reads: []string{b.top, filepath.Join(b.top, ".git")}, Runs: runs}, e); d != "" {
		t.Errorf("the plan (-want +got):\n%s", d)
	}
}

// The plan names every program that a commit would start.
func TestCommitPrograms(t *testing.T) {
	r := repository{top: "/r", dir: "/r/.git", common: "/r/.git"}
	dir := t.TempDir()
	hook := filepath.Join(dir, "pre-commit")
	if err := os.WriteFile(hook, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		list []setting
		want programs
	}{
		{"nothing", nil, programs{}},
		{"hooks elsewhere", []setting{{"core.hookspath", "/x"}, {"core.hookspath", dir}}, programs{argv: [][]string{{hook}}}},
		{"hooks below home", []setting{{"core.hookspath", "~/" + filepath.Base(dir)}}, programs{argv: [][]string{{hook}}}},
		{"hooks of somebody", []setting{{"core.hookspath", "~kim/h"}}, programs{unclear: `its hooks are in "~kim/h"`}},
		{"hooks of the configuration", []setting{{"hook.x.event", "pre-commit"}, {"hook.x.command", "c 1"}, {"hook.A b.command", "c 2"}}, programs{argv: [][]string{{"sh", "-c", "c 1"}, {"sh", "-c", "c 2"}}}},
		{"filters", []setting{{"filter.lfs.clean", "git-lfs clean -- %f"}, {"filter.lfs.smudge", "s"}, {"filter.lfs.process", "p"}, {"filter.y.process", "p"}}, programs{argv: [][]string{{"sh", "-c", "git-lfs clean -- %f"}, {"sh", "-c", "p"}}}},
		{"no signature", []setting{{"commit.gpgsign", "true"}, {"commit.gpgsign", "off"}}, programs{}},
		{"gpg", []setting{{"commit.gpgsign", "true"}}, programs{argv: [][]string{{"gpg"}}}},
		{"another gpg", []setting{{"commit.gpgsign", ""}, {"gpg.program", "g"}}, programs{argv: [][]string{{"g"}}}},
		{"ssh", []setting{{"commit.gpgsign", "1"}, {"gpg.format", "ssh"}, {"gpg.ssh.defaultkeycommand", "k"}}, programs{argv: [][]string{{"ssh-keygen"}, {"sh", "-c", "k"}}}},
		{"x509", []setting{{"commit.gpgsign", "1"}, {"gpg.format", "x509"}, {"gpg.x509.program", "s"}}, programs{argv: [][]string{{"s"}}}},
	} {
		var p programs
		p.hooks(r, tt.list, filepath.Dir(dir))
		p.configured(tt.list)
		p.filters(tt.list)
		p.signers(tt.list)
		if d := cmp.Diff(tt.want, p, cmp.AllowUnexported(programs{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// A hook that comes between the decision and the commit does not run.
func TestCommitChanged(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "x\n")
	c := b.call(in{"message": "x", "all": true})
	if _, err := b.writing.Plan(t.Context(), b.context(), c); err != nil {
		t.Fatal(err)
	}
	b.program(".git/hooks/pre-commit", "touch fired")
	r, err := b.writing.Run(t.Context(), b.context(), c)
	if err != nil || !r.Failed() || !strings.Contains(r.Text, "changed after the commit was decided") {
		t.Errorf("%+v %v", r, err)
	}
	if got := b.plain("status", "--short"); got != "M a.txt" {
		t.Errorf("the folder: %s", got)
	}
}

// A commit starts nothing in submodules, and nothing that is none of its plan.
func TestCommitTraps(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	for _, tt := range traps {
		switch tt.name {
		case "core.fsmonitor", "core.pager", "diff.external", "textconv", "diff driver", "a submodule", "alias", "credential.helper":
		default:
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			fired := filepath.Join(b.home, "fired")
			tt.set(b, b.program(filepath.Join(b.home, "bin", "fire"), "echo \"$0 $*\" >> '"+fired+"'\nexit 1"))
			if err := os.Remove(fired); err == nil {
				t.Log("making the trap fired it")
			}
			for i, input := range []in{{"message": "1", "all": true}, {"message": "2", "paths": []string{"."}}, {"message": "3", "amend": true}} {
				b.put("a.txt", strings.Repeat("x", i)+"\n")
				r := b.do(b.writing, input)
				if data, err := os.ReadFile(fired); err == nil {
					t.Fatalf("%v ran %s\n%s", input, data, r.Text)
				}
				if r.Failed() {
					t.Errorf("%v: %s", input, r.Text)
				}
			}
		})
	}
}

// After a crash the last commit tells whether the call took effect.
func TestCommitProbe(t *testing.T) {
	for _, tt := range []struct {
		name  string
		input in
		after func(b *bench) // what happened after the mark
		want  agent.Probe
	}{
		{"nothing", in{"message": "Mine"}, func(*bench) {}, agent.ProbeNotDone},
		{"only staged", in{"message": "Mine"}, func(b *bench) { b.plain("add", ".") }, agent.ProbeNotDone},
		{"done", in{"message": "Mine\n\n\n\nbody  \n"}, func(b *bench) { b.plain("commit", "-qam", "Mine\n\nbody") }, agent.ProbeDone},
		{"done, and a hook added a line", in{"message": "Mine"}, func(b *bench) { b.plain("commit", "-qam", "Mine\n\nReviewed-by: Lee") }, agent.ProbeDone},
		{"somebody else", in{"message": "Mine"}, func(b *bench) { b.plain("commit", "-qam", "Theirs") }, agent.ProbeUnknown},
		{"done, and another one", in{"message": "Mine"}, func(b *bench) {
			b.plain("commit", "-qam", "Mine")
			b.plain("commit", "-q", "--allow-empty", "-m", "Mine")
		}, agent.ProbeUnknown},
		{"amended", in{"message": "Mine", "amend": true}, func(b *bench) { b.plain("commit", "-q", "--amend", "-am", "Mine") }, agent.ProbeDone},
		{"not amended", in{"message": "Mine", "amend": true}, func(b *bench) { b.plain("commit", "-qam", "Mine") }, agent.ProbeUnknown},
		{"another branch", in{"message": "Mine"}, func(b *bench) { b.plain("checkout", "-q", "--orphan", "x") }, agent.ProbeUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("a.txt", "x\n")
			checker, c := b.writing.(agent.Checker), b.call(tt.input)
			mark, err := checker.Mark(t.Context(), b.context(), c)
			if err != nil {
				t.Fatal(err)
			}
			tt.after(b)
			got, r, err := checker.Probe(t.Context(), b.context(), c, mark)
			if err != nil || got != tt.want || (got == agent.ProbeDone) != (r.Status == agent.StatusOK) {
				t.Errorf("%s %+v %v", got, r, err)
			}
		})
	}
}

func TestFirstCommit(t *testing.T) {
	b := newBench(t)
	b.plain("checkout", "-q", "--orphan", "new")
	checker, c := b.writing.(agent.Checker), b.call(in{"message": "Root"})
	mark, err := checker.Mark(t.Context(), b.context(), c)
	if err != nil || string(mark) != "{}" {
		t.Fatalf("%s %v", mark, err)
	}
	if r, err := b.writing.Run(t.Context(), b.context(), c); err != nil || r.Failed() {
		t.Fatalf("%+v %v", r, err)
	}
	if got, _, err := checker.Probe(t.Context(), b.context(), c, mark); got != agent.ProbeDone {
		t.Errorf("%s %v", got, err)
	}
}

// Without a name git does not commit, and the model learns whom to ask.
func TestCommitWithoutName(t *testing.T) {
	b := newBench(t)
	b.put(filepath.Join(b.home, ".gitconfig"), "[user]\n\tuseConfigOnly = true\n")
	b.put("a.txt", "x\n")
	r := b.do(b.writing, in{"message": "x", "all": true})
	if !r.Failed() || !strings.Contains(r.Text, "Ask the user to set user.name") {
		t.Errorf("%+v", r)
	}
}
