// Package code holds the tools that know programs: an outline of what files
// declare, and a check that builds and tests a project with a bound on how often
// in a row that may fail.
//
// Outlines are read from the text alone; only a check runs anything, in the
// sandbox. The package starts no goroutines of its own.
package code

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// Config configures the tools of one session.
type Config struct {
	Workspace *workspace.Workspace // required
	Box       *sandbox.Box         // runs checks; required

	// Env is the environment of checks. Credentials that [sandbox.Scrub] knows
	// are taken out of it.
	Env []string

	// Reads says what a command line would do. nil = nothing can be told of any.
	Reads kit.Reader

	// Shell is the shell for commands that a call names: an sh, bash, zsh or
	// PowerShell; "" = /bin/sh, or PowerShell on Windows.
	Shell string
}

// Code makes the tools. It is safe for concurrent use.
type Code struct {
	Config
	env  []string
	pins kit.Pins

	mu     sync.Mutex
	failed int // checks in a row
}

// New returns the tools of a session.
func New(c Config) *Code {
	if c.Workspace == nil || c.Box == nil {
		panic("code: a Config without Workspace or Box")
	}
	return &Code{
		Config: c,
		// Test runners shall not wait for changes.
		env: append(kit.Quiet(c.Env), "CI=1", "CARGO_TERM_COLOR=never", "PY_COLORS=0", "DOTNET_NOLOGO=1", "DOTNET_CLI_TELEMETRY_OPTOUT=1"),
	}
}

// Tools returns code__outline and code__check.
func (c *Code) Tools() []agent.Tool { return []agent.Tool{c.outline(), c.check()} }

// Reset forgets the checks that failed. It is for the user's next word: that may
// change what is to be done.
func (c *Code) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = 0
}

// The codes that are shared with the file tools (docs/errors.md).
const (
	errFileMissing agent.ErrorCode = "E_FILE_NOT_FOUND"
	errFileAccess  agent.ErrorCode = "E_FILE_ACCESS"
	errFileLarge   agent.ErrorCode = "E_FILE_TOO_LARGE"
	errFileBinary  agent.ErrorCode = "E_FILE_BINARY"
	errFileChanged agent.ErrorCode = "E_FILE_CHANGED"
)

// pin returns the path that the model means, for Plan: it remembers where the path leads, so that
// what is read later is what was decided about.
func (c *Code) pin(tc agent.ToolContext, call agent.Call, path string) (string, error) {
	abs, err := kit.Path(tc, c.Workspace.Root(), path)
	if err != nil {
		return "", err
	}
	_, resolved, err := c.Workspace.Resolve(abs)
	if err != nil {
		return "", explain(abs, err)
	}
	c.pins.Set(call.ID, resolved)
	return abs, nil
}

// arrive returns the path that the model means and where it leads.
func (c *Code) arrive(tc agent.ToolContext, call agent.Call, path string) (abs, resolved string, err error) {
	if abs, err = kit.Path(tc, c.Workspace.Root(), path); err != nil {
		return "", "", err
	}
	if _, resolved, err = c.Workspace.Resolve(abs); err != nil {
		return "", "", explain(abs, err)
	}
	if _, moved := c.pins.Moved(call.ID, resolved); moved {
		return "", "", kit.Refuse(errFileChanged, abs+" leads elsewhere than when the call was decided", "Name the file itself rather than a link to it.")
	}
	return abs, resolved, nil
}

// explain turns an error about a file into one that the model can act on.
func explain(path string, err error) error {
	path = kit.Name(filepath.ToSlash(path))
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return kit.Refuse(errFileMissing, path+" does not exist", "Look for it with the glob or list tool.")
	case errors.Is(err, fs.ErrPermission):
		return kit.Refuse(errFileAccess, "permission denied: "+path, "The file system refuses it; ask the user, or use another file.")
	case errors.Is(err, workspace.ErrBinary):
		return kit.Refuse(errFileBinary, path+" is not a text file", "Use a command that understands its format.")
	case errors.Is(err, errLarge):
		return kit.Refuse(errFileLarge, path+" is larger than 2 MiB", "Search it with grep, or read it in pages.")
	}
	return kit.Refuse(agent.ErrTool, err.Error(), "Name a file or folder of the project.")
}
