package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dure/internal/safety/workspace"
)

// Limits of a walk.
const (
	maxDepth   = 128     // folders below each other
	maxWalkers = 8       // goroutines; at most two for each processor
	smallFile  = 1 << 20 // larger ones are read one at a time
	rereads    = 3       // of a file that changes while it is read
)

// walk looks at the user's folders, without changing anything there or in the
// state: it only notes in the nodes that it has seen them. Only what differs from
// the state is collected, and only files whose stat differs are read.
type walk struct {
	ctx   context.Context
	s     *Store
	gen   uint32
	spare chan struct{} // one for each goroutine more that may run
	wg    sync.WaitGroup
	count atomic.Int64
	large sync.Mutex // held while a large file is in memory

	mu    sync.Mutex
	found []found
	err   error // the first
}

// found is what stands at a path now.
type found struct {
	path  string
	entry entry
	st    stat
	sure  bool
}

func (s *Store) newWalk(ctx context.Context) *walk {
	s.gen++
	return &walk{ctx: ctx, s: s, gen: s.gen, spare: make(chan struct{}, min(maxWalkers, 2*runtime.GOMAXPROCS(0))-1)}
}

// spot is an open folder that a walk has come to.
type spot struct {
	dir   folder
	path  string
	rules *chain
	depth int
	named bool // everything in it is kept, because a call named it
	shut  bool // it is ignored, and only what is kept already is looked at
}

func (w *walk) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *walk) add(f found) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = append(w.found, f)
}

// roots looks at all roots, and returns when everything is done.
func (w *walk) roots() error {
	for i, root := range w.s.roots {
		if err := w.root(root); err != nil && (i == 0 || !errors.Is(err, fs.ErrNotExist)) {
			w.fail(err)
		}
	}
	w.wg.Wait()
	return w.err
}

func (w *walk) root(root string) error {
	d, err := openFolder(filepath.FromSlash(root))
	if err != nil {
		return fmt.Errorf("opening %s: %w", root, err)
	}
	st, err := d.stat(".")
	if err != nil {
		d.close()
		return err
	}
	w.note(root, w.s.state[root], entry{kind: Dir, mode: st.mode & modeBits}, st, true)
	at := spot{dir: d, path: root}
	if w.s.ignored == nil {
		at.rules = w.s.rules.above(root)
	}
	w.folder(at)
	return nil
}

// folder looks at the entries of an open folder, which it closes.
func (w *walk) folder(at spot) {
	defer at.dir.close()
	names, err := at.dir.names(w.s.maxFiles + 1)
	if err == nil {
		err = w.ctx.Err()
	}
	if err == nil && w.count.Add(int64(len(names))) > int64(w.s.maxFiles) {
		err = fmt.Errorf("%w: more than %d", ErrTooMany, w.s.maxFiles)
	}
	if err != nil {
		if !vanished(err) {
			w.fail(fmt.Errorf("listing %s: %w", at.path, err))
		}
		return
	}
	if w.s.ignored == nil {
		top, file := false, false
		for _, n := range names {
			top, file = top || n == ".git", file || n == ".gitignore"
		}
		at.rules = w.s.rules.enter(at.rules, at.dir, at.path, top, file)
	}
	for _, name := range names {
		w.item(at, name)
	}
}

// item looks at one entry of a folder.
func (w *walk) item(at spot, name string) {
	if private(name) || workspace.Leftover(name) {
		return
	}
	path := at.path + "/" + name
	if slices.Contains(w.s.leave, path) || len(path) > maxPath {
		return
	}
	n := w.s.state[path]
	kept := n != nil && n.kind != Skipped && n.kind != None
	st, err := at.dir.stat(name)
	if err != nil {
		if denied(err) && w.shut(path) {
			return
		}
		if !vanished(err) {
			w.note(path, n, entry{kind: Skipped, reason: Unreadable}, stat{}, false)
		}
		return
	}
	isDir := st.mode.IsDir()
	if isDir && w.s.passing != nil && w.s.passing(st.mode) {
		return
	}
	shut := false
	if !at.named && (isDir || !kept) {
		shut = at.shut || w.ignores(at, path, isDir)
		if shut && !kept {
			w.note(path, n, entry{kind: Skipped, reason: Ignored}, stat{}, true)
			return
		}
	}
	switch {
	case isDir:
		w.enter(at, name, path, n, st, shut)
	case st.mode.IsRegular():
		w.file(at, name, path, n, st)
	case st.mode&fs.ModeSymlink != 0:
		w.link(at, name, path, n, st)
	default:
		w.note(path, n, entry{kind: Skipped, reason: Special}, stat{}, true)
	}
}

