// Package trust remembers which folders the user trusts: their settings may then
// permit, and what else they bring (hooks, servers, plugins, commands) may run.
// Trust holds for one folder as it really is, not for its children, and for the
// files by which it changes what runs, as they were when the user looked at them:
// with another content it asks again, and shows what has changed.
//
// It reads what a folder brings, and executes none of it. Whatever it cannot
// read is not trusted. It starts no goroutines.
package trust

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/record"
)

const (
	version    = 1    // of the file
	maxFolders = 1000 // that are remembered
)

// A Store is the file with the folders that were decided on. Programs and
// goroutines may use it at the same time. While it cannot be read nothing is
// trusted, and nothing is written to it.
type Store struct {
	Path string           // of the file, in the program's data folder; required
	Now  func() time.Time // nil = time.Now
}

// book is the file.
type book struct {
	Version int     `json:"version"`
	Folders []entry `json:"folders"`
}

// entry is one decision.
type entry struct {
	Folder
	At    time.Time `json:"at"`
	By    string    `json:"by,omitempty"`
	Never bool      `json:"never,omitempty"`
	Hash  string    `json:"hash,omitempty"`
	Files []File    `json:"files,omitempty"`
}

// In returns the store of a program by its data folder.
func In(data string) Store { return Store{Path: filepath.Join(data, "trust.json")} }

// Look looks at a folder and compares it with what was trusted. Its errors are problems.
func (s Store) Look(dir string) (Content, State, error) {
	c, err := Look(dir)
	if err != nil {
		return c, State{}, Problem(dir, err)
	}
	st, err := s.Check(c)
	if err != nil {
		err = Problem(dir, err)
	}
	return c, st, err
}

// Problem is what is wrong with a folder, or with what was decided on it.
func Problem(dir string, err error) *agent.Problem {
	return &agent.Problem{
		Code: agent.ProblemTrust, Message: err.Error(), Fix: "look at the folder with dure trust show", Err: err,
		Args: map[string]string{"path": dir, "error": err.Error()},
	}
}

// State is what is known of a folder with the content that it has now.
type State = query.FolderState

// Check compares a folder's content with what was trusted.
func (s Store) Check(c Content) (State, error) {
	st := State{Nothing: c.Nothing(), Unfit: c.Unfit}
	b, err := s.read()
	if err != nil {
		return st, err
	}
	at := b.find(c.Folder)
	if at < 0 {
		return st, nil
	}
	e := b.Folders[at]
	st.At, st.By = e.At, e.By
	switch {
	case e.Never:
		st.Never = true
	case c.Unfit != "" || c.Nothing() && e.Hash != c.Hash:
	case c.Folder.Replaced(e.Folder):
		st.Replaced, st.Changed = true, s.changes(e, c)
	case e.Hash != c.Hash:
		st.Changed = s.changes(e, c)
	default:
		st.Trusted = true
	}
	return st, nil
}

// Errors of decisions.
var (
	ErrUnfit = errors.New("the folder cannot be trusted")
	ErrFull  = fmt.Errorf("%d folders are remembered already: revoke one", maxFolders)
)

// Trust records that the user trusts a folder with this content: what was shown,
// not what is there by now. By says who decided: prompt, command, ...
func (s Store) Trust(c Content, by string) error {
	switch {
	case c.Unfit != "":
		return fmt.Errorf("%w: %s", ErrUnfit, c.Unfit)
	case c.Folder.Path == "":
		return fmt.Errorf("%w: it was not looked at", ErrUnfit)
	}
	return s.put(entry{Folder: c.Folder, By: by, Hash: c.Hash, Files: c.Files}, c)
}

// Never records that the user does not trust a folder, and does not want to be
// asked again, whatever it will bring.
func (s Store) Never(f Folder, by string) error {
	return s.put(entry{Folder: f, By: by, Never: true}, Content{})
}

func (s Store) put(e entry, c Content) error {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	e.At = now().UTC().Truncate(time.Second)
	return s.change(func(b *book) error {
		switch at := b.find(e.Folder); {
		case at >= 0:
			b.Folders[at] = e
		case len(b.Folders) >= maxFolders:
			return ErrFull
		default:
			b.Folders = append(b.Folders, e)
		}
		return s.keep(c)
	})
}

// Revoke forgets what was decided on a folder, and reports whether there was
// something. A folder that is not there any more is named by the path that
// [Store.List] gives.
func (s Store) Revoke(dir string) (bool, error) {
	f, err := Find(dir)
	if err != nil {
		abs, aerr := filepath.Abs(dir)
		if aerr != nil {
			return false, err
		}
		f = Folder{Path: abs}
	}
	found := false
	err = s.change(func(b *book) error {
		at := b.find(f)
		if at < 0 {
			at = b.find(Folder{Path: dir})
		}
		if at >= 0 {
			found = true
			b.Folders = slices.Delete(b.Folders, at, at+1)
		}
		return nil
	})
	return found && err == nil, err
}

// find returns the place of a folder in the book, or -1.
func (b book) find(f Folder) int {
	return slices.IndexFunc(b.Folders, func(e entry) bool { return f.Names(e.Path) })
}

func (s Store) read() (book, error) {
	b, err := record.Read[book](s.Path)
	if err == nil {
		err = b.check(s.Path)
	}
	if err != nil {
		return book{}, fmt.Errorf("no folder is trusted: %w", err)
	}
	return b, nil
}

func (b book) check(path string) error {
	if b.Version > version {
		return fmt.Errorf("reading %s: it is of a newer version of dure", path)
	}
	return nil
}

// change edits the book, and drops copies of texts that no entry has any more.
func (s Store) change(edit func(*book) error) error {
	err := record.Change(s.Path, func(b *book) error {
		if err := b.check(s.Path); err != nil {
			return err
		}
		b.Version = version
		if err := edit(b); err != nil {
			return err
		}
		slices.SortFunc(b.Folders, func(x, y entry) int { return strings.Compare(x.Path, y.Path) })
		s.sweep(b)
		return nil
	})
	if err != nil {
		return fmt.Errorf("recording trust: %w", err)
	}
	return nil
}
