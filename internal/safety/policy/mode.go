package policy

import "dure/agent"

// row is a line of the mode table. A piece of a call is on one of them.
type row int

const (
	rowEdit       row = iota // changes inside of the workspace
	rowCommand               // commands, hosts, and all that is none of the others
	rowOutside               // reads or changes outside of the workspace
	rowUnreadable            // nobody can tell
)

// modeRow returns the verdict of a mode on what no rule has decided and what is not
// harmless. In plan mode what changes something is denied, see judge.left.
func modeRow(r row, m agent.Mode) (agent.Verdict, bool) {
	switch m {
	case agent.ModeDefault:
		return agent.AskUser, true
	case agent.ModeAcceptEdits:
		if r == rowEdit {
			return agent.Allow, true
		}
		return agent.AskUser, true
	case agent.ModePlan:
		if r == rowEdit {
			return agent.Deny, true
		}
		return agent.AskUser, true
	case agent.ModeDontAsk:
		return agent.Deny, true
	case agent.ModeBypass:
		return agent.Allow, true
	}
	return agent.Pass, false
}
