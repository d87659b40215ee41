package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed ask.md
var askText string

const askProperties = `"questions":{"type":"array","minItems":1,"maxItems":4,"items":{"type":"object","properties":{` +
	`"question":{"type":"string","minLength":1},` +
	`"header":{"type":"string","description":"label of 1 to 3 words"},` +
	`"options":{"type":"array","minItems":2,"maxItems":4,"items":{"type":"object","properties":{` +
	`"label":{"type":"string","minLength":1},"description":{"type":"string"}},"required":["label"],"additionalProperties":false}},` +
	`"multiSelect":{"type":"boolean"}},` +
	`"required":["question","options"],"additionalProperties":false}}`

// The model is shown the first schema. Only an input that a person has given is
// checked against the second one, so that no model answers for a person.
const (
	askSchema    = `{"type":"object","properties":{` + askProperties + `},"required":["questions"],"additionalProperties":false}`
	answerSchema = `{"type":"object","properties":{` + askProperties +
		`,"answers":{"type":"object","additionalProperties":{"type":"string","maxLength":10000}}},"required":["questions"],"additionalProperties":false}`
)

type question struct {
	Question string   `json:"question"`
	Header   string   `json:"header,omitempty"`
	Options  []option `json:"options"`
	Multi    bool     `json:"multiSelect"`
}

type option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// askInput is a call. Answers maps the text of a question to the answer; it is
// there once the person has been asked.
type askInput struct {
	Questions []question        `json:"questions"`
	Answers   map[string]string `json:"answers,omitempty"`
}

// asker is the tool that puts questions to the user. It needs nobody to run:
// the gate asks, because the call says that it cannot do without the user, and
// the answers come back as the call's input.
type asker struct{ kit.Tool }

// Ask returns user__ask.
func Ask() agent.Tool {
	return asker{kit.Tool{
		About: agent.Spec{
			Name: "user__ask", Description: kit.Describe(askText), Input: json.RawMessage(askSchema),
			Class: agent.Idempotent, Group: "planning", Risk: agent.RiskLow,
		},
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := readQuestions(c)
			return agent.Effects{User: in.Answers == nil}, err
		},
		Does: func(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := readQuestions(c)
			if err != nil {
				return agent.Result{}, err
			}
			if in.Answers == nil {
				return agent.Result{}, kit.Refuse(agent.ErrDenied, "nobody has answered", "Go on with the best assumption, and say which one you made.")
			}
			r := agent.OK(answersText(in))
			r.Output = kit.Structured(in)
			return r, nil
		},
	}}
}

// AnswerSchema is the schema of an input that a person has completed. An input
// of the model never has the parameters that only this schema knows.
func (asker) AnswerSchema() json.RawMessage { return json.RawMessage(answerSchema) }

func readQuestions(c agent.Call) (askInput, error) {
	in, err := kit.Decode[askInput](c)
	if err != nil {
		return in, err
	}
	asked := map[string]bool{}
	for _, q := range in.Questions {
		if asked[q.Question] {
			return in, kit.Refuse(agent.ErrInput, fmt.Sprintf("the question %q is asked twice", q.Question), "Ask each question once.")
		}
		asked[q.Question] = true
		labels := map[string]bool{}
		for _, o := range q.Options {
			if labels[o.Label] {
				return in, kit.Refuse(agent.ErrInput, fmt.Sprintf("the option %q is offered twice", o.Label), "Give each option its own label.")
			}
			labels[o.Label] = true
		}
	}
	for q := range in.Answers {
		if !asked[q] {
			return in, kit.Refuse(agent.ErrInput, fmt.Sprintf("there is an answer to %q, which was not asked", q), "")
		}
	}
	return in, nil
}

func answersText(in askInput) string {
	var b strings.Builder
	b.WriteString("The user's answers:")
	for _, q := range in.Questions {
		a, ok := in.Answers[q.Question]
		if !ok || strings.TrimSpace(a) == "" {
			a = "(no answer)"
		}
		fmt.Fprintf(&b, "\n- %s\n  %s", q.Question, strings.ReplaceAll(a, "\n", "\n  "))
	}
	return b.String()
}
