package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/unicode"

	"dure/agent"
	"dure/internal/prooftest"
)

func TestMarkdown(t *testing.T) {
	base, _ := url.Parse("https://example.org/docs/page.html")
	for _, tt := range []struct{ name, html, want string }{
		{"a page", `<!doctype html><html><head><title> A &amp; B </title><style>p{}</style></head><body>
			<h1>Title <em>here</em></h1><p>One<br>two</p><p>Three <a href="next.html#x">next</a>.
			<ul><li>a<li>b <ol start=3><li>c<li>d</ol></ul><hr><blockquote>said</blockquote>
			<pre><code class="language-go">a := 1 &lt; 2
	b</code></pre></body></html>`, `# Title *here*

One  
two

Three [next](https://example.org/docs/next.html#x).

- a
- b
  
  3. c
  4. d

* * *

> said

` + "```go\na := 1 < 2\n\tb\n```"},
		{"a table", `<table><thead><tr><th>A<th>B|C</thead><tr><td>1<td colspan=2>2 <b>x</b><tr><td>3</table>`, `| A | B\|C |  |
|---|---|---|
| 1 | 2 **x** |  |
| 3 |  |  |`},
		{"a table for looks", `<table><tr><td><ul><li>a</ul><td><p>b</p><p>c</p></table>`, "- a\n\nb\n\nc"},
		{"hidden", `a<script>b("</div>")</script><style>c</style><noscript>d</noscript><template>e</template><div hidden>f<p>g</div><span aria-hidden=true>h</span>
			<div style="Display : NONE">i<div>j</div></div><p style="visibility:hidden">k</p><svg><title>l</title><text>m</text></svg><iframe>n</iframe><!-- o --><textarea>p</textarea>
			<select><option>q</select><button>r</button><div style="font-size:0">s</div>z`, "a z"},
		{"hidden to the end", `a<div hidden>b<p>c`, "a"},
		{"what is wrong", `</div>a<p>b</b><i>c<p>d</i></p></td>e<a href=/x>f<a href=/y>g</a>`, "a\n\nb*c*\n\nd\n\ne[f](https://example.org/x)[g](https://example.org/y)"},
		{
			"links that lead nowhere", `<a href="javascript:alert(1)">a</a> <a href="#top">b</a> <a name=x>c</a> <a href="data:text/html,x">d</a> <a href="https://u:p@h/">e</a> <a href="//other.example/p(1)">f</a> <img src="data:image/png;base64,AAAA" alt="g"> <img src="/p.png" alt="h">`,
			"a b c d e [f](https://other.example/p%281%29) g ![h](https://example.org/p.png)",
		},
		{"another base", `<base href="https://cdn.example/x/"><a href=y>y</a>`, "[y](https://cdn.example/x/y)"},
		{"text that looks like marks", `<p>1 &lt; 2 * 3 * 4 _x_ # y [z](w)`, `1 &lt; 2 * 3 * 4 _x_ # y [z](w)`},
		{"elements nobody knows", `<my-app><x-y>a</x-y> b</my-app>`, "a b"},
		{"nothing", ``, ""},
		{"a table mostly of nothing", "<table><tr>" + strings.Repeat("<td>x", 200) + strings.Repeat("<tr><td>y", 100), strings.Repeat("x", 200) + strings.Repeat("\n\ny", 100)},
		{"lists, deeper than anybody reads", strings.Repeat("<ul><li>a", 10), "- a\n  \n  - a\n    \n    - a\n      \n      - a\n        \n        - a\n          \n          - a\n            \n            - a\n              \n              - a\n                \n                a\n                \n                a"},
		{"deep", strings.Repeat("<div>", 10_000) + "deep" + strings.Repeat("</div>", 10_000) + "after", "deep\n\nafter"},
	} {
		got, _, cut, err := newTurner().markdown(t.Context(), tt.html, base)
		if err != nil || cut {
			t.Errorf("%s: cut %v, %v", tt.name, cut, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, d)
		}
	}
}

