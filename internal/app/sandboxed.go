package app

import (
	"context"
	"fmt"
	"io"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// SandboxReport says what confines commands here.
type SandboxReport struct {
	Off       bool     `json:"off,omitempty"` // by the user's own settings
	Level     string   `json:"level"`         // full, reduced or none
	Mechanism string   `json:"mechanism,omitempty"`
	Parts     []Part   `json:"parts"`
	Enforced  []string `json:"enforced"`
	Missing   []string `json:"missing"`
	Mend      []string `json:"mend"`

	// Of one command: what it would do, and what it could do with which path.
	Effects *agent.Effects  `json:"effects,omitempty"`
	Mounts  []sandbox.Mount `json:"mounts,omitempty"`
}

// Part is a mechanism of the system that was looked for.
type Part = sandbox.Part

// ExplainSandbox says what confines the commands of a session in the working
// folder, and with a command what it could touch. It starts a harmless process to
// find out.
func (a *App) ExplainSandbox(command string) (SandboxReport, error) {
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir, Extra: a.cfg.AddDirs})
	if err != nil {
		return SandboxReport{}, workspace.Problem(a.opts.Workdir, err)
	}
	box, _ := a.newBox(ws, a.opts.Workdir, nil)
	defer box.Close()
	r := box.Explain()
	out := SandboxReport{
		Off: a.cfg.Sandbox.Off, Level: string(r.Level), Mechanism: r.Mechanism,
		Parts: some(r.Parts), Enforced: some(r.Enforced), Missing: some(r.Missing), Mend: some(r.Mend),
	}
	if command == "" {
		return out, nil
	}
	e := reader(a.opts.UserHome, usualShell(finder(ws)))(command, a.opts.Workdir)
	out.Effects = &e
	out.Mounts, err = box.ExplainCmd(sandbox.Cmd{Argv: []string{"sh", "-c", command}, Dir: a.opts.Workdir, Grant: kit.Grant(e)})
	if err != nil {
		return out, fmt.Errorf("explaining what a command could touch: %w", err)
	}
	return out, nil
}

// some is a list that is empty rather than missing.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// RunConfined runs a program of the user's own choice as a tool would, with the
// network and the folders of the settings. It returns the exit code, and what was
// refused.
func (a *App) RunConfined(ctx context.Context, argv []string, in io.Reader, out, errs io.Writer) (code int, refused string, err error) {
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir, Extra: a.cfg.AddDirs})
	if err != nil {
		return 0, "", workspace.Problem(a.opts.Workdir, err)
	}
	box, _ := a.newBox(ws, a.opts.Workdir, nil)
	defer box.Close()
	exit, err := box.Run(ctx, sandbox.Cmd{
		Argv: argv, Dir: a.opts.Workdir, Env: kit.CallEnv(a.commandEnv(), a.opts.Workdir, ""), In: in, Out: out, Err: errs,
	})
	if err != nil {
		return 0, "", &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("running %s: %v", argv[0], err), Err: err,
			Fix: "check that the program exists, and what dure sandbox explain says",
		}
	}
	return exit.Code, kit.Refused(exit.Denied), nil
}
