package jsonc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrNotThere is a value that is not there.
var ErrNotThere = errors.New("it is not there")

// A Text is a text with a JSON object in it, or with nothing but comments and blanks.
type Text struct {
	data  []byte
	root  Value
	empty bool
	same  func(a, b string) bool
}

// Read reads a text. same says which spellings of a key are the same one; nil = only
// those that are equal. Errors in the JSON are those of encoding/json.
func Read(data []byte, same func(a, b string) bool) (*Text, error) {
	if same == nil {
		same = func(a, b string) bool { return a == b }
	}
	t := &Text{data: data, same: same}
	plain, err := Plain(data)
	if err != nil {
		return nil, err
	}
	body := bytes.TrimPrefix(plain, []byte("\ufeff"))
	if len(trim(body)) == 0 {
		t.empty = true
		return t, nil
	}
	for i := range len(plain) - len(body) {
		plain[i] = ' '
	}
	if t.root, err = Parse(plain); err != nil {
		return nil, err
	}
	if t.root.Kind != '{' {
		return nil, errors.New("it is no object")
	}
	return t, nil
}

// Get returns the bytes of the value at a path, comments included.
func (t *Text) Get(path ...string) ([]byte, bool) {
	chain, left := t.find(path)
	if len(left) > 0 {
		return nil, false
	}
	v := chain[len(chain)-1].value()
	return t.data[v.Start:v.End], true
}

// step is a member of an object, by its number; the root is of none.
type step struct {
	of *Value
	i  int
}

func (s step) value() *Value {
	if s.i < 0 {
		return s.of
	}
	return &s.of.Members[s.i].Value
}

// find goes along a path as far as it is there: what it went through, the root first,
// and what is left of the path.
func (t *Text) find(path []string) (chain []step, left []string) {
	chain = []step{{&t.root, -1}}
	for len(path) > 0 {
		v := chain[len(chain)-1].value()
		at := -1
		for i, m := range v.Members {
			if t.same(m.Key, path[0]) {
				at = i // the last counts, as in encoding/json
			}
		}
		if at < 0 {
			break
		}
		chain, path = append(chain, step{v, at}), path[1:]
	}
	return chain, path
}

// Set returns the text with a value at a path, of one key at least: in the place of what
// stands there, or behind the last member of the object that it belongs into. value is
// JSON; the path is spelt as its keys are to be written where they are new.
func (t *Text) Set(value []byte, path ...string) ([]byte, error) {
	if !json.Valid(value) {
		return nil, errors.New("the new value is no JSON")
	}
	if !utf8.ValidString(strings.Join(path, ".")) {
		return nil, errors.New("a key is no text")
	}
	if t.empty {
		return t.begin(value, path), nil
	}
	chain, left := t.find(path)
	last := chain[len(chain)-1]
	v := last.value()
	if len(left) == 0 {
		indent := lineIndent(t.data, last.of.Members[last.i].Start)
		return splice(t.data, edit{v.Start, v.End, pretty(value, indent, t.unit())}), nil
	}
	if v.Kind != '{' {
		return nil, fmt.Errorf("%s is no object", strings.Join(path[:len(path)-len(left)], "."))
	}
	return t.insert(v, left, value), nil
}

// begin makes an object of a text that has none.
func (t *Text) begin(value []byte, path []string) []byte {
	out := bytes.Clone(t.data)
	if n := len(out); n > 0 && out[n-1] != '\n' && len(trim(out)) > 0 && string(out) != "\ufeff" {
		out = append(out, '\n')
	}
	if len(trim(out)) == 0 {
		out = nil
	}
	return append(append(out, pretty(nest(value, path), "", "  ")...), '\n')
}

// insert puts a new member behind the last one of an object.
func (t *Text) insert(obj *Value, path []string, value []byte) []byte {
	return t.put(obj, func(indent string) string {
		return quote(path[0]) + ": " + pretty(nest(value, path[1:]), indent, t.unit())
	})
}

// Add returns the text with a value behind the last one of the list at a path, which is
// made where it is not there. value is JSON.
func (t *Text) Add(value []byte, path ...string) ([]byte, error) {
	chain, left := t.find(path)
	v := chain[len(chain)-1].value()
	switch {
	case t.empty || len(left) > 0:
		return t.Set(append(append([]byte("["), value...), ']'), path...)
	case v.Kind != '[':
		return nil, fmt.Errorf("%s is no list", strings.Join(path, "."))
	case !json.Valid(value):
		return nil, errors.New("the new value is no JSON")
	case len(v.Items) == 0 && len(trim(t.data[v.Start+1:v.End-1])) == 0:
		return splice(t.data, edit{v.Start + 1, v.End - 1, string(trim(value))}), nil
	}
	return t.put(v, func(indent string) string { return pretty(value, indent, t.unit()) }), nil
}

// span is what an entry of an object or a list takes.
type span struct{ start, end int }

func (v *Value) spans() (list []span) {
	for _, m := range v.Members {
		list = append(list, span{m.Start, m.Value.End})
	}
	for _, item := range v.Items {
		list = append(list, span{item.Start, item.End})
	}
	return list
}

