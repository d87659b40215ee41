package shell

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"dure/internal/safety/shell/programs"
)

// argv is what words become. marks has as many entries as list, or none.
type argv struct {
	list  []programs.Word
	marks []wordMark

	streams int // how many of them are substitutions like <(…)
}

// wordMark is what else is known of a word.
type wordMark uint8

const (
	numeric  wordMark = 1 << iota // unknown, but only digits of it are
	inherits                      // unknown, but only what the environment has of it is
	pipeIn                        // <( ): a file with what a command prints
	pipeOut                       // >( )
	pattern                       // a pattern that had to be looked up
	written                       // an array as it stands in the text
)

func (a *argv) add(text string, known, one bool, m wordMark) {
	a.list = append(a.list, programs.Word{Text: text, Known: known, One: one && !known})
	if m != 0 && a.marks == nil {
		a.marks = make([]wordMark, len(a.list)-1, cap(a.list))
	}
	if a.marks != nil {
		a.marks = append(a.marks, m)
	}
}

func (a *argv) mark(i int) wordMark {
	if i < len(a.marks) {
		return a.marks[i]
	}
	return 0
}

func (a *argv) known() bool {
	for _, w := range a.list {
		if !w.Known {
			return false
		}
	}
	return true
}

func (a *argv) allNumbers() bool {
	for i, w := range a.list {
		if (!w.Known || !isNumber(w.Text)) && a.mark(i)&numeric == 0 {
			return false
		}
	}
	return true
}

// words expands words as those of a command.
func (w *walker) words(st *state, ws []*syntax.Word) argv {
	a := argv{list: w.room.list(len(ws))}
	for _, wd := range ws {
		w.word(st, wd, &a)
	}
	return a
}

// word adds what a word becomes.
func (w *walker) word(st *state, wd *syntax.Word, a *argv) {
	if len(wd.Parts) == 1 {
		if l, ok := wd.Parts[0].(*syntax.Lit); ok && w.plain(l.Value) {
			a.add(l.Value, true, true, 0)
			return
		}
	}
	if !braced(wd) {
		w.fragment(st, wd.Parts, wd, a)
		return
	}
	w.differs("{ }")
	c := syntax.Word{Parts: wd.Parts}
	if !evenBraces(wd) {
		w.visit(st, wd)
		a.add(w.written(wd), false, false, 0)
		return
	}
	if !syntax.SplitBraces(&c) {
		w.fragment(st, wd.Parts, wd, a)
		return
	}
	before := *a
	for part, err := range expand.BracesSeq(nil, &c) {
		if err != nil || len(a.list)-len(before.list) >= maxFields {
			w.visit(st, wd)
			*a = before
			a.add(w.written(wd), false, false, 0)
			return
		}
		w.fragment(st, part.Parts, wd, a)
	}
}

// plain says whether an unquoted literal stands for itself.
func (w *walker) plain(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\', '*', '?', '[', '{', '(', ')', '^', '#':
			return false
		case '~', '=':
			if i == 0 || w.dialect == dialectZsh {
				return false
			}
		default:
			if c >= utf8.RuneSelf {
				return false
			}
		}
	}
	return true
}

// braced says whether a word may have a brace expansion.
func braced(wd *syntax.Word) bool {
	open, sep := false, false
	for _, p := range wd.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			open = open || strings.Contains(l.Value, "{")
			sep = sep || strings.Contains(l.Value, ",") || strings.Contains(l.Value, "..")
		}
	}
	return open && sep
}

// maxBraces is how many braces of a word are told apart.
const maxBraces = 16

// evenBraces says whether the braces of a word are few and in pairs, with nothing
// that makes it doubtful which belong together.
func evenBraces(wd *syntax.Word) bool {
	depth, n := 0, 0
	for _, p := range wd.Parts {
		l, ok := p.(*syntax.Lit)
		if !ok {
			continue
		}
		for i := 0; i < len(l.Value); i++ {
			switch l.Value[i] {
			case '{':
				depth++
				if n++; n > maxBraces {
					return false
				}
			case '}':
				if depth--; depth < 0 {
					return false
				}
			case '\\':
				return false
			}
		}
	}
	return depth == 0
}

// value expands a word that stays one: that of an assignment, a target, a pattern.
// An unknown one is returned as it is written.
func (w *walker) value(st *state, wd *syntax.Word) (string, wordMark, bool) {
	if wd == nil || len(wd.Parts) == 0 {
		return "", 0, true
	}
	f := field{w: w, st: st, from: wd, into: &argv{}}
	for i, p := range wd.Parts {
		if q, ok := p.(*syntax.ParamExp); ok {
			f.param(q, true)
			continue
		}
		if q, ok := p.(*syntax.CmdSubst); ok {
			f.quoted(q)
			continue
		}
		f.part(p, i, len(wd.Parts))
	}
	if f.unknown {
		m := f.marks
		if f.other || m&numeric != 0 && m&inherits != 0 {
			m &^= numeric
		}
		return w.written(wd), m, false
	}
	return f.text.String(), f.marks, true
}

// visit follows what a word runs, when its value does not matter.
func (w *walker) visit(st *state, wd *syntax.Word) {
	if wd != nil {
		w.value(st, wd)
	}
}
