package shell

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/kit"
)

// The bounds of shell calls.
const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
	shellBudget    = 10_000   // characters of a result
	maxInline      = 64 << 10 // bytes of output; more is streamed to the guard
	maxStdout      = 30_000   // bytes of output in the structured answer: half from each end

	// The time limit that the loop puts on a call leaves room for the command's
	// own timeout, which ends it with its output.
	shellLimit = maxTimeout + time.Minute
)

//go:embed bash.md
var bashText string

// backgroundText is what the description says where there are jobs.
const backgroundText = " For servers and long builds set run_in_background."

// The size of the terminal of commands that ask for one.
var terminalSize = sandbox.Size{Cols: 120, Rows: 40}

type bashInput struct {
	Command     string `json:"command"`
	Timeout     int64  `json:"timeout"`
	Description string `json:"description"`
	Background  bool   `json:"run_in_background"`
	PTY         bool   `json:"pty"`
}

func (s *Shell) bash() agent.Tool {
	description := kit.Describe(bashText)
	if s.Settle != nil {
		description += backgroundText
	}
	return kit.Tool{
		About: agent.Spec{
			Name: "bash__exec", Description: description, Input: s.bashSchema(),
			Class: agent.Unsafe, Group: "system", Risk: agent.RiskHigh, Limit: shellLimit, Budget: shellBudget,
			Aliases: map[string]string{"cmd": "command", "script": "command", "timeout_ms": "timeout", "timeoutMs": "timeout"},
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := readCommand(c)
			if err != nil {
				return agent.Effects{}, err
			}
			e := s.Reads.Read(in.Command, tc.Workdir)
			return e, s.unmasked(in.Command, e)
		},
		Does: func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := readCommand(c)
			if err != nil {
				return agent.Result{}, err
			}
			argv := append(kit.Shell(s.Path), in.Command)
			grant := kit.Grant(s.Reads.Read(in.Command, tc.Workdir))
			if in.Background {
				return s.launch(ctx, tc, argv, in, grant)
			}
			if s.Terminal != nil {
				if r, err := s.shown(ctx, tc, c, argv, in); !errors.Is(err, agent.ErrNoTerminal) {
					return r, err
				}
			}
			return s.run(ctx, tc, argv, in.Timeout, in.PTY, grant)
		},
	}
}

// bashSchema offers what there is: jobs where they can be settled, terminals
// where the system has them.
func (s *Shell) bashSchema() json.RawMessage {
	schema := `{"type":"object","properties":{` +
		`"command":{"type":"string"},` +
		`"timeout":{"type":"integer","minimum":1,"maximum":600000,"description":"milliseconds, default 120000"},` +
		`"description":{"type":"string","description":"what it does, in 5 to 10 words"}`
	if s.Settle != nil {
		schema += `,"run_in_background":{"type":"boolean"}`
	}
	if sandbox.HasPTY() {
		schema += `,"pty":{"type":"boolean","description":"run it on a terminal, for programs that want one"}`
	}
	return json.RawMessage(schema + `},"required":["command"],"additionalProperties":false}`)
}

func readCommand(c agent.Call) (bashInput, error) {
	in, err := kit.Decode[bashInput](c)
	switch {
	case err != nil:
		return in, err
	case strings.TrimSpace(in.Command) == "":
		return in, kit.Refuse(agent.ErrInput, "command is empty", "Say what to run.")
	case strings.ContainsRune(in.Command, 0):
		return in, kit.Refuse(agent.ErrInput, "command contains a NUL character", "Write the command without it; to make one, use printf '\\0'.")
	}
	return in, nil
}

// unmasked refuses a command that would write a mask into a file.
func (s *Shell) unmasked(command string, e agent.Effects) error {
	if len(e.Writes) == 0 || s.Masked == nil || !s.Masked(command) {
		return nil
	}
	return kit.Refuse(agent.ErrInput, "the command writes files and has a mask in it: it stands for a secret that you are not shown",
		"Leave the line with the secret alone, and change what is around it; or ask the user to make this change.")
}

// run runs argv in the working folder, to its end.
func (s *Shell) run(ctx context.Context, tc agent.ToolContext, argv []string, timeoutMillis int64, pty bool, grant sandbox.Grant) (agent.Result, error) {
	env := agent.CallEnvOf(ctx)
	timeout := timeLimit(timeoutMillis)
	capture := s.Box.NewCapture()
	cmd := s.command(tc, argv, env, pty, grant)
	cmd.Timeout, cmd.Out, cmd.Spawned = timeout, kit.Watched(capture, env.Progress), env.Spawned
	exit, err := s.Box.Run(ctx, cmd)
	if err != nil {
		capture.Close()
		if ctx.Err() != nil {
			return agent.Result{}, kit.Refuse(agent.ErrAborted, "the command was cancelled: "+err.Error(), "")
		}
		return agent.Result{}, kit.Refuse(agent.ErrTool, err.Error(), "Check that the working folder and the program exist.")
	}
	r := shellResult(capture, exit, timeout)
	if r.Stream == nil {
		capture.Close()
	}
	return r, nil
}

