package app

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory"
)

// recentFiles is how many of the files that were touched last bring back what holds
// for them, once a compaction has put it away.
const recentFiles = 20

// The sources of what instruction files say.
const (
	fromMemory = "memory" // those that are active from the start
	fromRules  = "rules"  // by path: those that a touched file makes active
)

// instructions are the instruction files of one session. It is safe for concurrent
// use.
type instructions struct {
	cfg memory.Config
	off bool

	mu      sync.Mutex
	set     *memory.Set // nil until it is needed
	err     error       // why there is none
	merged  string
	touched map[string]bool // files that the set knows of
	rules   int             // texts of rules that the conversation had
}

// instructions returns those of a session in a folder. Nothing is read yet. denied
// reports what deny rules keep from being read; nil = nothing.
func (a *App) instructions(workdir string, denied func(path string) bool) *instructions {
	root, trusted := a.project(workdir)
	m := a.cfg.Memory
	c := memory.Config{
		Disk: memory.OS(), Managed: m.Managed, User: []string{a.cfg.Home}, Own: m.User, Home: a.opts.UserHome,
		Root: root, Cwd: workdir, Trusted: trusted, Outside: m.Outside, Secret: denied,
		Excludes: m.Excludes, Depth: m.Depth, Chars: m.Chars,
	}
	if a.opts.UserHome != "" {
		c.User = []string{filepath.Join(a.opts.UserHome, ".claude"), a.cfg.Home}
	}
	for scope, layer := range map[memory.Scope]config.Layer{memory.User: config.User, memory.Project: config.Project, memory.Local: config.Local} {
		if !a.opts.Flags.reads(layer) {
			c.Without = append(c.Without, scope)
		}
	}
	return &instructions{cfg: c, off: m.Off, touched: map[string]bool{}}
}

// project returns the root of the project that a folder belongs to, and whether what
// it brings may be read. That is the repository's if it is trusted, else the folder.
func (a *App) project(workdir string) (root string, trusted bool) {
	if top := gitTop(workdir); top != "" && top != workdir && a.trusts(top) {
		return top, true
	}
	return workdir, a.trusts(workdir)
}

// trusts reports whether a folder is trusted with what it brings now; that of this
// run, as it was when the program was started.
func (a *App) trusts(dir string) bool {
	if dir == a.opts.Workdir || a.cfg.Trust == "never" {
		return dir == a.opts.Workdir && a.cfg.Trusted
	}
	f, err := folderOf(dir, trustStore(a.cfg))
	return err == nil && f.State.Trusted
}

// gitTop returns the folder at or above dir that has a .git; "" = there is none.
func gitTop(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// load sees to it that what is known is what the files say now, and reports whether
// there is anything. mu is held.
func (in *instructions) load() bool {
	switch {
	case in.off:
		return false
	case in.set == nil && in.err == nil:
		in.set, in.err = memory.Load(in.cfg)
	case in.set != nil && in.set.Changed():
		fresh, _, err := in.set.Reload()
		if err != nil {
			break // what was read holds until it can be read again
		}
		in.set = fresh
	default:
		return in.set != nil
	}
	if in.set == nil {
		return false
	}
	in.merged = in.set.Merged(0)
	return true
}

// extra returns what the files say that belongs into a conversation as of now.
func (in *instructions) extra(_ context.Context, at plug.Moment) []agent.ContextAdded {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.load() {
		return nil
	}
	recent := at.Task.Files[max(0, len(at.Task.Files)-recentFiles):]
	told := at.Keys(fromRules)
	if len(told) < in.rules { // a compaction has put some away
		in.set.Forget()
		clear(in.touched)
	}
	in.rules = len(told)
	for _, path := range slices.Concat(told, recent) {
		if !in.touched[path] {
			in.touched[path] = true
			in.set.On(path)
		}
	}
	var begun []string
	var rules []agent.ContextAdded
	known := map[string]bool{}
	for _, f := range in.set.Files() {
		switch {
		case f.State == memory.Waiting:
			known[f.Path] = true
		case f.State != memory.Active:
		case f.Why == memory.AtStart:
			begun = append(begun, f.Path)
		default:
			known[f.Path] = true
			if at.Has(fromRules, f.Path) || slices.ContainsFunc(recent, func(path string) bool { return in.set.Holds(f, path) }) {
				rules = append(rules, agent.ContextAdded{
					Source: fromRules, Key: f.Path, Title: filepath.Base(f.Path), From: []string{f.Path},
					Text: memory.Touched(f, cmp.Or(in.cfg.Chars, memory.MaxText)),
				})
			}
		}
	}
	all := []agent.ContextAdded{{
		Source: fromMemory, Title: "instructions", From: begun,
		Text: memory.Begun(in.merged, at.Has(fromMemory, "")),
	}}
	for _, path := range told {
		if !known[path] {
			known[path] = true
			all = append(all, agent.ContextAdded{Source: fromRules, Key: path, Title: filepath.Base(path), From: []string{path}, Text: memory.Lost(path)})
		}
	}
	return append(all, rules...)
}
