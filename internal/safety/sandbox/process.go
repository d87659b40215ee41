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
	"syscall"
	"time"

	"dure/agent"
)

// A Process is a command that was started. It ends with its context, with
// [Process.Stop] and with its box, whether or not somebody waits for it. It is
// safe for concurrent use.
//
// What ends it before its time ends its group, the session of its terminal, and
// on Linux also those of its descendants that have left both but kept their
// environment. A descendant that left its group and changed its environment, or
// that left its group on another system, cannot be found; nor is one looked for
// when the command ends by itself.
type Process struct {
	box   *Box
	cmd   *exec.Cmd
	group group
	mark  string   // NAME=value in its environment and in that of its descendants
	jail  jail     // nil = it is not confined
	watch *witness // of its output, when it is
	start time.Time

	pipes []*pipe  // its output, on the way to writers
	out   *outlet  // its output, for the caller
	in    *inlet   // its input, from the caller
	term  *os.File // its terminal

	exited  chan struct{} // the command is dead
	drained chan struct{} // nobody copies its output any more
	reaped  chan struct{} // its group is dead, and state is set
	stuck   chan struct{} // it should be dead and is not
	done    chan struct{} // exit and err are set
	state   *os.ProcessState
	waitErr error
	exit    Exit
	err     error

	once   sync.Once // of stop and kill
	mu     sync.Mutex
	cut    bool // something ended it before its own end
	killed bool // that was stop
	over   bool // the group is dead: its number may name another one
}

// Start starts a command and returns while it runs. Its context ends it whenever
// it is over; a context that is over starts nothing. The goroutine that calls
// must not be locked to its thread: on Linux the command dies with that thread.
func (b *Box) Start(ctx context.Context, c Cmd) (*Process, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("starting a command: it is empty")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Argv[0], err)
	}
	p := &Process{
		box: b, start: time.Now(),
		exited: make(chan struct{}), drained: make(chan struct{}), reaped: make(chan struct{}),
		stuck: make(chan struct{}), done: make(chan struct{}),
	}
	if err := p.launch(c); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Argv[0], err)
	}
	cancel := func() {}
	if c.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	var id agent.Process
	if c.Spawned != nil {
		id = p.group.identity() // while nobody can have reaped it
	}
	go p.reap()
	go func() {
		defer cancel()
		p.serve(ctx)
	}()
	if c.Spawned != nil {
		c.Spawned(id)
	}
	return p, nil
}

// Exited is closed when the process has ended with everything it had started,
// and its output has been written: Wait does not wait any more.
func (p *Process) Exited() <-chan struct{} { return p.done }

// Wait waits for the end, and says how the process ended. It may be called more
// than once. The error is about waiting: [ErrStuck], or the system's.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Stop ends the process and its group, politely first, and waits: a process that
// ignores SIGTERM is killed, all within a second. One that has ended stays as
// it is.
func (p *Process) Stop() (Exit, error) {
	p.once.Do(p.stop)
	return p.Wait()
}

// Signal sends a signal to the whole group of the process. On Windows only
// SIGTERM and SIGKILL can be sent, and both kill.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.isExited() {
		return os.ErrProcessDone
	}
	if err := p.group.send(sig); err != nil {
		return fmt.Errorf("sending %s: %w", sig, err)
	}
	return nil
}

// In is the input of a process that was started with PipeIn, or on a terminal;
// it is nil otherwise. A write waits until the process has read, and fails when
// it has ended. Closing it ends the input; on a terminal it types Ctrl-D.
func (p *Process) In() io.WriteCloser {
	if p.in == nil {
		return nil
	}
	return p.in
}

// Out is the output of a process that was started with PipeOut; it is nil
// otherwise. It ends soon after the process, even if somebody else still holds
// it, and has everything that was written before. The caller closes it.
func (p *Process) Out() io.ReadCloser {
	if p.out == nil {
		return nil
	}
	return p.out
}

