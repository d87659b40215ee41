package index

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"dure/agent/query"
)

// Whatever somebody looks for is no error but one of theirs, and what is found is text
// with marks in it.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"parser", `"empty input"`, "-fail parser", "pars*", "서버", "버", "SQLite를", `"연결은 서버"`, "session:a1 one", `tag:"a b" one`,
		"since:7d one", "kind:call grep", "workdir:/home one", `"`, `-"`, `""*`, "*", "a*b*", "AND", "NOT OR", "NEAR(a b)", "plain : x", "{plain} : x", "^a",
		"a' OR 1=1 --", "⑴½ﬁŐ", "\x00a\x00", "\xff\xfe", "e\u0301", "\u0301", "ﷺ", "가\u0301나", "ー", "a:b:c", "一", strings.Repeat("가", 300),
	} {
		f.Add(s)
	}
	x, err := Open(context.Background(), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { x.Close() })
	updated(f, x, world())
	f.Fuzz(func(t *testing.T, s string) {
		r, err := x.Search(context.Background(), query.Search{Text: s})
		if err != nil {
			if _, ok := errors.AsType[*QueryError](err); !ok {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		for _, h := range r.Hits {
			end := 0
			if !utf8.ValidString(h.Snippet) {
				t.Fatalf("%q: %q", s, h.Snippet)
			}
			for _, m := range h.Marks {
				if m.From < end || m.To <= m.From || m.To > len(h.Snippet) || !utf8.ValidString(h.Snippet[m.From:m.To]) {
					t.Fatalf("%q: marks %v in %q", s, h.Marks, h.Snippet)
				}
				end = m.To
			}
		}
	})
}

// A text is found by any of its words, and shown with that word marked.
func FuzzText(f *testing.F) {
	for _, s := range []string{"a b", "서버에서 SQLite를", "é e\u0301 ﬁ Ⅳ ½", "ー々カ", strings.Repeat("x", 300), "\xff a\x00b", "가나다 12ab", "\u0301a", "Ⴀ ẞ ǅ", "ﾃｽﾄ", "İi"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = clean(cut(s, 500))
		plain, pairs := columns(s)
		for _, c := range plain + pairs {
			if c < 0x80 && c != ' ' && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z') {
				t.Fatalf("%q in %q %q", c, plain, pairs)
			}
		}
		for w := range words(s) {
			parts := partsOf(s[w.from:w.to])
			if len(parts) == 0 {
				continue
			}
			d := found{text: s}
			if !d.look([]term{{parts: parts}}) {
				t.Fatalf("%q not in %q", s[w.from:w.to], s)
			}
			d.show()
			if !utf8.ValidString(d.Snippet) {
				t.Fatalf("%q", d.Snippet)
			}
		}
		back, err := unpack(new(packer).pack(s))
		if err != nil || back != s {
			t.Fatalf("%q %v", back, err)
		}
		if joined := strings.Join(pieces(s), ""); len(joined) > len(s) {
			t.Fatalf("%q", joined)
		}
	})
}
