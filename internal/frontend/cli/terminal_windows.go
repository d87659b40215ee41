package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableEscapes asks the console to understand escape sequences.
func enableEscapes(out *os.File) bool {
	h := windows.Handle(out.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

// suspend is nil: there is no job control.
var suspend func()
