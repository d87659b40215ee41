package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The reasons of [Candidate].Same.
const (
	SameTree    = "same"     // it is what is installed
	SameVersion = "same-set" // it has changed, and calls itself by the same version
	newPlugin   = "unknown"  // version of what has none
	mostCommit  = 12         // digits of a commit or a hash that are its version
)

// Prepare fetches a plugin from a source of its own, or from a marketplace that is
// known.
func (s *Store) Prepare(ctx context.Context, src Source) (Candidate, error) {
	if err := check(src); err != nil {
		return Candidate{}, err
	}
	if src.Kind == FromMarketplace {
		name, market, _ := strings.Cut(src.Package, "@")
		return s.prepareEntry(ctx, name, market)
	}
	if err := s.Allow.Check(src); err != nil {
		return Candidate{}, err
	}
	return s.prepare(ctx, src, Local, func(stage string) (fetched, error) { return s.fetch(ctx, src, stage) }, nil)
}

// prepareEntry fetches what a marketplace lists.
func (s *Store) prepareEntry(ctx context.Context, name, market string) (Candidate, error) {
	k, m, err := s.market(market)
	if err != nil {
		return Candidate{}, err
	}
	e, err := find(m, name)
	if err != nil {
		return Candidate{}, err
	}
	if far := hostOf(k.Source); far != "" && !isHere(far) && isHere(hostOf(e.Source)) {
		return Candidate{}, noSource("%s: a marketplace names no places on this machine", e.Name)
	}
	get := func(stage string) (fetched, error) { return s.fetch(ctx, e.Source, stage) }
	if e.Source.Kind == FromRelative {
		get = func(stage string) (fetched, error) { return s.fromMarket(k, e.Source.Path, stage) }
	}
	return s.prepare(ctx, e.Source, market, get, &e)
}

// fromMarket copies a folder of a marketplace.
func (s *Store) fromMarket(k Known, rel, stage string) (fetched, error) {
	at, err := local(rel)
	if err != nil {
		return fetched{}, err
	}
	tree := filepath.Join(stage, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return fetched{}, fmt.Errorf("copying a plugin: %w", err)
	}
	if err := s.copyTree(filepath.Join(s.treeDir(k.Tree, k.Name), filepath.FromSlash(at)), tree); err != nil {
		return fetched{}, fmt.Errorf("copying %s of the marketplace %s: %w", clip(rel), k.Name, bare(err))
	}
	return fetched{dir: tree, commit: k.Commit}, nil
}

func (s *Store) prepare(_ context.Context, src Source, market string, get func(stage string) (fetched, error), e *Entry) (Candidate, error) {
	stage, err := s.stage()
	if err != nil {
		return Candidate{}, err
	}
	defer os.RemoveAll(stage)
	got, err := get(stage)
	if err != nil {
		return Candidate{}, err
	}
	r := Release{Source: src, Commit: got.commit, At: s.now()}
	var p Plugin
	if e != nil {
		r.Entry, r.Strict = e.Keys, e.Strict
		p, err = readEntry(got.dir, *e)
	} else {
		p, err = Read(got.dir, nameOf(src))
	}
	if err != nil {
		return Candidate{}, err
	}
	if err := s.fits(p); err != nil {
		return Candidate{}, err
	}
	r.Name, r.Can = p.Name, p.Can
	r.Version, r.Set = p.Version, p.Version != ""
	r.Version = cmp.Or(p.Version, got.version, cut(got.commit), cut(got.archive), newPlugin)
	if r.Tree, err = s.put(got.dir, p.Name, stage); err != nil {
		return Candidate{}, err
	}
	return s.compare(Candidate{ID: p.Name + "@" + market, Plugin: p.Manifest, Release: r})
}

func cut(s string) string { return s[:min(len(s), mostCommit)] }

// compare fills in how a candidate differs from what is installed.
func (s *Store) compare(c Candidate) (Candidate, error) {
	have, err := s.Find(c.ID)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return c, err
	}
	if err != nil {
		c.Change = Compare(nil, c.Release.Can)
		return c, nil
	}
	c.Before, c.Change = &have.Now, Compare(have.Now.Can, c.Release.Can)
	switch {
	case have.Now.Tree == c.Release.Tree:
		c.Same = SameTree
	case have.Now.Set && c.Release.Set && have.Now.Version == c.Release.Version:
		c.Same = SameVersion
	}
	return c, nil
}

// nameOf is a name for a plugin that has no manifest: that of its folder or archive.
func nameOf(src Source) string {
	at := cmp.Or(src.Path, src.Repo, src.Package, src.URL)
	at, _, _ = strings.Cut(at, "?")
	at = strings.ToLower(filepath.Base(filepath.ToSlash(strings.TrimRight(at, "/"))))
	for _, end := range []string{".zip", ".tgz", ".tar.gz", ".tar", ".git"} {
		at = strings.TrimSuffix(at, end)
	}
	at = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, at)
	return strings.Trim(at, "-_.")
}

