package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"time"

	"dure/agent/query"
)

// The limits of mending a log.
const (
	maxMissing  = 100_000 // events for which a note may stand
	maxProblems = 100     // that are told one by one
	maxMended   = 8 << 30 // bytes of a log
)

// A found line is one that may be an event, by its form.
type found struct {
	name    string // of its file
	off     int64
	size    int
	seq     int64
	from    uint32 // the checksum that it says the line before it has
	sum     uint32
	altered bool
}

// Mend makes a damaged log one that can be written on: every event that is intact
// keeps its number, its time and its bytes, a note stands for each that is lost, and
// the seals behind the damage are made anew. The log as it was is kept beside it
// first; a crash at any point leaves it, and mending again does the rest. With dry
// set it is only said what would be done. It is ErrOwned while somebody writes.
func (s *Local) Mend(ctx context.Context, id string, dry bool) (query.LogReport, error) {
	m := query.LogReport{Session: id, Problems: []string{}}
	if err := s.mend(ctx, id, dry, &m); err != nil {
		return m, fmt.Errorf("repairing session %s: %w", id, err)
	}
	return m, nil
}

func (s *Local) mend(ctx context.Context, id string, dry bool, m *query.LogReport) error {
	if err := s.check(); err != nil {
		return err
	}
	dir, err := s.find(id)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx, id, dir)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }() // it goes with its file in any case
	names, err := s.logNames(dir)
	if err != nil {
		return err
	}
	d := mender{s: s, dir: dir, dry: dry, out: m, ctx: ctx, broken: map[uint32]bool{}}
	if err := d.survey(names); err != nil {
		return err
	}
	d.choose()
	rep, err := s.vouch(ctx, id, false)
	if err != nil {
		return err
	}
	if rep.OK && m.Broken+m.Twice == 0 {
		m.OK, m.Events = true, rep.Events
		return nil
	}
	if len(d.chosen) == 0 {
		return fmt.Errorf("%w: no event of it can be read", ErrDamaged)
	}
	defer d.drop()
	if err := d.write(); err != nil || dry {
		return err
	}
	return d.replace(names)
}

// logNames lists the files of a log, also when one between them is missing.
func (s *Local) logNames(dir string) (logs []string, err error) {
	names, err := s.d.list(dir)
	total := int64(0)
	for _, n := range names {
		if strings.HasPrefix(n, "log.") && strings.HasSuffix(n, ".jsonl") {
			size, _, err := s.d.stat(dir + "/" + n)
			if total += size; err != nil || total > maxMended {
				return nil, errors.Join(err, fmt.Errorf("the log has more than %d bytes", int64(maxMended)))
			}
			logs = append(logs, dir+"/"+n)
		}
	}
	return logs, err
}

// problem notes what was found, up to a limit.
func (d *mender) problem(format string, args ...any) {
	if len(d.out.Problems) < maxProblems {
		d.out.Problems = append(d.out.Problems, fmt.Sprintf(format, args...))
	} else {
		d.out.Hidden++
	}
}

// A mender mends one log.
type mender struct {
	s   *Local
	dir string
	dry bool
	out *query.LogReport
	ctx context.Context

	lines   []found
	broken  map[uint32]bool // checksums of lines that are no events
	chosen  []found         // one for each event, in order
	news    []string        // files that were written
	w       *bufio.Writer
	file    file
	size    int64
	at      chain
	when    time.Time
	seal    sealing
	changed bool
	buf     []byte
}

