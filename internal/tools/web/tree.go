package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"dure/internal/tools/kit"
)

// The bounds of a page's tree. What is deeper is kept as text of what is around
// it; what comes after the last node or byte is left out.
const (
	maxHTML    = 4 << 20 // bytes of HTML that are read
	maxText    = 2 << 20 // bytes of text and addresses
	maxNodes   = 200_000
	maxDepth   = 96
	maxNested  = 8   // lists and quotes within each other
	maxColumns = 200 // of a table; a wider one is text
	maxSpan    = 16  // rows or columns that one cell covers
	maxSpans   = 20_000
	maxHref    = 500 // bytes of an address; a longer one is left out
)

// tree builds the nodes of a page from its tags, in one pass and in bounded
// space. It repairs what pages usually get wrong, and no more: the rules by which
// browsers mend the rest let a few bytes become many nodes.
type tree struct {
	base  *url.URL
	title string
	cut   bool

	stack  []open
	nodes  int
	bytes  int
	spans  int
	excess int // open elements that were too deep
}

// open is an element whose end has not come.
type open struct {
	node   *html.Node
	tag    atom.Atom
	name   string
	hidden bool
	cell   bool // of a table, or in one
	nested int  // lists and quotes around it, itself included

	rows, columns, cells int // of a table; columns also of a row
}

var (
	voidTags = tagSet(atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img,
		atom.Input, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr)

	// Elements that say nothing to a reader of text.
	silentTags = tagSet(atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Object,
		atom.Embed, atom.Svg, atom.Math, atom.Canvas, atom.Audio, atom.Video, atom.Input, atom.Textarea,
		atom.Select, atom.Datalist, atom.Button, atom.Title, atom.Meta, atom.Link, atom.Noembed, atom.Noframes)

	blockTags = tagSet(atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Details, atom.Div, atom.Dl,
		atom.Fieldset, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6,
		atom.Header, atom.Hr, atom.Main, atom.Nav, atom.Ol, atom.P, atom.Pre, atom.Section, atom.Table, atom.Ul)

	paragraph = tagSet(atom.P) // ends before a block

	// What a tag ends when it begins, and what protects outer elements from it.
	endsBefore = map[atom.Atom]struct{ ends, within map[atom.Atom]bool }{
		atom.Li:    {tagSet(atom.Li), tagSet(atom.Ul, atom.Ol, atom.Table)},
		atom.Dt:    {tagSet(atom.Dt, atom.Dd), tagSet(atom.Dl, atom.Table)},
		atom.Dd:    {tagSet(atom.Dt, atom.Dd), tagSet(atom.Dl, atom.Table)},
		atom.A:     {tagSet(atom.A), tagSet(atom.Td, atom.Th, atom.Table)},
		atom.Td:    {tagSet(atom.Td, atom.Th), tagSet(atom.Tr, atom.Table)},
		atom.Th:    {tagSet(atom.Td, atom.Th), tagSet(atom.Tr, atom.Table)},
		atom.Tr:    {tagSet(atom.Tr), tagSet(atom.Table)},
		atom.Thead: {tagSet(atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr), tagSet(atom.Table)},
		atom.Tbody: {tagSet(atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr), tagSet(atom.Table)},
		atom.Tfoot: {tagSet(atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr), tagSet(atom.Table)},
	}

	tableTags = tagSet(atom.Table, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th)
)

func tagSet(tags ...atom.Atom) map[atom.Atom]bool {
	m := map[atom.Atom]bool{}
	for _, t := range tags {
		m[t] = true
	}
	return m
}

// parseHTML returns what a reader sees of a page. base is the address of it.
func parseHTML(text string, base *url.URL) (*html.Node, *tree) {
	t := &tree{base: base, cut: len(text) > maxHTML}
	root := &html.Node{Type: html.DocumentNode}
	t.stack = append(t.stack, open{node: root})
	z := html.NewTokenizer(strings.NewReader(text[:min(len(text), maxHTML)]))
	for titled := false; t.nodes < maxNodes && t.bytes < maxText; {
		switch z.Next() {
		case html.ErrorToken:
			t.closeTo(1)
			return root, t
		case html.TextToken:
			t.text(z.Token().Data, titled)
		case html.StartTagToken, html.SelfClosingTagToken:
			tok := z.Token()
			titled = tok.DataAtom == atom.Title && t.title == ""
			t.start(tok)
		case html.EndTagToken:
			titled = false
			t.end(z.Token())
		}
	}
	t.cut = true
	t.closeTo(1)
	return root, t
}

