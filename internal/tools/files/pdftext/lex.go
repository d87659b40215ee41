package pdftext

import (
	"bytes"
	"strconv"
)

// The objects of PDF (ISO 32000-1, 7.3). Numbers are float64, null is nil.
type (
	name   string
	text   string // a string object: bytes
	ref    int    // number of another object
	array  []any
	dict   map[name]any
	stream struct {
		dict dict
		raw  []byte
	}
	keyword string // obj, R, and operators
)

const (
	maxDepth  = 64      // objects inside each other
	maxString = 1 << 20 // bytes of a string
	maxItems  = 1 << 18 // of an array or a dictionary
)

// lexer reads objects from data. At its end it gives keyword("").
type lexer struct {
	data []byte
	at   int
}

const end = keyword("")

func space(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func delimiter(c byte) bool { return bytes.IndexByte([]byte("()<>[]{}/%"), c) >= 0 }

// skip passes over space and comments.
func (l *lexer) skip() {
	for l.at < len(l.data) {
		switch c := l.data[l.at]; {
		case space(c):
			l.at++
		case c == '%':
			if i := bytes.IndexAny(l.data[l.at:], "\r\n"); i >= 0 {
				l.at += i
			} else {
				l.at = len(l.data)
			}
		default:
			return
		}
	}
}

// object reads an object or an operator. What is damaged becomes something
// harmless, and reading always moves on.
func (l *lexer) object(depth int) any {
	l.skip()
	if l.at >= len(l.data) || depth > maxDepth {
		l.at = len(l.data)
		return end
	}
	switch c := l.data[l.at]; {
	case c == '/':
		l.at++
		return l.name()
	case c == '(':
		return l.literal()
	case c == '<' && l.at+1 < len(l.data) && l.data[l.at+1] == '<':
		l.at += 2
		return l.dict(depth)
	case c == '<':
		return l.hex()
	case c == '[':
		l.at++
		return l.array(depth)
	case delimiter(c):
		l.at++
		if c == '>' && l.at < len(l.data) && l.data[l.at] == '>' {
			l.at++
			return keyword(">>")
		}
		return keyword(c)
	}
	word := l.word()
	if n, err := strconv.ParseFloat(string(word), 64); err == nil && number(word) {
		return l.reference(n)
	}
	switch w := string(word); w {
	case "true", "false":
		return w == "true"
	case "null":
		return nil
	default:
		return keyword(w)
	}
}

// number reports whether a word has the form of a number: none of the others
// that Go knows.
func number(word []byte) bool {
	for _, c := range word {
		if (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

func (l *lexer) word() []byte {
	from := l.at
	for l.at < len(l.data) && !space(l.data[l.at]) && !delimiter(l.data[l.at]) {
		l.at++
	}
	return l.data[from:l.at]
}

// reference turns the beginning of "12 0 R" into a reference.
func (l *lexer) reference(n float64) any {
	if n < 1 || n > maxObjects || n != float64(int(n)) {
		return n
	}
	back := l.at
	l.skip()
	if gen := l.word(); len(gen) > 0 && len(gen) < 6 && number(gen) {
		l.skip()
		if string(l.word()) == "R" {
			return ref(n)
		}
	}
	l.at = back
	return n
}

func (l *lexer) name() name {
	word := l.word()
	if bytes.IndexByte(word, '#') < 0 {
		return name(word)
	}
	var out []byte
	for i := 0; i < len(word); i++ {
		if word[i] == '#' && i+2 < len(word) {
			if v, err := strconv.ParseUint(string(word[i+1:i+3]), 16, 8); err == nil {
				out = append(out, byte(v))
				i += 2
				continue
			}
		}
		out = append(out, word[i])
	}
	return name(out)
}

func (l *lexer) literal() text {
	var out []byte
	open := 0
	for ; l.at < len(l.data) && len(out) < maxString; l.at++ {
		c := l.data[l.at]
		switch c {
		case '(':
			if open++; open == 1 {
				continue
			}
		case ')':
			if open--; open == 0 {
				l.at++
				return text(out)
			}
		case '\\':
			out = l.escape(out)
			continue
		}
		out = append(out, c)
	}
	return text(out)
}

// escape reads what follows a backslash, and stays on its last byte.
func (l *lexer) escape(out []byte) []byte {
	l.at++
	if l.at >= len(l.data) {
		return out
	}
	switch c := l.data[l.at]; c {
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'b', 'f':
		return append(out, ' ')
	case '\n':
		return out
	case '\r':
		if l.at+1 < len(l.data) && l.data[l.at+1] == '\n' {
			l.at++
		}
		return out
	case '0', '1', '2', '3', '4', '5', '6', '7':
		v := 0
		for n := 0; n < 3 && l.at < len(l.data) && l.data[l.at] >= '0' && l.data[l.at] <= '7'; n++ {
			v = v*8 + int(l.data[l.at]-'0')
			l.at++
		}
		l.at--
		return append(out, byte(v))
	default:
		return append(out, c)
	}
}

func (l *lexer) hex() text {
	l.at++
	var out []byte
	high, half := byte(0), false
	for ; l.at < len(l.data) && len(out) < maxString; l.at++ {
		c := l.data[l.at]
		if c == '>' {
			l.at++
			break
		}
		v, err := strconv.ParseUint(string(c), 16, 8)
		if err != nil {
			continue
		}
		if half {
			out = append(out, high<<4|byte(v))
		}
		high, half = byte(v), !half
	}
	if half {
		out = append(out, high<<4)
	}
	return text(out)
}

func (l *lexer) array(depth int) array {
	a := array{}
	for len(a) < maxItems {
		v := l.object(depth + 1)
		if v == keyword("]") || v == end {
			return a
		}
		if _, ok := v.(keyword); !ok {
			a = append(a, v)
		}
	}
	return a
}

func (l *lexer) dict(depth int) dict {
	d := dict{}
	for len(d) < maxItems {
		k := l.object(depth + 1)
		if k == keyword(">>") || k == end || k == keyword("endobj") {
			return d
		}
		key, ok := k.(name)
		if !ok {
			continue
		}
		v := l.object(depth + 1)
		if v == keyword(">>") || v == end {
			return d
		}
		d[key] = v
	}
	return d
}
