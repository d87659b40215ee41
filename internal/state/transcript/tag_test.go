package transcript

import (
	"slices"
	"strings"
	"testing"
)

// Another tag takes the place of the one that is shown, and of no other.
func TestRetag(t *testing.T) {
	for _, c := range []struct{ tags, tag, want, shown string }{
		{"", "", "", ""},
		{"", "a", "a", "a"},
		{"a", "a", "a", "a"},
		{"a", "b", "b", "b"},
		{"a", "", "", ""},
		{"color-red", "a", "color-red a", "a"},
		{"color-red user:x a b", "c", "color-red user:x c b", "c"},
		{"a color-red b c", "b", "b color-red c", "b"},
		{"a b", "", "b", "b"},
		{"color-red", "", "color-red", ""},
		{"user:x a", "user:y", "user:x a", "a"}, // nobody gives a session away like that
		{"user:x", "color-blue", "user:x", ""},
	} {
		before := strings.Fields(c.tags)
		got := Retag(before, c.tag)
		if strings.Join(got, " ") != c.want || Tag(got) != c.shown {
			t.Errorf("%q with %q: %q, %q is shown; want %q, %q", c.tags, c.tag, got, Tag(got), c.want, c.shown)
		}
		if !slices.Equal(before, strings.Fields(c.tags)) {
			t.Errorf("%q has become %q", c.tags, before)
		}
	}
}
