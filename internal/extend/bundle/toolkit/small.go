package toolkit

import (
	"context"
	"encoding/json"
	"math"
	"strconv"

	"dure/agent"
	"dure/internal/tools/kit"
)

type pair struct {
	A *float64 `json:"a"`
	B *float64 `json:"b"`
}

type reckoned struct {
	Result     float64 `json:"result"`
	Expression string  `json:"expression"`
}

func (t *tools) add() kit.Tool {
	return reckon("Adds two numbers.", "+", func(a, b float64) float64 { return a + b })
}

func (t *tools) multiply() kit.Tool {
	return reckon("Multiplies two numbers.", "×", func(a, b float64) float64 { return a * b })
}

func reckon(about, sign string, do func(a, b float64) float64) kit.Tool {
	return kit.Tool{
		About: agent.Spec{
			Description: about, Class: agent.Read, Group: "toolkit", Risk: agent.RiskLow,
			Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}`),
		},
		Touches: nothing,
		Does: func(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[pair](c)
			if err != nil {
				return agent.Result{}, err
			}
			if in.A == nil || in.B == nil {
				return agent.Result{}, kit.Refuse(agent.ErrInput, "a and b have to be numbers", "Give both.")
			}
			n := do(*in.A, *in.B)
			if math.IsInf(n, 0) {
				return agent.Result{}, kit.Refuse(agent.ErrInput, "the result is too large for a number", "Take smaller ones.")
			}
			return answer(reckoned{n, number(*in.A) + " " + sign + " " + number(*in.B) + " = " + number(n)}), nil
		},
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func (t *tools) skills() kit.Tool {
	return kit.Tool{
		About: agent.Spec{
			Description: "Lists the skills that there are.", Class: agent.Read, Group: "toolkit", Risk: agent.RiskLow,
			Input: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		},
		Touches: nothing,
		Does: func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error) {
			list := t.Skills()
			if list == nil {
				list = []Skill{}
			}
			return answer(map[string]any{"skills": list}), nil
		},
	}
}
