package kit

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
)

func TestPins(t *testing.T) {
	var p Pins
	if before, moved := p.Moved("a", "1"); moved {
		t.Errorf("an empty Pins says that a was %q", before)
	}
	p.Set("a", "1")
	if _, moved := p.Moved("a", "1"); moved {
		t.Error("a has moved, and is where it was")
	}
	if before, moved := p.Moved("a", "2"); !moved || before != "1" {
		t.Errorf("a moved: %v, from %q", moved, before)
	}
	for i := range maxPins { // more than it keeps
		p.Set(fmt.Sprint(i), "1")
	}
	if _, moved := p.Moved("a", "2"); moved || len(p.at) != maxPins || len(p.order) != maxPins {
		t.Errorf("a is still known, or %d of %d are", len(p.at), len(p.order))
	}
}

func TestText(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Cut("héllo", 6), "héllo"},
		{Cut("héllo", 2), "h…"},
		{Line(" a\r\n\tb\x00\u2028c ", 9), "a b c"},
		{Line("a  b", 2), "a …"},
		{Quote("a\"\x1b[1m", 99), `"a\"\x1b[1m"`},
		{Quote("abcdef", 3), `"abc…"`},
		{Name("ä b.go"), "ä b.go"},
		{Name("a\nb"), `"a\nb"`},
		{Name(`"a"`), `"\"a\""`},
		{Name("a\u202eb"), `"a\u202eb"`},
		{Name("\xff"), `"\xff"`},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestReader(t *testing.T) {
	if e := Reader(nil).Read("ls", "/w"); e.Unreadable == "" || len(e.Commands) != 1 {
		t.Errorf("without a reader: %+v", e)
	}
	read := Reader(func(command, dir string) agent.Effects { return agent.Effects{Reads: []string{dir, command}} })
	if e := read.Read("ls", "/w"); len(e.Reads) != 2 || e.Unreadable != "" {
		t.Errorf("with a reader: %+v", e)
	}
}

func TestPath(t *testing.T) {
	root, tc := t.TempDir(), agent.ToolContext{Workdir: t.TempDir()}
	for _, tt := range []struct {
		tc         agent.ToolContext
		path, want string
	}{
		{tc, "a/../b", "b of the working folder"},
		{agent.ToolContext{}, "b", "b of the root"},
		{tc, root, "the root"},
		{tc, "a\x00", ""},
		{tc, strings.Repeat("a", 4097), ""},
	} {
		got, err := Path(tt.tc, root, tt.path)
		switch {
		case err != nil:
			got = ""
		case got == root:
			got = "the root"
		default:
			got = Relative(got, root, tc.Workdir) + map[bool]string{true: " of the root", false: " of the working folder"}[strings.HasPrefix(got, root)]
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.path, got, tt.want)
		}
	}
}

// What comes faster than it is shown is left out, up to a line that can be no rest of
// a secret.
func TestWatched(t *testing.T) {
	key := strings.Repeat("MIIEowIBAAKCAQEAMIIEowIBAAKCAQEA\n", 200)
	for _, tt := range []struct {
		name   string
		writes []string // 40 ms after each other
		want   []string
	}{
		{"slow", []string{"a ", "b", "c\n", "d\n"}, []string{"a ", "bc\n", "d\n"}},
		{"letters in parts", []string{"\xec", "\x95", "\x94", ""}, []string{"\xec", "\x95\x94"}},
		{"too much", []string{strings.Repeat("x", showBytes) + "token=abc\nand on\n", "", "more\n"}, []string{"\nand on\n", "more\n"}},
		{"too much in all", []string{"one\n", strings.Repeat("y", showBytes), "z\nlast line\n", "", ""}, []string{"one\n", "\nlast line\n"}},
		{"no end of a line", []string{strings.Repeat("x", showBytes+1), "", "y", "", "z\na b\n"}, []string{"\na b\n"}},
		{"a key without its beginning", []string{"-----BEGIN " + "PRIVATE KEY-----\n" + key + "-----END " + "PRIVATE KEY-----\nbehind it\n"}, []string{"\n-----END " + "PRIVATE KEY-----\nbehind it\n"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []string
			w := Watched(io.Discard, func(s string) { got = append(got, s) })
			for _, p := range tt.writes {
				if n, err := io.WriteString(w, p); n != len(p) || err != nil {
					t.Fatal(n, err)
				}
				<-time.After(40 * time.Millisecond)
			}
			<-time.After(showEvery) // nothing waits longer
			synctest.Wait()
			if got = slices.DeleteFunc(got, func(s string) bool { return s == "" }); !slices.Equal(got, tt.want) {
				t.Errorf("%s: shown are %q, want %q", tt.name, got, tt.want)
			}
		})
	}
}
