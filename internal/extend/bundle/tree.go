package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"dure/agent/query"
	"dure/internal/base/frontmatter"
)

// Bounds of a file.
const (
	maxFile      = 1 << 20 // bytes
	maxDocuments = 100     // in one file
	maxVisits    = 100_000 // values of a document, those behind references counted each time
	maxDepth     = 64      // of lists and maps in each other
)

// A Place is where something stands.
type Place struct {
	File         string
	Doc          int // from 0
	Line, Column int // from 1
}

type shape uint8

const (
	scalar shape = iota
	list
	object
)

func (s shape) String() string {
	switch s {
	case list:
		return "a list"
	case object:
		return "a group of fields"
	}
	return "a value"
}

// A node is a value of a document, references put in. It is not changed once it is made.
type node struct {
	at    Place
	shape shape
	tag   string // of a scalar: !!str, !!int, !!float, !!bool, !!null
	text  string // of a scalar, as it is written, without quotes
	items []*node
	keys  []entry // of an object, in the order of the file, each name once
}

type entry struct {
	name string
	at   Place
	node *node
}

func (n *node) get(name string) *node {
	if n != nil {
		for _, e := range n.keys {
			if e.name == name {
				return e.node
			}
		}
	}
	return nil
}

func (n *node) null() bool { return n == nil || n.shape == scalar && n.tag == "!!null" }

// value returns n as JSON has it.
func (n *node) value() any {
	switch {
	case n.null():
		return nil
	case n.shape == list:
		all := make([]any, len(n.items))
		for i, item := range n.items {
			all[i] = item.value()
		}
		return all
	case n.shape == object:
		all := make(map[string]any, len(n.keys))
		for _, e := range n.keys {
			all[e.name] = e.node.value()
		}
		return all
	}
	switch n.tag {
	case "!!int", "!!float", "!!bool":
		var v any
		y := yaml.Node{Kind: yaml.ScalarNode, Tag: n.tag, Value: n.text}
		if y.Decode(&v) == nil {
			if _, err := json.Marshal(v); err == nil { // no NaN
				return v
			}
		}
	}
	return n.text
}

// JSON returns n for those who take it as it is; nil for nothing.
func (n *node) json() json.RawMessage {
	if n.null() {
		return nil
	}
	data, err := json.Marshal(n.value())
	if err != nil {
		return nil // value has made it of what can be written alone
	}
	return data
}

// merge returns base with what over says otherwise: objects go into each other, all else
// replaces.
func merge(base, over *node) *node {
	if base == nil || over == nil || base.shape != object || over.shape != object {
		if over == nil {
			return base
		}
		return over
	}
	one := *base
	one.keys = slices.Clone(base.keys)
	for _, e := range over.keys {
		i := slices.IndexFunc(one.keys, func(k entry) bool { return k.name == e.name })
		if i < 0 {
			one.keys = append(one.keys, e)
			continue
		}
		one.keys[i].node = merge(one.keys[i].node, e.node)
	}
	return &one
}

