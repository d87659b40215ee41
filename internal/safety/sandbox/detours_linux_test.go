package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"dure/internal/prooftest"
)

// What is protected stays as it is by whatever way it is reached: links, files that
// stand for a repository, other worktrees, names that lead nowhere yet. Each case
// makes a workspace W beside a folder O that is outside, tries something, and looks.
func TestDetours(t *testing.T) {
	t.Parallel()
	needs(t, "git")
	for _, tt := range []struct{ name, make, try, look string }{
		{
			"a repository behind a link", `git init -q r; mv r/.git real; ln -s real .git`,
			`rm .git; mkdir -p .git; echo ESCAPED > .git/config; echo ESCAPED >> real/config; mkdir x; mv -T x .git`,
			`readlink .git; cat real/config`,
		},
		{
			"a repository behind a link that leads out", `git init -q O/r; ln -s O/r/.git .git`,
			`rm .git; mkdir -p .git; echo ESCAPED > .git/config`, `readlink .git; cat O/r/.git/config`,
		},
		{
			"a repository behind a link that leads nowhere", `ln -s none .git`,
			`git init -q none; mkdir none; echo ESCAPED > none/config; rm .git; mkdir .git`, `readlink .git; ls none`,
		},
		{
			"a repository behind two links", `git init -q r; mv r/.git real; ln -s real two; ln -s two .git`,
			`rm two; mkdir two; echo ESCAPED > two/config`, `readlink two; cat .git/config`,
		},
		{
			"a link to a folder that is missing", `ln -s a/b .claude`,
			`mkdir -p a/b; echo ESCAPED > .claude/settings.json`, `cat .claude/settings.json`,
		},
		{
			"a link to a file that is missing", `ln -s mcp .mcp.json`, `echo ESCAPED > mcp; rm mcp; echo ESCAPED > mcp`, `cat .mcp.json`,
		},
		{
			"links in a circle", `ln -s b a; ln -s a b; ln -s a .mcp.json`, `rm a; echo ESCAPED > a`, `cat .mcp.json`,
		},
		{
			"a repository that is a file", `git init -q --separate-git-dir=O/r .`,
			`rm .git; mkdir .git; echo ESCAPED > .git/config; echo ESCAPED >> O/r/config`, `cat .git O/r/config; git status -s`,
		},
		{
			"a repository that is a long file", `git init -q --separate-git-dir=O/r .; head -c 9000 /dev/zero | tr '\0' '\n' >> .git`,
			`rm .git; mkdir .git; echo ESCAPED > .git/config`, `cat .git; git status -s`,
		},
		{
			"a pipe instead of a repository", `mkfifo .git`, `rm .git; mkdir .git; echo ESCAPED > .git/config`, `ls .git`,
		},
		{
			"the repository of a worktree", `git init -q O/m; git -C O/m commit -q --allow-empty -m x; rm -rf O/m/.git/hooks; rmdir W; git -C O/m worktree add -q W; cd W`,
			`git commit -q --allow-empty -m y || echo ESCAPED > made
			echo ESCAPED >> O/m/.git/config; mkdir -p O/m/.git/hooks && echo ESCAPED > O/m/.git/hooks/x
			echo ESCAPED > O/m/.git/commondir; echo ESCAPED > O/m/.git/worktrees/W/commondir; echo ESCAPED > O/m/.git/worktrees/W/config.worktree
			rm .git; mkdir .git; echo ESCAPED > .git/config; mv O/m/.git O/m/g; mv O/m/.git/worktrees O/m/.git/w`,
			`ls -A . O/m; cat .git O/m/.git/config; ls O/m/.git/hooks O/m/.git/commondir O/m/.git/worktrees/*/config.worktree; cat O/m/.git/worktrees/*/commondir`,
		},
		{
			"settings of a submodule", `git init -q O/s; git -C O/s commit -q --allow-empty -m x; git init -q .; git -c protocol.file.allow=always submodule --quiet add O/s s; rm -rf .git/modules/s/hooks`,
			`echo ESCAPED >> .git/modules/s/config; mkdir .git/modules/s/hooks && echo ESCAPED > .git/modules/s/hooks/x; echo ESCAPED > .git/modules/s/commondir; mv .git/modules .git/m`,
			`cat .git/modules/s/config; ls .git/modules/s/hooks .git/modules/s/commondir`,
		},
		{
			"settings of a worktree alone", `git init -q .; git config extensions.worktreeConfig true`,
			`git config --worktree core.fsmonitor ESCAPED; echo ESCAPED > .git/config.worktree`, `cat .git/config.worktree; git config --list`,
		},
	} {
		for _, m := range []string{byNamespaces, byBwrap} {
			t.Run(tt.name+"/"+m, func(t *testing.T) {
				if m == byBwrap && !prooftest.Long() {
					t.Skip("as by namespaces, which takes seconds: DURE_LONG=1 runs it")
				}
				t.Parallel()
				out := plant(t).out
				b, root := confined(t, m, nil)
				fill := strings.NewReplacer("O/", out+"/", "rmdir W", "rmdir "+root, "add -q W", "add -q "+root, "cd W", "cd "+root, "trees/W", "trees/"+filepath.Base(root))
				outside := func(script string) string {
					cmd := exec.Command("/bin/sh", "-c", fill.Replace(script))
					cmd.Dir = root
					cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
						"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
					text, _ := cmd.CombinedOutput() // what is missing is looked at as well
					return string(text)
				}
				if said := outside(tt.make); said != "" {
					t.Fatal(said)
				}
				before := outside(tt.look)
				who := "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com\n"
				said, _ := output(t, b, root, fill.Replace(who+tt.try), Grant{})
				b.cell.holds.wait()
				if after := outside(tt.look); after != before || strings.Contains(after, "ESCAPED") {
					t.Errorf("it was\n%s\nand became\n%s\n%s", before, after, said)
				}
			})
		}
	}
}