func (t *tree) top() *open { return &t.stack[len(t.stack)-1] }

func (t *tree) text(s string, titled bool) {
	if titled {
		t.title = kit.Line(s, 300)
		return
	}
	if t.top().hidden || s == "" {
		return
	}
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if t.bytes+len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText-t.bytes], "")
		t.cut = true
	}
	t.bytes += len(s)
	if t.top().cell {
		s = strings.ReplaceAll(s, "|", `\|`)
	}
	parent := t.top().node
	if last := parent.LastChild; last != nil && last.Type == html.TextNode && len(last.Data) < 512 {
		last.Data += s
		return
	}
	t.add(&html.Node{Type: html.TextNode, Data: s})
}

func (t *tree) add(n *html.Node) {
	t.nodes++
	t.top().node.AppendChild(n)
}

func (t *tree) start(tok html.Token) {
	tag := tok.DataAtom
	if tag == atom.Base {
		t.rebase(tok)
	}
	if t.excess > 0 {
		if !voidTags[tag] && tok.Type != html.SelfClosingTagToken {
			t.excess++
		}
		return
	}
	if blockTags[tag] {
		t.closeOpen(paragraph, nil)
	}
	if e, ok := endsBefore[tag]; ok {
		t.closeOpen(e.ends, e.within)
	}
	hidden := t.top().hidden || silentTags[tag] || isHidden(tok.Attr)
	if voidTags[tag] || tok.Type == html.SelfClosingTagToken && hidden {
		if !hidden {
			t.add(t.element(tok))
		}
		return
	}
	if len(t.stack) >= maxDepth {
		t.excess++
		return
	}
	o := open{tag: tag, name: tok.Data, hidden: hidden, nested: t.top().nested}
	o.cell = t.top().cell || tag == atom.Td || tag == atom.Th
	if hidden {
		t.stack = append(t.stack, o)
		return
	}
	o.node = t.element(tok)
	switch tag {
	case atom.Ul, atom.Ol, atom.Blockquote, atom.Dl:
		if o.nested++; o.nested > maxNested {
			rename(o.node)
		}
	case atom.Li:
		if o.nested > maxNested || o.nested == 0 {
			rename(o.node)
		}
	case atom.Tr, atom.Td, atom.Th:
		t.count(tag)
	}
	t.add(o.node)
	t.stack = append(t.stack, o)
}

// count adds a row or a cell to the table around it.
func (t *tree) count(tag atom.Atom) {
	for i := len(t.stack) - 1; i > 0; i-- {
		switch o := &t.stack[i]; {
		case o.tag == atom.Tr && tag != atom.Tr:
			o.columns++
		case o.tag == atom.Table && tag == atom.Tr:
			o.rows++
			return
		case o.tag == atom.Table:
			o.cells++
			return
		}
	}
}

func (t *tree) end(tok html.Token) {
	if voidTags[tok.DataAtom] {
		return
	}
	if t.excess > 0 {
		t.excess--
		return
	}
	for i := len(t.stack) - 1; i > 0; i-- {
		o := t.stack[i]
		if o.name == tok.Data {
			t.closeTo(i)
			return
		}
		if tableTags[o.tag] && !tableTags[tok.DataAtom] { // a cell keeps to itself what is wrong in it
			return
		}
	}
}

// closeOpen ends the outermost open element of ends that is inside of within.
func (t *tree) closeOpen(ends, within map[atom.Atom]bool) {
	at := 0
	for i := len(t.stack) - 1; i > 0; i-- {
		o := t.stack[i]
		if within[o.tag] || within == nil && (tableTags[o.tag] || o.tag == atom.Button) {
			break
		}
		if ends[o.tag] {
			at = i
		}
	}
	if at > 0 {
		t.closeTo(at)
	}
}

