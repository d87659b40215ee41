// Package verify looks at files once more after a call has changed them: whether they
// are as the call says, and whether the change has broken what can be told of them
// without running anything: their encoding, line ends, syntax, marks of a merge.
//
// What it finds is appended to the result of the call. It changes nothing, judges only
// what was right before, and starts no goroutines.
package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
)

// Limits. What is beyond them is not looked at.
const (
	MaxFiles = 20      // of one call
	MaxBytes = 1 << 20 // of one file
	maxLines = 20      // findings that are told of one call
)

// Config says how to reach files.
type Config struct {
	// Read returns the content of a regular file by its absolute path, at most limit
	// bytes, and whether there are more. An error says that there is no such file, or
	// that nobody can read it. Required.
	Read func(path string, limit int) (data []byte, more bool, err error)

	// Real follows the links of an absolute path; nil = there are none.
	Real func(path string) string

	// Shown is a path as people and models know it; nil = as it is.
	Shown func(path string) string

	// Changed is told of calls that have changed files; nil = nobody is.
	Changed func(tc agent.ToolContext, paths []string)
}

// Run is how a call of a tool is run.
type Run func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error)

// Wrap returns next with findings appended to the results of calls that name what they
// write. A call neither fails for them nor is it kept from its end.
func (c Config) Wrap(next Run) Run {
	if c.Real == nil {
		c.Real = func(path string) string { return path }
	}
	if c.Shown == nil {
		c.Shown = func(path string) string { return path }
	}
	return func(ctx context.Context, tc agent.ToolContext, call agent.Call) (agent.Result, error) {
		env := agent.CallEnvOf(ctx)
		if env.Class == agent.Read {
			return next(ctx, tc, call)
		}
		before := c.look(named(env.Effects))
		r, err := next(ctx, tc, call)
		if err != nil || r.Status == agent.StatusPending {
			return r, err
		}
		changed, lines := c.compare(before, r.Files)
		if c.Changed != nil && len(changed) > 0 {
			c.Changed(tc, changed)
		}
		return told(r, lines), nil
	}
}

// named are the files that a call says it may write.
func named(e agent.Effects) []string {
	var paths []string
	add := func(list []string) {
		for _, p := range list {
			if len(paths) < MaxFiles && filepath.IsAbs(p) && !slices.Contains(paths, p) {
				paths = append(paths, p)
			}
		}
	}
	add(e.Writes)
	for _, cmd := range e.Commands {
		add(cmd.Writes)
	}
	return paths
}

// content is what a file had; nil = it was not there, or is not looked at.
type content struct {
	path  string // as the call names it
	data  []byte
	there bool
	large bool
}

// look reads files by their real paths.
func (c Config) look(paths []string) map[string]content {
	found := map[string]content{}
	for _, p := range paths {
		data, more, err := c.Read(c.Real(p), MaxBytes)
		found[c.Real(p)] = content{p, data, err == nil, more}
	}
	return found
}

// compare returns the files that have changed, sorted, and what is wrong with them now.
func (c Config) compare(before map[string]content, states []agent.FileState) (changed, lines []string) {
	said := map[string]agent.FileState{}
	for _, s := range states {
		if s.Wrote && (len(said) < MaxFiles) {
			said[s.Path] = s
		}
	}
	paths := map[string]bool{}
	for p := range before {
		paths[p] = true
	}
	for p := range said {
		paths[p] = true
	}
	for _, p := range sorted(paths) {
		data, more, err := c.Read(p, MaxBytes)
		now := content{p, data, err == nil, more}
		old, known := before[p]
		state, claimed := said[p]
		name := c.Shown(p)
		if claimed {
			if why := differs(state, now); why != "" {
				lines = append(lines, name+": "+why)
			}
		}
		if claimed || known && (old.there != now.there || old.large != now.large || !bytes.Equal(old.data, now.data)) {
			changed = append(changed, p)
			if known && now.there && !now.large && !old.large {
				for _, f := range Findings(filepath.Base(p), old.data, now.data, old.there) {
					lines = append(lines, name+": "+f)
				}
			}
		}
	}
	return changed, lines
}

func sorted(set map[string]bool) (all []string) {
	for p := range set {
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}

// differs says how a file is not what a call says it has made of it.
func differs(s agent.FileState, now content) string {
	switch {
	case s.Gone && now.there:
		return "the call says that it is gone, and it is there"
	case s.Gone:
	case !now.there:
		return "the call says that it was written, and it is not there"
	case s.SHA256 != "" && !now.large:
		if sum := sha256.Sum256(now.data); hex.EncodeToString(sum[:]) != s.SHA256 {
			return "it is not what the call says it has written; read it again"
		}
	}
	return ""
}

// told appends findings to a result. Output that is still to be read has them at its
// end.
func told(r agent.Result, lines []string) agent.Result {
	if len(lines) == 0 {
		return r
	}
	if n := len(lines) - maxLines; n > 0 {
		lines = append(slices.Clone(lines[:maxLines]), fmt.Sprintf("[%d more]", n))
	}
	text := "\nverification: " + strings.Join(lines, "\nverification: ")
	if r.Stream != nil {
		r.Stream = stream{io.MultiReader(r.Stream, strings.NewReader(text+"\n")), r.Stream}
		return r
	}
	r.Text += text
	return r
}

// stream is output with something behind it.
type stream struct {
	io.Reader
	io.Closer
}
