// Package grants remembers what the user has allowed for good in a workspace: the
// answer "always" to a question. Each real folder has a file of its own in the
// program's data folder; nothing of it is kept in the repository, where others
// could write it. A file that cannot be read grants nothing, and is left as it
// is. The package knows no meaning of a rule. It starts no goroutines.
package grants

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dure/internal/base/record"
	"dure/internal/safety/trust"
)

const (
	version   = 1    // of a file
	maxGrants = 1000 // of one workspace
	maxRule   = 4096 // bytes
	maxName   = 200  // bytes of a session, and of who asked
)

// A Grant is a rule that the user has granted.
type Grant struct {
	Rule     string    `json:"rule"`     // as the policy writes it: Tool or Tool(pattern)
	Behavior string    `json:"behavior"` // allow; nothing else is granted
	At       time.Time `json:"at"`
	Session  string    `json:"session,omitempty"` // in which it was granted
	From     string    `json:"from,omitempty"`    // what it was granted on: the command line, the path, ...
}

// A Store is the folder with the grants. Programs and goroutines may use it at
// the same time.
type Store struct {
	Dir string           // in the program's data folder; required
	Now func() time.Time // nil = time.Now
}

type sheet struct {
	Version int          `json:"version"`
	Folder  trust.Folder `json:"folder"`
	Grants  []Grant      `json:"grants"`
}

// Errors of grants.
var (
	ErrRule = errors.New("this is no rule that could be granted")
	ErrFull = fmt.Errorf("%d rules are granted here already: remove one", maxGrants)
)

// Path returns the file with the grants of a folder. Two spellings of one folder
// on a volume that does not tell letters by their case may have two files: the
// user is asked once more.
func (s Store) Path(f trust.Folder) string {
	sum := sha256.Sum256([]byte(f.Path))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:16])+".json")
}

// List returns what is granted in a folder, oldest first. What was granted in
// another folder that had the same path once does not count.
func (s Store) List(dir string) ([]Grant, error) {
	f, err := trust.Find(dir)
	if err != nil {
		return nil, err
	}
	sh, err := record.Read[sheet](s.Path(f))
	if err == nil {
		err = sh.check(s.Path(f))
	}
	if err != nil {
		return nil, fmt.Errorf("nothing is granted: %w", err)
	}
	if !sh.of(f) {
		return nil, nil
	}
	return sh.Grants, nil
}

// Add grants rules in a folder. At is set here when it is zero; a rule that is
// granted already stays as it is.
func (s Store) Add(dir string, more ...Grant) error {
	f, err := trust.Find(dir)
	if err != nil {
		return err
	}
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	for i := range more {
		if err := more[i].check(); err != nil {
			return fmt.Errorf("granting %q: %w", clip(more[i].Rule, maxName), err)
		}
	}
	err = s.change(f, func(sh *sheet) error {
		for _, g := range more {
			if slices.ContainsFunc(sh.Grants, func(have Grant) bool { return have.Rule == g.Rule }) {
				continue
			}
			if len(sh.Grants) >= maxGrants {
				return ErrFull
			}
			if g.At.IsZero() {
				g.At = now().UTC().Truncate(time.Second)
			}
			g.Session, g.From = clip(g.Session, maxName), clip(g.From, maxName)
			sh.Grants = append(sh.Grants, g)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("granting: %w", err)
	}
	return nil
}

// Remove takes grants of a folder back, and returns how many there were. Without
// rules it takes all of them.
func (s Store) Remove(dir string, rules ...string) (int, error) {
	f, err := trust.Find(dir)
	if err != nil {
		return 0, err
	}
	n := 0
	err = s.change(f, func(sh *sheet) error {
		kept := slices.DeleteFunc(slices.Clone(sh.Grants), func(g Grant) bool { return len(rules) == 0 || slices.Contains(rules, g.Rule) })
		n, sh.Grants = len(sh.Grants)-len(kept), kept
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("taking grants back: %w", err)
	}
	return n, nil
}

func (s Store) change(f trust.Folder, edit func(*sheet) error) error {
	return record.Change(s.Path(f), func(sh *sheet) error {
		if err := sh.check(s.Path(f)); err != nil {
			return err
		}
		if !sh.of(f) {
			*sh = sheet{}
		}
		sh.Version, sh.Folder = version, f
		return edit(sh)
	})
}

// of reports whether the sheet was written for the folder that f is now.
func (sh sheet) of(f trust.Folder) bool {
	return sh.Folder.Path == f.Path && !f.Replaced(sh.Folder)
}

// check refuses what this program would not have written.
func (sh sheet) check(path string) error {
	if sh.Version > version {
		return fmt.Errorf("reading %s: it is of a newer version of dure", path)
	}
	for _, g := range sh.Grants {
		if err := g.check(); err != nil {
			return fmt.Errorf("reading %s: %w: %w", path, record.ErrDamaged, err)
		}
	}
	return nil
}

func (g Grant) check() error {
	switch {
	case g.Behavior != "allow":
		return fmt.Errorf("%w: its behavior is not allow", ErrRule)
	case strings.TrimSpace(g.Rule) == "" || len(g.Rule) > maxRule || !utf8.ValidString(g.Rule) || strings.ContainsFunc(g.Rule, unicode.IsControl):
		return fmt.Errorf("%w: it has to be one line of at most %d bytes", ErrRule, maxRule)
	}
	return nil
}

// clip returns at most n bytes of s, and no half of a sign.
func clip(s string, n int) string {
	return strings.ToValidUTF8(s[:min(len(s), n)], "")
}