// closeTo ends the open elements from i on.
func (t *tree) closeTo(i int) {
	for len(t.stack) > i {
		o := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		if o.hidden {
			continue
		}
		switch o.tag {
		case atom.Tr:
			for j := len(t.stack) - 1; j > 0; j-- {
				if p := &t.stack[j]; p.tag == atom.Table {
					p.columns = max(p.columns, o.columns)
					break
				}
			}
		case atom.Table:
			// Filling up a table makes cells of nothing: few long rows among many
			// short ones would become far more than was sent.
			if o.columns > maxColumns || o.rows*o.columns > 8*o.cells+1000 {
				rename(o.node)
			}
		}
	}
}

// rename makes a plain block of an element.
func rename(n *html.Node) { n.Data, n.DataAtom, n.Attr = "div", atom.Div, nil }

// element makes the node of a tag, with the few attributes that Markdown shows.
func (t *tree) element(tok html.Token) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: tok.Data, DataAtom: tok.DataAtom}
	if tok.DataAtom == 0 { // nothing is known of it but its text
		n.Data, n.DataAtom = "span", atom.Span
	}
	keep := func(key, val string) {
		t.bytes += len(val)
		n.Attr = append(n.Attr, html.Attribute{Key: key, Val: val})
	}
	for _, a := range tok.Attr {
		switch {
		case a.Key == "href" && n.DataAtom == atom.A, a.Key == "src" && n.DataAtom == atom.Img:
			if s := t.address(a.Val); s != "" {
				keep(a.Key, s)
			}
		case a.Key == "alt" && n.DataAtom == atom.Img:
			keep("alt", kit.Line(a.Val, 300))
		case (a.Key == "colspan" || a.Key == "rowspan") && (n.DataAtom == atom.Td || n.DataAtom == atom.Th):
			if v, err := strconv.Atoi(a.Val); err == nil && v > 1 {
				if v = min(v, maxSpan); t.spans+v*maxSpan <= maxSpans {
					t.spans += v * maxSpan
					keep(a.Key, strconv.Itoa(v))
				}
			}
		case a.Key == "start" && n.DataAtom == atom.Ol && len(a.Val) <= 5:
			keep("start", a.Val)
		case a.Key == "class" && (n.DataAtom == atom.Code || n.DataAtom == atom.Pre):
			if i := strings.Index(a.Val, "language-"); i >= 0 {
				lang, _, _ := strings.Cut(a.Val[i:], " ")
				keep("class", kit.Line(lang, 40))
			}
		}
	}
	if n.DataAtom == atom.Img && !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "src" }) {
		alt := ""
		for _, a := range n.Attr {
			alt = a.Val
		}
		return &html.Node{Type: html.TextNode, Data: alt}
	}
	if n.DataAtom == atom.A && len(n.Attr) == 0 { // an anchor, a button, a script
		n.Data, n.DataAtom = "span", atom.Span
	}
	return n
}

// address returns where a link of the page leads, or "" when that is nowhere a
// reader could go.
func (t *tree) address(raw string) string {
	raw = strings.TrimSpace(raw)
	if raw == "" || raw[0] == '#' || len(raw) > maxHref {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	if t.base != nil {
		u = t.base.ResolveReference(u)
	}
	if !slices.Contains([]string{"http", "https", "mailto"}, u.Scheme) || u.User != nil {
		return ""
	}
	if s := u.String(); len(s) <= maxHref {
		return s
	}
	return ""
}

func (t *tree) rebase(tok html.Token) {
	for _, a := range tok.Attr {
		if a.Key == "href" && t.base != nil && len(a.Val) <= maxHref {
			if u, err := t.base.Parse(a.Val); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
				t.base = u
			}
		}
	}
}

// isHidden reports whether an element says of itself that it is not shown. What
// a style sheet hides cannot be told.
func isHidden(attrs []html.Attribute) bool {
	for _, a := range attrs {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			if strings.EqualFold(strings.TrimSpace(a.Val), "true") {
				return true
			}
		case "style":
			style := strings.ToLower(strings.Join(strings.Fields(a.Val[:min(len(a.Val), 2000)]), ""))
			for _, s := range []string{"display:none", "visibility:hidden", "visibility:collapse", "opacity:0;", "font-size:0;", "font-size:0px", "content-visibility:hidden"} {
				if strings.Contains(style+";", s) {
					return true
				}
			}
		}
	}
	return false
}
