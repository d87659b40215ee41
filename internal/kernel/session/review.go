package session

import (
	"dure/agent"
	"dure/internal/state/journal"
)

// accept records which changes to files a person takes for good. A turn may run: it
// is about what a checkpoint has.
func (r *runner) accept(c agent.Accept, batch journal.Batch) error {
	if r.points.Undo.Accept == nil {
		return r.noUndo()
	}
	done, err := r.points.Undo.Accept(r.life, c)
	if err != nil {
		return err
	}
	done.By = "user"
	return r.rec.append(batch, done)
}

// reject puts changes back that a person does not want.
func (r *runner) reject(c agent.Reject, batch journal.Batch) error {
	facts, err := r.atRest("take changes back")
	if err != nil {
		return err
	}
	if r.points.Undo.Reject == nil {
		return r.noUndo()
	}
	back, err := r.points.Undo.Reject(r.life, c)
	if err != nil {
		return err
	}
	back.By = "user"
	return r.rec.append(batch, append(facts, back)...)
}

func (r *runner) noUndo() error {
	return &agent.Problem{
		Code: agent.ProblemUndo, Message: "no checkpoints are kept in this session: its files cannot be put back",
		Fix: "set checkpoints to true in the settings, for what comes; the conversation alone can go back", Args: map[string]string{"session": r.id},
	}
}
