package builtin

import (
	"context"
	"encoding/json"
	"strings"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/state/plan"
	"dure/internal/tools/kit"
)

const (
	planText   = `Put your plan to the user, once you know what to do. If they agree, plan mode is over and you carry it out; if not, change the plan as they say and put it to them again.`
	planSchema = `{"type":"object","properties":{"plan":{"type":"string","description":"Markdown: the steps, in their order"}},"required":["plan"],"additionalProperties":false}`
	enterText  = `Plan first: from then on nothing is changed until the user has agreed to your plan. For work of several steps, or where there is more than one good way.`
)

// planMode is that of a session.
type planMode struct {
	of   *plug.Session
	mode func() agent.Mode // the permission mode that holds
}

func (p planMode) on() bool { return p.mode() == agent.ModePlan }

// PlanTools are how the model of a session ends plan mode, with the user's agreement, and how
// it begins it, where the settings leave that to it and somebody is there to agree. mode
// returns the permission mode that holds.
func PlanTools(b *plug.Session, mode func() agent.Mode) []agent.Tool {
	p := planMode{b, mode}
	return []agent.Tool{exitPlan(p), enterPlan(p)}
}

// Plans is how plans come into a session, by the plan mode and retries of the settings. What
// holds after a plan is the first of the usual permission modes that asks for anything.
func Plans(mode agent.PlanMode, retries int, now func() agent.Mode, usual ...agent.Mode) plug.Plans {
	p := plug.Plans{
		Of: planOf, With: withPlan, Agree: agreePlan, Another: anotherPlan,
		Mode: mode, Retries: retries, Now: now, Usual: agent.ModeDefault,
	}
	for _, m := range usual {
		if m != "" && m != agent.ModePlan && m != agent.ModeBypass {
			p.Usual = m
			break
		}
	}
	return p
}

// planning is the tool that puts a plan to the user. The gate asks, because the call says
// that it cannot do without the user; it runs once they have agreed.
type planning struct {
	kit.Tool
	planMode planMode // not embedded: a tool has no methods of its session
}

// exitPlan returns plan__exit, which is listed in plan mode alone.
func exitPlan(p planMode) agent.Tool {
	return planning{planMode: p, Tool: kit.Tool{
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
			changes, err := p.of.PlanAgreed(ctx, c.ID, text)
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
func (p planning) Enabled() bool { return p.planMode.on() || p.planMode.of.PlanPut() }

// carryOut has the model do what a plan says, and tells it what is not as it wrote it.
func carryOut(text string, changes []string) string {
	if len(changes) == 0 {
		return "Carry it out, step by step:\n\n" + text
	}
	return "They have changed it first:\n- " + strings.Join(changes, "\n- ") + "\n\nCarry it out as it is now, step by step:\n\n" + text
}

// agreePlan is what a person says who agrees to a plan that no call waits with.
func agreePlan(text string, changes []string) string {
	if len(changes) == 0 {
		return "I agree to your plan. Carry it out, step by step:\n\n" + text
	}
	return "I agree to your plan, with changes:\n- " + strings.Join(changes, "\n- ") + "\n\nCarry it out as it is now, step by step:\n\n" + text
}

// anotherPlan is what a person says who wants another plan.
func anotherPlan(why string) string {
	if why = strings.TrimSpace(why); why == "" {
		return "Make another plan, and put it to me."
	}
	return "Make another plan, and put it to me: " + why
}

// entering is the tool by which the model turns plan mode on. Nothing is asked: it lets
// the model do less.
type entering struct {
	kit.Tool
	planMode planMode // not embedded: a tool has no methods of its session
}

// enterPlan returns plan__enter, which is listed where the model decides about plan mode
// and that is off.
func enterPlan(p planMode) agent.Tool {
	return entering{planMode: p, Tool: kit.Tool{
		About: agent.Spec{
			Name: "plan__enter", Description: enterText, Input: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
			Class: agent.Idempotent, Group: "planning", Risk: agent.RiskLow,
		},
		Touches: func(agent.ToolContext, agent.Call) (agent.Effects, error) { return agent.Effects{}, nil },
		Does: func(ctx context.Context, _ agent.ToolContext, _ agent.Call) (agent.Result, error) {
			if err := p.of.PlanFirst(ctx); err != nil {
				return agent.Result{}, err
			}
			return agent.OK("Plan mode is on. Read what you need, then put your plan to the user."), nil
		},
	}}
}

// Enabled reports whether the model may turn plan mode on.
func (e entering) Enabled() bool {
	p := e.planMode
	return p.of.Open.Approver && p.of.Planning() == agent.PlanAuto && p.mode() != agent.ModeBypass && !p.on()
}

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

// planOf returns the plan that a call puts to the user.
func planOf(c agent.Call) (string, bool) {
	if c.Tool != "plan__exit" {
		return "", false
	}
	text, err := readPlan(c)
	return text, err == nil
}

// withPlan is the input of a call with another plan.
func withPlan(c agent.Call, text string) json.RawMessage {
	in := map[string]json.RawMessage{}
	_ = json.Unmarshal(c.Input, &in) // it has been read before
	in["plan"], _ = json.Marshal(text)
	out, _ := json.Marshal(in) // values that are JSON always encode
	return out
}
