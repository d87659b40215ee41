// Package notes keeps what each type of agent has learnt, in a MEMORY.md per type:
// for the user in all projects, for a project, or for one checkout of it. Programs
// and goroutines may write at the same time; a file is the old one or the new one,
// whole. Old notes move to an archive beside it, so that a file stays small.
//
// It follows no link below the folders that it is given, because a repository may
// bring them. What it returns is data. It starts no goroutines.
package notes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/internal/base/record"
	"dure/internal/knowledge/memory"
)

// Limits.
const (
	MaxLines   = 200      // of a file that is loaded
	MaxBytes   = 25 << 10 // of a file that is loaded
	MaxNote    = 2000     // bytes of one note
	maxSaved   = 256 << 10
	maxArchive = 1 << 20 // bytes of an archive; the oldest go first
	maxTypes   = 1000    // types of agents of one scope
)

// Scope says for whom a note is.
type Scope string

// The scopes.
const (
	User    Scope = "user"
	Project Scope = "project" // shared; the default
	Local   Scope = "local"   // not shared
)

// Errors of requests.
var (
	ErrName  = errors.New("a type of agents has letters, digits, - and _ in its name, at most 64")
	ErrScope = errors.New("a scope is one of: user, project, local")
	ErrLink  = errors.New("it is a link, or no regular file or folder")
	ErrEmpty = errors.New("the note is empty")
	ErrLarge = fmt.Errorf("it is larger than %d bytes", maxSaved)
)

// Store is where notes are. "" for a folder means that there are none of its scopes.
type Store struct {
	User    string           // the user's folder of the program: ~/.dure
	Project string           // the project's: .dure in its root
	Now     func() time.Time // nil = time.Now
}

// Note is a file of notes as it is given to an agent.
type Note struct {
	Path      string
	Text      string // at most MaxLines lines and MaxBytes bytes
	Truncated bool
}

var notePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^- \[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}\] `)
})

const (
	file    = "MEMORY.md"
	archive = "ARCHIVE.md"
	lock    = ".lock"
)

// Load returns the notes of a type; one that has none has no text.
func (s Store) Load(scope Scope, agent string) (Note, error) {
	dir, err := s.dir(scope, agent)
	if err != nil {
		return Note{}, err
	}
	n := Note{Path: filepath.Join(dir, file)}
	text, err := read(n.Path, maxSaved)
	if err != nil {
		return n, err
	}
	n.Text = head(text)
	n.Truncated = len(n.Text) < len(text)
	return n, nil
}

// Save replaces the notes of a type.
func (s Store) Save(scope Scope, agent, text string) error {
	if len(text) > maxSaved {
		return fmt.Errorf("saving the notes of %s: %w", agent, ErrLarge)
	}
	return s.change(scope, agent, func(dir, _ string) error {
		return record.Write(filepath.Join(dir, file), []byte(strings.ToValidUTF8(text, "\uFFFD")))
	})
}

// Append adds one note, as a line with the time, in UTC: notes of a project come from
// everywhere. What would make the file larger than
// what is loaded moves to the archive, the oldest notes first.
func (s Store) Append(scope Scope, agent, text string) error {
	text = memory.OneLine(text, MaxNote)
	if text == "" {
		return fmt.Errorf("adding a note for %s: %w", agent, ErrEmpty)
	}
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	return s.change(scope, agent, func(dir, old string) error {
		if old != "" && !strings.HasSuffix(old, "\n") {
			old += "\n"
		}
		kept, moved := consolidate(old + "- [" + now().UTC().Format("2006-01-02 15:04") + "] " + text + "\n")
		if moved != "" {
			before, err := read(filepath.Join(dir, archive), 2*maxArchive)
			if err != nil {
				return err
			}
			if err := record.Write(filepath.Join(dir, archive), []byte(tail(before+moved))); err != nil {
				return err
			}
		}
		return record.Write(filepath.Join(dir, file), []byte(kept))
	})
}

// List returns the types that have notes, by name.
func (s Store) List(scope Scope) ([]string, error) {
	top, parts, err := s.top(scope)
	if err != nil {
		return nil, err
	}
	dir, err := walk(top, parts...)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing notes: %w", err)
	}
	var types []string
	for _, e := range entries {
		info, err := os.Lstat(filepath.Join(dir, e.Name(), file))
		if e.IsDir() && valid(e.Name()) && err == nil && info.Mode().IsRegular() && len(types) < maxTypes {
			types = append(types, e.Name())
		}
	}
	return types, nil
}

// Delete removes the notes of a type with their archive.
func (s Store) Delete(scope Scope, agent string) error {
	return s.change(scope, agent, func(dir, _ string) error {
		var all error
		for _, name := range []string{file, archive} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				all = errors.Join(all, fmt.Errorf("deleting notes: %w", err))
			}
		}
		return all
	})
}

// change has a file edited under the lock of its folder, which stays.
func (s Store) change(scope Scope, agent string, edit func(dir, old string) error) (err error) {
	dir, err := s.dir(scope, agent)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o755) // of folders that a repository shares
	if scope == User {
		mode = 0o700
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("changing notes: %w", err)
	}
	for _, name := range []string{lock, archive} {
		if err := regular(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	unlock, err := record.Lock(filepath.Join(dir, lock))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	old, err := read(filepath.Join(dir, file), maxSaved)
	if err != nil {
		return err
	}
	return edit(dir, old)
}

func (s Store) top(scope Scope) (dir string, below []string, err error) {
	switch scope {
	case User:
		dir, below = s.User, []string{"agent-memory"}
	case Project, "":
		dir, below = s.Project, []string{"agent-memory"}
	case Local:
		dir, below = s.Project, []string{"agent-memory-local"}
	default:
		return "", nil, fmt.Errorf("scope %q: %w", scope, ErrScope)
	}
	if !filepath.IsAbs(dir) {
		return "", nil, fmt.Errorf("there is no folder for notes of scope %q", scope)
	}
	return filepath.Clean(dir), below, nil
}

func (s Store) dir(scope Scope, agent string) (string, error) {
	if !valid(agent) {
		return "", fmt.Errorf("type of agents %q: %w", agent, ErrName)
	}
	top, parts, err := s.top(scope)
	if err != nil {
		return "", err
	}
	if scope != User { // .dure itself is the repository's
		top, parts = filepath.Dir(top), append([]string{filepath.Base(top)}, parts...)
	}
	return walk(top, append(parts, agent)...)
}

// maxType is how many characters the name of a type may have.
const maxType = 64

// valid reports whether a type can name a folder on every system: letters, digits, -
// and _, the first of them a letter or digit, and no device of Windows.
func valid(agent string) bool {
	if agent == "" || len(agent) > maxType || agent[0] == '-' || agent[0] == '_' {
		return false
	}
	for i := range len(agent) {
		switch c := agent[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	device := strings.ToLower(agent)
	if n := len(device) - 1; n == 3 && device[n] >= '0' && device[n] <= '9' {
		return device[:n] != "com" && device[:n] != "lpt"
	}
	return device != "con" && device != "prn" && device != "aux" && device != "nul"
}

// walk returns the folder below top, none of whose parts is a link.
func walk(top string, parts ...string) (string, error) {
	for _, part := range parts {
		top = filepath.Join(top, part)
		info, err := os.Lstat(top)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", fmt.Errorf("looking for notes: %w", err)
		case !info.IsDir():
			return "", fmt.Errorf("looking for notes: %s: %w", top, ErrLink)
		}
	}
	return top, nil
}

func regular(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = ErrLink
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// read returns a file, "" when it is not there.
func read(path string, limit int64) (string, error) {
	if err := regular(path); err != nil {
		return "", err
	}
	f, err := record.Open(path, os.O_RDONLY) // it may have changed since
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading notes: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = ErrLarge
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), nil
}

// head returns the lines of a text that are loaded.
func head(text string) string {
	at, n := 0, 0
	for l := range strings.Lines(text) {
		if n++; n > MaxLines || at+len(l) > MaxBytes {
			break
		}
		at += len(l)
	}
	return text[:at]
}

// tail returns the last lines of an archive that it has room for.
func tail(text string) string {
	if len(text) <= maxArchive {
		return text
	}
	text = text[len(text)-maxArchive:]
	return text[strings.IndexByte(text, '\n')+1:]
}

// consolidate parts the oldest notes from a text that is too large, a quarter more
// than there have to be, so that it does not happen at each note. What is no note of
// this package's form stays.
func consolidate(text string) (kept, moved string) {
	if head(text) == text {
		return text, ""
	}
	lines, size := slices.Collect(strings.Lines(text)), len(text)
	last := len(lines) - 1 // the newest stays
	var k, m strings.Builder
	left := len(lines)
	for i, l := range lines {
		if i < last && (left > MaxLines*3/4 || size > MaxBytes*3/4) && notePattern().MatchString(l) {
			m.WriteString(l)
			left, size = left-1, size-len(l)
			continue
		}
		k.WriteString(l)
	}
	return k.String(), m.String()
}

// Path returns the file with the notes of a type, which may not be there.
func (s Store) Path(scope Scope, agent string) (string, error) {
	dir, err := s.dir(scope, agent)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, file), nil
}

// Holds reports whether a path, which may not be there, is a file with the notes of
// some type. It is told by the path alone.
func (s Store) Holds(path string) bool {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	if name != file || !filepath.IsAbs(path) || !valid(filepath.Base(dir)) {
		return false
	}
	return slices.ContainsFunc([]Scope{User, Project, Local}, func(scope Scope) bool {
		top, below, err := s.top(scope)
		return err == nil && filepath.Dir(dir) == filepath.Join(append([]string{top}, below...)...)
	})
}

// Render returns notes as data between labels that they cannot forge; "" for none.
func Render(scope Scope, n Note) string {
	text := strings.TrimSpace(n.Text)
	if text == "" {
		return ""
	}
	if n.Truncated {
		text += "\n(there is more in the file)"
	}
	return fmt.Sprintf("<notes scope=%q path=%q>\n%s\n</notes>", scope, n.Path, strings.ReplaceAll(text, "<", "&lt;"))
}
