package plugins

import (
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
	"time"

	"dure/internal/base/record"
	"dure/internal/safety/sandbox"
)

const (
	version   = 1                   // of the book
	bookFile  = "plugins.json"      // what is installed, and with which hash
	treesDir  = "trees"             // HASH.NAME/NAME
	dataDir   = "data"              // what plugins keep
	stageDir  = "staging"           // what is not whole yet
	orphanAge = 14 * 24 * time.Hour // a session that began before may still use a tree
	stageAge  = 24 * time.Hour
	maxBook   = 1000 // plugins, and marketplaces
)

// Errors of a [Store].
var (
	ErrNoMarket  = errors.New("there is no such marketplace")
	ErrUnknown   = errors.New("there is no such plugin")
	ErrChanged   = errors.New("it is not what it was")
	ErrInstalled = errors.New("it is installed already")
	ErrOld       = errors.New("it needs a newer version of dure")
	ErrNothing   = errors.New("there is nothing to go back to")
)

// A Store keeps plugins in a folder of its own. Programs and goroutines may use it at
// the same time. While its book cannot be read no plugin loads, and nothing is written.
type Store struct {
	Dir     string           // required; it is made when it is first needed
	Version string           // of the program; one that is no version fits every plugin
	Now     func() time.Time // nil = time.Now
	Limits  Limits
	Allow   Allow

	Get Getter        // nil = nothing is fetched
	Git func() string // finds the program, when it is needed; "" = there is none
	Env []string      // of git

	// Box returns what git is started in: it may write the folder, and ask the hosts.
	Box func(dir string, hosts []string) (*sandbox.Box, error)
}

// book is the file.
type book struct {
	Version int         `json:"version"`
	Plugins []Installed `json:"plugins,omitempty"`
	Markets []Known     `json:"marketplaces,omitempty"`
}

// Installed is a plugin that somebody has said yes to.
type Installed struct {
	ID     string   `json:"id"` // NAME@MARKETPLACE
	Now    Release  `json:"now"`
	Before *Release `json:"before,omitempty"` // what can be gone back to

	// On says whether the user wants it; nil = what the plugin says. In says it for
	// folders by their path, and is stronger there.
	On *bool           `json:"on,omitempty"`
	In map[string]bool `json:"in,omitempty"`

	Options map[string]json.RawMessage `json:"options,omitempty"` // but for secrets
}

// Name is the name of an installed plugin without its marketplace.
func (i Installed) Name() string { return i.Now.Name }

func (s *Store) limits() Limits { return s.Limits.withDefaults() }

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now().UTC().Truncate(time.Second)
	}
	return time.Now().UTC().Truncate(time.Second)
}

// BookPath is the file that lists what is installed.
func (s *Store) BookPath() string { return filepath.Join(s.Dir, bookFile) }

func (s *Store) read() (book, error) {
	b, err := record.Read[book](s.BookPath())
	if err == nil {
		err = b.check()
	}
	if err != nil {
		return book{}, fmt.Errorf("no plugin is used: %w", err)
	}
	return b, nil
}

func (b book) check() error {
	if b.Version > version {
		return errors.New("the list of plugins is of a newer version of dure")
	}
	for _, p := range b.Plugins {
		for _, r := range []*Release{&p.Now, p.Before} {
			if r != nil && (!isHash().MatchString(r.Tree) || checkName("name", r.Name) != nil) {
				return fmt.Errorf("%w: the entry of %s", record.ErrDamaged, clip(p.ID))
			}
		}
		if !isID().MatchString(p.ID) {
			return fmt.Errorf("%w: the entry of %s", record.ErrDamaged, clip(p.ID))
		}
	}
	for _, m := range b.Markets {
		if !isHash().MatchString(m.Tree) || checkName("name", m.Name) != nil {
			return fmt.Errorf("%w: the entry of the marketplace %s", record.ErrDamaged, clip(m.Name))
		}
	}
	return nil
}

func (s *Store) change(edit func(*book) error) error {
	var refused error // what was wanted cannot be done
	err := record.Change(s.BookPath(), func(b *book) error {
		if err := b.check(); err != nil {
			return err
		}
		b.Version = version
		if refused = edit(b); refused != nil {
			return refused
		}
		slices.SortFunc(b.Plugins, func(x, y Installed) int { return strings.Compare(x.ID, y.ID) })
		slices.SortFunc(b.Markets, func(x, y Known) int { return strings.Compare(x.Name, y.Name) })
		if len(b.Plugins) > maxBook || len(b.Markets) > maxBook {
			return fmt.Errorf("more than %d plugins or marketplaces are known: remove one", maxBook)
		}
		s.sweep(*b)
		return nil
	})
	if refused == nil && err != nil {
		return fmt.Errorf("recording plugins: %w", err)
	}
	return err
}

// noMarket is a marketplace that was not added.
type noMarket struct{ name string }

// Error says its name.
func (n noMarket) Error() string { return "no marketplace " + clip(n.name) + " was added" }

// Is reports that it is unknown.
func (noMarket) Is(err error) bool { return err == ErrUnknown || err == ErrNoMarket }

