package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"dure/agent"
	"dure/internal/extend/bundle/changeset"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// The limits of a preview, in bytes. Beyond them there is none.
const (
	maxPreviewed = 1 << 20  // of a file
	maxPreview   = 64 << 10 // of a difference
)

// changing is a tool that says itself what a call would make of files.
type changing interface {
	Change(agent.Call) (*changeset.Change, error)
}

// previewOf returns what a call would change, in unified form, or "".
func previewOf(cat *catalog.Catalog, ws *workspace.Workspace, c agent.Call) string {
	if e, ok := cat.Get(c.Tool); ok {
		if by, ok := e.Tool.(changing); ok {
			change, err := by.Change(c)
			if err != nil {
				return ""
			}
			return previewChange(change)
		}
	}
	return preview(ws, c)
}

// previewChange returns what a commit to a bundle would change; "" where that is more than is
// shown.
func previewChange(change *changeset.Change) string {
	var b strings.Builder
	for name, content := range change.Contents() {
		if !utf8.Valid(content.Old) || !utf8.Valid(content.New) {
			fmt.Fprintf(&b, "%s: %d bytes, no text\n", name, len(content.New))
			continue
		}
		if len(content.Old)+len(content.New) > maxPreviewed {
			return ""
		}
		b.Write(diff.Diff(name, content.Old, name, content.New))
		if b.Len() > maxPreview {
			return ""
		}
	}
	return b.String()
}

// preview returns what an edit would change, in unified form, or "". It is for the
// eyes: whether the edit fits the file is for the tool to say.
func preview(ws *workspace.Workspace, c agent.Call) string {
	type edit struct {
		Old string `json:"old_string"`
		New string `json:"new_string"`
		All bool   `json:"replace_all"`
	}
	var in struct {
		edit
		Path    string  `json:"file_path"`
		Content *string `json:"content"`
		Edits   []edit  `json:"edits"`
	}
	if json.Unmarshal(c.Input, &in) != nil || in.Path == "" {
		return ""
	}
	edits := in.Edits
	switch {
	case in.Content != nil && len(edits) == 0 && in.Old == "":
	case in.Old != "":
		edits = append(edits, in.edit)
	case len(edits) == 0:
		return ""
	}
	before, ok := previewed(ws, in.Path)
	if !ok {
		return ""
	}
	after := before
	if in.Content != nil {
		after = *in.Content
	}
	for _, e := range edits {
		if e.Old == "" || !strings.Contains(after, e.Old) {
			return ""
		}
		n := 1
		if e.All {
			n = -1
		}
		after = strings.Replace(after, e.Old, e.New, n)
	}
	if d := diff.Diff(in.Path, []byte(before), in.Path, []byte(after)); len(d) <= maxPreview {
		return string(d)
	}
	return ""
}

// previewed reads a file as it is now; one that does not exist is empty.
func previewed(ws *workspace.Workspace, path string) (string, bool) {
	_, resolved, err := ws.Resolve(path)
	if err != nil || !ws.Inside(resolved) { // what is elsewhere is not opened unasked
		return "", false
	}
	f, err := ws.Open(path)
	if err != nil {
		return "", errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPreviewed+1))
	if err != nil || len(data) > maxPreviewed {
		return "", false
	}
	return string(data), true
}
