package policy

import (
	"slices"
	"strings"
	"unicode"
)

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
var unprotected = []string{".claude/worktrees", ".dure/worktrees"}

// Guarded reports whether a path is one that programs take for configuration or code, or
// that holds credentials, or lies below one.
func Guarded(path string) bool { return isProtected(path) }

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
