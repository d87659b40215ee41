package app

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

	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/plugins"
)

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
	stamp  string // [App.besideStamp] of list
}

// besideNow returns the plugins that lie in folders of skills, with their stamp, without a
// look at every folder there. They are looked for again when a folder of skills comes, goes
// or is trusted, when something comes into one or goes, when one of the manifests changes,
// and a moment later anyhow: a folder that was there already may have got a manifest.
func (a *App) besideNow(workdir string) ([]besidePlugin, string) {
	places := a.besidePlaces(workdir)
	var b strings.Builder
	for _, place := range places {
		b.WriteString("\n" + place.Dir + " " + stampOfFile(place.Dir))
	}
	p := &a.plugged
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.beside[workdir]; ok && f.places == b.String() && time.Since(f.at) < customHolds && a.besideStamp(f.list) == f.stamp {
		return f.list, f.stamp
	}
	if p.beside == nil || len(p.beside) >= maxForced {
		p.beside = map[string]besideFolder{}
	}
	f := besideFolder{at: time.Now(), places: b.String(), list: besideIn(places)}
	f.stamp = a.besideStamp(f.list)
	p.beside[workdir] = f
	return f.list, f.stamp
}

// beside returns the plugins that lie in folders of skills.
func (a *App) beside(workdir string) []besidePlugin { return besideIn(a.besidePlaces(workdir)) }

// besidePlaces are the folders of skills in which plugins may lie: the administrator's, the
// user's, and those of a project that is trusted.
func (a *App) besidePlaces(workdir string) []frontmatter.Place {
	return slices.DeleteFunc(a.filePlaces(workdir, inSkills), func(p frontmatter.Place) bool { return !p.Trusted })
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
func (a *App) besideStamp(list []besidePlugin) string {
	var b strings.Builder
	for _, one := range list {
		b.WriteString("\n" + one.dir + " " + stampOfFile(filepath.Join(one.dir, filepath.FromSlash(frontmatter.PluginManifest))))
		if one.covers != nil {
			b.WriteString(" " + a.trustMark() + stampOfTree(one.dir))
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
func (a *App) findBeside(name string) (plugins.Loaded, bool) {
	s := a.pluginStore()
	for _, one := range a.beside(a.opts.Workdir) {
		if l, err := s.LoadBeside(one.dir, one.covers); err == nil && (l.ID == name || l.Name == name) {
			return l, true
		}
	}
	return plugins.Loaded{}, false
}

// listBeside describes the plugins that lie in folders of skills.
func (a *App) listBeside(workdir string, choices plugins.Choices) (all []query.PluginInfo) {
	s := a.pluginStore()
	for _, one := range a.beside(workdir) {
		l, err := s.LoadBeside(one.dir, one.covers)
		info := query.PluginInfo{ID: l.ID, Name: strings.TrimSuffix(l.ID, "@"+plugins.SkillsDir), Source: one.dir}
		if err != nil {
			info.Problem = err.Error()
		}
		info.Enabled, info.By = choices.Enabled(plugins.Installed{ID: l.ID}, l.Off, workdir)
		all = append(all, a.described(info, l, nil))
	}
	return all
}

// lies says of a plugin that was not installed and is in no list of ours where it lies.
func (a *App) lies(name string, err error) error {
	if l, ok := a.findBeside(name); ok && errors.Is(err, plugins.ErrUnknown) {
		return fmt.Errorf("it was not installed, and lies in %s: change it there", l.Root)
	}
	return err
}

// errUntrusted is a plugin of a project that nobody trusts.
var errUntrusted = errors.New("the folder is not trusted")

// untrustedBeside is where a plugin of a name lies in a project that is not trusted; "" =
// there is none.
func (a *App) untrustedBeside(name string) string {
	places := slices.DeleteFunc(a.filePlaces(a.opts.Workdir, inSkills), func(p frontmatter.Place) bool { return p.Trusted })
	for _, one := range besideIn(places) {
		p, err := plugins.Read(one.dir, filepath.Base(one.dir))
		if err == nil && p.Name == strings.TrimSuffix(name, "@"+plugins.SkillsDir) {
			return one.dir
		}
	}
	return ""
}

// foundPlugin is the plugin of a name that a person has said: installed, or beside skills.
func (a *App) foundPlugin(s *plugins.Store, name string) (in PluginInstalled, l plugins.Loaded, beside bool, err error) {
	if in, err = s.Find(name); err == nil {
		return in, l, false, nil
	}
	if errors.Is(err, plugins.ErrUnknown) {
		if l, ok := a.findBeside(name); ok {
			return PluginInstalled{ID: l.ID}, l, true, nil
		}
		if dir := a.untrustedBeside(name); dir != "" {
			err = fmt.Errorf("it lies in %s, and %w", dir, errUntrusted)
		}
	}
	return in, l, false, pluginProblem(name, err)
}
