// Package browse shows people the files in the folder of a session. It opens nothing outside of
// that folder and nothing that may have secrets, and changes nothing. It starts no goroutines.
package browse

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/workspace"
)

// Open returns the files in the folder of a session. What is hidden, folders and files, is not
// opened.
func Open(s agent.SessionInfo, hidden []string) (*Files, error) {
	ws, err := workspace.New(workspace.Config{Root: s.Workdir})
	if err != nil {
		return nil, workspace.Gone(s.ID, s.Workdir, err)
	}
	root, err := ws.OpenRoot(ws.Root())
	if err != nil {
		return nil, workspace.Gone(s.ID, s.Workdir, err)
	}
	hide := slices.Clone(hidden)
	for i, dir := range hide {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			hide[i] = real
		}
	}
	return &Files{ws, root, hide}, nil
}

// Files are the files in a folder. Paths are relative to it, with slashes. Links that
// lead out of it lead nowhere, and what is known to hold secrets is not opened.
type Files struct {
	ws   *workspace.Workspace
	root *os.Root
	hide []string // folders and files, absolute
}

// Close gives the folder back.
func (s *Files) Close() error { return s.root.Close() }

// Open opens a regular file. One that is likely to hold secrets is [fs.ErrPermission].
func (s *Files) Open(path string) (*os.File, error) {
	if !filepath.IsLocal(filepath.FromSlash(path)) {
		return nil, fs.ErrInvalid
	}
	name := filepath.FromSlash(path)
	_, real, err := s.ws.Resolve(filepath.Join(s.ws.Root(), name))
	if err != nil {
		return nil, err
	}
	if s.hidden(real) || mention.IsSecret(real) || mention.IsSecret(name) {
		return nil, fs.ErrPermission
	}
	f, err := workspace.OpenRegular(s.root, name)
	if special, ok := errors.AsType[*workspace.TypeError](err); ok {
		return nil, errors.Join(fs.ErrInvalid, special)
	}
	return f, err
}

func (s *Files) hidden(path string) bool {
	return slices.ContainsFunc(s.hide, func(h string) bool {
		return h != "" && (path == h || strings.HasPrefix(path, strings.TrimSuffix(h, string(filepath.Separator))+string(filepath.Separator)))
	})
}

// ReadDir returns up to so many entries of a folder, by name.
func (s *Files) ReadDir(path string, most int) ([]fs.DirEntry, error) {
	if !filepath.IsLocal(filepath.FromSlash(path)) {
		return nil, fs.ErrInvalid
	}
	name := filepath.FromSlash(path)
	_, real, err := s.ws.Resolve(filepath.Join(s.ws.Root(), name))
	if err != nil {
		return nil, err
	}
	if s.hidden(real) {
		return nil, fs.ErrPermission
	}
	info, err := s.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errors.Join(fs.ErrInvalid, errors.New(path+" is no folder"))
	}
	d, err := s.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close() // it was only read
	entries, err := d.ReadDir(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}
