package shell

import (
	"context"
	"errors"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/kit"
)

// shown runs a command line on the terminal of a front-end. [agent.ErrNoTerminal] means
// that nothing was started.
func (s *Shell) shown(ctx context.Context, tc agent.ToolContext, c agent.Call, argv []string, in bashInput) (agent.Result, error) {
	timeout := timeLimit(in.Timeout)
	cmd := s.command(tc, argv, agent.CallEnvOf(ctx), in.PTY, sandbox.Grant{})
	until, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got, err := s.Terminal.Run(until, agent.TerminalCommand{Call: c.ID, Argv: argv, Dir: cmd.Dir, Env: cmd.Env})
	switch {
	case errors.Is(err, agent.ErrNoTerminal):
		return agent.Result{}, err
	case err != nil && ctx.Err() != nil:
		return agent.Result{}, kit.Refuse(agent.ErrAborted, "the command was cancelled: "+err.Error(), "")
	case err != nil:
		return agent.Result{}, kit.Refuse(agent.ErrTool, err.Error(), "It may have run, and may still do so: look before you run it again.")
	}
	late := ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded)
	capture := s.Box.NewCapture()
	if got.Cut {
		_, _ = capture.Write([]byte("[the beginning is left out]\n")) // it never fails
	}
	_, _ = capture.Write([]byte(got.Output))
	r := shellResult(capture, sandbox.Exit{Code: got.Code, Signal: got.Signal, TimedOut: got.Stopped && late, Cancelled: got.Stopped && !late}, timeout)
	if r.Stream == nil {
		_ = capture.Close() // nothing of it is on the disk
	}
	return r, nil
}
