package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/base/jsonc"
)

// The bounds of a settings file. Anybody can put one into a repository.
const (
	maxFile    = 1 << 20 // bytes
	maxUnknown = 20      // keys that mean nothing and are told one by one
	maxItems   = 20_000  // entries of a list
)

// layer is one source while it is read.
type layer struct {
	kind Layer
	path string // "" when it is no file
	data []byte
	positions
	lines   *lines
	compat  bool     // it is a file of a .claude folder
	outside bool     // it is in a folder above the project's, which the user's trust is not about
	said    *written // as we spell it; nil = it says nothing
	root    jsonc.Value
}

// positions are where things begin in a file: the number of bytes up to and
// including their first.
type positions struct {
	at    map[string]int64   // keys, by path
	items map[string][]int64 // entries of the lists that are values of keys
}

// where returns where a key begins; 0 = it is not there.
func (p positions) where(key string) int64 { return p.at[key] }

// item returns where an entry of a list begins, or the list where that is not
// known.
func (p positions) item(key string, i int) int64 {
	if items := p.items[key]; i < len(items) {
		return items[i]
	}
	return p.where(key)
}

// read decodes a settings file and says which of its keys mean nothing.
func (ly *layer) read(data []byte) (unknown []string, err error) {
	if len(data) > maxFile {
		return nil, ly.problem(0, fmt.Sprintf("it is larger than %d bytes", maxFile), "Settings are small: is this the right file?")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	ly.data, ly.lines = data, starts(data)
	plain, err := jsonc.Plain(data)
	if err != nil {
		return nil, ly.decodeProblem(err)
	}
	if len(bytes.TrimSpace(plain)) == 0 {
		return nil, nil
	}
	root, err := jsonc.Parse(plain)
	if err == nil && root.Kind != '{' {
		err = json.Unmarshal(plain, &struct{}{})
	}
	if err != nil {
		return nil, ly.decodeProblem(err)
	}
	f := spell(plain, root)
	ly.positions = f.positions
	if key := f.twice; key != "" { // encoding/json would let the last one count: a denial in the first is lost
		return nil, ly.problem(ly.where(key), fmt.Sprintf("the key %s stands there twice", key), "")
	}
	if key := f.shape; key != "" { // what is in it is for others to read
		return nil, ly.problem(ly.where(key), key+" has to be an object", "")
	}
	for _, key := range slices.Sorted(maps.Keys(ly.items)) {
		if len(ly.items[key]) > maxItems {
			return nil, ly.problem(ly.where(key), fmt.Sprintf("%s has more than %d entries", key, maxItems), "")
		}
	}
	ly.said, ly.root = &f.root, root
	for _, o := range f.odd[:min(len(f.odd), maxUnknown)] {
		unknown = append(unknown, ly.unknown(o.path, o.at))
	}
	if more := len(f.odd) - maxUnknown; more > 0 {
		unknown = append(unknown, fmt.Sprintf("%s: %d more keys mean nothing here", ly.place(0), more))
	}
	return unknown, nil
}

// field is the key of a value that ends at an offset, as a file of ours spells it.
// Encoding/json knows it but for the names in objects whose keys are anything.
func field(root jsonc.Value, known string, at int) string {
	var path []string
	for in := root.Members; in != nil; {
		i := slices.IndexFunc(in, func(m jsonc.Member) bool { return m.Value.Start < at && at <= m.Value.End })
		if i < 0 {
			break
		}
		path, in = append(path, in[i].Key), in[i].Value.Members
	}
	if len(path) == 0 {
		return known
	}
	if _, key, _ := Find(strings.Join(path, ".")); key != "" {
		return clip(key, maxText)
	}
	last := len(path) - 1
	if k, key, _ := Find(strings.Join(path[:last], ".")); k.Type == Strings || k.Type == Switches {
		return clip(key+"."+path[last], maxText)
	}
	return known
}

func (ly *layer) unknown(path string, at int64) string {
	msg := fmt.Sprintf("%s: the key %s means nothing here", ly.place(at), path)
	if near := nearestTo(path); near != "" {
		msg += "; did you mean " + near + "?"
	}
	return msg
}

// decodeProblem turns an error of encoding/json into a place and a remedy.
func (ly *layer) decodeProblem(err error) error {
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := "the file"
		if te.Field != "" {
			what = te.Field
		}
		return ly.problem(te.Offset, fmt.Sprintf("%s is %s and has to be %s", what, kindOf(te.Value), wanted(te.Type)), "")
	}
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		return ly.problem(se.Offset, "this is no valid JSON: "+se.Error(), "")
	}
	if oe, ok := errors.AsType[*jsonc.OpenError](err); ok {
		return ly.problem(oe.Offset+1, "a comment is not closed", "")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ly.problem(int64(len(ly.data)), "it ends too early", "")
	}
	return ly.problem(0, err.Error(), "")
}

// kindOf puts an article before the first word of encoding/json's "number -1.5".
func kindOf(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return "a list of strings"
		}
		return "a list"
	case reflect.Pointer:
		return wanted(t.Elem())
	}
	return "an object"
}

// problem reports a fault of the layer at a byte of it; 0 = all of it.
func (ly *layer) problem(at int64, what, fix string) error {
	if fix == "" {
		fix = "Mend it there, or move the file away."
		if ly.path == "" {
			fix = "Mend what " + ly.place(0) + " holds."
		}
	}
	place := ly.place(at)
	return &agent.Problem{
		Code:    agent.ProblemSettings,
		Message: fmt.Sprintf("settings %s: %s", place, what),
		Fix:     fix,
		Args:    map[string]string{"path": place, "error": what},
	}
}

// place names the layer, with line and column when a byte is given.
func (ly *layer) place(at int64) string {
	name := ly.path
	if name == "" {
		name = string(ly.kind)
	}
	line, column := ly.position(at)
	if line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, line, column)
}

// lines are where the lines of a text begin, and what was counted last.
type lines struct {
	starts []int
	last   counted
}

// counted is how many characters stand from the beginning of a line to a byte.
type counted struct{ from, end, runes int }

// starts returns where the lines of a text begin.
func starts(data []byte) *lines {
	at := []int{0}
	for i, b := range data {
		if b == '\n' {
			at = append(at, i+1)
		}
	}
	return &lines{starts: at}
}

// position returns the line and the column of a byte, from 1; 0 = not known.
func (ly *layer) position(at int64) (line, column int) {
	if at <= 0 || ly.data == nil {
		return 0, 0
	}
	end := int(min(at, int64(len(ly.data))))
	line, found := slices.BinarySearch(ly.lines.starts, end)
	if found { // the byte before is the end of a line
		line++
	}
	from, n := ly.lines.starts[line-1], 0
	if last := ly.lines.last; last.from == from && last.end <= end { // all may be in one line
		from, n = last.end, last.runes
	}
	n += utf8.RuneCount(ly.data[from:end])
	ly.lines.last = counted{ly.lines.starts[line-1], end, n}
	return line, max(n, 1)
}