// hostilePages are small ways to ask for much. // less divides their lengths.
func hostilePages(less int) map[string]string {
	r := func(s string, n int) string { return strings.Repeat(s, max(n/less, min(n, 400))) }
	var row strings.Builder
	for i := range maxColumns {
		fmt.Fprintf(&row, "<td>%d", i)
	}
	return map[string]string{
		"formatting taken up again":   "<p>" + r("<b>", 400) + r("<p>x", 1<<19),
		"formatting ended crosswise":  r("<i>a<b>b</i>c</b>", 200_000),
		"deep formatting, many times": r(r("<b><i>", 40)+r("</i></b>", 40), 4_000),
		"depth":                       r("<div>", 1<<19),
		"deep lists":                  r(r("<ul><li>", 40)+"x"+r("</ul>", 40), 4_000),
		"many lines, deep in lists":   r("<ul><li>", 40) + r("x<br>", 400_000),
		"many lines, deep in quotes":  r("<blockquote>", 40) + r("x<br>", 400_000),
		"a long table":                "<table>" + r("<tr><td>x", 200_000),
		"a wide table":                "<table><tr>" + r("<td>x", 200_000),
		"a table mostly of nothing":   "<table><tr>" + row.String() + r("<tr>", 100_000) + r("<tr><td>", 100_000),
		"cells that span":             "<table>" + r("<tr>"+r("<td colspan=999999999 rowspan=999999999>x", 50), 3_000),
		"tables in tables":            r("<table><tr><td>", 200_000),
		"a wide cell in a long table": "<table><tr><td>" + r("x", 1<<20) + r("<tr><td>y", 100_000),
		"links in headings in links":  r("<a href=/x><h1><b>y", 100_000),
		"marks to escape":             r("* _ # [ ` | ", 300_000),
		"entities":                    r("&lt;", 1<<20),
		"line breaks":                 "<pre>" + r("\n", 2<<20),
		"attributes":                  "<p " + r("a=b ", 1<<20),
		"tags that never begin":       r("<", 4<<20),
		"backticks":                   "<code>" + r("`", 1<<20) + "</code>",
		"code beside code":            r("<code>`</code>\n", 200_000),
		"comments":                    r("<!-- -->", 500_000),
		"spaces":                      r("<b> x </b> ", 200_000),
		"long links":                  r("<a href=/"+r("x", 400)+">y</a>", 10_000),
		"numbers":                     "<ol start=99999999999999999999>" + r("<li>x", 200_000),
		"bytes":                       r("\x00\xff\xfe<\x00p>\xf4", 300_000),
	}
}

func TestHostilePages(t *testing.T) {
	base, _ := url.Parse("https://example.org/")
	worst, limit, less := time.Duration(0), 10*time.Second, 32 // generous: a machine may be busy, and the race detector slow
	if prooftest.Long() {
		less = 1
	}
	for name, page := range hostilePages(less) {
		start := time.Now()
		text, _, _, err := newTurner().markdown(t.Context(), page, base)
		took := time.Since(start)
		if worst = max(worst, took); took > limit || err != nil || len(text) > maxMarkdown || !utf8.ValidString(text) {
			t.Errorf("%s: %d bytes in %s, %v", name, len(text), took, err)
		}
	}
	t.Logf("the worst took %s", worst)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if text, _, cut, err := newTurner().markdown(gone, "<p>x", base); text != "" || !cut || err != nil {
		t.Errorf("without time: %q, %v, %v", text, cut, err)
	}
}

func FuzzPage(f *testing.F) {
	f.Add("<p>a<b>b</p>", "text/html")
	f.Add("<table><tr><td colspan=3>x<td rowspan=2>y<tr><th>z</table><ul><li><pre>\n</pre>", "text/html; charset=euc-kr")
	f.Add("<a href=' http://[::1]/ '><img src=x></a><ol start=-9><li>", "")
	f.Add("\xEF\xBB\xBF{\"a\":1}", "application/json")
	f.Add("\xFE\xFF\x00<\x00p", "text/html; charset=utf-16")
	f.Add("<svg/><title>x</title><base href=//y><h1><code>`</code></h1>", "application/xhtml+xml")
	w := New(Config{})
	at, err := parseTarget("https://example.org/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body, kind string) {
		p, err := w.pageOf(t.Context(), &reply{from: at, status: 200, header: http.Header{"Content-Type": {kind}}, body: []byte(body)})
		if err != nil {
			return
		}
		if !utf8.ValidString(p.text) || len(p.text) > 4*len(body)+40*maxHref+maxSpan*maxSpan*len(body)+1000 || len(p.title) > 400 || strings.Contains(p.title, "\n") {
			t.Fatalf("%d bytes became %d, title %q", len(body), len(p.text), p.title)
		}
	})
}

