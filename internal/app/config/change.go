package config

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"dure/agent/query"
)

// Files returns where settings are read from, the weakest first, whether they are there
// or not; those of the managed folders are not among them.
func Files(src Sources) []query.SettingsFile {
	l, err := newLoader(src)
	if err != nil {
		return nil
	}
	own, theirs := l.files(), l.claudeFiles()
	var list []query.SettingsFile
	for _, f := range []struct {
		layer Layer
		path  string
		ours  bool
	}{
		{User, theirs.user, false},
		{User, own.user, true},
		{Project, theirs.project, false},
		{Project, own.project, true},
		{Local, theirs.local, false},
		{Local, theirs.top, false},
		{Local, own.local, true},
		{Inline, own.inline, false},
		{Managed, theirs.managed, false},
		{Managed, own.managed, false},
	} {
		if f.path != "" {
			list = append(list, query.SettingsFile{Scope: string(f.layer), Path: f.path, Ours: f.ours})
		}
	}
	return list
}

// Value returns what a text is as the value of a key: JSON where it has to be, else the
// text itself. Of a list, one that is no JSON list is an entry to add. Whether the value
// means something is for [Load] to say.
func Value(k Key, text string) (raw json.RawMessage, add bool) {
	trimmed := strings.TrimSpace(text)
	isJSON := json.Valid([]byte(trimmed))
	var plain bytes.Buffer
	if isJSON && json.Compact(&plain, []byte(trimmed)) != nil {
		isJSON = false
	}
	switch {
	case k.Type == Switch && (trimmed == "on" || trimmed == "off"):
		return json.RawMessage(strconv.FormatBool(trimmed == "on")), false
	case (k.Type == Texts || k.Type == RuleSet || k.Type == List) && !(isJSON && trimmed[0] == '['):
		if isJSON && trimmed[0] == '{' {
			return plain.Bytes(), true
		}
		return asText(text), true
	case k.Type == Text && isJSON && trimmed[0] == '"', k.Type != Text && k.Type != Strings && isJSON, k.Type == Strings && isJSON && trimmed[0] == '{':
		return plain.Bytes(), false
	}
	return asText(text), false
}

func asText(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text
	return bytes.TrimSpace(b.Bytes())
}

// Words are the keys of objects that lead to a path: of one in an object with names of
// its own, the rest of it is one name, whatever stands in it.
func Words(k Key, path string) []string {
	n := len(strings.Split(k.Path, "."))
	if many(k) {
		n++
	}
	return strings.SplitN(path, ".", n)
}

// OtherWords are the other words for a path, each as the keys that lead to it.
func OtherWords(path string) (all [][]string) {
	for _, a := range aliases() {
		if a.to == path {
			all = append(all, strings.Split(a.path, "."))
		}
	}
	return all
}
