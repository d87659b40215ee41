// Package jsonc reads JSON with comments and with commas behind the last entry, says
// where each of its values stands, and changes single values of a text without
// touching the rest of it: comments, order, spelling and blanks stay byte for byte.
//
// It reads no files, and means nothing by what it reads: which keys there are is for
// its users to say. It starts no goroutines.
package jsonc

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Plain returns data with blanks in the place of comments and of commas before a
// closing bracket: as long as data, with every line where it was. It says nothing
// about whether the rest is JSON.
func Plain(data []byte) ([]byte, error) {
	out := bytes.Clone(data)
	comma := -1 // of the last comma, when only blanks have come since
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			i = quoted(out, i) - 1
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			end, ok := comment(out, i)
			if !ok {
				return nil, &OpenError{Line: bytes.Count(out[:i], []byte("\n")) + 1, Offset: int64(i)}
			}
			for ; i < end; i++ {
				if out[i] != '\n' && out[i] != '\r' {
					out[i] = ' '
				}
			}
			i--
		case c == ',':
			comma = i
		case (c == ']' || c == '}') && comma >= 0:
			out[comma], comma = ' ', -1
		case !blank(c):
			comma = -1
		}
	}
	return out, nil
}

// OpenError is a comment that is not closed.
type OpenError struct {
	Line   int   // from 1
	Offset int64 // of its first byte
}

func (e *OpenError) Error() string { return fmt.Sprintf("%d: a comment is not closed", e.Line) }

// quoted returns the end of a string that begins at i, or that of data.
func quoted(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(data))
}

// comment returns the end of a comment that begins at i; that of a line is before its
// line feed.
func comment(data []byte, i int) (end int, closed bool) {
	if data[i+1] == '*' {
		n := bytes.Index(data[i+2:], []byte("*/"))
		return i + n + 4, n >= 0
	}
	if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
		return i + n, true
	}
	return len(data), true
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// A Value is a value, and the bytes where it begins and ends.
type Value struct {
	Start, End int
	Kind       byte // as its first byte says: { [ " t f n, and 0 for numbers
	Members    []Member
	Items      []Value
}

// A Member is a key of an object with its value.
type Member struct {
	Key   string
	Start int // of the key's first quote
	Value Value
}

// Parse returns the value in data, which is JSON as [Plain] returns it. Its errors are
// those of encoding/json, with its offsets. Objects and lists are 10,000 deep at most.
func Parse(data []byte) (Value, error) {
	var all json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return Value{}, err
	}
	p := parser{data: data}
	return p.value(), nil
}

// parser walks over JSON that is known to be valid.
type parser struct {
	data []byte
	at   int
}

func (p *parser) skip() {
	for blank(p.data[p.at]) {
		p.at++
	}
}

func (p *parser) value() Value {
	p.skip()
	v := Value{Start: p.at, Kind: p.data[p.at]}
	switch v.Kind {
	case '{':
		for p.at++; ; p.at++ { // past the brace, then past each comma
			if p.skip(); p.data[p.at] == '}' {
				break
			}
			m := Member{Start: p.at}
			p.at = quoted(p.data, p.at)
			_ = json.Unmarshal(p.data[m.Start:p.at], &m.Key) // valid, see Parse
			p.skip()
			p.at++ // the colon
			m.Value = p.value()
			v.Members = append(v.Members, m)
			if p.skip(); p.data[p.at] == '}' {
				break
			}
		}
		p.at++
	case '[':
		for p.at++; ; p.at++ {
			if p.skip(); p.data[p.at] == ']' {
				break
			}
			v.Items = append(v.Items, p.value())
			if p.skip(); p.data[p.at] == ']' {
				break
			}
		}
		p.at++
	case '"':
		p.at = quoted(p.data, p.at)
	default:
		for p.at < len(p.data) && !blank(p.data[p.at]) && p.data[p.at] != ',' && p.data[p.at] != ']' && p.data[p.at] != '}' {
			p.at++
		}
		if v.Kind == '-' || v.Kind >= '0' && v.Kind <= '9' {
			v.Kind = '0'
		}
	}
	v.End = p.at
	return v
}
