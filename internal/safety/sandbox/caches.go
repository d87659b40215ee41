package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// CacheAge is how long the caches of a workspace are kept that nobody uses. Their
// size has no bound of ours: the tools trim what they can trim.
const CacheAge = 30 * 24 * time.Hour

// usedFile is touched in the caches of a workspace when they are used.
const usedFile = ".used"

// CacheConfig says for whom caches are prepared.
type CacheConfig struct {
	Dir   string   // of the workspace: see [CacheDir]; required, made when it is missing
	Roots []string // of the workspace; what the environment points to in them stays
	Home  string   // of the user; required
	Env   []string // of the user
	Net   Net      // of the commands
	GOOS  string   // "" = that of this program
}

// Caches are the caches of a workspace: what toolchains download, compile and
// remember while they are confined. They fill from the network and from the
// user's own caches, which are only read.
type Caches struct {
	Set      []string // NAME=value, for [Overlay]
	Writable []string // for [Confinement.Writable]
	Read     []string // folders of the user's own caches, for [Confinement.Read]
	Layers   []Layer  // over folders of the user's own caches, for [Confinement.Layers]
}

// CacheDir is the folder below parent for the caches of a workspace.
func CacheDir(parent, workspace string) string {
	sum := sha256.Sum256([]byte(filepath.Clean(workspace)))
	return filepath.Join(parent, hex.EncodeToString(sum[:12]))
}

// PrepareCaches makes the caches of a workspace and fills them as far as that
// costs nothing but links and small files. What commands left in the folder leads
// nowhere else.
func PrepareCaches(c CacheConfig) (Caches, error) {
	if c.GOOS == "" {
		c.GOOS = runtime.GOOS
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return Caches{}, fmt.Errorf("making the caches: %w", err)
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return Caches{}, fmt.Errorf("opening the caches: %w", err)
	}
	defer root.Close()
	p := &cachePlan{CacheConfig: c, seed: seed{root: root, files: maxSeedFiles, bytes: maxSeedBytes}}
	p.golang()
	p.javascript()
	p.rust()
	p.python()
	p.jvm()
	p.others()
	if err := p.seed.touch(usedFile); err != nil {
		return Caches{}, fmt.Errorf("preparing the caches: %w", err)
	}
	return Caches{Set: p.set, Writable: []string{c.Dir}, Read: p.read, Layers: p.layers}, nil
}

// PruneCaches removes what [PrepareCaches] has made below parent and nobody has
// used for [CacheAge], but never keep. It returns what could not be removed.
func PruneCaches(parent, keep string, now time.Time) error {
	root, err := os.OpenRoot(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the caches: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("reading the caches: %w", err)
	}
	var faults []error
	for _, e := range entries {
		if !e.IsDir() || e.Name() == filepath.Base(keep) {
			continue
		}
		used, err := root.Lstat(filepath.Join(e.Name(), usedFile))
		if err != nil || now.Sub(used.ModTime()) < CacheAge {
			continue // somebody else's, or in use
		}
		if err := root.RemoveAll(e.Name()); err != nil {
			faults = append(faults, fmt.Errorf("removing old caches: %w", err))
		}
	}
	return errors.Join(faults...)
}

// Overlay returns env with the variables of set in place of its own. Neither is
// changed.
func Overlay(env, set []string) []string {
	names := map[string]bool{}
	for _, entry := range set {
		names[variable(entry)] = true
	}
	merged := slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return names[variable(entry)] })
	return append(merged, set...)
}

// variable is the name that an entry sets, as it is compared here.
func variable(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// cachePlan collects what the tools of one workspace need.
type cachePlan struct {
	CacheConfig
	seed seed
	set  []string
	read []string

	layers []Layer
}

// env is a variable of the user; the last of a name counts.
func (p *cachePlan) env(name string) string {
	for _, entry := range slices.Backward(p.Env) {
		if variable(entry) == variable(name) {
			_, value, _ := strings.Cut(entry, "=")
			return value
		}
	}
	return ""
}

// ours reports whether the user has pointed a variable into the workspace.
func (p *cachePlan) ours(name string) bool {
	value := p.env(name)
	return value != "" && slices.ContainsFunc(p.Roots, func(root string) bool {
		rel, err := filepath.Rel(root, value)
		return err == nil && filepath.IsLocal(rel)
	})
}

func (p *cachePlan) add(name, value string) { p.set = append(p.set, name+"="+value) }

// own points a variable to a folder of the workspace's caches, which it makes.
func (p *cachePlan) own(name string, folder ...string) {
	rel := filepath.Join(folder...)
	if !p.ours(name) && p.seed.mkdir(rel) {
		p.add(name, filepath.Join(p.Dir, rel))
	}
}

// over lays a folder of the caches, which p has made, over the user's own.
func (p *cachePlan) over(below string, folder ...string) {
	rel := filepath.Join(folder...)
	if p.GOOS == "linux" && filepath.IsAbs(below) && foundAt(below) && p.seed.mkdir(rel) && p.seed.mkdir(rel+".work") {
		p.layers = append(p.layers, Layer{Path: filepath.Join(p.Dir, rel), Below: filepath.Clean(below), Work: filepath.Join(p.Dir, rel+".work")})
		p.read = append(p.read, below)
	}
}

// keep points a variable, which the user has not set, to where his own things
// are, if they are there: something else that is set here would lead past them.
func (p *cachePlan) keep(name string, folder ...string) {
	path := filepath.Join(folder...)
	if p.env(name) == "" && foundAt(path) {
		p.add(name, path)
		p.read = append(p.read, path)
	}
}

// real is the user's own folder for a tool.
func (p *cachePlan) real(name string, folder ...string) string {
	if dir := p.env(name); dir != "" {
		return dir
	}
	return filepath.Join(append([]string{p.Home}, folder...)...)
}

// anywhere reports whether one of the roots has a file of this name.
func (p *cachePlan) anywhere(name ...string) bool {
	return slices.ContainsFunc(p.Roots, func(root string) bool {
		return foundAt(filepath.Join(append([]string{root}, name...)...))
	})
}

func foundAt(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
