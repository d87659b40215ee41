package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dure/internal/safety/workspace"
)

// ground is where a rewind writes: the folders below the roots, opened one name
// at a time, so that no link on the way can lead elsewhere.
type ground struct {
	s    *Store
	at   string   // the folder that was opened last
	open *os.Root // and is still; nil = none
}

var errInWay = errors.New("its folder is a link, a file, or gone")

func (g *ground) close() {
	if g.open != nil {
		g.open.Close()
		g.open = nil
	}
}

// folder opens a folder of the roots. It is good until the next call.
func (g *ground) folder(dir string) (*os.Root, error) {
	if g.open != nil && g.at == dir {
		return g.open, nil
	}
	g.close()
	root, ok := g.s.rootOf(dir)
	if !ok {
		return nil, errInWay
	}
	at, err := os.OpenRoot(filepath.FromSlash(root))
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(dir[len(root):], "/"), "/") {
		if name == "" {
			break // the root itself
		}
		next, err := step(at, name)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	g.at, g.open = dir, at
	return at, nil
}

// step opens a folder in a folder, and makes sure that it is what it looked like.
func step(at *os.Root, name string) (*os.Root, error) {
	seen, err := at.Lstat(name)
	if absent(err) || err == nil && !seen.IsDir() {
		return nil, errInWay
	}
	if err != nil {
		return nil, err
	}
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(seen, now) {
		next.Close()
		return nil, errInWay
	}
	return next, nil
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// look returns what stands at a path. A file is read only when its size is one of
// those that matter; otherwise its hash is zero.
func (g *ground) look(path string, sizes ...int64) (entry, error) {
	at, name := parent(path), base(path)
	if root, ok := g.s.rootOf(path); ok && root == path {
		at, name = path, "."
	}
	dir, err := g.folder(at)
	if err != nil {
		return entry{}, err
	}
	info, err := dir.Lstat(name)
	if absent(err) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return entry{kind: Dir, mode: mode & modeBits}, nil
	case mode&fs.ModeSymlink != 0:
		target, err := dir.Readlink(name)
		return entry{kind: Link, target: target}, err
	case !mode.IsRegular():
		return entry{kind: Skipped, reason: Special}, nil
	}
	e := entry{kind: File, mode: info.Mode() & modeBits, size: info.Size()}
	for _, size := range sizes {
		if size == e.size {
			e.hash, err = g.sum(dir, name, path, info)
			return e, err
		}
	}
	return e, nil
}

// sum returns the hash of a file. That of a file that must not be read is known
// when it is as it was.
func (g *ground) sum(dir *os.Root, name, path string, info fs.FileInfo) (h hash, err error) {
	f, err := workspace.OpenSeen(dir, name)
	if errors.Is(err, fs.ErrPermission) {
		if n := g.s.state[path]; n != nil && n.kind == File && n.size == info.Size() && n.st.mtime == info.ModTime().UnixNano() {
			return n.hash, nil
		}
	}
	if err != nil {
		return h, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, info.Size()+1)); err != nil {
		return h, err
	}
	return hash(sum.Sum(nil)), nil
}

// tempName is the name of a file that is being written for a path. Listings of
// the workspace, and walks, leave it out.
func tempName(path string) string {
	sum := sha256.Sum256([]byte("rewind\x00" + path))
	return ".dure-write-" + hex.EncodeToString(sum[:8])
}

// stage writes a file beside its place. The caller brings it to the disk, and
// gives it its name.
func (g *ground) stage(path string, e entry, data []byte) (*os.File, error) {
	dir, err := g.folder(parent(path))
	if err != nil {
		return nil, err
	}
	temp := tempName(path)
	if err := dir.Remove(temp); err != nil && !absent(err) {
		return nil, err
	}
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	g.s.fault("file.temp")
	_, err = f.Write(data)
	g.s.fault("file.written")
	if err == nil {
		err = own(dir, temp, g.like(dir, base(path)))
	}
	if err == nil {
		err = f.Chmod(e.mode)
	}
	if err != nil {
		f.Close()
		_ = dir.Remove(temp) // the first error matters
		return nil, err
	}
	return f, nil
}

// place gives a staged file its name, or removes it when err says that something
// went wrong.
func (g *ground) place(path string, err error) error {
	dir, derr := g.folder(parent(path))
	if derr != nil {
		return errors.Join(err, derr)
	}
	return g.name(dir, tempName(path), base(path), "file.named", err)
}

func (g *ground) link(path string, e entry) error {
	dir, err := g.folder(parent(path))
	if err != nil {
		return err
	}
	temp, name := tempName(path), base(path)
	if err := dir.Remove(temp); err != nil && !absent(err) {
		return err
	}
	err = dir.Symlink(e.target, temp)
	g.s.fault("link.temp")
	if err == nil {
		err = own(dir, temp, g.like(dir, name))
	}
	return g.name(dir, temp, name, "link.named", err)
}

// like is what a new entry takes its owner from: what it replaces, or its folder.
func (g *ground) like(dir *os.Root, name string) fs.FileInfo {
	if info, err := dir.Lstat(name); err == nil {
		return info
	}
	info, err := dir.Stat(".")
	if err != nil {
		return nil
	}
	return info
}

// name gives what was written its name, or removes it when that went wrong.
func (g *ground) name(dir *os.Root, temp, name, boundary string, err error) error {
	if err == nil {
		err = dir.Rename(temp, name)
		g.s.fault(boundary)
	}
	if err != nil {
		_ = dir.Remove(temp) // the first error matters
	}
	return err
}

// make makes a folder, with every permission for its owner until all is done.
func (g *ground) make(path string, e entry) error {
	dir, err := g.folder(parent(path))
	if err != nil {
		return err
	}
	err = dir.Mkdir(base(path), e.mode|0o700)
	g.s.fault("folder.done")
	if err == nil {
		err = own(dir, base(path), g.like(dir, "."))
	}
	return err
}

// remove removes a file, a link, or an empty folder.
func (g *ground) remove(path string) error {
	dir, err := g.folder(parent(path))
	if err != nil {
		return err
	}
	err = dir.Remove(base(path))
	g.s.fault("remove.done")
	return err
}

// linked reports whether a file has other names: its mode is also theirs, and it
// gets another one by becoming a file of its own.
func (g *ground) linked(path string) bool {
	dir, err := g.folder(parent(path))
	if err != nil {
		return false // changing the mode says what is wrong
	}
	info, err := dir.Lstat(base(path))
	return err == nil && links(info) > 1
}

// chmod changes the mode of a file or a folder, and of nothing that a link leads
// to.
func (g *ground) chmod(path string, mode fs.FileMode) error {
	at, name := parent(path), base(path)
	if root, ok := g.s.rootOf(path); ok && root == path {
		at, name = path, "."
	}
	dir, err := g.folder(at)
	if err != nil {
		return err
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return errInWay
	}
	err = dir.Chmod(name, mode)
	g.s.fault("mode.done")
	return err
}

// sync brings the names of a folder to the disk.
func (g *ground) sync(path string) error {
	dir, err := g.folder(path)
	if err != nil {
		return err
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if err := syncOpen(d); err != nil {
		return fmt.Errorf("bringing %s to the disk: %w", path, err)
	}
	return nil
}
