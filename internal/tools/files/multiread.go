package files

import (
	"bytes"
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed multiread.md
var multiReadText string

// Limits of one call.
const (
	multiFiles  = 20
	multiBudget = 24_000  // characters of a result
	multiBody   = 23_000  // of it for the files
	multiMedia  = 8 << 20 // bytes of images and documents
	multiName   = 300     // bytes of a name in a heading
	multiLeast  = 200     // characters that a file gets at least
)

// readItem is a file to read: its path, or an object.
type readItem struct {
	Path   string    `json:"file_path"`
	Offset kit.Whole `json:"offset"`
	Limit  kit.Whole `json:"limit"`
}

// UnmarshalJSON reads a string or an object.
func (r *readItem) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &r.Path)
	}
	type plain readItem
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(r))
}

type multiReadInput struct {
	Paths    []readItem `json:"paths"`
	MaxBytes kit.Whole  `json:"max_bytes"`
}

func (f *files) multiRead() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name:        "file-system__multi-read",
			Description: kit.Describe(multiReadText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"paths":{"type":"array","minItems":1,"maxItems":20,"items":{"anyOf":[{"type":"string"},{"type":"object","properties":{` +
				`"file_path":{"type":"string"},"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["file_path"],"additionalProperties":false}]}},` +
				`"max_bytes":{"type":"integer","minimum":1,"description":"of all files"}},` +
				`"required":["paths"],"additionalProperties":false}`),
			Class: agent.Read, Group: "files", Risk: agent.RiskLow, Limit: fileLimit, Budget: multiBudget,
			Aliases: map[string]string{"files": "paths", "file_paths": "paths", "maxBytes": "max_bytes"},
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := readMany(c)
			if err != nil {
				return agent.Effects{}, err
			}
			var e agent.Effects
			for _, item := range in.Paths {
				if strings.HasPrefix(item.Path, handlePrefix) {
					continue
				}
				path, err := f.pin(tc, c, item.Path)
				if err != nil {
					return agent.Effects{}, err
				}
				e.Reads = append(e.Reads, path)
			}
			return e, nil
		},
		Does: f.runMultiRead,
	}
}

func readMany(c agent.Call) (multiReadInput, error) {
	in, err := kit.Decode[multiReadInput](c)
	if err == nil && (len(in.Paths) == 0 || len(in.Paths) > multiFiles) {
		err = kit.Refuse(agent.ErrInput, fmt.Sprintf("paths has %d entries", len(in.Paths)), fmt.Sprintf("Give 1 to %d.", multiFiles))
	}
	return in, err
}

// piece is the part of one file in the answer.
type piece struct {
	*view
	err *agent.ToolError
}

func (f *files) runMultiRead(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, err := readMany(c)
	if err != nil {
		return agent.Result{}, err
	}
	room := multiBody
	if in.MaxBytes > 0 {
		room = min(int(in.MaxBytes), room)
	}
	pieces := make([]piece, len(in.Paths))
	share := max(room/len(pieces), multiLeast)
	read := func(i, room int) error {
		item := in.Paths[i]
		v, err := f.view(ctx, tc, c, readInput{Path: item.Path, Offset: item.Offset, Limit: item.Limit, MaxBytes: kit.Whole(room)})
		te, ok := errors.AsType[*agent.ToolError](err)
		if err != nil && !ok {
			return err
		}
		pieces[i] = piece{v, te}
		return nil
	}
	left, cut := 0, 0
	for i := range pieces {
		if err := read(i, share); err != nil {
			return agent.Result{}, err
		}
		if pieces[i].more() {
			cut++
		} else {
			left += max(share-pieces[i].size(), 0)
		}
	}
	// What the small ones leave is shared by those that were cut.
	for i := range pieces {
		if pieces[i].more() && left/cut > multiLeast {
			if err := read(i, share+left/cut); err != nil {
				return agent.Result{}, err
			}
		}
	}
	return joined(tc, in, pieces), nil
}

func (p piece) more() bool { return p.view != nil && p.view.more }

func (p piece) size() int { return utf8.RuneCountInString(p.show()) }

func (p piece) show() string {
	switch {
	case p.err != nil && p.err.Suggestion != "":
		return fmt.Sprintf("[%s: %s %s]", p.err.Code, p.err.Message, p.err.Suggestion)
	case p.err != nil:
		return fmt.Sprintf("[%s: %s]", p.err.Code, p.err.Message)
	}
	return p.text
}

// joined makes one answer of the pieces.
func joined(tc agent.ToolContext, in multiReadInput, pieces []piece) agent.Result {
	type file struct {
		FilePath string          `json:"filePath"`
		Error    agent.ErrorCode `json:"error,omitempty"`
	}
	var out []file
	var text []string
	r := agent.Result{Status: agent.StatusOK}
	media, failed := 0, 0
	for i, p := range pieces {
		name := in.Paths[i].Path
		body := p.show()
		f := file{FilePath: name}
		if p.err != nil {
			f.Error = p.err.Code
			failed++
		} else {
			r.Files = append(r.Files, p.files...)
			for _, b := range p.blocks {
				if media += len(b.Media.Data); media > multiMedia {
					body += "\n[left out here; read it alone to see it]"
					break
				}
				r.Blocks = append(r.Blocks, b)
			}
		}
		out = append(out, f)
		text = append(text, fmt.Sprintf("==> %s <==\n%s", kit.Cut(kit.Name(name), multiName), body))
	}
	r.Text = strings.Join(text, "\n\n")
	if failed == len(pieces) {
		r.Status = agent.StatusError
		r.Error = &agent.ToolError{Code: pieces[0].err.Code, Message: kit.Cut(fmt.Sprintf("none of the files could be read: %s", pieces[0].err.Message), 900), Suggestion: pieces[0].err.Suggestion}
	}
	r.Output = kit.Structured(struct {
		Files []file `json:"files"`
	}{out})
	return r
}
