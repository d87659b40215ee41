package session

import (
	"fmt"

	"dure/agent"
	"dure/internal/journal"
)

// accept records which changes to files a person takes for good. A turn may run: it
// is about what a checkpoint has.
func (r *runner) accept(c agent.Accept, batch journal.Batch) error {
	if r.parts.Accept == nil {
		return r.noUndo()
	}
	if err := picked(c.All, c.Files); err != nil {
		return err
	}
	done, err := r.parts.Accept(r.life, c)
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
	if r.parts.Reject == nil {
		return r.noUndo()
	}
	if err := picked(c.All, c.Files); err != nil {
		return err
	}
	back, err := r.parts.Reject(r.life, c)
	if err != nil {
		return err
	}
	back.By = "user"
	return r.rec.append(batch, append(facts, back)...)
}

// picked checks the bounds of a choice.
func picked(all bool, files []agent.Pick) error {
	if all != (len(files) == 0) {
		return fmt.Errorf("choosing changes: either all of them, or some files")
	}
	if len(files) > agent.MaxPicks {
		return fmt.Errorf("choosing changes: %d files (at most %d)", len(files), agent.MaxPicks)
	}
	for _, f := range files {
		if len(f.Hunks) > agent.MaxPicks {
			return fmt.Errorf("choosing changes: %d hunks of %.200q (at most %d)", len(f.Hunks), f.Path, agent.MaxPicks)
		}
	}
	return nil
}

func (r *runner) noUndo() error {
	return &agent.Problem{
		Code: agent.ProblemUndo, Message: "no checkpoints are kept in this session: its files cannot be put back",
		Fix: "set checkpoints to true in the settings, for what comes; the conversation alone can go back", Args: map[string]string{"session": r.id},
	}
}
