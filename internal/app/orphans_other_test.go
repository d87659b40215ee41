//go:build unix && !linux

package app_test

import (
	"os/exec"
	"syscall"
)

// family runs commands. These systems do not tell what a dead process has left
// behind.
var family kin

type kin struct{}

func (kin) run(cmd *exec.Cmd) error { return cmd.Run() }

func (kin) orphans() []string { return nil }

// groupLives reports whether there is a process of the group.
func groupLives(pgid int) bool { return syscall.Kill(-pgid, 0) == nil }

// carrying would return the processes that carry a text in their environment.
func carrying(string) []string { return nil }
