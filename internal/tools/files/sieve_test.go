package files

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"dure/internal/prooftest"
)

// filter returns the lines that a pattern may match by its sieve, nil when it
// has none. Exact reports that they do match.
func filter(t *testing.T, pattern, text string) (lines map[int]bool, exact bool) {
	t.Helper()
	m, err := newMatcher(pattern, false, false)
	if err != nil {
		return nil, false
	}
	s := newSieve(m.prog, false)
	if s == nil {
		return nil, false
	}
	lines = map[int]bool{}
	for at := 0; at < len(text); {
		i := s.find([]byte(text), at)
		if i < at {
			if i != -1 {
				t.Fatalf("%q in %q: went back from %d to %d", pattern, text, at, i)
			}
			break
		}
		at = lineFrom([]byte(text), i)
		lines[strings.Count(text[:at], "\n")] = true
		at++
	}
	return lines, s.exact && !s.off
}

// compare tells that a sieve leaves out no line that matches, and none but those
// when it is exact.
func compare(t *testing.T, pattern, text string) {
	t.Helper()
	got, exact := filter(t, pattern, text)
	if got == nil || text == "" {
		return
	}
	re := regexp.MustCompile("(?m)(?:" + pattern + ")")
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		whole := strings.TrimSuffix(line, "\r")
		want := re.MatchString(whole)
		if want && !got[n] || exact && whole == line && got[n] != want {
			t.Fatalf("%q in line %d %q: found %v, matches %v (exact %v)", pattern, n, line, got[n], want, exact)
		}
	}
}

var sievePatterns = []string{
	"a", "[a-c]+x", "^x", "x$", "^$", `^\s+$`, `\bfoo\b`, `\Ba`, "(?i)k[s-t]", "ſ|K", `\p{Hangul}{2}`, "é|.5", "[^a-z ]", "a.c", `[^a]\z`, `\Aab`, "(a|b)*c{2,3}d?", "$", "$^", "x*$",
	`(?:x|\r)$`, `[\r]`, ".{5}", "a(?:bc|d)e", "(?i)straße", `\x{10ffff}`, `[^\x00-\x7f]`, `\x{fffd}`, "(?:^|,)a", "a(?:$|,)",
}

// times returns how often a random test runs.
func times(short, long int) int {
	if prooftest.Long() {
		return long
	}
	return short
}

func TestSieve(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	parts := []string{"a", "b", "c", "x", "k", "K", "ſ", "foo", " ", ",", "\n", "\r\n", "\r", "\n\n", "두레", "é", "5", "\xff", "\xed", "STRASSE", "straße", "d", "ab"}
	for range times(300, 800) {
		var text strings.Builder
		for range rng.IntN(25) {
			text.WriteString(parts[rng.IntN(len(parts))])
		}
		for _, p := range sievePatterns {
			compare(t, p, text.String())
		}
	}
}

// A pattern whose automaton does not fit is given up, and nothing is missed.
func TestSieveGivesUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var text bytes.Buffer
	for range times(15_000, 50_000) {
		for range 40 {
			text.WriteByte("ab"[rng.IntN(2)])
		}
		text.WriteByte('\n')
	}
	const pattern = "a.{17}a.{9}b.{9}b"
	m, err := newMatcher(pattern, false, false)
	if err != nil {
		t.Fatal(err)
	}
	s := &searcher{m: m}
	got := s.once(text.Bytes())
	if want := len(regexp.MustCompile("(?m)^.*"+pattern).FindAllIndex(text.Bytes(), -1)); got.matches != want {
		t.Errorf("%d lines, want %d", got.matches, want)
	}
	if !s.sieve.off {
		t.Errorf("the sieve has %d rows", len(s.sieve.sets))
	}
	if n := len(s.sieve.cells); n > sieveCells {
		t.Errorf("%d cells", n)
	}
}

// Across lines a sieve tells only whether there may be a match.
func TestSieveAcrossLines(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          int
	}{
		{`a\s+b`, "x a\n\n b", 6}, {`a\s+b`, "x ab", -1}, {`a.b`, "a\nb", 2}, {`^b$`, "a\nb", 2}, {`[xyz]`, "a\nb", -1},
	} {
		m, err := newMatcher(c.pattern, false, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := newSieve(m.prog, true).find([]byte(c.text), 0); got != c.want {
			t.Errorf("%s in %q: %d, want %d", c.pattern, c.text, got, c.want)
		}
	}
}

// What helps a search to be fast changes nothing of what it finds, whatever is in
// the files and in the pattern.
func TestSearchIsTheSameWithoutHelp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	words := []string{"alpha", "Beta", "x", "K", "\u212a", "long s ſ", "naïve", "두레", "12.5", "", "\t", "a_b", "foo(bar)", "\xff", "end", "\x1b[0m"}
	var texts []string
	for range times(40, 80) {
		var b strings.Builder
		for range rng.IntN(30) {
			for range rng.IntN(5) {
				b.WriteString(words[rng.IntN(len(words))] + " ")
			}
			b.WriteString([]string{"\n", "\n", "\r\n", "\r"}[rng.IntN(4)])
		}
		text := b.String()
		switch rng.IntN(20) {
		case 0:
			text += "\x00"
		case 1:
			text = "\xff\xfe" + strings.Join(strings.Split("alpha K\nend", ""), "\x00") + "\x00"
		case 2:
			text = "\xef\xbb\xbf" + text
		case 3:
			text = strings.Repeat("\x01\x02", 30) + text
		}
		texts = append(texts, text)
	}
	for _, pattern := range append([]string{
		"[A-Z]", `\d+\.\d`, `x\s*$`, `\bK\b`, "(?i)k", "(?i)S[ .]", "a|K", ".{70}", `^[[:alpha:]]{4} [^ ]`, `\p{Hangul}`, `\S \S$`, "K", "ſ", "(?i)ſ ",
		`x.y`, `\x{1b}`, "x*", `(?-s:.)x`, `x{2,3}|\)`, "alpha", "(?i)BETA", "naïve|end", `foo\(\w+`, `x\s+\n.`, `[x ].[aBx]`, `[^a]\n[^b]`,
	}, sievePatterns...) {
		if strings.Contains(pattern, `\z`) || strings.Contains(pattern, `\A`) {
			continue // they are of a line with a sieve, of a window without
		}
		for _, fold := range []bool{false, true} {
			for _, across := range []bool{false, true} {
				m, err := newMatcher(pattern, fold, across)
				if err != nil {
					t.Fatal(err)
				}
				bare := *m
				bare.must, bare.only = nil, false
				for _, s := range []searcher{{lines: true, before: 1, after: 1}, {parts: true}, {one: true}} {
					s.multiline = across
					helped, alone := s, s
					helped.m, alone.m, alone.sifted = m, &bare, true
					for _, text := range texts {
						got, err := helped.small(t.Context(), []byte(text))
						want, err2 := alone.small(t.Context(), []byte(text))
						if err != nil || err2 != nil || fmt.Sprint(got) != fmt.Sprint(want) {
							t.Fatalf("%q (fold %v, across %v) in %q:\n%v %v\n-- alone\n%v %v", pattern, fold, across, text, got, err, want, err2)
						}
					}
				}
			}
		}
	}
}

func FuzzSieve(f *testing.F) {
	for i, p := range sievePatterns {
		f.Add(p, fmt.Sprint("abc\nfoo x\r\n두레 é5\n", i))
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) < 200 && len(text) < 5_000 {
			compare(t, pattern, text)
		}
	})
}