// fits refuses a plugin that needs a newer program.
func (s *Store) fits(p Plugin) error {
	if p.MinVersion == "" {
		return nil
	}
	want, ok := parseVersion(p.MinVersion)
	if !ok {
		return fmt.Errorf("%s: min_app_version %q is no version", p.Name, clip(p.MinVersion))
	}
	have, ok := parseVersion(s.Version)
	if ok && slices.Compare(have[:], want[:]) < 0 {
		return fmt.Errorf("%s: %w: %s", p.Name, ErrOld, p.MinVersion)
	}
	return nil
}

// Install takes a candidate in, because somebody said yes to it as it is. A plugin that
// is there keeps what its user chose; its state before can be gone back to.
func (s *Store) Install(c Candidate) error {
	if err := s.verify(c.Release); err != nil {
		return fmt.Errorf("installing %s: %w", c.ID, err)
	}
	return s.change(func(b *book) error {
		at, err := b.find(c.ID)
		if err != nil {
			for _, p := range b.Plugins {
				if dataName(p.ID) == dataName(c.ID) {
					return fmt.Errorf("%s and %s would share one folder for data: remove one of them first", p.ID, c.ID)
				}
			}
			b.Plugins = append(b.Plugins, Installed{ID: c.ID, Now: c.Release})
			return nil
		}
		p := &b.Plugins[at]
		if p.Now.Tree == c.Release.Tree {
			p.Now = c.Release
			return nil
		}
		if p.Before != nil {
			s.release(*p.Before)
		}
		before := p.Now
		p.Before, p.Now = &before, c.Release
		return nil
	})
}

// Discard forgets a candidate that nobody wants.
func (s *Store) Discard(c Candidate) {
	b, err := s.read()
	if err != nil {
		return
	}
	for _, p := range b.Plugins {
		if p.Now.Tree == c.Release.Tree || p.Before != nil && p.Before.Tree == c.Release.Tree {
			return
		}
	}
	_ = os.RemoveAll(filepath.Dir(s.treeDir(c.Release.Tree, c.Release.Name))) // else it goes with the orphans
}

// Update fetches what an installed plugin has become. A marketplace is asked anew.
func (s *Store) Update(ctx context.Context, name string) (Candidate, error) {
	p, err := s.Find(name)
	if err != nil {
		return Candidate{}, err
	}
	plugin, market, _ := strings.Cut(p.ID, "@")
	if market == Local {
		return s.Prepare(ctx, p.Now.Source)
	}
	if _, err := s.UpdateMarket(ctx, market); err != nil {
		return Candidate{}, err
	}
	return s.prepareEntry(ctx, plugin, market)
}

// Rollback goes back to the state before the last update or the last rollback.
func (s *Store) Rollback(name string) (Installed, error) {
	var p Installed
	err := s.change(func(b *book) error {
		at, err := b.find(name)
		if err != nil {
			return err
		}
		one := &b.Plugins[at]
		if one.Before == nil {
			return fmt.Errorf("%w: %s has never been updated", ErrNothing, one.ID)
		}
		if err := s.verify(*one.Before); err != nil {
			return fmt.Errorf("going back to %s: %w", one.Before.Version, err)
		}
		now := one.Now
		one.Now, one.Before = *one.Before, &now
		p = *one
		return nil
	})
	return p, err
}

// Remove forgets a plugin, and what it kept unless that is to stay: that goes first, so
// that who is interrupted can begin again.
func (s *Store) Remove(name string, keepData bool) (Installed, error) {
	var p Installed
	err := s.change(func(b *book) error {
		at, err := b.find(name)
		if err != nil {
			return err
		}
		p = b.Plugins[at]
		if !keepData {
			if err := os.RemoveAll(s.DataDir(p.ID)); err != nil {
				return fmt.Errorf("removing the data of %s: %w", p.ID, err)
			}
		}
		s.release(p.Now)
		if p.Before != nil {
			s.release(*p.Before)
		}
		b.Plugins = slices.Delete(b.Plugins, at, at+1)
		return nil
	})
	return p, err
}

// Enable says whether a plugin is wanted: everywhere, or in one folder.
func (s *Store) Enable(name, folder string, on bool) (Installed, error) {
	var p Installed
	err := s.change(func(b *book) error {
		at, err := b.find(name)
		if err != nil {
			return err
		}
		one := &b.Plugins[at]
		if folder == "" {
			one.On = &on
		} else {
			in := maps.Clone(one.In)
			if in == nil {
				in = map[string]bool{}
			}
			in[folder] = on
			one.In = in
		}
		p = *one
		return nil
	})
	return p, err
}

// parseVersion reads the three numbers of a version; what comes behind them does not
// count.
func parseVersion(s string) (v [3]int, ok bool) {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "+")
	s, _, _ = strings.Cut(s, "-")
	parts := strings.Split(s, ".")
	if s == "" || len(parts) > len(v) {
		return v, false
	}
	for i, part := range parts {
		if part == "" || len(part) > 9 {
			return v, false
		}
		for _, r := range part {
			if r < '0' || r > '9' {
				return v, false
			}
			v[i] = 10*v[i] + int(r-'0')
		}
	}
	return v, true
}
