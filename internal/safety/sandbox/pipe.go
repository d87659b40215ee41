package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A pipe carries output to a writer.
type pipe struct {
	read *os.File
	to   io.Writer
	left bool // reading ended while somebody could still write
}

// copy reads to the end, also past errors of the writer: a command that cannot
// get rid of its output would never end. A terminal ends with an error, EIO.
func (p *pipe) copy() {
	buf := make([]byte, 4<<10)
	for {
		n, err := p.read.Read(buf)
		if n > 0 && p.to != nil {
			if _, werr := p.to.Write(buf[:n]); werr != nil {
				p.to = nil
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.rest()
			return
		}
		if err != nil {
			return
		}
		if n == len(buf) && n < 64<<10 {
			buf = make([]byte, 4*n)
		}
	}
}

// pipeSize is what a pipe holds at most, unless a command makes it larger.
const pipeSize = 64 << 10

// rest takes what was written before the deadline. On a busy machine the reader may
// come after it, and a read then fails whatever the pipe holds.
func (p *pipe) rest() {
	var data []byte
	data, p.left = held(p.read)
	if len(data) > 0 && p.to != nil {
		_, _ = p.to.Write(data) // as above
	}
}

// An inlet is the input of a command, from the caller.
type inlet struct {
	*os.File
	terminal bool
}

// endOfInput is the character that ends the input of a terminal, at the start
// of a line.
const endOfInput = 0x04

// Close ends the input. A terminal stays open: it is for the output as well.
func (i *inlet) Close() error {
	if !i.terminal {
		return i.File.Close()
	}
	_, err := i.Write([]byte{endOfInput})
	return err
}

// An outlet is the output of a command, for the caller. It gets a deadline when
// the command has ended.
type outlet struct{ *os.File }

// Read reads what was written before the deadline even if the caller comes after
// it, and gives others who hold the pipe no more than another drainGrace.
func (o *outlet) Read(b []byte) (int, error) {
	n, err := o.File.Read(b)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if err := o.SetReadDeadline(time.Now().Add(drainGrace)); err != nil {
		return 0, err
	}
	if n, err = o.File.Read(b); errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// inputFile returns a file that holds what in has. A file needs no goroutine,
// and a command that does not read it blocks nobody.
func inputFile(dir string, in io.Reader) (*os.File, error) {
	f, err := tempFile(dir)
	if err != nil {
		return nil, fmt.Errorf("making the input: %w", err)
	}
	if _, err = io.Copy(f, in); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("making the input: %w", err)
	}
	return f, nil
}
