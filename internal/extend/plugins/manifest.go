package plugins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"dure/internal/base/frontmatter"
)

// The places of manifests, in their order: the first that is there counts.
const (
	manifestFile = frontmatter.PluginManifest
	ownManifest  = "manifest.json"
)

// manifest is what a manifest says, by keys in plain spelling: minAppVersion,
// min_app_version and MinAppVersion are one.
type manifest struct {
	file string
	keys map[string]json.RawMessage
	warn []string
}

// decodeObject reads a JSON object whose keys may be written in any of the usual ways.
// One key twice is an error, whichever way it is written.
func decodeObject(data []byte) (map[string]json.RawMessage, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > maxManifest {
		return nil, fmt.Errorf("it is larger than %d bytes", maxManifest)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, positioned(data, d, err, "it has to be a JSON object")
	}
	keys := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, positioned(data, d, err, "")
		}
		key := frontmatter.Plain(t.(string))
		if _, twice := keys[key]; twice {
			return nil, positioned(data, d, nil, fmt.Sprintf("the key %q stands there twice", clip(t.(string))))
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, positioned(data, d, err, "")
		}
		keys[key] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, positioned(data, d, err, "")
	}
	if d.More() {
		return nil, positioned(data, d, nil, "something follows the end of the object")
	}
	return keys, nil
}

// positioned says where in a file something is wrong.
func positioned(data []byte, d *json.Decoder, err error, what string) error {
	at := int(d.InputOffset())
	if what == "" {
		what = err.Error()
		var all any
		if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(data, &all)); ok { // counts from the start
			at, what = int(syntax.Offset)-1, syntax.Error()
		}
	}
	before := data[:max(0, min(at, len(data)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	return fmt.Errorf("line %d, column %d: %s", line, len(before)-bytes.LastIndexByte(before, '\n'), what)
}

// readManifest finds the manifest of a folder. Without one it has no file.
func readManifest(fsys fs.FS) (manifest, error) {
	for _, name := range []string{manifestFile, ownManifest} {
		data, err := readFile(fsys, name, maxManifest)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return manifest{}, fmt.Errorf("reading %s: %w", name, err)
		}
		keys, err := decodeObject(data)
		if err != nil {
			return manifest{}, fmt.Errorf("reading %s: %w", name, err)
		}
		if name == ownManifest && keys["id"] == nil && keys["type"] == nil {
			continue // files of this name are many
		}
		return manifest{file: name, keys: keys}, nil
	}
	return manifest{}, nil
}

// text takes a text of the manifest; a wrong one is left out and told.
func (m *manifest) text(key string) string {
	raw, ok := m.keys[frontmatter.Plain(key)]
	if !ok || isNull(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) != nil || len(s) > maxLine {
		m.say("%s has to be a text of at most %d bytes; it was left out", key, maxLine)
		return ""
	}
	return s
}

func (m *manifest) say(format string, args ...any) {
	m.warn = append(m.warn, fmt.Sprintf(format, args...))
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null" }

// texts takes a text or a list of texts.
func (m *manifest) texts(key string) []string {
	raw, ok := m.keys[frontmatter.Plain(key)]
	if !ok || isNull(raw) {
		return nil
	}
	list, err := textsOf(raw)
	if err != nil {
		m.say("%s %v; it was left out", key, err)
	}
	return list
}

func textsOf(raw json.RawMessage) ([]string, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, nil
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil || len(list) > maxNamed {
		return nil, fmt.Errorf("has to be a text or a list of at most %d texts", maxNamed)
	}
	return list, nil
}

// describe fills in what is said of the plugin.
func (m *manifest) describe(p *Plugin) error {
	p.Name = m.text("name")
	if id := m.text("id"); id != "" && (m.file == ownManifest || p.Name == "") {
		p.Title, p.Name = p.Name, strings.ToLower(id)
	}
	if m.file != "" {
		if p.Name == "" {
			return fmt.Errorf("%s: it names no plugin: add \"name\"", m.file)
		}
		if err := checkName("the name", p.Name); err != nil {
			return fmt.Errorf("%s: %w", m.file, err)
		}
	}
	if title := m.text("displayName"); title != "" {
		p.Title = title
	}
	p.Version, p.Description, p.Homepage = m.text("version"), m.text("description"), m.text("homepage")
	p.License, p.Keywords, p.MinVersion = m.text("license"), m.texts("keywords"), m.text("minAppVersion")
	p.Author, p.Repository = m.person("author"), m.address("repository")
	if raw, ok := m.keys[frontmatter.Plain("defaultEnabled")]; ok {
		on := true
		if json.Unmarshal(raw, &on) != nil {
			m.say("defaultEnabled has to be true or false")
		}
		p.Off = !on
	}
	m.options(p)
	m.needs(p)
	return nil
}

// person takes an author: a text, or an object with a name and an address.
func (m *manifest) person(key string) string {
	raw := m.keys[key]
	var who struct{ Name, Email string }
	if json.Unmarshal(raw, &who) == nil && len(who.Name)+len(who.Email) <= maxLine {
		if who.Email != "" {
			return strings.TrimSpace(who.Name + " <" + who.Email + ">")
		}
		return who.Name
	}
	return m.text(key)
}

// address takes a repository: a text, or an object with a url.
func (m *manifest) address(key string) string {
	var where struct{ URL string }
	if json.Unmarshal(m.keys[key], &where) == nil && len(where.URL) <= maxLine {
		return where.URL
	}
	return m.text(key)
}

var optionTypes = []string{"string", "number", "boolean", "directory", "file"}

// options reads what the user may set.
func (m *manifest) options(p *Plugin) {
	raw, ok := m.keys[frontmatter.Plain("userConfig")]
	if !ok || isNull(raw) {
		return
	}
	var all map[string]Option
	if err := json.Unmarshal(raw, &all); err != nil || len(all) > maxNamed {
		m.say("userConfig has to be an object of at most %d options", maxNamed)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		o := all[key]
		o.Key = key
		if o.Type == "" {
			o.Type = "string"
		}
		if !isKey(key) || !slices.Contains(optionTypes, o.Type) || len(o.Title)+len(o.Description) > 2*maxLine {
			m.say("the option %q is left out: a key has letters, digits and _, and the type is one of %s", clip(key), strings.Join(optionTypes, ", "))
			continue
		}
		if o.Sensitive && !isNull(o.Default) {
			m.say("the option %q has a default, which a secret has not", key)
			o.Default = nil
		}
		p.Options = append(p.Options, o)
	}
}

// isKey reports whether an option can be named in a variable.
func isKey(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// needs reads the plugins that this one does not work without: names, or objects.
func (m *manifest) needs(p *Plugin) {
	raw, ok := m.keys["dependencies"]
	if !ok || isNull(raw) {
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) > maxNamed {
		m.say("dependencies has to be a list of at most %d plugins", maxNamed)
		return
	}
	for _, raw := range list {
		var n Need
		if json.Unmarshal(raw, &n.Name) != nil && json.Unmarshal(raw, &n) != nil || len(n.Name)+len(n.Version) > maxLine || n.Name == "" {
			m.say("an entry of dependencies has to be a name, or an object with a name and a version")
			continue
		}
		p.Needs = append(p.Needs, n)
	}
}
