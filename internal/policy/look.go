package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"dure/agent"
)

// look is a proposal and what can be told of its paths.
type look struct {
	agent.Proposal
	outside   string // a path that it reads or writes outside of the workspace
	protected string // a protected path that it writes
	inside    bool   // it writes inside of the workspace
}

func (s *state) look(p agent.Proposal) look {
	l := look{Proposal: p}
	for _, path := range p.Effects.Reads {
		if !s.holds(path) {
			l.outside = path
		}
	}
	for _, path := range p.Effects.Writes {
		if s.holds(path) {
			l.inside = true
		} else {
			l.outside = path
		}
		if s.guarded(path) {
			l.protected = path
		}
	}
	return l
}

// holds reports whether the workspace holds a path: as it is given and as what
// it resolves to.
func (s *state) holds(path string) bool {
	if s.Resolve == nil || s.Inside == nil || path == "" {
		return false
	}
	given, resolved, err := s.Resolve(path)
	return err == nil && s.Inside(given) && s.Inside(resolved)
}

// guarded reports whether a path is protected: as it is given or as what it
// resolves to.
func (s *state) guarded(path string) bool {
	if isProtected(path) {
		return true
	}
	if s.Resolve == nil {
		return false
	}
	given, resolved, err := s.Resolve(path)
	return err == nil && (isProtected(given) || isProtected(resolved))
}

// floor is what neither rule nor hook lowers.
func (l look) floor(m agent.Mode) agent.Opinion {
	reason := ""
	switch {
	case l.Effects.User:
		reason = "the call needs the user's answer"
	case l.Effects.Transactional:
		reason = "the call is transactional: each one is approved on its own"
	case l.protected != "" && m != agent.ModeBypass:
		reason = l.protected + " is a protected path"
	}
	return opinion("floors", agent.AskUser, reason)
}

// harmless says why a call may run in every mode, or "".
func (l look) harmless() string {
	e := l.Effects
	switch {
	case e.Unreadable != "", e.User, e.Transactional, e.Sensitive,
		len(e.Writes)+len(e.Runs)+len(e.Hosts) > 0, l.outside != "",
		l.Class != agent.Read && l.Class != agent.Idempotent:
		return ""
	case len(e.Reads) == 0:
		return "it touches nothing"
	}
	return "it reads inside the workspace"
}

// row is a line of the mode table. A call can be on several: the strictest
// verdict counts.
type row int

const (
	rowEdit       row = iota // writes inside of the workspace
	rowCommand               // commands, hosts, and all that is none of the others
	rowOutside               // reads or writes outside of the workspace
	rowUnreadable            // nobody can tell
)

// table has the verdicts of the modes on what no rule has decided. What is
// harmless never gets here, and floors come before it.
var table = map[row]map[agent.Mode]agent.Verdict{
	rowEdit: {
		agent.ModeDefault: agent.AskUser, agent.ModeAcceptEdits: agent.Allow, agent.ModePlan: agent.Deny,
		agent.ModeDontAsk: agent.Deny, agent.ModeBypass: agent.Allow,
	},
	rowCommand: {
		agent.ModeDefault: agent.AskUser, agent.ModeAcceptEdits: agent.AskUser, agent.ModePlan: agent.AskUser,
		agent.ModeDontAsk: agent.Deny, agent.ModeBypass: agent.Allow,
	},
	rowOutside: {
		agent.ModeDefault: agent.AskUser, agent.ModeAcceptEdits: agent.AskUser, agent.ModePlan: agent.AskUser,
		agent.ModeDontAsk: agent.Deny, agent.ModeBypass: agent.Allow,
	},
	rowUnreadable: {
		agent.ModeDefault: agent.AskUser, agent.ModeAcceptEdits: agent.AskUser, agent.ModePlan: agent.AskUser,
		agent.ModeDontAsk: agent.Deny, agent.ModeBypass: agent.Allow,
	},
}

// rows returns where the call stands in the table, and why.
func (l look) rows() map[row]string {
	e := l.Effects
	rows := map[row]string{}
	if e.Unreadable != "" {
		rows[rowUnreadable] = "what it would do cannot be told: " + e.Unreadable
	}
	if l.inside {
		rows[rowEdit] = "it changes " + e.Writes[0]
	}
	if l.outside != "" {
		rows[rowOutside] = l.outside + " is outside of the workspace"
	}
	switch {
	case len(e.Runs) > 0:
		rows[rowCommand] = "it runs a command"
	case len(e.Hosts) > 0:
		rows[rowCommand] = "it contacts " + e.Hosts[0]
	case e.Sensitive:
		rows[rowCommand] = "it reads what is private"
	case len(rows) == 0:
		rows[rowCommand] = "it is not known to be harmless"
	}
	return rows
}

