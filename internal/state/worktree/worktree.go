// Package worktree gives agents folders of their own of a repository: linked work trees of
// git, each on its own branch, which it makes, commits, compares, merges and removes.
//
// A repository is hostile: nothing that it names is run, be it hooks, filters, signers or
// merge drivers. So files with a filter (Git LFS) stay as the repository has them and are
// not committed; nothing is fetched, and submodules stay empty. The repository's own folder
// changes in [Store.Merge] alone, which takes no change away. What is to be done is written
// down first, so that [Store.Mend] cleans up behind a kill. The package decides nothing
// about permission, and starts no goroutines.
package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/internal/safety/sandbox"
)

// Bounds.
const (
	maxTrees  = 64       // of one store
	maxRecord = 64 << 10 // bytes of what is written down of one
	maxKind   = 40       // bytes of a kind in a name
	maxGone   = 256      // records of trees that are no more

	lockFile  = ".lock"
	lockRetry = 20 * time.Millisecond

	goneMark      = ".gone-"    // begins the name of a record of a tree that is no more
	unfinished    = ".record-"  // begins the name of a record that is being written
	unfinishedFor = time.Minute // after that, nobody writes it any more
)

// Where a new tree begins.
const (
	FromHead  = "head"  // the commit that the repository's folder is at
	FromFresh = "fresh" // the main branch of origin, as it was last fetched; without one, head
)

// Config configures a [Store]. Home and Box are required.
type Config struct {
	Home string // the folder of the trees, absolute; made when it is needed
	Git  string // the program; "" = it is not installed
	Env  []string
	Box  *sandbox.Box
	Now  func() time.Time // default time.Now
}

// Store is the work trees that were made for agents. It is safe for concurrent use.
type Store struct {
	Config
	env []string

	mu   sync.Mutex // of everything that runs git
	held *os.File   // of the lock; mu
}

// New returns a store. It touches nothing.
func New(c Config) *Store {
	if c.Box == nil || !filepath.IsAbs(c.Home) {
		panic("worktree: a Config without Home or Box")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Store{Config: c, env: environment(c.Env)}
}

// enter waits until nobody else, in no process, works on the trees. A git that has been
// left by a process that was killed counts as somebody.
func (s *Store) enter(ctx context.Context) (leave func(), err error) {
	if err := os.MkdirAll(s.Home, 0o700); err != nil {
		return nil, err
	}
	s.mu.Lock()
	again := time.NewTicker(lockRetry)
	defer again.Stop()
	limit := time.NewTimer(gitTime)
	defer limit.Stop()
	for {
		if s.held, err = tryLock(filepath.Join(s.Home, lockFile)); s.held != nil {
			return s.leave, nil
		}
		if err == nil {
			select {
			case <-again.C:
				continue
			case <-limit.C:
				err = fmt.Errorf("others have worked on work trees for more than %s", gitTime)
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		s.mu.Unlock()
		return nil, err
	}
}

func (s *Store) leave() {
	_ = s.held.Close() // which lets go of it
	s.held = nil
	s.mu.Unlock()
}

// State is how far a tree has come.
type State string

// The states. Only a tree that is ready has been worked in.
const (
	Making   State = "making"
	Ready    State = "ready"
	Merging  State = "merging"
	Removing State = "removing"
)

// A Tree is a work tree.
type Tree struct {
	ID      string    `json:"id"`
	Path    string    `json:"path"`
	Branch  string    `json:"branch"`
	Repo    string    `json:"repoRoot"` // the folder that it was made from
	Created time.Time `json:"createdAt"`
	Owner   string    `json:"owner"` // the session that has it
	Kind    string    `json:"kind,omitempty"`
	Base    string    `json:"base"` // the commit that it began at
	State   State     `json:"state"`
	Git     string    `json:"git,omitempty"`   // the folder that git keeps of it
	Links   []string  `json:"links,omitempty"` // folders in it that are links to those of Repo
	Merge   *Merge    `json:"merge,omitempty"` // that is being done, or was
	Keep    bool      `json:"keepBranch,omitempty"`
}

// A Merge is what changes a branch.
type Merge struct {
	Into   string `json:"into"` // the branch
	Before string `json:"before"`
	After  string `json:"after"`
}

// The errors that a caller can act on.
var (
	ErrNoGit   = errors.New("git is not installed")
	ErrNoRepo  = errors.New("the folder is in no git repository that has a commit")
	ErrMany    = fmt.Errorf("there are %d work trees already; merge or remove some", maxTrees)
	ErrChanged = errors.New("there are changes in it that are merged nowhere")
	ErrUnknown = errors.New("there is no such work tree")
	ErrSpoilt  = errors.New("the work tree is not what it was made as")
	ErrBusy    = errors.New("another git is at work in the repository, or died in it (index.lock)")
	ErrFilter  = errors.New("files are stored through a filter, which is not run here; do it with git yourself")
)

// id is the name of the tree of a key, which is the same for the same key.
func id(owner, key, kind string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + key))
	return plain(kind) + "-" + hex.EncodeToString(sum[:6])
}

// plain makes a part of names of a kind.
func plain(kind string) string {
	kind = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(kind)), "-")
	if len(kind) > maxKind {
		kind = strings.TrimRight(kind[:maxKind], "-")
	}
	if kind == "" {
		return "agent"
	}
	return kind
}

