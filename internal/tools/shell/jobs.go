package shell

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/kit"
)

// The bounds of background jobs of a session. What a job prints is bounded by
// its [sandbox.Capture].
const (
	maxRunning    = 16        // at once
	maxRemembered = 64        // running ones included
	maxKept       = 512 << 20 // bytes of output of jobs that have ended
)

// jobPrefix is the type of a job's handle.
const jobPrefix = "job:"

// A job is a command that runs in the background, or did.
type job struct {
	handle  string
	command string
	timeout time.Duration // 0 = none
	out     *sandbox.Capture
	proc    *sandbox.Process // set before anybody knows the handle
	log     func(error)
	done    chan struct{} // how it ended is known

	// The rest is under the lock of the Shell.
	status  taskStatus
	note    string // what a foreground call would have said of its end
	exit    sandbox.Exit
	seen    int64 // offset behind what the model has read
	settled bool
}

// taskStatus is what the model is told of a task.
type taskStatus string

const (
	running   taskStatus = "running"
	completed taskStatus = "completed"
	failed    taskStatus = "failed" // exit code, signal or timeout
	stopped   taskStatus = "stopped"
	lost      taskStatus = "lost" // the program ended before it
)

// launch starts a command as a job of the session.
func (s *Shell) launch(ctx context.Context, tc agent.ToolContext, argv []string, in bashInput, grant sandbox.Grant) (agent.Result, error) {
	env := agent.CallEnvOf(ctx)
	j := &job{
		handle: newHandle(), command: in.Command, out: s.Box.NewCapture(),
		status: running, done: make(chan struct{}),
	}
	j.log = func(err error) {
		if tc.Logger != nil {
			tc.Logger.Warn("settling a background job", "session", tc.InstanceKey, "handle", j.handle, "error", err)
		}
	}
	if in.Timeout > 0 {
		j.timeout = limited(in.Timeout)
	}
	if err := ctx.Err(); err != nil {
		return agent.Result{}, kit.Refuse(agent.ErrAborted, "the command was cancelled before it started", "")
	}
	if err := s.admit(j); err != nil {
		return agent.Result{}, err
	}
	cmd := s.command(tc, argv, env, in.PTY, grant)
	cmd.Timeout, cmd.Out, cmd.Spawned = j.timeout, j.out, env.Spawned
	proc, err := s.Box.Start(s.life, cmd)
	if err != nil {
		s.dismiss(j)
		return agent.Result{}, kit.Refuse(agent.ErrTool, err.Error(), "Check that the working folder and the program exist.")
	}
	s.mu.Lock()
	j.proc = proc
	s.mu.Unlock()
	go s.watch(j)
	return agent.Result{
		Status: agent.StatusPending, Handle: j.handle,
		Text: fmt.Sprintf("The command runs in the background as %s%s. You will be told when it ends; meanwhile, %s shows what it has printed and %s stops it.",
			j.handle, forAtMost(j.timeout), s.OutputTool, s.StopTool),
		Output: kit.Structured(shellAnswer{BackgroundTaskID: j.handle}),
	}, nil
}

func forAtMost(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(", for at most %s", d)
}

// newHandle returns a handle that no other job has, also not in other processes.
func newHandle() string { return jobPrefix + strings.ToLower(rand.Text()[:10]) }

// admit takes a job into the list, and promises its goroutine.
func (s *Shell) admit(j *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Settle == nil {
		return kit.Refuse(agent.ErrInput, "commands cannot be run in the background here", "Run it without run_in_background.")
	}
	if s.closed {
		return kit.Refuse(agent.ErrAborted, "the session is being closed", "")
	}
	var busy []string
	for _, j := range s.jobs {
		if j.status == running {
			busy = append(busy, j.handle)
		}
	}
	if len(busy) >= maxRunning {
		return kit.Refuse(agent.ErrTool, fmt.Sprintf("%d commands already run in the background: %s", len(busy), strings.Join(busy, ", ")),
			"Stop one with "+s.StopTool+" that is no longer needed, or wait for one to end.")
	}
	if s.forget(maxRemembered - 1); len(s.jobs) >= maxRemembered {
		return kit.Refuse(agent.ErrTool, "the results of earlier commands are still being stored", "Wait a moment, then try again.")
	}
	s.jobs = append(s.jobs, j)
	s.watching.Add(1)
	return nil
}

