package plugins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// AddMarket adds a marketplace, or renews the one of its name that comes from the same
// source. want is the name that it has to have; "" = any.
func (s *Store) AddMarket(ctx context.Context, src Source, want string) (Known, error) {
	if src.Kind == FromMarketplace || src.Kind == FromNPM || src.Kind == FromRelative {
		return Known{}, noSource("a marketplace is a folder, a repository, an archive or a file")
	}
	if err := check(src); err != nil {
		return Known{}, err
	}
	if err := s.Allow.Check(src); err != nil {
		return Known{}, err
	}
	stage, err := s.stage()
	if err != nil {
		return Known{}, err
	}
	defer os.RemoveAll(stage)
	got, err := s.fetchMarket(ctx, src, stage)
	if err != nil {
		return Known{}, err
	}
	m, err := readMarket(got.dir)
	if err != nil {
		return Known{}, err
	}
	if err := checkMarketName(m.Name, src); err != nil {
		return Known{}, err
	}
	if want != "" && m.Name != want {
		return Known{}, fmt.Errorf("%w: the marketplace %s calls itself %s now", ErrChanged, want, m.Name)
	}
	k := Known{Name: m.Name, Source: src, Commit: got.commit, Plugins: len(m.Plugins), At: s.now()}
	if k.Tree, err = s.put(got.dir, m.Name, stage); err != nil {
		return Known{}, err
	}
	return k, s.change(func(b *book) error {
		at := slices.IndexFunc(b.Markets, func(o Known) bool { return o.Name == k.Name })
		if at < 0 {
			b.Markets = append(b.Markets, k)
			return nil
		}
		if place(b.Markets[at].Source) != place(src) {
			return fmt.Errorf("%w: the marketplace %s, from %s", ErrInstalled, k.Name, clip(SourceText(b.Markets[at].Source)))
		}
		s.release(Release{Name: k.Name, Tree: b.Markets[at].Tree})
		b.Markets[at] = k
		return nil
	})
}

// fetchMarket fetches a marketplace: a tree, or the one file.
func (s *Store) fetchMarket(ctx context.Context, src Source, stage string) (fetched, error) {
	single := src.Kind == FromURL || src.Kind == FromFile && strings.HasSuffix(src.Path, ".json")
	if !single {
		return s.fetch(ctx, src, stage)
	}
	tree := filepath.Join(stage, "tree")
	at := filepath.Join(tree, filepath.FromSlash(marketFile))
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return fetched{}, fmt.Errorf("fetching a marketplace: %w", err)
	}
	if src.Kind == FromURL {
		if err := s.get(ctx, src.URL, at, maxMarket); err != nil {
			return fetched{}, fmt.Errorf("fetching %s: %w", clip(src.URL), err)
		}
		return fetched{dir: tree}, nil
	}
	root, err := os.OpenRoot(filepath.Dir(src.Path))
	if err != nil {
		return fetched{}, fmt.Errorf("fetching a marketplace: %w", err)
	}
	defer root.Close()
	data, err := readFile(root.FS(), filepath.Base(src.Path), maxMarket)
	if err != nil {
		return fetched{}, fmt.Errorf("reading %s: %w", src.Path, bare(err))
	}
	if err := os.WriteFile(at, data, 0o600); err != nil {
		return fetched{}, fmt.Errorf("fetching a marketplace: %w", err)
	}
	return fetched{dir: tree}, nil
}

// readMarket reads the marketplace in a folder.
func readMarket(dir string) (Marketplace, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Marketplace{}, fmt.Errorf("reading a marketplace: %w", err)
	}
	defer root.Close()
	data, err := readFile(root.FS(), marketFile, maxMarket)
	if errors.Is(err, os.ErrNotExist) {
		return Marketplace{}, fmt.Errorf("it is no marketplace: there is no %s", marketFile)
	}
	if err != nil {
		return Marketplace{}, fmt.Errorf("reading %s: %w", marketFile, bare(err))
	}
	m, err := ParseMarketplace(data)
	if err != nil {
		return Marketplace{}, fmt.Errorf("reading %s: %w", marketFile, err)
	}
	return m, nil
}

// Market returns what a marketplace lists, as it was when it was last renewed.
func (s *Store) Market(name string) (Marketplace, error) {
	_, m, err := s.market(name)
	return m, err
}

func (s *Store) market(name string) (Known, Marketplace, error) {
	b, err := s.read()
	if err != nil {
		return Known{}, Marketplace{}, err
	}
	at := slices.IndexFunc(b.Markets, func(k Known) bool { return k.Name == name })
	if at < 0 {
		return Known{}, Marketplace{}, noMarket{name}
	}
	k := b.Markets[at]
	if err := s.Allow.Check(k.Source); err != nil {
		return k, Marketplace{}, err
	}
	if err := s.verify(Release{Name: k.Name, Tree: k.Tree}); err != nil {
		return k, Marketplace{}, fmt.Errorf("the marketplace %s: %w", k.Name, err)
	}
	m, err := readMarket(s.treeDir(k.Tree, k.Name))
	return k, m, err
}

// UpdateMarket asks a marketplace anew.
func (s *Store) UpdateMarket(ctx context.Context, name string) (Known, error) {
	all, err := s.Markets()
	if err != nil {
		return Known{}, err
	}
	at := slices.IndexFunc(all, func(k Known) bool { return k.Name == name })
	if at < 0 {
		return Known{}, noMarket{name}
	}
	return s.AddMarket(ctx, all[at].Source, name)
}

// RemoveMarket forgets a marketplace. What was installed from it stays, and is not
// updated any more.
func (s *Store) RemoveMarket(name string) error {
	return s.change(func(b *book) error {
		at := slices.IndexFunc(b.Markets, func(k Known) bool { return k.Name == name })
		if at < 0 {
			return noMarket{name}
		}
		s.release(Release{Name: name, Tree: b.Markets[at].Tree})
		b.Markets = slices.Delete(b.Markets, at, at+1)
		return nil
	})
}