func isID(s string) bool {
	at := strings.LastIndexByte(s, '-')
	return at > 0 && plain(s[:at]) == s[:at] && len(s) == at+13 && strings.Trim(s[at+1:], "0123456789abcdef") == ""
}

func (s *Store) record(id string) string { return filepath.Join(s.Home, id+".json") }

// write writes down how a tree stands, durably.
func (s *Store) write(t Tree) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Home, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.Home, unfinished+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has its name by then
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.record(t.ID))
}

// Find returns a tree that was made.
func (s *Store) Find(id string) (Tree, error) {
	if !isID(id) {
		return Tree{}, ErrUnknown
	}
	return s.read(id, s.record(id))
}

// Past returns a tree that is no more, how it was and what it was merged into, as far as
// that is remembered.
func (s *Store) Past(id string) (Tree, bool) {
	if !isID(id) {
		return Tree{}, false
	}
	t, err := s.read(id, s.gone(id))
	return t, err == nil
}

func (s *Store) gone(id string) string { return filepath.Join(s.Home, goneMark+id+".json") }

// forget keeps of a tree that is no more what [Store.Past] returns.
func (s *Store) forget(t Tree) error {
	if t.Git == "" { // it was never finished
		return os.Remove(s.record(t.ID))
	}
	return os.Rename(s.record(t.ID), s.gone(t.ID))
}

