package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed note.md
var noteText string

const noteSchema = `{"type":"object","properties":{` +
	`"task":{"type":"string","description":"what is being done now"},` +
	`"decisions":{"type":"array","items":{"type":"object","properties":{"decision":{"type":"string","minLength":1},` +
	`"reason":{"type":"string"},"alternatives":{"type":"array","items":{"type":"string"}}},"required":["decision"],"additionalProperties":false}},` +
	`"facts":{"type":"object","additionalProperties":{"type":"string"},"description":"an empty text forgets the fact"}},` +
	`"additionalProperties":false}`

// Note returns task__note. What is noted is kept by the fold of the log.
func Note() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "task__note", Description: kit.Describe(noteText), Input: json.RawMessage(noteSchema),
			Class: agent.Idempotent, Group: "planning", Risk: agent.RiskLow,
		},
		Touches: func(agent.ToolContext, agent.Call) (agent.Effects, error) { return agent.Effects{}, nil },
		Does: func(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[agent.TaskNote](c)
			if err != nil {
				return agent.Result{}, err
			}
			r := agent.OK(fmt.Sprintf("Noted: %d decisions, %d facts.", len(in.Decisions), len(in.Facts)))
			r.Meta = map[string]json.RawMessage{agent.MetaTask: kit.Structured(in)}
			return r, nil
		},
	}
}
