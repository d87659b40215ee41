//go:build !windows

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

func enableEscapes(*os.File) bool { return true }

// suspend stops this process and those in front of the terminal with it, as the
// terminal does with Ctrl-Z, and returns when they go on. Where nobody could wake
// them, the system does not let them stop.
func suspend() {
	const notStopped = time.Second
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	if syscall.Kill(0, syscall.SIGTSTP) != nil {
		return
	}
	select {
	case <-goesOn:
	case <-time.After(notStopped):
	}
}
