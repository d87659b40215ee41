package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Names of the mechanisms, in the order in which they are tried.
const (
	byBwrap      = "bwrap"
	byNamespaces = "namespaces"
	byLandlock   = "landlock"
)

// landlockFrom is the first version of Landlock that decides on cutting files.
const landlockFrom = 3

// A cell is what a box confines its commands with. It looks for the mechanisms of
// the system when the first command is confined, and uses the first that works:
// each was tried, with a command that does nothing.
type cell struct {
	allowed []string // mechanisms; nil = all
	parent  string   // of the folder of the box
	roots   []string
	holds   holds
	spares  spares

	mu     sync.Mutex
	found  *finding
	dir    string // the folder of the box; "" until there is one
	closed bool
}

// A finding is what the machine has.
type finding struct {
	mechanism string // "" = none
	bwrap     string // its path
	parts     []Part
	landlock  int // its version; 0 = none
}

func (c *cell) init(cfg Config) {
	c.allowed, c.parent = cfg.Mechanisms, cfg.Temp
	c.spares.init()
	if cfg.Confine != nil {
		c.roots = slices.Concat(cfg.Confine.Roots, cfg.Confine.Extra)
	}
}

// close ends the spare, removes the folder of the box, and waits for the last hold
// to go.
func (c *cell) close() {
	c.spares.close()
	c.holds.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.dir != "" {
		_ = removeAll(c.dir) // what is left of it lies in a folder for such things
		c.dir = ""
	}
}

// removeAll removes a folder, even if a command has taken rights on it away. What
// another one swaps for a link meanwhile changes nothing outside.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	parent, name := filepath.Split(dir)
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), name, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
	return root.RemoveAll(name)
}

// places returns the folders of the box, which it makes when it is first asked.
func (c *cell) places(w *watchdog) (places, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return places{}, ErrClosed
	}
	if c.dir == "" {
		dir, err := os.MkdirTemp(c.parent, "dure-box-")
		if err != nil {
			return places{}, fmt.Errorf("making a folder for commands: %w", err)
		}
		err = errors.Join(
			os.Mkdir(filepath.Join(dir, "tmp"), 0o700),
			os.Mkdir(filepath.Join(dir, "none"), 0o500),
			os.WriteFile(filepath.Join(dir, "blank"), nil, 0o400),
		)
		if err != nil {
			return places{}, errors.Join(fmt.Errorf("making a folder for commands: %w", err), os.RemoveAll(dir))
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return places{}, fmt.Errorf("making a folder for commands: %w", err)
		}
		c.dir = dir
		w.leave("t", dir)
	}
	return places{filepath.Join(c.dir, "tmp"), filepath.Join(c.dir, "none"), filepath.Join(c.dir, "blank")}, nil
}

// find looks for the mechanisms, once. What it starts for that carries a mark, so that
// none of it outlives this program.
func (c *cell) find(mark func() string) *finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == nil {
		c.found = c.search(mark)
	}
	return c.found
}

func (c *cell) search(mark func() string) *finding {
	f := &finding{landlock: landlockVersion()}
	for _, name := range []string{byBwrap, byNamespaces, byLandlock} {
		part := Part{Name: name}
		switch {
		case c.allowed != nil && !slices.Contains(c.allowed, name):
			part.Detail = "not to be used"
		case f.mechanism != "":
			part.Detail = "not needed"
			if name == byLandlock {
				part.Detail = fmt.Sprintf("version %d, on top", f.landlock)
				part.Used = f.landlock >= landlockFrom
			}
		default:
			detail, err := c.try(name, f, mark)
			part.Detail, part.Used = detail, err == nil
			if err != nil {
				part.Detail = err.Error()
			} else {
				f.mechanism = name
			}
		}
		f.parts = append(f.parts, part)
	}
	return f
}

// try says what a mechanism is, or why it cannot be used.
func (c *cell) try(name string, f *finding, mark func() string) (detail string, err error) {
	switch name {
	case byBwrap:
		if f.bwrap, detail, err = findBwrap(c.roots); err != nil {
			return "", err
		}
	case byNamespaces:
		detail = "user, mount, process, network and other namespaces of this program"
	case byLandlock:
		if f.landlock < landlockFrom {
			return "", fmt.Errorf("version %d, and %d is needed", f.landlock, landlockFrom)
		}
		detail = fmt.Sprintf("version %d", f.landlock)
	}
	return detail, probe(name, f, []string{mark()})
}

// handshakeTime is how long building the walls may take on a machine that is very
// busy.
const handshakeTime = 10 * time.Second
