package git

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/prooftest"
)

func TestRead(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "one\nTWO\n")
	b.put("새 파일.txt", "new\n")
	b.plain("tag", "v1")
	b.plain("remote", "add", "origin", "https://kim:hunter2@example.org/r.git")
	for _, tt := range []struct {
		input in
		want  string
	}{
		{in{"command": "status", "args": []string{"--short", "--branch"}}, "## main\n M a.txt\n?? \"새 파일.txt\""},
		{in{"command": "status", "args": []string{"-s"}, "paths": []string{"새 파일.txt"}}, "?? \"새 파일.txt\""},
		{in{"command": "status", "args": []string{"-s", "--", "dir"}}, "[nothing to commit, working tree clean]"},
		{in{"command": "diff", "args": []string{"--stat"}}, " a.txt | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)"},
		{in{"command": "diff", "args": []string{"--name-only", "HEAD"}, "paths": []string{filepath.Join(b.top, "a.txt")}}, "a.txt"},
		{in{"command": "diff", "args": []string{"--cached"}}, "[no differences]"},
		{in{"command": "log", "args": []string{"--format=%an %s", "-n", "1"}}, "Kim First"},
		{in{"command": "log", "args": []string{"--oneline", "-5"}}, "HEAD First"},
		{in{"command": "log", "args": []string{"--author=--output=x", "--grep", "-O"}}, "[no commits]"},
		{in{"command": "show", "args": []string{"HEAD:a.txt"}}, "one\ntwo"},
		{in{"command": "show", "args": []string{"--name-status", "--format=%s", "v1"}}, "First\n\nA\ta.txt\nA\tdir/b.txt"},
		{in{"command": "blame", "args": []string{"-L", "2,+1", "-s", "HEAD", "a.txt"}}, "^" + b.plain("rev-parse", "--short=7", "HEAD") + " 2) two"},
		{in{"command": "branch"}, "* main"},
		{in{"command": "branch", "args": []string{"nothing-like-it"}}, "[none]"},
		{in{"command": "tag", "args": []string{"--contains", "HEAD"}}, "v1"},
		{in{"command": "remote"}, "origin\thttps://***@example.org/r.git (fetch)\norigin\thttps://***@example.org/r.git (push)"},
		{in{"command": "stash-list"}, "[none]"},
		{in{"command": "grep", "args": []string{"-i", "TW."}}, "a.txt:2:TWO"},
		{in{"command": "grep", "args": []string{"tw.", "HEAD"}}, "HEAD:a.txt:2:two"},
		{in{"command": "grep", "args": []string{"-e", "-x"}}, "[no matches]"},
		{in{"command": "show", "args": []string{"no-such-branch"}}, "E_TOOL: bad revision 'no-such-branch'"},
	} {
		got := b.text(b.do(b.reading, tt.input))
		if tt.input["command"] == "blame" {
			got = b.do(b.reading, tt.input).Text
		}
		if got != tt.want && (!strings.HasPrefix(tt.want, "E_") || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%v:\n%s\n-- want\n%s", tt.input, got, tt.want)
		}
	}
	if refs := b.plain("branch", "--list"); refs != "* main" {
		t.Errorf("the branches are now %s", refs)
	}
}

