//go:build !linux

package shell

import (
	"context"
	"fmt"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/kit"
)

// The bounds of a program that lists processes.
const (
	maxListing  = 4 << 20 // bytes of what it may print
	listTimeout = 10 * time.Second
)

// processes lists the processes of this user as a program of the system does.
func (s *Shell) processes(ctx context.Context) ([]process, error) {
	out := s.Box.NewCapture()
	defer out.Close()
	exit, err := s.Box.Run(ctx, sandbox.Cmd{Argv: listCommand, Dir: rootDir, Env: s.Env, Timeout: listTimeout, Out: out})
	switch {
	case err != nil:
		return nil, kit.Refuse(agent.ErrTool, "listing the processes: "+err.Error(), "")
	case exit.Code != 0:
		return nil, kit.Refuse(agent.ErrTool, fmt.Sprintf("listing the processes: %s ended with code %d", listCommand[0], exit.Code), "")
	}
	text, _ := out.Page(0, maxListing)
	return parseListing(string(text)), nil
}
