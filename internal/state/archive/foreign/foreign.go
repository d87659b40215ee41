// Package foreign reads the sessions of other products as they lie on disk:
// Claude Code, Codex CLI and OpenCode. It lists them, reads one into messages
// that providers take, and makes the events of a session of our own of it.
//
// What it reads is hostile: every size is bounded, paths within a session are
// text and never opened, and only regular files of the given folder are read, and
// the database that is named.
// It changes nothing and starts no goroutines.
package foreign

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/state/archive/repair"
)

// Source is a product whose sessions can be read.
type Source string

// The products, and what folder of theirs is to be given.
const (
	ClaudeCode Source = "claude-code" // ~/.claude/projects
	Codex      Source = "codex"       // ~/.codex/sessions
	OpenCode   Source = "opencode"    // ~/.local/share/opencode/storage, and the database beside it
)

// The limits of a session. What is beyond them is an error, or left out with a
// warning.
const (
	maxEntries  = 100_000   // records, messages or parts of a session
	maxBytes    = 512 << 20 // bytes that are read for a session
	maxPiece    = 32 << 20  // bytes of a file that is one piece of a session
	maxWarnings = 2000      // of a session
	maxCompacts = 1000      // compactions of a session
	maxName     = 256       // bytes of a title, an ID or a model's name
)

// Config says where sessions are and how to read them.
type Config struct {
	Source Source

	// FS is the product's folder, see Source. One that is opened with os.OpenRoot
	// cannot be left through links.
	FS fs.FS

	// Database is the path of OpenCode's database, which has its newer sessions; ""
	// = there is none. What stands in it counts more than a file of the same session.
	Database string

	// Tool returns the canonical name of a tool; nil, or "", keeps the name.
	Tool func(name string) string
}

// Session is a session of another product.
type Session struct {
	Listed
	Entries  []Entry
	Warnings []string // what was wrong with it, in English
}

// Listed is what is known of a session without reading it whole.
type Listed struct {
	Source  Source    `json:"source"`
	Path    string    `json:"path"` // in the product's folder
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Workdir string    `json:"workdir,omitempty"`
	Model   string    `json:"model,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Bytes   int64     `json:"bytes"` // 0 = in many files
}

// Entry is a message of the conversation, in the form in which a fold of events
// has it: what the user said and the results of calls stand apart, and results in
// the order of their calls.
type Entry struct {
	ID      string
	Time    time.Time // zero = not recorded
	Message agent.Message
	Model   string      // of an answer
	Usage   agent.Usage // of an answer
}

// Open reads the session at a path that [Discover] gave.
func (c Config) Open(path string) (Session, error) {
	s, err := c.open(path)
	if err != nil {
		return Session{}, fmt.Errorf("reading %s session %s: %w", c.Source, path, err)
	}
	return s, nil
}

func (c Config) open(path string) (Session, error) {
	if c.Database != "" && strings.HasPrefix(path, InDatabase) {
		return c.openRow(path)
	}
	if c.Source == OpenCode {
		return c.openFolder(path)
	}
	f, info, err := c.regular(path)
	if err != nil {
		return Session{}, err
	}
	defer func() { _ = f.Close() }()
	s, err := c.Read(f)
	if err != nil {
		return Session{}, err
	}
	s.Path, s.Bytes = path, info.Size()
	if s.Updated.IsZero() {
		s.Updated = info.ModTime().UTC()
	}
	return s, nil
}

// Read reads a session that is one file: the JSONL of Claude Code and Codex, and
// what "opencode export" writes.
func (c Config) Read(r io.Reader) (Session, error) {
	r = io.LimitReader(r, maxBytes+1)
	b := &builder{tool: c.Tool, notes: map[string]note{}}
	b.s.Source = c.Source
	var err error
	switch c.Source {
	case ClaudeCode:
		err = readClaude(r, b)
	case Codex:
		err = readCodex(r, b)
	case OpenCode:
		err = readExport(r, b)
	case Neutral:
		err = readNeutral(r, b)
	default:
		err = fmt.Errorf("unknown product %.40q", c.Source)
	}
	if err != nil {
		return Session{}, err
	}
	return b.finish()
}

// regular opens a file that is one: no link, no device.
func (c Config) regular(path string) (fs.File, fs.FileInfo, error) {
	if !fs.ValidPath(path) {
		return nil, nil, fmt.Errorf("%q is no path within the folder", path)
	}
	if err := noLinks(c.FS, path); err != nil {
		return nil, nil, err
	}
	info, err := fs.Stat(c.FS, path) // a pipe would be waited for
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := c.FS.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() { // it was changed meanwhile
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// noLinks refuses a path of which a part is a link.
func noLinks(fsys fs.FS, path string) error {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		info, err := fs.Lstat(fsys, path[:i])
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link", path[:i])
		}
	}
	return nil
}

// fields are a JSON object, with names as they are written.
type fields map[string]json.RawMessage

func object(raw json.RawMessage) fields {
	var f fields
	_ = json.Unmarshal(raw, &f) // what is no object has no fields
	return f
}

func (f fields) str(names ...string) string {
	for _, n := range names {
		var s string
		if v := f[n]; len(v) > 0 && json.Unmarshal(v, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

func (f fields) yes(name string) bool { return string(f[name]) == "true" }

// count returns a number that counts something.
func (f fields) count(name string) int {
	var n float64
	if v := f[name]; len(v) == 0 || json.Unmarshal(v, &n) != nil || n < 0 || n > 1e12 {
		return 0
	}
	return int(n)
}

// when reads a time: a string of RFC 3339, or milliseconds since 1970.
func (f fields) when(name string) time.Time {
	return repair.Entry{Timestamp: f[name]}.Time()
}

func list(raw json.RawMessage) []json.RawMessage {
	var l []json.RawMessage
	_ = json.Unmarshal(raw, &l) // what is no list has no items
	return l
}

// short cuts a name to what is kept of names.
func short(s string) string {
	for i, r := range s {
		if r == '\n' || i >= maxName {
			return s[:i]
		}
	}
	return s
}
