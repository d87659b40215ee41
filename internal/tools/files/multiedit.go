package files

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed multiedit.md
var multiEditText string

// maxEdits is how many edits one call may make.
const maxEdits = 500

type multiEditInput struct {
	Path  string      `json:"file_path"`
	Edits []editInput `json:"edits"` // without their own file_path
}

func (f *files) multiEdit() agent.Tool {
	return changer{
		Tool: kit.Tool{
			About: agent.Spec{
				Name:        "file-system__multi-edit",
				Description: kit.Describe(multiEditText),
				Input: json.RawMessage(`{"type":"object","properties":{` +
					`"file_path":{"type":"string"},"edits":{"type":"array","minItems":1,"items":{"type":"object","properties":{` +
					`"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},` +
					`"required":["old_string","new_string"],"additionalProperties":false}}},` +
					`"required":["file_path","edits"],"additionalProperties":false}`),
				Class: agent.Checkable, Group: "files", Risk: agent.RiskMedium, Limit: fileLimit,
				Aliases: pathNames,
			},
			Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
				in, err := kit.Decode[multiEditInput](c)
				if err != nil {
					return agent.Effects{}, err
				}
				return f.planEdit(tc, c, in.Path)
			},
		},
		f: f,
		prepare: func(ctx context.Context, tc agent.ToolContext, c agent.Call) (*change, error) {
			in, err := kit.Decode[multiEditInput](c)
			switch {
			case err != nil:
				return nil, err
			case len(in.Edits) == 0 || len(in.Edits) > maxEdits:
				return nil, kit.Refuse(agent.ErrInput, fmt.Sprintf("edits has %d entries", len(in.Edits)), fmt.Sprintf("Give 1 to %d.", maxEdits))
			}
			return f.prepareEdit(ctx, tc, c, in.Path, in.Edits)
		},
	}
}
