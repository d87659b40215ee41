package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Worktree says how the work trees of agents are made.
type Worktree struct {
	From  string   // head or fresh; "" = head
	Links []string // folders of the repository that they have links to
	Only  []string // folders that they have alone; nil = all
}

// FileWorktree is [Worktree] as a file writes it.
type FileWorktree struct {
	BaseRef *string  `json:"baseRef"`
	Links   []string `json:"symlinkDirectories"`
	Only    []string `json:"sparsePaths"`
}

// maxTreePaths bounds the lists of folders of work trees.
const maxTreePaths = 200

var baseRefs = []string{"head", "fresh"}

// worktree applies what a layer says about work trees.
func (l *loader) worktree(ly layer, s Settings) error {
	w := s.Worktree
	if w == nil {
		return nil
	}
	if w.BaseRef != nil {
		if !slices.Contains(baseRefs, *w.BaseRef) {
			return l.invalid(ly, "worktree.baseRef", *w.BaseRef, baseRefs)
		}
		l.set(ly, "worktree.baseRef", l.cfg.Worktree.From != *w.BaseRef)
		l.cfg.Worktree.From = *w.BaseRef
	}
	for _, f := range []struct {
		key  string
		from []string
		to   *[]string
	}{{"worktree.symlinkDirectories", w.Links, &l.cfg.Worktree.Links}, {"worktree.sparsePaths", w.Only, &l.cfg.Worktree.Only}} {
		for i, path := range f.from {
			local := filepath.FromSlash(path)
			if !filepath.IsLocal(local) || filepath.Clean(local) == "." || len(path) > maxText || strings.ContainsFunc(path, unicode.IsControl) {
				return l.invalidItem(ly, f.key, i, path, "a folder inside of the repository")
			}
			if len(*f.to) >= maxTreePaths {
				return l.invalidItem(ly, f.key, i, path, fmt.Sprintf("one of %d folders at most", maxTreePaths))
			}
			*f.to = union(*f.to, []string{path})
			l.set(ly, f.key, false)
		}
	}
	return nil
}

// restrictWorktree takes from a repository that is not trusted what it says of them.
func (l *loader) restrictWorktree(ly layer, s *Settings) {
	if s.Worktree == nil {
		return
	}
	w := *s.Worktree
	l.untrusted(ly, "worktree.symlinkDirectories", &w.Links)
	l.untrusted(ly, "worktree.sparsePaths", &w.Only)
	if w.BaseRef != nil && !l.permits(ly) {
		l.inert(ly, "worktree.baseRef", ly.where("worktree.baseRef"), Untrusted, "")
		w.BaseRef = nil
	}
	s.Worktree = &w
}
