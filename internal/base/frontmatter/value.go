package frontmatter

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Plain is the form in which keys are compared: allowed-tools, allowed_tools and
// allowedTools are one.
func Plain(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, key)
}

// same reports whether two keys are one, as [Plain] has it, without writing either anew.
func same(a, b string) bool {
	for {
		a, b = strings.TrimLeft(a, "-_ "), strings.TrimLeft(b, "-_ ")
		switch {
		case a == "" || b == "":
			return a == b
		case a[0] >= utf8.RuneSelf || b[0] >= utf8.RuneSelf:
			return Plain(a) == Plain(b)
		case lower(a[0]) != lower(b[0]):
			return false
		}
		a, b = a[1:], b[1:]
	}
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// Get returns the first field that has one of the names, in any spelling.
func (d Doc) Get(names ...string) (Field, bool) {
	for _, name := range names {
		for _, f := range d.Fields {
			if same(f.Key, name) {
				return f, true
			}
		}
	}
	return Field{}, false
}

// Fault returns a fault at the value of a field.
func (f Field) Fault(fix, format string, args ...any) *Fault {
	return &Fault{Line: f.Value.Line, Column: f.Value.Column, Key: f.Key, Message: f.Key + " " + fmt.Sprintf(format, args...), Fix: fix}
}

// Empty reports whether nothing stands behind the key.
func (f Field) Empty() bool { return f.Value.Kind == yaml.ScalarNode && f.Value.Tag == "!!null" }

// Text is a value that is one text; a number or a truth value is its spelling.
func (f Field) Text() (string, error) {
	if f.Empty() {
		return "", nil
	}
	if f.Value.Kind != yaml.ScalarNode {
		return "", f.Fault("write it as: "+f.Key+": text", "has to be a text, and is a %s", kind(f.Value))
	}
	return f.Value.Value, nil
}

// Bool is a value that is true or false, in any of the spellings that YAML ever had.
func (f Field) Bool() (bool, error) {
	if f.Value.Kind == yaml.ScalarNode {
		switch strings.ToLower(f.Value.Value) {
		case "true", "yes", "on", "1", "y":
			return true, nil
		case "false", "no", "off", "0", "n":
			return false, nil
		}
	}
	return false, f.Fault("write true or false", "has to be true or false")
}

// Int is a value that is a whole number.
func (f Field) Int() (int, error) {
	if f.Value.Kind == yaml.ScalarNode {
		if n, err := strconv.Atoi(f.Value.Value); err == nil {
			return n, nil
		}
	}
	return 0, f.Fault("write it in digits", "has to be a whole number")
}

// List is a value that is a list of texts. One text is taken apart by split, which may
// be nil: then it is the only one.
func (f Field) List(split func(string) []string) ([]string, error) {
	if f.Empty() {
		return nil, nil
	}
	switch f.Value.Kind {
	case yaml.ScalarNode:
		if split == nil {
			return []string{f.Value.Value}, nil
		}
		return split(f.Value.Value), nil
	case yaml.SequenceNode:
		var all []string
		for _, c := range f.Value.Content {
			if c.Kind != yaml.ScalarNode {
				return nil, Field{Key: f.Key, Value: c}.Fault("write each as one text", "has to be a list of texts, and has a %s in it", kind(c))
			}
			all = append(all, c.Value)
		}
		return all, nil
	}
	return nil, f.Fault("write it as a list", "has to be a list of texts, and is a %s", kind(f.Value))
}

// Map is a value that is a map of texts.
func (f Field) Map() (map[string]string, error) {
	if f.Empty() {
		return nil, nil
	}
	if f.Value.Kind != yaml.MappingNode {
		return nil, f.Fault("write its fields below it, indented", "has to have fields, and is a %s", kind(f.Value))
	}
	all := map[string]string{}
	for i := 0; i+1 < len(f.Value.Content); i += 2 {
		k, v := f.Value.Content[i], f.Value.Content[i+1]
		if k.Kind != yaml.ScalarNode || v.Kind != yaml.ScalarNode {
			return nil, Field{Key: f.Key, Value: v}.Fault("write each as: name: text", "has to have texts as its fields")
		}
		all[k.Value] = v.Value
	}
	return all, nil
}

// JSON is a value of any form.
func (f Field) JSON() (json.RawMessage, error) {
	var v any
	if err := f.Value.Decode(&v); err != nil {
		return nil, f.Fault("write it as YAML has it", "cannot be read: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	data, err := json.Marshal(v)
	if err != nil { // names of fields that are no texts
		return nil, f.Fault("use texts as names of fields", "cannot be read: %s", err.Error())
	}
	return data, nil
}

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "list"
	case yaml.MappingNode:
		return "group of fields"
	}
	return "text"
}

// Words splits a text at white space and commas; what stands in brackets stays together,
// as in Bash(git add *).
func Words(s string) []string {
	var all []string
	depth, from := 0, -1
	for i, r := range s {
		switch {
		case depth == 0 && (r == ',' || unicode.IsSpace(r)):
			if from >= 0 {
				all, from = append(all, s[from:i]), -1
			}
			continue
		case r == '(':
			depth++
		case r == ')' && depth > 0:
			depth--
		}
		if from < 0 {
			from = i
		}
	}
	if from >= 0 {
		all = append(all, s[from:])
	}
	return all
}
