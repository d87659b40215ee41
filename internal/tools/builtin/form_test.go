package builtin

import (
	"encoding/json"
	"strings"
	"testing"

	"dure/agent"
)

// What is no schema of an answer is told, and where.
func TestFormSchemas(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 80) + `{}` + strings.Repeat(`}}`, 80)
	for schema, want := range map[string]string{
		`{"type":"object"}`: "",
		`{"properties":{"type":{"type":["string","null"]}},"required":["type"]}`:                     "",
		`{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`: "",
		`{`:                                "no JSON object",
		`[]`:                               "no JSON object",
		`null`:                             `"type": "object"`,
		`{"type":"array"}`:                 `"type": "object"`,
		`{"type":["object","null"]}`:       `"type": "object"`,
		`{"anyOf":[{"type":"object"}]}`:    `"type": "object"`,
		`{"type":"object","required":"a"}`: "required",
		`{"type":"object","properties":{"a":{"items":{"type":"text"}}}}`:         `/properties/a/items/type: there is no type "text"`,
		`{"type":"object","allOf":[{"type":["int"]}]}`:                           `/allOf/0/type: there is no type "int"`,
		`{"type":"object","properties":{"a":{"pattern":"("}}}`:                   "(",
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`:           "none",
		`{"type":"object","$ref":"file:///etc/passwd"}`:                          "nothing is fetched",
		`{"type":"object","$ref":"#"}`:                                           "without end",
		deep:                                                                     "deep",
		`{"type":"object","description":"` + strings.Repeat("x", MaxForm) + `"}`: "bytes",
	} {
		_, err := Form(json.RawMessage(schema))
		if shown := schema[:min(len(schema), 100)]; want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", shown, err, want)
		}
	}
}

// The tool checks what it is given by itself, whoever has checked before.
func TestFormChecks(t *testing.T) {
	tool, err := Form(json.RawMessage(`{ "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"] }`))
	if err != nil {
		t.Fatal(err)
	}
	if s := tool.Spec(); s.Name != agent.FormTool || string(s.Input) != `{"properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"type":"object"}` {
		t.Errorf("%s is shown with %s", s.Name, s.Input)
	}
	for input, ok := range map[string]bool{`{"n":1}`: true, `{"n":0}`: false, `{}`: false, `{"n":"1"}`: false, `[]`: false, `{`: false} {
		r, err := tool.Run(t.Context(), agent.ToolContext{}, agent.Call{Tool: agent.FormTool, Input: json.RawMessage(input)})
		if err != nil || r.Failed() == ok {
			t.Errorf("%s: %+v, %v", input, r, err)
		}
	}
}

func FuzzForm(f *testing.F) {
	for _, s := range []string{`{"type":"object"}`, `{"properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}`, `{"type":"object","$defs":{"a":{"not":true}}}`} {
		f.Add(s, `{"a":null}`)
	}
	f.Fuzz(func(t *testing.T, schema, input string) {
		tool, err := Form(json.RawMessage(schema))
		if err != nil {
			return
		}
		if !json.Valid(tool.Spec().Input) {
			t.Errorf("models are shown %s", tool.Spec().Input)
		}
		_, _ = tool.Run(t.Context(), agent.ToolContext{}, agent.Call{Tool: agent.FormTool, Input: json.RawMessage(input)}) // it comes to its end
	})
}

// What would be checked for ever is refused as an answer.
func TestFormBranches(t *testing.T) {
	tool, err := Form(json.RawMessage(`{"type":"object","properties":{"c":{"oneOf":[{"$ref":"#"},{"$ref":"#"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	input := strings.Repeat(`{"c":`, 60) + "{}" + strings.Repeat("}", 60)
	r, err := tool.Run(t.Context(), agent.ToolContext{}, agent.Call{Input: json.RawMessage(input)})
	if err != nil || r.Error == nil || !strings.Contains(r.Text, "too long to check") {
		t.Errorf("%+v, %v", r, err)
	}
}
