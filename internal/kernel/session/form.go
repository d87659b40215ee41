package session

import (
	"fmt"

	"dure/agent"
	"dure/internal/state/transcript"
)

// maxRepairs is how often a turn is asked again for an answer in the form that was wanted:
// after a call that did not fit, or an end without one.
const maxRepairs = 5

// everyTurn stands for every turn of the epoch.
const everyTurn = -1

// owes has the turn that was cut short, or that is to begin, come to an answer in the form
// that was asked for before, unless another form is asked for now.
func (n *opening) owes(st *transcript.State) {
	switch {
	case len(n.Schema) > 0:
		n.formed = everyTurn
	case len(st.Schema) > 0 && st.Turn.Open:
		n.Schema, n.formed = st.Schema, st.Turns
	case len(st.Schema) > 0 && (st.Unread || st.Waits(true)):
		n.Schema, n.formed = st.Schema, st.Turns+1
	}
}

// due tells whether the turn has come to an answer in the form that was asked for.
func (s *Session) due(ends bool) (over bool, words string, err error) {
	var t transcript.Turn
	var number int
	s.rec.read(func(st *transcript.State) { t, number = st.Turn, st.Turns })
	if s.formed != everyTurn && s.formed != number {
		return false, "", nil
	}
	tool := agent.FormTool
	if shown, ok := s.parts.Catalog().Names[tool]; ok {
		tool = shown
	}
	switch {
	case t.Formed:
		return true, "", nil
	case t.Misses > maxRepairs, ends && t.Misses == maxRepairs:
		return false, "", formProblem(tool)
	case ends:
		return false, "Give your answer by calling the tool " + tool + ": its input is the answer, and has to fit its schema. Text is not read.", nil
	}
	return false, "", nil
}

// formProblem is a turn that came to no answer in the form that was asked for.
func formProblem(tool string) error {
	why := fmt.Sprintf("%s was not called with a valid input, after %d repairs", tool, maxRepairs)
	return &agent.Problem{Code: agent.ProblemForm, Message: why, Args: map[string]string{"error": why}}
}