func (s *Store) read(id, path string) (Tree, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Tree{}, ErrUnknown
	}
	if err != nil {
		return Tree{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecord {
		return Tree{}, fmt.Errorf("%w: %s", ErrSpoilt, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Tree{}, err
	}
	var t Tree
	if err := json.Unmarshal(data, &t); err != nil || t.ID != id || t.Path != filepath.Join(s.Home, id) || !filepath.IsAbs(t.Repo) || !strings.HasPrefix(t.Branch, branchPrefix) {
		return Tree{}, fmt.Errorf("%w: %s", ErrSpoilt, path)
	}
	return t, nil
}

// List returns the trees that there are, oldest first.
func (s *Store) List() (all []Tree, err error) {
	all, err = s.records("", s.Find)
	slices.SortStableFunc(all, func(a, b Tree) int { return a.Created.Compare(b.Created) })
	return all, err
}

// Gone returns trees that are no more, as far as they are remembered, see [Store.Past].
func (s *Store) Gone() []Tree {
	all, _ := s.records(goneMark, func(id string) (Tree, error) { return s.read(id, s.gone(id)) }) // without the folder there are none
	return all
}

// records reads the records whose names begin with a mark.
func (s *Store) records(mark string, read func(id string) (Tree, error)) (all []Tree, err error) {
	entries, err := os.ReadDir(s.Home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		name, marked := strings.CutPrefix(e.Name(), mark)
		if name, ok := strings.CutSuffix(name, ".json"); ok && marked && isID(name) {
			if t, err := read(name); err == nil {
				all = append(all, t)
			}
		}
	}
	return all, nil
}

// In returns the tree that a folder is, or lies in.
func (s *Store) In(dir string) (Tree, bool) {
	rel, err := filepath.Rel(s.Home, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return Tree{}, false
	}
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	t, err := s.Find(first)
	return t, err == nil
}

// A Request asks for a tree.
type Request struct {
	Dir   string // a folder of the repository, absolute
	Owner string // the session that it is for
	Key   string // the same owner and key get the same tree, also after a crash
	Kind  string // of agent, for its names
	From  string // FromHead, FromFresh; "" = FromHead

	// Links are folders of the repository's folder that the tree gets links to, and
	// Only the folders that it has alone, with the files at the top; nil = all.
	Links, Only []string
}

// Create makes a tree, or returns the one that the key has already. Notes say what was
// asked for and left out.
func (s *Store) Create(ctx context.Context, r Request) (t Tree, notes []string, err error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return t, nil, err
	}
	defer leave()
	t, err = s.Find(id(r.Owner, r.Key, r.Kind))
	switch {
	case err == nil && t.State != Making && t.State != Removing:
		return t, nil, s.verify(t)
	case err == nil:
		if err := s.clear(ctx, t); err != nil {
			return t, nil, err
		}
	case !errors.Is(err, ErrUnknown):
		return t, nil, err
	}
	if all, err := s.List(); err != nil || len(all) >= maxTrees {
		return t, nil, errors.Join(err, ErrMany)
	}
	repo, err := s.open(ctx, r.Dir)
	if err != nil {
		return t, nil, err
	}
	t = Tree{ID: id(r.Owner, r.Key, r.Kind), Repo: repo.top, Created: s.Now(), Owner: r.Owner, Kind: r.Kind, State: Making}
	t.Path = filepath.Join(s.Home, t.ID)
	t.Branch = branchPrefix + plain(r.Kind) + "-" + t.Created.Format("0601021504") + t.ID[strings.LastIndexByte(t.ID, '-'):]
	if t.Base, err = s.base(ctx, repo, r.From); err != nil {
		return t, nil, err
	}
	if err := errors.Join(s.write(t), removed(s.gone(t.ID))); err != nil {
		return t, nil, err
	}
	if notes, err = s.make(ctx, repo, &t, r); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		return t, nil, errors.Join(err, s.clear(clean, t))
	}
	t.State = Ready
	return t, notes, s.write(t)
}

// removed removes a file that may be missing.
func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// branchPrefix begins the names of branches.
const branchPrefix = "dure-"

// base returns the commit that a tree begins at.
func (s *Store) base(ctx context.Context, repo place, from string) (string, error) {
	if from == FromFresh {
		for _, ref := range []string{"refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master"} {
			if c, err := s.commitOf(ctx, repo, ref); err == nil {
				return c, nil
			}
		}
	}
	c, err := s.commitOf(ctx, repo, "HEAD")
	if err != nil {
		return "", ErrNoRepo
	}
	return c, nil
}

// make fills a tree. Of a tree that is locked git forgets nothing by itself.
func (s *Store) make(ctx context.Context, repo place, t *Tree, r Request) (notes []string, err error) {
	if err := s.finish(repo, "", "worktree", "add", "--quiet", "--no-checkout", "--lock", "-b", t.Branch, "--", t.Path, t.Base); err != nil {
		return nil, err
	}
	if t.Git = pointer(t.Path); t.Git == "" {
		return nil, ErrSpoilt
	}
	if err := s.write(*t); err != nil {
		return nil, err
	}
	tree := t.place(repo.off)
	args := []string{"read-tree", "-m", "-u", "HEAD"}
	if len(r.Only) > 0 {
		if err := sparse(t.Git, r.Only); err != nil {
			return nil, err
		}
		tree.off = append(slices.Clone(tree.off), "core.sparseCheckout=true", "core.sparseCheckoutCone=true")
	}
	if _, err := s.ask(ctx, tree, nil, args...); err != nil {
		return nil, err
	}
	notes, err = s.include(ctx, repo, *t)
	if err != nil {
		return nil, err
	}
	var more []string
	t.Links, more = links(repo.top, t.Path, r.Links)
	return append(notes, more...), nil
}