// survey finds every line that has the form of an event.
func (d *mender) survey(names []string) error {
	for _, name := range names {
		f, err := d.s.d.open(name, toRead)
		if err != nil {
			return err
		}
		size, err := f.Size()
		if err == nil {
			err = d.surveyFile(name, bufio.NewReaderSize(io.NewSectionReader(f, 0, size), maxLine))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (d *mender) surveyFile(name string, r *bufio.Reader) error {
	for off := int64(0); ; {
		raw, err := r.ReadSlice('\n')
		n := len(raw)
		long := false
		for errors.Is(err, bufio.ErrBufferFull) {
			long = true
			var more []byte
			more, err = r.ReadSlice('\n')
			n += len(more)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n > 0 && (long || !d.take(name, off, bytes.TrimSuffix(raw, []byte("\n")))) {
			d.out.Broken++
			d.problem("%s: the line at byte %d is no event", name[len(d.dir)+1:], off)
		}
		off += int64(n)
		if err != nil {
			return d.ctx.Err()
		}
	}
}

// take takes a line, or what is whole of several that have become one: where a write
// was torn, or a newline was lost. It reports whether all of it is.
func (d *mender) take(name string, off int64, raw []byte) bool {
	const begin = `{"v":`
	all := true
	for len(raw) > 0 {
		n := len(raw)
		if i := bytes.Index(raw[1:], []byte(begin)); i >= 0 {
			n = i + 1
		}
		whole := bytes.Trim(raw[:n], "\x00\r\t ")
		switch {
		case d.event(name, off+int64(bytes.Index(raw, whole)), whole):
			off, raw = off+int64(n), raw[n:]
			continue
		case n < len(raw): // those words may stand in its text
			if rest := bytes.Trim(raw, "\x00\r\t "); d.event(name, off+int64(bytes.Index(raw, rest)), rest) {
				return all
			}
		}
		all = false
		if _, sum, ok := storedSum(whole); ok {
			d.broken[sum] = true
		}
		off, raw = off+int64(n), raw[n:]
	}
	return all
}

func (d *mender) event(name string, off int64, raw []byte) bool {
	body, sum, ok := storedSum(raw)
	if !ok {
		return false
	}
	l, err := line{raw: raw, sum: sum}.parseAny(raw)
	if err != nil || l.seq < 1 {
		return false
	}
	state := ^sum
	for _, b := range slices.Backward(body) {
		state = crcSteps().back(state, b)
	}
	d.lines = append(d.lines, found{name: name, off: off, size: len(raw), seq: l.seq, from: ^state, sum: sum})
	return true
}

// choose takes one line for each number: one that its neighbours vouch for. A line
// whose checksum was altered is vouched for by the line behind it; one that nothing
// is known of, because the line before it is gone, is believed.
func (d *mender) choose() {
	byFile := slices.IsSortedFunc(d.lines, func(a, b found) int { return cmp.Compare(a.seq, b.seq) })
	if !byFile {
		d.problem("events are out of order")
		d.out.Broken++
	}
	slices.SortStableFunc(d.lines, func(a, b found) int { return cmp.Compare(a.seq, b.seq) })
	last, sums := int64(0), []uint32{0} // checksums that the line before may have
	var doubt []found                   // altered lines of the number before, with what their checksum should be
	for i := 0; i < len(d.lines); {
		k := i
		for k < len(d.lines) && d.lines[k].seq == d.lines[i].seq {
			k++
		}
		same := d.lines[i:k]
		i = k
		if same[0].seq != last+1 {
			sums, doubt = nil, nil
		}
		next := make([]uint32, 0, len(same))
		var later []found
		best := -1
		for j, l := range same {
			vouched := slices.IndexFunc(doubt, func(p found) bool { return p.sum == l.from })
			sure := slices.Contains(sums, l.from) || d.broken[l.from] || vouched >= 0
			next = append(next, l.sum)
			switch {
			case sure || len(sums) == 0 && l.seq > 1:
				if vouched >= 0 && (len(d.chosen) == 0 || d.chosen[len(d.chosen)-1].seq != last) {
					p := doubt[vouched]
					p.altered = true
					d.chosen = append(d.chosen, p)
				}
				if best < 0 {
					best = j
				} else {
					d.out.Twice++
				}
			default:
				for _, p := range sums {
					l.sum = crc32.Update(p, castagnoli(), d.body(l))
					later = append(later, l)
				}
				d.out.Broken++
				d.problem("event %d was altered", l.seq)
			}
		}
		if best >= 0 {
			d.chosen = append(d.chosen, same[best])
		}
		last, sums, doubt = same[0].seq, next, later
	}
	if d.out.Twice > 0 {
		d.problem("%d lines stood there more than once", d.out.Twice)
	}
}

// raw reads a line again; nil when that fails.
func (d *mender) raw(l found) []byte {
	f, err := d.s.d.open(l.name, toRead)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, l.size)
	if n, err := f.ReadAt(b, l.off); n < len(b) && err != nil {
		return nil
	}
	return b
}

func (d *mender) body(l found) []byte {
	body, _, _ := storedSum(d.raw(l))
	return body
}
