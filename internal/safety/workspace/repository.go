package workspace

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// The limits of what is read of a repository. One that goes beyond them is taken
// for one that runs programs.
const (
	maxSettings = 256 << 10 // bytes of one file of settings
	maxAbove    = 64        // folders above the one that is asked about
	maxModules  = 200       // submodules, and folders on the way to them
	maxBranch   = 255       // bytes of the name of a branch
)

// RunsPrograms reports whether git, when it only shows something of the repository
// that a folder is in (status, log, diff, show), may run what the repository itself
// names: a monitor, a filter, a program that makes text of files, a hook. So it may
// when that cannot be told. What the user's own settings name is not looked at, nor
// submodules that stand in no .gitmodules.
func RunsPrograms(dir string) bool {
	dir = filepath.Clean(dir)
	for range maxAbove {
		if r, ok := repositoryAt(dir); ok {
			return r.runs()
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
	return true
}

// Branch is the branch that is checked out where a folder is, as its repository says: "HEAD" =
// none is, "" = there is no repository, or it cannot be told.
func Branch(dir string) string {
	dir = filepath.Clean(dir)
	for range maxAbove {
		if r, ok := repositoryAt(dir); ok {
			if r.dir == "" {
				return ""
			}
			text, _ := settingsText(filepath.Join(r.dir, "HEAD"))
			to, onBranch := strings.CutPrefix(strings.TrimSpace(text), "ref:")
			name, ok := strings.CutPrefix(strings.TrimSpace(to), "refs/heads/")
			switch {
			case text == "" || onBranch && (!ok || name == unborn || len(name) > maxBranch || strings.ContainsAny(name, "\x00\r\n")):
				return ""
			case !onBranch:
				return "HEAD"
			}
			return name
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return ""
}

// unborn is what the file says that names the branch where that is kept elsewhere.
const unborn = ".invalid"

// repository is where git finds one.
type repository struct {
	top    string // the folder with .git in it
	dir    string // .git, or where the .git file points
	shared string // what worktrees share
	linked bool   // .git is a file
}

func repositoryAt(dir string) (repository, bool) {
	git := filepath.Join(dir, ".git")
	info, err := os.Stat(git)
	switch {
	case err == nil && info.IsDir():
		return repository{top: dir, dir: git, shared: sharedOf(git)}, true
	case err == nil:
		text, _ := settingsText(git)
		to, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir:")
		if to = strings.TrimSpace(to); !ok || to == "" {
			return repository{}, true // of which nothing can be told
		}
		to = beside(dir, to)
		return repository{top: dir, dir: to, shared: sharedOf(to), linked: true}, true
	}
	for _, part := range []string{"HEAD", "objects", "refs"} { // a folder can be one itself
		if _, err := os.Stat(filepath.Join(dir, part)); err != nil {
			return repository{}, false
		}
	}
	return repository{top: dir, dir: dir, shared: dir}, true
}

func sharedOf(git string) string {
	if text, ok := settingsText(filepath.Join(git, "commondir")); ok && text != "" {
		return beside(git, strings.TrimSpace(text))
	}
	return git
}

func beside(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// settingsText reads a small file. One that is missing is empty; it is not ok when
// it cannot be read as a whole.
func settingsText(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", os.IsNotExist(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxSettings {
		return "", false
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	return string(data), err == nil && len(data) <= maxSettings
}

func (r repository) runs() bool {
	if r.dir == "" {
		return true
	}
	hooks := filepath.Join(r.shared, "hooks")
	for _, path := range []string{filepath.Join(r.shared, "config"), filepath.Join(r.dir, "config.worktree")} {
		s, ok := readSettings(path)
		if !ok || s.runs || s.elsewhere && !r.linked {
			return true
		}
		if s.hooks != "" {
			hooks = beside(r.top, s.hooks)
		}
	}
	if _, err := os.Stat(filepath.Join(hooks, "post-index-change")); err == nil {
		return true
	}
	return r.modules()
}

// modules reports whether a submodule runs programs: git asks each what has changed
// in it.
func (r repository) modules() bool {
	left := maxModules
	if settingsBelow(filepath.Join(r.shared, "modules"), 0, &left) {
		return true
	}
	text, ok := settingsText(filepath.Join(r.top, ".gitmodules"))
	if !ok {
		return true
	}
	for line := range strings.Lines(text) {
		key, path, _ := strings.Cut(line, "=")
		if !strings.EqualFold(strings.TrimSpace(key), "path") {
			continue
		}
		if left--; left < 0 {
			return true
		}
		s, ok := readSettings(filepath.Join(r.top, strings.Trim(strings.TrimSpace(path), `"`), ".git", "config"))
		if !ok && !s.linked || s.runs {
			return true
		}
	}
	return false
}

// settingsBelow looks through the repositories of submodules, whose names may have
// slashes in them.
func settingsBelow(dir string, depth int, left *int) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return !os.IsNotExist(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if *left--; *left < 0 || depth > 4 {
			return true
		}
		below := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(below, "HEAD")); err != nil {
			if settingsBelow(below, depth+1, left) {
				return true
			}
			continue
		}
		if s, ok := readSettings(filepath.Join(below, "config")); !ok || s.runs {
			return true
		}
		if _, err := os.Stat(filepath.Join(below, "hooks", "post-index-change")); err == nil {
			return true
		}
		if settingsBelow(filepath.Join(below, "modules"), depth+1, left) {
			return true
		}
	}
	return false
}

// settings is what counts of a file of settings.
type settings struct {
	runs      bool   // it names a program, or more files with settings
	elsewhere bool   // it says where the files are
	hooks     string // the folder of hooks
	linked    bool   // there is no such file, as .git is one itself

	fetches, transport, signs, signer bool
}

func readSettings(path string) (settings, bool) {
	var s settings
	if info, err := os.Stat(filepath.Dir(path)); err == nil && !info.IsDir() {
		s.linked = true // its settings are among the modules
		return s, false
	}
	text, ok := settingsText(path)
	if !ok {
		return s, false
	}
	section, name := "", ""
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSpace(line)
		for strings.HasPrefix(line, "[") {
			end := headerEnd(line)
			if end < 0 {
				return s, false
			}
			section, name = header(line[1:end])
			line = strings.TrimSpace(line[end+1:])
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		s.take(section, name, strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"`))
	}
	s.runs = s.runs || s.fetches && s.transport || s.signs && s.signer
	return s, true
}

// headerEnd is where a section's header ends: a bracket in quotes belongs to a name.
func headerEnd(line string) int {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ']':
			if !quoted {
				return i
			}
		}
	}
	return -1
}

// header tells a section from the name in it: [diff "x"], [diff.x].
func header(text string) (section, name string) {
	if i := strings.IndexAny(text, " \t\"."); i >= 0 {
		text, name = text[:i], text[i:]
	}
	return strings.ToLower(text), name
}

func (s *settings) take(section, name, key, value string) {
	full := section + "." + key
	switch {
	case full == "core.fsmonitor":
		s.runs = s.runs || !isBool(value)
	case full == "core.worktree":
		s.elsewhere = true
	case full == "core.hookspath":
		s.hooks = value
	case section == "include", section == "includeif":
		s.runs = s.runs || key == "path"
	case section == "diff" && (key == "external" || key == "command" || key == "textconv"):
		s.runs = true
	case section == "filter" && (key == "clean" || key == "smudge" || key == "process"):
		s.runs = s.runs || !strings.HasPrefix(value, "git-lfs ") || strings.ContainsAny(value, "$`;|&<>(){}\\\n")
	case full == "log.showsignature":
		s.signs = true
	case section == "gpg" && key == "program":
		s.signer = true
	case full == "extensions.partialclone", section == "remote" && key == "promisor":
		s.fetches = true
	case full == "core.sshcommand", full == "core.gitproxy", section == "remote" && (key == "uploadpack" || key == "vcs"),
		(section == "remote" || section == "url") && strings.Contains(name+value, "::"):
		s.transport = true
	}
}

func isBool(value string) bool {
	switch strings.ToLower(value) {
	case "", "true", "false", "yes", "no", "on", "off", "0", "1":
		return true
	}
	return false
}
