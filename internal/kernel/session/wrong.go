package session

import (
	"fmt"
	"strings"

	"dure/agent"
)

// wrong is a command that asks for what nobody can do: whoever sent it is told what to change.
func wrong(fix, message string, args ...any) error {
	return &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf(message, args...), Fix: fix}
}

// check says what of a command can be seen to be wrong without its session. One that waits
// for who opens a session is looked at before it is kept: nobody could tell the sender later.
func check(c agent.Command) error {
	switch c := c.(type) {
	case agent.Prompt:
		if strings.TrimSpace(c.Text) == "" && len(c.Blocks) == 0 { // providers refuse what says nothing
			return wrong("say in text what is to be done", "the prompt is empty")
		}
	case agent.Change:
		return checkChange(c)
	case agent.Accept:
		return picked(c.All, c.Files)
	case agent.Reject:
		return picked(c.All, c.Files)
	case agent.DecidePlan:
		switch c.Verdict {
		case agent.PlanApproved, agent.PlanRejected, agent.PlanAnother:
		default:
			return wrong(fmt.Sprintf("say in verdict one of: %s, %s, %s", agent.PlanApproved, agent.PlanRejected, agent.PlanAnother), "there is no verdict %.80q about a plan", c.Verdict)
		}
	}
	return nil
}

func checkChange(c agent.Change) error {
	switch c.Plan {
	case "", agent.PlanOff, agent.PlanAlways, agent.PlanAuto:
	default:
		return wrong(fmt.Sprintf("say in plan one of: %v", agent.PlanModes()), "there is no plan mode %.80q", c.Plan)
	}
	switch c.Mode {
	case "", agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan, agent.ModeDontAsk, agent.ModeBypass:
	default:
		modes := []agent.Mode{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan, agent.ModeDontAsk, agent.ModeBypass}
		return wrong(fmt.Sprintf("say in mode one of: %v", modes), "there is no permission mode %.80q", c.Mode)
	}
	return nil
}

// picked checks the bounds of a choice of changes.
func picked(all bool, files []agent.Pick) error {
	if all != (len(files) == 0) {
		return wrong(`say either "all": true, or which files`, "changes are chosen all of them, or by files")
	}
	if len(files) > agent.MaxPicks {
		return wrong("choose fewer at once", "%d files were chosen (at most %d)", len(files), agent.MaxPicks)
	}
	for _, f := range files {
		if len(f.Hunks) > agent.MaxPicks {
			return wrong("choose fewer at once", "%d hunks of %.200q were chosen (at most %d)", len(f.Hunks), f.Path, agent.MaxPicks)
		}
	}
	return nil
}
