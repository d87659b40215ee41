package files

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

//go:embed edit.md
var editText string

type editInput struct {
	Path string  `json:"file_path"`
	Old  *string `json:"old_string"`
	New  *string `json:"new_string"`
	All  bool    `json:"replace_all"`
}

// editNames are what models call the strings of an edit.
var editNames = map[string]string{"old_str": "old_string", "new_str": "new_string", "oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"}

func (f *files) edit() agent.Tool {
	return changer{
		Tool: kit.Tool{
			About: agent.Spec{
				Name:        "file-system__edit",
				Description: kit.Describe(editText),
				Input: json.RawMessage(`{"type":"object","properties":{` +
					`"file_path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},` +
					`"required":["file_path","old_string","new_string"],"additionalProperties":false}`),
				Class: agent.Checkable, Group: "files", Risk: agent.RiskMedium, Limit: fileLimit,
				Aliases: merged(pathNames, editNames),
			},
			Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
				in, err := kit.Decode[editInput](c)
				if err != nil {
					return agent.Effects{}, err
				}
				return f.planEdit(tc, c, in.Path)
			},
		},
		f: f,
		prepare: func(ctx context.Context, tc agent.ToolContext, c agent.Call) (*change, error) {
			in, err := kit.Decode[editInput](c)
			if err != nil {
				return nil, err
			}
			return f.prepareEdit(ctx, tc, c, in.Path, []editInput{in})
		},
	}
}

// planEdit says that an edit reads its file, which its diff shows, and writes it.
func (f *files) planEdit(tc agent.ToolContext, c agent.Call, path string) (agent.Effects, error) {
	abs, err := f.pin(tc, c, path)
	return agent.Effects{Reads: []string{abs}, Writes: []string{abs}}, err
}

// prepareEdit works out what the edits, one after the other, make of a file.
func (f *files) prepareEdit(ctx context.Context, tc agent.ToolContext, c agent.Call, path string, edits []editInput) (*change, error) {
	ch, text, err := f.target(ctx, tc, c, path)
	if err != nil {
		return nil, err
	}
	if edits[0].Old == nil || edits[0].New == nil {
		return ch, kit.Refuse(agent.ErrInput, "old_string or new_string is missing", "Give both.")
	}
	if ch.info == nil && *edits[0].Old == "" { // it is to be made
		text, ch.compared = &workspace.Text{Encoding: workspace.UTF8}, true
	} else if err := f.editable(tc, ch, text); err != nil {
		return ch, err
	}
	ch.after, ch.edits = ch.before, edits
	for i, e := range edits {
		if err := ctx.Err(); err != nil {
			return ch, err
		}
		n, err := ch.edit(e)
		if err != nil {
			return ch, numbered(err, i, len(edits))
		}
		ch.replaced += n
		if len(ch.after) > workspace.MaxText {
			return ch, f.explain(tc, ch.path, errLarge)
		}
	}
	if ch.data, err = text.Encode(ch.after); err != nil {
		return ch, f.explain(tc, ch.path, err)
	}
	return ch, nil
}

// edit applies one edit to ch.after.
func (ch *change) edit(e editInput) (int, error) {
	switch {
	case e.Old == nil || e.New == nil:
		return 0, kit.Refuse(agent.ErrInput, "old_string or new_string is missing", "Give both.")
	case *e.Old == "" && ch.after != "":
		return 0, kit.Refuse(agent.ErrInput, "old_string is empty, and "+ch.path+" is not", "Give the text to replace, or use the write tool to replace all of the file.")
	case *e.Old == "":
		ch.after = *e.New
		return 1, nil
	case *e.Old == *e.New:
		return 0, kit.Refuse(ErrEditSame, "old_string and new_string are the same", "Give the new text in new_string.")
	}
	after, n, note, err := replace(ch.after, *e.Old, *e.New, e.All)
	if err != nil {
		return 0, err
	}
	ch.after = after
	if note != "" && !slices.Contains(ch.notes, note) {
		ch.notes = append(ch.notes, note)
	}
	return n, nil
}

// numbered says which of several edits failed.
func numbered(err error, i, n int) error {
	te, ok := errors.AsType[*agent.ToolError](err)
	if !ok || n == 1 {
		return err
	}
	return kit.Refuse(te.Code, fmt.Sprintf("edit %d of %d: %s", i+1, n, te.Message), strings.TrimSpace(te.Suggestion+" None of the edits was made."))
}
