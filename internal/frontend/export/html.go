package export

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"
)

// HTML writes a document as one page that needs nothing else: no script runs in
// it, nothing is loaded, and every text is escaped. Printed, it shows what is
// folded, too.
func HTML(out io.Writer, d *Doc, words Words) error {
	w := &page{Writer: bufio.NewWriterSize(out, 64<<10), words: words, left: maxImages}
	sum := sha256.Sum256([]byte(style))
	w.put(`<!DOCTYPE html>`, "\n", `<html><head><meta charset="utf-8">`, "\n",
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'sha256-`,
		base64.StdEncoding.EncodeToString(sum[:]), `'; base-uri 'none'; form-action 'none'">`, "\n",
		`<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width, initial-scale=1">`, "\n",
		`<title>`)
	w.text(or(d.Title, d.Session))
	w.put("</title>\n<style>", style, "</style></head><body>\n")
	if words.Print != "" {
		w.put(`<p class="hint">`)
		w.text(words.Print)
		w.put("</p>\n")
	}
	w.doc(d, 1)
	w.put("</body></html>\n")
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing HTML: %w", err)
	}
	return nil
}

const style = `:root{color-scheme:light dark;--bg:#fff;--fg:#1c1c1e;--dim:#667;--box:#f4f4f6;--line:#d8d8de;--user:#e8f0fe;--add:#0a6b2c;--del:#a3142a}
@media(prefers-color-scheme:dark){:root{--bg:#16161a;--fg:#e6e6ea;--dim:#99a;--box:#202026;--line:#3a3a44;--user:#1d2a44;--add:#7bd88f;--del:#ff8c98}}
body{background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1rem;margin:1.5rem 0 .3rem;color:var(--dim)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;color:var(--dim);font-size:.85rem}dd{margin:0;overflow-wrap:anywhere}
.text{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0}.user{background:var(--user);border-radius:.5rem;padding:.5rem .8rem}
pre{background:var(--box);border:1px solid var(--line);border-radius:.4rem;padding:.5rem .7rem;overflow-x:auto;font:.82rem/1.4 ui-monospace,monospace;margin:.3rem 0}
details{margin:.3rem 0}summary{cursor:pointer;color:var(--dim);font-size:.85rem}
.tool{font:600 .85rem ui-monospace,monospace;margin:.8rem 0 0}.failed{color:var(--del)}.note{color:var(--dim);font-style:italic;overflow-wrap:anywhere}
.add{color:var(--add)}.del{color:var(--del)}.child{border-left:3px solid var(--line);padding-left:1rem}img{max-width:100%}.hint{color:var(--dim);font-size:.85rem}
@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--dim:#444;--box:#fff;--line:#aaa;--user:#fff;--add:#000;--del:#000}body{max-width:none;margin:0;font-size:10pt}
.hint{display:none}pre{white-space:pre-wrap;overflow-wrap:anywhere;overflow:visible}details::details-content{content-visibility:visible;display:block;height:auto}h2,.tool{break-after:avoid}@page{margin:18mm}}`

type page struct {
	*bufio.Writer // its error shows in Flush
	words         Words
	left          int // bytes of images
}

func (w *page) put(parts ...string) {
	for _, p := range parts {
		_, _ = w.WriteString(p)
	}
}

func (w *page) text(s string) { w.put(html.EscapeString(s)) }

func (w *page) doc(d *Doc, level int) {
	w.put(fmt.Sprintf("<h%d>", level))
	w.text(or(d.Title, d.Session))
	w.put(fmt.Sprintf("</h%d>\n<dl>", level))
	for _, r := range w.words.head(d) {
		w.put("<dt>")
		w.text(r.name)
		w.put("</dt><dd>")
		w.text(r.value)
		w.put("</dd>")
	}
	w.put("</dl>\n")
	if d.System != "" {
		w.folded(w.words.System, d.System, "")
	}
	said := ""
	for _, it := range d.Items {
		who := (&markdown{words: w.words}).who(it)
		if who != said && who != "" && it.Kind != Child {
			w.put("<h2>")
			w.text(who)
			w.put("</h2>\n")
		}
		said = who
		w.item(it)
	}
	if d.Left > 0 {
		w.note(fmt.Sprintf("[%d …]", d.Left))
	}
	if d.Cut != "" {
		w.note(w.words.Cut + ": " + d.Cut)
	}
}

