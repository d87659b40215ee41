package control

import (
	"io"

	"dure/client/protocol"
)

// Lines is a connection over a pair of streams, one message a line.
type Lines struct {
	in  *protocol.Reader
	out io.Writer
}

// NewLines returns a connection that reads in and writes out.
func NewLines(in io.Reader, out io.Writer) *Lines {
	return &Lines{protocol.NewReader(in, 0), out}
}

// Read returns the next message.
func (l *Lines) Read() ([]byte, error) { return l.in.Next() }

// Write writes a message, and its line end with it.
func (l *Lines) Write(data []byte) error {
	_, err := l.out.Write(append(data, '\n'))
	return err
}
