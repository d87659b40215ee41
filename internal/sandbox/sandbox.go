// Package sandbox starts processes and sees to it that they end: each one is the
// head of its own process group, and the whole group dies with its call, with
// its context, with the [Box], and with this program, however that ends.
//
// It never decides whether a command may run. A Box starts one watchdog process
// when it is first used; a running command has one goroutine that waits for its
// exit, and one more when its error output is kept apart.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"dure/agent"
)

// The times in which a group of processes has to die. Their sum stays well below
// a second, so that a cancelled call is over within one.
const (
	termGrace  = 200 * time.Millisecond // between SIGTERM and SIGKILL
	drainGrace = 200 * time.Millisecond // for output of processes that outlive the command
	stuckGrace = 200 * time.Millisecond // after SIGKILL, until a process counts as stuck
)

// ErrStuck says that a command did not die when it was killed. Its process is
// waited for in the background, for as long as it takes.
var ErrStuck = errors.New("the process does not die")

// Config configures a [Box]. The zero value works.
type Config struct {
	// Temp is the folder for output that does not fit into memory; "" = the
	// system's. Its files are private and have no name on Unix.
	Temp string
}

// A Box runs commands. It is safe for concurrent use.
type Box struct {
	temp    string
	watcher watchdog
}

// New returns a Box. It starts nothing.
func New(c Config) *Box { return &Box{temp: c.Temp} }

// Close kills what still runs and ends the watchdog.
func (b *Box) Close() error { return b.watcher.close() }

// Cmd says what to run.
type Cmd struct {
	Argv []string // program and arguments; the program is looked up on PATH
	Dir  string   // working folder; required
	Env  []string // the whole environment, but for the mark of the box; nil = empty
	In   io.Reader

	// Timeout ends the command; 0 = only the context does.
	Timeout time.Duration

	// Out receives what the command writes, in the order of arrival. Err, when
	// it is not nil, receives the error output apart from it. Both may be nil.
	Out, Err io.Writer

	// Spawned is told of the process once it has been started.
	Spawned func(agent.Process)
}

// Exit is how a command ended.
type Exit struct {
	Code      int    // 128 + signal number when a signal ended it
	Signal    string // name of that signal
	TimedOut  bool   // the timeout, or a deadline of the context, ended it
	Cancelled bool   // the context ended it otherwise
	Left      bool   // it left processes behind that held its output; they were killed
	Duration  time.Duration
}

// Interrupted reports whether the command was stopped before its end.
func (e Exit) Interrupted() bool { return e.TimedOut || e.Cancelled }

// NewCapture returns a capture that overflows into the box's folder.
func (b *Box) NewCapture() *Capture { return &Capture{dir: b.temp} }

// Run runs a command to its end and kills what is left of its group then. The
// error is about starting it; how it ended is in Exit. A context that is over
// starts nothing.
func (b *Box) Run(ctx context.Context, c Cmd) (Exit, error) {
	if len(c.Argv) == 0 {
		return Exit{}, errors.New("starting a command: it is empty")
	}
	if err := ctx.Err(); err != nil {
		return Exit{}, fmt.Errorf("starting %s: %w", c.Argv[0], err)
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	start := time.Now()
	r := &run{exited: make(chan struct{}), drained: make(chan struct{}), reaped: make(chan struct{}), stuck: make(chan struct{})}
	if err := r.start(b, c); err != nil {
		return Exit{}, fmt.Errorf("starting %s: %w", c.Argv[0], err)
	}
	stopped := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() { defer close(stopped); r.stop() })
	exit, err := r.wait()
	if !cancel() {
		<-stopped
	}
	if r.killed {
		exit.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
		exit.Cancelled = !exit.TimedOut
	}
	exit.Duration = time.Since(start)
	return exit, err
}

// run is one running command. The goroutine in reap owns its end.
type run struct {
	box   *Box
	cmd   *exec.Cmd
	group group
	pipes []*pipe

	exited  chan struct{} // the command is dead
	drained chan struct{} // nobody reads its output any more
	reaped  chan struct{} // its group is dead, and state is set
	stuck   chan struct{} // it should be dead and is not
	state   *os.ProcessState
	waitErr error

	mu     sync.Mutex
	killed bool // stop came before the command's own end
	over   bool // the group is dead: its number may name another one
}

