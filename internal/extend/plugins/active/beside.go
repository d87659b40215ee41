package active

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/internal/base/frontmatter"
	"dure/internal/extend/plugins"
)

// besideHolds is how long a look at the folders of skills is taken for right.
const besideHolds = time.Second

// A besidePlugin is a plugin that lies in a folder of skills.
type besidePlugin struct {
	dir    string
	covers func(path string, data []byte) bool // nil = it is not a project's
}

// besideFolder is what lay beside the skills of a folder when that was looked at.
type besideFolder struct {
	at     time.Time
	places string // what the folders of skills were like
	list   []besidePlugin
	stamp  string // [Extension.besideStamp] of list
}

// besideNow returns the plugins that lie in folders of skills, with their stamp, without a
// look at every folder there. They are looked for again when a folder of skills comes, goes
// or is trusted, when something comes into one or goes, when one of the manifests changes,
// and a moment later anyhow: a folder that was there already may have got a manifest.
func (x *Extension) besideNow(workdir string) ([]besidePlugin, string) {
	places := x.besidePlaces(workdir, true)
	var b strings.Builder
	for _, place := range places {
		b.WriteString("\n" + place.Dir + " " + stampOfFile(place.Dir))
	}
	now := x.cfg.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if f, ok := x.beside[workdir]; ok && f.places == b.String() && now.Sub(f.at) < besideHolds && x.besideStamp(f.list) == f.stamp {
		return f.list, f.stamp
	}
	if x.beside == nil || len(x.beside) >= maxFolders {
		x.beside = map[string]besideFolder{}
	}
	f := besideFolder{at: now, places: b.String(), list: besideIn(places)}
	f.stamp = x.besideStamp(f.list)
	x.beside[workdir] = f
	return f.list, f.stamp
}

// besidePlaces are the folders of skills in which plugins may lie: the administrator's, the
// user's, and those of a project that is trusted; or those that are not trusted.
func (x *Extension) besidePlaces(workdir string, trusted bool) []frontmatter.Place {
	return slices.DeleteFunc(x.cfg.Skills(workdir), func(p frontmatter.Place) bool { return p.Trusted != trusted })
}

func besideIn(places []frontmatter.Place) (all []besidePlugin) {
	for _, place := range places {
		entries, err := os.ReadDir(place.Dir)
		if err != nil {
			continue // there is none
		}
		for _, e := range entries {
			dir := filepath.Join(place.Dir, e.Name())
			if place.Scope == frontmatter.Project && !e.IsDir() || !plugins.Beside(dir) {
				continue
			}
			all = append(all, besidePlugin{dir, place.Covers})
		}
	}
	return all
}

// besideStamp changes when another plugin lies in a folder of skills, or another manifest.
func (x *Extension) besideStamp(list []besidePlugin) string {
	var b strings.Builder
	for _, one := range list {
		b.WriteString("\n" + one.dir + " " + stampOfFile(filepath.Join(one.dir, filepath.FromSlash(frontmatter.PluginManifest))))
		if one.covers != nil {
			b.WriteString(" " + x.cfg.Trusted() + stampOfTree(one.dir))
		}
	}
	return b.String()
}

// stampOfTree changes when a file of a folder does, comes or goes.
func stampOfTree(dir string) string {
	sum, left := sha256.New(), 10_000 // more than a plugin may have
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err == nil && !e.IsDir() {
			fmt.Fprintf(sum, "%q %s\n", path, stampOfFile(path))
		}
		return nil // what cannot be read is refused where it is read
	})
	return fmt.Sprintf(" %x", sum.Sum(nil))
}

// findBeside returns the plugin of a name or an ID that lies in a folder of skills.
func (x *Extension) findBeside(name string) (plugins.Loaded, bool) {
	s := x.cfg.Store()
	for _, one := range besideIn(x.besidePlaces(x.cfg.Workdir, true)) {
		if l, err := s.LoadBeside(one.dir, one.covers); err == nil && (l.ID == name || l.Name == name) {
			return l, true
		}
	}
	return plugins.Loaded{}, false
}

// untrustedBeside is where a plugin of a name lies in a project that is not trusted; "" =
// there is none.
func (x *Extension) untrustedBeside(name string) string {
	for _, one := range besideIn(x.besidePlaces(x.cfg.Workdir, false)) {
		p, err := plugins.Read(one.dir, filepath.Base(one.dir))
		if err == nil && p.Name == strings.TrimSuffix(name, "@"+plugins.SkillsDir) {
			return one.dir
		}
	}
	return ""
}

// A found plugin is what a person means by a name: it is installed, or lies beside skills.
type found struct {
	plugins.Loaded
	in     plugins.Installed
	beside bool
}

// find returns the plugin of a name. Of one that is installed nothing is read.
func (x *Extension) find(name string) (found, error) {
	in, err := x.cfg.Store().Find(name)
	if err == nil {
		return found{in: in}, nil
	}
	if errors.Is(err, plugins.ErrUnknown) {
		if l, ok := x.findBeside(name); ok {
			return found{l, plugins.Installed{ID: l.ID}, true}, nil
		}
		if dir := x.untrustedBeside(name); dir != "" {
			err = fmt.Errorf("it lies in %s, and %w", dir, plugins.ErrUntrusted)
		}
	}
	return found{}, plugins.Problem(name, err)
}

// look returns the plugin of a name as it is.
func (x *Extension) look(name string) (found, error) {
	f, err := x.find(name)
	if err == nil && !f.beside {
		f.Loaded, err = x.cfg.Store().Look(f.in)
	}
	return f, plugins.Problem(name, err)
}