// What could run, write, fetch or look elsewhere is refused before git sees it.
func TestRefused(t *testing.T) {
	b := newBench(t)
	b.put(filepath.Join(filepath.Dir(b.top), "secret.txt"), "secret\n")
	for command, args := range map[string][]string{
		"status":     {"--recurse-submodules", "--no-optional-locks", "-v"},
		"diff":       {"--no-index", "--ext-diff", "--textconv", "--output=x", "--output", "-Oorder", "--submodule=log", "--dirstat-by-file=x", "--ignore-submodules=none", "/etc/passwd", "../secret.txt", "./x", "a/../../secret.txt", "-", "~/x"},
		"log":        {"--output=x", "--ext-diff", "--textconv", "--show-signature", "--format=%G?", "--pretty=%H%+GK", "--format=%(describe)", "--stdin", "--remerge-diff", "--diff-merges=remerge", "-m", "--exec=x", "--date=format:%s", "-n", "-nx", "-L1,2:a.txt", "--no-pager"},
		"show":       {"--textconv", "--show-signature", "--format=%GG", "--open-files-in-pager=sh"},
		"blame":      {"--contents=/etc/passwd", "--contents", "-S/etc/passwd", "--ignore-revs-file=/etc/passwd", "--textconv", "-L/x/,+1"},
		"branch":     {"-d", "-D", "-m", "-M", "-c", "-f", "--delete", "--edit-description", "--set-upstream-to=x", "-u", "--unset-upstream", "--format=%(signature)", "--sort=contents"},
		"tag":        {"-d", "-a", "-s", "-f", "-v", "--verify", "-m", "-F", "-u", "--format=%(signature)"},
		"remote":     {"add", "show", "update", "set-url", "--exec"},
		"stash-list": {"drop", "pop", "-p", "--format=%G?"},
		"grep":       {"-O", "-Osh", "--open-files-in-pager", "--open-files-in-pager=sh", "--no-index", "--untracked", "--textconv", "-f", "-f/etc/passwd", "--recurse-submodules", "--threads=999"},
	} {
		for _, a := range args {
			for _, list := range [][]string{{a}, {a, "x"}} {
				input := in{"command": command, "args": append([]string{"HEAD"}, list...)}
				switch command {
				case "blame":
					input["paths"] = []string{"a.txt"}
					input["args"] = list
				case "remote", "status", "stash-list":
					input["args"] = list
				}
				if r := b.do(b.reading, input); !r.Failed() || r.Error.Code != agent.ErrInput {
					t.Errorf("%s %q: %+v", command, list, r)
				}
			}
		}
	}
	for _, input := range []in{
		{"command": "config"},
		{"command": "fetch"},
		{"command": "-c core.pager=sh log"},
		{"command": "diff", "paths": []string{"../secret.txt"}},
		{"command": "diff", "paths": []string{filepath.Join(filepath.Dir(b.top), "secret.txt"), "a.txt"}},
		{"command": "diff", "args": []string{"--", "/etc/passwd", "/etc/group"}},
		{"command": "branch", "paths": []string{"a.txt"}},
		{"command": "blame"},
		{"command": "grep"},
		{"command": "log", "skip": -1},
	} {
		if r := b.do(b.reading, input); !r.Failed() || r.Error.Code != agent.ErrInput {
			t.Errorf("%v: %+v", input, r)
		}
	}
	if entries, err := os.ReadDir(b.top); err != nil || len(entries) != 3 {
		t.Errorf("the folder has %v now: %v", entries, err)
	}
}

// Long output comes in pages that put together are the whole.
func TestPages(t *testing.T) {
	b := newBench(t)
	b.put("long.txt", strings.Repeat("한글과 English\n", 3000))
	b.plain("add", ".")
	whole, got, skip := strings.Repeat("한글과 English\n", 3000), "", int64(0)
	for range 20 {
		r := b.do(b.reading, in{"command": "show", "args": []string{":long.txt"}, "skip": skip, "max_bytes": 7001})
		var a readAnswer
		if err := json.Unmarshal(r.Output, &a); err != nil || r.Failed() {
			t.Fatalf("%v: %+v", err, r)
		}
		text, note, _ := strings.Cut(r.Text, "\n[there is more")
		got += text + "\n"
		if a.Next == 0 {
			break
		}
		if want := "; continue with skip "; !strings.HasPrefix(note, want) || len(text) > 7001 {
			t.Errorf("a page of %d bytes ends with %q", len(text), note)
		}
		skip = a.Next
	}
	if got != whole {
		t.Errorf("the pages have %d bytes, the file %d", len(got), len(whole))
	}
	r := b.do(b.reading, in{"command": "show", "args": []string{":long.txt"}, "skip": len(whole)})
	if r.Text != "[no more output]" {
		t.Errorf("behind the end: %q", r.Text)
	}
}

// The plan lists all that git reads: the files, the repository wherever it is,
// and what it borrows.
func TestReadPlan(t *testing.T) {
	b := newBench(t)
	b.plain("worktree", "add", "-q", "../tree")
	other := filepath.Join(filepath.Dir(b.top), "other")
	b.put(".git/objects/info/alternates", "# borrowed\n"+other+"\n../../..\n")
	var borrowing string // a folder that has no objects: which ones have, depends on the time
	for n := 255; ; n-- {
		borrowing = fmt.Sprintf("%02x", n)
		if _, err := os.Lstat(filepath.Join(b.top, ".git", "objects", borrowing)); err != nil {
			break
		}
	}
	prooftest.Link(t, os.Symlink(other, filepath.Join(b.top, ".git", "objects", borrowing)))
	plan := func(workdir string, input in) agent.Effects {
		e, err := b.reading.Plan(t.Context(), agent.ToolContext{Workdir: workdir}, b.call(input))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range e.Reads {
			e.Reads[i] = strings.Replace(p, filepath.Dir(b.top), "…", 1)
		}
		return e
	}
	borrowed := []string{"…/other", "…", "…/repo/.git/objects/" + borrowing}
	for name, tt := range map[string]struct {
		got, want []string
	}{
		"top": {
			plan(b.top, in{"command": "show", "args": []string{"HEAD:dir/b.txt"}, "paths": []string{"a.txt"}}).Reads,
			append(append([]string{"…/repo", "…/repo/.git"}, borrowed...), "…/repo/a.txt", "…/repo/dir/b.txt"),
		},
		"below": {
			plan(filepath.Join(b.top, "dir"), in{"command": "diff", "paths": []string{"b.txt"}}).Reads,
			append(append([]string{"…/repo", "…/repo/.git"}, borrowed...), "…/repo/dir/b.txt"),
		},
		"worktree": {
			plan(filepath.Join(filepath.Dir(b.top), "tree"), in{"command": "status"}).Reads,
			append([]string{"…/tree", "…/repo/.git/worktrees/tree", "…/repo/.git"}, borrowed...),
		},
	} {
		if d := cmp.Diff(tt.want, tt.got); d != "" {
			t.Errorf("%s reads (-want +got):\n%s", name, d)
		}
	}
}

