package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// A chain is where a log stands behind one of its lines: what the next line has
// to follow. Its zero value is the beginning of a log.
type chain struct {
	seq, epoch int64
	sum        uint32
}

// follow checks that l may stand behind c.
func (c chain) follow(l line) error {
	if l.seq != c.seq+1 {
		return fmt.Errorf("event %d follows event %d", l.seq, c.seq)
	}
	if l.epoch < c.epoch || l.epoch < 1 {
		return fmt.Errorf("event %d: epoch %d follows epoch %d", l.seq, l.epoch, c.epoch)
	}
	return nil
}

// A badLine is a line that cannot be taken as part of the log.
type badLine struct {
	after int64 // the last good event
	off   int64 // where the line begins in its file
	why   error
}

func (e *badLine) Error() string { return fmt.Sprintf("the line after event %d: %v", e.after, e.why) }
func (e *badLine) Unwrap() error { return e.why }

// torn reports whether the line may be what a crash left of a write, rather
// than one that was written in full and is wrong.
func (e *badLine) torn() bool { return errors.Is(e.why, errSum) }

var (
	errUnfinished = fmt.Errorf("it has no end: %w", errSum)
	errTooLong    = fmt.Errorf("it is longer than %d bytes: %w", maxLine, errSum)
)

// A scanner reads the lines of one file and checks each against the one before.
type scanner struct {
	r    *bufio.Reader
	at   chain // behind the last good line
	off  int64 // of the next line in the file
	line line  // the last good line; valid until next is called
	err  error // why next was false; nil at the end of the file
}

// scan starts at off, where the log stands at c. end bounds the file, which may
// grow meanwhile.
func scan(f io.ReaderAt, off, end int64, c chain) *scanner {
	r := io.NewSectionReader(f, off, max(0, end-off))
	size := int(min(int64(maxLine), max(4096, end-off+1)))
	return &scanner{r: bufio.NewReaderSize(r, size), at: c, off: off}
}

// next goes to the next line. It is false at the end of the file, at a line
// that is bad (err is a *badLine then), and when reading fails.
func (s *scanner) next() bool {
	if s.err != nil {
		return false
	}
	raw, err := s.r.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(raw) == 0:
		return false
	case errors.Is(err, io.EOF):
		return s.fail(errUnfinished)
	case errors.Is(err, bufio.ErrBufferFull):
		return s.fail(errTooLong)
	case err != nil:
		s.err = err
		return false
	}
	l, err := readLine(raw[:len(raw)-1], s.at.sum)
	if err == nil {
		err = s.at.follow(l)
	}
	if err != nil {
		return s.fail(err)
	}
	s.line = l
	s.at = chain{l.seq, l.epoch, l.sum}
	s.off += int64(len(raw))
	return true
}

func (s *scanner) fail(why error) bool {
	s.err = &badLine{s.at.seq, s.off, why}
	return false
}

// goodAfter reports whether there is a good line anywhere behind the line at
// off, which is bad. A line is good when it has its checksum, seeded with the
// one that the line before it claims or should have: so that one wrong bit in
// either still leaves its neighbour good.
func goodAfter(f io.ReaderAt, off, end int64, seed uint32) (bool, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(f, off, max(0, end-off)), maxLine)
	claimed, should := seed, seed
	for first := true; ; first = false {
		raw, err := r.ReadSlice('\n')
		whole := err == nil
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		raw = bytes.TrimSuffix(raw, []byte("\n"))
		if n := len(raw) - sumLen; whole && n > 0 {
			_, sum, ok := storedSum(raw)
			byClaim := crc32.Update(claimed, castagnoli(), raw[:n])
			byRight := crc32.Update(should, castagnoli(), raw[:n])
			if !first && ok && (sum == byClaim || sum == byRight) {
				return true, nil
			}
			should = byRight
			if claimed = sum; !ok {
				claimed = byClaim
			}
		}
		if err != nil {
			return false, nil
		}
	}
}

// A segment is one file of a log.
type segment struct {
	n    int
	name string
	size int64
}

func segmentName(dir string, n int) string { return fmt.Sprintf("%s/log.%06d.jsonl", dir, n) }

// segments lists the files of the log in dir, in order. A gap is damage.
func segments(d disk, dir string) ([]segment, error) {
	names, err := d.list(dir)
	if err != nil {
		return nil, err
	}
	var segs []segment
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, "log.")
		digits, ok2 := strings.CutSuffix(digits, ".jsonl")
		n, err := strconv.Atoi(digits)
		if !ok || !ok2 || err != nil || segmentName(dir, n) != dir+"/"+name {
			continue
		}
		size, _, err := d.stat(dir + "/" + name)
		if err != nil {
			return nil, err
		}
		if n != len(segs)+1 {
			return segs, fmt.Errorf("%w: log.%06d.jsonl is missing", ErrDamaged, len(segs)+1)
		}
		segs = append(segs, segment{n, dir + "/" + name, size})
	}
	return segs, nil
}

