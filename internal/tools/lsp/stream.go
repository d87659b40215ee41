package lsp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sourcegraph/jsonrpc2"
)

// The bounds of one message.
const (
	maxHeader  = 4 << 10
	maxMessage = 8 << 20 // what is decoded of one can take ten times that
)

// stream carries messages over the pipes of a server. It writes them as
// [jsonrpc2.VSCodeObjectCodec] does. It reads them itself: within bounds, and
// each to its last byte, so that what a server pads a message with is not taken
// for the beginning of the next one.
type stream struct {
	jsonrpc2.ObjectStream
	in    *bufio.Reader
	ended chan struct{} // closed when nothing can be read any more
}

func newStream(pipes io.ReadWriteCloser) *stream {
	return &stream{
		ObjectStream: jsonrpc2.NewBufferedStream(pipes, jsonrpc2.VSCodeObjectCodec{}),
		in:           bufio.NewReader(pipes), ended: make(chan struct{}),
	}
}

// ReadObject reads the next message. After an error there is none.
func (s *stream) ReadObject(v any) error {
	data, err := readMessage(s.in)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		close(s.ended)
	}
	return err
}

func readMessage(r *bufio.Reader) ([]byte, error) {
	length, room := -1, maxHeader
	for {
		line, err := readHeader(r, room)
		if err != nil {
			return nil, err
		}
		room -= len(line)
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
		if err != nil || n > maxMessage {
			return nil, fmt.Errorf("reading a message: its length is %.40q", value)
		}
		length = int(n)
	}
	if length < 0 {
		return nil, errors.New("reading a message: it has no length")
	}
	data := make([]byte, 0, min(length, 64<<10)) // a promise is no reason to take memory
	for len(data) < length {
		n := min(length-len(data), max(len(data), 64<<10))
		data = append(data, make([]byte, n)...)
		if _, err := io.ReadFull(r, data[len(data)-n:]); err != nil {
			return nil, fmt.Errorf("reading a message: %w", err)
		}
	}
	return data, nil
}

// readHeader reads a line of at most room bytes.
func readHeader(r *bufio.Reader, room int) (string, error) {
	var line []byte
	for {
		b, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		line = append(line, b)
		if b == '\n' {
			return string(line), nil
		}
		if len(line) >= room {
			return "", fmt.Errorf("reading a message: its header has more than %d bytes", maxHeader)
		}
	}
}
