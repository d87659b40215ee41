package near

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b        string
		limit, want int
	}{
		{"", "", 0, 0},
		{"", "abc", 0, 3},
		{"abc", "", 0, 3},
		{"kitten", "sitting", 0, 3},
		{"form", "from", 0, 1},
		{"abcd", "badc", 0, 2},
		{"ca", "abc", 0, 3},
		{"a", "abcd", 2, 2},
		{"abcd", "wxyz", 2, 2},
		{"abcd", "abcx", 2, 1},
		{strings.Repeat("a", 300), strings.Repeat("a", 255) + "b", 0, 0},
	} {
		for _, pair := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			if got := Distance(pair[0], pair[1], tt.limit); got != tt.want {
				t.Errorf("%q and %q up to %d: %d, want %d", pair[0], pair[1], tt.limit, got, tt.want)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"demo", "doctor", "sessions", "show", "replay", "verify", "models", "version"}
	for word, want := range map[string]string{
		"sesions": "sessions", "session": "sessions", "docter": "doctor", "shwo": "show", "dmeo": "demo", "modles": "models",
		"fix": "", "hello": "", "verify": "verify", "x": "", "": "", strings.Repeat("x", 100): "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
