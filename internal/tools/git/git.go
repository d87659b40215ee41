// Package git holds the tools that read a repository and commit to it.
//
// A repository is hostile input: its configuration, attributes and hooks can name
// programs. Reading runs none of them; a commit runs those that git itself would
// run, and its plan names each one. The package never contacts another machine,
// never looks into submodules and starts no goroutines.
package git

import (
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/kit"
)

// Config configures the tools of one session.
type Config struct {
	Box *sandbox.Box // required

	// Git is the path of the git program; "" = it is not installed, and the
	// tools are off.
	Git string

	// Env is the environment of the program. What would steer git (GIT_*), and
	// the names of editors, pagers and programs that ask for passwords are taken
	// out of it. The user's own settings are found through HOME.
	Env []string

	Root string // the workspace, absolute; the tools are on when it is in a repository
}

// Git makes the tools. It is safe for concurrent use.
type Git struct {
	Config
	env     []string
	planned kit.Pins
}

// New returns the tools of a session.
func New(c Config) *Git {
	if c.Box == nil || !filepath.IsAbs(c.Root) {
		panic("git: a Config without Box or Root")
	}
	return &Git{Config: c, env: environment(c.Env)}
}

// Tools returns git__read and git__commit.
func (g *Git) Tools() []agent.Tool { return []agent.Tool{g.read(), g.commit()} }

// Enabled reports whether there is a git and the workspace is in a repository.
// It looks each time: a repository can be made while a session runs, and a look
// is a handful of system calls.
func (g *Git) Enabled() bool {
	if g.Git == "" {
		return false
	}
	_, ok := find(g.Root)
	return ok
}

// conditional is a tool that is listed while there is a repository.
type conditional struct {
	kit.Tool
	git *Git
}

// Enabled is [Git.Enabled].
func (c conditional) Enabled() bool { return c.git.Enabled() }

// steering are the variables that make git run something or look elsewhere,
// besides all those that begin with GIT_.
var steering = []string{
	"SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "PAGER", "LESS", "LESSOPEN", "LV", "EDITOR", "VISUAL", "GPG_TTY",
	"LC_ALL", "LANG", "LANGUAGE", "GIT_*",
}

// environment returns env without what steers git, and with what keeps it quiet,
// local and in the one language in which its messages are understood here.
func environment(env []string) []string {
	return append(sandbox.Scrub(env, steering),
		"LC_ALL=C", "TERM=dumb",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_PAGER=cat", "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:",
		"GIT_ADVICE=0", "GIT_MERGE_AUTOEDIT=no",
	)
}

// in returns the repository that a call is about: the one around its working
// folder.
func (g *Git) in(tc agent.ToolContext) (repository, error) {
	start := tc.Workdir
	if start == "" {
		start = g.Root
	}
	r, ok := find(start)
	switch {
	case g.Git == "":
		return r, kit.Refuse(agent.ErrTool, "git is not installed", "Go on without it.")
	case !ok:
		return r, kit.Refuse(agent.ErrTool, filepath.ToSlash(start)+" is in no git repository", "Go on without git, or ask the user whether to make one.")
	}
	return r, nil
}

// inside returns the paths of a call relative to the top of the repository, with
// slashes. What lies elsewhere is refused: git would compare it as if it were
// part of no repository.
func (r repository) inside(tc agent.ToolContext, paths []string) ([]string, error) {
	const most = 200 // paths
	if len(paths) > most {
		return nil, kit.Refuse(agent.ErrInput, "more than 200 paths", "Name a folder instead.")
	}
	list := make([]string, 0, len(paths))
	for _, p := range paths {
		if p == "" || len(p) > 4096 || strings.ContainsAny(p, "\x00\n") {
			return nil, kit.Refuse(agent.ErrInput, "a path is empty, longer than 4096 bytes, or has NUL or a line end in it", "Name a file or folder.")
		}
		abs := p
		if !filepath.IsAbs(abs) {
			base := tc.Workdir
			if base == "" {
				base = r.top
			}
			abs = filepath.Join(base, p)
		}
		rel, err := filepath.Rel(r.top, abs)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, kit.Refuse(agent.ErrInput, quote(p)+" is outside of the repository "+filepath.ToSlash(r.top), "Name a file or folder of the repository.")
		}
		list = append(list, filepath.ToSlash(rel))
	}
	return list, nil
}

// quote returns at most 80 bytes of s in quotes, for a message.
func quote(s string) string { return kit.Quote(s, 80) }

// appendNew appends the paths that are not in list yet.
func appendNew(list []string, paths ...string) []string {
	for _, p := range paths {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}
