package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/sandbox"
)

// The bounds of shell calls.
const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
	maxReadable    = 10_000   // characters of a command that anybody can be expected to read
	maxInline      = 64 << 10 // bytes of output; more is streamed to the guard
	maxStdout      = 30_000   // bytes of output in the structured answer: half from each end

	// The time limit that the loop puts on a call leaves room for the command's
	// own timeout, which ends it with its output.
	shellLimit = maxTimeout + time.Minute
)

// Shell makes the tools that run commands.
type Shell struct {
	Box *sandbox.Box // required

	// Env is the environment of commands. Credentials that [sandbox.Scrub] knows
	// are taken out of it.
	Env []string

	// Path is the shell: an sh, bash, zsh or PowerShell. "" = bash if it is in
	// its usual place, else sh; PowerShell on Windows.
	Path string
}

// quiet makes programs behave as they should when nobody watches. Variables that
// ask for colours all the same are taken out.
var quiet = []string{
	"DURE=1", "TERM=dumb", "NO_COLOR=1", "CLICOLOR=0",
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "GIT_TERMINAL_PROMPT=0",
}

// Tools returns bash__exec and bash__script.
func (s Shell) Tools() []agent.Tool {
	if s.Box == nil {
		panic("tools: a Shell without a Box")
	}
	if s.Path == "" {
		s.Path = usualShell()
	}
	s.Env = append(sandbox.Scrub(s.Env, []string{"FORCE_COLOR", "CLICOLOR_FORCE"}), quiet...)
	return []agent.Tool{s.bash(), s.script()}
}

func usualShell() string {
	if runtime.GOOS == "windows" {
		return "powershell.exe"
	}
	for _, p := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return "/bin/sh"
}

//go:embed bash.md
var bashText string

const bashSchema = `{"type":"object","properties":{` +
	`"command":{"type":"string"},` +
	`"timeout":{"type":"integer","minimum":1,"maximum":600000,"description":"milliseconds, default 120000"},` +
	`"description":{"type":"string","description":"what it does, in 5 to 10 words"}},` +
	`"required":["command"],"additionalProperties":false}`

type bashInput struct {
	Command     string `json:"command"`
	Timeout     int64  `json:"timeout"`
	Description string `json:"description"`
}

func (s Shell) bash() agent.Tool {
	return tool{
		spec: agent.Spec{
			Name: "bash__exec", Description: describe(bashText), Input: json.RawMessage(bashSchema),
			Class: agent.Unsafe, Group: "system", Risk: agent.RiskHigh, Limit: shellLimit,
			Aliases: map[string]string{"cmd": "command", "script": "command", "timeout_ms": "timeout", "timeoutMs": "timeout"},
		},
		plan: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := readCommand(c)
			if err != nil {
				return agent.Effects{}, err
			}
			return commandEffects(in.Command), nil
		},
		run: func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := readCommand(c)
			if err != nil {
				return agent.Result{}, err
			}
			return s.run(ctx, tc, append(s.shell(), in.Command), in.Timeout)
		},
	}
}

// shell returns the shell with the flags before a command.
func (s Shell) shell() []string {
	switch strings.TrimSuffix(strings.ToLower(filepath.Base(s.Path)), ".exe") {
	case "powershell", "pwsh":
		return []string{s.Path, "-NoProfile", "-NonInteractive", "-Command"}
	}
	return []string{s.Path, "-c"}
}

func readCommand(c agent.Call) (bashInput, error) {
	in, err := decode[bashInput](c)
	switch {
	case err != nil:
		return in, err
	case strings.TrimSpace(in.Command) == "":
		return in, refuse(agent.ErrInput, "command is empty", "Say what to run.")
	case strings.ContainsRune(in.Command, 0):
		return in, refuse(agent.ErrInput, "command contains a NUL character", "Write the command without it; to make one, use printf '\\0'.")
	}
	return in, nil
}

// commandEffects is all that is known of a command that nobody has parsed.
func commandEffects(command string) agent.Effects {
	e := agent.Effects{Runs: [][]string{{"bash", "-c", command}}}
	if n := utf8.RuneCountInString(command); n > maxReadable {
		e.Unreadable = fmt.Sprintf("the command has %d characters, more than the %d that can be reviewed", n, maxReadable)
	}
	return e
}

// run runs argv in the working folder.
func (s Shell) run(ctx context.Context, tc agent.ToolContext, argv []string, timeoutMillis int64) (agent.Result, error) {
	env := agent.CallEnvOf(ctx)
	timeout := defaultTimeout
	if timeoutMillis > 0 {
		timeout = min(time.Duration(min(timeoutMillis, maxTimeout.Milliseconds()))*time.Millisecond, maxTimeout)
	}
	capture := s.Box.NewCapture()
	vars := append(s.Env[:len(s.Env):len(s.Env)], "PWD="+tc.Workdir)
	if env.Key != "" {
		vars = append(vars, "DURE_IDEMPOTENCY_KEY="+env.Key)
	}
	exit, err := s.Box.Run(ctx, sandbox.Cmd{
		Argv: argv, Dir: tc.Workdir, Env: vars, Timeout: timeout,
		Out: watched(capture, env.Progress), Spawned: env.Spawned,
	})
	if err != nil {
		capture.Close()
		if ctx.Err() != nil {
			return agent.Result{}, refuse(agent.ErrAborted, "the command was cancelled: "+err.Error(), "")
		}
		return agent.Result{}, refuse(agent.ErrTool, err.Error(), "Check that the working folder and the program exist.")
	}
	return shellResult(capture, exit, timeout), nil
}

// shellAnswer is the structured answer. Both outputs are in Stdout.
type shellAnswer struct {
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	Interrupted bool   `json:"interrupted"`
	ExitCode    int    `json:"exitCode"`
}

// shellResult takes over the capture.
func shellResult(capture *sandbox.Capture, exit sandbox.Exit, timeout time.Duration) agent.Result {
	head, tail, dropped := capture.Ends()
	r := agent.Result{Status: agent.StatusOK, Error: shellError(exit, timeout)}
	r.Output = structured(shellAnswer{Stdout: ends(head, tail, dropped), Interrupted: exit.Interrupted(), ExitCode: exit.Code})
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
	if capture.Size() > maxInline {
		full := capture.Reader()
		if last != "" {
			last = "\n" + last
		}
		r.Stream = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(full, strings.NewReader(last)), full}
		return r
	}
	capture.Close()
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

// The bounds of what is shown while a command runs.
const (
	showEvery = 100 * time.Millisecond
	showBytes = 4 << 10
)

// watched returns a writer to w that also shows some of what passes. What comes
// faster than it can be read is not shown.
func watched(w io.Writer, show func(string)) io.Writer {
	if show == nil {
		return w
	}
	return &display{to: w, show: show}
}

type display struct {
	to      io.Writer
	show    func(string)
	last    time.Time
	waiting []byte
}

func (d *display) Write(p []byte) (int, error) {
	d.waiting = append(d.waiting, p[max(0, len(p)-showBytes):]...)
	if over := len(d.waiting) - showBytes; over > 0 {
		d.waiting = append(d.waiting[:0], d.waiting[over:]...)
	}
	if now := time.Now(); now.Sub(d.last) >= showEvery {
		d.last = now
		d.show(strings.ToValidUTF8(string(d.waiting), "\uFFFD"))
		d.waiting = d.waiting[:0]
	}
	return d.to.Write(p)
}
