package app

import (
	"encoding/json"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/tools/builtin"
)

// addForm adds the tool by which a model answers in the form that was asked for.
func addForm(all []agent.Tool, schema json.RawMessage) ([]agent.Tool, error) {
	if len(schema) == 0 {
		return all, nil
	}
	tool, err := builtin.Form(schema)
	if err != nil {
		return nil, &agent.Problem{
			Code: agent.ProblemUsage, Message: "the form of the answer is not a valid JSON Schema: " + err.Error(), Err: err,
			Fix: "give a JSON Schema of an object", Args: map[string]string{"flag": "--json-schema", "error": err.Error()},
		}
	}
	return append(all, tool), nil
}

// withForm gives a session that tool, whatever others its role has.
func withForm(b plug.Session, has func(agent.Spec) bool) func(agent.Spec) bool {
	if len(b.Open.Schema) == 0 || has == nil {
		return has
	}
	return func(s agent.Spec) bool { return s.Name == agent.FormTool || has(s) }
}
