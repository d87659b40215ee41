package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/extend/swarm"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/state/worktree"
)

// treehouse is the work trees of this program. Looking after those that a killed
// program has left is a goroutine of its own, which close ends and waits for.
type treehouse struct {
	once  sync.Once
	store *worktree.Store // nil = there are none
	box   *sandbox.Box

	end  context.CancelFunc
	work sync.WaitGroup
}

// trees returns the work trees; nil = there are none here, because nothing is kept.
func (a *App) trees() *worktree.Store {
	a.house.once.Do(func() {
		if a.opts.Flags.Scratch {
			return
		}
		a.house.box = sandbox.New(sandbox.Config{Temp: a.temp()})
		a.house.store = worktree.New(worktree.Config{Home: a.treesHome(), Git: a.outside("git"), Env: a.commandEnv(), Box: a.house.box})
	})
	return a.house.store
}

// treesHome is the folder that they lie in.
func (a *App) treesHome() string {
	data := a.cfg.Data
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real
	}
	return filepath.Join(data, "worktrees")
}

// mendTrees cleans up behind programs that were killed.
func (a *App) mendTrees() {
	trees := a.trees()
	if trees == nil {
		return
	}
	if all, err := trees.List(); err != nil || len(all) == 0 {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	a.house.end = end
	a.house.work.Go(func() {
		for _, m := range trees.Mend(ctx, a.isOpen) {
			if m.Err != nil {
				a.opts.Logger.Warn("looking after a work tree", "id", m.ID, "path", m.Path, "error", m.Err)
			} else {
				a.opts.Logger.Info("looked after a work tree", "id", m.ID, "path", m.Path, "what", m.What)
			}
		}
	})
}

// isOpen reports whether a session is open, here or in another program.
func (a *App) isOpen(id string) bool {
	owner, err := a.store.Holder(id)
	return err == nil && a.store.Holds(owner)
}

func (h *treehouse) close() {
	if h.end != nil {
		h.end()
	}
	h.work.Wait()
	h.once.Do(func() {})
	if h.box != nil {
		_ = h.box.Close() // nothing runs in it any more
	}
}

// isolation is how the agents of a session get folders of their own.
func (a *App) isolation(c toolConfig) swarm.Isolation {
	if c.ws == nil || c.pol == nil {
		return swarm.Isolation{}
	}
	return swarm.Isolation{
		Trees: a.trees(), Dir: c.ws.Root(), Session: c.ID,
		From: a.cfg.Worktree.From, Links: a.cfg.Worktree.Links, Only: a.cfg.Worktree.Only,
		Make: func(ctx context.Context, name string) (string, bool, error) {
			return a.hooks.Of(c.ID).MakeTree(ctx, name)
		},
		Gone: func(ctx context.Context, path string) { a.hooks.Of(c.ID).TreeGone(ctx, path) },
	}
}

// projectOf is the folder whose files say how to work in another one: of a work tree,
// the same folder of the repository that it was made from.
func (a *App) projectOf(workdir string) string {
	real, err := filepath.EvalSymlinks(workdir)
	if err != nil || !strings.HasPrefix(real, a.treesHome()+string(filepath.Separator)) {
		return workdir
	}
	trees := a.trees()
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

// staysOut denies an agent that has a folder of its own what would change the folder
// that this was made from, in every mode.
func (a *App) staysOut(b plug.Session, ws *workspace.Workspace, workdir string) []plug.Stage {
	main := a.projectOf(workdir)
	if b.Child != nil && b.Child.Workdir != "" && main == workdir {
		a.mu.Lock()
		reg := a.reg
		a.mu.Unlock()
		main = reg.Workdir(b.Parent) // hooks have made the folder
	}
	if main == "" || main == workdir {
		return nil
	}
	if top := gitTop(main); top != "" {
		main = top
	}
	f := fence{ws: ws, main: main}
	return []plug.Stage{{Name: "worktree", Decide: func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
		if why := f.crossed(p.Effects); why != "" {
			return agent.Decision{Verdict: agent.Deny, Reason: why + ": this agent works in a work tree of its own, " + ws.Root() + ", and changes nothing of " + main}, nil
		}
		if len(p.Effects.Commands) > 0 && p.Effects.Unreadable != "" {
			return agent.Decision{Verdict: agent.AskUser, Reason: "it cannot be told whether this stays in the work tree of the agent"}, nil
		}
		return agent.Decision{}, nil
	}}}
}

// fence is the border between a work tree and the folder that it was made from.
type fence struct {
	ws   *workspace.Workspace
	main string
}

// beyond reports whether a path is in that folder.
func (f fence) beyond(path string) bool {
	_, resolved, err := f.ws.Resolve(path)
	if err != nil {
		resolved = filepath.Clean(path)
	}
	if f.ws.Inside(resolved) {
		return false
	}
	main, err := filepath.EvalSymlinks(f.main)
	if err != nil {
		main = f.main
	}
	rel, err := filepath.Rel(f.ws.Key(main), f.ws.Key(resolved))
	return err == nil && filepath.IsLocal(rel)
}

// crossed says what of a call would change something there; "" = nothing.
func (f fence) crossed(e agent.Effects) string {
	if i := slices.IndexFunc(e.Writes, f.beyond); i >= 0 {
		return "it writes " + e.Writes[i]
	}
	return f.commands(e.Commands)
}

func (f fence) commands(all []agent.SimpleCommand) string {
	for _, c := range all {
		if i := slices.IndexFunc(c.Writes, f.beyond); i >= 0 {
			return "it writes " + c.Writes[i]
		}
		if c.Dir != "" && c.Kind != agent.CommandReads && f.beyond(c.Dir) {
			return "it runs in " + c.Dir
		}
		if why := gitElsewhere(c); why != "" {
			return why
		}
		if why := f.commands(c.Runs); why != "" {
			return why
		}
	}
	return ""
}

// gitElsewhere says how a command would have git work in another place than its folder.
func gitElsewhere(c agent.SimpleCommand) string {
	for _, v := range c.Vars {
		if strings.HasPrefix(v, "GIT_") {
			return fmt.Sprintf("it sets %.40s", v)
		}
	}
	if len(c.Argv) == 0 || strings.TrimSuffix(filepath.Base(c.Argv[0]), ".exe") != "git" {
		return ""
	}
	for i, arg := range c.Argv[1:] {
		name, path, joined := strings.Cut(arg, "=")
		if !joined && i+2 < len(c.Argv) {
			path = c.Argv[i+2]
		}
		switch name {
		case "--git-dir", "--work-tree":
			return "it has git work in " + path
		case "--":
			return ""
		}
	}
	return ""
}
