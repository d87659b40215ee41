// Package sandbox starts processes and sees to it that they end: each is the head
// of its own group, which dies with its call, its context, the [Box] and this
// program. With a [Confinement], commands write only their workspace, caches and a
// /tmp of their own, change nothing that is protected there, read no credentials,
// and reach the network by the proxy of package egress or not at all; [Box.Explain]
// says what of that holds here. It never decides whether a command may run. A Box
// has one watchdog process and, on Linux, for a minute after a confined command what
// the next one is started with, in a goroutine; a running command has a goroutine
// that waits for its exit, one that reads its output, one more when its error output
// is kept apart, and those of its proxy. [Box.Close] waits for them.
package sandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
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

// ErrClosed says that a command was to be started in a box that is closed.
var ErrClosed = errors.New("the box is closed")

// ErrProgram says that a command could not be started for what its program is: it is
// missing, or nothing that the user could start either. Whatever else keeps a command
// from being started is no fault of it.
var ErrProgram = errors.New("the program cannot be started")

// A blame is an error of a program that counts as [ErrProgram], and says what it said.
type blame struct{ error }

func (b blame) Unwrap() error { return b.error }

func (blame) Is(target error) bool { return target == ErrProgram }

// blamed has an error of starting a program be blamed on it where it could not be
// started without confinement.
func blamed(err error, dir, program string) error {
	if !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	switch i, statErr := os.Stat(dir); {
	case err == nil || statErr != nil || !i.IsDir():
		return err
	case errors.Is(err, syscall.ENOEXEC), (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) && !startable(program):
		return blame{err}
	}
	return err
}

// startable reports whether a program can be started as far as its file tells: it is
// there, and what its first line names to run it.
func startable(path string) bool {
	if _, err := exec.LookPath(path); err != nil {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return true // it needs not be readable
	}
	defer f.Close()
	head := make([]byte, 256) // what the kernel reads of it
	n, _ := f.Read(head)
	line, script := strings.CutPrefix(string(head[:n]), "#!")
	if !script {
		return true
	}
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return false
	}
	_, err = exec.LookPath(words[0])
	return err == nil
}

// Config configures a [Box]. The zero value works.
type Config struct {
	// Temp is the folder for output that does not fit into memory; "" = the
	// system's. Its files are private and have no name on Unix.
	Temp string

	// Confine is what commands may touch; nil = all that the user may.
	Confine *Confinement

	// Prepare is called once, right before the first command that is confined. It may
	// complete the confinement, and returns variables, NAME=value, that confined
	// commands have in place of their own. Without it they have their own.
	Prepare func(*Confinement) (vars []string, err error)

	// Mechanisms are those of the system that may be used, for tests; nil = all.
	// On Linux they are bwrap, namespaces and landlock.
	Mechanisms []string
}

// A Box runs commands. It is safe for concurrent use.
type Box struct {
	temp        string
	confinement *Confinement // nil = none
	cell        cell         // what this system confines with
	prepare     func() ([]string, error)
	watcher     watchdog

	mu      sync.Mutex
	closed  bool
	count   int64 // of commands, for their marks
	running map[*Process]bool
}

// New returns a Box. It starts nothing.
func New(c Config) *Box {
	b := &Box{temp: c.Temp, confinement: c.Confine, running: map[*Process]bool{}}
	b.cell.init(c)
	b.prepare = sync.OnceValues(func() ([]string, error) {
		if c.Prepare == nil {
			return nil, nil
		}
		return c.Prepare(b.confinement)
	})
	return b
}

// Close kills what still runs, waits for its end, and ends the watchdog. Nothing
// can be started any more.
func (b *Box) Close() error {
	b.mu.Lock()
	b.closed = true
	left := slices.Collect(maps.Keys(b.running))
	b.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range left {
		all.Go(func() {
			p.once.Do(p.kill)
			<-p.done
		})
	}
	all.Wait()
	b.cell.close()
	return b.watcher.close()
}

// enter counts a command in that is about to start, and gives it its mark.
func (b *Box) enter(p *Process) error {
	mark := b.watcher.ready()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	b.count++
	b.running[p] = true
	if mark != "" {
		p.mark = mark + "." + strconv.FormatInt(b.count, 10)
	}
	return nil
}

// leave forgets a command that has ended.
func (b *Box) leave(p *Process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, p)
}

// Cmd says what to run.
type Cmd struct {
	Argv []string // program and arguments; the program is looked up on PATH
	Dir  string   // working folder; required
	Env  []string // the whole environment, but for the mark of the box; nil = empty

	// In is the whole input; nil = none. It is read before the command starts.
	In io.Reader

	// Timeout ends the command; 0 = only the context does.
	Timeout time.Duration

	// Out receives what the command writes, in the order of arrival. Err, when
	// it is not nil, receives the error output apart from it. Both may be nil.
	Out, Err io.Writer

	// PipeIn keeps the input open for [Process.In], and takes the place of In.
	// PipeOut leaves the output to [Process.Out], and takes the place of Out; the
	// error output then goes to Err, or nowhere. They are for [Box.Start].
	PipeIn, PipeOut bool

	// PTY runs the command on a terminal of this size, as the head of a session
	// of its own, where there are terminals: see [HasPTY]. Its output and error
	// output are one, and [Process.In] is its keyboard; In, Err and the pipes
	// are not used.
	PTY *Size

	// Spawned is told of the process once it has been started.
	Spawned func(agent.Process)

	// Grant changes the confinement of the box for this command. Unconfined
	// leaves it out altogether: for children of the runtime that the user has
	// chosen himself and that cannot work inside, such as an editor.
	Grant      Grant
	Unconfined bool
}

// Size is the size of a terminal, in characters.
type Size struct{ Cols, Rows uint16 }

// Exit is how a command ended.
type Exit struct {
	Code      int    // 128 + signal number when a signal ended it
	Signal    string // name of that signal
	TimedOut  bool   // the timeout, or a deadline of the context, ended it
	Cancelled bool   // the context ended it otherwise, or [Process.Stop] did
	Left      bool   // it left processes behind that held its output; they were killed
	Duration  time.Duration
	Denied    []Denial // what the confinement refused it, as far as is known; at most 16
}

// Interrupted reports whether the command was stopped before its end.
func (e Exit) Interrupted() bool { return e.TimedOut || e.Cancelled }

// NewCapture returns a capture that overflows into the box's folder.
func (b *Box) NewCapture() *Capture { return &Capture{dir: b.temp} }

// Run runs a command to its end and kills what is left of its group then. The
// error is about starting it; how it ended is in Exit. A context that is over
// starts nothing.
func (b *Box) Run(ctx context.Context, c Cmd) (Exit, error) {
	p, err := b.Start(ctx, c)
	if err != nil {
		return Exit{}, err
	}
	return p.Wait()
}
