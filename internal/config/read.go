package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"dure/agent"
)

// The bounds of a settings file. Anybody can put one into a repository.
const (
	maxFile    = 1 << 20 // bytes
	maxUnknown = 20      // keys that mean nothing and are told one by one
	maxNesting = 4       // objects in each other whose keys are looked at, as deep as known goes
)

// known lists the keys of a settings file. A star stands for any name.
var known = []string{
	"$schema", "model", "baseUrl", "permissionMode", "maxSteps", "dialect", "durability", "language", "scrubEnv",
	"permissions", "permissions.defaultMode", "permissions.allow", "permissions.deny", "permissions.ask",
	"permissions.additionalDirectories",
	"providers", "providers.*", "providers.*.type", "providers.*.baseUrl", "providers.*.keyEnv",
	"providers.*.headers", "providers.*.headers.*",
	"models", "limits", "limits.retries", "limits.idle", "limits.ping",
}

// layer is one source while it is read.
type layer struct {
	kind Layer
	path string // "" when it is no file
	data []byte
	at   map[string]int64 // where each key begins, see keys
}

// read decodes a settings file and says which of its keys mean nothing.
func (ly *layer) read(data []byte) (s Settings, unknown []string, err error) {
	if len(data) > maxFile {
		return s, nil, ly.problem(0, fmt.Sprintf("it is larger than %d bytes", maxFile), "Settings are small: is this the right file?")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	ly.data = data
	if len(bytes.TrimSpace(data)) == 0 {
		return s, nil, nil
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return Settings{}, nil, ly.decodeProblem(err)
	}
	ly.at = keys(data)
	var odd []string
	for path := range ly.at {
		if !isKnown(path) {
			odd = append(odd, path)
		}
	}
	slices.SortFunc(odd, func(a, b string) int { return cmp.Compare(ly.at[a], ly.at[b]) })
	for _, path := range odd[:min(len(odd), maxUnknown)] {
		unknown = append(unknown, ly.unknown(path, ly.at[path]))
	}
	slices.Sort(unknown)
	if more := len(odd) - maxUnknown; more > 0 {
		unknown = append(unknown, fmt.Sprintf("%s: %d more keys mean nothing here", ly.place(0), more))
	}
	return s, unknown, nil
}

func (ly *layer) unknown(path string, at int64) string {
	msg := fmt.Sprintf("%s: the key %s means nothing here", ly.place(at), path)
	if near := nearest(path); near != "" {
		msg += "; did you mean " + near + "?"
	}
	return msg
}

// keys returns where every key of every object in data begins, by path: the
// number of bytes up to and including its first. The inside of lists is not
// looked at, nor what lies deeper than maxNesting: each level reads what is in
// it once more.
func keys(data []byte) map[string]int64 {
	at := map[string]int64{}
	var walk func(d *json.Decoder, base int64, prefix string, depth int)
	walk = func(d *json.Decoder, base int64, prefix string, depth int) {
		if t, err := d.Token(); err != nil || t != json.Delim('{') {
			return
		}
		for d.More() {
			t, err := d.Token()
			key, ok := t.(string)
			if err != nil || !ok {
				return
			}
			end := base + d.InputOffset()
			at[prefix+key] = end - int64(len(key)) - 1
			var value json.RawMessage
			if d.Decode(&value) != nil {
				return
			}
			if v := bytes.TrimSpace(value); len(v) > 0 && v[0] == '{' && depth < maxNesting {
				start := base + d.InputOffset() - int64(len(value))
				walk(json.NewDecoder(bytes.NewReader(value)), start, prefix+key+".", depth+1)
			}
		}
	}
	walk(json.NewDecoder(bytes.NewReader(data)), 0, "", 1)
	return at
}

// isKnown compares as encoding/json does: letters of either case are the same.
func isKnown(path string) bool {
	parts := strings.Split(path, ".")
	return slices.ContainsFunc(known, func(k string) bool {
		want := strings.Split(k, ".")
		if len(want) != len(parts) {
			return false
		}
		for i, w := range want {
			if w != "*" && !strings.EqualFold(w, parts[i]) {
				return false
			}
		}
		return true
	})
}

// nearest returns the known key that a person may have meant: the same letters
// in another case or with other separators, or the same last part.
func nearest(path string) string {
	fold := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	for _, k := range known {
		if fold(k) == fold(path) || fold(k[strings.LastIndexByte(k, '.')+1:]) == fold(last) {
			return k
		}
	}
	return ""
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
		return ly.problem(se.Offset, "this is no valid JSON: "+se.Error(), "Mend it there: comments and commas behind the last entry are not allowed.")
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
	if at <= 0 || ly.data == nil {
		return name
	}
	before := ly.data[:min(at, int64(len(ly.data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("%s:%d:%d", name, line, max(column, 1))
}
