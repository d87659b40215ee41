// Package apart runs agents in processes of their own. It is both ends: [Processes] starts a
// process and answers for the parent of its session, and [Serve] is the life of the process.
// Each process has goroutines that read what it says and answer it; [Processes.Run] waits for
// them.
package apart

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/extend/swarm"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
)

// Command is the command of the program that is the process of an agent.
const Command = "agent-worker"

// Limits of a process of an agent.
const (
	grace = 20 * time.Second // the default of Config.Grace
	tail  = 4 << 10          // bytes of its error output that are kept
)

// Config says how processes are started, and what they may do. All functions are required.
type Config struct {
	Command []string      // nil = this program, as the process of an agent
	Grace   time.Duration // how long one may take to end; default 20 s
	Dir     string
	Env     []string
	Temp    func() string // the folder for output that does not fit into memory; "" = there is none

	// Job returns what a process is to do, or why there can be none.
	Job func(plug.Apart) (Job, error)

	// Decide decides about a call of an agent as about one of its parent. soFar is what the
	// process has said, where it asks for more.
	Decide func(parent string, p agent.Proposal, soFar agent.Decision) agent.Decision

	// Mirrored is told what the process has written of its session for other programs.
	Mirrored func(parent, child string, lines []byte, err error)

	Redact func(string) string // masks secrets
}

// Processes are the processes of agents, by the session that each of them runs. It is safe
// for concurrent use.
type Processes struct {
	cfg Config

	mu  sync.Mutex
	all map[string]*worker
}

// New returns no processes yet.
func New(cfg Config) *Processes { return &Processes{cfg: cfg, all: map[string]*worker{}} }

func (ps *Processes) get(session string) *worker {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.all[session]
}

// worker is the process of an agent.
type worker struct {
	cfg  *Config
	job  plug.Apart
	line *line
	task string

	serving sync.WaitGroup
	result  *result

	mu    sync.Mutex
	asks  map[string]context.CancelFunc // that are being answered
	holds map[string]func(plug.Amount)
	count int
	did   []agent.Event
	more  chan struct{} // closed when there is more of did, or the end
	over  bool
}

// Run runs an agent in a process of its own, to its end. Whatever becomes of the process,
// nothing of it outlives the call, nor this program.
func (ps *Processes) Run(ctx context.Context, j plug.Apart) (agent.Outcome, error) {
	c := &ps.cfg
	job, err := c.Job(j)
	if err != nil {
		return agent.Outcome{}, err
	}
	argv := c.Command
	if len(argv) == 0 {
		self, err := os.Executable()
		if err != nil {
			return agent.Outcome{}, err
		}
		argv = []string{self, Command}
	}
	box := sandbox.New(sandbox.Config{Temp: c.Temp()})
	defer box.Close()
	last := &lastWords{}
	p, err := box.Start(context.WithoutCancel(ctx), sandbox.Cmd{Argv: argv, Dir: c.Dir, Env: c.Env, PipeIn: true, PipeOut: true, Err: last, Unconfined: true})
	if err != nil {
		return agent.Outcome{}, err
	}
	id := j.Open.New
	w := &worker{cfg: c, job: j, task: id, asks: map[string]context.CancelFunc{}, holds: map[string]func(plug.Amount){}, more: make(chan struct{})}
	w.line = newLine(p.In(), cmp.Or(job.Above, "main"), cmp.Or(j.Child.Agent, "agent"), id)
	ps.mu.Lock()
	ps.all[id] = w
	ps.mu.Unlock()
	defer func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		delete(ps.all, id)
	}()

	life, end := context.WithCancel(ctx)
	defer end()
	w.serving.Go(func() { _ = w.line.send(swarm.Delegate, w.task, job, false) }) // one that does not read it ends
	grace := cmp.Or(c.Grace, grace)
	stopped := context.AfterFunc(ctx, func() {
		w.serving.Go(func() {
			defer time.AfterFunc(grace, func() { _, _ = p.Stop() }).Stop()
			_ = w.line.send(swarm.Shutdown, w.task, struct{}{}, false) // as above
			<-p.Exited()
		})
	})
	err = readLines(p.Out(), func(m swarm.Message) error { return w.take(life, m) })
	end()
	w.line.hangUp()
	_ = p.In().Close()
	if !errors.Is(err, io.EOF) && w.result == nil {
		_, _ = p.Stop() // it has said something that nobody understands
	}
	late := time.AfterFunc(grace, func() { _, _ = p.Stop() })
	exit, _ := p.Wait()
	late.Stop()
	stopped()
	_ = p.Out().Close()
	w.finish()
	switch {
	case w.result != nil && w.result.Error != "" && ctx.Err() == nil:
		return w.result.Outcome, errors.New(w.result.Error)
	case w.result != nil:
		return w.result.Outcome, context.Cause(ctx)
	case ctx.Err() != nil:
		return agent.Outcome{}, context.Cause(ctx)
	case !errors.Is(err, io.EOF):
		return agent.Outcome{}, fmt.Errorf("its process was ended: %w", err)
	}
	return agent.Outcome{}, fmt.Errorf("its process ended before its work did (exit code %d)%s", exit.Code, last.said(c.Redact))
}

