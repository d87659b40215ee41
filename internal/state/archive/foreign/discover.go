package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// The limits of a listing.
const (
	maxVisited = 100_000  // folder entries that are looked at
	maxListed  = 1000     // sessions, the newest ones
	maxDepth   = 6        // levels of folders
	maxEnd     = 64 << 10 // bytes that are read of the beginning, and of the end, of a file
)

// Discover lists the sessions of the product, the one that changed last first.
// It reads the beginning and the end of each file alone, so a session may turn
// out damaged or empty when it is opened. A folder that does not exist has none.
func (c Config) Discover() ([]Listed, error) {
	found, err := c.find()
	if err != nil {
		return nil, fmt.Errorf("listing %s sessions: %w", c.Source, err)
	}
	slices.SortStableFunc(found, func(a, b Listed) int { return b.Updated.Compare(a.Updated) })
	var out []Listed
	if c.Source == OpenCode && c.Database != "" {
		if out, err = c.listDatabase(); err != nil {
			return nil, fmt.Errorf("listing %s sessions: %w", c.Source, err)
		}
	}
	have := map[string]bool{}
	for _, l := range out {
		have[l.ID] = true
	}
	for _, l := range found {
		if len(out) >= maxListed {
			break
		}
		if l, ok := c.look(l); ok && !have[l.ID] {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b Listed) int { return b.Updated.Compare(a.Updated) })
	return out, nil
}

var errEnough = errors.New("enough")

// find returns the files that are sessions by their names, with what the folder
// says of them.
func (c Config) find() (found []Listed, err error) {
	visited := 0
	err = fs.WalkDir(c.FS, ".", func(name string, d fs.DirEntry, err error) error {
		visited++
		switch {
		case visited > maxVisited:
			return errEnough
		case err != nil && name == "." && !errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil && (d == nil || d.IsDir()):
			return fs.SkipDir
		case err != nil:
			return nil
		case d.IsDir():
			if name != "." && !c.enters(name) {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || !c.named(name):
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it has gone since
		}
		found = append(found, Listed{Source: c.Source, Path: name, Updated: info.ModTime().UTC(), Bytes: info.Size()})
		return nil
	})
	if errors.Is(err, errEnough) || errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return found, err
}

// enters reports whether a folder can hold sessions.
func (c Config) enters(name string) bool {
	depth := strings.Count(name, "/") + 1
	switch c.Source {
	case ClaudeCode:
		return depth == 1 // <project>/<id>.jsonl; sub-agents lie deeper
	case OpenCode:
		return depth <= 2 && (name == "session" || strings.HasPrefix(name, "session/")) && name != "session/message" && name != "session/part"
	case Codex:
		return depth <= maxDepth
	}
	return false
}

// named reports whether a file is a session by its name.
func (c Config) named(name string) bool {
	base := path.Base(name)
	switch c.Source {
	case ClaudeCode:
		return strings.HasSuffix(base, ".jsonl") && !strings.HasPrefix(base, "agent-") && strings.Contains(name, "/")
	case OpenCode:
		return strings.HasSuffix(base, ".json") && strings.Count(name, "/") == 2
	case Codex:
		return strings.HasPrefix(base, "rollout-") && strings.HasSuffix(base, ".jsonl")
	}
	return false
}

// look reads what a session says of itself at its beginning and its end. It
// reports false for what is no session of its own.
func (c Config) look(l Listed) (Listed, bool) {
	if c.Source == OpenCode {
		return c.lookAtInfo(l)
	}
	head, tail, err := c.ends(l.Path)
	if err != nil {
		return l, false
	}
	first, _, _ := bytes.Cut(head, []byte("\n"))
	if object(first).yes("isSidechain") {
		return l, false
	}
	begin, end := c.peek(head), c.peek(tail)
	l.ID, l.Title = short(or(begin.ID, end.ID, strings.TrimSuffix(path.Base(l.Path), ".jsonl"))), short(or(end.Title, begin.Title))
	l.Workdir, l.Model = or(begin.Workdir, end.Workdir), short(or(end.Model, begin.Model))
	l.Created = begin.Created
	return l, true
}

// peek reads whole lines as a session, as far as they go.
func (c Config) peek(lines []byte) Listed {
	b := &builder{notes: map[string]note{}}
	read := readClaude
	if c.Source == Codex {
		read = readCodex
	}
	if err := read(bytes.NewReader(lines), b); err != nil {
		return Listed{}
	}
	b.s.Title = or(b.s.Title, b.prompt)
	return b.s.Listed
}

// ends returns whole lines of the beginning and of the end of a file. A short
// file is the same from both.
func (c Config) ends(name string) (head, tail []byte, err error) {
	f, info, err := c.regular(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	head, err = io.ReadAll(io.LimitReader(f, maxEnd))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(head)) >= info.Size() {
		return head, head, nil
	}
	head = head[:bytes.LastIndexByte(head, '\n')+1]
	s, ok := f.(io.Seeker)
	if !ok {
		return head, nil, nil
	}
	if _, err := s.Seek(-min(maxEnd, info.Size()), io.SeekEnd); err != nil {
		return nil, nil, err
	}
	tail, err = io.ReadAll(io.LimitReader(f, maxEnd))
	if err != nil {
		return nil, nil, err
	}
	return head, tail[bytes.IndexByte(tail, '\n')+1:], nil
}

func (c Config) lookAtInfo(l Listed) (Listed, bool) {
	left := int64(1 << 20)
	info, err := c.piece(l.Path, &left)
	if err != nil {
		return l, false
	}
	return listedOf(l, info)
}

// listedOf takes in what a session of OpenCode says of itself. It reports false for
// that of a sub-agent.
func listedOf(l Listed, info fields) (Listed, bool) {
	times := object(info["time"])
	l.ID, l.Title, l.Workdir = short(info.str("id")), short(info.str("title")), info.str("directory")
	l.Created = times.when("created")
	if t := times.when("updated"); !t.IsZero() {
		l.Updated = t
	}
	l.Bytes = 0
	return l, l.ID != "" && info.str("parentID") == ""
}

func or(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}
