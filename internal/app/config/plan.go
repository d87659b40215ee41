package config

import (
	"fmt"
	"slices"

	"dure/agent"
)

// Plan says when a session plans before it does anything.
type Plan struct {
	Mode    agent.PlanMode
	Retries int // how often in a row a person may have a plan made anew
}

// FilePlan is [Plan] as a file writes it.
type FilePlan struct {
	Mode    *string `json:"mode"`
	Retries *int    `json:"retries"`
}

// maxPlanRetries bounds plan.retries.
const maxPlanRetries = 100

// planModes are the values of plan.mode, from the loosest.
var planModes = []string{string(agent.PlanOff), string(agent.PlanAuto), string(agent.PlanAlways)}

// planned applies when a session plans.
func (l *loader) planned(ly layer, s Settings) error {
	if s.Plan == nil {
		return nil
	}
	if m := s.Plan.Mode; m != nil {
		if !slices.Contains(planModes, *m) {
			return l.invalid(ly, "plan.mode", *m, planModes)
		}
		l.set(ly, "plan.mode", string(l.cfg.Plan.Mode) != *m)
		l.cfg.Plan.Mode = agent.PlanMode(*m)
	}
	if n := s.Plan.Retries; n != nil {
		if *n < 0 || *n > maxPlanRetries {
			return l.invalid(ly, "plan.retries", fmt.Sprint(*n), []string{fmt.Sprintf("a number from 0 to %d", maxPlanRetries)})
		}
		l.set(ly, "plan.retries", l.cfg.Plan.Retries != *n)
		l.cfg.Plan.Retries = *n
	}
	return nil
}

// restrictPlan lets a repository have more planned, and not less.
func (l *loader) restrictPlan(s *Settings, drop func(key string)) {
	if s.Plan == nil {
		return
	}
	own := *s.Plan
	if m := own.Mode; m != nil && slices.Index(planModes, *m) < slices.Index(planModes, string(l.cfg.Plan.Mode)) {
		drop("plan.mode")
		own.Mode = nil
	}
	if own.Retries != nil && *own.Retries > l.cfg.Plan.Retries {
		drop("plan.retries")
		own.Retries = nil
	}
	s.Plan = &own
}
