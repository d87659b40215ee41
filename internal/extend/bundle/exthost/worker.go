package exthost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"dure/internal/safety/sandbox"
)

// A worker is a process that foreign code runs in, as long as it lives.
type worker struct {
	*wire
	host  *Host
	p     *sandbox.Process
	life  context.Context
	end   context.CancelCauseFunc // ends it, and says why
	last  *tail                   // what it wrote to its error output
	alive time.Duration

	mu         sync.Mutex
	using      int                     // calls that it has
	retired    bool                    // it gets no more, and ends with the last one
	checking   chan struct{}           // is closed when it is known whether it answers; nil = nobody asks
	loads      map[string]*loading     // by entry
	loggers    map[string]*slog.Logger // of calls, by their IDs
	pending    map[uint64]string       // handles of calls whose outcome comes later, by question
	registered map[string][]registered // by extension
	faults     map[string]error        // of what extensions register, while they are loaded
	runs       map[uint64]chan message // of wrappers: what they ask for
	run        uint64                  // the number of the last one
	early      map[uint64]settlement   // outcomes that came before the call was known to be pending
}

// tailBytes is how much of the error output of a worker is kept.
const tailBytes = 8 << 10

// endGrace is how long a worker may take to end that has closed its output.
const endGrace = time.Second

// begin starts a worker.
func (h *Host) begin(argv []string, serve func(*worker, message)) (*worker, error) {
	return h.beginWith(argv, serve, h.c.Grant)
}

// beginWith starts a worker that may reach what is granted.
func (h *Host) beginWith(argv []string, serve func(*worker, message), grant sandbox.Grant) (*worker, error) {
	w := &worker{host: h, last: &tail{}, alive: h.c.Limits.Alive, loads: map[string]*loading{}, loggers: map[string]*slog.Logger{}, pending: map[uint64]string{}, early: map[uint64]settlement{}, registered: map[string][]registered{}, faults: map[string]error{}, runs: map[uint64]chan message{}}
	w.wire = newWire(h.c.Limits.Answer, func(m message) { serve(w, m) })
	w.life, w.end = context.WithCancelCause(h.life)
	p, err := h.c.Box.Start(w.life, sandbox.Cmd{
		Argv: argv, Dir: h.c.Dir, Env: h.c.Env, PipeIn: true, PipeOut: true, Err: w.last, Grant: grant,
	})
	if err != nil {
		w.end(nil)
		return nil, err
	}
	w.p = p
	ok := h.apart(func() { w.write(p.In(), w.end) }) && h.apart(w.attend)
	if !ok { // whoever closes the host has ended its life
		w.fail(ErrClosed)
		_, _ = p.Stop()
		_ = p.Out().Close()
		return nil, ErrClosed
	}
	return w, nil
}

// attend listens to a worker until it has ended, and sees to it that it does.
func (w *worker) attend() {
	err := w.read(w.p.Out())
	if err != io.EOF {
		w.end(err)
	}
	t := time.NewTimer(endGrace)
	select {
	case <-w.p.Exited():
	case <-w.life.Done():
	case <-t.C: // it has closed its output, and is of no use
	}
	t.Stop()
	exit, _ := w.p.Stop()
	_ = w.p.Out().Close()
	why := context.Cause(w.life)
	w.end(nil)
	w.fail(&Ended{Exit: exit, Why: why, Said: w.last.String()})
	w.lose()
}

// Ended says that a worker has ended while it was needed. What its calls had done by
// then is not known.
type Ended struct {
	Exit sandbox.Exit
	Why  error  // that it was ended for; nil = it ended by itself
	Said string // the end of its error output
}

func (e *Ended) Error() string {
	how := fmt.Sprintf("it ended with exit code %d", e.Exit.Code)
	switch {
	case e.Why != nil:
		how = e.Why.Error()
	case e.Exit.Signal != "":
		how = "it was ended by " + e.Exit.Signal
	}
	text := "the program that the code runs in is gone: " + how
	if e.Said != "" {
		text += "\n" + e.Said
	}
	return text
}

func (e *Ended) Unwrap() error { return e.Why }

// errHung says that a worker does not answer at all.
var errHung = errors.New("it hung, and was ended")

// use counts a call in. A worker that is on its way out takes none.
func (w *worker) use() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.retired {
		return false
	}
	w.using++
	return true
}

// leave counts a call out.
func (w *worker) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.using--
	w.mayEnd()
}

// retire has a worker end after the calls that it has.
func (w *worker) retire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retired = true
	w.mayEnd()
}

func (w *worker) mayEnd() {
	if w.retired && w.using == 0 {
		w.end(nil)
	}
}

// call asks and waits. When ctx ends first, the question is given up, and the worker
// has to show that it lives.
func (w *worker) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	answer, id, err := w.ask(ctx, method, params)
	if err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return m.value()
	case <-w.over:
		return nil, w.reason()
	case <-ctx.Done():
		w.drop(id)
		return nil, context.Cause(ctx)
	}
}

func (m message) value() (json.RawMessage, error) {
	if m.Error != nil {
		return nil, m.Error
	}
	return m.Result, nil
}

// drop gives a question up.
func (w *worker) drop(id uint64) {
	owes, err := w.giveUp(id)
	if err != nil {
		w.end(err)
	} else if owes {
		w.check()
	}
}

// check finds out whether a worker answers, beside everything else: one that does not is
// ended.
func (w *worker) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.checking != nil {
		return
	}
	known := make(chan struct{})
	w.checking = known
	ok := w.host.apart(func() {
		ctx, cancel := context.WithTimeout(w.life, w.alive)
		defer cancel()
		answer, _, err := w.ask(ctx, "ping", struct{}{})
		if err == nil {
			select {
			case <-answer:
			case <-w.over:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if errors.Is(err, context.DeadlineExceeded) {
			w.end(errHung)
			<-w.over
		}
		w.mu.Lock()
		w.checking = nil
		w.mu.Unlock()
		close(known)
	})
	if !ok {
		w.checking = nil
		close(known)
	}
}

// known waits until nobody asks whether the worker lives, or ctx is done.
func (w *worker) known(ctx context.Context) {
	w.mu.Lock()
	c := w.checking
	w.mu.Unlock()
	if c == nil {
		return
	}
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// dead reports whether a worker is of no use any more.
func (w *worker) dead() bool {
	select {
	case <-w.over:
		return true
	case <-w.life.Done():
		return true
	default:
		return false
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) >= tailBytes {
		t.b = append(t.b[:0], p[len(p)-tailBytes:]...)
		return len(p), nil
	}
	if over := len(t.b) + len(p) - tailBytes; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	t.b = append(t.b, p...)
	return len(p), nil
}

// String is the last lines of it: what a person needs to see of a crash.
func (t *tail) String() string {
	const most = 600
	t.mu.Lock()
	defer t.mu.Unlock()
	b := bytes.TrimSpace(t.b)
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return strings.ToValidUTF8(string(b), "")
}
