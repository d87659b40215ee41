package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"dure/client/protocol"
)

// Command is how dure is started.
type Command struct {
	Path   string    // of the program; "" = dure, as PATH has it
	Args   []string  // flags of dure control
	Dir    string    // "" = where the host runs
	Env    []string  // nil = that of the host
	Stderr io.Writer // takes what is said to people; nil = nobody reads it
}

// Start starts dure as a child of this process. It ends with [Host.Close], with ctx, and with
// the process, in the middle of what runs.
func Start(ctx context.Context, c Command, cfg Config) (*Host, error) {
	p, err := start(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("starting dure: %w", err)
	}
	cfg.Initialize.EndWithInput = true
	return begin(ctx, p, cfg)
}

// process is dure as a child.
type process struct {
	in, out *os.File
	lines   *protocol.Reader
	kill    context.CancelFunc
	ended   chan struct{} // closed when the child is gone
	once    sync.Once
}

func start(ctx context.Context, c Command) (*process, error) {
	if c.Path == "" {
		c.Path = "dure"
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), in.Close())
	}
	life, kill := context.WithCancel(ctx)
	cmd := exec.CommandContext(life, c.Path, append([]string{"control"}, c.Args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, theirIn, theirOut, c.Stderr
	cmd.Cancel, cmd.WaitDelay = func() error { return terminate(cmd.Process) }, closeTime
	dieWithUs(cmd)
	p := &process{in: in, out: out, lines: protocol.NewReader(out, 0), kill: kill, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.ended)
		runtime.LockOSThread() // with which the child would die
		err := cmd.Start()
		started <- errors.Join(err, theirIn.Close(), theirOut.Close())
		if err == nil {
			_ = cmd.Wait() // what came of it was said in the protocol
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *process) Read() ([]byte, error) { return p.lines.Next() }

func (p *process) Write(data []byte) error {
	_, err := p.in.Write(append(data, '\n'))
	return err
}

// Close has the child end, and waits for it.
func (p *process) Close() (err error) {
	p.once.Do(func() {
		late := time.AfterFunc(closeTime, p.kill)
		err = p.in.Close()
		<-p.ended
		late.Stop()
		p.kill()
		err = errors.Join(err, p.out.Close())
	})
	return err
}
