package repair

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

const byteOrderMark = "\xef\xbb\xbf"

// read takes in all lines.
func (c *checker) read(r io.Reader) error {
	br := bufio.NewReaderSize(r, 64<<10)
	if order := wide(br); order != nil {
		c.damage(InvalidText, "", "the transcript is UTF-16, as some editors write it; it was read as such")
		br = bufio.NewReaderSize(&narrow{r: br, order: order}, 64<<10)
	}
	left := int64(maxFile)
	var buf []byte
	defer c.letGo()
	for !c.refused() && !c.stopped {
		line, n, err := nextLine(br, buf[:0])
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		c.line++
		if left -= n; left < 0 {
			c.refuse("too-large", "the transcript is too large: at most 1 GiB is read")
			return nil
		}
		if bytes.HasPrefix(line, []byte(byteOrderMark)) { // also where files were put together
			c.warn("a byte order mark was skipped")
			line = line[len(byteOrderMark):]
		}
		if !c.crlf && bytes.HasSuffix(line, []byte("\r")) {
			c.crlf = true
			c.warn("lines end with CR and LF")
		}
		if n > maxLine {
			c.letGo()
			c.broken++
			c.damage(OverLimit, "", "a line of %d bytes was left out: at most %d are read", n, maxLine)
		} else {
			c.take(bytes.TrimSuffix(line, []byte("\r")))
		}
		buf = line
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// nextLine returns a line without its newline and how many bytes it has. A line
// over the limit is read to its end and not kept.
func nextLine(br *bufio.Reader, dst []byte) (line []byte, n int64, err error) {
	for {
		part, err := br.ReadSlice('\n')
		n += int64(len(part))
		if n <= maxLine+1 {
			dst = append(dst, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == nil {
			n--
			dst = bytes.TrimSuffix(dst, []byte("\n"))
			if n == 0 { // an empty line is a line
				return dst, 1, nil
			}
		}
		return dst, n, err
	}
}

// wide returns the byte order of a text that is UTF-16, or nil.
func wide(br *bufio.Reader) binary.ByteOrder {
	head, _ := br.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		_, _ = br.Discard(2)
		return binary.LittleEndian
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		_, _ = br.Discard(2)
		return binary.BigEndian
	case bytes.HasPrefix(head, []byte{'{', 0, '"', 0}):
		return binary.LittleEndian
	case bytes.HasPrefix(head, []byte{0, '{', 0, '"'}):
		return binary.BigEndian
	}
	return nil
}

// A narrow reads UTF-16 as UTF-8.
type narrow struct {
	r     *bufio.Reader
	order binary.ByteOrder
	out   []byte
	half  rune // the first half of a pair
	err   error
}

func (n *narrow) Read(p []byte) (int, error) {
	for len(n.out) == 0 {
		if n.err != nil {
			return 0, n.err
		}
		n.fill()
	}
	k := copy(p, n.out)
	n.out = n.out[k:]
	return k, nil
}

func (n *narrow) fill() {
	var in [4096]byte
	k, err := io.ReadFull(n.r, in[:])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	n.err = err
	n.out = n.out[:0]
	for i := 0; i+1 < k; i += 2 {
		n.put(rune(n.order.Uint16(in[i:])))
	}
	if k%2 == 1 {
		n.out = utf8.AppendRune(n.out, utf8.RuneError)
	}
	if n.err != nil && n.half != 0 {
		n.out = utf8.AppendRune(n.out, utf8.RuneError)
	}
}

func (n *narrow) put(u rune) {
	if n.half != 0 {
		r := utf16.DecodeRune(n.half, u)
		n.half = 0
		n.out = utf8.AppendRune(n.out, r)
		if r != utf8.RuneError {
			return
		}
	}
	switch {
	case u >= 0xd800 && u < 0xdc00:
		n.half = u
	default:
		n.out = utf8.AppendRune(n.out, u) // a lone second half becomes the replacement
	}
}

// take takes in one line.
func (c *checker) take(line []byte) {
	whole := line
	if line = bytes.Trim(line, " \t\r"); len(line) == 0 {
		return
	}
	if bytes.IndexByte(line, 0) >= 0 {
		full := len(line)
		line = bytes.Trim(line, "\x00 \t\r")
		whole = line
		c.damage(InvalidText, "", "zeros stand in a line of %d bytes, as a disk leaves them after a crash", full)
		if len(line) == 0 {
			return
		}
	}
	if !utf8.Valid(line) {
		c.damage(InvalidText, "", "bytes that are no UTF-8 were replaced")
		line = bytes.ToValidUTF8(line, []byte("\ufffd"))
		whole = line
	}
	if len(c.held) > 0 && isRecord(line) {
		c.letGo()
	}
	if len(c.held) == 0 && c.object(line) {
		return
	}
	switch {
	case len(c.held) == 0 && bytes.IndexByte(line, '\r') >= 0:
		c.carriages(whole)
	case !c.hold(whole):
		c.mendLine(line)
	}
}

// carriages takes in lines that end with CR alone, as a very old editor writes
// them: JSON has none within a string.
func (c *checker) carriages(line []byte) {
	if !c.oldMac {
		c.oldMac = true
		c.warn("lines end with CR")
	}
	for part := range bytes.SplitSeq(line, []byte("\r")) {
		c.take(part)
	}
}

// mendLine takes in what is whole in a line that is not.
func (c *checker) mendLine(line []byte) {
	if c.object(line) {
		return
	}
	c.broken++
	found := salvage(line)
	c.damage(TruncatedJSON, "", "a line of %d bytes is broken; %d records in it are whole", len(line), len(found))
	for _, raw := range found {
		c.object(raw)
	}
}

// object takes in a line that is a JSON object, and reports whether it is one.
func (c *checker) object(line []byte) bool {
	depth, twice, ok := survey(line)
	switch {
	case !ok:
		return false
	case depth > maxDepth:
		c.broken++
		c.damage(OverLimit, "", "a record is nested %d levels deep and was left out: at most %d are read", depth, maxDepth)
	case c.each != nil:
		if twice != "" {
			line = rebuild(line)
		}
		c.stopped = c.stopped || !c.each(line)
	case isEvent(line):
		c.event(line)
	default:
		c.record(line, twice)
	}
	return true
}
