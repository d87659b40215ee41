package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"dure/agent"
)

// lockTries bounds how often Acquire comes back to a lock that somebody only
// looks at, every lockPause.
const (
	lockTries = 4
	lockPause = 3 * time.Millisecond
)

// lockNote is what a lock file says, for messages.
type lockNote struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// Acquire opens a session for writing. What a crash left at the end of its log
// is cut off and reported by [Lease.Repaired]. The epoch is one more than the
// last one in the log: an owner that wrote nothing leaves it to the next.
func (s *Local) Acquire(ctx context.Context, id string, _ Owner) (Lease, error) {
	l, err := s.acquire(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("opening session %s: %w", id, err)
	}
	return l, nil
}

func (s *Local) acquire(ctx context.Context, id string) (*lease, error) {
	if err := errors.Join(ctx.Err(), s.check()); err != nil {
		return nil, err
	}
	dir, err := s.find(id)
	if err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx, id, dir)
	if err != nil {
		return nil, err
	}
	l := &lease{s: s, id: id, dir: dir, unlock: unlock, mail: make(chan struct{}, 1), fresh: true}
	l.blobs = blobs{s: s, dir: dir}
	l.valid, l.cancel = context.WithCancelCause(context.Background())
	if err := l.open(); err != nil {
		if l.file != nil {
			l.file.Close()
		}
		if errors.Is(err, ErrDamaged) {
			l.shown.Status = statusDamaged
			s.index(entry{Meta: l.shown})
		}
		return nil, errors.Join(err, unlock())
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errors.Join(ErrClosed, l.file.Close(), unlock())
	}
	s.leases[id] = l
	s.mu.Unlock()
	l.start()
	return l, nil
}