// forget drops jobs that have been settled, oldest first, until at most n are
// left and what they keep is within its bound. The session still knows how they
// came out.
func (s *Shell) forget(n int) {
	left, kept := len(s.jobs), int64(0)
	for _, j := range s.jobs {
		if j.settled {
			kept += j.out.Kept()
		}
	}
	s.jobs = slices.DeleteFunc(s.jobs, func(j *job) bool {
		if !j.settled || left <= n && kept <= maxKept {
			return false
		}
		left--
		kept -= j.out.Kept()
		j.out.Close()
		return true
	})
}

// dismiss takes back a job that could not be started.
func (s *Shell) dismiss(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = slices.DeleteFunc(s.jobs, func(k *job) bool { return k == j })
	j.out.Close()
	s.watching.Done()
}

// watch waits for the end of a job and settles it.
func (s *Shell) watch(j *job) {
	defer s.watching.Done()
	exit, err := j.proc.Wait()
	r := jobResult(j, exit, err)
	s.mu.Lock()
	j.exit = exit
	j.status, j.note = outcome(r)
	if exit.Cancelled {
		j.status = stopped
	}
	s.mu.Unlock()
	close(j.done)
	if err := s.Settle(s.settling, agent.Settlement{Handle: j.handle, Result: r}); err != nil {
		j.log(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j.settled = true
	s.forget(maxRemembered)
}

// jobResult is what the command would have answered in the foreground. The
// capture stays open behind the stream: the job is still read.
func jobResult(j *job, exit sandbox.Exit, err error) agent.Result {
	if err != nil {
		r := agent.Failure(agent.ErrTool, err.Error(), "")
		if errors.Is(err, sandbox.ErrStuck) {
			r.Error.Suggestion = "Its process may still be there; look with the process list."
		}
		return r
	}
	r := shellResult(j.out, exit, j.timeout)
	if r.Stream != nil {
		r.Stream = io.NopCloser(r.Stream)
	}
	return r
}

// outcome returns the status that a result gives a task, and what is said of it.
func outcome(r agent.Result) (taskStatus, string) {
	switch {
	case r.Error != nil && r.Error.Code == agent.ErrLost:
		return lost, r.Error.Message
	case r.Error != nil:
		return failed, r.Error.Message
	case r.Failed():
		return failed, ""
	}
	return completed, ""
}

// task finds the job that a task_id means, with or without the type before it.
// The handle is what to look for elsewhere when there is none.
func (s *Shell) task(id string) (j *job, handle string) {
	handle = strings.TrimSpace(id)
	if !strings.Contains(handle, ":") {
		handle = jobPrefix + handle
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.handle == handle {
			return j, handle
		}
	}
	return nil, handle
}

// unknown is the error for a task that nobody knows.
func (s *Shell) unknown(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []string
	for _, j := range slices.Backward(s.jobs) {
		if known = append(known, fmt.Sprintf("%s (%s)", j.handle, j.status)); len(known) == maxRunning {
			break
		}
	}
	if s.Others != nil {
		known = append(known, s.Others()...)
	}
	suggestion := "Nothing has been started in the background yet."
	if known != nil {
		suggestion = "The latest tasks: " + strings.Join(known, ", ") + "."
	}
	return kit.Refuse(agent.ErrInput, "there is no task "+quote(id), suggestion)
}

// quote returns at most 80 bytes of s in quotes.
func quote(s string) string { return kit.Quote(s, 80) }