// timeLimit is how long a command may take that is waited for.
func timeLimit(millis int64) time.Duration {
	if millis > 0 {
		return limited(millis)
	}
	return defaultTimeout
}

// limited returns a timeout of at most maxTimeout.
func limited(millis int64) time.Duration {
	return time.Duration(min(max(millis, 0), maxTimeout.Milliseconds())) * time.Millisecond
}

// command returns what all commands have: folder, environment, terminal.
func (s *Shell) command(tc agent.ToolContext, argv []string, env agent.CallEnv, pty bool, grant sandbox.Grant) sandbox.Cmd {
	cmd := sandbox.Cmd{Argv: argv, Dir: tc.Workdir, Env: kit.CallEnv(s.Env, tc.Workdir, env.Key, env.Vars...), Grant: grant}
	if s.More != nil {
		cmd.Env = append(cmd.Env, s.More()...)
	}
	if pty {
		cmd.PTY = &terminalSize
		cmd.Env = append(cmd.Env, "TERM=xterm-256color") // programs for terminals refuse a dumb one
	}
	return cmd
}

// shellAnswer is the structured answer. Both outputs are in Stdout.
type shellAnswer struct {
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	Interrupted bool   `json:"interrupted"`
	ExitCode    int    `json:"exitCode"`

	BackgroundTaskID string `json:"backgroundTaskId,omitempty"`
}

// shellResult returns the result of a command. The capture stays open: a short
// output is in the result, a long one is read from it through Stream, which
// closes it.
func shellResult(capture *sandbox.Capture, exit sandbox.Exit, timeout time.Duration) agent.Result {
	head, tail, dropped := capture.Ends()
	r := agent.Result{Status: agent.StatusOK, Error: shellError(exit, timeout)}
	r.Output = kit.Structured(shellAnswer{Stdout: ends(head, tail, dropped), Interrupted: exit.Interrupted(), ExitCode: exit.Code})
	last := ""
	if r.Error != nil {
		r.Status = agent.StatusError
		last = r.Error.Message
		if r.Error.Suggestion != "" {
			last += "\n" + r.Error.Suggestion
		}
	}
	if exit.Left {
		last = strings.TrimPrefix(last+"\n[what it left running in the background was stopped]", "\n")
	}
	if refused := kit.Refused(exit.Denied); refused != "" {
		last = strings.TrimPrefix(last+"\n"+refused, "\n")
	}
	if capture.Size() > maxInline {
		full := capture.Reader()
		if last != "" {
			last = "\n" + last
		}
		r.Stream = kit.Joined(full, strings.NewReader(last), full)
		return r
	}
	r.Text = strings.TrimRight(string(head), "\r\n")
	if r.Text != "" && last != "" {
		r.Text += "\n"
	}
	r.Text += last
	if r.Text == "" {
		r.Text = "[no output]"
	}
	return r
}

func shellError(exit sandbox.Exit, timeout time.Duration) *agent.ToolError {
	switch {
	case exit.TimedOut:
		return &agent.ToolError{
			Code: agent.ErrTimeout, Message: fmt.Sprintf("The command took longer than %s and was stopped, with everything it had started.", timeout),
			Suggestion: "Give it a longer timeout (at most 600000 ms), or do less at once.",
		}
	case exit.Cancelled:
		return &agent.ToolError{Code: agent.ErrAborted, Message: "The command was cancelled, and everything it had started was stopped."}
	case exit.Signal != "":
		return &agent.ToolError{Code: agent.ErrTool, Message: fmt.Sprintf("exit code %d (%s)", exit.Code, exit.Signal)}
	case exit.Code != 0:
		return &agent.ToolError{Code: agent.ErrTool, Message: fmt.Sprintf("exit code %d", exit.Code)}
	}
	return nil
}

// ends returns at most maxStdout bytes of an output of which head and tail are
// known, and dropped more lie between.
func ends(head, tail []byte, dropped int64) string {
	if dropped == 0 && len(head) <= maxStdout {
		return string(head)
	}
	if len(tail) == 0 { // head is everything
		tail = head[maxStdout/2:]
	}
	size := int64(len(head)) + dropped
	if dropped > 0 {
		size += int64(len(tail))
	}
	first := strings.ToValidUTF8(string(head[:maxStdout/2]), "")
	last := strings.ToValidUTF8(string(tail[len(tail)-maxStdout/2:]), "")
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", first, size-maxStdout, last)
}
