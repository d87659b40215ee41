// Package frontmatter reads Markdown files that begin with fields between two lines of
// "---": skills, commands, agents and other files by which people extend a program.
//
// It owns the syntax, and what is said about a mistake in it: line, column and what to
// do. It knows no field by name, reads no files and starts no goroutines. What others
// wrote is read as leniently as it can be understood in one way only.
package frontmatter

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of the fields.
const (
	maxFields = 64 << 10 // bytes, as they stand in the file
	maxNodes  = 10_000   // values, those of lists and maps counted each
	maxDepth  = 32       // of lists and maps in each other
)

// A Fault is a mistake in a file, or something that was read leniently.
type Fault struct {
	Line    int    `json:"line,omitempty"`   // from 1; 0 = it is about the file
	Column  int    `json:"column,omitempty"` // from 1; 0 = not known
	Key     string `json:"key,omitempty"`
	Message string `json:"message"` // English
	Fix     string `json:"fix,omitempty"`
}

// Error says where it is and what.
func (f *Fault) Error() string {
	switch {
	case f.Line == 0:
		return f.Message
	case f.Column == 0:
		return fmt.Sprintf("line %d: %s", f.Line, f.Message)
	}
	return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Message)
}

// Advice is Error with what to do behind a semicolon, if anything is.
func (f *Fault) Advice() string {
	if f.Fix == "" {
		return f.Error()
	}
	return f.Error() + "; " + f.Fix
}

// A Doc is a file that was read.
type Doc struct {
	Fields   []Field // in the order of the file, each key once
	Has      bool    // there are fields, even if none is filled in
	Body     string  // what follows them, as it is but for its line ends
	BodyLine int     // number of its first line
	Warnings []Fault // what was read leniently
}

// Field is one key with its value.
type Field struct {
	Key   string
	Value *yaml.Node
	Line  int // of the key, from 1
	At    int // its column, from 1
}

// Parse reads a file. The error is a [*Fault]; the document has the body then all the
// same, unless it could not be told where that begins.
func Parse(data []byte) (Doc, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		at := len(data) - len(bytes.TrimLeftFunc(data, func(r rune) bool { return r != utf8.RuneError }))
		return Doc{BodyLine: 1}, &Fault{Line: 1 + bytes.Count(data[:at], []byte("\n")), Message: "the file is not UTF-8", Fix: "save it as UTF-8"}
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return Doc{Body: text, BodyLine: 1}, nil
	}
	d := Doc{Has: true}
	head, body, lines, ok := cut(rest)
	if !ok {
		return d, &Fault{Line: 1, Column: 1, Message: `the fields that begin with "---" do not end`, Fix: `put a line of "---" behind the last field`}
	}
	d.Body, d.BodyLine = body, lines+3
	if len(head) > maxFields {
		return d, &Fault{Line: 1, Message: fmt.Sprintf("the fields have %d bytes; %d are the most", len(head), maxFields), Fix: "move text behind the fields"}
	}
	if fault := hidden(head); fault != nil {
		return d, fault
	}
	root, fault := read(head)
	if fault != nil {
		mended, which := quote(head)
		again, still := (*yaml.Node)(nil), fault
		if which != nil {
			again, still = read(mended)
		}
		if still != nil {
			return d, fault
		}
		root = again
		for _, n := range which {
			d.Warnings = append(d.Warnings, Fault{Line: n + 2, Message: `the value needs quotes; it was read as text`, Fix: "put the value into quotes"})
		}
	}
	if root == nil {
		return d, nil
	}
	return d, d.take(root)
}

// cut splits what follows the first line into the fields and the body.
func cut(text string) (head, body string, lines int, ok bool) {
	for rest := text; rest != ""; lines++ {
		line, next, _ := strings.Cut(rest, "\n")
		if l := strings.TrimRight(line, " \t"); l == "---" || l == "..." {
			return text[:len(text)-len(rest)], next, lines, true
		}
		rest = next
	}
	return "", "", 0, false
}

// hidden finds what ends a line for YAML and shows as none in most editors: a field could
// hide behind it.
func hidden(head string) *Fault {
	at := strings.IndexAny(head, "\r\u0085\u2028\u2029")
	if at < 0 {
		return nil
	}
	before := head[:at]
	return &Fault{
		Line: 2 + strings.Count(before, "\n"), Column: at - strings.LastIndexByte(before, '\n'),
		Message: "a line ends here in a way that many editors do not show", Fix: "save the file with ordinary line ends",
	}
}

// read parses YAML. It returns nil for nothing at all.
func read(head string) (*yaml.Node, *Fault) {
	if n := plain(head); n != nil {
		return n, nil
	}
	return readYAML(head)
}

// YAML parses a document that is no part of a Markdown file. It returns nil for nothing at
// all; references in it are as they stand.
func YAML(text string) (*yaml.Node, *Fault) {
	n, fault := readYAML(text)
	if fault != nil {
		fault.Line-- // no line of "---" stands before it
	}
	return n, fault
}

func readYAML(head string) (*yaml.Node, *Fault) {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(head), &n); err != nil {
		return nil, yamlFault(head, err)
	}
	if len(n.Content) == 0 {
		return nil, nil
	}
	return n.Content[0], nil
}

var lineOf = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`line (\d+): `) })

