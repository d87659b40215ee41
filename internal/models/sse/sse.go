// Package sse decodes a stream of server-sent events as the WHATWG HTML
// standard defines them: lines end in LF, CR or CRLF, a leading byte order mark
// is skipped, an event that is not closed by an empty
// line is discarded. Comments are ignored, and so are the fields id and retry,
// which are for those who connect again in the middle of a stream.
//
// It holds one event at a time and no more than [MaxEvent] bytes of it. It
// knows nothing of HTTP, times nothing out and starts no goroutines.
package sse

import (
	"bytes"
	"errors"
	"io"
)

const (
	// MaxEvent is the largest event in bytes, line by line and as a whole. A
	// larger one ends the stream with [ErrTooLarge].
	MaxEvent = 32 << 20

	startBuffer = 32 << 10 // grows only for longer lines

	// maxEmpty is how many reads may return nothing before the reader is taken
	// for broken.
	maxEmpty = 100
)

// ErrTooLarge says that an event was larger than [MaxEvent].
var ErrTooLarge = errors.New("event is larger than 32 MiB")

// An Event is one dispatched event. Its bytes are valid until the next call of
// [Decoder.Next].
type Event struct {
	Name []byte // empty when the stream named none, which means "message"
	Data []byte // data lines joined with LF
}

// A Decoder reads events. It is not safe for concurrent use.
type Decoder struct {
	src io.Reader
	err error // from src, delivered once the buffer is used up

	buf        []byte
	start, end int // unread part of buf
	newline    int // first LF at or behind start, or end when there is none yet

	begun  bool // the byte order mark has been looked for
	skipLF bool // the last line ended in CR: an LF that follows belongs to it

	name, data []byte
	hasData    bool
}

// NewDecoder returns a decoder of r. It reads ahead.
func NewDecoder(r io.Reader) *Decoder {
	return &Decoder{src: r, buf: make([]byte, startBuffer)}
}

// Next returns the next event. At the end of the stream it returns [io.EOF], or
// the reader's error.
func (d *Decoder) Next() (Event, error) {
	d.name, d.data, d.hasData = d.name[:0], d.data[:0], false
	for {
		line, err := d.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) > 0 {
			if err := d.field(line); err != nil {
				return Event{}, err
			}
			continue
		}
		if d.hasData {
			return Event{Name: d.name, Data: d.data}, nil
		}
		d.name = d.name[:0]
	}
}

// field takes in one line that is not empty.
func (d *Decoder) field(line []byte) error {
	name, value, found := bytes.Cut(line, colon)
	if found && len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if len(d.data)+len(value) >= MaxEvent {
			return ErrTooLarge
		}
		if d.hasData {
			d.data = append(d.data, '\n')
		}
		d.data, d.hasData = append(d.data, value...), true
	case "event":
		d.name = append(d.name[:0], value...)
	}
	return nil
}

var colon = []byte{':'}

// line returns the next line without its end. The bytes are valid until the
// next call. A last line without an end is dropped.
func (d *Decoder) line() ([]byte, error) {
	if err := d.skipMark(); err != nil {
		return nil, err
	}
	scanned := d.start
	for {
		if d.skipLF && d.start < d.end {
			if d.skipLF = false; d.buf[d.start] == '\n' {
				d.start++
			}
			scanned = max(scanned, d.start)
		}
		if d.newline < scanned {
			d.newline = scanned
			if i := bytes.IndexByte(d.buf[scanned:d.end], '\n'); i >= 0 {
				d.newline += i
			} else {
				d.newline = d.end
			}
		}
		if i := bytes.IndexByte(d.buf[scanned:d.newline], '\r'); i >= 0 {
			line := d.buf[d.start : scanned+i]
			d.start, d.skipLF = scanned+i+1, true
			return line, nil
		}
		if d.newline < d.end {
			line := d.buf[d.start:d.newline]
			d.start = d.newline + 1
			return line, nil
		}
		kept := d.end - d.start
		if err := d.fill(); err != nil {
			return nil, err
		}
		scanned = d.start + kept
		d.newline = -1
	}
}

// skipMark drops a byte order mark in front of the first line.
func (d *Decoder) skipMark() error {
	if d.begun {
		return nil
	}
	d.newline = -1
	for d.end-d.start < len(mark) && bytes.HasPrefix(mark, d.buf[d.start:d.end]) {
		if err := d.fill(); err != nil {
			return err
		}
	}
	d.begun = true
	if bytes.HasPrefix(d.buf[d.start:d.end], mark) {
		d.start += len(mark)
	}
	return nil
}

var mark = []byte("\xef\xbb\xbf")

// fill reads at least one more byte. It moves what is unread to the front and
// doubles the buffer when a line fills it.
func (d *Decoder) fill() error {
	if d.err != nil {
		return d.err
	}
	if d.start > 0 {
		copy(d.buf, d.buf[d.start:d.end])
		d.start, d.end = 0, d.end-d.start
	}
	if d.end == len(d.buf) {
		if d.end >= MaxEvent {
			return ErrTooLarge
		}
		d.buf = append(d.buf, make([]byte, len(d.buf))...)
	}
	for range maxEmpty {
		n, err := d.src.Read(d.buf[d.end:])
		d.end += n
		d.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	d.err = io.ErrNoProgress
	return d.err
}