// Pipes is the process as one that is spoken with over its standard streams. Closing it stops
// the process.
func (p *Process) Pipes() io.ReadWriteCloser { return pipes{p} }

type pipes struct{ p *Process }

func (s pipes) Read(b []byte) (int, error)  { return s.p.Out().Read(b) }
func (s pipes) Write(b []byte) (int, error) { return s.p.In().Write(b) }

func (s pipes) Close() error {
	_, err := s.p.Stop()
	return errors.Join(err, s.p.Out().Close())
}

// Resize changes the size of the terminal of a process that has one.
func (p *Process) Resize(s Size) error {
	if p.term == nil {
		return errors.New("resizing a terminal: the process has none")
	}
	return resize(p.term, s)
}

// launch starts the command. The lock makes those who want to end it wait until
// there is something to end.
func (p *Process) launch(c Cmd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.box.enter(p); err != nil {
		return err
	}
	err := p.connect(c)
	if err != nil {
		p.closeEnds()
		if p.out != nil {
			p.out.Close()
		}
		p.box.leave(p)
		p.over = true
		close(p.exited)
		close(p.done)
		return err
	}
	p.box.watcher.add(&p.group)
	return nil
}

// connect gives the command its environment and the ends of its pipes, and
// starts it.
func (p *Process) connect(c Cmd) error {
	p.cmd = exec.Command(c.Argv[0], c.Argv[1:]...)
	p.cmd.Dir, p.cmd.Env = c.Dir, slices.Clip(c.Env)
	if p.mark != "" {
		p.cmd.Env = append(p.cmd.Env, p.mark)
	}
	if p.cmd.Env == nil {
		p.cmd.Env = []string{}
	}
	wire := p.wire
	if c.PTY != nil {
		wire = p.wireTerminal
	}
	theirs, err := wire(c) // the command has its own copies once it runs
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	if err != nil {
		return err
	}
	if err := p.confine(c); err != nil {
		return err
	}
	if p.cmd.Err != nil {
		return blame{p.cmd.Err}
	}
	return p.begin(func() (jail, error) { return p.box.jail(p.cmd, c) })
}

// wire connects the command to pipes, and its input to a pipe or a file.
func (p *Process) wire(c Cmd) (theirs []*os.File, err error) {
	switch {
	case c.PipeIn:
		read, write, err := os.Pipe()
		if err != nil {
			return theirs, fmt.Errorf("making a pipe: %w", err)
		}
		p.in, p.cmd.Stdin = &inlet{File: write}, read
		theirs = append(theirs, read)
	case c.In != nil:
		in, err := inputFile(p.box.temp, c.In)
		if err != nil {
			return theirs, err
		}
		p.cmd.Stdin = in
		theirs = append(theirs, in)
	}
	// There is a pipe even when nobody wants the output.
	read, out, err := os.Pipe()
	if err != nil {
		return theirs, fmt.Errorf("making a pipe: %w", err)
	}
	theirs = append(theirs, out)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if c.PipeOut {
		p.out = &outlet{read}
	} else {
		p.pipes = append(p.pipes, &pipe{read: read, to: c.Out})
	}
	if c.Err == nil && !c.PipeOut {
		return theirs, nil
	}
	read, apart, err := os.Pipe()
	if err != nil {
		return theirs, fmt.Errorf("making a pipe: %w", err)
	}
	p.cmd.Stderr = apart
	p.pipes = append(p.pipes, &pipe{read: read, to: c.Err})
	return append(theirs, apart), nil
}

// wireTerminal connects the command to a new terminal.
func (p *Process) wireTerminal(c Cmd) (theirs []*os.File, err error) {
	ours, tty, err := openTerminal(*c.PTY)
	if err != nil {
		return nil, err
	}
	p.term, p.in = ours, &inlet{File: ours, terminal: true}
	p.pipes = append(p.pipes, &pipe{read: ours, to: c.Out})
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.group.terminal = true
	return []*os.File{tty}, nil
}

