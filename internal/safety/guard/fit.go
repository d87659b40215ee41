package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"dure/agent"
)

// noticeRoom is what a budget keeps for the notice between head and tail, in
// characters, if it is large enough to have both.
const noticeRoom = 450

// handleLength is how much of a blob's hash its handle shows.
const handleLength = 12

// fit reads a clean text and returns it, or its head and tail with a notice
// between them when it has more characters than the budget.
func (c *checking) fit(src io.Reader) (parts, error) {
	head, more, err := readRunes(src, c.budget)
	if err != nil {
		return parts{}, fmt.Errorf("reading the output: %w", err)
	}
	if !more {
		return parts{head: string(head)}, nil
	}
	room := c.budget - noticeRoom
	if room < noticeRoom {
		room = c.budget / 2
	}
	front := room * 2 / 5 // what went wrong is said at the end
	all := &count{Reader: io.MultiReader(bytes.NewReader(head), src), tail: newRing((room - front) * utf8.UTFMax)}
	spill, problem, err := c.put(c.ctx, all)
	if err != nil {
		return parts{}, err
	}
	p := parts{head: headOf(string(head), front), tail: tailOf(all.tail.String(), room-front), spill: spill}
	if spill != nil {
		spill.Shown = len(p.head) + len(p.tail)
	}
	p.notice = c.notice(all, utf8.RuneCountInString(p.head)+utf8.RuneCountInString(p.tail), c.budget, spill, problem)
	return p, nil
}

// put stores what src has and reads it to its end in any case. A problem of the
// store is no error: the result then lacks what was left out, and says so.
func (g *Guard) put(ctx context.Context, src *count) (spill *agent.Spill, problem string, err error) {
	defer func() {
		if err == nil {
			_, err = io.Copy(io.Discard, src)
		}
		if src.err != nil { // of reading, whatever the store makes of it
			err = src.err
		}
		if err != nil {
			spill, err = nil, fmt.Errorf("reading the output: %w", err)
			return
		}
		if spill != nil {
			spill.Capped = src.bytes > spill.Bytes
		}
	}()
	if g.PutBlob == nil {
		return nil, "there is no place for it", nil
	}
	sum, size, perr := g.PutBlob(ctx, io.LimitReader(src, g.MaxSpill))
	if perr != nil {
		return nil, limit(Clean(perr.Error()), 200), nil
	}
	return &agent.Spill{Handle: "output:" + sum[:min(len(sum), handleLength)], SHA256: sum, Bytes: size}, "", nil
}

// notice says what is missing and how to get at it.
func (g *Guard) notice(all *count, shown, budget int, spill *agent.Spill, problem string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\n[... %d of %d characters (%d lines) are left out here: more than the budget of %d. ", all.runes-int64(shown), all.runes, all.lines, budget)
	if spill == nil {
		fmt.Fprintf(&b, "They could not be kept: %s. Run it again with less output to see them.", problem)
	} else {
		what := "The whole output is"
		if spill.Capped {
			what = fmt.Sprintf("Its first %d bytes are", spill.Bytes)
		}
		h := strconv.Quote(spill.Handle)
		fmt.Fprintf(&b, "%s kept as %s: page it with %s (file_path %s, offset, limit) or search it with %s (path %s).", what, spill.Handle, g.Read, h, g.Grep, h)
	}
	b.WriteString(" ...]\n\n")
	return b.String()
}

// readRunes reads until it has more than n characters or the text ends.
func readRunes(src io.Reader, n int) (text []byte, more bool, err error) {
	buf := make([]byte, 4<<10)
	runes := 0
	for {
		k, err := src.Read(buf)
		text = append(text, buf[:k]...)
		for _, c := range buf[:k] {
			if utf8.RuneStart(c) {
				runes++
			}
		}
		switch {
		case runes > n:
			return text, true, nil
		case errors.Is(err, io.EOF):
			return text, false, nil
		case err != nil:
			return nil, false, err
		}
	}
}

// count reads, counts what passes, and keeps the end of it.
type count struct {
	io.Reader
	tail                *ring
	bytes, runes, lines int64
	err                 error
}

func (c *count) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	c.bytes += int64(n)
	c.lines += int64(bytes.Count(p[:n], []byte("\n")))
	for _, b := range p[:n] {
		if utf8.RuneStart(b) {
			c.runes++
		}
	}
	c.tail.add(p[:n])
	return n, err
}

// ring keeps the last bytes of a text.
type ring struct {
	buf  []byte
	size int64
}

func newRing(n int) *ring { return &ring{buf: make([]byte, max(n, utf8.UTFMax))} }

func (r *ring) add(p []byte) {
	if over := len(p) - len(r.buf); over > 0 {
		r.size += int64(over)
		p = p[over:]
	}
	n := copy(r.buf[r.size%int64(len(r.buf)):], p)
	copy(r.buf, p[n:])
	r.size += int64(len(p))
}

func (r *ring) String() string {
	if r.size <= int64(len(r.buf)) {
		return string(r.buf[:r.size])
	}
	at := r.size % int64(len(r.buf))
	return string(r.buf[at:]) + string(r.buf[:at])
}

// headOf returns the first n characters of s, or a little less so that it ends
// with a line.
func headOf(s string, n int) string {
	end := len(s)
	for i := range s {
		if n == 0 {
			end = i
			break
		}
		n--
	}
	s = s[:end]
	if i := strings.LastIndexByte(s, '\n'); i >= len(s)*3/4 {
		return s[:i+1]
	}
	return s
}

// tailOf returns the last n characters of s, or a little less so that it begins
// with a line.
func tailOf(s string, n int) string {
	start := len(s)
	for ; n > 0 && start > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:start])
		start -= size
	}
	for start < len(s) && !utf8.RuneStart(s[start]) { // a rune that the ring cut
		start++
	}
	s = s[start:]
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)/4 {
		return s[i+1:]
	}
	return s
}
