// Package memory finds the files that tell a model how to work in a project, in
// their layers from the organisation's to the user's own for one checkout, with what
// they include and the rules that hold for some paths only. It labels each text with
// where it comes from, and bounds all of it. Below it, notes keeps what types of
// agents have learnt, and lessons what came of past tasks.
//
// Nothing that a project brings is read before its folder is trusted, and all of it
// is text: it decides nothing. This package writes no file and starts no goroutines.
package memory

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"dure/agent/query"
)

// The limits. Beyond them something is left out, and a finding or a comment in the
// text says so.
const (
	MaxFile    = 4 << 20  // bytes of one file
	LongFile   = 40_000   // characters of one file beyond which it should be split
	MaxText    = 200_000  // characters of all that is active, unless Config says otherwise
	MaxDepth   = 5        // files that include one another
	maxInclude = 256      // includes of one file and of what it includes
	maxBytes   = 64 << 20 // of all files that are read
	maxFiles   = 512      // files that are read, included ones not counted
	maxWatched = 8192     // places that are looked at for changes
	maxRules   = 1000     // entries below one folder of rules
	maxNested  = 8        // folders of rules in one another
	maxFolders = 64       // folders between the project's root and a file
)

// Scope is the layer that a file belongs to.
type Scope string

// The scopes, from the lowest priority to the highest.
const (
	Managed Scope = "managed" // the organisation's
	User    Scope = "user"    // the user's, in all projects
	Project Scope = "project" // of a folder, shared with others
	Local   Scope = "local"   // of a folder, the user's own
)

// Why a file is active, in the words of the hook that is told.
const (
	AtStart  = "session_start"
	Nested   = "nested_traversal" // a file below its folder was touched
	ByPath   = "path_glob_match"  // a file that its paths match was touched
	Included = "include"
)

// State says what became of a file that was found.
type State string

// The states.
const (
	Active    State = "active"
	Waiting   State = "waiting"   // for a file that its paths match
	Untrusted State = "untrusted" // the folder is not trusted: nothing was read
	Excluded  State = "excluded"  // by the settings
	Same      State = "same"      // it is read already, see Note
	Refused   State = "refused"   // it cannot be read, see Note
)

// A File is one file that was found, in the order of priority.
type File struct {
	Path  string `json:"path"`
	Scope Scope  `json:"scope"`
	State State  `json:"state"`
	Why   string `json:"why,omitempty"`  // of an active one
	Note  string `json:"note,omitempty"` // why it is not active

	Rule  bool     `json:"rule,omitempty"`
	Name  string   `json:"name,omitempty"`  // that a rule gives itself
	Paths []string `json:"paths,omitempty"` // that a rule holds for; none = all

	Hash     string   `json:"hash,omitempty"` // SHA-256 of what it holds, hex
	Chars    int      `json:"chars,omitempty"`
	Includes []string `json:"includes,omitempty"` // files in its text, each once
	Trigger  string   `json:"trigger,omitempty"`  // the file whose touch made it active

	// Text is what it tells, with what it includes and without its comments.
	Text string `json:"-"`

	base  string   // folder that the file is for, and that Paths start at
	globs []string // Paths, ready to match
	real  string
}

// Disk is how files are reached. Paths are absolute.
type Disk struct {
	// ReadFile reads a regular file, and fails when it holds more than limit bytes.
	// It gets what Real has returned, and follows no further links.
	ReadFile func(path string, limit int64) ([]byte, error)
	Stat     func(path string) (fs.FileInfo, error)
	ReadDir  func(path string) ([]fs.DirEntry, error)

	// Real returns where a path leads when every link in it is followed.
	Real func(path string) (string, error)
}

