// Package changeset has a bundle changed as a whole: its files are copied into a folder of
// the workspace, changed there, and brought back all at once, when what they come to then
// has no mistakes and nobody has changed the same files meanwhile.
//
// What the files were when a changeset was opened is kept where no tool writes. What stands
// in the folder of a changeset is hostile: links are not followed, and what is no part of
// what was copied is refused. It asks nobody: whoever commits has shown before what
// [Changesets.Look] returns. It starts no goroutines, and is safe for concurrent use as far
// as changesets differ.
package changeset

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/extend/bundle"
	"dure/internal/safety/workspace"
)

// Folder is where changesets lie in a workspace. No bundle is read from folders of such names.
const Folder = ".changesets"

// Codes of what goes wrong (docs/errors.md).
const (
	ErrUnknown  agent.ErrorCode = "E_CHANGESET_UNKNOWN"
	ErrConflict agent.ErrorCode = "E_CHANGESET_CONFLICT"
	ErrInvalid  agent.ErrorCode = "E_CHANGESET_INVALID"
	ErrRefused  agent.ErrorCode = "E_CHANGESET_REFUSED"
	ErrLarge    agent.ErrorCode = "E_CHANGESET_TOO_LARGE"
)

// Bounds of a bundle that can be changed so.
const (
	maxFiles   = 2000
	maxEntries = 20_000   // that are looked at for them
	maxBytes   = 32 << 20 // of all files together
	maxRecords = 32       // changesets of a bundle that can be committed: the newest
)

// Config is what changesets work on. Dir, Records, Workspace and Load are required.
type Config struct {
	Dir       string // folder of the bundle, absolute
	Records   string // folder for what bundles were, of the program alone
	Workspace *workspace.Workspace
	Allowed   []string // patterns of the files that may be changed; none = all may

	// Load returns what is wrong with the bundle when its folder has these files.
	Load func(fs.FS) []bundle.Problem
}

// Changesets are those of a bundle, for an agent.
type Changesets struct {
	c  Config
	mu sync.Mutex // one is opened or committed at a time
}

// New returns the changesets of a bundle. It opens none.
func New(c Config) *Changesets { return &Changesets{c: c} }

// record is what a bundle was when a changeset was opened.
type record struct {
	Dir   string            `json:"dir"`
	Place string            `json:"place"` // folder of the changeset
	Files map[string]string `json:"files"` // their SHA-256
}

var idForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^cs-[1-9][0-9]{0,8}$`) })

// fresh returns the ID of the next changeset: one that neither the bundle nor the workspace has.
func (c *Changesets) fresh(root *os.Root) (string, error) {
	most := 0
	count := func(files fs.FS, dir string) error {
		list, err := fs.ReadDir(files, dir)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		for _, e := range list {
			if n, ok := strings.CutPrefix(e.Name(), "cs-"); ok && idForm().MatchString(e.Name()) {
				at, _ := strconv.Atoi(n) // digits
				most = max(most, at)
			}
		}
		return err
	}
	records, err := c.records()
	if err != nil {
		return "", err
	}
	defer records.Close()
	err = errors.Join(count(records.FS(), "."), count(root.FS(), Folder))
	return "cs-" + strconv.Itoa(most+1), err
}

// Place is where the files of a changeset are; of "", where all of them are.
func (c *Changesets) Place(id string) string {
	return filepath.Join(c.c.Workspace.Root(), Folder, id)
}

// Open copies the files of the bundle, and returns the ID of the changeset and how many these
// are.
func (c *Changesets) Open() (id string, n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := Restore(c.c.Dir, c.c.Records); err != nil {
		return "", 0, stuck(err)
	}
	files, err := c.current()
	if err != nil {
		return "", 0, err
	}
	root, err := c.c.Workspace.OpenRoot(c.c.Workspace.Root())
	if err != nil {
		return "", 0, err
	}
	defer root.Close()
	if err := ordinary(root, Folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", 0, err
	}
	if err := os.MkdirAll(c.recordsDir(), 0o700); err != nil {
		return "", 0, err
	}
	if id, err = c.fresh(root); err != nil {
		return "", 0, err
	}
	place := path.Join(Folder, id)
	if err := root.MkdirAll(Folder, 0o755); err != nil {
		return "", 0, err
	}
	if err := root.Mkdir(place, 0o755); err != nil { // of two at a time, one has it
		return "", 0, err
	}
	err = hide(root)
	r := record{Dir: c.c.Dir, Place: c.Place(id), Files: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err != nil {
			break
		}
		f, to := files[name], path.Join(place, name)
		r.Files[name] = f.sum
		err = root.MkdirAll(path.Dir(to), 0o755)
		if err == nil {
			err = root.WriteFile(to, f.data, f.info.Mode().Perm()|0o600)
		}
	}
	if err == nil {
		err = c.remember(id, r)
	}
	if err != nil {
		return "", 0, errors.Join(fmt.Errorf("opening a changeset: %w", err), root.RemoveAll(place))
	}
	return id, len(files), nil
}

// hide keeps changesets out of what git tells of.
func hide(root *os.Root) error {
	f, err := root.OpenFile(path.Join(Folder, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("*\n")
	return errors.Join(err, f.Close())
}

// ordinary reports an error where a folder of changesets is a link, or no folder.
func ordinary(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err == nil && !info.IsDir() {
		return refused(name+" is no folder", "Remove it, and open a changeset again.")
	}
	return err
}

// records opens the folder of what the bundle was.
func (c *Changesets) records() (*os.Root, error) { return os.OpenRoot(c.recordsDir()) }

func (c *Changesets) recordsDir() string { return recordsOf(c.c.Dir, c.c.Records) }

// recordsOf is where the records of a bundle are, however its folder is called.
func recordsOf(dir, records string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(records, hex.EncodeToString(sum[:8]))
}

// remember keeps what the bundle was, and forgets the oldest ones that were not committed.
func (c *Changesets) remember(id string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	root, err := c.records()
	if err != nil {
		return err
	}
	defer root.Close()
	const fresh = "new"
	if err := errors.Join(root.WriteFile(fresh, data, 0o600), root.Rename(fresh, id)); err != nil {
		return err
	}
	list, err := fs.ReadDir(root.FS(), ".")
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { return !idForm().MatchString(e.Name()) })
	if err != nil || len(list) <= maxRecords {
		return err
	}
	age := func(e fs.DirEntry) int64 {
		info, err := e.Info()
		switch {
		case e.Name() == id:
			return math.MinInt64
		case err != nil:
			return 0
		}
		return -info.ModTime().UnixNano()
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(age(a), age(b)) })
	for _, e := range list[maxRecords:] {
		err = errors.Join(err, root.Remove(e.Name()))
	}
	return err
}

// recorded returns what the bundle was when a changeset was opened.
func (c *Changesets) recorded(id string) (r record, err error) {
	if !idForm().MatchString(id) {
		return r, unknown(id)
	}
	root, err := c.records()
	if errors.Is(err, fs.ErrNotExist) {
		return r, unknown(id)
	} else if err != nil {
		return r, err
	}
	defer root.Close()
	data, err := root.ReadFile(id)
	if errors.Is(err, fs.ErrNotExist) {
		return r, unknown(id)
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && (r.Dir != c.c.Dir || r.Place != c.Place(id)) {
		return r, unknown(id)
	}
	return r, err
}

func unknown(id string) error {
	return &agent.ToolError{
		Code: ErrUnknown, Message: fmt.Sprintf("there is no open changeset %q of this bundle here", id[:min(len(id), 40)]),
		Suggestion: "Use the ID that opening one has answered with; one that was committed is over.",
	}
}

func refused(message, suggestion string) error {
	return &agent.ToolError{Code: ErrRefused, Message: message, Suggestion: suggestion}
}
