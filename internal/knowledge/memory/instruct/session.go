package instruct

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"sync"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory"
)

// recentFiles is how many of the files that were touched last bring back what holds
// for them, once a compaction has put it away.
const recentFiles = 20

// The sources of what instruction files say.
const (
	FromMemory = "memory" // those that are active from the start
	FromRules  = "rules"  // by path: those that a touched file makes active
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

// instructions returns those of a folder. Nothing is read yet. hidden reports what deny rules
// keep from being read; nil = nothing.
func (x *Extension) instructions(dir string, hidden func(path string) bool) *instructions {
	c := x.cfg.Files
	c.Root, c.Trusted = x.cfg.Project(dir)
	c.Cwd, c.Secret = dir, hidden
	return &instructions{cfg: c, off: x.cfg.Off, touched: map[string]bool{}}
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
	told := at.Keys(FromRules)
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
			if at.Has(FromRules, f.Path) || slices.ContainsFunc(recent, func(path string) bool { return in.set.Holds(f, path) }) {
				rules = append(rules, agent.ContextAdded{
					Source: FromRules, Key: f.Path, Title: filepath.Base(f.Path), From: []string{f.Path},
					Text: memory.Touched(f, cmp.Or(in.cfg.Chars, memory.MaxText)),
				})
			}
		}
	}
	all := []agent.ContextAdded{{
		Source: FromMemory, Title: "instructions", From: begun,
		Text: memory.Begun(in.merged, at.Has(FromMemory, "")),
	}}
	for _, path := range told {
		if !known[path] {
			known[path] = true
			all = append(all, agent.ContextAdded{Source: FromRules, Key: path, Title: filepath.Base(path), From: []string{path}, Text: memory.Lost(path)})
		}
	}
	return append(all, rules...)
}
