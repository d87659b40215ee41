package system

import (
	"errors"
	"fmt"
	"time"

	"dure/agent"
	"dure/internal/knowledge/prompt"
	"dure/internal/safety/workspace"
)

// share is the part of the model's window that the system prompt may have: one token in so
// many.
const share = 8

// Session is what the system prompt of a session depends on besides the settings.
type Session struct {
	Work      prompt.Work // of a model "", none is known
	Dir       string      // as the user named it
	Workspace *workspace.Workspace
	Tools     []agent.Spec
	Agent     string // text of its type of agents, in the place of what dure says of itself; "" = that
}

// Write returns what writes the system prompt of a session that was opened at a time. Its error
// says what is wrong with the prompt.
func (x *Extension) Write(s Session) (func(opened time.Time, model string) []agent.Section, error) {
	compose, err := x.composer(s)
	if err != nil {
		return nil, err
	}
	if _, err := compose(time.Now()); err != nil {
		return nil, err
	}
	return func(opened time.Time, model string) []agent.Section {
		if model != s.Work.Model { // the session has gone over to it
			other := s
			other.Work.Model = model
			if compose, err := x.composer(other); err == nil {
				if p, err := compose(opened); err == nil {
					return p.System()
				}
			} // what does not fit another model is what the first one got
		}
		p, _ := compose(opened) // a date is as long as the other
		return p.System()
	}, nil
}

// composer reads what the system prompt is made of, and returns what writes it.
func (x *Extension) composer(s Session) (func(opened time.Time) (prompt.Prompt, error), error) {
	c := x.Usual
	var err error
	if c.Custom, c.Replace, err = x.text(s.Work); err != nil {
		return nil, err
	}
	if s.Agent != "" {
		c.Custom, c.Replace = s.Agent, true
	}
	if s.Work.Model != "" {
		if c.Model, err = x.Model(s.Work.Model); err != nil {
			return nil, err
		}
		c.Model.ID = s.Work.Model
	}
	c.Kind, c.Verify, c.Workdir, c.Count = s.Work.Kind, s.Work.Verify, s.Dir, x.Count(c.Model.Provider)
	c.Git, c.Shell = x.Place(s.Workspace)
	for _, t := range s.Tools {
		c.Tools = append(c.Tools, t.Name)
	}
	return func(opened time.Time) (prompt.Prompt, error) {
		c.Opened = opened.Local() // a log has it in another zone than the one that began it
		p, err := prompt.Build(c, c.Model.Window/share)
		return p, tooLong(err, s.Work.Name, s.Work.Model)
	}, nil
}

// tooLong says that what a prompt has to have does not fit.
func tooLong(err error, profile, model string) error {
	long, ok := errors.AsType[*prompt.TooLong](err)
	if !ok {
		return err
	}
	return &agent.Problem{
		Code: agent.ProblemPrompt, Err: err,
		Message: fmt.Sprintf("the system prompt of profile %s has to have about %d tokens, and %s has room for %d", profile, long.Tokens, model, long.Budget),
		Fix:     "shorten your own text, see: dure prompt --profile " + profile + "; or choose a model with a larger window",
		Args:    map[string]string{"profile": profile, "model": model, "tokens": fmt.Sprint(long.Tokens), "budget": fmt.Sprint(long.Budget)},
	}
}
