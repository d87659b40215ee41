package app

import (
	"context"
	"slices"
	"strings"

	"dure/agent"
)

// terminal is where commands of a session run that the front-end shows; nil = in the box.
// A front-end's terminal is outside of every box, so that it takes the place of one that
// confines nothing alone: its user has turned the sandbox off.
func (a *App) terminal(c toolConfig) agent.Terminal {
	if a.opts.Terminal == nil || !a.cfg.Sandbox.Off || c.Child != nil || !a.isOwn(c.ws) {
		return nil
	}
	return besides{a.opts.Terminal, a.opts.Environ}
}

// besides are the terminals of a front-end that has the environment of this program.
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
