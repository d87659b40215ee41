package files

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"dure/agent"
	"dure/internal/safety/workspace"
)

// The limits of a preview, in bytes. What needs more has none.
const (
	MaxPreviewed = 1 << 20  // of a file
	MaxPreview   = 64 << 10 // of a difference
)

// Preview returns what a call of a tool would change, in unified form, or "". It is for the
// eyes: whether an edit fits the file is for the tool to say. A tool may say itself what a call
// would change.
func Preview(t agent.Tool, ws *workspace.Workspace, c agent.Call) string {
	if own, ok := t.(interface{ Preview(agent.Call) string }); ok {
		return own.Preview(c)
	}
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
	if d := diff.Diff(in.Path, []byte(before), in.Path, []byte(after)); len(d) <= MaxPreview {
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
	data, err := io.ReadAll(io.LimitReader(f, MaxPreviewed+1))
	if err != nil || len(data) > MaxPreviewed {
		return "", false
	}
	return string(data), true
}
