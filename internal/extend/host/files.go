package host

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"dure/agent/query"
	"dure/internal/safety/workspace"
)

// Limits of what the host may ask.
const (
	maxRead = 10 << 20 // bytes of a file, and what is usual
	maxSeen = 8 << 20  // bytes of a file that it says it has read
)

// within opens a file of the folders of a session, if rules let it be read.
func (x *Extension) within(session, path string) (*Place, workspace.File, string, error) {
	p, err := x.of(session)
	if err != nil {
		return nil, nil, "", err
	}
	given, resolved, err := p.Workspace.Resolve(path)
	if err != nil {
		return nil, nil, "", err
	}
	if x.cfg.Denies(session, given, resolved) {
		return nil, nil, "", fmt.Errorf("a rule denies reading %s", given)
	}
	for _, dir := range x.dirs(p) {
		rel, err := filepath.Rel(dir, resolved)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		root, err := p.Workspace.OpenRoot(dir)
		if err != nil {
			return nil, nil, "", err
		}
		f, err := workspace.OpenRegular(root, rel) // no link leads out of it
		_ = root.Close()                           // what is open stays open
		if err != nil {
			return nil, nil, "", err
		}
		return p, f, resolved, nil
	}
	return nil, nil, "", fmt.Errorf("%s is outside of the folders of this session", given)
}

// dirs are the folders of a session.
func (x *Extension) dirs(p *Place) []string {
	return append([]string{p.Workspace.Root()}, x.cfg.Dirs...)
}

// ReadFile reads at most most bytes of a file in the folders of a session; 0 is what is
// usual, 10 MiB.
func (x *Extension) ReadFile(session, path string, most int64) (query.FileText, error) {
	if most <= 0 || most > maxRead {
		most = maxRead
	}
	_, f, resolved, err := x.within(session, path)
	if err != nil {
		return query.FileText{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return query.FileText{}, err
	}
	cut := int64(len(data)) > most
	return query.FileText{Path: resolved, Data: data[:min(int64(len(data)), most)], Cut: cut}, nil
}

// SawFile notes that a session has seen a file as it was at a time: it may be changed then
// without being read first, unless it has changed since.
func (x *Extension) SawFile(session, path string, at time.Time) error {
	p, f, resolved, err := x.within(session, path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.ModTime().Truncate(time.Millisecond).After(at) {
		return fmt.Errorf("%s has changed since", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSeen+1))
	if err != nil {
		return err
	}
	if len(data) > maxSeen {
		return fmt.Errorf("%s is longer than %d bytes", path, maxSeen)
	}
	p.Tracker.Saw(resolved, workspace.StateOf(info, data))
	return nil
}

// Below is an error where a path is no folder below those that a session works in.
func (x *Extension) Below(session, path string) error {
	p, err := x.of(session)
	if err != nil {
		return err
	}
	given, resolved, err := p.Workspace.Resolve(path)
	if err != nil {
		return err
	}
	if i, err := os.Stat(resolved); err != nil || !i.IsDir() {
		return fmt.Errorf("%s is no folder", given)
	}
	for _, dir := range x.dirs(p) {
		if _, root, err := p.Workspace.Resolve(dir); err == nil {
			dir = root
		}
		if rel, err := filepath.Rel(dir, resolved); err == nil && rel != "." && filepath.IsLocal(rel) {
			return nil
		}
	}
	return fmt.Errorf("%s is not below the folders of this session", given)
}
