package shell

import (
	"context"
	"slices"
	"strings"

	"dure/agent"
)

// Beside are the terminals of a front-end that has the environment of this program.
func Beside(t agent.Terminal, environ []string) agent.Terminal { return besides{t, environ} }

type besides struct {
	agent.Terminal
	environ []string
}

// Run runs a command with its own environment: what others of the program have of it is
// told as far as it differs, and what they have kept back is emptied.
func (b besides) Run(ctx context.Context, c agent.TerminalCommand) (agent.TerminalExit, error) {
	c.Env = different(b.environ, c.Env)
	return b.Terminal.Run(ctx, c)
}

// different is what makes an environment of another one.
func different(have, want []string) []string {
	values := func(env []string) map[string]string {
		all := map[string]string{}
		for _, entry := range env {
			if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
				all[name] = value // of two, the last counts
			}
		}
		return all
	}
	old, now := values(have), values(want)
	var list []string
	for name, value := range now {
		if was, ok := old[name]; !ok || was != value {
			list = append(list, name+"="+value)
		}
	}
	for name := range old {
		if _, ok := now[name]; !ok {
			list = append(list, name+"=")
		}
	}
	slices.Sort(list)
	return list
}
