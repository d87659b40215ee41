package files

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

//go:embed write.md
var writeText string

const writeName = "file-system__write"

// pathNames are what models call file_path.
var pathNames = map[string]string{"path": "file_path", "file": "file_path", "filePath": "file_path", "filename": "file_path"}

type writeInput struct {
	Path    string  `json:"file_path"`
	Content *string `json:"content"` // nil = missing, which must not empty the file
}

func (f *files) write() agent.Tool {
	return changer{
		Tool: kit.Tool{
			About: agent.Spec{
				Name:        writeName,
				Description: kit.Describe(writeText),
				Input: json.RawMessage(`{"type":"object","properties":{` +
					`"file_path":{"type":"string"},"content":{"type":"string"}},` +
					`"required":["file_path","content"],"additionalProperties":false}`),
				Class: agent.Checkable, Group: "files", Risk: agent.RiskMedium, Limit: fileLimit,
				Aliases: merged(pathNames, map[string]string{"text": "content", "contents": "content"}),
			},
			Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
				in, err := kit.Decode[writeInput](c)
				if err != nil {
					return agent.Effects{}, err
				}
				path, err := f.pin(tc, c, in.Path)
				return agent.Effects{Writes: []string{path}}, err
			},
		},
		f:       f,
		prepare: f.prepareWrite,
	}
}

func (f *files) prepareWrite(ctx context.Context, tc agent.ToolContext, c agent.Call) (*change, error) {
	in, err := kit.Decode[writeInput](c)
	if err != nil {
		return nil, err
	}
	if in.Content == nil {
		return nil, kit.Refuse(agent.ErrInput, "content is missing", `Give the whole text of the file; "" empties it.`)
	}
	if len(*in.Content) > workspace.MaxText {
		return nil, kit.Refuse(agent.ErrInput, fmt.Sprintf("content is larger than %d MiB", workspace.MaxText>>20), "Make the file with a command.")
	}
	ch, text, err := f.target(ctx, tc, c, in.Path)
	if err != nil {
		return nil, err
	}
	if err := f.seen(ch, text); err != nil {
		return ch, err
	}
	ch.after, ch.data = *in.Content, []byte(*in.Content)
	if ch.info == nil {
		ch.compared = true
	}
	if text == nil || text.Damaged {
		return ch, nil
	}
	if text.Encoding != workspace.UTF8 {
		ch.after = strings.TrimPrefix(ch.after, "\uFEFF") // the mark belongs to the encoding
	}
	if workspace.LineEndsOf(text.Content) == workspace.CRLF {
		ch.after = crlf(ch.after)
	}
	if ch.data, err = text.Encode(ch.after); err != nil {
		return ch, f.explain(tc, ch.path, err)
	}
	return ch, nil
}

// crlf returns s with all its lines ending in CR LF.
func crlf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// merged returns the entries of both maps.
func merged(a, b map[string]string) map[string]string {
	m := make(map[string]string, len(a)+len(b))
	for k, v := range a {
		m[k] = v
	}
	for k, v := range b {
		m[k] = v
	}
	return m
}
