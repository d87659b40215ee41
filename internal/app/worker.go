package app

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
	"dure/internal/kernel/budget"
	"dure/internal/kernel/session"
	"dure/internal/safety/sandbox"
	"dure/internal/state/journal"
)

// WorkerCommand is the command of the program that is the process of an agent.
const WorkerCommand = "agent-worker"

// Bounds of a process of an agent.
const (
	workerGrace = 20 * time.Second // the default of Options.WorkerGrace
	workerTail  = 4 << 10          // bytes of its error output that are kept
)

// workers are the processes of agents, by the session that each of them runs. It is safe
// for concurrent use.
type workers struct {
	mu  sync.Mutex
	all map[string]*worker
}

func (w *workers) get(session string) *worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all[session]
}

func (w *workers) put(session string, one *worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]*worker{}
	}
	if w.all[session] = one; one == nil {
		delete(w.all, session)
	}
}

// worker is the process of an agent.
type worker struct {
	app  *App
	job  session.Apart
	line *workerLine
	task string

	serving sync.WaitGroup
	result  *workerResult

	mu    sync.Mutex
	asks  map[string]context.CancelFunc // that are being answered
	holds map[string]func(budget.Amount)
	count int
	did   []agent.Event
	more  chan struct{} // closed when there is more of did, or the end
	over  bool
}

// apart runs an agent in a process of its own, to its end. Whatever becomes of the process,
// nothing of it outlives the call, nor this program.
func (a *App) apart(ctx context.Context, j session.Apart) (agent.Outcome, error) {
	job, err := a.workerJob(j)
	if err != nil {
		return agent.Outcome{}, err
	}
	argv := a.opts.Worker
	if len(argv) == 0 {
		self, err := os.Executable()
		if err != nil {
			return agent.Outcome{}, err
		}
		argv = []string{self, WorkerCommand}
	}
	box := sandbox.New(sandbox.Config{Temp: a.temp()})
	defer box.Close()
	last := &lastWords{}
	p, err := box.Start(context.WithoutCancel(ctx), sandbox.Cmd{Argv: argv, Dir: a.opts.Workdir, Env: a.opts.Environ, PipeIn: true, PipeOut: true, Err: last, Unconfined: true})
	if err != nil {
		return agent.Outcome{}, err
	}
	id := j.Open.New
	w := &worker{app: a, job: j, task: id, asks: map[string]context.CancelFunc{}, holds: map[string]func(budget.Amount){}, more: make(chan struct{})}
	w.line = newWorkerLine(p.In(), cmp.Or(job.Above, "main"), cmp.Or(j.Child.Agent, "agent"), id)
	a.workers.put(id, w)
	defer a.workers.put(id, nil)

	life, end := context.WithCancel(ctx)
	defer end()
	w.serving.Go(func() { _ = w.line.send(swarm.Delegate, w.task, job, false) }) // one that does not read it ends
	grace := cmp.Or(a.opts.WorkerGrace, workerGrace)
	stopped := context.AfterFunc(ctx, func() {
		w.serving.Go(func() {
			defer time.AfterFunc(grace, func() { _, _ = p.Stop() }).Stop()
			_ = w.line.send(swarm.Shutdown, w.task, struct{}{}, false) // as above
			<-p.Exited()
		})
	})
	err = readWorkerLines(p.Out(), func(m swarm.Message) error { return w.take(life, m) })
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
	return agent.Outcome{}, fmt.Errorf("its process ended before its work did (exit code %d)%s", exit.Code, last.said(a.patterns.Redact))
}

// workerJob says what a process is to do, or why there can be none.
func (a *App) workerJob(j session.Apart) (workerJob, error) {
	parent := a.members.member(j.Parent)
	switch {
	case parent == nil:
		return workerJob{}, journal.ErrClosed
	case a.opts.Flags.Scratch:
		return workerJob{}, errors.New("agents have no processes of their own where nothing is kept")
	case a.opts.Flags.Code != nil:
		return workerJob{}, errors.New("agents of a bundle have no processes of their own")
	case a.hooks.Of(j.Parent).Guards():
		return workerJob{}, errors.New("agents have no processes of their own where hooks of a type of agents hold")
	}
	job := workerJob{
		Flags: a.opts.Flags, Home: a.opts.UserHome, Workdir: a.opts.Workdir, Language: a.opts.Language, Version: a.opts.Version,
		Keychain: a.opts.Keychain, Child: j, Above: parent.name, Mirror: a.mirror.Root(j.Parent),
		Tells: a.tells(), Owned: parent.d.Owned,
	}
	if parent.gives != nil {
		job.Tools = []string{}
		for _, e := range parent.cat.List() {
			if parent.gives(e.Spec) {
				job.Tools = append(job.Tools, e.Spec.Name)
			}
		}
	}
	return job, nil
}

