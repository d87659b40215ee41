package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// maxEntries is how many files and folders one call removes or moves: as many
// as its plan lists.
const maxEntries = 1_000

// Errors of removing and moving.
const (
	ErrFileExists agent.ErrorCode = "E_FILE_EXISTS"
	ErrFileMany   agent.ErrorCode = "E_FILE_TOO_MANY"
)

// spot is an entry that a call is going to remove or move, itself and not what
// it may be a link to.
type spot struct {
	path  string // absolute
	place string // links above it followed
	info  fs.FileInfo
	below []workspace.Entry // itself first
	bytes int64             // of regular files
}

// spot looks at an entry without touching it. The call's plan and its run have
// to see the same.
func (f *files) spot(ctx context.Context, tc agent.ToolContext, name string) (*spot, error) {
	s, err := f.bareSpot(tc, name)
	if err != nil {
		return nil, err
	}
	if s.info == nil {
		return nil, f.missing(tc, s.path)
	}
	s.below, err = f.Workspace.Tree(ctx, s.place, maxEntries)
	switch {
	case errors.Is(err, workspace.ErrMany):
		return nil, kit.Refuse(ErrFileMany, fmt.Sprintf("%s has more than %d files and folders", kit.Name(s.path), maxEntries), "Name folders below it one by one, or use a command.")
	case err != nil:
		return nil, f.explain(tc, s.path, err)
	}
	for _, e := range s.below {
		if strings.EqualFold(path.Base(e.Path), ".git") {
			return nil, kit.Refuse(ErrFileAccess, fmt.Sprintf("%s holds a git repository (%s)", kit.Name(s.path), kit.Name(e.Path)), "Name what is beside it, or ask the user.")
		}
		if e.Mode.IsRegular() {
			s.bytes += e.Size
		}
	}
	return s, nil
}

// bareSpot is [files.spot] for a name at which there may be nothing.
func (f *files) bareSpot(tc agent.ToolContext, name string) (*spot, error) {
	abs, err := f.absolute(tc, name)
	if err != nil {
		return nil, err
	}
	s := &spot{path: abs}
	if _, s.place, err = f.Workspace.Place(abs); err != nil {
		return nil, f.explain(tc, abs, err)
	}
	if f.Workspace.Inside(abs) && !f.Workspace.Inside(s.place) {
		return nil, kit.Refuse(ErrFileAccess, fmt.Sprintf("%s is %s: a link on the way leads out of the workspace", kit.Name(abs), kit.Name(s.place)), "Name the file itself rather than a link to its folder.")
	}
	for _, p := range []string{abs, s.place} {
		if err := f.guarded(tc, p); err != nil {
			return nil, err
		}
	}
	if s.info, err = f.Workspace.Lstat(s.place); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, f.explain(tc, abs, err)
	}
	return s, nil
}

// guarded refuses what is never removed or moved: the folders that the session
// stands on, and repositories.
func (f *files) guarded(tc agent.ToolContext, p string) error {
	below, err := filepath.Rel(p, filepath.Clean(tc.Workdir))
	if f.Workspace.Holds(p) || tc.Workdir != "" && err == nil && filepath.IsLocal(below) || filepath.Dir(p) == p {
		return kit.Refuse(ErrFileAccess, kit.Name(p)+" is the workspace, or holds it", "Name files or folders inside it.")
	}
	for dir := p; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if strings.EqualFold(filepath.Base(dir), ".git") {
			return kit.Refuse(ErrFileAccess, kit.Name(p)+" belongs to the git repository", "Use git commands for it.")
		}
	}
	return nil
}

// paths returns the absolute paths of the entry and all below it, as if the
// entry had the name top.
func (s *spot) paths(top string) []string {
	all := make([]string, len(s.below))
	for i, e := range s.below {
		all[i] = filepath.Join(top, filepath.FromSlash(e.Path))
	}
	return all
}

// digest changes when entries come, go or become something else, and with
// those that are files when their content does.
func (s *spot) digest() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q\n", s.place)
	for _, e := range s.below {
		if e.Mode.IsDir() {
			fmt.Fprintf(&b, "%q %v\n", e.Path, e.Mode)
		} else {
			fmt.Fprintf(&b, "%q %v %d %d\n", e.Path, e.Mode, e.Size, e.ModTime.UnixNano())
		}
	}
	return workspace.Sum([]byte(b.String()))
}

// settle remembers what a plan has seen.
func (f *files) settle(c agent.Call, s *spot) { f.pins.Set(c.ID+"\x00\x00"+s.path, s.digest()) }

// settled refuses an entry that is not what its plan has seen.
func (f *files) settled(c agent.Call, s *spot) error {
	if _, moved := f.pins.Moved(c.ID+"\x00\x00"+s.path, s.digest()); moved {
		return kit.Refuse(ErrFileChanged, kit.Name(s.path)+" is not what it was when the call was decided", "Look at it again, then repeat the call.")
	}
	return nil
}

// states are the files at or below the entry, gone from there, and with their
// new names when to is not empty. What the session knew of them goes along.
func (f *files) states(s *spot, to string) []agent.FileState {
	var states []agent.FileState
	for _, e := range s.below {
		if e.Mode.IsDir() {
			continue
		}
		at := filepath.Join(s.place, filepath.FromSlash(e.Path))
		known, ok := f.Tracker.Known(at)
		f.Tracker.Forget(at)
		states = append(states, agent.FileState{Path: at, Gone: true})
		if to == "" {
			continue
		}
		now := filepath.Join(to, filepath.FromSlash(e.Path))
		if f.Tracker.Forget(now); ok {
			f.Tracker.Saw(now, known)
		}
		states = append(states, agent.FileState{Path: now, SHA256: known.SHA256, Wrote: true})
	}
	return states
}

// counted is "3 files in 2 folders", "a link".
func (s *spot) counted() string {
	var files, folders, links int
	for _, e := range s.below {
		switch {
		case e.Mode.IsDir():
			folders++
		case e.Mode&fs.ModeSymlink != 0:
			links++
		default:
			files++
		}
	}
	var parts []string
	for _, p := range []struct {
		n    int
		name string
	}{{files, "file"}, {folders, "folder"}, {links, "link"}} {
		if p.n > 0 {
			parts = append(parts, plural(p.n, p.name))
		}
	}
	return strings.Join(parts, ", ") + ", " + plural(int(s.bytes), "byte")
}