// lock takes the session's lock, which ends with this process.
func (s *Local) lock(ctx context.Context, id, dir string) (func() error, error) {
	host, _ := os.Hostname() // only for messages
	note, err := json.Marshal(lockNote{os.Getpid(), host, s.now().UTC()})
	if err != nil {
		return nil, err
	}
	if s.lease(id) != nil {
		return nil, s.ownedBy(id, dir)
	}
	s.fault("lock")
	for try := 1; ; try++ {
		unlock, err := s.d.lock(dir+"/lock", append(note, '\n'))
		if err == nil {
			s.fault("locked")
			return unlock, nil
		}
		if missing(err) { // it was deleted meanwhile
			return nil, ErrMissing
		}
		if !errors.Is(err, errLocked) {
			return nil, err
		}
		if try >= lockTries || !s.d.shared() {
			return nil, s.ownedBy(id, dir)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

func (s *Local) ownedBy(id, dir string) error {
	e := &OwnedError{Session: id}
	var n lockNote
	if err := json.Unmarshal(bytes.TrimSpace(s.d.lockNote(dir+"/lock")), &n); err == nil {
		e.PID, e.Host, e.Since = n.PID, n.Host, n.Since
	}
	return e
}

// start sets the timers going, once nothing can go wrong any more.
func (l *lease) start() {
	l.mu.Lock()
	live := entry{Meta: l.shown, Live: true}
	if l.s.d.shared() {
		l.poll = time.AfterFunc(mailPoll, l.pollMail)
	}
	l.mu.Unlock()
	if names, err := l.s.d.list(l.dir + "/inbox"); err == nil && len(names) > 0 {
		l.nudge()
	}
	l.s.index(live)
}

// open reads the log as far as it takes to write on, and repairs its end.
func (l *lease) open() error {
	s := l.s
	l.shown, _ = s.readMeta(l.dir) // the log completes it
	segs, err := segments(s.d, l.dir)
	if err != nil {
		return err
	}
	for _, seg := range segs {
		l.total += seg.size
	}
	if len(segs) == 0 {
		err = l.begin()
	} else {
		err = l.recover(segs)
	}
	if err != nil {
		return err
	}
	l.epoch = l.at.epoch + 1
	l.shown.Bytes = l.total
	if _, _, err := s.d.stat(outboxDir + "/" + l.id); err == nil {
		s.redeliver(l.id, l.dir)
	}
	return nil
}

// begin makes the first segment.
func (l *lease) begin() error {
	l.s.fault("segment.create")
	f, err := l.s.d.open(segmentName(l.dir, 1), toCreate)
	if err != nil {
		return err
	}
	l.s.fault("segment.created")
	l.file, l.seg, l.seal = f, 1, newSealing(1, "")
	return nil
}

// A tail is what recovery learns from the last segment.
type tail struct {
	open    place  // where the last append began, if it is not whole
	pending bool   // whether it is not
	seal    *place // behind the last seal
	sealed  agent.LogSealed
	sealSeq int64
	extras  []taking
	shown   Meta
}

type taking struct {
	seq int64
	ids []string
}

// recover reads the last segment, cuts off what is torn at its end, and takes up
// what the log says.
func (l *lease) recover(segs []segment) error {
	last := segs[len(segs)-1]
	from := place{seg: last.n}
	var err error
	if len(segs) > 1 {
		if from.at, err = lastChain(l.s.d, segs[len(segs)-2]); err != nil {
			return err
		}
	}
	if from.at.seq > l.shown.Head { // the listing is older than this segment
		l.shown = l.s.derive(l.dir)
	}
	receipts, err := l.s.lastReceipt(l.dir)
	if err != nil {
		return err
	}
	r, err := readFrom(l.s.d, l.dir, from)
	if err != nil {
		return err
	}
	defer r.close()
	t, err := l.readTail(r, receipts)
	if err != nil {
		return err
	}
	end, torn := r.place(), r.torn
	if t.pending {
		end = t.open
	}
	size := r.segs[0].size
	if end.off < size {
		if err := l.cut(last, end, size, torn); err != nil {
			return err
		}
	}
	l.places.cut(end.at.seq)
	ahead := t.shown.Head > end.at.seq // of what the disk kept
	l.shown = t.shown
	l.shown.Head = end.at.seq
	if ahead { // or it would tell against what is written from now on
		if err := l.s.writeMeta(l.dir, l.shown); err != nil {
			return err
		}
	}
	l.at, l.seg, l.size = end.at, last.n, end.off
	l.total += end.off - last.size
	if l.file, err = l.s.d.open(last.name, toAppend); err != nil {
		return err
	}
	if err := l.reseal(t); err != nil {
		return err
	}
	for _, x := range t.extras {
		if x.seq <= l.at.seq {
			if err := l.s.taken(l.dir, x.ids, x.seq); err != nil {
				return err
			}
		}
	}
	return nil
}

// readTail reads the last segment to its end.
func (l *lease) readTail(r *logReader, receipts int64) (tail, error) {
	t := tail{shown: l.shown}
	whole := t.shown // as of the last append that is whole
	fetch := l.s.fetch(l.dir)
	for at := r.place(); r.step(); at = r.place() {
		line := r.line
		if t.pending && at.at.epoch != line.epoch { // cut there by a fork
			t.pending, whole = false, t.shown
		}
		if !t.pending {
			t.open = at
		}
		l.places.add(at)
		if line.seq > t.shown.Head {
			if err := t.shown.foldLine(line, fetch); err != nil {
				return t, fmt.Errorf("%w: %w", ErrDamaged, err)
			}
		}
		if err := t.note(line, r.place(), receipts, fetch); err != nil {
			return t, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if t.pending = line.more > 0 && line.seq != l.shown.ForkSeq; !t.pending {
			whole = t.shown
		}
	}
	t.shown = whole
	if t.pending && t.seal != nil && t.sealSeq > t.open.at.seq { // the store never does that
		return t, fmt.Errorf("%w: a seal within an append that is not whole", ErrDamaged)
	}
	return t, r.err
}

// note keeps what the store needs to know of a line.
func (t *tail) note(l line, behind place, receipts int64, fetch func(blobRef) ([]byte, error)) error {
	if l.kind == kindSealed {
		e, err := l.event(fetch)
		if err != nil {
			return err
		}
		sealed, ok := e.Body.(agent.LogSealed)
		if !ok {
			return fmt.Errorf("event %d is no seal", l.seq)
		}
		t.seal, t.sealed, t.sealSeq = &behind, sealed, l.seq
		t.seal.off -= int64(len(l.raw)) + 1
	}
	if l.x != nil && l.seq > receipts {
		x, err := l.extra()
		if err != nil {
			return err
		}
		if len(x.Taken) > 0 {
			t.extras = append(t.extras, taking{l.seq, x.Taken})
		}
	}
	return nil
}

// cut keeps what is torn in a file of its own, and ends the log before it.
func (l *lease) cut(last segment, end place, size int64, torn *badLine) error {
	kept, err := l.keepTorn(last, end.off, size)
	if err != nil {
		return fmt.Errorf("keeping the torn end of the log: %w", err)
	}
	l.s.fault("repair.truncate")
	if err := l.s.d.truncate(last.name, end.off); err != nil {
		return fmt.Errorf("cutting off the torn end of the log: %w", err)
	}
	f, err := l.s.d.open(last.name, toAppend)
	if err != nil {
		return err
	}
	err = errors.Join(f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("cutting off the torn end of the log: %w", err)
	}
	l.s.fault("repair.truncated")
	why := "the last append is not whole"
	if torn != nil {
		why = torn.Error()
	}
	l.repaired = &agent.LogRepaired{Bytes: size - end.off, Kept: path.Base(kept), Why: why}
	return l.dropSnapshots(end.at.seq)
}

func (l *lease) keepTorn(last segment, off, size int64) (string, error) {
	src, err := l.s.d.open(last.name, toRead)
	if err != nil {
		return "", err
	}
	defer src.Close()
	name := l.dir + "/log.torn-" + l.s.now().UTC().Format("20060102T150405.000000000Z")
	l.s.fault("repair.keep")
	dst, err := l.s.d.open(name, toExtend)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(dst, io.NewSectionReader(src, off, size-off))
	if err == nil {
		err = dst.Sync()
	}
	if err = errors.Join(err, dst.Close()); err != nil {
		return "", err
	}
	return name, l.s.d.syncDir(l.dir)
}

// reseal takes up the hash of what was written since the last seal.
func (l *lease) reseal(t tail) error {
	p, s := place{seg: 1}, newSealing(1, "")
	switch {
	case t.seal != nil:
		p, s = *t.seal, newSealing(t.sealSeq, t.sealed.Hash)
	case l.seg > 1:
		var err error
		if p, s, err = l.s.lastSeal(l.dir); err != nil {
			return err
		}
	}
	for n := p.seg; n <= l.seg; n++ {
		f, err := l.s.d.open(segmentName(l.dir, n), toRead)
		if err != nil {
			return err
		}
		size, err := f.Size()
		if err == nil {
			_, err = io.Copy(s.hash, io.NewSectionReader(f, p.off, size-p.off))
		}
		f.Close()
		if err != nil {
			return err
		}
		p.off = 0
	}
	l.seal = s
	return nil
}

// lastSeal finds the last seal before the last segment.
func (s *Local) lastSeal(dir string) (place, sealing, error) {
	found, sealed := place{seg: 1}, newSealing(1, "")
	r, err := readFrom(s.d, dir, place{seg: 1})
	if err != nil {
		return found, sealed, err
	}
	defer r.close()
	fetch := s.fetch(dir)
	for r.step() {
		if r.line.kind != kindSealed {
			continue
		}
		e, err := r.line.event(fetch)
		if err != nil {
			return found, sealed, err
		}
		if b, ok := e.Body.(agent.LogSealed); ok {
			found = r.place()
			found.off -= int64(len(r.line.raw)) + 1
			sealed = newSealing(r.line.seq, b.Hash)
		}
	}
	return found, sealed, r.err
}
