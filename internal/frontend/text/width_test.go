package text

import (
	"testing"
	"unicode/utf8"
)

// What a person decides about is shown with everything that would run.
func TestExact(t *testing.T) {
	for in, want := range map[string]string{
		"rm -rf x\recho harmless":          "rm -rf x\u240decho harmless",
		"a\u200bb\u2060c\U000e0041d\ufeff": "a\ufffdb\ufffdc\ufffdd\ufffd",
		"a\u206ab\ufff9c\U0001d173d":       "a\ufffdb\ufffdc\ufffdd",
		"plain 한글\n\ttext":                 "plain 한글\n    text",
		"\x1b[2Jx":                         "\u241b[2Jx",
	} {
		if got := Exact(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

// Text that comes in parts is as harmless as in one: wherever it is cut, no part
// completes a sequence for the terminal that another one has begun.
func TestCleanInParts(t *testing.T) {
	for _, s := range []string{
		"a\x1b[31mred\x1b]0;title\ab", "a\u009b31mb\u202ec", "a\xc2\x9b31m", "a\x1bPq\x1b\\b", "두레\x1b[2J", "a\r\nb\x7f\x00",
	} {
		for cut := range len(s) + 1 {
			got := Clean(s[:cut]) + Clean(s[cut:])
			for _, r := range got {
				if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || isBidi(r) {
					t.Errorf("%q cut at %d shows %q", s, cut, got)
				}
			}
			if utf8.RuneStart(append([]byte(s), 0)[cut]) && got != Clean(s) {
				t.Errorf("%q cut at %d shows %q and not %q", s, cut, got, Clean(s))
			}
		}
	}
}

func TestSome(t *testing.T) {
	for want, names := range map[string][]string{
		"":                       nil,
		"a, b":                   {"a", "b"},
		"a, b, c, d, e":          {"a", "b", "c", "d", "e"},
		"a, b, c, d, e, … +2":    {"a", "b", "c", "d", "e", "f", "g"},
		ExactLine("x\u202ey.md"): {"x\u202ey.md"},
	} {
		if got := Some(names); got != want {
			t.Errorf("%q: %q", names, got)
		}
	}
}