func (w *walk) ignores(at spot, path string, dir bool) bool {
	if w.s.ignored != nil {
		return w.s.ignored(filepath.FromSlash(path), dir)
	}
	return at.rules.ignored(path, dir)
}

// enter goes into a folder, in a goroutine of its own when there is one to spare.
func (w *walk) enter(at spot, name, path string, n *node, st stat, shut bool) {
	if at.depth == maxDepth {
		w.note(path, n, entry{kind: Skipped, reason: Deep}, stat{}, true)
		return
	}
	d, err := at.dir.sub(name)
	if err != nil {
		if denied(err) && w.shut(path) {
			w.note(path, n, entry{kind: Dir, mode: st.mode & modeBits}, st, true)
		} else if !vanished(err) {
			w.note(path, n, entry{kind: Skipped, reason: Unreadable}, stat{}, false)
		}
		return
	}
	w.note(path, n, entry{kind: Dir, mode: st.mode & modeBits}, st, true)
	next := spot{d, path, at.rules, at.depth + 1, at.named, shut}
	select {
	case w.spare <- struct{}{}:
		w.wg.Go(func() {
			defer func() { <-w.spare }()
			w.folder(next)
		})
	default:
		w.folder(next)
	}
}

// shut takes what is kept at a path, and below it, for unchanged: the permission
// to look was taken away, and nothing else is known to have happened.
func (w *walk) shut(path string) bool {
	n := w.s.state[path]
	if n == nil || n.kind == Skipped || n.kind == None {
		return false
	}
	n.seen = w.gen
	for p, n := range w.s.state {
		if n.kind != Skipped && below(p, path) {
			n.seen = w.gen
		}
	}
	return true
}

// note collects an entry when it, or its stat, is not what the state has.
func (w *walk) note(path string, n *node, e entry, st stat, sure bool) {
	if n != nil {
		n.seen = w.gen
		if n.entry == e && (n.sure == sure && n.st == st || e.kind == Dir || e.kind == Link) {
			return
		}
	}
	w.add(found{path, e, st, sure})
}

func (w *walk) link(at spot, name, path string, n *node, st stat) {
	target, err := at.dir.readlink(name)
	if err != nil {
		if !vanished(err) {
			w.note(path, n, entry{kind: Skipped, reason: Unreadable}, stat{}, false)
		}
		return
	}
	w.note(path, n, entry{kind: Link, target: target}, st, true)
}

func (w *walk) file(at spot, name, path string, n *node, st stat) {
	if n != nil && n.sure && n.st == st && !(n.reason == Full && w.s.blobs.room(n.size)) {
		n.seen = w.gen
		return
	}
	if st.size > smallFile {
		w.large.Lock()
		defer w.large.Unlock()
	}
	for try := 0; ; try++ {
		e, now, sure, err := w.content(at.dir, name, n, st, try)
		if errors.Is(err, errMoving) {
			continue
		}
		if err != nil {
			if !vanished(err) {
				w.fail(fmt.Errorf("reading %s: %w", path, err))
			}
			return
		}
		w.note(path, n, e, now, sure)
		return
	}
}

var errMoving = errors.New("the file changes while it is read")

