package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// IncludeFile is the file of a repository that names what of it git ignores and a new
// tree gets a copy of all the same, in the form of a .gitignore.
const IncludeFile = ".worktreeinclude"

// Bounds of what is copied into a tree.
const (
	maxCopied     = 10_000    // files
	maxCopiedSize = 256 << 20 // bytes
)

// include copies the files that git ignores and that the repository wants in every
// tree. Links are not followed, and nothing is replaced.
func (s *Store) include(ctx context.Context, repo place, t Tree) (notes []string, err error) {
	file := filepath.Join(repo.top, IncludeFile)
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return nil, nil //nolint:nilerr // it has none
	}
	named, err := s.ask(ctx, repo, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-from="+file)
	if err != nil || named == "" {
		return nil, err
	}
	ignored, err := s.ask(ctx, repo, strings.NewReader(named), "check-ignore", "-z", "--stdin")
	if code(err) == 1 { // none of them
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	from, err := os.OpenRoot(repo.top)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := os.OpenRoot(t.Path)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	left, count := int64(maxCopiedSize), 0
	for _, name := range names(ignored) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		name = filepath.FromSlash(name)
		info, err := from.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || !filepath.IsLocal(name) {
			continue
		}
		if count++; count > maxCopied || info.Size() > left {
			return []string{fmt.Sprintf("not all that %s names was copied: %d files of %d MiB are the most", IncludeFile, maxCopied, maxCopiedSize>>20)}, nil
		}
		n, err := copyFile(from, to, name, info.Mode().Perm(), left)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("copying %s into the work tree: %w", name, err)
		}
		left -= n
	}
	return nil, nil
}

func copyFile(from, to *os.Root, name string, mode fs.FileMode, most int64) (n int64, err error) {
	if err := to.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return 0, err
	}
	in, err := from.Open(name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, io.LimitReader(in, most))
	return n, errors.Join(err, out.Close())
}

// sparse writes down which folders a tree has alone. It is written beside the tree, so
// that no setting of the repository changes.
func sparse(git string, only []string) error {
	lines := []string{"/*", "!/*/"}
	for _, dir := range only {
		dir = filepath.ToSlash(filepath.Clean(dir))
		if !filepath.IsLocal(filepath.FromSlash(dir)) || dir == "." || strings.ContainsAny(dir, "\n\r*?[\\") {
			return fmt.Errorf("%q is no folder of the repository", dir)
		}
		parts := strings.Split(dir, "/")
		for i := range parts[:len(parts)-1] {
			up := "/" + strings.Join(parts[:i+1], "/") + "/"
			lines = append(lines, up, "!"+up+"*/")
		}
		lines = append(lines, "/"+dir+"/")
	}
	if err := os.MkdirAll(filepath.Join(git, "info"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(git, "info", "sparse-checkout"), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// links makes links in a tree to folders of the repository's own folder, where the tree
// has none. Notes say which are not made.
func links(top, tree string, dirs []string) (made, notes []string) {
	for _, dir := range dirs {
		rel := filepath.Clean(filepath.FromSlash(dir))
		if rel == "." || !filepath.IsLocal(rel) || strings.HasPrefix(filepath.ToSlash(rel)+"/", ".git/") {
			notes = append(notes, fmt.Sprintf("%q is not linked: it is no folder of the repository", dir))
			continue
		}
		if info, err := os.Lstat(filepath.Join(top, rel)); err != nil || !info.IsDir() {
			continue // it is not there yet
		}
		root, err := os.OpenRoot(tree)
		if err == nil {
			err = errors.Join(root.MkdirAll(filepath.Dir(rel), 0o755), root.Symlink(filepath.Join(top, rel), rel), root.Close())
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("%q is not linked: %v", dir, err))
			continue
		}
		made = append(made, filepath.ToSlash(rel))
	}
	return made, notes
}
