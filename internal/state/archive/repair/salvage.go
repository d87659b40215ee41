package repair

import (
	"bytes"
	"encoding/json"
)

// maxTries is how many places of a broken line are tried in vain as the beginning
// of a record.
const maxTries = 64

// salvage returns the records that are whole in a broken line: a record was cut
// and the next one written behind it, or the newline between two was lost.
//
// An object counts only where it cannot be a part of the broken record: what is
// nested stands behind a colon, a comma or a bracket, and in front of a comma or
// a closing bracket. So data never becomes a record.
func salvage(line []byte) [][]byte {
	if found := sequence(line); found != nil {
		return found
	}
	var found [][]byte
	budget := 4 * len(line)
	for i, tries := 0, 0; tries < maxTries && budget > 0; {
		at := bytes.Index(line[i:], []byte(`{"`))
		if at < 0 {
			break
		}
		i += at
		if before := last(line[:i]); before == ':' || before == ',' || before == '[' {
			i++
			continue
		}
		end := objectEnd(line[i:])
		raw := line[i : i+end]
		if end < len(`{"":0}`) || nestedBefore(line[i+end:]) || !isRecord(raw) {
			i++
			tries++
			budget -= end
			continue
		}
		found = append(found, bytes.Clone(raw))
		i += end
	}
	return found
}

// sequence returns the objects of a line that is nothing but objects, one behind
// the other; nil for any other line.
func sequence(line []byte) (found [][]byte) {
	rest := bytes.TrimLeft(line, blank)
	for len(rest) > 0 {
		end := objectEnd(rest)
		if _, _, ok := survey(rest[:end]); !ok {
			return nil
		}
		found = append(found, bytes.Clone(rest[:end]))
		rest = bytes.TrimLeft(rest[end:], blank)
	}
	return found
}

const blank = " \t\r\x00"

// last returns the last byte that is not blank, or 0.
func last(b []byte) byte {
	b = bytes.TrimRight(b, blank)
	if len(b) == 0 {
		return 0
	}
	return b[len(b)-1]
}

// nestedBefore reports whether rest can be the rest of something that holds what
// stands in front of it.
func nestedBefore(rest []byte) bool {
	rest = bytes.TrimLeft(rest, blank)
	return len(rest) > 0 && bytes.IndexByte([]byte(`,:]}"`), rest[0]) >= 0
}

// isRecord reports whether raw is a message or an event.
func isRecord(raw []byte) bool {
	if _, _, ok := survey(raw); !ok {
		return false
	}
	if isEvent(raw) {
		return true
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return false
	}
	return o["role"] != nil || o["type"] != nil && (o["message"] != nil || o["payload"] != nil)
}

// objectEnd returns how many bytes the object at the beginning of b has, to its
// closing brace or to the end of b.
func objectEnd(b []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch ch := b[i]; {
		case quoted && ch == '\\':
			i++
		case ch == '"':
			quoted = !quoted
		case quoted:
		case ch == '{' || ch == '[':
			depth++
		case ch == '}' || ch == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

// survey reports whether b is a JSON object, how deep it is nested, and a key
// that stands twice in one object of it.
func survey(b []byte) (depth int, twice string, ok bool) {
	if len(b) == 0 || b[0] != '{' {
		return 0, "", false
	}
	if depth = nesting(b); depth > maxDepth {
		return depth, "", objectEnd(b) == len(b)
	}
	if !json.Valid(b) {
		return depth, "", false
	}
	var open []map[string]bool // the keys of each object; nil = a list
	key := false
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{':
			open, key = append(open, map[string]bool{}), true
		case '[':
			open, key = append(open, nil), false
		case '}', ']':
			open = open[:len(open)-1]
		case ',':
			key = open[len(open)-1] != nil
		case ':':
			key = false
		case '"':
			end := stringEnd(b[i:])
			if key {
				keys, name := open[len(open)-1], plain(b[i:i+end])
				if keys[name] && twice == "" {
					twice = name
				}
				keys[name] = true
			}
			i += end - 1
		}
	}
	return depth, twice, true
}

// nesting counts brackets outside strings.
func nesting(b []byte) (deepest int) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// stringEnd returns how many bytes the string at the beginning of b has.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// plain returns the value of a JSON string.
func plain(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it has been checked
	return s
}
