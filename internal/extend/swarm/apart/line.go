package apart

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"dure/agent"
	"dure/internal/extend/swarm"
	"dure/internal/kernel/plug"
)

// Limits of what a program and the process of an agent tell each other.
const (
	maxLine = 16 << 20 // bytes of a message
	maxAsks = 64       // questions of a process that wait for their answers

	// maxMirrored is how many bytes of lines that were written for other programs go to the
	// parent at a time, unless a single one has more.
	maxMirrored = 1 << 20
)

// Job is the payload of the delegate that a process begins with.
type Job struct {
	Program json.RawMessage `json:"program"` // what the program of the process is built from
	Child   plug.Apart      `json:"child"`
	Above   string          `json:"above,omitempty"` // the type of the parent; "" = none
	Tools   []string        `json:"tools"`           // that the parent lets it have; nil = all
}

// result is the payload of the message that a process ends with.
type result struct {
	Outcome agent.Outcome `json:"outcome"`
	Error   string        `json:"error,omitempty"`
}

// The kinds of the payload of an event.
const (
	kindOpened   = "opened"   // the session is open
	kindDid      = "did"      // an event of its log, to be shown
	kindDecide   = "decide"   // may the call run? Answered with decided
	kindQuestion = "question" // the person is asked. Answered with decided
	kindReserve  = "reserve"  // of the budget. Answered with reserved
	kindSettle   = "settle"   // of the budget
	kindForget   = "forget"   // nobody waits for the answer any more
	kindTell     = "tell"     // a message of another agent. Answered when it was heard
	kindMirrored = "mirrored" // lines were written of a session, or will not be
	kindAnswer   = "answer"
)

// note is the payload of an event.
type note struct {
	Kind string `json:"kind"`

	Proposal *agent.Proposal `json:"proposal,omitempty"`
	Decision *agent.Decision `json:"decision,omitempty"`
	Approval string          `json:"approval,omitempty"`
	Via      string          `json:"via,omitempty"`
	Event    *agent.Event    `json:"event,omitempty"`

	Request plug.Amount `json:"request,omitzero"`
	Unit    plug.Amount `json:"unit,omitzero"`
	Least   int         `json:"least,omitempty"`
	Most    int         `json:"most,omitempty"`
	Hold    string      `json:"hold,omitempty"`

	Message  string `json:"message,omitempty"`
	Text     string `json:"text,omitempty"`
	By       string `json:"by,omitempty"`
	Error    string `json:"error,omitempty"`
	Unpriced bool   `json:"unpriced,omitempty"`
}

// line is one end of what a program and the process of an agent tell each other: one
// message a line, as agents of one process have them. It is safe for concurrent use.
type line struct {
	from, to string
	task     string // the correlation of the delegate

	out sync.Mutex // of w
	w   io.Writer

	mu      sync.Mutex
	gone    bool
	asked   int
	waiting map[string]chan note
}

func newLine(w io.Writer, from, to, task string) *line {
	return &line{from: from, to: to, task: task, w: w, waiting: map[string]chan note{}}
}

// send writes a message.
func (l *line) send(t swarm.MessageType, correlation string, payload any, failed bool) error {
	text, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	line, err := json.Marshal(swarm.Message{Type: t, From: l.from, To: l.to, Payload: string(text), Correlation: correlation, Failed: failed})
	if err != nil {
		return err
	}
	if len(line) >= maxLine {
		return fmt.Errorf("a message has more than %d MiB", maxLine>>20)
	}
	l.out.Lock()
	defer l.out.Unlock()
	_, err = l.w.Write(append(line, '\n'))
	return err
}

// tell sends an event that nobody answers.
func (l *line) tell(n note) error { return l.send(swarm.Event, l.task, n, false) }

// ask sends an event and waits for its answer.
func (l *line) ask(ctx context.Context, n note) (note, error) {
	reply := make(chan note, 1)
	l.mu.Lock()
	if l.gone {
		l.mu.Unlock()
		return note{}, errGone
	}
	l.asked++
	id := fmt.Sprintf("%s-%d", l.task, l.asked)
	l.waiting[id] = reply
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, id)
		l.mu.Unlock()
	}()
	if err := l.send(swarm.Event, id, n, false); err != nil {
		return note{}, err
	}
	select {
	case a := <-reply:
		if a.Error != "" && n.Kind != kindReserve {
			return a, errors.New(a.Error)
		}
		return a, nil
	case <-ctx.Done():
		_ = l.send(swarm.Event, id, note{Kind: kindForget}, false) // whoever is gone asks nobody
		return note{}, context.Cause(ctx)
	}
}

// answered hands an answer to who waits for it.
func (l *line) answered(id string, n note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reply := l.waiting[id]; reply != nil {
		delete(l.waiting, id)
		reply <- n
	}
}

// hangUp answers all who wait that the other end is gone.
func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	for id, reply := range l.waiting {
		delete(l.waiting, id)
		reply <- note{Kind: kindAnswer, Error: errGone.Error()}
	}
}

// errGone says that nobody is at the other end.
var errGone = errors.New("the other end is gone")

// errNoMessage is a line that is none of ours.
var errNoMessage = errors.New("what it wrote is no message")

// readLines reads messages and hands them to take, until the other end is gone (io.EOF) or take
// has an error.
func readLines(r io.Reader, take func(swarm.Message) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		var line []byte
		for more := true; more; {
			part, err := in.ReadSlice('\n')
			if line = append(line, part...); len(line) > maxLine {
				return fmt.Errorf("%w: a line has more than %d MiB", errNoMessage, maxLine>>20)
			}
			switch {
			case err == nil:
				more = false
			case errors.Is(err, bufio.ErrBufferFull):
			case errors.Is(err, io.EOF):
				return io.EOF
			default:
				return err
			}
		}
		var m swarm.Message
		if err := json.Unmarshal(line, &m); err != nil || m.Type == "" || m.Correlation == "" {
			return fmt.Errorf("%w: %.80q", errNoMessage, line)
		}
		if err := take(m); err != nil {
			return err
		}
	}
}

// noteOf reads the payload of an event.
func noteOf(m swarm.Message) (n note, err error) {
	if err := json.Unmarshal([]byte(m.Payload), &n); err != nil || n.Kind == "" {
		return n, fmt.Errorf("%w: the payload of %.40q", errNoMessage, m.Correlation)
	}
	return n, nil
}
