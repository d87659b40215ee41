package servers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"dure/internal/base/record"
	"dure/internal/safety/trust"
)

// A Store keeps what a person has decided on servers, a file for each folder, in the
// program's data folder. Programs and goroutines may use it at the same time. While a
// file cannot be read, nothing is approved.
type Store struct{ Dir string }

// Choices are what a person has decided in a folder.
type Choices struct {
	Approved map[string]string          `json:"approved,omitempty"` // names of a project's servers, with the hashes of their definitions
	Rejected map[string]string          `json:"rejected,omitempty"`
	Off      []string                   `json:"off,omitempty"`   // servers that are not used
	Added    map[string]json.RawMessage `json:"added,omitempty"` // servers of scope local

	// Tools are the hashes of tools that were seen, by server and tool: a tool that
	// says something else of itself is asked about.
	Tools map[string]map[string]string `json:"tools,omitempty"`

	// Seen are those that were left out because of that, as they were then.
	Seen map[string]map[string]string `json:"seen,omitempty"`
}

type sheet struct {
	Version int          `json:"version"`
	Folder  trust.Folder `json:"folder"`
	Choices Choices      `json:"choices"`
}

const (
	version    = 1
	maxChoices = 1000 // of each kind
)

// ErrMany is more choices than are kept.
var ErrMany = fmt.Errorf("more than %d decisions on servers are not kept: run dure mcp reset-project-choices", maxChoices)

func (s Store) path(f trust.Folder) string {
	sum := sha256.Sum256([]byte(f.Path))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:16])+".json")
}

// Of returns what was decided in a folder. What was decided in another folder that had its
// path once does not count.
func (s Store) Of(dir string) (Choices, error) {
	f, err := trust.Find(dir)
	if err != nil {
		return Choices{}, err
	}
	sh, err := record.Read[sheet](s.path(f))
	if err == nil && sh.Version > version {
		err = errors.New("it is of a newer version of dure")
	}
	if err != nil {
		return Choices{}, fmt.Errorf("no server of this folder is used: %w", err)
	}
	if !sh.of(f) {
		return Choices{}, nil
	}
	return sh.Choices, nil
}

func (sh sheet) of(f trust.Folder) bool { return sh.Folder.Path == f.Path && !f.Replaced(sh.Folder) }

// Change changes what was decided in a folder.
func (s Store) Change(dir string, edit func(*Choices) error) error {
	f, err := trust.Find(dir)
	if err != nil {
		return err
	}
	return record.Change(s.path(f), func(sh *sheet) error {
		if sh.Version > version {
			return errors.New("it is of a newer version of dure")
		}
		if !sh.of(f) {
			*sh = sheet{}
		}
		sh.Version, sh.Folder = version, f
		if err := edit(&sh.Choices); err != nil {
			return err
		}
		c := sh.Choices
		if max(len(c.Approved), len(c.Rejected), len(c.Off), len(c.Added), len(c.Tools), len(c.Seen)) > maxChoices {
			return ErrMany
		}
		return nil
	})
}

// Approve records that a definition may be used in its folder, or not.
func (c *Choices) Approve(name, hash string, yes bool) {
	to, from := &c.Approved, &c.Rejected
	if !yes {
		to, from = from, to
	}
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = hash
	delete(*from, name)
}

// Switch records whether a server is used.
func (c *Choices) Switch(name string, on bool) {
	c.Off = slices.DeleteFunc(c.Off, func(n string) bool { return n == name })
	if !on {
		c.Off = append(c.Off, name)
	}
}

// Add puts a server into the scope local, or with nil takes it out; it reports whether
// there was one.
func (c *Choices) Add(name string, raw json.RawMessage) (had bool) {
	_, had = c.Added[name]
	switch {
	case raw == nil:
		delete(c.Added, name)
	case c.Added == nil:
		c.Added = map[string]json.RawMessage{name: raw}
	default:
		c.Added[name] = raw
	}
	return had
}

// Reset forgets what was decided on the project's servers, and returns how many decisions
// there were.
func (c *Choices) Reset() int {
	n := len(c.Approved) + len(c.Rejected)
	c.Approved, c.Rejected = nil, nil
	return n
}

// Source is the servers of scope local.
func (c Choices) Source(path string) Source {
	data, err := json.Marshal(c.Added)
	if err != nil || len(c.Added) == 0 {
		data = []byte("{}")
	}
	return Source{Path: path, Scope: Local, Data: data, Bare: true}
}

// maxTools bounds the tools of a server whose hashes are kept.
const maxTools = 2000

// Differ returns the tools of a server that say something else of themselves, by hash, than
// when they were seen first, sorted.
func (c *Choices) Differ(server string, now map[string]string) (changed []string) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if was, ok := c.Tools[server][name]; ok && was != now[name] {
			changed = append(changed, name)
		}
	}
	return changed
}

// Withhold records tools that are left out.
func (c *Choices) Withhold(server string, tools map[string]string) {
	if c.Seen == nil {
		c.Seen = map[string]map[string]string{}
	}
	if c.Seen[server] = maps.Clone(tools); len(tools) == 0 {
		delete(c.Seen, server)
	}
}

// Agree takes the tools of a server as they were when they were left out, and returns how
// many there were.
func (c *Choices) Agree(server string) int {
	seen := c.Seen[server]
	if c.Tools[server] != nil {
		maps.Copy(c.Tools[server], seen)
	}
	delete(c.Seen, server)
	return len(seen)
}

// New returns the tools that were never seen.
func (c *Choices) New(server string, now map[string]string) map[string]string {
	added := maps.Clone(now)
	maps.DeleteFunc(added, func(name, _ string) bool { _, ok := c.Tools[server][name]; return ok })
	return added
}

// Accept records what tools of a server say of themselves.
func (c *Choices) Accept(server string, now map[string]string) error {
	if c.Tools == nil {
		c.Tools = map[string]map[string]string{}
	}
	if c.Tools[server] == nil {
		c.Tools[server] = map[string]string{}
	}
	maps.Copy(c.Tools[server], now)
	if len(c.Tools[server]) > maxTools {
		return ErrMany
	}
	return nil
}