// A place is a line's position in a log, and how the log stands before it.
type place struct {
	seg int // number of the segment
	off int64
	at  chain
}

// A logReader walks the lines of a log across its segments.
type logReader struct {
	d    disk
	segs []segment
	file file
	*scanner

	// torn has what could not be read at the end, when it looks like a write
	// that did not finish. err is nil then.
	torn *badLine
	err  error
	gap  error // damage behind the last segment
}

// readFrom starts reading the log in dir at a place.
func readFrom(d disk, dir string, p place) (*logReader, error) {
	segs, gap := segments(d, dir)
	if gap != nil && !errors.Is(gap, ErrDamaged) {
		return nil, gap
	}
	r := &logReader{d: d, segs: segs, gap: gap}
	for len(r.segs) > 0 && r.segs[0].n < p.seg {
		r.segs = r.segs[1:]
	}
	return r, r.openAt(p.off, p.at)
}

func (r *logReader) openAt(off int64, c chain) error {
	r.close()
	if len(r.segs) == 0 {
		r.scanner = scan(strings.NewReader(""), 0, 0, c)
		return nil
	}
	f, err := r.d.open(r.segs[0].name, toRead)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return err
	}
	r.segs[0].size = size
	r.file, r.scanner = f, scan(f, off, size, c)
	return nil
}

func (r *logReader) close() {
	if r.file != nil {
		_ = r.file.Close() // only read
		r.file = nil
	}
}

// place returns where the next line begins.
func (r *logReader) place() place {
	p := place{seg: 1, off: r.off, at: r.at}
	if len(r.segs) > 0 {
		p.seg = r.segs[0].n
	}
	return p
}

// step goes to the next line. It is false at the end of the log; err then says
// whether it was a good one.
func (r *logReader) step() bool {
	for r.err == nil && r.torn == nil {
		if r.next() {
			return true
		}
		switch {
		case r.scanner.err != nil:
			r.judge()
		case len(r.segs) > 1:
			r.segs = r.segs[1:]
			r.err = r.openAt(0, r.at)
		default:
			r.err = r.gap
			return false
		}
	}
	return false
}

// judge decides what a bad line means: a bad line that something good follows
// is damage, and never cut off.
func (r *logReader) judge() {
	bad, ok := errors.AsType[*badLine](r.scanner.err)
	if !ok {
		r.err = r.scanner.err
		return
	}
	if errors.Is(bad, ErrNewer) {
		r.err = bad // nothing is wrong with it, but it is not for us
		return
	}
	last := len(r.segs) == 1 && r.gap == nil
	if last && bad.torn() {
		good, err := goodAfter(r.file, bad.off, r.segs[0].size, r.at.sum)
		if err != nil {
			r.err = err
			return
		}
		if !good {
			r.torn = bad
			return
		}
	}
	r.err = fmt.Errorf("%w: %w", ErrDamaged, bad)
}

// lastChain returns how the log stands behind the last line of a whole segment.
// The line's checksum is taken as it is.
func lastChain(d disk, s segment) (chain, error) {
	f, err := d.open(s.name, toRead)
	if err != nil {
		return chain{}, err
	}
	defer f.Close()
	b := make([]byte, min(s.size, maxLine))
	if _, err := f.ReadAt(b, s.size-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return chain{}, err
	}
	b, ok := bytes.CutSuffix(b, []byte("\n"))
	b = b[bytes.LastIndexByte(b, '\n')+1:]
	var l line
	if ok {
		_, sum, has := storedSum(b)
		l, err = line{sum: sum}.parseAny(b)
		ok = has && err == nil
	}
	if !ok {
		return chain{}, fmt.Errorf("%w: the last line of segment %d cannot be read", ErrDamaged, s.n)
	}
	return chain{l.seq, l.epoch, l.sum}, nil
}

// placeBefore returns the beginning of the segment that holds the line of seq.
func placeBefore(d disk, dir string, seq int64) (place, error) {
	segs, err := segments(d, dir)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return place{}, err
	}
	for i := len(segs) - 1; i > 0; i-- {
		c, err := lastChain(d, segs[i-1])
		if err != nil {
			continue // the reader that gets there will say what is wrong
		}
		if c.seq < seq {
			return place{seg: segs[i].n, at: c}, nil
		}
	}
	return place{seg: 1}, nil
}

// missing reports whether an error says that a file is not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
