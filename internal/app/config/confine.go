package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"dure/internal/safety/guard"
)

// What happens with folders that nobody has decided on.
const (
	TrustAsk   = "ask"   // the user is asked
	TrustNever = "never" // nothing of a repository is put in force, whoever trusts it
)

// isTarget is [isHost] with a port, and the star for all.
func isTarget(s string) bool {
	if s == "*" || isHost(s) {
		return true
	}
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return false
	}
	port, err := strconv.ParseUint(s[at+1:], 10, 16)
	host, bracketed := strings.CutPrefix(s[:at], "[")
	if bracketed {
		var closed bool
		if host, closed = strings.CutSuffix(host, "]"); !closed {
			return false
		}
	} else if strings.Contains(host, ":") {
		return false
	}
	return err == nil && port > 0 && !strings.Contains(host, "/") && isHost(host)
}

var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
})

// size reads a number of bytes; "none" is -1.
func size(s string) (int64, error) {
	if s == "none" {
		return -1, nil
	}
	for unit, shift := range map[string]uint{"MiB": 20, "GiB": 30} {
		number, ok := strings.CutSuffix(s, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 20)
		if err != nil || n == 0 || n<<shift > 1<<40 {
			break
		}
		return int64(n << shift), nil
	}
	return 0, errors.New("not a size")
}

// Bounds of patterns.
const (
	maxPatterns = 100
	maxExpr     = 1000 // bytes
)

var patternName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)
})

// patterns adds what results are cleaned of.
func (l *loader) patterns(e entry) error {
	var all []guard.Pattern
	if err := e.decode(&all); err != nil {
		return err
	}
	for i, p := range all {
		p.Name = cmp.Or(p.Name, "custom")
		expr, err := regexp.Compile(p.Regexp)
		switch {
		case !patternName().MatchString(p.Name):
			return e.invalidItem(i, p.Name, "a name of small letters, digits, - and _")
		case err != nil || p.Regexp == "" || len(p.Regexp) > maxExpr || strings.ContainsFunc(p.Regexp, unicode.IsControl):
			return e.invalidItem(i, p.Regexp, fmt.Sprintf("a regular expression of at most %d bytes", maxExpr))
		case expr.MatchString(""):
			return e.invalidItem(i, p.Regexp, "a regular expression that does not fit the empty text")
		case len(l.cfg.Patterns) >= maxPatterns:
			return e.invalidItem(i, p.Regexp, fmt.Sprintf("one of at most %d patterns", maxPatterns))
		}
		e.set(false)
		if !slices.ContainsFunc(l.cfg.Patterns, func(o guard.Pattern) bool { return o.Name == p.Name && o.Regexp == p.Regexp }) {
			l.cfg.Patterns = append(l.cfg.Patterns, p)
		}
	}
	return nil
}
