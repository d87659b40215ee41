package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal is what line mode talks to.
type Terminal struct {
	In  io.Reader
	Out io.Writer

	// Escapes says that the terminal understands ANSI escape sequences, and
	// that In gives single keys while Raw is in force. Without it input comes
	// line by line, and nothing is printed but text and line feeds.
	Escapes bool
	Color   bool // besides Escapes

	// Echo says that the terminal itself shows what is typed.
	Echo bool

	// Size returns columns and rows; 0 = unknown, and text is not wrapped.
	Size func() (columns, rows int)

	// Raw switches to single keys and returns what switches back. It may be nil
	// without Escapes.
	Raw func() (restore func(), err error)

	// Suspend stops the process, and returns when it goes on. nil = it cannot.
	Suspend func()
}

// OpenTerminal returns the terminal of two files. termName and noColor are what
// TERM and NO_COLOR say.
func OpenTerminal(in, out *os.File, termName, noColor string) Terminal {
	t := Terminal{In: in, Out: out, Echo: term.IsTerminal(int(in.Fd())), Size: func() (int, int) { return 0, 0 }}
	if !term.IsTerminal(int(out.Fd())) {
		return t
	}
	t.Size = func() (int, int) {
		columns, rows, err := term.GetSize(int(out.Fd()))
		if err != nil {
			return 0, 0
		}
		return columns, rows
	}
	if termName == "dumb" || !term.IsTerminal(int(in.Fd())) || !enableEscapes(out) {
		return t
	}
	t.Escapes = true
	t.Color = noColor == ""
	t.Suspend = suspend
	t.Raw = func() (func(), error) {
		state, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return nil, err
		}
		return func() { term.Restore(int(in.Fd()), state) }, nil //nolint:errcheck // the terminal may be gone
	}
	return t
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