// put writes a new entry behind the last one of an object or a list: into a line of its
// own where the first one has one.
func (t *Text) put(in *Value, entry func(indent string) string) []byte {
	nl, all := t.newline(), in.spans()
	if len(all) == 0 {
		outer := lineIndent(t.data, in.Start)
		inner := outer + t.unit()
		text := nl + inner + entry(inner)
		if len(trim(t.data[in.Start+1:in.End-1])) == 0 {
			return splice(t.data, edit{in.Start + 1, in.End - 1, text + nl + outer})
		}
		return splice(t.data, edit{in.Start + 1, in.Start + 1, text})
	}
	end, first := all[len(all)-1].end, all[0].start
	comma, trailing := t.comma(end)
	indent := lineIndent(t.data, first)
	if !bytes.Contains(t.data[in.Start:first], []byte("\n")) { // all in one line
		if trailing {
			return splice(t.data, edit{comma + 1, comma + 1, " " + entry(indent) + ","})
		}
		return splice(t.data, edit{end, end, ", " + entry(indent)})
	}
	if trailing {
		at := t.restOfLine(comma + 1)
		return splice(t.data, edit{at, at, nl + indent + entry(indent) + ","})
	}
	at := t.restOfLine(end)
	return splice(t.data, edit{end, end, ","}, edit{at, at, nl + indent + entry(indent)})
}

// Unset returns the text without the member at a path, with the comment behind it in its
// line. Objects that become empty stay.
func (t *Text) Unset(path ...string) ([]byte, error) {
	chain, left := t.find(path)
	if t.empty || len(left) > 0 || len(path) == 0 {
		return nil, ErrNotThere
	}
	last := chain[len(chain)-1]
	return t.cut(last.of, last.i), nil
}

// Remove returns the text without the entries of the list at a path that gone says.
func (t *Text) Remove(gone func(value []byte) bool, path ...string) ([]byte, error) {
	chain, left := t.find(path)
	v := chain[len(chain)-1].value()
	if t.empty || len(left) > 0 || v.Kind != '[' {
		return nil, ErrNotThere
	}
	for i, item := range v.Items {
		if !gone(t.data[item.Start:item.End]) {
			continue
		}
		out := t.cut(v, i)
		next, err := Read(out, t.same)
		if err != nil {
			return nil, err
		}
		if more, err := next.Remove(gone, path...); err == nil {
			return more, nil
		}
		return out, nil
	}
	return nil, ErrNotThere
}

// cut takes an entry out of an object or a list.
func (t *Text) cut(in *Value, i int) []byte {
	all := in.spans()
	start, end := all[i].start, all[i].end
	comma, has := t.comma(end)
	var edits []edit
	if has {
		end = comma + 1
	} else if i > 0 { // the one before is the last now
		if c, ok := t.comma(all[i-1].end); ok {
			edits = append(edits, edit{c, c + 1, ""})
		}
	}
	line := start - len(lineBefore(t.data, start))
	rest := t.restOfLine(end)
	switch alone := line > 0 && len(trim(t.data[line:start])) == 0; {
	case alone && rest < len(t.data) && (t.data[rest] == '\n' || t.data[rest] == '\r'):
		start, end = line, rest+1
		if t.data[rest] == '\r' && rest+1 < len(t.data) && t.data[rest+1] == '\n' {
			end++
		}
	case has:
		for end < len(t.data) && (t.data[end] == ' ' || t.data[end] == '\t') {
			end++
		}
		if end < len(t.data) && t.data[end] != '\n' && t.data[end] != '\r' {
			break
		}
		fallthrough
	default:
		for start > 0 && (t.data[start-1] == ' ' || t.data[start-1] == '\t') {
			start--
		}
	}
	if len(edits) > 0 && start <= edits[0].from {
		start = edits[0].to
	}
	return splice(t.data, append(edits, edit{start, end, ""})...)
}

// comma looks for the comma behind a value.
func (t *Text) comma(at int) (int, bool) {
	for at < len(t.data) {
		switch c := t.data[at]; {
		case blank(c):
			at++
		case c == '/':
			at, _ = comment(t.data, at)
		default:
			return at, c == ','
		}
	}
	return at, false
}

// restOfLine returns where the line ends, and with it the comments that belong to what
// ends at a byte; or where something else begins.
func (t *Text) restOfLine(at int) int {
	for i := at; i < len(t.data); {
		switch c := t.data[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == '/':
			end, _ := comment(t.data, i)
			if t.data[end-1] == '\r' {
				end--
			}
			i, at = end, end
		case c == '\n' || c == '\r':
			return i
		default:
			return at
		}
	}
	return at
}

func (t *Text) newline() string {
	if bytes.Contains(t.data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// unit is what one step to the right is written with: as the first member stands.
func (t *Text) unit() string {
	if len(t.root.Members) > 0 {
		if s := lineIndent(t.data, t.root.Members[0].Start); s != "" {
			return s
		}
	}
	return "  "
}

// lineBefore returns what stands in the line of a byte before it.
func lineBefore(data []byte, at int) []byte {
	return data[bytes.LastIndexByte(data[:at], '\n')+1 : at]
}

// lineIndent returns the blanks that the line of a byte begins with.
func lineIndent(data []byte, at int) string {
	line := lineBefore(data, at)
	n := 0
	for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	return string(line[:n])
}

// nest puts a value into objects, the first key outermost.
func nest(value []byte, path []string) []byte {
	for i := len(path) - 1; i >= 0; i-- {
		value = []byte("{" + quote(path[i]) + ":" + string(value) + "}")
	}
	return value
}

// pretty writes a value as people do: short lists in one line, the rest with a line for
// each entry.
func pretty(value []byte, indent, unit string) string {
	var b bytes.Buffer
	v := trim(value)
	if v[0] == '[' && len(v) <= 60 && !bytes.ContainsAny(v, "{\n") || v[0] != '[' && v[0] != '{' {
		return string(v)
	}
	if json.Indent(&b, v, indent, unit) != nil {
		return string(v)
	}
	return b.String()
}

// trim cuts off what JSON takes for blanks, and no more.
func trim(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string
	return strings.TrimSuffix(b.String(), "\n")
}

// edit puts a text in the place of the bytes from one to another.
type edit struct {
	from, to int
	text     string
}

// splice makes edits, which come in the order of their places.
func splice(data []byte, edits ...edit) []byte {
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, data[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, data[at:]...)
}
