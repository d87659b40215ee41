// Package shell holds the tools that work with processes: commands, scripts,
// background jobs and what is known of them, the processes of the machine. What a
// command may do is for the gate to say before it runs; that it ends is the
// sandbox's care.
//
// Each background job has one goroutine, which settles it; [Shell.Close] waits
// for them. Without jobs the package starts none that outlive a call.
package shell

import (
	"context"
	"os"
	"runtime"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/kit"
)

// Config configures a [Shell].
type Config struct {
	Box *sandbox.Box // required

	// Env is the environment of commands. Credentials that [sandbox.Scrub] knows
	// are taken out of it.
	Env []string

	// More returns variables, NAME=value, that commands have besides and in place of
	// those of Env, as of now; nil = none.
	More func() []string

	// Path is the shell: an sh, bash, zsh or PowerShell. "" = bash if it is in
	// its usual place, else sh; PowerShell on Windows.
	Path string

	// Reads says what a command line would do. nil = nothing can be told of any.
	Reads kit.Reader

	// Terminal runs command lines that are waited for, in place of the Box: for a Box that
	// confines nothing. nil = they run in the Box.
	Terminal agent.Terminal

	// Settle is told of the end of a background job, once. nil = commands cannot
	// be run in the background.
	Settle agent.Settle

	// Past returns the outcome of a job that this Shell does not know (any more),
	// such as one of an earlier process: what was settled, with the code
	// [agent.ErrLost] if that is that it is lost. nil knows none.
	Past func(handle string) (agent.Result, bool)

	// Other and StopOther look after pending work of other types than jobs, such
	// as children. Other waits at most that long for its end. They report false
	// for what they do not know. The type before a handle may be missing. nil knows none.
	Other     func(ctx context.Context, handle string, wait time.Duration) (agent.Result, bool)
	StopOther func(ctx context.Context, handle string) (agent.Result, bool)

	// Others names the latest pending work of other types, and how it stands; may be nil.
	Others func() []string

	// OutputTool and StopTool are the names under which the model knows
	// task__output and task__stop; "" = TaskOutput, TaskStop.
	OutputTool, StopTool string

	// Masked reports whether a text has a mask in it, in the place of a secret that
	// the model was not shown; nil = nothing is masked. A command that writes files
	// and has one is refused: the mask would come to stand in a file.
	Masked func(text string) bool
}

// Shell makes the tools that work with processes, and owns the background jobs
// of a session. It is safe for concurrent use.
type Shell struct {
	Config
	programs versions

	life     context.Context // of jobs
	end      context.CancelFunc
	settling context.Context // of settling them
	endAll   context.CancelFunc
	watching sync.WaitGroup

	mu     sync.Mutex
	closed bool
	jobs   []*job // oldest first
}

// New returns a Shell.
func New(c Config) *Shell {
	if c.Box == nil {
		panic("shell: a Shell without a Box")
	}
	if c.Path == "" {
		c.Path = usualShell()
	}
	if c.OutputTool == "" {
		c.OutputTool = "TaskOutput"
	}
	if c.StopTool == "" {
		c.StopTool = "TaskStop"
	}
	c.Env = kit.Quiet(c.Env)
	s := &Shell{Config: c}
	s.life, s.end = context.WithCancel(context.Background())
	s.settling, s.endAll = context.WithCancel(context.Background())
	return s
}

// settleGrace is how long settling may go on after Close has been called.
const settleGrace = 5 * time.Second

// Close stops the jobs and settles them, and waits for that: at most a second for
// the jobs to end, and settleGrace for Settle, which must not wait for Close.
// Afterwards nothing is settled and no job can be started. The Box stays open.
func (s *Shell) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	defer time.AfterFunc(settleGrace, s.endAll).Stop()
	s.watching.Wait()
	s.endAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		j.out.Close()
	}
	s.jobs = nil
}

// Tools returns the tools. Those that look after pending work are only there if
// there can be any.
func (s *Shell) Tools() []agent.Tool {
	list := []agent.Tool{s.bash(), s.script()}
	if s.Settle != nil || s.Other != nil {
		list = append(list, s.taskOutput(), s.taskStop())
	}
	return append(list, s.processList(), s.processSignal(), s.environment())
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
