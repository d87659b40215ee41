package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A node is a value of a request and its place there. A node that is missing
// has no value; its methods complain or return nothing, as they say.
type node struct {
	says *complaint
	path string
	v    any
	has  bool // it is there, and not null
	null bool
}

// A complaint is the first thing that is wrong with a request.
type complaint struct {
	err   error
	marks int // cache marks so far
}

// parse reads a request body, which must be one JSON object.
func parse(body []byte) (node, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		return node{}, invalid("the request body is no valid JSON: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return node{}, invalid("the request body is no valid JSON: something follows it")
	}
	return node{says: &complaint{}, v: v, has: true}, nil
}

// refuse complains about n, unless something else was wrong before.
func (n node) refuse(format string, args ...any) {
	if n.says.err != nil {
		return
	}
	message := fmt.Sprintf(format, args...)
	if n.path != "" {
		message = "Invalid '" + n.path + "': " + message
	}
	n.says.err = &failure{status: 400, param: n.path, message: message}
}

func (n node) err() error { return n.says.err }

// get returns a member of an object.
func (n node) get(key string) node {
	path := key
	if n.path != "" {
		path = n.path + "." + key
	}
	m, _ := n.v.(map[string]any)
	v, ok := m[key]
	return node{says: n.says, path: path, v: v, has: v != nil, null: ok && v == nil}
}

// keys returns the names of the members in order.
func (n node) keys() []string {
	m, _ := n.v.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

// only complains about something that is no object, and about members with
// other names than these.
func (n node) only(names ...string) bool {
	if !n.object() {
		return false
	}
	for _, key := range n.keys() {
		if !slices.Contains(names, key) {
			n.get(key).refuse("unknown parameter")
			return false
		}
	}
	return true
}

// object complains about something that is no object.
func (n node) object() bool {
	_, ok := n.v.(map[string]any)
	if !ok {
		n.refuse("expected an object, but got %s", n.kind())
	}
	return ok
}

// list returns the members of a list, and complains about anything else but
// nothing at all.
func (n node) list() []node {
	if !n.has && !n.null {
		return nil
	}
	l, ok := n.v.([]any)
	if !ok {
		n.refuse("expected a list, but got %s", n.kind())
		return nil
	}
	nodes := make([]node, len(l))
	for i, v := range l {
		nodes[i] = node{says: n.says, path: n.path + "[" + strconv.Itoa(i) + "]", v: v, has: v != nil, null: v == nil}
	}
	return nodes
}

// filled returns the members of a list that must not be empty.
func (n node) filled() []node {
	l := n.list()
	if len(l) == 0 {
		n.refuse("expected a list that is not empty, but got %s", n.kind())
	}
	return l
}

// isString reports whether n is a string.
func (n node) isString() bool { _, ok := n.v.(string); return ok }

// str returns a string, and complains about anything else but nothing at all.
func (n node) str() string {
	if !n.has && !n.null {
		return ""
	}
	s, ok := n.v.(string)
	if !ok {
		n.refuse("expected a string, but got %s", n.kind())
	}
	return s
}

// text returns a string that must say something: it is there and not blank.
func (n node) text() string {
	if !n.has {
		n.refuse("expected a string, but got %s", n.kind())
		return ""
	}
	s := n.str()
	if strings.TrimSpace(s) == "" {
		n.refuse("empty string")
	}
	return s
}

// id returns a string of 1 to most bytes.
func (n node) id(most int) string {
	s := n.text()
	if len(s) > most {
		n.refuse("string too long. Expected a string with maximum length %d, but got a string with length %d instead", most, len(s))
	}
	return s
}

// oneOf complains about a value that is there and none of these.
func (n node) oneOf(values ...string) string {
	s := n.str()
	if (n.has || n.null) && !slices.Contains(values, s) {
		n.refuse("unknown value %q; known are %s", s, strings.Join(values, ", "))
	}
	return s
}

// flag complains about a value that is there and no truth value.
func (n node) flag() bool {
	b, ok := n.v.(bool)
	if !ok && (n.has || n.null) {
		n.refuse("expected true or false, but got %s", n.kind())
	}
	return b
}

// whole complains about a value that is there and no whole number of at least
// least.
func (n node) whole(least int64) {
	if !n.has && !n.null {
		return
	}
	number, _ := n.v.(json.Number)
	i, err := number.Int64()
	switch {
	case err != nil:
		n.refuse("expected a whole number, but got %s", n.kind())
	case i < least:
		n.refuse("integer below minimum value. Expected a value >= %d, but got %d instead", least, i)
	}
}

// within complains about a value that is there and no number from low to high.
func (n node) within(low, high float64) {
	if !n.has && !n.null {
		return
	}
	number, _ := n.v.(json.Number)
	if f, err := number.Float64(); err != nil || f < low || f > high {
		n.refuse("expected a number from %g to %g", low, high)
	}
}

// kind names what n is, for complaints.
func (n node) kind() string {
	switch v := n.v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		if len(v) == 0 {
			return "an empty list"
		}
		return "a list"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "a truth value"
	}
	if n.null {
		return "null"
	}
	return "nothing"
}

// exclusive complains when more than one of the members is there.
func (n node) exclusive(names ...string) (name string) {
	for _, key := range names {
		if !n.get(key).has {
			continue
		}
		if name != "" {
			n.get(key).refuse("cannot be set together with %s", name)
		}
		name = key
	}
	return name
}
