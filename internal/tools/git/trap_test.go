package git

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"dure/internal/prooftest"
)

// A trap is a repository that makes git start the program fire, or show what is
// unseen, when git is not held back. That it is real is proven with control, a
// command of a person.
type trap struct {
	name    string
	set     func(b *bench, fire string)
	control []string
	unseen  string
}

func config(key, value string) func(*bench, string) {
	return func(b *bench, fire string) { b.plain("config", key, strings.ReplaceAll(value, "FIRE", fire)) }
}

// dirty changes a file, so that git has to look at its content.
func dirty(b *bench) { b.put("a.txt", "one\nTWO\n") }

var traps = []trap{
	{name: "core.fsmonitor", set: config("core.fsmonitor", "FIRE"), control: []string{"status"}},
	{name: "core.pager", set: config("core.pager", "FIRE"), control: nil},           // on terminals only
	{name: "pager for one command", set: config("pager.log", "FIRE"), control: nil}, // on terminals only
	{name: "diff.external", set: func(b *bench, fire string) {
		config("diff.external", "FIRE")(b, fire)
		dirty(b)
	}, control: []string{"diff"}},
	{name: "textconv", set: func(b *bench, fire string) {
		config("diff.x.textconv", "FIRE")(b, fire)
		b.put(".gitattributes", "*.txt diff=x\n")
		dirty(b)
	}, control: []string{"diff"}},
	{name: "diff driver", set: func(b *bench, fire string) {
		config("diff.x.command", "FIRE")(b, fire)
		b.put(".git/info/attributes", "*.txt diff=x\n")
		dirty(b)
	}, control: []string{"diff"}},
	{name: "clean filter", set: func(b *bench, fire string) {
		config("filter.x.clean", "FIRE")(b, fire)
		config("filter.x.required", "true")(b, fire)
		b.put(".gitattributes", "*.txt filter=x\n")
		dirty(b)
	}, control: []string{"diff"}},
	{name: "filter with dots, spaces and capitals", set: func(b *bench, fire string) {
		config("filter.a.B c.clean", "FIRE")(b, fire)
		b.put(".git/info/attributes", "*.txt filter=a.B\n")
		config("filter.a.B.clean", "FIRE")(b, fire)
		dirty(b)
	}, control: []string{"diff"}},
	{name: "process filter", set: func(b *bench, fire string) {
		config("filter.x.process", "FIRE")(b, fire)
		b.put(".gitattributes", "*.txt filter=x\n")
		dirty(b)
	}, control: []string{"diff"}},
	{name: "gpg.program and log.showSignature", set: func(b *bench, fire string) {
		config("gpg.program", "FIRE")(b, fire)
		config("log.showSignature", "true")(b, fire)
		sign(b)
	}, control: []string{"log"}},
	{name: "a format that checks signatures", set: func(b *bench, fire string) {
		config("gpg.program", "FIRE")(b, fire)
		config("format.pretty", "%H %G?")(b, fire)
		sign(b)
	}, control: []string{"log"}},
	{name: "core.sshCommand", set: func(b *bench, fire string) {
		config("core.sshCommand", "FIRE")(b, fire)
		promise(b, "git@localhost:x")
	}, control: []string{"fetch", "origin"}},
	{name: "ext protocol", set: func(b *bench, fire string) {
		config("protocol.ext.allow", "always")(b, fire)
		promise(b, "ext::"+fire)
	}, control: []string{"fetch", "origin"}},
	{name: "a helper for remotes", set: func(b *bench, fire string) {
		config("remote.origin.vcs", "ext")(b, fire)
		config("protocol.ext.allow", "always")(b, fire)
		promise(b, fire)
	}, control: []string{"fetch", "origin"}},
	{name: "uploadpack of a local remote", set: func(b *bench, fire string) {
		config("remote.origin.uploadpack", "FIRE")(b, fire)
		promise(b, b.top)
	}, control: []string{"fetch", "origin"}},
	{name: "credential.helper", set: config("credential.helper", "!FIRE"), control: []string{"credential", "fill"}},
	{name: "core.hooksPath", set: func(b *bench, fire string) {
		config("core.hooksPath", filepath.Dir(fire))(b, fire)
		b.program(filepath.Join(filepath.Dir(fire), "post-index-change"), fire)
		if err := os.Chtimes(filepath.Join(b.top, "a.txt"), b.later(), b.later()); err != nil {
			b.Fatal(err)
		}
	}, control: []string{"status"}},
	{name: "a hook", set: func(b *bench, fire string) {
		b.program(".git/hooks/post-index-change", fire)
		if err := os.Chtimes(filepath.Join(b.top, "a.txt"), b.later(), b.later()); err != nil {
			b.Fatal(err)
		}
	}, control: []string{"status"}},
	{name: "alias", set: func(b *bench, fire string) {
		config("alias.stash-list", "!FIRE")(b, fire)
		config("alias.status", "!FIRE")(b, fire)
	}, control: []string{"stash-list"}},
	{name: "include.path", set: func(b *bench, fire string) {
		b.put("innocent.txt", "[core]\n\tfsmonitor = "+fire+"\n[filter \"x\"]\n\tclean = "+fire+"\n")
		config("include.path", "../innocent.txt")(b, fire)
		b.put(".gitattributes", "*.txt filter=x\n")
		dirty(b)
	}, control: []string{"status"}},
	{name: "includeIf", set: func(b *bench, fire string) {
		b.put("innocent.txt", "[filter \"x\"]\n\tclean = "+fire+"\n")
		config("includeIf.gitdir:**.path", "../innocent.txt")(b, fire)
		b.put(".gitattributes", "*.txt filter=x\n")
		dirty(b)
	}, control: []string{"diff"}},
	{name: "config of a worktree", set: func(b *bench, fire string) {
		config("extensions.worktreeConfig", "true")(b, fire)
		b.put(".git/config.worktree", "[filter \"x\"]\n\tclean = "+fire+"\n")
		b.put(".gitattributes", "*.txt filter=x\n")
		dirty(b)
	}, control: []string{"diff"}},
	{name: "a submodule", set: func(b *bench, fire string) {
		b.plain("init", "-q", "sub")
		b.plain("-C", "sub", "commit", "-q", "--allow-empty", "-m", "Inside")
		b.put("sub/s.txt", "s\n")
		b.plain("-C", "sub", "add", "s.txt")
		b.plain("-C", "sub", "commit", "-q", "-m", "Inside")
		b.plain("submodule", "--quiet", "add", "./sub", "sub")
		b.plain("commit", "-q", "-m", "Sub")
		b.plain("config", "diff.submodule", "diff")
		b.plain("config", "status.submoduleSummary", "true")
		b.plain("config", "submodule.sub.ignore", "none")
		b.plain("config", "submodule.recurse", "true")
		b.plain("-C", "sub", "config", "core.fsmonitor", fire)
		b.put("sub/.gitattributes", "*.txt filter=x\n")
		b.plain("-C", "sub", "config", "filter.x.clean", fire)
		b.put("sub/s.txt", "S\n")
	}, control: []string{"status"}},
	{name: "merge driver", set: func(b *bench, fire string) {
		b.put(".gitattributes", "*.txt merge=x\n")
		b.plain("add", ".")
		b.plain("commit", "-q", "-m", "Attributes")
		b.plain("checkout", "-q", "-b", "side", "HEAD")
		b.put("a.txt", "side\n")
		b.plain("commit", "-q", "-a", "-m", "Side")
		b.plain("checkout", "-q", "main")
		b.put("a.txt", "main\n")
		b.plain("commit", "-q", "-a", "-m", "Main")
		b.plain("merge", "-q", "-s", "ours", "side")
		config("merge.x.driver", "FIRE")(b, fire)
		config("log.diffMerges", "remerge")(b, fire)
	}, control: []string{"show", "--remerge-diff"}},
	{name: "core.worktree", set: func(b *bench, _ string) {
		b.put(filepath.Join(b.home, "a.txt"), "the user's own secret\n")
		config("core.worktree", b.home)(b, "")
	}, control: []string{"diff"}, unseen: "the user's own secret"},
}