func TestEnabled(t *testing.T) {
	b := newBench(t)
	empty := t.TempDir()
	b.put(filepath.Join(empty, "fake", ".git"), "gitdir: nowhere\n")
	b.put(filepath.Join(empty, "half", ".git", "config"), "")
	b.plain("worktree", "add", "-q", "../tree")
	for _, tt := range []struct {
		git, root string
		want      bool
	}{
		{b.git, b.top, true},
		{b.git, filepath.Join(b.top, "dir"), true},
		{b.git, filepath.Join(filepath.Dir(b.top), "tree"), true},
		{"", b.top, false},
		{b.git, empty, false},
		{b.git, filepath.Join(empty, "fake"), false},
		{b.git, filepath.Join(empty, "half"), false},
	} {
		g := New(Config{Box: b.g.Box, Git: tt.git, Root: tt.root})
		for _, tool := range g.Tools() {
			if got := tool.(interface{ Enabled() bool }).Enabled(); got != tt.want {
				t.Errorf("%s in %s: %v", tool.Spec().Name, tt.root, got)
			}
		}
	}
}

// A repository of somebody else is not looked into, and the model learns why.
func TestOwner(t *testing.T) {
	b := newBench(t)
	if err := os.Lchown(b.top, 12345, -1); err != nil {
		prooftest.Lacking(t, "root", err)
	}
	for _, tool := range b.g.Tools() {
		input := in{"command": "log"}
		if tool.Spec().Name == "git__commit" {
			input = in{"message": "x"}
		}
		r := b.do(tool, input)
		if !r.Failed() || !strings.Contains(r.Text, "belongs to another user") || !strings.Contains(r.Text, "safe.directory "+b.top) {
			t.Errorf("%s: %+v", tool.Spec().Name, r)
		}
	}
	b.put(filepath.Join(b.home, ".gitconfig"), "[safe]\n\tdirectory = "+b.top+"\n")
	if r := b.do(b.reading, in{"command": "log", "args": []string{"--format=%s"}}); r.Text != "First" {
		t.Errorf("trusted: %+v", r)
	}
}

func TestNoCommits(t *testing.T) {
	b := newBench(t)
	b.plain("checkout", "-q", "--orphan", "new")
	r := b.do(b.reading, in{"command": "log"})
	if want := "the repository has no commits yet\nThere is no history to show."; r.Text != want {
		t.Errorf("got %q", r.Text)
	}
}

// A repository that comes to borrow from another one after the decision is not read.
func TestReadChanged(t *testing.T) {
	b := newBench(t)
	c := b.call(in{"command": "log"})
	if _, err := b.reading.Plan(t.Context(), b.context(), c); err != nil {
		t.Fatal(err)
	}
	b.put(".git/objects/info/alternates", b.home+"\n")
	r, err := b.reading.Run(t.Context(), b.context(), c)
	if err != nil || !r.Failed() || !strings.Contains(r.Text, "than when the call was decided about") {
		t.Errorf("%+v %v", r, err)
	}
}

