package shell

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/kit"
)

//go:embed script.md
var scriptText string

const scriptSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string"},` +
	`"args":{"type":"array","items":{"type":"string"},"maxItems":256},` +
	`"timeout":{"type":"integer","minimum":1,"maximum":600000,"description":"milliseconds, default 120000"}},` +
	`"required":["path"],"additionalProperties":false}`

// maxShebang is how much of a script's first line is read, as kernels do.
const maxShebang = 256

type scriptInput struct {
	Path    string   `json:"path"`
	Args    []string `json:"args"`
	Timeout int64    `json:"timeout"`
}

func (s *Shell) script() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "bash__script", Description: kit.Describe(scriptText), Input: json.RawMessage(scriptSchema),
			Class: agent.Unsafe, Group: "system", Risk: agent.RiskHigh, Limit: shellLimit, Budget: shellBudget,
			Aliases: map[string]string{"file_path": "path", "timeout_ms": "timeout", "timeoutMs": "timeout"},
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, path, err := readScript(tc, c)
			if err != nil {
				return agent.Effects{}, err
			}
			return agent.Effects{Reads: []string{path}, Commands: []agent.SimpleCommand{{
				Argv: append([]string{path}, in.Args...), Reads: []string{path}, Flagged: "a path in place of a name",
			}}}, nil
		},
		Does: func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, path, err := readScript(tc, c)
			if err != nil {
				return agent.Result{}, err
			}
			argv, err := s.interpreter(path)
			if err != nil {
				return agent.Result{}, err
			}
			return s.run(ctx, tc, append(append(argv, path), in.Args...), in.Timeout, false, sandbox.Grant{Reads: []string{path}})
		},
	}
}

func readScript(tc agent.ToolContext, c agent.Call) (in scriptInput, path string, err error) {
	in, err = kit.Decode[scriptInput](c)
	switch {
	case err != nil:
		return in, "", err
	case in.Path == "":
		return in, "", kit.Refuse(agent.ErrInput, "path is empty", "Name a script file; bash__exec runs a command.")
	case strings.ContainsRune(in.Path+strings.Join(in.Args, ""), 0):
		return in, "", kit.Refuse(agent.ErrInput, "path or args contain a NUL character", "Write them without it.")
	}
	path = in.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(tc.Workdir, path)
	}
	return in, filepath.Clean(path), nil
}

// interpreter returns what runs the script: the words of its #! line, as the
// kernel would split them, or the shell.
func (s *Shell) interpreter(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return nil, kit.Refuse(agent.ErrInput, "there is no script "+path, "Check the path.")
	case err != nil:
		return nil, kit.Refuse(agent.ErrTool, "looking at the script: "+err.Error(), "")
	case !info.Mode().IsRegular():
		return nil, kit.Refuse(agent.ErrInput, path+" is no file", "Name a script file.")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, kit.Refuse(agent.ErrTool, "reading the script: "+err.Error(), "")
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, maxShebang)).ReadString('\n')
	if err != nil && err != io.EOF {
		return nil, kit.Refuse(agent.ErrTool, "reading the script: "+err.Error(), "")
	}
	words, ok := strings.CutPrefix(line, "#!")
	words = strings.TrimSpace(words)
	if !ok || words == "" || runtime.GOOS == "windows" {
		return []string{s.Path}, nil
	}
	program, argument, more := strings.Cut(words, " ")
	if !more {
		return []string{program}, nil
	}
	return []string{program, strings.TrimSpace(argument)}, nil
}