// content reads a file and stores it. It returns what it is, the stat with which
// it was read, and whether that stat stands for the content from now on.
func (w *walk) content(d folder, name string, n *node, seen stat, try int) (entry, stat, bool, error) {
	begun := w.s.now()
	f, err := d.open(name)
	if denied(err) {
		if n != nil && n.kind == File && n.st.size == seen.size && n.st.mtime == seen.mtime && n.st.inode == seen.inode {
			e := n.entry // only its mode was taken away
			e.mode = seen.mode & modeBits
			return e, seen, n.sure, nil
		}
		return entry{kind: Skipped, reason: Unreadable, size: seen.size}, seen, false, nil
	}
	if err != nil {
		return entry{}, stat{}, false, err
	}
	defer f.Close()
	before, err := fileStat(f)
	if err != nil {
		return entry{}, stat{}, false, err
	}
	if !before.mode.IsRegular() {
		return entry{}, stat{}, false, fs.ErrNotExist
	}
	if before.size > w.s.maxFile {
		return entry{kind: Skipped, reason: Large, size: before.size, hash: mark(before)}, before, before.settled(begun), nil
	}
	data := make([]byte, before.size)
	read, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return entry{}, stat{}, false, err
	}
	after, err := fileStat(f)
	if err != nil {
		return entry{}, stat{}, false, err
	}
	still := before == after && int64(read) == before.size
	if !still && try < rereads {
		return entry{}, stat{}, false, errMoving
	}
	data = data[:read]
	e := entry{kind: File, mode: after.mode & modeBits, size: int64(read), hash: sha256.Sum256(data)}
	sure := still && after.settled(begun)
	switch err := w.s.blobs.put(e.hash, data); {
	case errors.Is(err, errFull):
		return entry{kind: Skipped, reason: Full, size: e.size}, after, sure, nil
	case err != nil:
		return entry{}, stat{}, false, err
	}
	return e, after, sure, nil
}

func denied(err error) bool { return errors.Is(err, fs.ErrPermission) }

// mark stands for the content of a file that is not kept.
func mark(st stat) hash {
	b := binary.LittleEndian.AppendUint64(nil, uint64(st.size))
	return sha256.Sum256(binary.LittleEndian.AppendUint64(b, uint64(st.mtime)))
}

// named looks at one path of a tree and, when it is a folder, at what is in it.
// Explicit keeps it also where it is ignored. It goes through no link.
func (w *walk) named(path string, explicit bool) error {
	root, ok := w.s.rootOf(path)
	if !ok {
		return nil
	}
	if path == root {
		return w.root(root)
	}
	d, err := openFolder(filepath.FromSlash(root))
	if err != nil {
		return fmt.Errorf("opening %s: %w", root, err)
	}
	at := spot{dir: d, path: root}
	if w.s.ignored == nil {
		at.rules = w.s.rules.enter(w.s.rules.above(root), d, root, isRepo(d), true)
	}
	defer func() { at.dir.close() }()
	names := strings.Split(strings.TrimPrefix(path, root+"/"), "/")
	ignored := false
	for i, name := range names {
		here := at.path + "/" + name
		if private(name) || workspace.Leftover(name) || slices.Contains(w.s.leave, here) {
			return nil
		}
		if i == len(names)-1 {
			break
		}
		st, err := at.dir.stat(name)
		if err != nil || !st.mode.IsDir() {
			return nil // nothing is there
		}
		ignored = ignored || w.ignores(at, here, true)
		if n := w.s.state[here]; n == nil || n.kind == None {
			w.note(here, n, entry{kind: Dir, mode: st.mode & modeBits}, st, true)
		}
		sub, err := at.dir.sub(name)
		if err != nil {
			return nil
		}
		at.dir.close()
		at.dir, at.path, at.depth = sub, here, at.depth+1
		if w.s.ignored == nil {
			at.rules = w.s.rules.enter(at.rules, sub, here, isRepo(sub), true)
		}
	}
	last := names[len(names)-1]
	if st, err := at.dir.stat(last); err == nil && explicit {
		// What is in a folder that is not ignored has the rules as always.
		at.named = ignored || w.ignores(at, path, st.mode.IsDir())
	}
	w.item(at, last)
	w.wg.Wait()
	return w.err
}

func isRepo(d folder) bool {
	_, err := d.stat(".git")
	return err == nil
}
