package exthost

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The bounds of what is on its way.
const (
	queueLength = 256              // messages for a worker that wait to be written
	writeLimit  = 10 * time.Second // for one of them
	freeNotices = 1000             // a second that a worker may say by itself
	maxNotices  = 10_000           // ahead of those; one that says more is ended
	maxGivenUp  = 64               // calls that nobody waits for any more
)

// A message is one of JSON-RPC 2.0, on a line of its own.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      *uint64         `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *thrown         `json:"error,omitempty"`
}

// thrown is an error of foreign code, as it crosses the border.
type thrown struct {
	Number  int    `json:"code"` // of JSON-RPC
	Message string `json:"message"`
	Data    struct {
		Name       string `json:"name,omitempty"`
		Code       string `json:"code,omitempty"`
		Suggestion string `json:"suggestion,omitempty"`
		HelpURL    string `json:"helpUrl,omitempty"`
	} `json:"data"`
}

func (t *thrown) Error() string {
	if t.Data.Name == "" || t.Data.Name == "Error" {
		return t.Message
	}
	return t.Data.Name + ": " + t.Message
}

// A wire carries messages between this program and a worker.
type wire struct {
	most  int // bytes of a message
	out   chan []byte
	over  chan struct{} // closed when nothing is carried any more
	serve func(message) // what the worker says by itself; it does not block

	mu    sync.Mutex
	err   error // why it is over
	last  uint64
	open  map[uint64]chan message // questions without an answer
	given map[uint64]bool         // those that nobody waits for any more

	counted time.Time // when notices was right
	notices int       // that came, less those that are free
}

func newWire(most int, serve func(message)) *wire {
	return &wire{
		most: most, serve: serve, out: make(chan []byte, queueLength), over: make(chan struct{}),
		open: map[uint64]chan message{}, given: map[uint64]bool{},
	}
}

// fail ends the wire, once: whoever waits is told why.
func (w *wire) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		close(w.over)
	}
}

// reason says why the wire is over.
func (w *wire) reason() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// write carries what is sent, until the wire is over. A worker that does not read is
// given up by late.
func (w *wire) write(to io.Writer, late func(error)) {
	for {
		select {
		case line := <-w.out:
			t := time.AfterFunc(writeLimit, func() { late(fmt.Errorf("it has not read for %v", writeLimit)) })
			_, err := to.Write(line)
			t.Stop()
			if err != nil {
				return // whoever reads from it learns why
			}
		case <-w.over:
			return
		}
	}
}

// read carries what the worker says, until there is no more. The error says what was
// wrong with it; [io.EOF] is its end.
func (w *wire) read(from io.Reader) error {
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := readLine(r, w.most)
		if err != nil {
			return err
		}
		if err := w.take(line); err != nil {
			return err
		}
	}
}

// readLine reads a line of at most so many bytes.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var whole []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(whole)+len(part) > most {
			return nil, fmt.Errorf("it wrote a line of more than %d bytes", most)
		}
		if err == nil && whole == nil {
			return part, nil
		}
		whole = append(whole, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, err
		default:
			return whole, nil
		}
	}
}

// take passes a message on.
func (w *wire) take(line []byte) error {
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" || m.Method == "" && m.ID == nil {
		return fmt.Errorf("it wrote to its output, which belongs to its messages: %.80q", bytes.TrimSpace(line))
	}
	if m.Method != "" {
		pass, err := w.count(m)
		if pass {
			w.serve(m)
		}
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	to, asked := w.open[*m.ID]
	if !asked && !w.given[*m.ID] {
		return fmt.Errorf("it answered question %d, which is open no more or never was", *m.ID)
	}
	delete(w.open, *m.ID)
	delete(w.given, *m.ID)
	if asked {
		to <- m
	}
	return nil
}

// count reports whether a message that nobody asked for is passed on.
func (w *wire) count(m message) (pass bool, err error) {
	now := time.Now()
	if free := int(now.Sub(w.counted).Seconds() * freeNotices); free > 0 {
		w.counted, w.notices = now, max(w.notices-min(free, maxNotices), 0)
	}
	if w.notices++; w.notices > maxNotices {
		return false, fmt.Errorf("it said %d things more than it may by itself", maxNotices)
	}
	return m.ID != nil || m.Method != "log" || w.notices <= freeNotices, nil
}

// send queues a message. It waits for room until ctx is done.
func (w *wire) send(ctx context.Context, m message) error {
	line, err := w.line(m)
	if err != nil {
		return err
	}
	select {
	case w.out <- line:
		return nil
	case <-w.over:
		return w.reason()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errUnread says that a worker has so much to read that nothing can be added.
var errUnread = errors.New("it does not read what it is told")

// post queues a message if there is room.
func (w *wire) post(m message) error {
	line, err := w.line(m)
	if err != nil {
		return err
	}
	select {
	case w.out <- line:
		return nil
	default:
		return errUnread
	}
}

func (w *wire) line(m message) ([]byte, error) {
	select {
	case <-w.over:
		return nil, w.reason()
	default:
	}
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("writing a message: %w", err)
	}
	if len(line) >= w.most {
		return nil, fmt.Errorf("what is to be told is longer than %d bytes", w.most)
	}
	return append(line, '\n'), nil
}

// ask asks the worker and returns where its answer arrives, and what gives the
// question up. The channel has room for the answer.
func (w *wire) ask(ctx context.Context, method string, params any) (<-chan message, uint64, error) {
	data, err := json.Marshal(params)
	if err != nil {
		return nil, 0, fmt.Errorf("writing a message: %w", err)
	}
	answer := make(chan message, 1)
	w.mu.Lock()
	w.last++
	id := w.last
	w.open[id] = answer
	w.mu.Unlock()
	if err := w.send(ctx, message{ID: &id, Method: method, Params: data}); err != nil {
		w.mu.Lock()
		delete(w.open, id) // it was not asked
		w.mu.Unlock()
		return nil, 0, err
	}
	return answer, id, nil
}

// giveUp forgets a question, and tells the worker. It reports whether the worker still
// has to answer it.
func (w *wire) giveUp(id uint64) (owes bool, err error) {
	w.mu.Lock()
	if _, owes = w.open[id]; owes {
		delete(w.open, id)
		w.given[id] = true
	}
	many := len(w.given) > maxGivenUp
	w.mu.Unlock()
	if many {
		return owes, fmt.Errorf("it has not answered %d calls that were given up", maxGivenUp)
	}
	if owes {
		params, _ := json.Marshal(map[string]uint64{"id": id})
		err = w.post(message{Method: "cancel", Params: params})
	}
	return owes, err
}

// answer is the message that answers a question of the worker.
func answer(id uint64, v any, err error) message {
	m := message{ID: &id}
	if err == nil {
		m.Result, err = json.Marshal(v)
	}
	if err != nil {
		m.Result, m.Error = nil, &thrown{Number: -32000, Message: err.Error()}
	}
	return m
}
