package agent

import (
	"context"
	"errors"
)

// ErrNoTerminal says that there is no terminal for a command, and that it was not started.
var ErrNoTerminal = errors.New("there is no terminal for it")

// Terminal is where a front-end runs commands in sight of its person. What runs there is
// the front-end's: nothing of the runtime confines it.
type Terminal interface {
	// Run runs a command to its end. When ctx is done it is ended, and what it has printed
	// is returned. [ErrNoTerminal] means that it was not started.
	Run(ctx context.Context, c TerminalCommand) (TerminalExit, error)
}

// TerminalCommand is a command that a call runs.
type TerminalCommand struct {
	Call string   // ID
	Argv []string // program and arguments
	Dir  string   // absolute
	Env  []string // NAME=value
}

// TerminalExit is how it ended.
type TerminalExit struct {
	Output  string
	Cut     bool // the beginning of the output is missing
	Code    int
	Signal  string // that ended it
	Stopped bool   // it was ended before its own end
}
