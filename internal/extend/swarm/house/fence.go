package house

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/workspace"
)

// Attach denies an agent that has a folder of its own what would change the folder
// that this was made from, in every mode.
func (x *Extension) Attach(_ context.Context, b *plug.Session) (plug.Points, error) {
	main := x.Project(b.Workdir)
	if b.Child != nil && b.Child.Workdir != "" && main == b.Workdir {
		main = x.cfg.Workdir(b.Parent) // hooks have made the folder
	}
	if main == "" || main == b.Workdir {
		return plug.Points{}, nil
	}
	if top := x.cfg.Top(main); top != "" {
		main = top
	}
	ws, err := workspace.New(workspace.Config{Root: b.Root, Extra: x.cfg.Dirs})
	if err != nil {
		return plug.Points{}, workspace.Problem(b.Root, err)
	}
	f := fence{ws: ws, main: main}
	return plug.Points{Gate: plug.Gate{Bounds: []plug.Stage{{Name: "worktree", Decide: f.decide}}}}, nil
}

// fence is the border between a work tree and the folder that it was made from.
type fence struct {
	ws   *workspace.Workspace
	main string
}

func (f fence) decide(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
	if why := f.crossed(p.Effects); why != "" {
		return agent.Decision{Verdict: agent.Deny, Reason: why + ": this agent works in a work tree of its own, " + f.ws.Root() + ", and changes nothing of " + f.main}, nil
	}
	if len(p.Effects.Commands) > 0 && p.Effects.Unreadable != "" {
		return agent.Decision{Verdict: agent.AskUser, Reason: "it cannot be told whether this stays in the work tree of the agent"}, nil
	}
	return agent.Decision{}, nil
}

// beyond reports whether a path is in that folder.
func (f fence) beyond(path string) bool {
	_, resolved, err := f.ws.Resolve(path)
	if err != nil {
		resolved = filepath.Clean(path)
	}
	if f.ws.Inside(resolved) {
		return false
	}
	main, err := filepath.EvalSymlinks(f.main)
	if err != nil {
		main = f.main
	}
	rel, err := filepath.Rel(f.ws.Key(main), f.ws.Key(resolved))
	return err == nil && filepath.IsLocal(rel)
}

// crossed says what of a call would change something there; "" = nothing.
func (f fence) crossed(e agent.Effects) string {
	if i := slices.IndexFunc(e.Writes, f.beyond); i >= 0 {
		return "it writes " + e.Writes[i]
	}
	return f.commands(e.Commands)
}

func (f fence) commands(all []agent.SimpleCommand) string {
	for _, c := range all {
		if i := slices.IndexFunc(c.Writes, f.beyond); i >= 0 {
			return "it writes " + c.Writes[i]
		}
		if c.Dir != "" && c.Kind != agent.CommandReads && f.beyond(c.Dir) {
			return "it runs in " + c.Dir
		}
		if why := gitElsewhere(c); why != "" {
			return why
		}
		if why := f.commands(c.Runs); why != "" {
			return why
		}
	}
	return ""
}

// gitElsewhere says how a command would have git work in another place than its folder.
func gitElsewhere(c agent.SimpleCommand) string {
	for _, v := range c.Vars {
		if strings.HasPrefix(v, "GIT_") {
			return fmt.Sprintf("it sets %.40s", v)
		}
	}
	if len(c.Argv) == 0 || strings.TrimSuffix(filepath.Base(c.Argv[0]), ".exe") != "git" {
		return ""
	}
	for i, arg := range c.Argv[1:] {
		name, path, joined := strings.Cut(arg, "=")
		if !joined && i+2 < len(c.Argv) {
			path = c.Argv[i+2]
		}
		switch name {
		case "--git-dir", "--work-tree":
			return "it has git work in " + path
		case "--":
			return ""
		}
	}
	return ""
}