// take takes a message of the process.
func (w *worker) take(ctx context.Context, m swarm.Message) error {
	switch m.Type {
	case swarm.DelegateResult:
		var r workerResult
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

func (w *worker) event(ctx context.Context, id string, n workerNote) error {
	switch n.Kind {
	case workerOpened:
		if w.job.Child.Opened != nil {
			w.job.Child.Opened(w.task)
			w.job.Child.Opened = nil
		}
	case workerDid:
		if n.Event == nil {
			return errNoMessage
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.did = append(w.did, *n.Event); len(w.did) > maxWorkerDid {
			w.did = w.did[1:]
			w.count++
		}
		close(w.more)
		w.more = make(chan struct{})
	case workerMirrored:
		w.app.mirroredApart(w.job.Parent, n)
	case workerAnswer:
		w.line.answered(id, n)
	case workerForget:
		w.mu.Lock()
		defer w.mu.Unlock()
		if stop := w.asks[id]; stop != nil {
			stop()
		}
	case workerSettle:
		w.mu.Lock()
		settle := w.holds[n.Hold]
		delete(w.holds, n.Hold)
		w.mu.Unlock()
		if settle != nil {
			settle(n.Request)
		}
	case workerDecide, workerQuestion, workerReserve:
		return w.serve(ctx, id, n)
	default:
		return fmt.Errorf("%w: %.40q", errNoMessage, n.Kind)
	}
	return nil
}

// maxWorkerDid is how many events are kept for who shows them.
const maxWorkerDid = 256

// serve answers a question of the process.
func (w *worker) serve(ctx context.Context, id string, n workerNote) error {
	if n.Kind != workerReserve && (n.Proposal == nil || n.Decision == nil) {
		return errNoMessage
	}
	ctx, stop := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asks) >= maxWorkerAsks || w.asks[id] != nil {
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
		a := workerNote{Kind: workerAnswer}
		switch n.Kind {
		case workerDecide:
			d := w.app.members.decides(w.job.Parent, *n.Proposal, *n.Decision)
			a.Decision = &d
		case workerQuestion:
			d, err := w.job.Question(ctx, n.Approval, w.task, *n.Proposal, *n.Decision)
			if a.Decision = &d; err != nil {
				a.Error = err.Error()
			}
		case workerReserve:
			a = w.reserve(id, n)
		}
		_ = w.line.send(swarm.Event, id, a, false) // whoever is gone needs no answer
	})
	return nil
}

// reserve puts aside what the process asks for, until it settles that or is gone.
func (w *worker) reserve(id string, n workerNote) workerNote {
	a := workerNote{Kind: workerAnswer}
	granted, settle, err := w.job.Reserve(n.Request, n.Unit, n.Least, n.Most)
	if err != nil {
		a.Error, a.Unpriced = err.Error(), errors.Is(err, budget.ErrUnpriced)
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
		settle(budget.Amount{})
	}
	w.over = true
	close(w.more)
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

// tell puts a text of another agent before the model of an open session, here or in a
// process of its own.
func (a *App) tell(ctx context.Context, session, id, text, by string) error {
	if w := a.workers.get(session); w != nil {
		_, err := w.line.ask(ctx, workerNote{Kind: workerTell, Message: id, Text: a.patterns.Redact(text), By: by})
		return err
	}
	return a.members.tell(a.patterns.Redact)(ctx, session, id, text, by)
}

// member returns a session that is open; nil = it is not.
func (m *members) member(id string) *member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[id]
}

// decides decides about a call of an agent in a process of its own, as about one of the
// session that it works for: what that may not do, or would have to ask for, holds for the
// agent. soFar is what the process has said, where it asks for more.
func (m *members) decides(parent string, p agent.Proposal, soFar agent.Decision) agent.Decision {
	one := m.member(parent)
	if one == nil {
		return agent.Decision{Verdict: agent.Deny, Reason: "the session that it works for is closed"}
	}
	if one.gives != nil && !one.gives(agent.Spec{Name: p.Call.Tool, Group: p.Group, Class: p.Class}) {
		return agent.Decision{Verdict: agent.Deny, Reason: "the session that it works for has no such tool"}
	}
	d := one.d.Policy.Decide(p)
	if d.Verdict == agent.Allow && soFar.Verdict == agent.AskUser {
		d.Verdict, d.Reason, d.By = soFar.Verdict, soFar.Reason, soFar.By
	}
	return d
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
	if l.text = append(l.text, p...); len(l.text) > workerTail {
		l.text = l.text[len(l.text)-workerTail:]
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
