package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// line is a pair of streams with a message in each line.
type line struct {
	in     chan []byte
	out    chan []byte
	over   chan struct{} // closed when the input has ended
	broken chan struct{} // closed when nothing can be written any more
	closed chan struct{}
	once   sync.Once
	done   chan struct{} // closed when the last message has been written
}

// newLine begins to read and to write. What reads ends with the input, and what writes when
// the line is closed and nobody holds it up.
func newLine(in io.Reader, out io.Writer) *line {
	l := &line{
		in: make(chan []byte), out: make(chan []byte),
		over: make(chan struct{}), broken: make(chan struct{}), closed: make(chan struct{}), done: make(chan struct{}),
	}
	go l.read(in)
	go l.flow(out)
	return l
}

// read takes the input apart.
func (l *line) read(in io.Reader) {
	defer close(l.over)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		data, err := readLine(r, maxLine)
		if len(bytes.TrimSpace(data)) > 0 {
			select {
			case l.in <- data:
			case <-l.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// tooLong stands for a line that was longer than a message may be.
var tooLong = []byte("too long")

// readLine returns the next line. Of one that is too long nothing is kept.
func readLine(r *bufio.Reader, most int) (data []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(data)+len(part) > most; long {
			data = nil
		} else {
			data = append(data, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long {
			data = tooLong
		}
		return data, err
	}
}

// flow writes what is to be written, one message at a time: a client that reads slowly
// holds up whoever has something to say to it.
func (l *line) flow(out io.Writer) {
	defer close(l.done)
	for {
		select {
		case data := <-l.out:
			if _, err := out.Write(append(data, '\n')); err != nil {
				close(l.broken)
				return
			}
		case <-l.closed:
			return
		}
	}
}

// write writes a message. It returns when it is on its way, or cannot be.
func (l *line) write(data []byte) {
	select {
	case l.out <- data:
	case <-l.broken:
	case <-l.closed:
	}
}

// close ends the line: nothing more is read or written.
func (l *line) close() { l.once.Do(func() { close(l.closed) }) }

// parse reads a message. An error is what is to be answered, to the ID of the message if it
// has one.
func parse(data []byte) (message, error) {
	var m message
	trimmed := bytes.TrimSpace(data)
	switch {
	case bytes.Equal(data, tooLong):
		return m, &wireError{Code: codeParse, Message: "the line is longer than 32 MiB"}
	case !json.Valid(trimmed):
		return m, &wireError{Code: codeParse, Message: "the line is no JSON"}
	case trimmed[0] != '{':
		return m, &wireError{Code: codeRequest, Message: "the line is no JSON-RPC message: batches are not taken"}
	}
	if err := json.Unmarshal(trimmed, &m); err != nil {
		return message{}, &wireError{Code: codeRequest, Message: "the line is no JSON-RPC message: " + err.Error()}
	}
	if !isID(m.ID) {
		return message{}, &wireError{Code: codeRequest, Message: "an id is a number or a text"}
	}
	switch {
	case m.Version != "2.0":
		return m, &wireError{Code: codeRequest, Message: `jsonrpc is not "2.0"`}
	case m.Method == "" && m.Result == nil && m.Error == nil:
		return m, &wireError{Code: codeRequest, Message: "the message has no method, and is no answer"}
	}
	return m, nil
}

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