// Config says where to look. Folders are absolute; "" = there is none.
type Config struct {
	Disk    Disk     // required, see [OS]
	Managed string   // folder of the organisation
	User    []string // folders of the user: ~/.claude, ~/.dure; the last has the highest priority
	Own     string   // a file in the place of the instruction files in User; "" = those
	Home    string   // what ~ stands for
	Root    string   // of the project; required
	Cwd     string   // Root or a folder below it; "" = Root

	// Trusted: the project's folder is. Outside: the user has agreed that files of
	// the project read others that lie outside of it.
	Trusted, Outside bool

	// Secret reports whether a file holds credentials. No file may include one; nil =
	// only those are known that this package knows by their names.
	Secret func(path string) bool

	Without  []Scope  // that are not read at all
	Excludes []string // patterns of absolute paths that are not read; managed files are
	Depth    int      // 0 = MaxDepth, which is also the most
	Chars    int      // of all active files together; 0 = MaxText
}

// Set is what was found. It is safe for concurrent use.
type Set struct {
	cfg  Config
	root string // where Root leads

	mu sync.Mutex
	found
	begun    found // as it was after the start
	stamps   map[string]stamp
	findings []query.Finding
	read     int
	bytes    int // read so far
	touched  int // characters that became active after the start
}

// found is what was found so far.
type found struct {
	files  []File
	seen   map[string]bool   // folders whose files were looked for
	byReal map[string]string // where what was read leads, to its path
	byHash map[string]string // what it says, to its path
}

func (f found) clone() found {
	return found{slices.Clone(f.files), maps.Clone(f.seen), maps.Clone(f.byReal), maps.Clone(f.byHash)}
}

// Load finds the files and reads those that are active at the start. What is wrong
// with a file is a finding, not an error.
func Load(c Config) (*Set, error) {
	if c.Cwd == "" {
		c.Cwd = c.Root
	}
	for _, dir := range []string{c.Root, c.Cwd} {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("loading instructions: the folder %q is not absolute", dir)
		}
	}
	if c.Disk.ReadFile == nil || c.Disk.Stat == nil || c.Disk.ReadDir == nil || c.Disk.Real == nil {
		return nil, fmt.Errorf("loading instructions: no access to files")
	}
	c.Root, c.Cwd = filepath.Clean(c.Root), filepath.Clean(c.Cwd)
	if c.Depth <= 0 || c.Depth > MaxDepth {
		c.Depth = MaxDepth
	}
	if c.Chars <= 0 {
		c.Chars = MaxText
	}
	s := &Set{
		cfg: c, stamps: map[string]stamp{},
		found: found{seen: map[string]bool{}, byReal: map[string]string{}, byHash: map[string]string{}},
	}
	root, err := c.Disk.Real(c.Root)
	if err != nil {
		return nil, fmt.Errorf("loading instructions of %s: %w", c.Root, err)
	}
	s.root = root
	s.start()
	return s, nil
}

// Files returns all files that were found, in the order of priority, the lowest
// first. Those that became active later stand at the end.
func (s *Set) Files() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.files)
}

// Level returns the files of one scope.
func (s *Set) Level(scope Scope) []File {
	var some []File
	for _, f := range s.Files() {
		if f.Scope == scope {
			some = append(some, f)
		}
	}
	return some
}

// Findings returns what the user should know of the files.
func (s *Set) Findings() []query.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.findings)
}

// Codes of findings.
const (
	FindingLong    = "memory-long"    // path, chars, limit
	FindingRule    = "memory-rule"    // path, line, error
	FindingRefused = "memory-refused" // path, error
	FindingMany    = "memory-many"    // limit
	FindingOutside = "memory-outside" // path, include
	FindingTotal   = "memory-total"   // chars, limit, dropped
)

// warn records a finding, each once.
func (s *Set) warn(code, path, detail, fix string, args map[string]string) {
	if args == nil {
		args = map[string]string{}
	}
	args["path"] = path
	for _, f := range s.findings {
		if f.Code == code && f.Name == path && f.Detail == detail {
			return
		}
	}
	if len(s.findings) < maxFiles {
		s.findings = append(s.findings, query.Finding{
			Group: "memory", Name: path, State: "warn", Code: code, Detail: detail, Fix: fix, Args: args,
		})
	}
}