func (r *run) start(b *Box, c Cmd) (err error) {
	r.box, r.cmd = b, exec.Command(c.Argv[0], c.Argv[1:]...)
	r.cmd.Dir, r.cmd.Env = c.Dir, slices.Clip(c.Env)
	if mark := b.watcher.ready(); mark != "" {
		r.cmd.Env = append(r.cmd.Env, mark)
	}
	if r.cmd.Env == nil {
		r.cmd.Env = []string{}
	}
	var theirs []*os.File // the command has its own copies once it runs
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
		if err != nil {
			r.closePipes()
		}
	}()
	if c.In != nil {
		in, err := inputFile(b.temp, c.In)
		if err != nil {
			return err
		}
		theirs = append(theirs, in)
		r.cmd.Stdin = in
	}
	// There is a pipe even when nobody wants the output.
	out, err := r.pipe(c.Out)
	if err != nil {
		return err
	}
	theirs = append(theirs, out)
	r.cmd.Stdout, r.cmd.Stderr = out, out
	if c.Err != nil {
		apart, err := r.pipe(c.Err)
		if err != nil {
			return err
		}
		theirs = append(theirs, apart)
		r.cmd.Stderr = apart
	}
	if err := r.group.start(r.cmd); err != nil {
		return err
	}
	b.watcher.add(&r.group)
	if c.Spawned != nil {
		c.Spawned(r.group.identity())
	}
	return nil
}

// wait reads the output to its end and waits for the end of the group.
func (r *run) wait() (Exit, error) {
	go r.reap()
	var apart sync.WaitGroup
	for _, p := range r.pipes[1:] {
		apart.Go(p.copy)
	}
	r.pipes[0].copy()
	apart.Wait()
	close(r.drained)
	defer r.closePipes()
	select {
	case <-r.reaped:
	case <-r.stuck:
		return Exit{Code: -1}, fmt.Errorf("stopping %s: %w", r.cmd.Path, ErrStuck)
	}
	if _, ok := errors.AsType[*exec.ExitError](r.waitErr); r.waitErr != nil && !ok {
		return Exit{Code: -1}, fmt.Errorf("waiting for %s: %w", r.cmd.Path, r.waitErr)
	}
	exit := exitOf(r.state)
	for _, p := range r.pipes {
		exit.Left = exit.Left || p.left
	}
	return exit, nil
}

// reap waits for the command, gives its output a moment to end, kills what is
// left of the group, and only then lets the system use its number again. It
// outlives wait only when the process is stuck.
func (r *run) reap() {
	r.group.await(r.cmd)
	close(r.exited)
	r.expire(drainGrace)
	<-r.drained
	r.mu.Lock()
	r.over = true
	r.group.kill()
	r.box.watcher.remove(&r.group)
	r.mu.Unlock()
	r.waitErr = r.group.wait(r.cmd)
	r.state = r.cmd.ProcessState
	close(r.reaped)
}

// stop ends the group because the context is over: politely, then not.
func (r *run) stop() {
	if !r.signal((*group).terminate) {
		return
	}
	if r.diesIn(termGrace) {
		return // reap kills those that stayed
	}
	r.signal((*group).kill)
	if r.diesIn(stuckGrace) {
		return
	}
	close(r.stuck)
	r.expire(0)
}

// signal reports whether the command was still there.
func (r *run) signal(send func(*group)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.exited:
		return false
	default:
	}
	if r.over {
		return false
	}
	r.killed = true
	send(&r.group)
	return true
}

func (r *run) diesIn(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.exited:
		return true
	case <-t.C:
		return false
	}
}

// expire lets reading end after d even if somebody holds on to a pipe. Where a
// pipe has no deadlines, those who might hold it are killed at once.
func (r *run) expire(d time.Duration) {
	for _, p := range r.pipes {
		if p.read.SetReadDeadline(time.Now().Add(d)) != nil {
			r.group.kill()
		}
	}
}

func (r *run) closePipes() {
	for _, p := range r.pipes {
		p.read.Close()
	}
}

// pipe adds a pipe that ends in to and returns the end for the command.
func (r *run) pipe(to io.Writer) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	r.pipes = append(r.pipes, &pipe{read: read, to: to})
	return write, nil
}

// A pipe carries output to a writer.
type pipe struct {
	read *os.File
	to   io.Writer
	left bool // reading ended while somebody could still write
}

// copy reads to the end, also past errors of the writer: a command that cannot
// get rid of its output would never end.
func (p *pipe) copy() {
	buf := make([]byte, 4<<10)
	for {
		n, err := p.read.Read(buf)
		if n > 0 && p.to != nil {
			if _, werr := p.to.Write(buf[:n]); werr != nil {
				p.to = nil
			}
		}
		if err != nil {
			p.left = errors.Is(err, os.ErrDeadlineExceeded)
			return
		}
		if n == len(buf) && n < 64<<10 {
			buf = make([]byte, 4*n)
		}
	}
}

// inputFile returns a file that holds what in has. A file needs no goroutine,
// and a command that does not read it blocks nobody.
func inputFile(dir string, in io.Reader) (*os.File, error) {
	f, err := tempFile(dir)
	if err != nil {
		return nil, fmt.Errorf("making the input: %w", err)
	}
	if _, err = io.Copy(f, in); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("making the input: %w", err)
	}
	return f, nil
}