// What a repository borrows from is told through lists of lists, and as everything
// where git might see more in a list than is seen here.
func TestBorrowed(t *testing.T) {
	b := newBench(t)
	objects := filepath.Join(b.top, ".git", "objects")
	lender, secret := filepath.Join(b.top, "lender"), filepath.Join(b.home, "objects")
	b.put(filepath.Join(lender, "info", "alternates"), secret+"\n../..\n")
	root := wholeDisk(b.top)
	for name, tt := range map[string]struct {
		list string
		want []string
	}{
		"none":        {"", []string{}},
		"a lender's":  {lender + "\n", []string{lender, secret, filepath.Dir(b.top)}},
		"a circle":    {objects + "\n", []string{}},
		"quoted":      {`"` + strings.Replace(filepath.ToSlash(secret), "/", `\057`, 1) + `"`, []string{root}},
		"too many":    {strings.Repeat("x", 3) + "\n" + manyLines(maxLenders+1), []string{root}},
		"too long":    {strings.Repeat("#\n", maxBorrow), []string{root}},
		"of comments": {"#\n\n", []string{}},
	} {
		b.put(filepath.Join(objects, "info", "alternates"), tt.list)
		if got := borrowed(objects); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %q\nwant %q", name, got, tt.want)
		}
	}
}

func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "y%d\n", i)
	}
	return b.String()
}

// The environment of the parent does not reach git where it would steer it.
func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "HOME=/h", "GIT_DIR=/x", "GIT_SSH_COMMAND=x", "GIT_CONFIG_COUNT=1", "EDITOR=vi", "PAGER=less", "SSH_ASKPASS=x", "LC_ALL=ko_KR.UTF-8", "ANTHROPIC_API_KEY=k"})
	want := []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "TERM=dumb", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_PAGER=cat", "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:", "GIT_ADVICE=0", "GIT_MERGE_AUTOEDIT=no"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Odd names of filters, and more of them than anybody needs, are refused.
func TestFilters(t *testing.T) {
	many := make([]setting, 100)
	for i := range many {
		many[i] = setting{"filter.f" + strings.Repeat("x", i) + ".clean", "x"}
	}
	for name, list := range map[string][]setting{
		"equals sign": {{"filter.a=b.clean", "x"}},
		"hook":        {{"hook.a=b.command", "x"}},
		"line end":    {{"filter.a\nb.clean", "x"}},
		"many":        many,
	} {
		if got, err := without(list); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	got, err := without([]setting{{"filter.lfs.clean", "x"}, {"filter.lfs.required", "true"}, {"core.bare", "false"}, {"alias.filter", "x"}, {"hook.a b.event", "post-index-change"}, {"hook.a b.command", "x"}})
	want := []string{"filter.lfs.clean=", "filter.lfs.smudge=", "filter.lfs.process=", "filter.lfs.required=false", "hook.a b.enabled=false"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q %v", got, err)
	}
}

// No argument gets past the grammar as a flag that is not in it, or as a path
// outside of the repository.
func FuzzParse(f *testing.F) {
	f.Add("log", "--output=x", "-n", "5")
	f.Add("diff", "-U3", "main..HEAD", "--no-index")
	f.Add("grep", "-e", "-O", "--")
	f.Add("grep", "-e", "--O-", "x")
	f.Add("blame", "-L1,2", "--", "../x")
	f.Add("show", "HEAD:a", "-vv", "--format=%G?")
	r := repository{top: string(filepath.Separator) + "repo"}
	f.Fuzz(func(t *testing.T, command, a, b, c string) {
		q, err := parse(r, agent.ToolContext{Workdir: r.top}, readInput{Command: command, Args: []string{a, b, c}})
		if err != nil {
			return
		}
		gr := grammars()[command]
		fixed := len(gr.args)
		for i, arg := range q.args[fixed:] {
			switch {
			case i > 0 && q.args[fixed+i-1] == "-e": // a pattern, whatever it looks like
			case arg == "--":
				for _, p := range q.args[fixed+i+1:] {
					if !filepath.IsLocal(filepath.FromSlash(p)) {
						t.Errorf("%q leads outside", p)
					}
				}
				return
			case strings.HasPrefix(arg, "--"):
				name, _, _ := strings.Cut(arg, "=")
				if _, ok := gr.flags[name]; !ok && name != "--max-count" {
					t.Errorf("%q got through", arg)
				}
			case strings.HasPrefix(arg, "-"):
				if _, ok := gr.flags[arg[:2]]; !ok {
					t.Errorf("%q got through", arg)
				}
			}
		}
	})
}

func TestSpecs(t *testing.T) {
	b := newBench(t)
	size := 0
	for _, tool := range b.g.Tools() {
		s := tool.Spec()
		if len(s.Description) > 420 || len(s.Input) > 520 || !json.Valid(s.Input) {
			t.Errorf("%s: %d bytes of description, %d of schema", s.Name, len(s.Description), len(s.Input))
		}
		size += len(s.Description) + len(s.Input)
	}
	t.Logf("the tools take %d bytes of a request", size)
	start := time.Now()
	for range 100 {
		b.g.Enabled()
	}
	t.Logf("a look whether there is a repository takes %v", time.Since(start)/100)
}
