package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of names and texts.
const (
	prefix     = "mcp__"
	maxName    = 64 // of a tool, as every provider of models takes it
	maxServer  = 30 // of a server in the name of a tool
	maxMark    = 6  // hexadecimal digits that tell names apart
	maxWords   = 2048
	maxTeach   = 4096
	maxRemote  = 256 // of a name, as the server has it
	maxProblem = 1000
)

// plain makes a name of letters, digits, - and _ of any name. There is no __ in it,
// nor _ at its ends, because __ parts the names of tools.
func plain(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	return strings.TrimSuffix(b.String(), "_")
}

// part is plain for the part behind the server, where __ is allowed: names of tools
// stay what they are as far as they may.
func part(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
}

// marked is a name of at most most bytes that ends in a mark of what it stands for.
func marked(name, stands string, most int) string {
	sum := sha256.Sum256([]byte(stands))
	return name[:min(len(name), most-maxMark-1)] + "_" + hex.EncodeToString(sum[:])[:maxMark]
}

// tellApart gives each of the names one that no other has. Names that need no
// change keep theirs; whatever the order of the list is, each gets the same.
func tellApart(names []string, short func(string) string, most int) map[string]string {
	order := slices.Clone(names)
	slices.SortFunc(order, func(a, b string) int {
		if x, y := short(a) == a, short(b) == b; x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	out, taken := map[string]string{}, map[string]bool{}
	for _, n := range slices.Compact(order) {
		s := short(n)
		if s == "" || len(s) > most || taken[s] {
			s = marked(cmp.Or(s, "x"), n, most)
		}
		for i := 0; taken[s]; i++ { // two marks that are the same
			s = marked(s, n+strings.Repeat("+", i+1), most)
		}
		taken[s], out[n] = true, s
	}
	return out
}

// name gives each server its part in the names of tools.
func (s *Set) name() {
	var names []string
	for _, v := range s.list() {
		names = append(names, v.def.Name)
	}
	short := tellApart(names, plain, maxServer)
	for _, v := range s.list() {
		v.short = short[v.def.Name]
	}
}

// Part returns the part of a server in the names of its tools and prompts.
func (s *Set) Part(server string) string {
	if v := s.find(server); v != nil {
		return v.short
	}
	return plain(server)
}

// tidy returns what people and models may read of a text of a server: at most most
// characters, without what a terminal would obey and without what nobody sees.
func tidy(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n == most {
			b.WriteString("…")
			break
		}
		if !visible(r) {
			continue
		}
		b.WriteRune(r)
		n++
	}
	return strings.TrimSpace(b.String())
}

// visible reports whether a character is kept.
func visible(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return true
	case r == utf8.RuneError, unicode.IsControl(r):
		return false
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef:
		return false // directions, joiners, tags, variations
	}
	return true
}

// line is tidy on one line.
func line(s string, most int) string {
	return strings.Join(strings.Fields(tidy(s, most)), " ")
}

// say cleans a text that a server says of itself, or that is said of it.
func (s *Set) say(text string, most int) string {
	return s.c.Clean(tidy(s.hidden.Load().Replace(text), most))
}
