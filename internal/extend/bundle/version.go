package bundle

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// A version is major.minor.patch, with what stands behind a hyphen.
type version struct {
	n   [3]int
	pre string
}

// parseVersion reads a version; given is how many of its numbers there are.
func parseVersion(s string) (v version, given int, ok bool) {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "+")
	s, v.pre, _ = strings.Cut(s, "-")
	parts := strings.Split(s, ".")
	if len(parts) > 3 {
		return v, 0, false
	}
	for i, p := range parts {
		if p == "x" || p == "X" || p == "*" {
			return v, i, v.pre == ""
		}
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return v, 0, false
		}
		v.n[i] = int(n)
		given++
	}
	return v, given, true
}

func (v version) compare(o version) int {
	if c := slices.Compare(v.n[:], o.n[:]); c != 0 || v.pre == o.pre {
		return c
	}
	switch {
	case v.pre == "":
		return 1
	case o.pre == "":
		return -1
	}
	a, b := strings.Split(v.pre, "."), strings.Split(o.pre, ".")
	return slices.CompareFunc(a, b, func(x, y string) int {
		n, err := strconv.Atoi(x)
		m, err2 := strconv.Atoi(y)
		switch {
		case err == nil && err2 == nil:
			return cmp.Compare(n, m)
		case err == nil:
			return -1
		case err2 == nil:
			return 1
		}
		return strings.Compare(x, y)
	})
}

// next is the first version that has another number at place i.
func (v version) next(i int) version {
	n := version{}
	copy(n.n[:], v.n[:i+1])
	n.n[i]++
	return n
}

// A span is from a version on, and up to before another one.
type span struct{ from, to version }

var farthest = version{n: [3]int{1 << 31, 0, 0}}

// spans are ranges of versions of which one has to fit.
type spans []span

// parseRange reads a range as package managers have them; nothing is any.
func parseRange(s string) (spans, error) {
	var all spans
	for _, part := range strings.Split(s, "||") {
		one := span{to: farthest}
		for _, f := range strings.Fields(part) {
			r, ok := parseSpan(f)
			if !ok {
				return nil, errors.New("no range of versions")
			}
			if r.from.compare(one.from) > 0 {
				one.from = r.from
			}
			if r.to.compare(one.to) < 0 {
				one.to = r.to
			}
		}
		all = append(all, one)
	}
	return all, nil
}

func parseSpan(s string) (span, bool) {
	if s == "latest" {
		s = "*"
	}
	at := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("^~<>=", r) })
	if at < 0 {
		return span{}, false
	}
	v, given, ok := parseVersion(s[at:])
	if !ok {
		return span{}, false
	}
	just := version{n: v.n, pre: v.pre}
	after := version{n: [3]int{v.n[0], v.n[1], v.n[2] + 1}, pre: "0"}
	if v.pre != "" {
		after = version{n: v.n, pre: v.pre + ".0"}
	}
	end := farthest
	if given > 0 && given < 3 {
		after = v.next(given - 1)
	}
	switch s[:at] {
	case "", "=":
		if given > 0 {
			end = after
		}
		return span{just, end}, true
	case "^":
		first := slices.IndexFunc(v.n[:], func(n int) bool { return n != 0 })
		if first < 0 || first >= given {
			first = max(given-1, 0)
		}
		if given == 0 {
			return span{just, farthest}, true
		}
		return span{just, v.next(first)}, true
	case "~":
		if given == 0 {
			return span{just, farthest}, true
		}
		return span{just, v.next(min(given, 2) - 1)}, true
	case ">=":
		return span{just, farthest}, true
	case ">":
		return span{after, farthest}, true
	case "<":
		return span{version{}, just}, true
	case "<=":
		return span{version{}, after}, true
	}
	return span{}, false
}

// has reports whether a version is in one of the ranges. What is not released yet is only in
// those that begin with such a version of the same numbers.
func (s spans) has(text string) bool {
	v, given, ok := parseVersion(text)
	if !ok || given < 3 {
		return false
	}
	return slices.ContainsFunc(s, func(r span) bool {
		if v.pre != "" && (r.from.pre == "" || r.from.n != v.n) {
			return false
		}
		return v.compare(r.from) >= 0 && v.compare(r.to) < 0
	})
}