// sign makes a commit that claims to be signed.
func sign(b *bench) {
	b.plain("config", "user.signingkey", "x")
	raw := "tree " + b.plain("rev-parse", "HEAD^{tree}") + "\nauthor K <k@example.org> 1700000000 +0000\ncommitter K <k@example.org> 1700000000 +0000\n" +
		"gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nSigned\n"
	b.put("raw", raw)
	b.plain("update-ref", "HEAD", b.plain("hash-object", "-t", "commit", "-w", "raw"))
}

// promise makes the repository one of which parts are still at url.
func promise(b *bench, url string) {
	b.plain("config", "remote.origin.url", url)
	b.plain("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
	b.plain("config", "remote.origin.promisor", "true")
	b.plain("config", "extensions.partialClone", "origin")
	b.plain("config", "core.repositoryFormatVersion", "1")
	blob := b.plain("rev-parse", "HEAD:dir/b.txt")
	if err := os.Remove(filepath.Join(b.top, ".git", "objects", blob[:2], blob[2:])); err != nil {
		b.Fatal(err)
	}
}

// everything are calls of all commands with what makes them look closest.
var everything = []in{
	{"command": "status"},
	{"command": "status", "args": []string{"--long", "--ignored", "-uall"}},
	{"command": "diff"},
	{"command": "diff", "args": []string{"--stat", "-p"}},
	{"command": "diff", "args": []string{"HEAD"}, "paths": []string{"a.txt"}},
	{"command": "log", "args": []string{"-p", "--stat", "-3"}},
	{"command": "log", "args": []string{"-p", "-c", "--cc", "-Sx"}},
	{"command": "log", "args": []string{"--follow", "--oneline"}, "paths": []string{"a.txt"}},
	{"command": "show"},
	{"command": "show", "args": []string{"HEAD:a.txt"}},
	{"command": "show", "args": []string{"HEAD:dir/b.txt"}},
	{"command": "show", "args": []string{"-p", "--cc"}},
	{"command": "blame", "paths": []string{"a.txt"}},
	{"command": "branch", "args": []string{"-vv", "-a"}},
	{"command": "tag", "args": []string{"-n3"}},
	{"command": "remote"},
	{"command": "stash-list"},
	{"command": "grep", "args": []string{"o"}},
	{"command": "grep", "args": []string{"o", "HEAD"}},
}

// Nothing that a repository names runs when it is read.
func TestTraps(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	seen := map[any]bool{}
	inputs := prooftest.Sample(t, everything, 9, func(i in) bool { // the first of each command
		first := !seen[i["command"]]
		seen[i["command"]] = true
		return first
	})
	for _, tt := range traps {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			fired := filepath.Join(b.home, "fired")
			b.put("a.txt", "stashed\n")
			b.plain("stash", "-q")
			fire := b.program(filepath.Join(b.home, "bin", "fire"), "echo \"$0 $*\" >> '"+fired+"'\nexit 1")
			tt.set(b, fire)
			for _, input := range inputs {
				r := b.do(b.reading, input)
				if _, err := os.Stat(fired); err == nil {
					t.Fatalf("%v ran the program:\n%s", input, r.Text)
				}
				if tt.unseen != "" && strings.Contains(r.Text, tt.unseen) {
					t.Fatalf("%v shows what is elsewhere:\n%s", input, r.Text)
				}
			}
			if tt.control == nil {
				return
			}
			out, _ := b.try(tt.control...)
			if _, err := os.Stat(fired); err != nil && (tt.unseen == "" || !strings.Contains(out, tt.unseen)) {
				t.Errorf("the trap does not work with git %v: %s", tt.control, out)
			}
		})
	}
}
