package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Names of instruction files, the preferred first. In one folder the preferred has
// the highest priority.
var names = []string{"AGENTS.md", "CLAUDE.md", "DURE.md", "AX.md"}

// own are the folders of tools in a project; the last has the highest priority.
var own = []string{".axcopilot", ".ax", ".claude", ".dure"}

// start looks in every layer, from the lowest priority to the highest.
func (s *Set) start() {
	c := s.cfg
	if c.Managed != "" {
		s.instructions(Managed, AtStart, "", c.Root, inFolder(c.Managed, names))
		s.rules(Managed, AtStart, "", filepath.Join(c.Managed, "rules"), c.Root)
	}
	var homes []string
	for _, dir := range slices.Backward(c.User) {
		homes = append(homes, inFolder(dir, names)...)
	}
	if c.Own != "" {
		homes = []string{c.Own}
	}
	s.instructions(User, AtStart, "", c.Root, homes)
	for _, dir := range c.User {
		s.rules(User, AtStart, "", filepath.Join(dir, "rules"), c.Root)
	}
	for _, dir := range between(c.Root, c.Cwd) {
		s.folder(dir, AtStart, "")
	}
	s.begun = s.found.clone()
}

// folder looks in one folder of the project.
func (s *Set) folder(dir, why, trigger string) {
	if s.seen[dir] {
		return
	}
	s.seen[dir] = true
	shared := inFolder(dir, names)
	for _, sub := range slices.Backward(own) {
		shared = append(shared, inFolder(filepath.Join(dir, sub), names)...)
	}
	s.instructions(Project, why, trigger, dir, shared)
	for _, sub := range own {
		s.rules(Project, why, trigger, filepath.Join(dir, sub, "rules"), dir)
	}
	var local []string
	for _, name := range names {
		local = append(local, filepath.Join(dir, strings.TrimSuffix(name, ".md")+".local.md"))
	}
	s.instructions(Local, why, trigger, dir, local)
}

func inFolder(dir string, names []string) []string {
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths
}

// between returns the folders from top down to dir, at most maxFolders; dir alone
// when it is not below top.
func between(top, dir string) []string {
	rel, ok := below(top, dir)
	if !ok {
		return []string{dir}
	}
	dirs := []string{top}
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if part != "." && len(dirs) < maxFolders {
			dirs = append(dirs, filepath.Join(dirs[len(dirs)-1], part))
		}
	}
	return dirs
}