func TestCharsets(t *testing.T) {
	text := "한글 <p>은 글자다"
	in := func(e encoding.Encoding, s string) string {
		out, err := e.NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	late := strings.Repeat("<p>plain ", 300)
	for _, tt := range []struct{ name, body, kind, want string }{
		{"said by the server", in(korean.EUCKR, text), "text/html; charset=euc-kr", "한글\n\n은 글자다"},
		{"said by the page", `<meta charset="euc-kr">` + in(korean.EUCKR, text), "text/html", "한글\n\n은 글자다"},
		{"said in the old way", `<meta http-equiv=Content-Type content="text/html; charset=Shift_JIS">` + in(japanese.ShiftJIS, "日本"), "text/html", "日本"},
		{"a byte order mark", in(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), text), "text/html", "한글\n\n은 글자다"},
		{"the mark beats the server", "\xEF\xBB\xBFü", "text/html; charset=iso-8859-1", "ü"},
		{"nothing said, UTF-8", text, "text/html", "한글\n\n은 글자다"},
		{"nothing said, UTF-8 after the beginning", late + "ü", "text/html", strings.TrimSpace(strings.Repeat("plain\n\n", 300)) + " ü"},
		{"nothing said, none", in(charmap.Windows1252, "caf\u00e9 \u2013"), "text/html", "café –"},
		{"a name that nobody knows", "ü", "text/plain; charset=klingon", "ü"},
		{"broken", "a\xffb", "text/plain; charset=utf-8", "a\uFFFDb"},
		{"JSON with a mark", "\xEF\xBB\xBF{}", "application/json", "{}"},
	} {
		got := fetchBody(t, tt.body, http.Header{"Content-Type": {tt.kind}})
		if got != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// fetchBody returns the text of a page with the given body, or the error.
func fetchBody(t *testing.T, body string, h http.Header) string {
	t.Helper()
	at, _ := parseTarget("https://example.org/")
	p, err := New(Config{}).pageOf(t.Context(), &reply{from: at, status: 200, header: h, body: []byte(body), cut: h.Get("Cut") != ""})
	switch {
	case err != nil:
		te := err.(*agent.ToolError)
		return string(te.Code) + " " + te.Message
	case p.media != nil:
		return fmt.Sprintf("%s %s of %d", p.media.Type, p.media.Media.Type, len(p.media.Media.Data))
	}
	return p.text
}

func TestTypes(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 50)
	for _, tt := range []struct{ name, kind, body, want string }{
		{"text", "text/plain", "a <b>", "a <b>"},
		{"XML", "application/atom+xml", "<a/>", "<a/>"},
		{"a drawing", "image/svg+xml", "<svg/>", "<svg/>"},
		{"no type, HTML", "", "<!DOCTYPE html><p>x", "x"},
		{"no type, text", "", "x", "x"},
		{"type of everything", "application/octet-stream", "just text", "just text"},
		{"image", "image/png", png, "image image/png of 58"},
		{"image of another type than it says", "image/jpeg", png, "image image/png of 58"},
		{"image that is none", "image/png", "<script>", ""},
		{"unknown image", "image/tiff", "II*\x00" + png, "E_WEB_TYPE it is application/octet-stream of 62 bytes and cannot be shown as text"},
		{"large image", "image/png", png + strings.Repeat("x", maxImage), "E_WEB_TYPE it is an image of 3670074 bytes; at most 3670016 can be shown"},
		{"PDF", "application/pdf", "%PDF-1.7 x", "document application/pdf of 10"},
		{"PDF that is none", "application/pdf", "<html>", "E_WEB_TYPE it is a PDF of 6 bytes; at most 4194304 can be shown"},
		{"large PDF", "application/pdf", "%PDF-" + strings.Repeat("x", maxPDF), "E_WEB_TYPE it is a PDF of 4194309 bytes; at most 4194304 can be shown"},
		{"archive", "application/zip", "PK\x03\x04", "E_WEB_TYPE it is application/zip of 4 bytes and cannot be shown as text"},
		{"binary that says it is text", "text/plain", "a\x00b", "E_WEB_TYPE it says that it is text/plain, and is binary data of 3 bytes"},
		{"nothing", "", "", ""},
	} {
		if got := fetchBody(t, tt.body, http.Header{"Content-Type": {tt.kind}}); got != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
