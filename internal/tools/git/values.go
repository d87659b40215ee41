package git

import (
	"slices"
	"strings"
)

// A value says what may follow a flag; nil is a flag that takes nothing.
type value struct {
	fits     func(string) bool
	optional bool // it may be missing, and then is not taken from the next argument
}

func takes(fits func(string) bool) *value { return &value{fits: fits} }

func mayTake(fits func(string) bool) *value { return &value{fits: fits, optional: true} }

// The values. What is free text reaches git behind its flag, in one argument, so
// that it cannot be taken for another flag.
var (
	number   = takes(digits)
	anything = takes(func(s string) bool { return s != "" && len(s) <= 500 && !strings.ContainsAny(s, "\x00\n") })
	ref      = takes(refName)
	similar  = mayTake(func(s string) bool { return digits(strings.TrimSuffix(s, "%")) })
	widths   = mayTake(made("0123456789,"))
	format   = takes(showsOnly)
	dates    = oneOf("relative", "local", "default", "iso", "iso8601", "iso-strict", "rfc", "rfc2822", "short", "raw", "human", "unix")
	sorting  = takes(func(s string) bool {
		return slices.Contains([]string{
			"refname", "version:refname", "v:refname", "objectname", "committerdate", "creatordate", "authordate", "taggerdate",
		}, strings.TrimPrefix(s, "-"))
	})
)

func oneOf(names ...string) *value {
	return takes(func(s string) bool { return slices.Contains(names, s) })
}

func optionally(v *value) *value { return mayTake(v.fits) }

// made returns a test for short texts of some characters.
func made(chars string) func(string) bool {
	return func(s string) bool { return s != "" && len(s) <= 20 && strings.Trim(s, chars) == "" }
}

// digits accepts numbers below a million.
func digits(s string) bool { return len(s) <= 6 && made("0123456789")(s) }

// refName accepts what can be the name of a commit or a pattern for it.
func refName(s string) bool {
	return s != "" && s[0] != '-' && len(s) <= 250 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// lines accepts the ranges of blame: 3  3,9  3,+4.
func lines(s string) bool {
	first, second, two := strings.Cut(s, ",")
	return digits(first) && (!two || digits(strings.TrimLeft(second, "+-")))
}

// showsOnly accepts the formats with names, and those of which each placeholder
// shows what is in the commit. Those that check signatures (%G) start a program.
func showsOnly(s string) bool {
	if slices.Contains([]string{"oneline", "short", "medium", "full", "fuller", "reference", "raw"}, s) {
		return true
	}
	if s == "" || len(s) > 300 || strings.ContainsAny(s, "\x00\n") {
		return false
	}
	for {
		_, rest, more := strings.Cut(s, "%")
		if !more {
			return true
		}
		n := placeholder(rest)
		if n == 0 {
			return false
		}
		s = rest[n:]
	}
}

// placeholder returns the length of the placeholder at the beginning of s, which
// stands behind a %; 0 = it is none that is known.
func placeholder(s string) int {
	for _, p := range []string{"%", "n", "x09", "x20", "Cred", "Cgreen", "Cblue", "Creset"} {
		if strings.HasPrefix(s, p) {
			return len(p)
		}
	}
	switch {
	case s != "" && strings.Contains("HhTtPpsfbBdDSe", s[:1]):
		return 1
	case len(s) > 1 && (s[0] == 'a' || s[0] == 'c') && strings.Contains("nNeElLdDrtiIsh", s[1:2]):
		return 2
	}
	return 0
}
