package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dure/agent/query"
)

func newSnippets(t *testing.T) Snippets {
	t.Helper()
	now := time.Date(2024, 2, 29, 8, 5, 0, 0, time.UTC)
	return Snippets{Dir: filepath.Join(t.TempDir(), "snippets"), Workdir: filepath.FromSlash("/work/shop"), User: "kim", Now: func() time.Time { return now }}
}

func TestFill(t *testing.T) {
	s := newSnippets(t)
	for _, tt := range []struct {
		text   string
		values map[string]string
		want   query.FilledSnippet
	}{
		{"plain", nil, query.FilledSnippet{Text: "plain"}},
		{"Dear {{name}},", map[string]string{"name": "Lee"}, query.FilledSnippet{Text: "Dear Lee,"}},
		{"{{ name }} {{name:x}}", map[string]string{"name": "a"}, query.FilledSnippet{Text: "a a"}},
		{"{{tone: kind}}!", nil, query.FilledSnippet{Text: "kind!"}},
		{"{{tone:}}!", nil, query.FilledSnippet{Text: "!"}},
		{"{{a}} {{b}} {{a}}", map[string]string{"b": "{{a}}"}, query.FilledSnippet{Text: "{{a}} {{a}} {{a}}", Missing: []string{"a"}}},
		{"{{a}}", map[string]string{"a": "{{date}}"}, query.FilledSnippet{Text: "{{date}}"}},
		{`\{{a}} {{a:1}}`, nil, query.FilledSnippet{Text: "{{a}} 1"}},
		{"{{date}} {{time}} {{weekday}} {{folder}} {{user}} {{year}}", nil, query.FilledSnippet{Text: "2024-02-29 08:05 Thursday shop kim 2024"}},
		{"{{date}}", map[string]string{"date": "today"}, query.FilledSnippet{Text: "today"}},
		{"x", map[string]string{"z": "1", "y": "2"}, query.FilledSnippet{Text: "x", Unused: []string{"y", "z"}}},
		{"{{not a name}} {{}} {{a", nil, query.FilledSnippet{Text: "{{not a name}} {{}} {{a"}},
		{"{{이름}} 님", map[string]string{"이름": "김"}, query.FilledSnippet{Text: "김 님"}},
	} {
		path, err := s.Make("x", tt.text)
		if err != nil {
			t.Fatal(err)
		}
		sn, err := s.Find("x")
		if err != nil || sn.Error != "" {
			t.Fatalf("%v, %s", err, sn.Error)
		}
		got, err := s.Fill(sn, tt.values)
		tt.want.Name = "x"
		if d := cmp.Diff(tt.want, got); d != "" || err != nil {
			t.Errorf("%q: %v\n%s", tt.text, err, d)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSnippets(t *testing.T) {
	s := newSnippets(t)
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	if _, err := s.Make("reply", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Make("reply", "again"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one: %v", err)
	}
	if _, err := s.Make("fields", "---\nno fields"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "../x", "a b", "-x", strings.Repeat("a", 65), "x/y", "CON.txt"} {
		if path, err := s.Make(name, "x"); !errors.Is(err, ErrName) {
			t.Errorf("%q made %s, %v", name, path, err)
		}
	}
	for name, text := range map[string]string{
		"bad.md": "---\ndescription: [\n---\nx", "big.txt": strings.Repeat("x", maxFile+1), "note.txt": "---\ndescription: A note\n---\n{{b}} {{a: 1}} {{b}} {{date}}\n", "note.rst": "x",
	} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, sn := range list {
		got = append(got, fmt.Sprintf("%s %q %v %v", sn.Name, sn.Description, sn.Variables, sn.Error != ""))
	}
	want := []string{
		`bad "" [] true`, `big "" [] true`, `fields "" [] false`,
		`note "A note" [{b  true} {a 1 false}] false`,
		`reply "" [{name  true} {text nothing yet false}] false`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if sn, err := s.Find("fields"); err != nil || sn.Text != "---\nno fields" {
		t.Errorf("%q, %v", sn.Text, err)
	}
}

func TestLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home", "links.json")
	if list, err := Links(path); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	if err := SetLink(path, query.Link{Name: "search", URL: "https://example.com/?q={query}&l={lang}"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("// mine\n"), data...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := SetLink(path, query.Link{Name: "issue", URL: "https://example.com/i/{no}", Description: "An <issue>"}); err != nil {
		t.Fatal(err)
	}
	list, err := Links(path)
	want := []query.Link{
		{Name: "issue", URL: "https://example.com/i/{no}", Description: "An <issue>", Parameters: []string{"no"}},
		{Name: "search", URL: "https://example.com/?q={query}&l={lang}", Parameters: []string{"query", "lang"}},
	}
	if d := cmp.Diff(want, list); d != "" || err != nil {
		t.Fatalf("%v\n%s", err, d)
	}
	if err := RemoveLink(path, "search"); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(path); err != nil || !strings.HasPrefix(string(data), "// mine\n") || strings.Contains(string(data), "search") || strings.Contains(string(data), `\u003c`) {
		t.Errorf("%v\n%s", err, data)
	}
	for text, want := range map[string]string{
		`{"a": 1}`:                                   "line 1, column",
		"{\n\"a\": \"https://x\",,}":                 "line 2, column",
		`{"a": "javascript:alert(1)"}`:               "http, https",
		`{"a": "file:///etc/passwd"}`:                "http, https",
		`{"a": "https://{host}/x"}`:                  "host",
		`{"a": "https://u:p@x/"}`:                    "password",
		`{"a": "https:x"}`:                           "host",
		`{"a": "https://x\\@evil/{p}"}`:              "http",
		`{"a b": "https://x"}`:                       "letters",
		`{"a": "https://x/{}"}`:                      "letters",
		`{"a": {"url": "https://x", "colour": 1}}`:   "colour",
		`{"a": "https://` + strings.Repeat("x", 9e3): "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := Links(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, %v", text, list, err)
		}
		if err := SetLink(path, query.Link{Name: "b", URL: "https://x"}); err == nil {
			t.Errorf("%.60s was written over", text)
		}
	}
}

func TestFillLink(t *testing.T) {
	for _, tt := range []struct {
		url    string
		values []string
		want   string // an error begins with "filling in"
	}{
		{"https://x/", nil, "https://x/"},
		{"https://x/{a}/b?q={q}", []string{"1", "two", "words & more"}, "https://x/1/b?q=two%20words%20%26%20more"},
		{"https://x/{a}", []string{"../../../etc"}, "https://x/..%2F..%2F..%2Fetc"},
		{"https://x/{a}/", []string{".."}, "https://x/%2E%2E/"},
		{"https://x/?q={q}&r={q}", []string{"한글#?"}, "https://x/?q=%ED%95%9C%EA%B8%80%23%3F&r=%ED%95%9C%EA%B8%80%23%3F"},
		{"https://x/{a}{b}", []string{"{b}", "1"}, "https://x/%7Bb%7D1"},
		{"mailto:{who}?subject={s}", []string{"a@b.c", "Hi there"}, "mailto:a%40b.c?subject=Hi%20there"},
		{"https://x/{a}/{b}", []string{"1"}, "filling in the link l: nothing is given for b"},
		{"https://x/", []string{"1"}, "filling in the link l: it has no parameters"},
		{"https://x/{a}", []string{strings.Repeat("한", 1000)}, "filling in the link l: the address gets longer than 8000 bytes"},
	} {
		l := query.Link{Name: "l", URL: tt.url}
		if err := check(&l); err != nil {
			t.Fatalf("%s: %v", tt.url, err)
		}
		got, err := FillLink(l, tt.values)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s with %.40q is %s, want %s", tt.url, tt.values, got, tt.want)
		}
	}
}

func TestEmojis(t *testing.T) {
	for text, want := range map[string]string{
		"rocket": "🚀", "로켓": "🚀", "fire": "🔥", "red heart": "❤️", "bug": "🐛", "체크": "✅", "go gopher": "🐹", "🚀": "🚀", "nothing like it": "",
	} {
		got := ""
		if all := Emojis(text, 1); len(all) > 0 {
			got = all[0].Sign
		}
		if got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	if all := Emojis("", 1000); len(all) != maxEmoji || len(Emojis("", 0)) != someEmoji {
		t.Errorf("%d emoji", len(all))
	}
	seen := map[string]bool{}
	for _, s := range signs() {
		if s.Sign == "" || s.Name == "" || s.Word == "" || seen[s.Sign] || !utf8.ValidString(s.Sign) {
			t.Errorf("%+v", s)
		}
		seen[s.Sign] = true
	}
}

func FuzzFill(f *testing.F) {
	f.Add("Dear {{name}}, \\{{x}} {{a:1}} {{date}}", "{{name}}")
	f.Add("{{{{a}}}}{{a", "}}")
	f.Add("\\\\{{a}}", "")
	s := Snippets{Now: func() time.Time { return time.Time{} }}
	f.Fuzz(func(t *testing.T, text, value string) {
		if len(text) > maxFile || len(value) > maxFile {
			return
		}
		sn := query.Snippet{Name: "x", Text: text}
		last := 0
		for _, g := range gaps(text) {
			if g.from < last || g.to > len(text) || text[g.from:g.from+2] != "{{" || text[g.to-2:g.to] != "}}" {
				t.Fatalf("%q has %+v", text, g)
			}
			last = g.to
		}
		filled, err := s.Fill(sn, map[string]string{"a": value})
		if err == nil && !strings.Contains(text, "{{") && filled.Text != text {
			t.Fatalf("%q became %q", text, filled.Text)
		}
	})
}

func FuzzLink(f *testing.F) {
	f.Add("https://example.com/{a}?q={b}", "../x", "y z")
	f.Add("mailto:{a}", "a@b?cc=d", "")
	f.Add("https://[::1]:8/{a}#{b}", "\n", "%00")
	f.Add("https://example.com/{m/{a}a}", "x", "y")
	f.Fuzz(func(t *testing.T, address, a, b string) {
		l := query.Link{Name: "l", URL: address}
		if check(&l) != nil {
			return
		}
		got, err := FillLink(l, []string{a, b}[:min(2, len(l.Parameters))])
		if err != nil {
			return
		}
		whole := query.Link{Name: "l", URL: got}
		scheme, _, _ := strings.Cut(address, ":")
		if err := check(&whole); err != nil || !strings.HasPrefix(got, scheme+":") {
			t.Fatalf("%q became %q: %v", address, got, err)
		}
	})
}
