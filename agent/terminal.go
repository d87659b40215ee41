package agent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTerminal is the most bytes that a hook may have written to a terminal at once.
const MaxTerminal = 4096

// ForTerminal returns what of s may be written to a terminal for somebody who is not
// trusted with it: titles, notices, progress (OSC 0, 1, 2, 9, 99, 777) and the bell, up to
// the first thing that is none of these. All reports whether that is all of it.
func ForTerminal(s string) (allowed string, all bool) {
	var b strings.Builder
	for s != "" {
		if rest, ok := strings.CutPrefix(s, "\a"); ok {
			if b.Len()+1 > MaxTerminal {
				return b.String(), false
			}
			b.WriteByte('\a')
			s = rest
			continue
		}
		rest, ok := strings.CutPrefix(s, "\x1b]")
		end := strings.IndexAny(rest, "\a\x1b")
		if !ok || end < 0 || !harmless(rest[:end]) || b.Len()+end+3 > MaxTerminal {
			return b.String(), false
		}
		after, ok := strings.CutPrefix(rest[end:], "\x1b\\")
		if !ok {
			after, ok = strings.CutPrefix(rest[end:], "\a")
		}
		if !ok {
			return b.String(), false
		}
		b.WriteString("\x1b]" + rest[:end] + "\a")
		s = after
	}
	return b.String(), true
}

// harmless reports whether a command of the operating system's may reach a terminal. Some
// take OSC 9 with a number for something else, one of them for a program to run: of these
// only progress passes.
func harmless(osc string) bool {
	number, rest, _ := strings.Cut(osc, ";")
	if !slices.Contains([]string{"0", "1", "2", "9", "99", "777"}, number) {
		return false
	}
	if number == "9" && !strings.HasPrefix(rest, "4;") && strings.ContainsFunc(first(rest), unicode.IsNumber) {
		return false
	}
	return utf8.ValidString(osc) && !strings.ContainsFunc(osc, unicode.IsControl)
}

// first is what a text begins with, behind blanks.
func first(s string) string {
	s = strings.TrimSpace(s)
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}