// take takes a message of the process.
func (w *worker) take(ctx context.Context, m swarm.Message) error {
	switch m.Type {
	case swarm.DelegateResult:
		var r result
		if m.Correlation != w.task || w.result != nil || json.Unmarshal([]byte(m.Payload), &r) != nil {
			return errNoMessage
		}
		w.result = &r
		return nil
	case swarm.Event:
		n, err := noteOf(m)
		if err != nil {
			return err
		}
		return w.event(ctx, m.Correlation, n)
	}
	return fmt.Errorf("%w: %.40q", errNoMessage, m.Type)
}

func (w *worker) event(ctx context.Context, id string, n note) error {
	switch n.Kind {
	case kindOpened:
		if w.job.Child.Opened != nil {
			w.job.Child.Opened(w.task)
			w.job.Child.Opened = nil
		}
	case kindDid:
		if n.Event == nil {
			return errNoMessage
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.did = append(w.did, *n.Event); len(w.did) > maxDid {
			w.did = w.did[1:]
			w.count++
		}
		close(w.more)
		w.more = make(chan struct{})
	case kindMirrored:
		var err error
		if n.Error != "" {
			err = errors.New(n.Error)
		}
		w.cfg.Mirrored(w.job.Parent, n.Message, []byte(n.Text), err)
	case kindAnswer:
		w.line.answered(id, n)
	case kindForget:
		w.mu.Lock()
		defer w.mu.Unlock()
		if stop := w.asks[id]; stop != nil {
			stop()
		}
	case kindSettle:
		w.mu.Lock()
		settle := w.holds[n.Hold]
		delete(w.holds, n.Hold)
		w.mu.Unlock()
		if settle != nil {
			settle(n.Request)
		}
	case kindDecide, kindQuestion, kindReserve:
		return w.serve(ctx, id, n)
	default:
		return fmt.Errorf("%w: %.40q", errNoMessage, n.Kind)
	}
	return nil
}

// maxDid is how many events are kept for who shows them.
const maxDid = 256

// serve answers a question of the process.
func (w *worker) serve(ctx context.Context, id string, n note) error {
	if n.Kind != kindReserve && (n.Proposal == nil || n.Decision == nil) {
		return errNoMessage
	}
	ctx, stop := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asks) >= maxAsks || w.asks[id] != nil {
		stop()
		return fmt.Errorf("%w: it asks too much", errNoMessage)
	}
	w.asks[id] = stop
	w.serving.Go(func() {
		defer func() {
			stop()
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.asks, id)
		}()
		a := note{Kind: kindAnswer}
		switch n.Kind {
		case kindDecide:
			d := w.cfg.Decide(w.job.Parent, *n.Proposal, *n.Decision)
			a.Decision = &d
		case kindQuestion:
			d, err := w.job.Question(ctx, n.Approval, w.task, *n.Proposal, *n.Decision)
			if a.Decision = &d; err != nil {
				a.Error = err.Error()
			}
		case kindReserve:
			a = w.reserve(id, n)
		}
		_ = w.line.send(swarm.Event, id, a, false) // whoever is gone needs no answer
	})
	return nil
}

// reserve puts aside what the process asks for, until it settles that or is gone.
func (w *worker) reserve(id string, n note) note {
	a := note{Kind: kindAnswer}
	granted, settle, err := w.job.Reserve(n.Request, n.Unit, n.Least, n.Most)
	if err != nil {
		r, _ := errors.AsType[*plug.Refused](err)
		a.Error, a.Unpriced = err.Error(), r != nil && r.Unpriced
		return a
	}
	w.mu.Lock()
	w.holds[id] = settle
	w.mu.Unlock()
	a.Most, a.Hold = granted, id
	return a
}

// finish waits for what the process has asked for, gives back what it has put aside, and
// ends what shows it.
func (w *worker) finish() {
	w.serving.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, settle := range w.holds {
		settle(plug.Amount{})
	}
	w.over = true
	close(w.more)
}

// Events are what an agent in a process of its own does, to be shown; ok = it is one.
func (ps *Processes) Events(ctx context.Context, session string) (events iter.Seq2[agent.Event, error], ok bool) {
	if w := ps.get(session); w != nil {
		return w.events(ctx), true
	}
	return nil, false
}

// Tell puts a text of another agent before the model of an agent in a process of its own;
// ok = it is one.
func (ps *Processes) Tell(ctx context.Context, session, id, text, by string) (ok bool, err error) {
	w := ps.get(session)
	if w == nil {
		return false, nil
	}
	_, err = w.line.ask(ctx, note{Kind: kindTell, Message: id, Text: ps.cfg.Redact(text), By: by})
	return true, err
}

// events are what the agent does, to be shown.
func (w *worker) events(ctx context.Context) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for next := 0; ; {
			w.mu.Lock()
			next = max(next, w.count)
			batch, more, over := w.did[next-w.count:], w.more, w.over
			w.mu.Unlock()
			for _, e := range batch {
				if next++; !yield(e, nil) {
					return
				}
			}
			if over {
				return
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}
}

// lastWords keeps the end of what a process writes to its error output.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

// Write never fails.
func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text = append(l.text, p...); len(l.text) > tail {
		l.text = l.text[len(l.text)-tail:]
	}
	return len(p), nil
}

// said is the last line, behind a colon.
func (l *lastWords) said(shown func(string) string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(l.text), "")), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Sprintf(": %.300s", shown(last))
	}
	return ""
}
