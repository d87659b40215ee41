package guard

import (
	"io"
	"strings"
	"testing"

	"dure/agent"
)

func TestPatterns(t *testing.T) {
	own, err := Compile([]Pattern{
		{Name: "badge", Regexp: `B-\d{6}`},
		{Name: "project", Regexp: `(?i)codename[: ]+(\w+)`, Groups: []string{"web", "system"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	g := New(Config{Patterns: own})
	for _, tt := range []struct{ group, in, want, kinds string }{
		{"system", "B-123456 and B-12", "[redacted:badge] and B-12", `["badge"]`},
		{"system", "Codename: Falcon\nB-123456 " + githubToken, "Codename: [redacted:project]\n[redacted:badge] [redacted:github-token]", `["badge","github-token","project"]`},
		{"files", "codename falcon B-654321", "codename falcon [redacted:badge]", `["badge"]`},
		{"data", "nothing", "nothing", ``},
	} {
		r, err := g.Check(t.Context(), agent.Spec{Name: "x__y", Group: tt.group}, agent.Call{}, agent.OK(tt.in))
		if err != nil || r.Text != tt.want || string(r.Meta["redacted"]) != tt.kinds {
			t.Errorf("%s: %q, %s, %v", tt.in, r.Text, r.Meta["redacted"], err)
		}
	}
}

func TestPatternsThatCannotBeUsed(t *testing.T) {
	_, err := Compile([]Pattern{
		{Name: "ok", Regexp: "a+b"},
		{Name: "bad name", Regexp: "a"},
		{Name: "x", Regexp: "("},
		{Name: "x", Regexp: "a*"},
		{Name: "x", Regexp: strings.Repeat("a", 1001)},
	})
	want := `reading pattern 1: the name "bad name" has other characters than small letters, digits and -, or more than 40
reading pattern 2: error parsing regexp: missing closing ): ` + "`(`" + `
reading pattern 3: it matches the empty text
reading pattern 4: it has 1001 bytes, more than 1000`
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if _, err := Compile(make([]Pattern, 101)); err == nil || err.Error() != "reading patterns: there are 101, more than 100" {
		t.Errorf("%v", err)
	}
}

// Where a text is cut into reads does not change what patterns find, in lines of
// any length.
func TestPatternsInPieces(t *testing.T) {
	own, err := Compile([]Pattern{{Name: "badge", Regexp: `B-\d{6}`}})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"a B-123456 b\n", strings.Repeat("두레 ", 7000) + "B-123456\nB-654321", strings.Repeat("x", maxOwnLine-10) + "B-123456"} {
		var found kinds
		want := string(mask(nil, []byte(line), own.all, &found))
		for _, size := range []int{1, 7, 4096} {
			got, err := io.ReadAll(&ownFilter{src: &pieces{line, size}, patterns: own.all, kinds: &found})
			if err != nil || string(got) != want || strings.Contains(want, "B-123456\n") {
				t.Errorf("in pieces of %d: %q, %v\nwant %q", size, tail(string(got)), err, tail(want))
			}
		}
	}
}