// yamlFault says in the terms of the file what the parser has to say.
func yamlFault(head string, err error) *Fault {
	f := &Fault{Message: strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := lineOf().FindStringSubmatch(f.Message); m != nil {
		f.Line, _ = strconv.Atoi(m[1]) // digits
		f.Message = strings.Replace(f.Message, m[0], "", 1)
	}
	lines := strings.Split(head, "\n")
	if f.Line > 0 && f.Line < len(lines) && strings.HasPrefix(f.Message, "did not find expected") {
		f.Line++ // here the parser counts from 0, unlike anywhere else
		for f.Line > 1 && strings.TrimSpace(lines[f.Line-1]) == "" {
			f.Line-- // the mistake is in what came last
		}
	}
	if i := strings.IndexByte(head, '\t'); i >= 0 && strings.Contains(f.Message, "cannot start any token") {
		f.Line = 1 + strings.Count(head[:i], "\n")
		f.Column = 1 + strings.IndexByte(lines[f.Line-1], '\t')
		f.Message, f.Fix = "a tab cannot indent fields", "indent with spaces"
	}
	switch {
	case strings.Contains(f.Message, "mapping values are not allowed"):
		f.Fix = `put the value into quotes: it has ": " in it`
	case strings.Contains(f.Message, "did not find expected key"), strings.Contains(f.Message, "could not find expected ':'"):
		f.Fix = "check the indentation of the lines before, and that each field is written as: name: value"
	case strings.Contains(f.Message, "unexpected end of stream"), strings.Contains(f.Message, "quoted scalar"):
		f.Fix = "close the quotes"
	case strings.Contains(f.Message, "did not find expected node content"):
		f.Fix = "write a value there, or close what begins there"
	case strings.Contains(f.Message, "unknown anchor"):
		f.Fix = "write the value out: references reach no other document"
	case strings.Contains(f.Message, "did not find expected ',' or ']'"):
		f.open(lines, '[', "close the list with ]")
	case strings.Contains(f.Message, "did not find expected ',' or '}'"):
		f.open(lines, '{', "close the group with }")
	}
	if f.Line == 0 {
		f.Line = 1
	}
	if f.Column == 0 && f.Line <= len(lines) {
		f.Column = 1 + len(lines[f.Line-1]) - len(strings.TrimLeft(lines[f.Line-1], " "))
	}
	f.Line++ // the first line of the file is "---"
	return f
}

// open points at what begins in the line of the fault and does not end.
func (f *Fault) open(lines []string, begin byte, fix string) {
	f.Fix = fix
	if f.Line > 0 && f.Line <= len(lines) {
		f.Column = 1 + strings.LastIndexByte(lines[f.Line-1], begin)
	}
}

var plainField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z_][\w.-]*):[ \t]+([^\s"'\[{|>&*!%#@` + "`" + `-].*)$`)
})

// hintField is a hint on arguments, which people write in brackets and not as a list.
var hintField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i)(argument[-_]?hint):[ \t]+(\[.*)$`)
})

// quote puts quotes around plain values at the top that YAML reads otherwise, and
// returns the lines (from 0) that it has changed.
func quote(head string) (string, []int) {
	lines := strings.Split(head, "\n")
	var which []int
	for i, l := range lines {
		m := plainField().FindStringSubmatch(l)
		if h := hintField().FindStringSubmatch(l); h != nil {
			m = h
		} else if m == nil || !strings.Contains(m[2], ": ") && !strings.HasSuffix(m[2], ":") && !strings.Contains(m[2], " #") {
			continue
		}
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ") {
			continue // it goes on there
		}
		lines[i] = m[1] + ": '" + strings.ReplaceAll(strings.TrimRight(m[2], " \t"), "'", "''") + "'"
		which = append(which, i)
	}
	return strings.Join(lines, "\n"), which
}

// take takes the fields over.
func (d *Doc) take(root *yaml.Node) error {
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return &Fault{Line: root.Line + 1, Column: root.Column, Message: "the fields are no list of names with values", Fix: "write each as: name: value"}
	}
	left := maxNodes
	if err := place(root, maxDepth, &left); err != nil {
		return err
	}
	at := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			return &Fault{Line: k.Line, Column: k.Column, Message: "a name of a field is no plain text", Fix: "write it as: name: value"}
		}
		if j, twice := at[k.Value]; twice {
			d.Warnings = append(d.Warnings, Fault{Line: k.Line, Column: k.Column, Key: k.Value, Message: fmt.Sprintf("%s stands here a second time; this one counts", k.Value), Fix: "remove one of them"})
			d.Fields[j].Value = v
			continue
		}
		at[k.Value] = len(d.Fields)
		d.Fields = append(d.Fields, Field{k.Value, v, k.Line, k.Column})
	}
	return nil
}

// place makes the lines of values those of the file. It refuses what refers to other
// values: a few bytes of that may stand for millions.
func place(n *yaml.Node, depth int, left *int) error {
	n.Line++
	if *left--; *left < 0 || depth == 0 {
		return &Fault{Line: n.Line, Column: n.Column, Message: "the fields are too many, or too deep in each other", Fix: "write them plainly"}
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return &Fault{Line: n.Line, Column: n.Column, Message: "references (& and *) are not read here", Fix: "write the value out, or put it into quotes"}
	}
	for _, c := range n.Content {
		if err := place(c, depth-1, left); err != nil {
			return err
		}
	}
	return nil
}

// FaultOf returns the fault that an error is; nil = it is none.
func FaultOf(err error) *Fault {
	f, _ := errors.AsType[*Fault](err)
	return f
}