func (w *page) item(it Item) {
	switch it.Kind {
	case Input:
		w.div("text user", it.Text)
		w.media(it)
	case Answer:
		w.answer(it.Text)
	case Thinking:
		w.folded(w.words.Thinking, it.Text, "")
	case Call:
		w.call(it)
	case Note:
		w.note(strings.TrimSuffix(w.words.level(it.Level)+": "+it.Text, ": "))
	case Plan:
		name, whole := w.words.plan(it)
		if whole {
			w.folded(name, it.Text, "")
			return
		}
		w.note(strings.TrimSuffix(name+": "+it.Text, ": "))
	case Rating:
		text := w.words.Bad
		if it.Good {
			text = w.words.Good
		}
		w.note(strings.TrimSuffix(text+": "+it.Text, ": "))
	case Child:
		w.put(`<div class="child">`)
		if it.Doc == nil {
			w.folded(w.words.Child+": "+it.From, it.Text, "")
		} else {
			w.doc(it.Doc, 2)
		}
		w.put("</div>\n")
	}
}

func (w *page) div(class, text string) {
	if text == "" {
		return
	}
	w.put(`<div class="`, class, `">`)
	w.text(bounded(text, w.words))
	w.put("</div>\n")
}

func (w *page) note(text string) {
	w.put(`<p class="note">`)
	w.text(text)
	w.put("</p>\n")
}

// answer writes Markdown with its code set apart, and else as it was written.
func (w *page) answer(s string) {
	var part []string
	fence := ""
	flush := func() {
		text := strings.Join(part, "\n")
		part = part[:0]
		switch {
		case fence != "":
			w.pre(text, "")
		case strings.TrimSpace(text) != "":
			w.div("text", strings.Trim(text, "\n"))
		}
	}
	for l := range strings.SplitSeq(bounded(s, w.words), "\n") {
		mark := fenceOf(l)
		switch {
		case fence == "" && mark != "":
			flush()
			fence = mark
		case fence != "" && strings.HasPrefix(mark, fence) && strings.TrimSpace(l) == mark:
			flush()
			fence = ""
		default:
			part = append(part, l)
		}
	}
	flush()
}

func (w *page) call(it Item) {
	w.put(`<p class="tool">`)
	w.text(it.Tool)
	w.put("</p>\n")
	w.folded(w.words.Arguments, indented(it.Args), "")
	if len(it.Diff) > 0 {
		w.folded(w.words.Change, strings.Join(it.Diff, "\n"), "diff")
	}
	name := w.words.Result
	if it.Failed {
		name = w.words.Failed
	}
	switch {
	case !it.Done:
		w.note(w.words.NoResult)
	case it.Text != "":
		w.folded(name, it.Text, map[bool]string{true: "failed"}[it.Failed])
		if it.Whole > int64(len(it.Text)) {
			w.note(fmt.Sprintf("[%d %s]", it.Whole-int64(len(it.Text)), w.words.More))
		}
	}
	w.media(it)
}

// folded writes a text under its name: open when it is short.
func (w *page) folded(name, text, class string) {
	open := ""
	if strings.Count(text, "\n") < long {
		open = " open"
	}
	w.put("<details", open, `><summary>`)
	w.text(name)
	w.put("</summary>")
	w.pre(bounded(text, w.words), class)
	w.put("</details>\n")
}

func (w *page) pre(text, class string) {
	w.put("<pre>")
	switch class {
	case "diff":
		for l := range strings.SplitSeq(text, "\n") {
			side := map[bool]string{true: "add"}[strings.HasPrefix(l, "+")]
			if strings.HasPrefix(l, "-") {
				side = "del"
			}
			w.put(`<span class="`, side, `">`)
			w.text(l)
			w.put("</span>\n")
		}
	case "":
		w.text(text)
	default:
		w.put(`<span class="`, class, `">`)
		w.text(text)
		w.put("</span>")
	}
	w.put("</pre>\n")
}

// media shows images, and names what is none or too large.
func (w *page) media(it Item) {
	for _, m := range it.Media {
		kind := imageType(m.Data)
		if kind == "" || len(m.Data) > min(maxImage, w.left) {
			w.note(fmt.Sprintf("[%s: %s, %d bytes]", w.words.Image, strings.TrimSpace(m.Name+" "+m.Type+" "+m.URL), len(m.Data)))
			continue
		}
		w.left -= len(m.Data)
		w.put(`<p><img alt="`)
		w.text(m.Name)
		w.put(`" src="data:`, kind, `;base64,`, base64.StdEncoding.EncodeToString(m.Data), `"></p>`, "\n")
	}
}

// imageType returns the type of an image that holds pixels alone, by its bytes; ""
// for everything else.
func imageType(data []byte) string {
	for _, m := range []struct{ kind, magic string }{
		{"image/png", "\x89PNG\r\n\x1a\n"}, {"image/jpeg", "\xff\xd8\xff"}, {"image/gif", "GIF87a"}, {"image/gif", "GIF89a"},
	} {
		if bytes.HasPrefix(data, []byte(m.magic)) {
			return m.kind
		}
	}
	if len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" {
		return "image/webp"
	}
	return ""
}