// List returns what is installed, by ID. Nothing of it is looked at.
func (s *Store) List() ([]Installed, error) {
	b, err := s.read()
	return b.Plugins, err
}

// Markets returns the marketplaces that are known, by name.
func (s *Store) Markets() ([]Known, error) {
	b, err := s.read()
	return b.Markets, err
}

// Find returns the installed plugin of an ID, or of a name that one alone has.
func (s *Store) Find(name string) (Installed, error) {
	b, err := s.read()
	if err != nil {
		return Installed{}, err
	}
	at, err := b.find(name)
	if err != nil {
		return Installed{}, err
	}
	return b.Plugins[at], nil
}

func (b book) find(name string) (int, error) {
	found := -1
	for i, p := range b.Plugins {
		if p.ID == name {
			return i, nil
		}
		if p.Name() != name {
			continue
		}
		if found >= 0 {
			return -1, fmt.Errorf("%w: %s and %s are both meant by %s", ErrUnknown, b.Plugins[found].ID, p.ID, name)
		}
		found = i
	}
	if found < 0 {
		return -1, fmt.Errorf("%w: %s", ErrUnknown, clip(name))
	}
	return found, nil
}

// treeDir is where a tree lies. The folder above it has nothing else in it, so that a
// plugin that is one skill lies in a folder of skills.
func (s *Store) treeDir(hash, name string) string {
	return filepath.Join(s.Dir, treesDir, hash+"."+name, name)
}

// DataDir is the folder that a plugin may keep data in. It survives updates.
func (s *Store) DataDir(id string) string { return filepath.Join(s.Dir, dataDir, dataName(id)) }

// dataName is the name of that folder, as the ecosystem has it. What is lost of an ID in it,
// beside the @, is told by a part that no other name has: x@skills.dir is not x@skills-dir.
func dataName(id string) string {
	lost := 0
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		lost++
		return '-'
	}, id)
	if lost > strings.Count(id, "@") || lost > 1 {
		sum := sha256.Sum256([]byte(id))
		name += "." + hex.EncodeToString(sum[:4])
	}
	return name
}

// stage makes a folder for what is not whole yet. The caller removes it.
func (s *Store) stage() (string, error) {
	parent := filepath.Join(s.Dir, stageDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("making room for a plugin: %w", err)
	}
	dir, err := os.MkdirTemp(parent, "new-*")
	if err != nil {
		return "", fmt.Errorf("making room for a plugin: %w", err)
	}
	return dir, nil
}

// put gives a staged tree its name, at once, and returns its hash. Its files are not
// forced to the disk: one that a crash has torn has another hash, and does not load.
func (s *Store) put(tree, name, stage string) (string, error) {
	hash, err := hashTree(tree, s.limits())
	if err != nil {
		return "", err
	}
	at := s.treeDir(hash, name)
	if have, err := hashTree(at, s.limits()); err == nil && have == hash {
		return hash, nil
	}
	if _, err := os.Lstat(filepath.Dir(at)); err == nil { // damaged: it goes first
		if err := os.Rename(filepath.Dir(at), filepath.Join(stage, "damaged")); err != nil {
			return "", fmt.Errorf("keeping a plugin: %w", err)
		}
	}
	whole := filepath.Join(stage, "whole")
	for _, step := range []error{
		os.MkdirAll(filepath.Join(s.Dir, treesDir), 0o700),
		os.Mkdir(whole, 0o700),
		os.Rename(tree, filepath.Join(whole, name)),
		os.Rename(whole, filepath.Dir(at)),
	} {
		if step != nil {
			return "", fmt.Errorf("keeping a plugin: %w", step)
		}
	}
	return hash, nil
}

// verify compares a tree with its name.
func (s *Store) verify(r Release) error {
	have, err := hashTree(s.treeDir(r.Tree, r.Name), s.limits())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: its files are gone", ErrChanged)
	}
	if err != nil {
		return err
	}
	if have != r.Tree {
		return fmt.Errorf("%w: its files have the hash %s, and should have %s", ErrChanged, have[:12], r.Tree[:12])
	}
	return nil
}

// sweep removes trees that nothing names any more and that are old enough, and what was
// left behind in staging. What cannot be removed stays.
func (s *Store) sweep(b book) {
	used := map[string]bool{}
	for _, p := range b.Plugins {
		used[p.Now.Tree+"."+p.Now.Name] = true
		if p.Before != nil {
			used[p.Before.Tree+"."+p.Before.Name] = true
		}
	}
	for _, m := range b.Markets {
		used[m.Tree+"."+m.Name] = true
	}
	for dir, age := range map[string]time.Duration{treesDir: orphanAge, stageDir: stageAge} {
		entries, err := os.ReadDir(filepath.Join(s.Dir, dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			at := filepath.Join(s.Dir, dir, e.Name())
			info, err := e.Info()
			if err != nil || used[e.Name()] {
				continue
			}
			if s.now().Sub(info.ModTime()) > age {
				_ = os.RemoveAll(at)
			}
		}
	}
}

// release lets a tree become an orphan now, not when it was made.
func (s *Store) release(r Release) {
	now := s.now()
	_ = os.Chtimes(filepath.Dir(s.treeDir(r.Tree, r.Name)), now, now) // else it goes earlier
}
