package text

import "testing"

// What a person decides about is shown with everything that would run.
func TestExact(t *testing.T) {
	for in, want := range map[string]string{
		"rm -rf x\recho harmless":          "rm -rf x\u240decho harmless",
		"a\u200bb\u2060c\U000e0041d\ufeff": "a\ufffdb\ufffdc\ufffdd\ufffd",
		"plain 한글\n\ttext":                 "plain 한글\n    text",
		"\x1b[2Jx":                         "\u241b[2Jx",
	} {
		if got := Exact(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}
