package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// readRoom is how much is read at once, in bytes.
const readRoom = 64 << 10

// Reader reads messages, one a line. It holds no more than one message, however long the
// lines are. It is not safe for concurrent use.
type Reader struct {
	r    *bufio.Reader
	most int
}

// NewReader returns a reader of lines of at most that many bytes; 0 = [MaxMessage].
func NewReader(r io.Reader, most int) *Reader {
	if most <= 0 {
		most = MaxMessage
	}
	return &Reader{bufio.NewReaderSize(r, readRoom), most}
}

// Next returns the next line that is not blank, without its end. The line is the caller's. Of
// one that is too long nothing is kept: [ErrTooLong] stands for it, and the next call goes on
// behind it. At the end, a last line without an end counts.
func (r *Reader) Next() ([]byte, error) {
	for {
		line, err := r.line()
		if line = bytes.TrimSpace(line); len(line) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			return line, nil // the end comes again
		}
		if err != nil {
			return nil, err
		}
	}
}

func (r *Reader) line() (line []byte, err error) {
	long := false
	for {
		part, err := r.r.ReadSlice('\n')
		if long = long || len(line)+len(part) > r.most+len("\r\n"); long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, ErrTooLong
		}
		return line, err
	}
}