// mode is what the mode says. It always says something.
func (l look) mode(m agent.Mode) agent.Opinion {
	best := agent.Opinion{Stage: "mode", Source: string(m)}
	rows := l.rows()
	for _, r := range []row{rowUnreadable, rowEdit, rowOutside, rowCommand} {
		why, ok := rows[r]
		if !ok {
			continue
		}
		v, ok := table[r][m]
		if !ok {
			v = agent.Deny // a mode that nobody knows
		}
		if strictness[v] > strictness[best.Verdict] {
			best.Verdict, best.Reason = v, why
		}
	}
	best.Reason = fmt.Sprintf("mode %s: %s", m, best.Reason)
	if m == agent.ModePlan && best.Verdict == agent.Deny {
		best.Reason += ", and nothing is changed before the plan is approved"
	}
	return best
}

var strictness = map[agent.Verdict]int{agent.Pass: 0, agent.Allow: 1, agent.AskUser: 2, agent.Deny: 3}

// Folders and files that programs take for configuration or code as soon as they
// see them, or that hold credentials. Names are compared without regard to case,
// at any depth: a file system may not regard it either.
var (
	protectedFolders = []string{
		".git", ".config/git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn",
		".claude", ".dure", ".agents", ".ax", ".axcopilot", ".github/workflows",
		".ssh", ".gnupg", ".aws", ".kube", ".docker",
	}
	protectedFiles = []string{
		".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout",
		".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".profile", ".envrc", ".npmrc", ".yarnrc", ".yarnrc.yml",
		".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.cjs", "bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazelversion",
		".bazeliskrc", ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml",
		"gradle-wrapper.properties", "maven-wrapper.properties", ".devcontainer.json", ".ripgreprc", "pyrightconfig.json",
		".mcp.json", ".claude.json", ".netrc", ".pypirc", ".git-credentials", ".gitlab-ci.yml",
	}
)

// unprotected are folders below protected ones in which people work.
var unprotected = []string{".claude/worktrees"}

// isProtected reports whether a path is one of the above or lies below one.
func isProtected(path string) bool {
	p := plain(path)
	if slices.Contains(protectedFiles, p[strings.LastIndex(p[:len(p)-1], "/")+1:len(p)-1]) {
		return true
	}
	for _, free := range unprotected {
		p = strings.ReplaceAll(p, "/"+free+"/", "/")
	}
	return slices.ContainsFunc(protectedFolders, func(f string) bool { return strings.Contains(p, "/"+f+"/") })
}

// plain writes a path between slashes as the most tolerant file systems see it:
// without regard to case, to characters that cannot be seen, to dots and blanks
// at the end of a name, and to streams (name:stream).
func plain(path string) string {
	path = strings.Map(func(r rune) rune {
		switch {
		case r == '\\':
			return '/'
		case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return fold(r)
	}, path)
	var b strings.Builder
	b.WriteByte('/')
	for name := range strings.SplitSeq(path, "/") {
		name, _, _ = strings.Cut(name, ":")
		if name = strings.TrimRight(name, " ."); name == "" {
			continue
		}
		b.WriteString(long(name))
		b.WriteByte('/')
	}
	if b.Len() == 1 {
		return "//"
	}
	return b.String()
}

// fold returns the small letter of ASCII that some file system takes r for, such
// as s for the long one, or else r in lower case.
func fold(r rune) rune {
	for f := unicode.SimpleFold(r); r >= 0x80 && f != r; f = unicode.SimpleFold(f) {
		if f < 0x80 {
			return unicode.ToLower(f)
		}
	}
	return unicode.ToLower(r)
}

// long returns the protected folder that a short name of Windows may stand for:
// six letters at most, without dots, and a number behind them, as in git~1.
func long(name string) string {
	stem, number, short := strings.Cut(name, "~")
	if !short || number == "" || strings.Trim(number, "0123456789") != "" {
		return name
	}
	for _, folder := range protectedFolders {
		letters := strings.TrimPrefix(folder, ".")
		if !strings.Contains(folder, "/") && letters[:min(len(letters), 6)] == stem {
			return folder
		}
	}
	return name
}
