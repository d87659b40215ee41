package lsp

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"
)

// The part of the Language Server Protocol 3.17 that is used here. Names are
// those of its specification.

type position struct {
	Line      uint32 `json:"line"`      // from 0
	Character uint32 `json:"character"` // from 0, in units of UTF-16
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type diagnostic struct {
	Range    span            `json:"range"`
	Severity int             `json:"severity"`
	Code     json.RawMessage `json:"code,omitempty"`
	Source   string          `json:"source,omitempty"`
	Message  string          `json:"message"`
}

// The severities.
const (
	severeError   = 1
	severeWarning = 2
)

type publishParams struct {
	URI         string      `json:"uri"`
	Version     *int        `json:"version"`
	Diagnostics diagnostics `json:"diagnostics"`
}

// diagnostics are the first maxFindings of a list. The rest is not decoded: two
// bytes of a list can become eighty of memory.
type diagnostics []diagnostic

// UnmarshalJSON reads a list, of which json.Unmarshal has seen that it is JSON.
func (l *diagnostics) UnmarshalJSON(data []byte) error {
	*l = nil
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t == nil {
		return err
	} else if t != json.Delim('[') {
		return errors.New("reading diagnostics: this is no list")
	}
	for d.More() && len(*l) < maxFindings {
		var f diagnostic
		if err := d.Decode(&f); err != nil {
			return err
		}
		*l = append(*l, f)
	}
	return nil
}

type documentID struct {
	URI     string `json:"uri"`
	Version int    `json:"version,omitempty"`
}

type openParams struct {
	TextDocument struct {
		URI        string `json:"uri"`
		LanguageID string `json:"languageId"`
		Version    int    `json:"version"`
		Text       string `json:"text"`
	} `json:"textDocument"`
}

type changeParams struct {
	TextDocument   documentID  `json:"textDocument"`
	ContentChanges []wholeText `json:"contentChanges"`
}

// wholeText is a change without a range: it replaces all of a document.
type wholeText struct {
	Text string `json:"text"`
}

type documentParams struct {
	TextDocument documentID `json:"textDocument"`
}

type fileEvent struct {
	URI  string `json:"uri"`
	Type int    `json:"type"`
}

// The types of a fileEvent.
const (
	fileCreated = 1
	fileChanged = 2
	fileDeleted = 3
)

type watchedParams struct {
	Changes []fileEvent `json:"changes"`
}

type folder struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
}

type initializeParams struct {
	ProcessID    *int           `json:"processId"` // null: nobody's end is to be watched
	ClientInfo   map[string]any `json:"clientInfo"`
	RootURI      string         `json:"rootUri"`
	Folders      []folder       `json:"workspaceFolders"`
	Options      any            `json:"initializationOptions,omitempty"`
	Capabilities any            `json:"capabilities"`
}

// capabilities are what this client can do.
var capabilities = map[string]any{
	"general": map[string]any{"positionEncodings": []string{"utf-16"}},
	"workspace": map[string]any{
		"workspaceFolders": true, "configuration": true,
		"didChangeWatchedFiles": map[string]any{"dynamicRegistration": true},
	},
	"textDocument": map[string]any{
		"synchronization":    map[string]any{"didSave": true},
		"publishDiagnostics": map[string]any{"versionSupport": true},
		"diagnostic":         map[string]any{},
	},
}

type initializeResult struct {
	Capabilities struct {
		Sync       json.RawMessage `json:"textDocumentSync"`
		Diagnostic json.RawMessage `json:"diagnosticProvider"`
	} `json:"capabilities"`
}

// pulls reports whether diagnostics are to be asked for.
func (r initializeResult) pulls() bool { return given(r.Capabilities.Diagnostic) }

// saves reports whether the server wants to know of saved documents.
func (r initializeResult) saves() bool {
	var o struct {
		Save json.RawMessage `json:"save"`
	}
	return json.Unmarshal(r.Capabilities.Sync, &o) == nil && given(o.Save)
}

// given reports whether an option is there: true, or an object.
func given(raw json.RawMessage) bool {
	s := string(raw)
	return s != "" && s != "null" && s != "false"
}

type pullResult struct {
	Kind  string      `json:"kind"` // full, unchanged
	Items diagnostics `json:"items"`
}

// uriOf returns the address of an absolute path.
func uriOf(path string, windows bool) string {
	if windows {
		path = strings.ReplaceAll(path, `\`, "/")
	}
	if rest, ok := strings.CutPrefix(path, "//"); ok && windows { // //server/share
		host, share, _ := strings.Cut(rest, "/")
		return (&url.URL{Scheme: "file", Host: host, Path: "/" + share}).String()
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/dir
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// pathOf returns the path that an address means; "" = it is none of a file.
func pathOf(uri string, windows bool) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" || strings.ContainsRune(u.Path, 0) {
		return ""
	}
	path := u.Path
	switch {
	case !windows && u.Host != "" && u.Host != "localhost":
		return ""
	case !windows:
		return path
	case u.Host != "":
		path = "//" + u.Host + path
	case len(path) > 2 && path[2] == ':':
		path = strings.ToUpper(path[1:2]) + path[2:]
	}
	return strings.ReplaceAll(path, "/", `\`)
}

// column returns the place in a line, counted in characters from 1, of a place
// counted in units of UTF-16 from 0. One behind the end of the line is the end.
func column(line string, units uint32) int {
	n := 1
	for at := uint32(0); at < units && line != ""; n++ {
		r, size := utf8.DecodeRuneInString(line)
		line = line[size:]
		if at++; r > 0xFFFF {
			at++
		}
	}
	return n
}
