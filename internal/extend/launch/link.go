package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"dure/agent/query"
	"dure/internal/base/jsonc"
	"dure/internal/base/record"
)

// entry is one link of the file: an address, or an object that has it.
type entry struct {
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
}

// UnmarshalJSON reads either form.
func (e *entry) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &e.URL)
	}
	type plain entry
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(e))
}

// Links reads the links of a file, by name: a JSON object of names, each with an address,
// or with an object that has url and description. In an address {name} is a parameter.
// Comments are read over. A file that is not there has none.
func Links(path string) ([]query.Link, error) {
	all := []query.Link{}
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := jsonc.Plain([]byte(text))
	if err != nil {
		return nil, err
	}
	file := map[string]entry{}
	if len(bytes.TrimSpace(data)) == 0 {
		return all, nil
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s%w", line(text, err), err)
	}
	for _, name := range slices.Sorted(maps.Keys(file)) {
		l := query.Link{Name: name, URL: file[name].URL, Description: file[name].Description}
		if err := check(&l); err != nil {
			return nil, fmt.Errorf("the link %q: %w", name, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// line says where in a text an error of JSON is, if it tells.
func line(text string, err error) string {
	at := int64(0)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = e.Offset
	} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = e.Offset
	}
	if at <= 0 || at > int64(len(text)) {
		return ""
	}
	before := text[:at-1]
	return fmt.Sprintf("line %d, column %d: ", 1+strings.Count(before, "\n"), len(before)-strings.LastIndexByte(before, '\n'))
}

// SetLink writes a link into the file, in the place of one of its name, and leaves
// everything else in there as it is.
func SetLink(path string, l query.Link) error {
	if err := check(&l); err != nil {
		return err
	}
	value, err := json.Marshal(entry{l.URL, l.Description})
	if err != nil {
		return err
	}
	return change(path, func(t *jsonc.Text) ([]byte, error) { return t.Set(unescape(value), l.Name) })
}

// unescape writes & < and > as they are: an address is read by people.
func unescape(data []byte) []byte {
	for short, long := range map[string]string{"&": `\u0026`, "<": `\u003c`, ">": `\u003e`} {
		data = bytes.ReplaceAll(data, []byte(long), []byte(short))
	}
	return data
}

// RemoveLink takes a link out of the file.
func RemoveLink(path, name string) error {
	return change(path, func(t *jsonc.Text) ([]byte, error) { return t.Unset(name) })
}

// change rewrites the file of links, all of it or nothing.
func change(path string, edit func(*jsonc.Text) ([]byte, error)) error {
	if _, err := Links(path); err != nil {
		return err // nobody knows what it says
	}
	text, err := readFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t, err := jsonc.Read([]byte(text), nil)
	if err != nil {
		return err
	}
	data, err := edit(t)
	if err != nil {
		return err
	}
	return record.Put(path, data, true)
}

// schemes are those that an address may have: none that runs anything.
var schemes = []string{"http", "https", "mailto"}

var parameter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{([^{}]*)\}`) })

// check looks at a link and finds its parameters. They may stand in the path, the query
// and the fragment, so that no value decides what is spoken with.
func check(l *query.Link) error {
	if !named(l.Name) {
		return ErrName
	}
	if len(l.URL) > maxURL {
		return fmt.Errorf("the address has more than %d bytes", maxURL)
	}
	for _, m := range parameter().FindAllStringSubmatch(l.URL, -1) {
		switch {
		case !named(m[1]):
			return fmt.Errorf("%s is no parameter: %w", m[0], ErrName)
		case !slices.Contains(l.Parameters, m[1]):
			l.Parameters = append(l.Parameters, m[1])
		}
	}
	if len(l.Parameters) > maxGaps {
		return fmt.Errorf("it has more than %d parameters", maxGaps)
	}
	filled := parameter().ReplaceAllString(l.URL, "x")
	if strings.ContainsAny(filled, "{}") {
		return errors.New("a brace in the address stands for a parameter alone: write %7B or %7D in its place")
	}
	u, err := url.Parse(filled)
	if err != nil || !slices.Contains(schemes, u.Scheme) {
		return errors.New("only addresses of http, https and mailto are opened")
	}
	if u.Scheme != "mailto" {
		scheme, rest, _ := strings.Cut(l.URL, "://")
		host, _, _ := strings.Cut(rest, "/")
		host, _, _ = strings.Cut(host, "?")
		if u.Host == "" || u.User != nil || strings.ContainsAny(scheme+host, "{}\\") {
			return errors.New("the address has to name its host, without a parameter or a password in it")
		}
	}
	return nil
}

// FillLink puts values into a link: one for each parameter, what is over belongs to the
// last. Each is written so that it stays one part of a path, or one value of a query.
func FillLink(l query.Link, values []string) (string, error) {
	switch {
	case len(values) < len(l.Parameters):
		return "", fmt.Errorf("filling in the link %s: nothing is given for %s", l.Name, strings.Join(l.Parameters[len(values):], ", "))
	case len(l.Parameters) == 0 && len(values) > 0:
		return "", fmt.Errorf("filling in the link %s: it has no parameters", l.Name)
	case len(values) > len(l.Parameters):
		last := len(l.Parameters) - 1
		values = append(slices.Clone(values[:last]), strings.Join(values[last:], " "))
	}
	filled := parameter().ReplaceAllStringFunc(l.URL, func(m string) string {
		v := values[slices.Index(l.Parameters, m[1:len(m)-1])]
		if v == "." || v == ".." { // a step in a path
			return strings.ReplaceAll(v, ".", "%2E")
		}
		return strings.ReplaceAll(url.QueryEscape(v), "+", "%20")
	})
	if len(filled) > maxURL {
		return "", fmt.Errorf("filling in the link %s: the address gets longer than %d bytes", l.Name, maxURL)
	}
	return filled, nil
}