// serve reads the output to its end, waits for the end of the group, and says
// how it was.
func (p *Process) serve(ctx context.Context) {
	stopped := make(chan struct{})
	running := context.AfterFunc(ctx, func() { defer close(stopped); p.once.Do(p.stop) })
	exit, err := p.collect()
	if !running() {
		<-stopped
	}
	p.mu.Lock()
	if p.killed {
		exit.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
		exit.Cancelled = !exit.TimedOut
	}
	p.mu.Unlock()
	exit.Duration = time.Since(p.start)
	p.exit, p.err = exit, err
	p.box.leave(p)
	close(p.done)
}

func (p *Process) collect() (Exit, error) {
	var apart sync.WaitGroup
	for _, pipe := range p.pipes[1:] {
		apart.Go(pipe.copy)
	}
	p.pipes[0].copy()
	apart.Wait()
	close(p.drained)
	defer p.closeEnds()
	select {
	case <-p.reaped:
	case <-p.stuck:
		return Exit{Code: -1}, fmt.Errorf("stopping %s: %w", p.cmd.Path, ErrStuck)
	}
	if _, ok := errors.AsType[*exec.ExitError](p.waitErr); p.waitErr != nil && !ok {
		return Exit{Code: -1}, fmt.Errorf("waiting for %s: %w", p.cmd.Path, p.waitErr)
	}
	exit := exitOf(p.state)
	if p.jail != nil {
		exit = p.jail.exit(exit)
		exit.Denied = append(p.jail.denied(), p.watch.list()...)
	}
	for _, pipe := range p.pipes {
		exit.Left = exit.Left || pipe.left
	}
	return exit, nil
}

// reap waits for the command, gives its output a moment to end, kills what is
// left of the group, and only then lets the system use its number again. It
// outlives serve only when the process is stuck.
func (p *Process) reap() {
	p.group.await(p.cmd)
	close(p.exited)
	p.expire(drainGrace)
	<-p.drained
	p.mu.Lock()
	p.over = true
	p.group.kill()
	p.group.killSession()
	if p.cut && p.mark != "" {
		killMarked(p.mark)
	}
	p.box.watcher.remove(&p.group)
	p.mu.Unlock()
	p.waitErr = p.group.wait(p.cmd)
	p.state = p.cmd.ProcessState
	if p.jail != nil {
		p.jail.close()
	}
	close(p.reaped)
}

// stop ends the group because nobody wants it any more: politely, then not.
func (p *Process) stop() {
	if !p.interrupt((*group).terminate, true) {
		return
	}
	if p.diesIn(termGrace) {
		return // reap kills those that stayed
	}
	p.kill()
}

// kill ends the group at once.
func (p *Process) kill() {
	if !p.interrupt((*group).kill, false) || p.diesIn(stuckGrace) {
		return
	}
	close(p.stuck)
	p.expire(0)
}

// interrupt reports whether the command was still there.
func (p *Process) interrupt(send func(*group), stop bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.isExited() {
		return false
	}
	p.cut = true
	p.killed = p.killed || stop
	send(&p.group)
	return true
}

func (p *Process) isExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *Process) diesIn(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}

// expire lets reading end after d even if somebody holds on to a pipe. Where a
// pipe has no deadlines, those who might hold it are killed at once.
func (p *Process) expire(d time.Duration) {
	at := time.Now().Add(d)
	if p.out != nil && p.out.SetReadDeadline(at) != nil {
		p.group.kill()
	}
	for _, pipe := range p.pipes {
		if pipe.read.SetReadDeadline(at) != nil {
			p.group.kill()
		}
	}
}

// closeEnds closes our ends of the pipes, but not the one that the caller reads.
func (p *Process) closeEnds() {
	for _, pipe := range p.pipes {
		pipe.read.Close()
	}
	if p.in != nil {
		p.in.File.Close()
	}
}
