package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dure/agent"
	"dure/internal/safety/sandbox"
)

// Editor returns the program that the user edits texts with and its arguments; nil =
// none is set.
func (a *App) Editor() []string {
	get := getenv(a.opts.Environ)
	for _, name := range []string{"VISUAL", "EDITOR"} {
		v := strings.TrimSpace(get(name))
		if v == "" {
			continue
		}
		if _, err := os.Stat(v); err == nil { // a path with spaces
			return []string{v}
		}
		return strings.Fields(v)
	}
	return nil
}

// Edit opens a file in the user's editor, on the terminal, and waits for its end.
func (a *App) Edit(ctx context.Context, path string, in, out, errs *os.File) error {
	argv := append(a.Editor(), path)
	if len(argv) == 1 {
		return nil
	}
	if err := sandbox.Attach(ctx, sandbox.Attached{Argv: argv, Dir: filepath.Dir(path), Env: a.opts.Environ, In: in, Out: out, Err: errs}); err != nil {
		return &agent.Problem{
			Code: agent.ProblemEditor, Message: fmt.Sprintf("the editor %s: %v", argv[0], err), Fix: "set VISUAL or EDITOR to an editor, or open the file yourself: " + path,
			Args: map[string]string{"name": argv[0], "error": err.Error(), "path": path}, Err: err,
		}
	}
	return nil
}
