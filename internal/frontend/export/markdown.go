package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"
)

// Markdown writes a document in the Markdown of GitHub. What the user said is
// quoted, outputs stand in fences that they cannot close, and HTML is shown rather
// than obeyed.
func Markdown(out io.Writer, d *Doc, words Words) error {
	w := &markdown{Writer: bufio.NewWriterSize(out, 64<<10), words: words}
	w.doc(d, 1)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing Markdown: %w", err)
	}
	return nil
}

type markdown struct {
	*bufio.Writer // its error shows in Flush
	words         Words
}

func (w *markdown) put(parts ...string) {
	for _, p := range parts {
		_, _ = w.WriteString(p)
	}
}

func (w *markdown) doc(d *Doc, level int) {
	w.put(strings.Repeat("#", level), " ", line(or(d.Title, d.Session)), "\n\n")
	for _, r := range w.words.head(d) {
		w.put("- ", r.name, ": ", line(r.value), "\n")
	}
	w.put("\n")
	if d.System != "" {
		w.details(w.words.System, d.System, "")
	}
	said := ""
	for _, it := range d.Items {
		if who := w.who(it); who != said {
			said = who
			if who != "" {
				w.put(strings.Repeat("#", min(level+1, 6)), " ", line(who), "\n\n")
			}
		}
		w.item(it, level)
	}
	if d.Left > 0 {
		w.put("*[", fmt.Sprint(d.Left), " …]*\n\n")
	}
	if d.Cut != "" {
		w.put("> **", w.words.Cut, ":** ", line(d.Cut), "\n\n")
	}
}

// who is under whose heading an item stands.
func (w *markdown) who(it Item) string {
	switch it.Kind {
	case Input:
		return or(it.From, w.words.You)
	case Answer, Thinking, Call:
		return w.words.Assistant
	case Child:
		return w.words.Child + ": " + it.From
	}
	return ""
}

func (w *markdown) item(it Item, level int) {
	switch it.Kind {
	case Input:
		if it.Text != "" {
			w.put("> ", strings.ReplaceAll(harmless(w.bounded(it.Text)), "\n", "\n> "), "\n\n")
		}
		w.media(it)
	case Answer:
		w.put(harmless(w.bounded(it.Text)), "\n\n")
	case Thinking:
		w.details(w.words.Thinking, it.Text, "")
	case Call:
		w.call(it)
	case Note:
		text := w.words.level(it.Level)
		if it.Text != "" {
			text += ": " + it.Text
		}
		w.put("*", line(text), "*\n\n")
	case Plan:
		name, whole := w.words.plan(it)
		if whole {
			w.details(name, it.Text, "")
			return
		}
		w.put("*", line(strings.TrimSuffix(name+": "+it.Text, ": ")), "*\n\n")
	case Rating:
		text := w.words.Bad
		if it.Good {
			text = w.words.Good
		}
		if it.Text != "" {
			text += ": " + it.Text
		}
		w.put("**", line(text), "**\n\n")
	case Child:
		if it.Doc == nil {
			w.details(w.words.Child+": "+it.From, it.Text, "")
			return
		}
		w.doc(it.Doc, min(level+1, 5))
	}
}

func (w *markdown) call(it Item) {
	w.put("**", line(it.Tool), "**\n\n")
	w.fence(indented(it.Args), "json")
	if len(it.Diff) > 0 {
		w.details(w.words.Change, strings.Join(it.Diff, "\n"), "diff")
	}
	name := w.words.Result
	if it.Failed {
		name = w.words.Failed
	}
	switch {
	case !it.Done:
		w.put("*", w.words.NoResult, "*\n\n")
	case it.Text != "":
		w.details(name, it.Text, "")
		if it.Whole > int64(len(it.Text)) {
			w.put("*[", fmt.Sprint(it.Whole-int64(len(it.Text))), " ", w.words.More, "]*\n\n")
		}
	}
	w.media(it)
}

func (w *markdown) media(it Item) {
	for _, m := range it.Media {
		w.put("*[", w.words.Image, ": ", line(strings.TrimSpace(m.Name+" "+m.Type+" "+m.URL)), fmt.Sprintf(", %d bytes]*\n\n", len(m.Data)))
	}
}

// long is from how many lines on a text is folded.
const long = 12

// details writes a text in a fence; a long one folded.
func (w *markdown) details(name, text, lang string) {
	if strings.Count(text, "\n") < long {
		w.put(line(name), ":\n\n")
		w.fence(text, lang)
		return
	}
	w.put("<details><summary>", html.EscapeString(line(name)), "</summary>\n\n")
	w.fence(text, lang)
	w.put("</details>\n\n")
}

// fence writes a text between marks that it does not hold.
func (w *markdown) fence(text, lang string) {
	text = w.bounded(text)
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	w.put(mark, lang, "\n", strings.TrimSuffix(text, "\n"), "\n", mark, "\n\n")
}

func (w *markdown) bounded(s string) string { return bounded(s, w.words) }

func bounded(s string, words Words) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + fmt.Sprintf("\n[%d %s]", len(s)-maxShown, words.More)
}

// line puts a text on one line in which nothing is markup.
func line(s string) string {
	var b strings.Builder
	for _, c := range strings.Join(strings.Fields(s), " ") {
		if strings.ContainsRune("\\`*_{}[]<>#|~!&", c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// indented is JSON as people read it.
func indented(raw json.RawMessage) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if enc.Encode(raw) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