// A folder that calls itself a worktree opens none beside it.
func TestFalseWorktree(t *testing.T) {
	victim := t.TempDir()
	root := filepath.Join(victim, "worktrees", "x")
	write(t, filepath.Join(root, "gitdir"), filepath.Join(root, ".git")+"\n")
	write(t, filepath.Join(root, ".git"), "gitdir: "+root+"\n")
	p, err := profileOf(&Confinement{Roots: []string{root}, ProtectNames: ProtectNames()}, Grant{})
	if err != nil {
		t.Fatal(err)
	}
	if _, r := p.at(filepath.Join(victim, "file")); r.access == Write {
		t.Error("what is beside it can be written")
	}
}

// The repository of a worktree is there for its commands wherever it lies, also where
// commands have a folder of their own otherwise.
func TestWorktreeOfTmp(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "worktree-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	repo, root := filepath.Join(dir, "repo"), filepath.Join(dir, "x")
	git := filepath.Join(repo, ".git", "worktrees", "x")
	write(t, filepath.Join(git, "gitdir"), filepath.Join(root, ".git")+"\n")
	write(t, filepath.Join(root, ".git"), "gitdir: "+git+"\n")
	write(t, filepath.Join(repo, ".git", "config"), "")
	p, err := profileOf(&Confinement{Roots: []string{root}, ProtectNames: ProtectNames()}, Grant{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Access{
		filepath.Join(repo, ".git", "objects"): Write, filepath.Join(repo, ".git", "config"): ReadOnly, filepath.Join(repo, "file"): Private,
	} {
		if _, r := p.at(path); r.access != want {
			t.Errorf("%s: %v, want %v", path, r.access, want)
		}
	}
}

// A worktree that git is just making, for somebody else, is left alone: what is missing in
// it is not the command's when it comes. In one that is made, it is.
func TestWorktreeThatIsBeingMade(t *testing.T) {
	dir := t.TempDir()
	trees := filepath.Join(dir, ".git", "worktrees")
	for _, name := range []string{"new/gitdir", "new/HEAD", "made/gitdir", "made/HEAD", "made/commondir"} {
		write(t, filepath.Join(trees, name), "x\n")
	}
	p, err := profileOf(&Confinement{Roots: []string{dir}, ProtectNames: ProtectNames()}, Grant{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"new/commondir": false, "new/config.worktree": false, "made/config.worktree": true} {
		if swept := slices.Contains(p.sweep, filepath.Join(trees, name)); swept != want {
			t.Errorf("%s is removed when it comes: %v", name, swept)
		}
	}
}

// A folder that is gone when the walls are built, as a worktree beside the command's that
// was removed, has them planned again.
func TestWhatIsGoneMeanwhile(t *testing.T) {
	for _, m := range []string{byBwrap, byNamespaces} {
		t.Run(m, func(t *testing.T) {
			b, root := confined(t, m, nil)
			other := filepath.Join(root, ".git", "worktrees", "other")
			p := &Process{box: b}
			p.cmd = exec.Command("/bin/true")
			p.cmd.Dir, p.cmd.Env = root, []string{}
			p.watch = &witness{}
			plans := 0
			plan := func() (jail, error) {
				plans++
				j, err := b.jail(p.cmd, Cmd{Argv: p.cmd.Args, Dir: root})
				if plans <= maxPlans-1 && err == nil {
					err = os.RemoveAll(other)
				}
				return j, err
			}
			write(t, filepath.Join(other, "commondir"), "../..\n")
			j, err := plan()
			if err != nil {
				t.Fatal(err)
			}
			p.jail = j
			if err := p.begin(plan); err != nil || plans != 2 {
				t.Fatalf("after %d plans: %v", plans, err)
			}
			_ = p.cmd.Wait()
			p.jail.close()
		})
	}
}

// What is hidden in a folder that can be written cannot be moved away by one
// command, for the next to find it at another place; and stays hidden when it is
// protected as well.
func TestHiddenStaysWhereItIs(t *testing.T) {
	for _, m := range []string{byBwrap, byNamespaces} {
		t.Run(m, func(t *testing.T) {
			b, root := confined(t, m, func(c *Confinement) {
				for _, name := range []string{"a/b/key", "link/key", "both"} {
					c.Hide = append(c.Hide, filepath.Join(c.Roots[0], name))
				}
				c.Protect = []string{filepath.Join(c.Roots[0], "both")}
			})
			write(t, filepath.Join(root, "a/b/key"), "ESCAPED\n")
			write(t, filepath.Join(root, "real/key"), "ESCAPED\n")
			write(t, filepath.Join(root, "both"), "ESCAPED\n")
			if err := os.Symlink("real", filepath.Join(root, "link")); err != nil {
				t.Fatal(err)
			}
			output(t, b, root, "mv a c; mv a/b a/c; mv link link2; mv real real2; true", Grant{})
			if out, _ := output(t, b, root, "cat both; find . -type f | xargs cat", Grant{}); strings.Contains(out, "ESCAPED") {
				t.Errorf("it was found: %s", out)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What another command swaps for a link, between the time when walls are planned
// and the time when they are built, opens nothing outside.
func TestSwappedWalls(t *testing.T) {
	t.Parallel()
	for _, m := range []string{byBwrap, byNamespaces} {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			c := plant(t)
			b, root := confined(t, m, nil)
			repository(t, root)
			modules, link := filepath.Join(root, ".git/modules"), filepath.Join(root, ".git/link")
			for _, dir := range []string{modules, c.out} {
				write(t, filepath.Join(dir, "x/HEAD"), "")
				write(t, filepath.Join(dir, "x/config"), "")
			}
			if err := os.Symlink(c.out, link); err != nil {
				t.Fatal(err)
			}
			over := make(chan struct{})
			var swaps sync.WaitGroup
			swaps.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
						_ = unix.Renameat2(unix.AT_FDCWD, modules, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
					}
				}
			})
			runs := 8
			if prooftest.Long() {
				runs = 20
			}
			for range runs {
				cmd := sh("echo ESCAPED > " + c.out + "/x/made")
				cmd.Dir = root
				_, _ = b.Run(t.Context(), cmd) // it may as well not start
			}
			close(over)
			swaps.Wait()
			if present(filepath.Join(c.out, "x/made")) {
				t.Error("it got out")
			}
		})
	}
}

// A link that is protected shows nothing that is hidden.
func TestLinkToWhatIsHidden(t *testing.T) {
	for _, m := range mechanisms {
		t.Run(m, func(t *testing.T) {
			c := plant(t)
			b, root := confined(t, m, func(f *Confinement) { f.Hide = []string{filepath.Join(c.out, "secret")} })
			for name, to := range map[string]string{".mcp.json": "secret/key", ".claude": "secret", ".git": "."} {
				if err := os.Symlink(filepath.Join(c.out, to), filepath.Join(root, name)); err != nil {
					t.Fatal(err)
				}
			}
			if out, _ := output(t, b, root, "cat .mcp.json .claude/key .git/secret/key "+c.out+"/secret/key", Grant{}); strings.Contains(out, "ESCAPED") {
				t.Errorf("it was shown: %s", out)
			}
		})
	}
}

// Who may write a folder may not write for that what is protected in it: a copy into
// the workspace changes no hook. What is named itself, and all of a repository's own
// folder when that is named, is open.
func TestGrantOfAFolder(t *testing.T) {
	b, root := confined(t, byNamespaces, func(c *Confinement) {
		c.Protect = []string{filepath.Join(c.Roots[0], "sub/kept")}
	})
	for _, tt := range []struct {
		grant, script string
		open          bool
	}{
		{".", "echo x > .git/hooks/new", false},
		{".", "echo x >> .git/config", false},
		{".", "mkdir .claude", false},
		{".", "echo x > .git/commondir", false},
		{".", "echo x > sub/kept", false},
		{"sub", "echo x > sub/kept", false},
		{"..", "echo x >> .git/config", false},
		{"sub/kept", "echo x > sub/kept", true},
		{".git/config", "echo x >> .git/config", true},
		{".git", "echo x >> .git/config && echo x > .git/hooks/new && echo x > .git/commondir", true},
		{".claude/settings.json", "mkdir -p .claude && echo x > .claude/settings.json", true},
	} {
		repository(t, root)
		write(t, filepath.Join(root, "sub/kept"), "")
		_, exit := output(t, b, root, tt.script, Grant{Writes: []string{filepath.Join(root, tt.grant)}})
		swept := strings.HasSuffix(tt.script, "commondir") && !present(filepath.Join(root, ".git/commondir"))
		if open := exit.Code == 0 && !swept; open != tt.open {
			t.Errorf("%s granted: %s: %d", tt.grant, tt.script, exit.Code)
		}
	}
}

// Sockets and tokens of the tools that people sign in with are among what is hidden.
func TestHiddenHasWhatSpeaksForTheUser(t *testing.T) {
	hidden := Hidden("/home/u", []string{"SSH_AUTH_SOCK=/srv/agent"})
	for _, path := range []string{
		"/srv/agent", "/home/u/.ssh", "/home/u/.cache/git/credential", "/home/u/.config/github-copilot", "/home/u/Library/Keychains",
		"/run/secrets", "/var/snap/lxd",
	} {
		if !slices.Contains(hidden, path) {
			t.Errorf("%s is not hidden", path)
		}
	}
}

// A folder is removed whose rights were taken away.
func TestRemoveAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	write(t, filepath.Join(dir, "b/c/d"), "")
	for _, path := range []string{"b/c", "b", ""} {
		if err := os.Chmod(filepath.Join(dir, path), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeAll(dir); err != nil || present(dir) {
		t.Error(err)
	}
}
