package app

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/client"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
)

// Shared returns the client of the front-ends of this program that use the same sessions:
// who opens one that is open joins it.
func (a *App) Shared() client.Client { return client.New(a.shared()) }

// Runs reports whether a session is open here.
func (a *App) Runs(session string) bool {
	a.mu.Lock()
	reg := a.reg
	a.mu.Unlock()
	return reg != nil && reg.Workdir(session) != ""
}

// SessionFiles returns the files in the folder of a session, for people to look at.
func (a *App) SessionFiles(ctx context.Context, session string) (*SessionFiles, error) {
	info, err := client.Query[agent.SessionInfo](ctx, a.Client(), agent.FindSession{Name: session})
	if err != nil {
		return nil, err
	}
	ws, err := workspace.New(workspace.Config{Root: info.Workdir})
	if err != nil {
		return nil, workspace.Gone(info.ID, info.Workdir, err)
	}
	root, err := ws.OpenRoot(ws.Root())
	if err != nil {
		return nil, workspace.Gone(info.ID, info.Workdir, err)
	}
	hide := append(sandbox.Hidden(a.opts.UserHome, a.opts.Environ), a.cfg.Home, a.cfg.Data)
	for i, dir := range hide {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			hide[i] = real
		}
	}
	return &SessionFiles{ws, root, hide}, nil
}

// SessionFiles are the files in a folder. Paths are relative to it, with slashes. Links that
// lead out of it lead nowhere, and what is known to hold secrets is not opened.
type SessionFiles struct {
	ws   *workspace.Workspace
	root *os.Root
	hide []string // folders and files, absolute
}

// Close gives the folder back.
func (s *SessionFiles) Close() error { return s.root.Close() }

// Open opens a regular file. One that is likely to hold secrets is [fs.ErrPermission].
func (s *SessionFiles) Open(path string) (*os.File, error) {
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

func (s *SessionFiles) hidden(path string) bool {
	return slices.ContainsFunc(s.hide, func(h string) bool {
		return h != "" && (path == h || strings.HasPrefix(path, strings.TrimSuffix(h, string(filepath.Separator))+string(filepath.Separator)))
	})
}

// ReadDir returns up to so many entries of a folder, by name.
func (s *SessionFiles) ReadDir(path string, most int) ([]fs.DirEntry, error) {
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
