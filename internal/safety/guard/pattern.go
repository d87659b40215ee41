package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"unicode/utf8"
)

// The bounds of users' patterns.
const (
	maxPatterns   = 100
	maxExpression = 1_000    // bytes of one
	maxOwnLine    = 16 << 10 // a longer line is looked at in pieces
)

// A Pattern is a secret of the user's own. It is looked for within lines of up to
// 16 KiB, after what is known was masked.
type Pattern struct {
	Name   string   `json:"name"`    // of the mask: small letters, digits and -
	Regexp string   `json:"pattern"` // RE2; of one with a group, the first group is masked
	Groups []string `json:"-"`       // of tools; nil = all
}

// Patterns are patterns that can be used.
type Patterns struct{ all []ownPattern }

type ownPattern struct {
	Pattern
	re    *regexp.Regexp
	known *Known // in the place of re
}

// Compile reads patterns. Its error names each that cannot be used by its index.
func Compile(list []Pattern) (*Patterns, error) {
	if len(list) > maxPatterns {
		return nil, fmt.Errorf("reading patterns: there are %d, more than %d", len(list), maxPatterns)
	}
	var problems []error
	p := &Patterns{}
	for i, one := range list {
		re, err := one.compile()
		if err != nil {
			problems = append(problems, fmt.Errorf("reading pattern %d: %w", i, err))
			continue
		}
		p.all = append(p.all, ownPattern{Pattern: one, re: re})
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return p, nil
}

func (p Pattern) compile() (*regexp.Regexp, error) {
	if !Masked(maskStart + p.Name + "]") {
		return nil, fmt.Errorf("the name %q has other characters than small letters, digits and -, or more than 40", p.Name)
	}
	if len(p.Regexp) > maxExpression {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(p.Regexp), maxExpression)
	}
	re, err := regexp.Compile(p.Regexp)
	if err != nil {
		return nil, err
	}
	if re.MatchString("") {
		return nil, errors.New("it matches the empty text")
	}
	return re, nil
}

// of returns the patterns for a group of tools.
func (p *Patterns) of(group string) []ownPattern {
	if p == nil {
		return nil
	}
	var own []ownPattern
	for _, one := range p.all {
		if one.known.empty() && one.re == nil {
			continue // the usual case, which costs nothing
		}
		if one.Groups == nil || slices.Contains(one.Groups, group) {
			own = append(own, one)
		}
	}
	return own
}

// mask appends b, which is made of whole lines or pieces of one, to dst with what
// the patterns match masked.
func mask(dst, b []byte, own []ownPattern, found *kinds) []byte {
	for len(b) > 0 {
		n, _ := piece(b, true)
		line := b[:n]
		for _, p := range own {
			line = p.mask(line, found)
		}
		dst = append(dst, line...)
		b = b[n:]
	}
	return dst
}

// piece returns the length of the first line of b, its end included, or of the
// piece of it that is looked at; more = it may be longer.
func piece(b []byte, atEnd bool) (n int, more bool) {
	n = bytes.IndexByte(b[:min(len(b), maxOwnLine)], '\n') + 1
	switch {
	case n > 0:
		return n, false
	case len(b) < maxOwnLine+utf8.UTFMax && !atEnd:
		return 0, true
	case len(b) <= maxOwnLine:
		return len(b), false
	}
	n = maxOwnLine
	for !utf8.RuneStart(b[n]) {
		n--
	}
	return n, false
}

// wholeLines returns how much of b can be looked at.
func wholeLines(b []byte, atEnd bool) int {
	whole := 0
	for whole < len(b) {
		n, more := piece(b[whole:], atEnd)
		if more {
			break
		}
		whole += n
	}
	return whole
}

func (p ownPattern) mask(line []byte, found *kinds) []byte {
	if p.known != nil {
		return p.known.mask(line, found)
	}
	all := p.re.FindAllSubmatchIndex(line, -1)
	if len(all) == 0 {
		return line
	}
	var out []byte
	pos := 0
	for _, m := range all {
		start, end := m[0], m[1]
		if len(m) > 2 && m[2] >= 0 {
			start, end = m[2], m[3]
		}
		if start == end {
			continue
		}
		found.found(p.Name)
		out = span{kind: p.Name}.appendMask(append(out, line[pos:start]...))
		pos = end
	}
	return append(out, line[pos:]...)
}

// An ownFilter reads a clean text with what users' patterns match masked.
type ownFilter struct {
	src      io.Reader
	patterns []ownPattern
	kinds    *kinds

	raw []byte // not looked at yet
	outlet
}

func (f *ownFilter) Read(p []byte) (int, error) { return f.read(p, f.fill) }

func (f *ownFilter) fill() {
	buf := make([]byte, maxOwnLine)
	n, err := f.src.Read(buf)
	f.raw, f.err = append(f.raw, buf[:n]...), err
	if err != nil && !errors.Is(err, io.EOF) {
		return
	}
	whole := wholeLines(f.raw, err != nil)
	f.ready = mask(nil, f.raw[:whole], f.patterns, f.kinds)
	f.raw = append(f.raw[:0], f.raw[whole:]...)
}

// Redact returns a text as [Clean] does, with what any of the patterns matches masked,
// whatever groups of tools it is for: such a text leaves the machine.
func (p *Patterns) Redact(s string) string {
	s = Clean(s)
	if p == nil || len(p.all) == 0 || s == "" {
		return s
	}
	return string(mask(nil, []byte(s), p.all, &kinds{}))
}
