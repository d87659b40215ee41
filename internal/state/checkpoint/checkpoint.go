// Package checkpoint keeps what the folders of a session look like around its
// calls, so that edits, shell commands and deletions can be shown and undone.
//
// It owns one folder: contents by their SHA-256 in packs, and a log of
// snapshots, each as its difference from the one before. It reads the user's
// folders, and writes to them in [Store.Apply] and [Store.Recover] alone. It
// never touches a .git, never follows a link, and never overwrites or deletes
// what it has not kept, or what somebody else has changed, unless that is forced.
// The goroutines of a walk, of a bounded number, end before the call returns.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Defaults of a [Config].
const (
	DefaultMaxFile  = 10 << 20
	DefaultMaxBytes = 2 << 30
	DefaultMaxFiles = 200_000
)

// Config says what a store keeps, and where. Dir and Roots are required.
type Config struct {
	// Dir is the store's own folder, which is made when it is missing. When it
	// lies in a root it is left out of the snapshots.
	Dir string

	// Roots are the folders that are kept: absolute. The first has to be there; in
	// the place of another that is not, there is nothing. One inside of another is
	// kept with it.
	Roots []string

	// Leave are files and folders, absolute, that are left alone wherever they lie:
	// nothing looks at them, and nothing writes there. The program's own data has to
	// be among them, or a rewind would take back its logs. Dir always is.
	Leave []string

	// Ignored reports whether an entry, by its absolute path, is left out; a folder
	// is with all that is in it. It is called from several goroutines. nil = the
	// rules of .gitignore and .git/info/exclude; without a repository, the folders
	// of package managers and caches.
	Ignored func(path string, dir bool) bool

	// Passing reports whether a folder of this mode is somebody's mark that will be
	// gone again, and is never looked at. nil = none is.
	Passing func(fs.FileMode) bool

	MaxFile  int64 // larger files are not kept; 0 = DefaultMaxFile, at most 1 GiB; one is read into memory
	MaxBytes int64 // of the packs; the oldest snapshots go first; 0 = DefaultMaxBytes
	MaxFiles int   // entries of one walk; more are an error; 0 = DefaultMaxFiles

	// ReadOnly opens a store that another process may be using: what it holds can be
	// shown, and nothing is written. What that process drops meanwhile is damaged for
	// this one. Roots need not exist then.
	ReadOnly bool

	// NoSync leaves out bringing the store to the disk: for scratch sessions. What
	// a rewind writes to the user's files is brought there always.
	NoSync bool

	Now func() time.Time // nil = time.Now

	// Fault is for crash tests. It is called before and after each change of the
	// disk, on the goroutine that makes it, which may hold locks: it may end the
	// process, but not call the store. The boundaries are named after what changes:
	// pack, log, index, intent, then .write, .written, .synced, .named, .removed; and
	// for the user's files file, folder, link, mode, remove, with .temp, .named,
	// .done.
	Fault func(boundary string)
}

// Errors that callers branch on. They arrive wrapped.
var (
	ErrUnknown = errors.New("there is no such snapshot")
	ErrDamaged = errors.New("the stored content is damaged")
	ErrTooMany = errors.New("there are too many files")
	ErrPending = errors.New("a rewind was cut short: it has to be recovered first")
	ErrInUse   = errors.New("another process uses the store")
)

// ID names a snapshot of a store.
type ID string

// Label is what the caller knows of a snapshot. Texts longer than 4 KiB are cut.
type Label struct {
	Session string // whose call it is: several may share a store
	Call    string // the call that it was taken before or after
	Text    string

	// Ours says that what changed since the snapshot before was done by the
	// session itself: a snapshot after a call has it, one before a call has not.
	// What others changed is not overwritten by a rewind unless that is forced;
	// what they do in the course of a call cannot be told from what it does.
	Ours bool
}

// Snapshot is one state of the roots.
type Snapshot struct {
	ID      ID
	Time    time.Time
	Label   Label
	Files   int64 // kept
	Bytes   int64 // of the kept files
	Changed int   // entries that differ from the snapshot before
}

