package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	lines "dure/client/protocol"
)

// maxUnread is how much waits for a client that does not read, in bytes. Whoever has more to
// say to it waits then, and what it says itself is not read any more.
const maxUnread = 8 << 20

// messageCost is what a message that waits costs besides its bytes.
const messageCost = 256

// line is a pair of streams with a message in each line.
type line struct {
	in     chan []byte   // nil = a line that was longer than a message may be
	over   chan struct{} // closed when the input has ended
	broken chan struct{} // closed when nothing can be written any more
	closed chan struct{}
	done   chan struct{} // closed when the last message has been written

	mu    sync.Mutex
	moved *sync.Cond // the queue, or the end
	queue [][]byte
	waits int // what is not written yet, in bytes
	ended bool
}

// newLine begins to read and to write. What reads ends with the input, and what writes when
// the line is closed and nobody holds it up.
func newLine(in io.Reader, out io.Writer) *line {
	l := &line{
		in: make(chan []byte), over: make(chan struct{}), broken: make(chan struct{}), closed: make(chan struct{}), done: make(chan struct{}),
	}
	l.moved = sync.NewCond(&l.mu)
	go l.read(in)
	go l.flow(out)
	return l
}

// read takes the input apart.
func (l *line) read(in io.Reader) {
	defer close(l.over)
	r := lines.NewReader(in, maxLine)
	for {
		data, err := r.Next()
		if err != nil && !errors.Is(err, lines.ErrTooLong) {
			return
		}
		select {
		case l.in <- data:
		case <-l.closed:
			return
		}
	}
}

// flow writes what is to be written, one message at a time.
func (l *line) flow(out io.Writer) {
	defer close(l.done)
	for {
		l.mu.Lock()
		for len(l.queue) == 0 && !l.ended {
			l.moved.Wait()
		}
		queue := l.queue
		l.queue = nil
		l.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, data := range queue {
			_, err := out.Write(data)
			l.mu.Lock()
			l.waits -= len(data) + messageCost
			l.ended = l.ended || err != nil
			l.moved.Broadcast()
			l.mu.Unlock()
			if err != nil {
				close(l.broken)
				return
			}
		}
	}
}

// write writes a message. It returns when it is on its way, or cannot be.
func (l *line) write(data []byte) {
	data = append(data, '\n')
	cost := len(data) + messageCost
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.waits > 0 && l.waits+cost > maxUnread && !l.ended {
		l.moved.Wait()
	}
	if l.ended {
		return
	}
	l.queue = append(l.queue, data)
	l.waits += cost
	l.moved.Broadcast()
}

// close ends the line: nothing more is read, and nothing more written than waits already.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.moved.Broadcast()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
}

// parse reads a message; nil is a line that was too long. An error is what is to be
// answered, to the ID of the message if it has one.
func parse(data []byte) (message, *wireError) {
	var m message
	switch {
	case data == nil:
		return m, &wireError{Code: codeParse, Message: "the line is longer than 32 MiB"}
	case !json.Valid(data):
		return m, &wireError{Code: codeParse, Message: "the line is no JSON"}
	case bytes.TrimSpace(data)[0] != '{':
		return m, &wireError{Code: codeRequest, Message: "the line is no JSON-RPC message: batches are not taken"}
	}
	err := json.Unmarshal(data, &m) // the fields that are right are there all the same
	if !isID(m.ID) {
		return message{}, &wireError{Code: codeRequest, Message: "an id is a number or a text, of at most 256 bytes"}
	}
	switch {
	case err != nil:
		return m, &wireError{Code: codeRequest, Message: "the line is no JSON-RPC message: " + err.Error()}
	case m.Version != "2.0":
		return m, &wireError{Code: codeRequest, Message: `jsonrpc is not "2.0"`}
	case m.Method == "" && m.Result == nil && m.Error == nil:
		return m, &wireError{Code: codeRequest, Message: "the message has no method, and is no answer"}
	case m.Method == "" && m.Error != nil && m.Result != nil && string(m.Result) != "null":
		return m, &wireError{Code: codeRequest, Message: "an answer has a result or an error, and not both"}
	case m.Method == "" && m.Error != nil && m.Error.Code == 0:
		return m, &wireError{Code: codeRequest, Message: "the error of an answer has no code"}
	}
	return m, nil
}

// isAnswer reports whether a message answers a question, in whatever way.
func (m message) isAnswer() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// maxID bounds the id of a request, in bytes.
const maxID = 256

// isID reports whether something can be the id of a message, or is none.
func isID(id json.RawMessage) bool {
	if id == nil || len(id) > maxID {
		return id == nil
	}
	switch id[0] {
	case '{', '[', 't', 'f':
		return false
	}
	return true
}
