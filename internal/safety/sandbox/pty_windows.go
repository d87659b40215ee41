package sandbox

import (
	"errors"
	"os"
)

var errNoTerminal = errors.New("there are no terminals for commands on Windows: run it without one")

// HasPTY reports whether commands can run on a terminal here.
func HasPTY() bool { return false }

func openTerminal(Size) (ours, tty *os.File, err error) { return nil, nil, errNoTerminal }

func resize(*os.File, Size) error { return errNoTerminal }
