package session

import (
	"testing"

	"dure/agent"
)

// A command that asks for what nobody can do is the fault of who sent it, whether or not the
// session is open, and is not kept.
func TestWrongCommands(t *testing.T) {
	for name, c := range map[string]agent.Command{
		"an empty prompt":         agent.Prompt{ID: "1", Text: " \n"},
		"no changes chosen":       agent.Accept{},
		"all and some":            agent.Reject{All: true, Files: []agent.Pick{{Path: "a"}}},
		"no verdict":              agent.DecidePlan{},
		"another verdict":         agent.DecidePlan{Verdict: "perhaps"},
		"a plan mode of nobody":   agent.Change{Plan: "maybe"},
		"a mode of nobody":        agent.Change{Mode: "yolo"},
		"too many files at once":  agent.Accept{Files: make([]agent.Pick, agent.MaxPicks+1)},
		"too many hunks of a one": agent.Accept{Files: []agent.Pick{{Path: "a", Hunks: make([]string, agent.MaxPicks+1)}}},
	} {
		if p := agent.ProblemOf(check(c)); p == nil || p.Code != agent.ProblemUsage || p.Message == "" || p.Fix == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for name, c := range map[string]agent.Command{
		"a prompt": agent.Prompt{Text: "x"}, "a picture": agent.Prompt{Blocks: make([]agent.Block, 1)}, "all": agent.Accept{All: true},
		"a mode": agent.Change{Mode: agent.ModeBypass, Plan: agent.PlanAuto}, "nothing": agent.Interrupt{}, "a verdict": agent.DecidePlan{Verdict: agent.PlanAnother},
	} {
		if err := check(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
