package script

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	defaultChunk = 32
	defaultEvery = 10 * time.Millisecond
	flushAt      = 32 << 10 // bytes that are written at once
)

// errOver ends a reply early.
var errOver = errors.New("the reply is over")

// A player writes one stream of events in any format: pieces, delays, and
// faults between events or in the middle of their bytes. After err it writes
// nothing more.
type player struct {
	ctx   context.Context
	w     http.ResponseWriter
	rc    *http.ResponseController
	api   api
	fault *Fault
	delay time.Duration
	chunk int

	buf    []byte
	sent   int // bytes
	events int
	err    error
}

// begin reports whether the next event may be appended to buf. It plays the
// fault when its time has come.
func (p *player) begin() bool {
	if f := p.fault; f != nil && p.err == nil && f.Bytes == 0 && p.events == f.After {
		p.strike()
	}
	return p.err == nil
}

// end closes an event, and writes what has gathered.
func (p *player) end() {
	p.events++
	if f := p.fault; f != nil && f.Bytes > 0 && p.sent+len(p.buf) >= f.Bytes {
		p.buf = p.buf[:f.Bytes-p.sent]
		p.strike()
	} else if len(p.buf) >= flushAt {
		_ = p.flush()
	}
}

// put writes one event: text, and whatever ends an event.
func (p *player) put(text, close string) {
	if p.begin() {
		p.buf = append(append(p.buf, text...), close...)
		p.end()
	}
}

// comment writes a comment, which is no event.
func (p *player) comment() {
	if p.err == nil {
		p.buf = append(p.buf, ": processing\n\n"...)
	}
}

// event writes one event with a name.
func (p *player) event(name, format string, args ...any) {
	p.put("event: "+name+"\ndata: "+fmt.Sprintf(format, args...), "\n\n")
}

// next is begin for an event that carries a piece of text: after a delay.
func (p *player) next() bool {
	if p.delay > 0 && p.err == nil && (p.flush() != nil || !wait(p.ctx, p.delay)) {
		p.err = errOver
	}
	return p.begin()
}

// delta writes one event that carries a piece of text.
func (p *player) delta(head, piece, tail string) {
	if p.next() {
		p.buf = append(append(append(p.buf, head...), piece...), tail...)
		p.end()
	}
}

// deltas writes text in pieces, each between head and tail.
func (p *player) deltas(head, text, tail string) {
	p.pieces(text, func(piece string) { p.delta(head, piece, tail) })
}

// pieces gives text to write in pieces, escaped as inside a JSON string.
func (p *player) pieces(text string, write func(piece string)) {
	for rest := escaped(text); rest != "" && p.err == nil; {
		n := cut(rest, p.chunk)
		write(rest[:n])
		rest = rest[n:]
	}
}

// calls are the three parts of a call as a format writes them.
type calls struct {
	open  func(i int)
	input func(i int, piece string) // escaped
	close func(i int)
}

// calls writes the calls of a reply: one behind the other, or all side by side.
func (p *player) calls(reply Reply, c calls) {
	if !reply.Interleave {
		for i, call := range reply.Calls {
			c.open(i)
			p.pieces(call.input(), func(piece string) { c.input(i, piece) })
			c.close(i)
		}
		return
	}
	inputs := make([][]string, len(reply.Calls))
	rounds := 0
	for i, call := range reply.Calls {
		c.open(i)
		p.pieces(call.input(), func(piece string) { inputs[i] = append(inputs[i], piece) })
		rounds = max(rounds, len(inputs[i])+1)
	}
	for round := range rounds {
		for i, in := range inputs {
			switch {
			case round < len(in):
				c.input(i, in[round])
			case round == len(in):
				c.close(i)
			}
		}
	}
}

// flush writes what has gathered, unless the reply is over.
func (p *player) flush() error {
	if p.err != nil {
		return p.err
	}
	n, err := p.w.Write(p.buf)
	p.sent += n
	p.buf = p.buf[:0]
	if err == nil {
		err = p.rc.Flush()
	}
	p.err = err
	return err
}

// strike plays a fault in the middle of a stream.
func (p *player) strike() {
	f := p.fault
	p.fault = nil
	if f.Kind == Slow || p.flush() != nil {
		return
	}
	pause := time.Duration(f.ForMS) * time.Millisecond
	switch f.Kind {
	case Cut:
		if !f.Clean {
			panic(http.ErrAbortHandler) // net/http's way to cut a connection
		}
		p.err = errOver
	case Reset:
		p.reset()
		p.err = errOver
	case Stall:
		if !wait(p.ctx, pause) {
			p.err = errOver
		}
	case Pings:
		p.ping(pause, time.Duration(f.EveryMS)*time.Millisecond)
	case Error, Failed:
		p.api.trouble(p, f.failure())
		_ = p.flush()
		p.err = errOver
	}
}

// reset closes the connection so that the client is told of a reset.
func (p *player) reset() {
	conn, _, err := p.rc.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// ping sends nothing but signs of life for a time, or until the client leaves.
func (p *player) ping(pause, every time.Duration) {
	if every <= 0 {
		every = defaultEvery
	}
	for begun := time.Now(); p.err == nil && (pause <= 0 || time.Since(begun) < pause); {
		p.api.ping(p)
		if p.flush() == nil && !wait(p.ctx, every) {
			p.err = errOver
		}
	}
}

// quoted returns s as a JSON string.
func quoted(s string) string { return string(compact(s)) }

// escaped returns s as it stands inside a JSON string.
func escaped(s string) string {
	q := quoted(s)
	return q[1 : len(q)-1]
}

// cut returns the length of a piece of about n bytes that ends neither inside
// an escape nor inside a character.
func cut(s string, n int) int {
	at := 0
	for at < len(s) && at < n {
		size := 1
		switch {
		case strings.HasPrefix(s[at:], `\u`):
			size = 6
		case s[at] == '\\':
			size = 2
		case s[at] >= utf8.RuneSelf:
			_, size = utf8.DecodeRuneInString(s[at:])
		}
		at += size
	}
	return at
}
