package trust

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"dure/agent/query"
)

// The kinds of change.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Change is a file that differs from the one that was trusted.
type Change = query.FolderChange

// Bounds of the differences that are shown.
const (
	maxDiffLines = 200      // of one file
	maxDiffBytes = 16 << 10 // of one file
	maxDiffs     = 64 << 10 // bytes of all of them
)

// changes compares the content with the one that was trusted.
func (s Store) changes(e entry, c Content) []Change {
	before := map[string]File{}
	for _, f := range e.Files {
		before[f.Path] = f
	}
	var all []Change
	left := maxDiffs
	add := func(kind string, was, is File) {
		name := cmp.Or(is.Path, was.Path)
		ch := Change{Path: name, Kind: kind, What: What(name)}
		if kind == Changed {
			ch.Note = note(was, is)
		}
		if left > 0 && was.Hash != is.Hash {
			ch.Diff = difference(ch.Path, s.text(c, was), s.text(c, is))
			left -= len(ch.Diff)
		}
		all = append(all, ch)
	}
	for _, f := range c.Files {
		was, had := before[f.Path]
		delete(before, f.Path)
		switch {
		case !had:
			add(Added, File{}, f)
		case was.Hash != f.Hash || was.Link != f.Link || was.Exec != f.Exec:
			add(Changed, was, f)
		}
	}
	for _, f := range e.Files {
		if _, gone := before[f.Path]; gone {
			add(Removed, f, File{})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func note(was, is File) string {
	var parts []string
	if was.Link != is.Link {
		parts = append(parts, fmt.Sprintf("it led to %q, and leads to %q", was.Link, is.Link))
	}
	if was.Exec != is.Exec {
		parts = append(parts, map[bool]string{true: "it can be executed now", false: "it cannot be executed any more"}[is.Exec])
	}
	return strings.Join(parts, "; ")
}

// text returns what a file holds or held; nil = it is not known, or no text.
func (s Store) text(c Content, f File) []byte {
	if f.Hash == "" {
		return []byte{}
	}
	if data, ok := c.small[f.Hash]; ok {
		return data
	}
	if f.Size > MaxText {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(s.texts(), f.Hash))
	if err != nil || sum(data) != f.Hash {
		return nil
	}
	return data
}

// difference returns a bounded unified diff; nil is a text that is not known.
func difference(name string, was, is []byte) string {
	if was == nil || is == nil {
		return ""
	}
	name = visible(strings.ReplaceAll(name, "\n", `\n`))
	_, text, _ := strings.Cut(string(diff.Diff(name, was, name, is)), "\n") // the first line names the program
	lines := strings.SplitAfter(visible(text), "\n")
	var b strings.Builder
	for i, line := range lines {
		if i == maxDiffLines || b.Len()+len(line) > maxDiffBytes {
			fmt.Fprintf(&b, "... %d more lines\n", len(lines)-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// visible writes out every sign that is not simply shown: what moves a cursor,
// turns the direction of text, or has no width.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// texts is the folder with copies of the texts that were trusted, by hash.
func (s Store) texts() string { return s.Path + ".d" }

// keep copies the content's small texts, so that a later change can be shown. A
// copy that is torn by a crash does not fit its name, and counts as missing.
func (s Store) keep(c Content) error {
	if len(c.small) == 0 {
		return nil
	}
	if err := os.MkdirAll(s.texts(), 0o700); err != nil {
		return fmt.Errorf("keeping the texts that are trusted: %w", err)
	}
	for hash, data := range c.small {
		if err := os.WriteFile(filepath.Join(s.texts(), hash), data, 0o600); err != nil {
			return fmt.Errorf("keeping the texts that are trusted: %w", err)
		}
	}
	return nil
}

// sweep drops the copies that no folder of the book has any more.
func (s Store) sweep(b *book) {
	used := map[string]bool{}
	for _, e := range b.Folders {
		for _, f := range e.Files {
			used[f.Hash] = true
		}
	}
	entries, err := os.ReadDir(s.texts())
	if err != nil {
		return // there are none
	}
	for _, e := range entries {
		if !used[e.Name()] {
			_ = os.Remove(filepath.Join(s.texts(), e.Name())) // one that stays does no harm
		}
	}
}