// parse reads the documents of a file. Each has one mistake of its syntax at most told; those
// that can be read are returned all the same.
func parse(file string, data []byte, ps *problems) []*node {
	wrong := func(line, column int, code query.BundleCode, fix, format string, args ...any) {
		ps.at(code, &node{at: Place{File: file, Line: line, Column: column}}, "", fix, format, args...)
	}
	if len(data) > maxFile {
		wrong(1, 1, query.BundleFileTooLarge, "split it into several files", "the file has more than %d bytes", maxFile)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		wrong(1, 1, query.BundleParse, "save it as UTF-8", "the file is not UTF-8")
		return nil
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	if at := strings.IndexAny(text, "\x00\r\u0085\u2028\u2029"); at >= 0 {
		before := text[:at]
		wrong(1+strings.Count(before, "\n"), at-strings.LastIndexByte(before, '\n'), query.BundleParse, "save the file with ordinary line ends",
			"a line ends here in a way that many editors do not show")
		return nil
	}
	var docs []*node
	n := 0
	for _, c := range split(text) {
		if c.empty() {
			continue
		}
		if n == maxDocuments {
			wrong(c.line, 1, query.BundleTooManyDocuments, "split it into several files", "the file has more than %d documents", maxDocuments)
			break
		}
		if doc := c.read(file, n, ps); doc != nil {
			docs = append(docs, doc)
		}
		n++
	}
	return docs
}

// A chunk is the text of one document, and the number of its first line.
type chunk struct {
	text string
	line int
}

// split takes a file apart where lines begin with --- or ..., which end a document even
// within the text of one.
func split(text string) []chunk {
	var chunks []chunk
	begin, from := 0, 1
	line := 1
	for at := 0; at < len(text); line++ {
		next := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		switch l := text[at:next]; {
		case marks(l, "---"):
			chunks = append(chunks, chunk{text[begin:at], from})
			begin, from = at, line
		case marks(l, "..."):
			chunks = append(chunks, chunk{text[begin:at], from})
			begin, from = next, line+1
		}
		at = next
	}
	return append(chunks, chunk{text[begin:], from})
}

func marks(line, mark string) bool {
	rest, ok := strings.CutPrefix(line, mark)
	return ok && (rest == "" || strings.ContainsRune(" \t\n", rune(rest[0])))
}

// empty reports whether there is nothing but comments and directives in a chunk.
func (c chunk) empty() bool {
	for l := range strings.Lines(c.text) {
		if l = strings.TrimSpace(strings.TrimPrefix(l, "---")); l != "" && l[0] != '#' && l[0] != '%' {
			return false
		}
	}
	return true
}

func (c chunk) read(file string, doc int, ps *problems) *node {
	y, fault := frontmatter.YAML(c.text)
	if fault != nil {
		ps.at(query.BundleParse, &node{at: Place{file, doc, fault.Line + c.line - 1, max(fault.Column, 1)}}, "", fault.Fix, "%s", fault.Message)
		return nil
	}
	w := walk{file: file, doc: doc, offset: c.line - 1, left: maxVisits, ps: ps}
	n, ok := w.node(y, maxDepth)
	if !ok || n.null() {
		return nil
	}
	return n
}

// walk makes nodes of what the parser has read, within bounds.
type walk struct {
	file   string
	doc    int
	offset int
	left   int
	ps     *problems
}

func (w *walk) place(y *yaml.Node) Place {
	return Place{w.file, w.doc, y.Line + w.offset, max(y.Column, 1)}
}

func (w *walk) node(y *yaml.Node, depth int) (*node, bool) {
	if y == nil {
		return nil, true
	}
	n := &node{at: w.place(y)}
	if w.left--; w.left < 0 || depth == 0 {
		w.ps.at(query.BundleParse, n, "", "write it more plainly", "the document has too many values, or they are too deep in each other")
		return nil, false
	}
	switch y.Kind {
	case yaml.AliasNode:
		return w.node(y.Alias, depth-1)
	case yaml.SequenceNode:
		n.shape = list
		for _, c := range y.Content {
			item, ok := w.node(c, depth-1)
			if !ok {
				return nil, false
			}
			n.items = append(n.items, item)
		}
	case yaml.MappingNode:
		n.shape = object
		return n, w.fields(n, y, depth)
	default:
		n.tag, n.text = y.ShortTag(), y.Value
		switch n.tag {
		case "!!str", "!!int", "!!float", "!!bool", "!!null":
		case "!!timestamp":
			n.tag = "!!str"
		default:
			w.ps.at(query.BundleParse, n, "", "leave the tag out", "the tag %s is not read here", n.tag)
			n.tag = "!!str"
		}
	}
	return n, true
}

// fields reads the fields of an object; those that are merged in with << come last, where
// they are not there yet.
func (w *walk) fields(n *node, y *yaml.Node, depth int) bool {
	seen := map[string]bool{}
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		at := w.place(y.Content[i])
		if k.Kind != yaml.ScalarNode {
			w.ps.at(query.BundleParse, &node{at: at}, "", "write it as: name: value", "a name of a field is no plain text")
			continue
		}
		value, ok := w.node(v, depth-1)
		if !ok {
			return false
		}
		if k.Tag == "!!merge" || k.Value == "<<" && k.Style == 0 {
			merged = append(merged, value)
			continue
		}
		if seen[k.Value] {
			w.ps.at(query.BundleParse, &node{at: at}, k.Value, "remove one of them", "%s stands here a second time", k.Value)
			continue
		}
		seen[k.Value] = true
		n.keys = append(n.keys, entry{k.Value, at, value})
	}
	for _, m := range merged {
		from := []*node{m}
		if m.shape == list {
			from = m.items
		}
		for _, f := range from {
			for _, e := range f.keys {
				if !seen[e.name] {
					seen[e.name] = true
					n.keys = append(n.keys, e)
				}
			}
		}
	}
	return true
}

// texts returns what is in a map as sorted "key=value", for messages.
func texts(m map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s=%s", k, m[k]))
	}
	return strings.Join(all, ", ")
}
