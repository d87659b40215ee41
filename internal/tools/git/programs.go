package git

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/tools/kit"
)

// hooks are those that a commit can start (githooks(5)).
var hooks = []string{
	"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-rewrite", "reference-transaction", "post-index-change", "pre-auto-gc",
}

// programs is what git would start for a commit.
type programs struct {
	argv    [][]string
	unclear string // why that cannot be told; "" = it is all in argv
}

// key tells two lists of programs apart.
func (p programs) key() string {
	var b strings.Builder
	for _, a := range p.argv {
		b.WriteString(strings.Join(a, "\x00") + "\x00\x00")
	}
	return b.String() + p.unclear
}

// programs finds the hooks, filters and signers that a commit would start. What
// is set up and has nothing to do in this commit is listed all the same.
func (g *Git) programs(ctx context.Context, r repository) (programs, error) {
	list, err := g.settings(ctx, r)
	if err != nil {
		return programs{}, err
	}
	for _, s := range list {
		if s.key == "core.worktree" && !sameFolder(r, s.value) {
			return programs{}, kit.Refuse(agent.ErrTool, "the repository says that its files are elsewhere (core.worktree)", "Tell the user; it may be an attack.")
		}
	}
	var p programs
	p.hooks(r, list, homeOf(g.env))
	p.configured(list)
	p.filters(list)
	p.signers(list)
	return p, nil
}

// sameFolder reports whether core.worktree means the top folder, as it does in
// submodules.
func sameFolder(r repository, worktree string) bool {
	if !filepath.IsAbs(worktree) {
		worktree = filepath.Join(r.dir, worktree)
	}
	a, err1 := os.Stat(worktree)
	b, err2 := os.Stat(r.top)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// lastValue returns the last value of a key, which is the one that counts.
func lastValue(list []setting, key string) (string, bool) {
	for _, s := range slices.Backward(list) {
		if s.key == key {
			return s.value, true
		}
	}
	return "", false
}

func (p *programs) hooks(r repository, list []setting, home string) {
	dir := filepath.Join(r.common, "hooks")
	if set, ok := lastValue(list, "core.hookspath"); ok && set != "" {
		rest, below := strings.CutPrefix(set, "~/")
		switch {
		case below && home != "":
			set = filepath.Join(home, rest)
		case strings.HasPrefix(set, "~") || strings.HasPrefix(set, "%("):
			p.unclear = "its hooks are in " + quote(set)
			return
		case !filepath.IsAbs(set):
			set = filepath.Join(r.top, set)
		}
		dir = set
	}
	for _, name := range hooks {
		for _, file := range []string{name, name + ".exe"} {
			path := filepath.Join(dir, file)
			info, err := os.Stat(path)
			if err == nil && !info.IsDir() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
				p.argv = append(p.argv, []string{path})
			}
		}
	}
}

// configured adds the hooks that the configuration itself holds, hook.NAME.command,
// whichever event they are for: git-hook(1), from git 2.54 on.
func (p *programs) configured(list []setting) {
	for _, s := range list {
		section, _, name := s.parts()
		if section == "hook" && name == "command" && s.value != "" {
			p.shell(s.value)
		}
	}
}

// filters adds what changes files on their way into the repository.
func (p *programs) filters(list []setting) {
	for _, s := range list {
		section, _, name := s.parts()
		if section == "filter" && (name == "clean" || name == "process") && s.value != "" {
			p.shell(s.value)
		}
	}
}

// signers adds what signs the commit.
func (p *programs) signers(list []setting) {
	switch v, ok := lastValue(list, "commit.gpgsign"); strings.ToLower(v) {
	case "false", "no", "off", "0":
		return
	default:
		if !ok {
			return
		}
	}
	format, _ := lastValue(list, "gpg.format")
	program := map[string]string{"ssh": "ssh-keygen", "x509": "gpgsm"}[format]
	if program == "" {
		program, format = "gpg", "openpgp"
		if set, ok := lastValue(list, "gpg.program"); ok {
			program = set
		}
	}
	if set, ok := lastValue(list, "gpg."+format+".program"); ok {
		program = set
	}
	p.argv = append(p.argv, []string{program})
	if set, ok := lastValue(list, "gpg.ssh.defaultkeycommand"); ok && format == "ssh" {
		p.shell(set)
	}
}

// shell adds a command line that git gives to a shell.
func (p *programs) shell(command string) {
	argv := []string{"sh", "-c", command}
	if !slices.ContainsFunc(p.argv, func(a []string) bool { return slices.Equal(a, argv) }) {
		p.argv = append(p.argv, argv)
	}
}
