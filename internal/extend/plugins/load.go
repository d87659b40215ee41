package plugins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Loaded is a plugin that was compared with its hash and may be used.
type Loaded struct {
	Plugin
	ID   string
	Root string // absolute
	Data string // absolute; it is there

	// Held is a plugin that a project brings: its ID is one that any project may choose.
	Held bool
}

// Load reads an installed plugin, after it has compared all its files with the hash that
// somebody said yes to. A marketplace that is not allowed any more takes its plugins
// with it.
func (s *Store) Load(in Installed) (Loaded, error) {
	l, err := s.Look(in)
	if err != nil {
		return l, err
	}
	if err := os.MkdirAll(l.Data, 0o700); err != nil {
		return l, fmt.Errorf("making the folder for the data of %s: %w", in.ID, err)
	}
	return l, nil
}

// Look is [Store.Load] without making anything.
func (s *Store) Look(in Installed) (Loaded, error) {
	l := Loaded{ID: in.ID, Root: s.treeDir(in.Now.Tree, in.Now.Name), Data: s.DataDir(in.ID)}
	if err := s.permitted(in); err != nil {
		return l, fmt.Errorf("the plugin %s: %w", in.ID, err)
	}
	if err := s.verify(in.Now); err != nil {
		return l, fmt.Errorf("the plugin %s: %w", in.ID, err)
	}
	var err error
	if in.Now.Entry != nil {
		l.Plugin, err = readEntry(l.Root, Entry{Name: in.Now.Name, Keys: in.Now.Entry, Strict: in.Now.Strict})
	} else {
		l.Plugin, err = Read(l.Root, in.Now.Name)
	}
	if err == nil {
		err = s.fits(l.Plugin)
	}
	if err != nil {
		return l, fmt.Errorf("the plugin %s: %w", in.ID, err)
	}
	return l, nil
}

// permitted judges where a plugin came from: by its marketplace, if it has one.
func (s *Store) permitted(in Installed) error {
	_, market, _ := strings.Cut(in.ID, "@")
	if market == Local {
		return s.Allow.Check(in.Now.Source)
	}
	b, err := s.read()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(b.Markets, func(k Known) bool { return k.Name == market })
	if at >= 0 {
		return s.Allow.Check(b.Markets[at].Source)
	}
	if s.Allow.Strict || s.Allow.Unread || len(s.Allow.Blocked) > 0 {
		return fmt.Errorf("%w: its marketplace was removed, and nobody can tell what it was", ErrForbidden)
	}
	return nil
}

// LoadFolder reads a plugin that is named for one run, where it lies. Whoever names it
// has said yes to it.
func (s *Store) LoadFolder(dir string) (Loaded, error) {
	p, err := Read(dir, nameOf(Source{Path: dir}))
	if err == nil {
		err = s.fits(p)
	}
	if err != nil {
		return Loaded{}, fmt.Errorf("the plugin in %s: %w", dir, err)
	}
	id := p.Name + "@" + Inline
	l := Loaded{Plugin: p, ID: id, Root: dir, Data: s.DataDir(id)}
	if err := os.MkdirAll(l.Data, 0o700); err != nil {
		return l, fmt.Errorf("making the folder for the data of %s: %w", id, err)
	}
	return l, nil
}

// Kinds of files for [Loaded.Folders].
const (
	Skills   = "skills"
	Commands = "commands"
	Agents   = "agents"
)

// Folders returns the folders in which the files of a kind lie, absolute, so that all of
// them and no others are found there: each skill's own, and those of commands and agents.
// Commands and agents that share a folder with others that the plugin does not name are
// left out, and told.
func (l Loaded) Folders(kind string) (dirs []string, left []Left) {
	files := map[string][]string{Skills: l.Skills, Commands: l.Commands, Agents: l.Agents}[kind]
	var tops []string
	for _, at := range files {
		top := at
		if kind != Skills {
			top = path.Dir(at)
			if strings.HasPrefix(at, kind+"/") {
				top = kind // files below the usual folder are named by their way in it
			}
		}
		if !slices.ContainsFunc(tops, func(t string) bool { return top == t || kind != Skills && strings.HasPrefix(top, t+"/") }) {
			tops = append(tops, top)
		}
	}
	for _, top := range tops {
		full := filepath.Join(l.Root, filepath.FromSlash(top))
		if kind != Skills {
			if other := stranger(full, top, files); other != "" {
				left = append(left, Left{What: top, Why: "the plugin names some of the " + kind + " in it, and not " + other})
				continue
			}
		}
		dirs = append(dirs, full)
	}
	return dirs, left
}

// stranger returns a Markdown file below a folder that is not among those that are named.
func stranger(full, top string, files []string) (other string) {
	err := filepath.WalkDir(full, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !isMarkdown(filepath.ToSlash(at)) {
			return err
		}
		rel, err := filepath.Rel(full, at)
		if name := path.Join(top, filepath.ToSlash(rel)); err == nil && !slices.Contains(files, name) {
			other = name
			return fs.SkipAll
		}
		return err
	})
	if err != nil {
		return bare(err).Error()
	}
	return other
}

// missing warns of plugins that a marketplace in a folder has no folder for.
func missing(m *Marketplace, dir string) {
	for _, e := range m.Plugins {
		if e.Source.Kind != FromRelative {
			continue
		}
		at, err := local(e.Source.Path)
		if err == nil {
			_, err = os.Stat(filepath.Join(dir, filepath.FromSlash(at)))
		}
		if err != nil {
			m.Warnings = append(m.Warnings, fmt.Sprintf("%s: there is no %s", e.Name, clip(e.Source.Path)))
		}
	}
}

// Validate reads what is in a folder: a plugin, a marketplace, or both.
func Validate(dir string) (*Manifest, *Marketplace, error) {
	var market *Marketplace
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(marketFile))); err == nil {
		m, err := readMarket(dir)
		if err != nil {
			return nil, nil, err
		}
		missing(&m, dir)
		market = &m
	}
	p, err := Read(dir, nameOf(Source{Path: dir}))
	if market != nil && errors.Is(err, ErrMarket) {
		return nil, market, nil
	}
	if err != nil {
		return nil, market, err
	}
	return &p.Manifest, market, nil
}
