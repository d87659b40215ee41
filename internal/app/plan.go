package app

import (
	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/prompt"
	"dure/internal/safety/policy/enforce"
	"dure/internal/tools/builtin"
)

// planTools are how the model of a session ends plan mode, with the user's agreement, and
// how it begins it, where the settings leave that to it and somebody is there to agree.
func (a *App) planTools(c toolConfig) []agent.Tool {
	cfg := builtin.PlanConfig{
		Planning: func() bool { return c.pol.Mode() == agent.ModePlan },
		Put:      c.PlanPut,
		Agreed:   c.PlanAgreed,
		Enter:    c.PlanFirst,
		May: func() bool {
			return c.Open.Approver && c.Planning() == agent.PlanAuto && c.pol.Mode() != agent.ModeBypass
		},
	}
	return []agent.Tool{builtin.ExitPlan(cfg), builtin.EnterPlan(cfg)}
}

// plans is how plans come into a session. What holds after one is the mode of its work,
// or else of the settings, but for one that asks nothing.
func (a *App) plans(b plug.Session, work prompt.Work, d *enforce.Decider) plug.Plans {
	if b.Child != nil {
		return plug.Plans{}
	}
	usual := agent.ModeDefault
	for _, m := range []agent.Mode{work.Mode, a.cfg.Mode} {
		if m != "" && m != agent.ModePlan && m != agent.ModeBypass {
			usual = m
			break
		}
	}
	return plug.Plans{
		Of: builtin.PlanOf, With: builtin.WithPlan, Agree: builtin.AgreePlan, Another: builtin.AnotherPlan,
		Mode: work.Plan, Retries: a.cfg.Plan.Retries, Now: d.Policy.Mode, Usual: usual,
	}
}
