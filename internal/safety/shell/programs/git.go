package programs

import "strings"

// readGitLog reads status, log, diff and show: revisions, and paths that git
// takes from the work tree or, outside of it, from anywhere. Which of the two a
// word is cannot be told, so that all are read that look like a path.
func readGitLog(r *reading) {
	_, files := r.has("--no-index")
	for i, w := range r.operands {
		if !r.known(w) {
			continue
		}
		if strings.HasPrefix(w.Text, ":/") && r.ended < 0 && !files {
			continue // a search in messages
		}
		if _, file, ok := strings.Cut(w.Text, ":"); ok && file != "" && r.ended < 0 && !files {
			r.reads(Word{Text: file, Known: true}) // revision:path
			continue
		}
		if files || r.ended >= 0 && i >= r.ended || leavesFolder(w.Text) ||
			strings.ContainsAny(w.Text, "./") && !strings.Contains(w.Text, "..") {
			r.reads(w)
		}
	}
	for _, s := range r.seen {
		if (s.name == "--format" || s.name == "--pretty") && strings.Contains(s.value.Text, "%G") {
			r.flag(s.name + " with a signature, which gpg checks")
		}
	}
}

// leavesFolder says that a word is a path that may lead out of the folder it is
// used in.
func leavesFolder(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, "./") || s == ".." ||
		strings.HasPrefix(s, "../") || strings.Contains(s, "/../") || strings.HasSuffix(s, "/..")
}

// readGitRemote reads what talks to another repository: the first operand is its
// name, its URL or its path.
func readGitRemote(r *reading) {
	for i, w := range r.operands {
		if i > 0 {
			r.harmless(w)
			if r.g.names[0] == "clone" {
				r.writes(w)
			}
			continue
		}
		r.gitURL(w)
	}
	if r.g.names[0] == "clone" && len(r.operands) == 1 && r.operands[0].Known {
		t := strings.TrimSuffix(strings.TrimRight(r.operands[0].Text, "/"), "/.git")
		if at := strings.LastIndexAny(t, "/:"); at >= 0 {
			t = t[at+1:]
		}
		r.writes(Word{Text: strings.TrimSuffix(t, ".git"), Known: true})
	}
	if s, ok := r.has("--repo"); ok {
		r.gitURL(s)
	}
}

// readGitArchive reads trees and paths in them. With --remote these are of another
// repository.
func readGitArchive(r *reading) {
	for _, w := range r.operands {
		r.harmless(w)
	}
	if s, ok := r.has("--remote"); ok {
		r.gitURL(s)
	}
}

// gitURL notes the host of a repository. A transport with two colons is a program
// of that name; ext is one that runs its argument.
func (r *reading) gitURL(w Word) {
	if !r.known(w) {
		return
	}
	if transport, rest, ok := strings.Cut(w.Text, "::"); ok && isTransport(transport) {
		r.flag(transport + "::")
		if strings.EqualFold(transport, "ext") {
			r.use.Scripts = append(r.use.Scripts, Word{Text: rest, Known: true})
		}
		return
	}
	if scheme, rest, ok := cutScheme(w.Text); ok {
		if strings.EqualFold(scheme, "file") {
			r.reads(Word{Text: filePath(rest), Known: true})
			return
		}
		r.authority(w, rest)
		return
	}
	if h, ok := remoteHost(w.Text); ok {
		r.host(Word{Text: h, Known: true})
		return
	}
	if strings.ContainsAny(w.Text, "/") && leavesFolder(w.Text) {
		r.reads(w)
	}
}

func isTransport(s string) bool {
	for _, c := range s {
		if c != '-' && c != '+' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != ""
}

// gitPrograms are the settings of git that name something to run, or a file that
// has more settings. A star stands for a name in the middle.
var gitPrograms = []string{
	"alias.", "pager.", "core.pager", "core.editor", "core.hookspath", "core.fsmonitor", "core.sshcommand",
	"core.askpass", "core.gitproxy", "core.attributesfile", "core.worktree", "core.alternaterefscommand",
	"credential.", "gpg.", "include.", "includeif.", "protocol.", "url.", "filter.", "diff.external", "sequence.editor",
	"sendemail.", "init.templatedir", "uploadpack.", "browser.", "difftool.", "mergetool.", "man.", "web.browser",
	"http.", "https.", "trailer.", "instaweb.", "interactive.difffilter", "commit.template", "guitool.", "remote.",
	"submodule.", "hook.", "extensions.", "safe.", "tar.", "imap.", "lfs.", "annex.", "trace2.", "gc.recentobjectshook",
}

// readGitConfig flags what sets one of them. Reading settings is harmless.
func readGitConfig(r *reading) {
	if _, ok := r.has("-e", "--edit"); ok {
		r.flag("an editor")
	}
	if _, ok := r.has("--rename-section"); ok {
		r.flag("renames settings")
	}
	args := r.operands
	reading := false
	if _, ok := r.has("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "--unset", "--unset-all", "--get-color", "--get-colorbool"); ok {
		reading = true
	}
	if len(args) > 0 {
		switch args[0].Text {
		case "get", "list", "unset", "remove-section":
			reading = true
		case "rename-section":
			r.flag("renames settings")
		case "edit":
			r.flag("an editor")
		case "set":
			args = args[1:]
		}
	}
	for _, w := range args {
		r.harmless(w)
	}
	if reading || len(args) < 2 {
		return
	}
	if !r.known(args[0]) {
		return
	}
	key := strings.ToLower(args[0].Text)
	for _, p := range gitPrograms {
		if strings.HasPrefix(key, p) {
			r.flag("a setting that names a program")
			r.suspect(args[1].Text)
			return
		}
	}
	if strings.HasPrefix(key, "branch.") && strings.Contains(args[1].Text, "::") {
		r.flag("a setting that names a program")
	}
	if strings.HasPrefix(key, "diff.") || strings.HasPrefix(key, "merge.") {
		for _, end := range []string{".command", ".textconv", ".driver", ".external", ".cmd", ".path", ".tool"} {
			if strings.HasSuffix(key, end) {
				r.flag("a setting that names a program")
				r.suspect(args[1].Text)
			}
		}
	}
}

// readGitScript reads sub-commands that take a command: bisect run, submodule
// foreach.
func readGitScript(r *reading) {
	if len(r.operands) == 0 {
		return
	}
	if r.g.names[0] == "run" {
		r.flag("bisect run")
		r.runs(r.operands)
		return
	}
	r.flag(r.g.names[0])
	if len(r.operands) == 1 {
		r.role(roleRun, "", r.operands[0])
		return
	}
	r.runs(r.operands)
}
