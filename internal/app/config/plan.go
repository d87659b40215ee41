package config

import "dure/agent"

// Plan says when a session plans before it does anything.
type Plan struct {
	Mode    agent.PlanMode
	Retries int // how often in a row a person may have a plan made anew
}

// maxPlanRetries bounds plan.retries.
const maxPlanRetries = 100

// planModes are the values of plan.mode, from the loosest.
var planModes = []string{string(agent.PlanOff), string(agent.PlanAuto), string(agent.PlanAlways)}
