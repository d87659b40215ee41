package prompt_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"dure/internal/knowledge/prompt"
)

func TestParseOwn(t *testing.T) {
	for _, c := range []struct {
		in   string
		want prompt.Own
		err  string
	}{
		{"", prompt.Own{}, ""},
		{"Prefer tabs.\n", prompt.Own{Text: "Prefer tabs."}, ""},
		{prompt.Template, prompt.Own{}, ""},
		{"---\nmode: replace\n---\nYou are a pirate.\n", prompt.Own{Replace: true, Text: "You are a pirate."}, ""},
		{"\ufeff---\r\n# how\r\nmode: \"append\"\r\n---\r\nA\r\n\r\nB", prompt.Own{Text: "A\n\nB"}, ""},
		{"---\nmode: replace\n---", prompt.Own{Replace: true}, ""},
		{"---\n---\nA", prompt.Own{Text: "A"}, ""},
		{"A\n---\nB", prompt.Own{Text: "A\n---\nB"}, ""},
		{"---\nmode: other\n---\n", prompt.Own{}, `line 2: mode is "other" and has to be append or replace`},
		{"---\nmood: append\n---\n", prompt.Own{}, `line 2: "mood" means nothing there; it knows mode`},
		{"---\nmode: append\nmode: replace\n---\n", prompt.Own{}, "line 3: mode stands there twice"},
		{"---\nmode: append\nPrefer tabs.", prompt.Own{}, "the lines at its beginning do not end with ---"},
		{"a\nb\x00", prompt.Own{}, "line 2 has a control character"},
		{"\xff", prompt.Own{}, "it is not UTF-8"},
		{strings.Repeat("a", prompt.MaxOwn+1), prompt.Own{}, "it has more than 65536 bytes"},
	} {
		got, err := prompt.ParseOwn([]byte(c.in))
		said := ""
		if err != nil {
			said = err.Error()
		}
		if got != c.want || said != c.err {
			t.Errorf("%.40q: %+v, %v", c.in, got, err)
		}
	}
}

func FuzzParseOwn(f *testing.F) {
	f.Add([]byte("---\nmode: replace\n---\nYou are a pirate."))
	f.Add([]byte("---\n---"))
	f.Fuzz(func(t *testing.T, data []byte) {
		own, err := prompt.ParseOwn(data)
		if err != nil && own != (prompt.Own{}) {
			t.Errorf("%+v beside %v", own, err)
		}
		if !utf8.ValidString(own.Text) || strings.ContainsAny(own.Text, "\x00\x1b\r") || own.Text != strings.TrimSpace(own.Text) {
			t.Errorf("the text is %q", own.Text)
		}
	})
}
