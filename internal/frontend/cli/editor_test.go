package cli

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dure/internal/frontend/text"
)

// What keys do to what is typed; | is the cursor.
func TestEditor(t *testing.T) {
	tests := []struct{ name, keys, want string }{
		{"text", "abc", "abc|"},
		{"Hangul is one", "한글\x7f", "한|"},
		{"decomposed Hangul is one", "가한\x7f", "가|"},
		{"a family is one", "a👨‍👩‍👧\x7f", "a|"},
		{"left and insert", "한글\x1b[D각", "한각|글"},
		{"home, end", "bc\x01a\x05d", "abcd|"},
		{"delete", "abc\x01\x1b[3~", "|bc"},
		{"delete by Ctrl-D", "abc\x01\x04", "|bc"},
		{"kill and yank", "one two\x17\x01\x19 ", "two |one "},
		{"kill to start", "one two\x15x", "x|"},
		{"kill to end", "one\x01\x1b[C\x0b", "o|"},
		{"words", "one 둘 three\x1bb\x1bb\x1b[1;5C.", "one 둘.| three"},
		{"lines", "a\nbc\ndef\x1b[A\x1b[A", "a|\nbc\ndef"},
		{"columns", "한글\nabc\x1b[A", "한|글\nabc"},
		{"down", "abc\nd\x1b[A\x01\x1b[B", "abc\n|d"},
		{"paste", "\x1b[200~a\tb\r\nc\x1b[31m\x1b[201~", "a    b\nc␛[31m|"},
		{"unknown sequences are nothing", "a\x1b[15~\x1b[99;9u\x1bOPb", "ab|"},
		{"controls are nothing", "a\x00\x1a\x1cb", "ab|"},
		{"at the ends", "\x7f\x1b[D\x1b[3~\x1b[C\x1b[Ba", "a|"},
		{"no UTF-8", "a\xff\xfeb", "ab|"},
	}
	for _, tt := range tests {
		e := &editor{}
		var k keyReader
		for _, key := range k.feed([]byte(tt.keys)) {
			if key.code == keyEOF {
				key.code = keyDelete
			}
			if key.code == keyNewline {
				key = keyNewlineKey
			}
			e.apply(key)
		}
		if got := e.buf[:e.pos] + "|" + e.buf[e.pos:]; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

var keyNewlineKey = key{code: keyNewline}

func TestRender(t *testing.T) {
	tests := []struct {
		buf        string
		pos        int
		cols, rows int
		want       string // lines, then row,col
	}{
		{"", 0, 20, 5, "> /0,2"},
		{"abc", 3, 20, 5, "> abc/0,5"},
		{"한글", 3, 20, 5, "> 한글/0,4"},
		{"abcdef", 6, 6, 5, "> abcd/  ef/1,4"},
		{"abcd", 4, 6, 5, "> abcd/0,6"},
		{"가나다", 9, 6, 5, "> 가나/  다/1,4"},
		{"a\nb", 1, 20, 5, "> a/  b/0,3"},
		{"1\n2\n3\n4\n5", 9, 20, 3, "  3/  4/  5/2,3"},
		{"1\n2\n3\n4\n5", 0, 20, 3, "> 1/  2/  3/0,2"},
	}
	for _, tt := range tests {
		e := &editor{buf: tt.buf, pos: tt.pos}
		lines, row, col := e.render("> ", tt.cols, tt.rows)
		if got := fmt.Sprintf("%s/%d,%d", strings.Join(lines, "/"), row, col); got != tt.want {
			t.Errorf("%q in %d columns: %s, want %s", tt.buf, tt.cols, got, tt.want)
		}
	}
}

func TestUnfinished(t *testing.T) {
	for s, want := range map[string]string{
		"one":                  "one",
		" one ":                "one",
		`one \`:                "…",
		`one \\`:               `one \\`,
		`"""`:                  "…",
		"\"\"\"a\nb":           "…",
		"\"\"\"\na\nb\n\"\"\"": "a\nb",
		`"""one"""`:            "one",
	} {
		got := "…"
		if _, more := unfinished(s); !more {
			got = finished(s)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

// Keys come out the same however the terminal cuts them, and what is typed is
// text that can be shown.
func FuzzKeys(f *testing.F) {
	for _, s := range []string{"abc\r", "한글\x7f", "\x1b[200~a\x1b[20b\x1b[201~c", "\x1b[1;5C\x1bb\x1b", "\xed\x95", "\x1b[" + strings.Repeat("1", 100)} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, s string, cut uint8) {
		var whole, pieces keyReader
		want := join(whole.feed([]byte(s)))
		var keys []key
		for rest := s; rest != ""; {
			n := min(int(cut)%7+1, len(rest))
			keys = append(keys, pieces.feed([]byte(rest[:n]))...)
			rest = rest[n:]
		}
		if d := cmp.Diff(want, join(keys), cmp.AllowUnexported(key{})); d != "" && len(s) < maxSequence {
			t.Fatalf("%q in pieces: %s", s, d)
		}
		e := &editor{}
		for _, k := range want {
			if e.apply(k) {
				e.take()
			}
			if e.pos < 0 || e.pos > len(e.buf) || !utf8.ValidString(e.buf[:e.pos]) || text.Clean(e.buf) != e.buf {
				t.Fatalf("%q: %q at %d", s, e.buf, e.pos)
			}
			lines, row, col := e.render("> ", 20, 5)
			if row >= len(lines) || len(lines) > 5 || col > 20 {
				t.Fatalf("%q: cursor at %d,%d of %q", e.buf, row, col, lines)
			}
			for _, l := range lines {
				if text.Width(l) > 20 {
					t.Fatalf("%q is too wide", l)
				}
			}
		}
	})
}

// join makes one key of text that was cut.
func join(keys []key) []key {
	var out []key
	for _, k := range keys {
		if n := len(out); n > 0 && k.code == keyText && out[n-1].code == keyText {
			out[n-1].text += k.text
			continue
		}
		out = append(out, k)
	}
	return out
}

func TestScreenWraps(t *testing.T) {
	for _, tt := range []struct {
		cols int
		s    string
		want string
	}{
		{0, "a long line of words that is never wrapped", "a long line of words that is never wrapped\n"},
		{11, "one two three", "one two\nthree\n"},
		{11, "  indented code stays so", "  indented\ncode stays\nso\n"},
		{11, "abcdefghijklmnopqrstuvwxyz", "abcdefghij\nklmnopqrst\nuvwxyz\n"},
		{11, "日本語は空白がない", "日本語は空\n白がない\n"},
		{11, "a\n\n\nb", "a\n\n\nb\n"},
		{11, "trail   \nx", "trail\nx\n"},
		{11, "1234567890 x", "1234567890\nx\n"},
	} {
		v := &vt{cols: max(tt.cols-1, 0), dumb: true}
		s := newScreen(Terminal{Out: v, Size: func() (int, int) { return tt.cols, 0 }})
		for _, r := range tt.s { // as a stream brings it
			s.flow(string(r))
		}
		s.startLine()
		s.w.Flush()
		if got := strings.TrimSuffix(v.String(), "\n"); got != tt.want {
			t.Errorf("%d columns:\n%q, want\n%q", tt.cols, got, tt.want)
		}
	}
}
