package workspace

import (
	"errors"
	"fmt"
	"os"

	"dure/agent"
)

// Problem is a folder that cannot be worked in.
func Problem(path string, err error) error {
	err = Cause(err)
	return &agent.Problem{
		Code: agent.ProblemWorkdir, Message: fmt.Sprintf("cannot work in %s: %v", path, err), Err: err,
		Fix: "name a folder that exists and that you may read", Args: map[string]string{"path": path, "error": err.Error()},
	}
}

// Gone is a session whose folder cannot be worked in: one that is stored, or with
// "" a new one.
func Gone(session, path string, err error) error {
	if session == "" {
		return Problem(path, err)
	}
	why := Cause(err)
	return &agent.Problem{
		Code: agent.ProblemGone, Message: fmt.Sprintf("session %s cannot go on in %s: %v", session, path, why), Err: err,
		Fix:  "make the folder again, or go on over its files in another one with: dure fork " + session + " --at NO --files FOLDER",
		Args: map[string]string{"session": session, "path": path, "error": why.Error()},
	}
}

// Cause is what is wrong with a path, without the path.
func Cause(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}
