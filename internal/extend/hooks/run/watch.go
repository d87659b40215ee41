package run

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"dure/internal/extend/hooks"
)

// Bounds of what is watched for hooks.
const (
	maxWatched  = 256                    // files of a session
	maxFolders  = 64                     // that they are in
	watchSettle = 200 * time.Millisecond // from the first sign of a change until hooks are told
	watchMost   = 30                     // how often they are told in a minute: one that nobody waits for may change what it is told of
)

// pace says how long to wait from the first sign of a change until hooks are told.
type pace struct {
	since time.Time // the minute that runs
	told  int       // in it
}

func (p *pace) wait(now time.Time) time.Duration {
	if now.Sub(p.since) >= time.Minute {
		p.since, p.told = now, 0
	}
	if p.told++; p.told <= watchMost {
		return watchSettle
	}
	return max(watchSettle, p.since.Add(time.Minute).Sub(now))
}

// watch tells the hooks of a session of files that change: those that a matcher names in
// the working folder, and those that a hook has asked for. What changes while hooks are
// told is taken for their doing, and is no news: two of them would go on for ever. It has
// one goroutine while there is something to watch, which close waits for. It is safe for
// concurrent use.
type watch struct {
	h    *Session
	wg   sync.WaitGroup
	wake chan struct{} // there is something new to look at

	mu     sync.Mutex
	closed bool
	w      *fsnotify.Watcher // nil = nothing was to be watched yet
	named  []string          // by matchers
	asked  []string          // by hooks
	known  map[string]look   // how the files looked, by path
	dirs   map[string]bool
	dirty  map[string]bool // files of which there was a sign
}

// look is how a file looked; zero = it was not there.
type look struct {
	there bool
	size  int64
	at    time.Time
	mode  fs.FileMode
}

func lookAt(path string) look {
	i, err := os.Stat(path)
	if err != nil {
		return look{}
	}
	return look{true, i.Size(), i.ModTime(), i.Mode()}
}

func newWatch(h *Session) *watch {
	return &watch{h: h, wake: make(chan struct{}, 1), known: map[string]look{}, dirs: map[string]bool{}, dirty: map[string]bool{}}
}

// close ends watching and waits for it.
func (w *watch) close() {
	w.mu.Lock()
	w.closed = true
	if w.w != nil {
		_ = w.w.Close() // nothing is read of it any more
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// files takes over what the matchers of hooks name.
func (w *watch) files(all []hooks.Hook) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.named = nil
	for _, h := range all {
		if h.Event != hooks.FileChanged {
			continue
		}
		for name := range strings.SplitSeq(h.Matcher, "|") {
			if name = strings.TrimSpace(name); name != "" && name != "*" && filepath.IsLocal(name) {
				w.named = append(w.named, filepath.Join(w.h.b.Workdir, name))
			}
		}
	}
	w.apply()
}

// also takes over what a hook has asked for, in the place of what one had asked for
// before.
func (w *watch) also(paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = nil
	for _, p := range paths[:min(len(paths), maxWatched)] {
		if !filepath.IsAbs(p) {
			p = filepath.Join(w.h.b.Workdir, p)
		}
		w.asked = append(w.asked, filepath.Clean(p))
	}
	w.apply()
}

// apply watches the folders of the files that are wanted, and no others. mu is held.
func (w *watch) apply() {
	wanted := slices.Compact(slices.Sorted(slices.Values(slices.Concat(w.named, w.asked))))
	if w.closed || w.w == nil && len(wanted) == 0 {
		return
	}
	if w.w == nil {
		made, err := fsnotify.NewWatcher()
		if err != nil {
			w.h.c.Logger.Warn("watching files for hooks", "error", err)
			return
		}
		w.w = made
		w.wg.Go(func() { w.run(made) })
	}
	known, dirs := map[string]look{}, map[string]bool{}
	for _, path := range wanted[:min(len(wanted), maxWatched)] {
		dir := filepath.Dir(path)
		if !dirs[dir] && !w.dirs[dir] {
			if len(dirs) == maxFolders || w.w.Add(dir) != nil {
				continue // a folder that is not there has no files
			}
		}
		dirs[dir] = true
		was, had := w.known[path]
		if !had {
			was = lookAt(path)
		}
		known[path] = was
	}
	for dir := range w.dirs {
		if !dirs[dir] {
			_ = w.w.Remove(dir) // it may be gone
		}
	}
	w.known, w.dirs = known, dirs
}

// run takes signs of changes until the watcher is closed.
func (w *watch) run(from *fsnotify.Watcher) {
	var settle <-chan time.Time
	var often pace
	sign := func(paths ...string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, p := range paths {
			if _, ok := w.known[p]; ok {
				w.dirty[p] = true
			}
		}
		if len(w.dirty) > 0 && settle == nil {
			settle = time.After(often.wait(time.Now()))
		}
	}
	for {
		select {
		case e, ok := <-from.Events:
			if !ok {
				return
			}
			sign(filepath.Clean(e.Name))
		case _, ok := <-from.Errors: // signs were lost: any file may have changed
			if !ok {
				return
			}
			w.mu.Lock()
			all := sorted(w.known)
			w.mu.Unlock()
			sign(all...)
		case <-settle:
			settle = nil
			w.fire(w.h.life)
		case <-w.h.life.Done():
			return
		}
	}
}

// A sight is a file that is another than it was.
type sight struct{ path, what string }

// fire tells the hooks of the files that are others now.
func (w *watch) fire(ctx context.Context) {
	for _, s := range w.sights() {
		w.h.fileChanged(ctx, s.path, s.what)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for path := range w.known {
		w.known[path] = lookAt(path)
	}
}

// sights returns what has changed since the last time.
func (w *watch) sights() (all []sight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range sorted(w.dirty) {
		was, wanted := w.known[path]
		is := lookAt(path)
		switch {
		case !wanted || was == is:
		case !is.there:
			all = append(all, sight{path, "unlink"})
		case !was.there:
			all = append(all, sight{path, "add"})
		default:
			all = append(all, sight{path, "change"})
		}
	}
	clear(w.dirty)
	return all
}

// fileChanged tells the hooks of one file.
func (h *Session) fileChanged(ctx context.Context, path, what string) {
	if !h.set.Has(hooks.FileChanged) {
		return
	}
	out := h.set.Fire(ctx, hooks.Moment{
		Event: hooks.FileChanged, Match: filepath.Base(path), EnvFile: h.envFile(),
		Fields: map[string]any{"file_path": path, "event": what},
	})
	h.readEnv()
	h.took(out)
}
