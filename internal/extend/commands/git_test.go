package commands

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent/query"
)

func TestMessage(t *testing.T) {
	for answer, want := range map[string]string{
		"Add a\n":                           "Add a",
		"```\nAdd a\n\nBecause.\n```\nDone": "Add a\n\nBecause.",
		"```text\nAdd a":                    "Add a",
		`"Add a"`:                           "Add a",
		"\x1b[31mAdd\x07 a":                 "[31mAdd a",
		"Say \"a\"\n":                       `Say "a"`,
		" ":                                 "",
	} {
		if got := Message(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}

func TestRawFiles(t *testing.T) {
	raw := ":100644 100644 aaa bbb M\ta.txt\n:000000 100644 000 ccc A\t\"sp ace\\303\\244\\t.txt\"\n:100644 100644 a b R100\told\tnew\nnothing\n"
	want := []query.CommitFile{{Path: "a.txt", Status: "M"}, {Path: "sp aceä\t.txt", Status: "A"}, {Path: "old", Status: "D"}, {Path: "new", Status: "R"}}
	if d := cmp.Diff(want, RawFiles(raw)); d != "" {
		t.Error(d)
	}
}

// A review has whole files, and says how the others are read.
func TestReview(t *testing.T) {
	got, err := Review("it", []string{"a", "long", "b"}, 100, func(file string) (string, string, error) {
		if file == "long" {
			return strings.Repeat("x", 101), "diff -- long", nil
		}
		return "diff of " + file, "", nil
	})
	_, got, _ = strings.Cut(got, "## Changes\n")
	want := "\n### a\n\ndiff of a\n\n### b\n\ndiff of b\n\n## More files\n\nTheir changes are not above because they are long. Read each of them before you answer:\n- long: git diff -- long\n"
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	parts := SplitDiff("diff --git a/x b/x\n+1\ndiff --git a/d/y b/d/y\n-2\n")
	if d := cmp.Diff([]FilePart{{"x", "diff --git a/x b/x\n+1\n"}, {"d/y", "diff --git a/d/y b/d/y\n-2\n"}}, parts); d != "" {
		t.Error(d)
	}
}