// Store keeps snapshots. It is safe for concurrent use; calls wait for each other.
type Store struct {
	dir      string
	roots    []string // as paths of a tree, resolved, none below another
	given    []string // Roots as they were named, in the same form
	leave    []string // as paths of a tree, resolved
	ignored  func(path string, dir bool) bool
	passing  func(fs.FileMode) bool
	maxFile  int64
	maxBytes int64
	maxFiles int
	now      func() time.Time
	fault    func(string)
	lock     *flock.Flock // nil = read only

	mu      sync.Mutex
	blobs   *blobs
	log     *log
	state   map[string]*node // the newest snapshot, with what the last walk saw
	stale   int              // nodes whose stat is not in the index on the disk
	gen     uint32           // of the last walk
	rules   ruleFiles
	pending *intent // a rewind that was cut short
	closed  bool
}

// node is an entry of the newest snapshot.
type node struct {
	entry
	st   stat
	sure bool   // a file with this stat has this content
	seen uint32 // the walk that saw it last
}

// Open opens the store in a folder. When a rewind was cut short, Pending says so,
// and nothing but reading is possible before Recover.
func Open(c Config) (*Store, error) {
	s, err := open(c)
	if err != nil {
		return nil, fmt.Errorf("opening the snapshots in %s: %w", c.Dir, err)
	}
	return s, nil
}

func open(c Config) (_ *Store, err error) {
	s, err := newStore(c)
	if err != nil {
		return nil, err
	}
	if c.ReadOnly {
		return s, s.openToRead()
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "packs"), 0o700); err != nil {
		return nil, err
	}
	if s.dir, err = filepath.EvalSymlinks(s.dir); err != nil {
		return nil, err
	}
	for _, p := range append(slices.Clip(c.Leave), s.dir) {
		resolved, ok := resolve(filepath.Clean(p))
		if !ok || !filepath.IsAbs(p) {
			return nil, fmt.Errorf("%q cannot be left alone: it is not absolute", p)
		}
		s.leave = append(s.leave, filepath.ToSlash(resolved))
	}
	s.lock = newLock(filepath.Join(s.dir, "lock"))
	if held, err := s.lock.TryLock(); err != nil {
		return nil, err
	} else if !held {
		return nil, ErrInUse
	}
	defer func() {
		if err != nil {
			_ = s.lock.Close() // the first error matters
		}
	}()
	s.blobs = newBlobs(filepath.Join(s.dir, "packs"), s.maxBytes, !c.NoSync, s.fault)
	t := tree{}
	s.log, err = openLog(s.dir, !c.NoSync, s.fault, func(r *record) {
		t.apply(r.changes)
		s.blobs.learn(r.blobs)
	})
	if err != nil {
		return nil, err
	}
	if s.pending, err = readIntent(s.dir); err != nil {
		return nil, err
	}
	if err := s.blobs.trim(); err != nil {
		return nil, err
	}
	s.state = make(map[string]*node, len(t))
	for path, e := range t {
		s.state[path] = &node{entry: e}
	}
	s.loadIndex()
	return s, nil
}