// below returns path as it is seen from top, if it is top or below it.
func below(top, path string) (string, bool) {
	rel, err := filepath.Rel(top, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return rel, true
}

// instructions reads the files of one folder and scope that may say the same. Paths
// begin with the preferred; what they become is added with it at the end.
func (s *Set) instructions(scope Scope, why, trigger, base string, paths []string) {
	var found []File
	if slices.Contains(s.cfg.Without, scope) {
		return
	}
	for _, path := range paths {
		if f, ok := s.open(path, scope, false); ok {
			f.Why, f.Trigger, f.base = why, trigger, base
			found = append(found, f)
		}
	}
	for i := range slices.Backward(found) { // the preferred of two that include one another stays
		f := &found[i]
		for j, other := range found {
			if i != j && f.State == Active && other.State == Active && slices.Contains(other.Includes, f.real) {
				f.State, f.Note = Same, "included by "+other.Path
			}
		}
	}
	for i := range found {
		s.once(&found[i])
	}
	for _, f := range slices.Backward(found) {
		s.add(f)
	}
}

// rules reads the rules below a folder, in the order of their paths.
func (s *Set) rules(scope Scope, why, trigger, dir, base string) {
	if slices.Contains(s.cfg.Without, scope) {
		return
	}
	left := maxRules
	for _, path := range s.ruleFiles(dir, 0, &left) {
		f, ok := s.open(path, scope, true)
		if !ok {
			continue
		}
		f.Why, f.Trigger, f.base = why, trigger, base
		if f.State == Active && len(f.Paths) > 0 {
			f.State = Waiting
		}
		s.once(&f)
		s.add(f)
	}
	if left <= 0 {
		s.warn(FindingMany, dir, fmt.Sprintf("%s has more than %d entries: the rest of its rules was not read", dir, maxRules), "", map[string]string{"limit": strconv.Itoa(maxRules)})
	}
}

func (s *Set) ruleFiles(dir string, depth int, left *int) []string {
	s.watch(dir)
	entries, err := s.cfg.Disk.ReadDir(dir)
	if err != nil || depth > maxNested {
		return nil
	}
	var paths []string
	for _, e := range entries {
		if *left--; *left <= 0 {
			break
		}
		path := filepath.Join(dir, e.Name())
		folder := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := s.cfg.Disk.Stat(path)
			folder = err == nil && info.IsDir()
		}
		switch {
		case folder:
			paths = append(paths, s.ruleFiles(path, depth+1, left)...)
		case strings.EqualFold(filepath.Ext(path), ".md"):
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// open reads a file with what it includes. It returns false when there is none.
func (s *Set) open(path string, scope Scope, rule bool) (File, bool) {
	s.watch(path)
	info, err := s.cfg.Disk.Stat(path)
	if err != nil && errors.Is(err, fs.ErrNotExist) {
		return File{}, false
	}
	f := File{Path: path, Scope: scope, State: Active, Rule: rule}
	switch {
	case s.ours(scope) && !s.cfg.Trusted:
		f.State, f.Note = Untrusted, "the folder is not trusted"
		return f, true
	case err == nil && info.IsDir():
		return File{}, false
	case scope != Managed && s.excluded(path):
		f.State, f.Note = Excluded, "excluded by the settings"
		return f, true
	case s.read >= maxFiles:
		s.warn(FindingMany, "", fmt.Sprintf("more than %d instruction files: the rest was not read", maxFiles), "Keep fewer of them.", map[string]string{"limit": strconv.Itoa(maxFiles)})
		f.State, f.Note = Refused, "too many files"
		return f, true
	}
	s.read++
	if err := s.fill(&f); err != nil {
		f.State, f.Note, f.Text = Refused, err.Error(), ""
		if bad, ok := errors.AsType[*frontError](err); ok {
			s.warn(FindingRule, path, fmt.Sprintf("%s:%d: %s: the rule is not applied", path, bad.line, bad.what), "Mend the lines between the two ---.",
				map[string]string{"line": strconv.Itoa(bad.line), "error": bad.what})
			return f, true
		}
		s.warn(FindingRefused, path, fmt.Sprintf("%s was not read: %v", path, err), "", map[string]string{"error": err.Error()})
	}
	return f, true
}

// fill reads the text of a file, and of a rule what stands in front of it.
func (s *Set) fill(f *File) error {
	text, real, err := s.text(f.Path, f.Scope)
	if err != nil {
		return err
	}
	f.real, f.Hash = real, hash(text)
	body := text
	if f.Rule {
		if body, err = f.head(text); err != nil {
			return err
		}
	}
	e := expansion{set: s, scope: f.Scope, left: maxInclude, room: MaxFile, inline: inline(f.Path)}
	f.Text = strings.TrimSpace(e.expand(body, f.Path, []string{real}))
	f.Includes = e.files
	f.Chars = utf8.RuneCountInString(f.Text)
	if f.Chars > LongFile {
		s.warn(FindingLong, f.Path, fmt.Sprintf("%s has %d characters, more than %d: splitting it is recommended", f.Path, f.Chars, LongFile),
			"Move parts of it to rules with paths.", map[string]string{"chars": strconv.Itoa(f.Chars), "limit": strconv.Itoa(LongFile)})
	}
	return nil
}

// head reads what stands in front of a rule, and returns what follows it.
func (f *File) head(text string) (body string, err error) {
	front, body, err := parseFront(text)
	if err != nil {
		return "", err
	}
	globs, err := compile(front.paths)
	if err != nil {
		return "", &frontError{front.line, err.Error()}
	}
	f.Name, f.Paths, f.globs = front.name, front.paths, globs
	return body, nil
}

// text reads and decodes a file, and returns where its path leads.
func (s *Set) text(path string, scope Scope) (text, real string, err error) {
	real, err = s.cfg.Disk.Real(path)
	if err != nil {
		return "", "", bare(err)
	}
	if err := s.mayRead(path, real, scope); err != nil {
		return "", "", err
	}
	if s.bytes >= maxBytes {
		return "", "", fmt.Errorf("the files have more than %d bytes", maxBytes)
	}
	data, err := s.cfg.Disk.ReadFile(real, MaxFile)
	if err != nil {
		return "", "", bare(err)
	}
	s.bytes += len(data)
	text, err = decode(data)
	return text, real, err
}

// once marks a file that says what an earlier one has said already.
func (s *Set) once(f *File) {
	if f.State != Active && f.State != Waiting {
		return
	}
	key := hash(strings.Join(f.globs, "\n") + "\x00" + f.Text)
	if first, ok := s.byReal[f.real]; ok {
		f.State, f.Note = Same, "the same file as "+first
		return
	}
	if first, ok := s.byHash[key]; ok {
		f.State, f.Note = Same, "the same text as "+first
		return
	}
	s.byReal[f.real], s.byHash[key] = f.Path, f.Path
}

func (s *Set) add(f File) {
	if f.State != Active {
		f.Why, f.Trigger = "", ""
	}
	if len(s.files) < 2*maxFiles {
		s.files = append(s.files, f)
	}
}

// ours reports whether files of a scope are the project's to write.
func (s *Set) ours(scope Scope) bool { return scope == Project || scope == Local }

func (s *Set) excluded(path string) bool {
	slash := filepath.ToSlash(path)
	return slices.ContainsFunc(s.cfg.Excludes, func(pattern string) bool {
		ok, err := doublestar.Match(filepath.ToSlash(pattern), slash)
		return ok && err == nil
	})
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// bare is err without the path that its reader is told anyway.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
