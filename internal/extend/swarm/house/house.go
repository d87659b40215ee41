// Package house has the work trees in which agents work apart from the folder of their
// session, and keeps them there. It starts one goroutine, which looks after the work trees
// that a killed program has left; [Extension.Close] ends it and waits for it.
package house

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"dure/internal/safety/sandbox"
	"dure/internal/state/worktree"
)

// Config says where work trees are, and how they are made. All functions are required.
type Config struct {
	Off  bool   // nothing is kept
	Data string // the folder of the program's data

	Temp func() string   // the folder for output that does not fit into memory; "" = there is none
	Git  func() string   // the git that is used
	Env  func() []string // its environment

	Open    func(session string) bool   // whether it is open, here or in another program
	Workdir func(session string) string // of one that is open here
	Top     func(dir string) string     // the folder of the repository; "" = there is none
	Dirs    []string                    // that belong to every workspace
	Logger  *slog.Logger
}

// Extension has the work trees of the program.
type Extension struct {
	cfg Config

	once  sync.Once
	store *worktree.Store // nil = there are none
	box   *sandbox.Box

	end  context.CancelFunc
	work sync.WaitGroup
}

// New returns the extension. Nothing is read yet.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "work trees" }

// Home is the folder that the work trees lie in.
func (x *Extension) Home() string {
	data := x.cfg.Data
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real
	}
	return filepath.Join(data, "worktrees")
}

// Trees returns the work trees; nil = there are none here, because nothing is kept.
func (x *Extension) Trees() *worktree.Store {
	x.once.Do(func() {
		if x.cfg.Off {
			return
		}
		x.box = sandbox.New(sandbox.Config{Temp: x.cfg.Temp()})
		x.store = worktree.New(worktree.Config{Home: x.Home(), Git: x.cfg.Git(), Env: x.cfg.Env(), Box: x.box})
	})
	return x.store
}

// Mend cleans up behind programs that were killed.
func (x *Extension) Mend() {
	trees := x.Trees()
	if trees == nil {
		return
	}
	if all, err := trees.List(); err != nil || len(all) == 0 {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	x.end = end
	x.work.Go(func() {
		for _, m := range trees.Mend(ctx, x.cfg.Open) {
			if m.Err != nil {
				x.cfg.Logger.Warn("looking after a work tree", "id", m.ID, "path", m.Path, "error", m.Err)
			} else {
				x.cfg.Logger.Info("looked after a work tree", "id", m.ID, "path", m.Path, "what", m.What)
			}
		}
	})
}

// Close ends what the program does with work trees, once its sessions are closed.
func (x *Extension) Close() {
	if x.end != nil {
		x.end()
	}
	x.work.Wait()
	x.once.Do(func() {})
	if x.box != nil {
		_ = x.box.Close() // nothing runs in it any more
	}
}

// Project is the folder whose files say how to work in another one: of a work tree,
// the same folder of the repository that it was made from.
func (x *Extension) Project(workdir string) string {
	real, err := filepath.EvalSymlinks(workdir)
	if err != nil || !strings.HasPrefix(real, x.Home()+string(filepath.Separator)) {
		return workdir
	}
	trees := x.Trees()
	if trees == nil {
		return workdir
	}
	t, ok := trees.In(real)
	if !ok {
		return workdir
	}
	rel, err := filepath.Rel(t.Path, real)
	if err != nil {
		return t.Repo
	}
	if info, err := os.Stat(filepath.Join(t.Repo, rel)); err == nil && info.IsDir() {
		return filepath.Join(t.Repo, rel)
	}
	return t.Repo
}
