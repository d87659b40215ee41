package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// The bounds of a [Capture], in bytes.
const (
	memoryLimit = 256 << 10 // held in memory
	headLimit   = memoryLimit / 2
	tailLimit   = memoryLimit - headLimit
	diskLimit   = 256 << 20 // written to the disk; what follows is counted and dropped
)

// A Capture keeps the output of a command in bounded memory. Up to 256 KiB stay
// there; a longer output goes to a private file up to 256 MiB, while its first
// and last 128 KiB stay at hand. Writing never fails: when the disk does, the
// middle is lost and said to be. It is safe for concurrent use.
type Capture struct {
	dir string
	max int64 // bytes of file; 0 = diskLimit

	mu      sync.Mutex
	buf     []byte // all of it, or its head and then its tail as a ring
	size    int64  // bytes written to the capture
	file    *os.File
	onDisk  int64 // bytes of file that are good
	fileErr error
}

// Write adds output.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.buf)+len(p) <= memoryLimit && c.size == int64(len(c.buf)) {
		c.buf = append(c.buf, p...)
		c.size += int64(len(p))
		return len(p), nil
	}
	c.spill(p)
	c.keep(p)
	return len(p), nil
}

// spill writes p to the file, which it makes, with what there is, when p is the
// first that does not fit.
func (c *Capture) spill(p []byte) {
	if c.file == nil && c.fileErr == nil {
		c.file, c.fileErr = tempFile(c.dir)
		if c.fileErr == nil {
			c.toFile(c.buf)
		}
	}
	if c.fileErr == nil {
		c.toFile(p[:min(int64(len(p)), c.limit()-c.onDisk)])
	}
}

func (c *Capture) limit() int64 {
	if c.max > 0 {
		return c.max
	}
	return diskLimit
}

func (c *Capture) toFile(p []byte) {
	n, err := c.file.WriteAt(p, c.onDisk)
	c.onDisk += int64(n)
	if err != nil {
		c.fileErr = err
	}
}

// keep adds p to the head, as long as that has room, and to the ring behind it.
func (c *Capture) keep(p []byte) {
	if n := memoryLimit - len(c.buf); n > 0 {
		n = min(n, len(p))
		c.buf = append(c.buf, p[:n]...)
		c.size += int64(n)
		p = p[n:]
	}
	c.size += int64(len(p))
	if len(p) > tailLimit {
		p = p[len(p)-tailLimit:]
	}
	at := int((c.size - int64(len(p)) - headLimit) % tailLimit)
	n := copy(c.buf[headLimit+at:], p)
	copy(c.buf[headLimit:], p[n:])
}

// Size returns how many bytes were written to the capture.
func (c *Capture) Size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// Kept returns how many bytes of memory and disk the capture takes.
func (c *Capture) Kept() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.buf)) + c.onDisk
}

// Ends returns the first and the last bytes of the output. When head is all of
// it, tail is empty and dropped is 0; dropped counts what lies between the two.
func (c *Capture) Ends() (head, tail []byte, dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends()
}

func (c *Capture) ends() (head, tail []byte, dropped int64) {
	if c.size <= memoryLimit {
		return bytes.Clone(c.buf), nil, 0
	}
	at := int((c.size - headLimit) % tailLimit)
	ring := c.buf[headLimit:]
	tail = append(append(make([]byte, 0, tailLimit), ring[at:]...), ring[:at]...)
	return bytes.Clone(c.buf[:headLimit]), tail, c.size - memoryLimit
}

// Page returns up to limit bytes of the output from offset on, as far as it has
// been written, and the offset behind them. It may be called while the output is
// still written, and has nothing after Close. Bytes that were lost or dropped
// are passed over: the page begins at next less its length then.
func (c *Capture) Page(offset int64, limit int) (page []byte, next int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next = max(offset, 0)
	for len(page) < limit && next < c.size {
		piece, at := c.piece(next, limit-len(page))
		if len(piece) == 0 || at != next && len(page) > 0 {
			break
		}
		page, next = append(page, piece...), at+int64(len(piece))
	}
	return page, next
}

// piece returns bytes from offset on, from one of the places that have them, and
// where they begin: later when nobody has what is at offset.
func (c *Capture) piece(offset int64, limit int) (piece []byte, at int64) {
	if c.size <= memoryLimit {
		return cutAt(c.buf[offset:], limit), offset
	}
	if offset < headLimit {
		return cutAt(c.buf[offset:headLimit], limit), offset
	}
	tail := c.size - tailLimit
	if offset < min(tail, c.onDisk) {
		piece = make([]byte, min(int64(limit), min(tail, c.onDisk)-offset))
		if n, _ := c.file.ReadAt(piece, offset); n > 0 {
			return piece[:n], offset
		}
	}
	offset = max(offset, tail)
	ring := c.buf[headLimit:]
	i := int((offset - headLimit) % tailLimit)
	return cutAt(ring[i:], min(limit, int(c.size-offset))), offset
}

func cutAt(b []byte, n int) []byte { return b[:min(len(b), n)] }

// Reader returns the output from its start. Where some of it was dropped, a line
// says so. Nothing may be written any more. Closing the reader frees the
// capture.
func (c *Capture) Reader() io.ReadCloser {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size <= memoryLimit {
		return &reader{bytes.NewReader(c.buf), c}
	}
	head, tail, _ := c.ends()
	from := int64(len(head)) // where the part that only the file has begins
	to := c.size - int64(len(tail))
	var middle io.Reader = bytes.NewReader(nil)
	if c.onDisk > from {
		middle = io.NewSectionReader(c.file, from, min(c.onDisk, to)-from)
	}
	parts := []io.Reader{bytes.NewReader(head), middle}
	if lost := to - max(c.onDisk, from); lost > 0 {
		parts = append(parts, bytes.NewReader([]byte(c.lostMark(lost))))
	}
	return &reader{io.MultiReader(append(parts, bytes.NewReader(tail))...), c}
}

func (c *Capture) lostMark(n int64) string {
	if c.fileErr != nil {
		return fmt.Sprintf("\n[%d bytes of output were lost here: %v]\n", n, c.fileErr)
	}
	return fmt.Sprintf("\n[%d bytes of output were dropped here: more than %d bytes]\n", n, c.limit())
}

// Close frees what the capture holds. It may be called more than once.
func (c *Capture) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.file
	c.buf, c.file = nil, nil
	c.size, c.onDisk, c.fileErr = 0, 0, errors.New("the capture is closed")
	if f == nil {
		return nil
	}
	return f.Close()
}

// reader reads a capture and closes it.
type reader struct {
	io.Reader
	c *Capture
}

func (r *reader) Close() error { return r.c.Close() }