func newStore(c Config) (*Store, error) {
	if !filepath.IsAbs(c.Dir) {
		return nil, errors.New("the folder of the store is not absolute")
	}
	if len(c.Roots) == 0 || len(c.Roots) > maxRoots {
		return nil, fmt.Errorf("there are %d roots; one to %d are possible", len(c.Roots), maxRoots)
	}
	s := &Store{
		dir: filepath.Clean(c.Dir), ignored: c.Ignored, passing: c.Passing,
		maxFile: c.MaxFile, maxBytes: c.MaxBytes, maxFiles: c.MaxFiles, now: c.Now, fault: c.Fault,
	}
	if s.maxFile <= 0 {
		s.maxFile = DefaultMaxFile
	}
	s.maxFile = min(s.maxFile, maxContent)
	if s.maxBytes <= 0 {
		s.maxBytes = DefaultMaxBytes
	}
	if s.maxFiles <= 0 {
		s.maxFiles = DefaultMaxFiles
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.fault == nil {
		s.fault = func(string) {}
	}
	return s, s.setRoots(c.Roots, c.ReadOnly)
}

// setRoots resolves the roots and drops those that lie in another.
func (s *Store) setRoots(roots []string, absent bool) error {
	var all []string
	for i, r := range roots {
		if !filepath.IsAbs(r) {
			return fmt.Errorf("the root %q is not absolute", r)
		}
		resolved, err := filepath.EvalSymlinks(r)
		if (absent || i > 0) && errors.Is(err, fs.ErrNotExist) {
			all = append(all, filepath.ToSlash(filepath.Clean(r)))
			continue
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(resolved)
		if err != nil {
			return err
		}
		path := filepath.ToSlash(resolved)
		if !info.IsDir() || !validPath(path) || path == "/" || strings.HasSuffix(path, ":/") {
			return fmt.Errorf("the root %s is no folder that can be kept", r)
		}
		all = append(all, path)
	}
	for i, r := range all {
		inside := false
		for j, other := range all {
			inside = inside || i != j && below(r, other) && (r != other || j < i)
		}
		if !inside {
			s.roots = append(s.roots, r)
			s.given = append(s.given, filepath.ToSlash(filepath.Clean(roots[i])))
		}
	}
	return nil
}

// rootOf returns the root that holds a path of a tree.
func (s *Store) rootOf(path string) (string, bool) {
	for _, r := range s.roots {
		if below(path, r) {
			return r, true
		}
	}
	return "", false
}

// key returns an absolute path as a path of a tree: below a root also by the name
// that the root was given.
func (s *Store) key(path string) string {
	p := filepath.ToSlash(filepath.Clean(path))
	for i, given := range s.given {
		if below(p, given) {
			return s.roots[i] + p[len(given):]
		}
	}
	return p
}

// Close keeps what the last walk saw, for the next process, and lets go of the
// store. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.lock == nil {
		return s.log.close()
	}
	if s.stale > 0 {
		_ = s.saveIndex() // only saves work
	}
	if err := errors.Join(s.blobs.close(), s.log.close(), s.lock.Close()); err != nil {
		return fmt.Errorf("closing the snapshots in %s: %w", s.dir, err)
	}
	return nil
}

// begin is what every call does first that needs the store; with write also those
// that change it or look at the user's folders.
func (s *Store) begin(ctx context.Context, write bool) error {
	if s.closed {
		return os.ErrClosed
	}
	if write && s.lock == nil {
		return ErrInUse
	}
	if write && s.pending != nil {
		return ErrPending
	}
	return ctx.Err()
}

// List returns the snapshots, oldest first.
func (s *Store) List() []Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Snapshot, len(s.log.heads))
	for i, h := range s.log.heads {
		all[i] = h.Snapshot
	}
	return all
}

// Damage says what of the log could not be read when the store was opened, or "".
// The log as it was is kept beside it.
func (s *Store) Damage() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.damage
}

// Usage returns how many bytes the store occupies: contents and log.
func (s *Store) Usage() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs.total() + s.log.size
}

// apply brings a tree from one snapshot to the next.
func (t tree) apply(changes []change) {
	for _, c := range changes {
		if c.gone {
			delete(t, c.path)
		} else {
			t[c.path] = c.entry
		}
	}
}

// Unkept is something in a root that a snapshot does not hold.
type Unkept struct {
	Path   string
	Reason Reason
	Size   int64
}

// Unkept returns what a snapshot leaves out, sorted by path, without what is
// ignored.
func (s *Store) Unkept(ctx context.Context, id ID) ([]Unkept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, false); err != nil {
		return nil, err
	}
	t, err := s.log.tree(id)
	if err != nil {
		return nil, fmt.Errorf("reading snapshot %s: %w", id, err)
	}
	var all []Unkept
	for _, path := range t.paths() {
		if e := t[path]; e.kind == Skipped && e.reason != Ignored {
			all = append(all, Unkept{filepath.FromSlash(path), e.reason, e.size})
		}
	}
	return all, nil
}
