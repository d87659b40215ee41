package builtin

import (
	"context"
	"encoding/json"
	"strings"

	"dure/agent"
	"dure/internal/state/plan"
	"dure/internal/tools/kit"
)

const (
	planText   = `Put your plan to the user, once you know what to do. If they agree, plan mode is over and you carry it out; if not, change the plan as they say and put it to them again.`
	planSchema = `{"type":"object","properties":{"plan":{"type":"string","description":"Markdown: the steps, in their order"}},"required":["plan"],"additionalProperties":false}`
	enterText  = `Plan first: from then on nothing is changed until the user has agreed to your plan. For work of several steps, or where there is more than one good way.`
)

// PlanConfig is what plan mode needs of its session. Planning and Agreed are required.
type PlanConfig struct {
	Planning func() bool // the session is in plan mode
	Put      func() bool // a plan was put to the user by a call that has no result yet; nil = none ever

	// Agreed records that the user has agreed to the plan of a call, ends plan mode, and
	// returns what they have changed in it.
	Agreed func(ctx context.Context, call, text string) (changes []string, err error)

	// Enter turns plan mode on, and May reports whether the model decides about that.
	Enter func(context.Context) error
	May   func() bool
}

// planning is the tool that puts a plan to the user. The gate asks, because the call says
// that it cannot do without the user; it runs once they have agreed.
type planning struct {
	kit.Tool
	cfg PlanConfig
}

// ExitPlan returns plan__exit, which is listed in plan mode alone.
func ExitPlan(cfg PlanConfig) agent.Tool {
	return planning{cfg: cfg, Tool: kit.Tool{
		About: agent.Spec{
			Name: "plan__exit", Description: planText, Input: json.RawMessage(planSchema),
			Class: agent.Idempotent, Group: "planning", Risk: agent.RiskLow,
		},
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			_, err := readPlan(c)
			return agent.Effects{User: true}, err
		},
		Does: func(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			text, err := readPlan(c)
			if err != nil {
				return agent.Result{}, err
			}
			changes, err := cfg.Agreed(ctx, c.ID, text)
			if err != nil {
				return agent.Result{}, err
			}
			r := agent.OK("The user has agreed to the plan, and plan mode is over. " + carryOut(text, changes))
			r.Output = kit.Structured(map[string]string{"plan": text})
			return r, nil
		},
	}}
}

// Enabled reports whether there is a plan to be made, or one that was put to the user is
// not answered.
func (p planning) Enabled() bool { return p.cfg.Planning() || p.cfg.Put != nil && p.cfg.Put() }

// carryOut has the model do what a plan says, and tells it what is not as it wrote it.
func carryOut(text string, changes []string) string {
	if len(changes) == 0 {
		return "Carry it out, step by step:\n\n" + text
	}
	return "They have changed it first:\n- " + strings.Join(changes, "\n- ") + "\n\nCarry it out as it is now, step by step:\n\n" + text
}

// AgreePlan is what a person says who agrees to a plan that no call waits with.
func AgreePlan(text string, changes []string) string {
	if len(changes) == 0 {
		return "I agree to your plan. Carry it out, step by step:\n\n" + text
	}
	return "I agree to your plan, with changes:\n- " + strings.Join(changes, "\n- ") + "\n\nCarry it out as it is now, step by step:\n\n" + text
}

// AnotherPlan is what a person says who wants another plan.
func AnotherPlan(why string) string {
	if why = strings.TrimSpace(why); why == "" {
		return "Make another plan, and put it to me."
	}
	return "Make another plan, and put it to me: " + why
}

// entering is the tool by which the model turns plan mode on. Nothing is asked: it lets
// the model do less.
type entering struct {
	kit.Tool
	cfg PlanConfig
}

// EnterPlan returns plan__enter, which is listed where the model decides about plan mode
// and that is off.
func EnterPlan(cfg PlanConfig) agent.Tool {
	return entering{cfg: cfg, Tool: kit.Tool{
		About: agent.Spec{
			Name: "plan__enter", Description: enterText, Input: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
			Class: agent.Idempotent, Group: "planning", Risk: agent.RiskLow,
		},
		Touches: func(agent.ToolContext, agent.Call) (agent.Effects, error) { return agent.Effects{}, nil },
		Does: func(ctx context.Context, _ agent.ToolContext, _ agent.Call) (agent.Result, error) {
			if err := cfg.Enter(ctx); err != nil {
				return agent.Result{}, err
			}
			return agent.OK("Plan mode is on. Read what you need, then put your plan to the user."), nil
		},
	}}
}

// Enabled reports whether the model may turn plan mode on.
func (e entering) Enabled() bool { return e.cfg.May() && !e.cfg.Planning() }

func readPlan(c agent.Call) (string, error) {
	in, err := kit.Decode[struct {
		Plan string `json:"plan"`
	}](c)
	switch text := strings.TrimSpace(in.Plan); {
	case err != nil:
		return "", err
	case text == "":
		return "", kit.Refuse(agent.ErrInput, "the plan is empty", "Say what is to be done, step by step.")
	case len(text) > plan.MaxText:
		return "", kit.Refuse(agent.ErrInput, "the plan is longer than 64 KiB", "Write a shorter one.")
	default:
		return text, nil
	}
}

// PlanOf returns the plan that a call puts to the user.
func PlanOf(c agent.Call) (string, bool) {
	if c.Tool != "plan__exit" {
		return "", false
	}
	text, err := readPlan(c)
	return text, err == nil
}

// WithPlan is the input of a call with another plan.
func WithPlan(c agent.Call, text string) json.RawMessage {
	in := map[string]json.RawMessage{}
	_ = json.Unmarshal(c.Input, &in) // it has been read before
	in["plan"], _ = json.Marshal(text)
	out, _ := json.Marshal(in) // values that are JSON always encode
	return out
}
