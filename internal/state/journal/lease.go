package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"dure/agent"
)

// What one append may hold, besides what its lines may, see maxInline.
const (
	maxEvents = 1 << 16 // events
	maxTaken  = 1000    // messages consumed
	maxPosts  = 256     // messages to others
)

// A lease writes one log. Its goroutine is the caller's: an append is written
// under mu, and synced outside of it, so that those who come meanwhile write too
// and share the next sync.
type lease struct {
	s        *Local
	id, dir  string
	epoch    int64
	repaired *agent.LogRepaired
	unlock   func() error
	valid    context.Context
	cancel   context.CancelCauseFunc
	mail     chan struct{}
	blobs    blobs

	posting sync.Mutex // held during appends with posts, so that they leave in order
	syncing sync.Mutex // held by whoever syncs for all

	mu     sync.Mutex // guards what follows
	dead   error      // why nothing can be written any more
	shown  Meta       // what List shows
	at     chain      // behind the last line
	file   file       // the last segment
	seg    int
	size   int64 // of file
	total  int64 // of all segments
	seal   sealing
	ring   ring
	places places
	buf    []byte // the lines of the append in progress

	// Bytes of this lease that were written, and those of them that are on the
	// disk. fresh means that the names of its files may not be.
	written, synced int64
	fresh           bool
	lazy            *time.Timer // syncs what no Barrier does; nil = not armed

	poll     *time.Timer // looks for messages of other processes
	mailSeen time.Time   // change of the inbox when poll last looked
}

// A draft is a batch whose bodies are encoded.
type draft struct {
	events  []agent.Event
	bodies  []payload
	x       []byte
	seal    bool
	barrier bool
	taken   []string
	size    int // estimate of the bytes of its lines
}

// syncError is an error of fsync. What the disk holds is unknown then.
type syncError struct{ err error }

func (e *syncError) Error() string { return e.err.Error() }
func (e *syncError) Unwrap() error { return e.err }

func (l *lease) Session() Meta {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown
}

func (l *lease) Epoch() int64                 { return l.epoch }
func (l *lease) Repaired() *agent.LogRepaired { return l.repaired }
func (l *lease) Valid() context.Context       { return l.valid }
func (l *lease) Mail() <-chan struct{}        { return l.mail }

func (l *lease) Head() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at.seq
}

// Append writes one batch. Batches that take or post messages are Barriers
// whatever Sync says, and posts need an event to travel with.
func (l *lease) Append(ctx context.Context, b Batch) ([]agent.Event, error) {
	events, err := l.append(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("appending to session %s: %w", l.id, err)
	}
	return events, nil
}

func (l *lease) append(ctx context.Context, b Batch) ([]agent.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, err := l.draft(b)
	if err != nil {
		return nil, err
	}
	if !b.Wake.IsZero() { // early is harmless, and never is not
		if err := l.s.setWake(l.id, b.Wake); err != nil {
			return nil, err
		}
	}
	if len(b.Posts) == 0 {
		return l.commit(d)
	}
	l.posting.Lock()
	defer l.posting.Unlock()
	backlog, err := l.s.expectPosts(l.id, l.Head()+1)
	if err != nil {
		return nil, err
	}
	events, err := l.commit(d)
	if err == nil {
		l.deliver(b.Posts, backlog)
	}
	return events, err
}

// commit writes a draft, and syncs it if it is a Barrier.
func (l *lease) commit(d draft) ([]agent.Event, error) {
	l.mu.Lock()
	events, err := l.write(d)
	if err == nil && len(d.taken) > 0 {
		err = l.take(d, len(events) > 0)
	}
	target, listing := l.written, l.listing(events)
	l.mu.Unlock()
	if err == nil && d.barrier {
		err = l.sync(target)
	}
	if err == nil && listing != nil {
		l.s.index(*listing)
	}
	return events, err
}

// draft checks a batch and encodes its bodies, which takes no lock.
func (l *lease) draft(b Batch) (draft, error) {
	d := draft{seal: b.Seal, taken: b.Taken, barrier: l.barrier(b)}
	switch {
	case len(b.Events) > maxEvents:
		return d, fmt.Errorf("%d events in one append (at most %d)", len(b.Events), maxEvents)
	case len(b.Taken) > maxTaken:
		return d, fmt.Errorf("%d messages taken in one append (at most %d)", len(b.Taken), maxTaken)
	case len(b.Posts) > 0 && len(b.Events) == 0:
		return d, errors.New("messages to other sessions need an event that says so")
	}
	d.events = make([]agent.Event, len(b.Events), len(b.Events)+1)
	d.bodies = make([]payload, len(b.Events), len(b.Events)+1)
	for i, e := range b.Events {
		p, err := l.encode(e)
		if err != nil {
			return d, err
		}
		d.events[i], d.bodies[i] = e, p
		d.size += len(p.data) + 256
	}
	if len(b.Taken) == 0 && len(b.Posts) == 0 {
		return d, nil
	}
	x, err := l.extra(b)
	d.x = x
	d.size += len(x)
	return d, err
}

// barrier reports whether b has to be on the disk before Append returns.
func (l *lease) barrier(b Batch) bool {
	switch l.s.durability {
	case DurabilityAlways:
		return true
	case DurabilityOS:
		return false
	}
	return b.Sync == Barrier || len(b.Taken) > 0 || len(b.Posts) > 0
}

// encode makes the payload of an event. A long body becomes a blob, which is on
// the disk before the line that needs it can be.
func (l *lease) encode(e agent.Event) (payload, error) {
	if len(e.ID) > maxID {
		return payload{}, fmt.Errorf("the ID of an event has %d bytes (at most %d)", len(e.ID), maxID)
	}
	data, err := encodeBody(e.Body)
	if err == nil && e.Kind() == kindSealed {
		err = errors.New("only the store itself seals a log")
	}
	if err != nil || len(data) <= maxInline {
		return payload{data: data}, err
	}
	sha, err := l.blobs.putBytes(data)
	if err != nil {
		l.dieOfSync(err)
		return payload{}, err
	}
	return payload{ref: newRef(sha, data)}, nil
}

// extra encodes what the batch says to the store.
func (l *lease) extra(b Batch) ([]byte, error) {
	x := extra{Taken: b.Taken}
	n := 0
	for to, msgs := range b.Posts {
		if err := checkID(to); err != nil {
			return nil, err
		}
		if n += len(msgs); n > maxPosts {
			return nil, fmt.Errorf("%d messages posted in one append (at most %d)", n, maxPosts)
		}
		for _, m := range msgs {
			if err := checkMsg(m); err != nil {
				return nil, err
			}
			p := parcel{To: to, ID: m.ID, From: m.From, Kind: m.Kind, Body: m.Body}
			if len(m.Body) > maxParcel {
				sha, err := l.blobs.putBytes(m.Body)
				if err != nil {
					l.dieOfSync(err)
					return nil, err
				}
				p.Body, p.Blob = nil, sha
			}
			x.Posts = append(x.Posts, p)
		}
	}
	out, err := json.Marshal(x)
	if err == nil && len(out) > maxExtra {
		err = fmt.Errorf("the messages taken and posted in one append need %d bytes (at most %d)", len(out), maxExtra)
	}
	return out, err
}

// write puts the lines of a draft at the end of the log with one write, or
// nothing. l.mu is held.
func (l *lease) write(d draft) ([]agent.Event, error) {
	if l.dead != nil {
		return nil, l.dead
	}
	if err := l.prepare(int64(d.size)); err != nil {
		return nil, err
	}
	w := l.compose(d)
	if w.err != nil || len(w.lines) == 0 {
		return nil, w.err
	}
	l.s.fault("append.write")
	n, err := l.file.Write(w.lines)
	if err == nil && n < len(w.lines) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return nil, l.takeBack(err)
	}
	l.s.fault("append.written")
	l.wrote(d, w)
	return d.events[:len(w.sizes)], nil
}

// prepare makes sure that nobody else wrote to the log, and begins a new
// segment when need bytes do not fit any more.
func (l *lease) prepare(need int64) error {
	size, err := l.file.Size()
	if err != nil {
		return err
	}
	if size != l.size {
		return l.die(fmt.Errorf("%w: the log has %d bytes where this owner left %d", ErrFenced, size, l.size))
	}
	if l.size == 0 || l.size+need <= l.s.segment {
		return nil
	}
	return l.rotate()
}

// rotate begins the next segment. The old one is complete on the disk first, so
// that only the last segment of a log can ever be torn.
func (l *lease) rotate() error {
	if err := l.syncHeld(); err != nil {
		return err
	}
	l.s.fault("segment.create")
	f, err := l.s.d.open(segmentName(l.dir, l.seg+1), toCreate)
	if err != nil {
		return fmt.Errorf("beginning the next segment: %w", err)
	}
	if l.s.durable() {
		if err := l.s.d.syncDir(l.dir); err != nil {
			f.Close()
			return l.die(fmt.Errorf("beginning the next segment: %w", err))
		}
	}
	l.s.fault("segment.created")
	_ = l.file.Close() // it is synced
	l.file, l.size = f, 0
	l.seg++
	return nil
}

// composed is what one append writes.
type composed struct {
	lines  []byte
	sizes  []int // of each line
	before []chain
	at     chain
	err    error
}

// compose makes the lines of a draft, and completes its events. Nothing of the
// lease has changed when it returns but l.buf.
func (l *lease) compose(d draft) composed {
	now := l.s.now().Round(0).UTC()
	n := len(d.events)
	sealed := d.seal && (n > 0 || l.seal.open(l.at.seq))
	if sealed {
		n++
	}
	w := composed{lines: l.buf[:0], at: l.at, sizes: make([]int, 0, n), before: make([]chain, 0, n)}
	when := now
	for i := range n {
		var e agent.Event
		p := payload{}
		if i < len(d.events) {
			e, p = d.events[i], d.bodies[i]
			when = ownTime(e.Time, now)
		} else { // a seal is of the time of what it seals
			seal, err := l.seal.body(w.at.seq, w.lines)
			if err != nil {
				return composed{err: err}
			}
			e.Body = seal
			if p.data, err = encodeBody(seal); err != nil {
				return composed{err: err}
			}
		}
		if p.more = n - 1 - i; p.more == 0 {
			p.x = d.x
		}
		e.Seq, e.Epoch, e.Time = w.at.seq+1, l.epoch, when
		if e.ID == "" {
			e.ID = l.s.newID(now)
		}
		start := len(w.lines)
		w.before = append(w.before, w.at)
		w.lines, w.at.sum = appendLine(w.lines, e, p, w.at.sum)
		w.at.seq, w.at.epoch = e.Seq, e.Epoch
		size := len(w.lines) - start
		w.sizes = append(w.sizes, size)
		if size > maxLine {
			w.err = fmt.Errorf("the line of a %s has %d bytes (at most %d)", e.Kind(), size, maxLine)
		}
		if i < len(d.events) {
			d.events[i] = e
		} else {
			d.events = append(d.events, e) // draft has left room for it
		}
	}
	if cap(w.lines) <= 1<<20 { // a rare huge batch is not kept
		l.buf = w.lines
	}
	return w
}

// ownTime is the time of an event that is appended now and may have one of its own.
func ownTime(own, now time.Time) time.Time {
	if own.Unix() <= 0 || own.After(now) {
		return now
	}
	return own.Round(0).UTC()
}

// wrote takes the lines as part of the log.
func (l *lease) wrote(d draft, w composed) {
	events := d.events[:len(w.sizes)]
	off := l.size
	start := 0
	for i, e := range events {
		l.places.add(place{l.seg, off, w.before[i]})
		text := w.lines[start : start+w.sizes[i]]
		l.seal.line(e.Seq, e.Body, text)
		held := w.sizes[i]
		if i < len(d.bodies) && d.bodies[i].ref != nil { // the line has little of it
			held += int(d.bodies[i].ref.Size)
		}
		l.ring.add(e, held)
		l.shown.fold(e.Body)
		l.shown.count(e.Kind())
		off += int64(w.sizes[i])
		start += w.sizes[i]
	}
	l.at = w.at
	n := int64(len(w.lines))
	l.size += n
	l.total += n
	l.written += n
	if len(events) > 0 {
		l.shown.saw(l.at.seq, changedAt(events, l.shown.Updated == ""))
	}
	l.shown.Bytes = l.total
	if !d.barrier && l.s.durable() && l.lazy == nil {
		l.lazy = time.AfterFunc(time.Second, l.syncLazy)
	}
}

// takeBack cuts off what a failed write left, or ends the lease: a half line is
// never followed by another one.
func (l *lease) takeBack(cause error) error {
	size, err := l.file.Size()
	if err == nil && size != l.size {
		if err = l.s.d.truncate(segmentName(l.dir, l.seg), l.size); err == nil {
			size, err = l.file.Size()
		}
	}
	if err == nil && size != l.size {
		err = fmt.Errorf("it still has %d bytes instead of %d", size, l.size)
	}
	if err != nil {
		return l.die(fmt.Errorf("%w; cutting off what was written of it: %w", cause, err))
	}
	return cause
}

// die ends the lease: nothing can be written any more. l.mu is held.
func (l *lease) die(err error) error {
	if l.dead == nil {
		l.dead = err
		l.cancel(err)
	}
	return err
}

func (l *lease) dieOfSync(err error) {
	if _, ok := errors.AsType[*syncError](err); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		_ = l.die(err)
	}
}

// listing returns the new line of the session list, when events changed it
// enough to write one.
func (l *lease) listing(events []agent.Event) *entry {
	for _, e := range events {
		if _, ok := e.Body.(agent.TurnEnded); ok {
			return &entry{Meta: l.shown, Live: true}
		}
	}
	return nil
}

// PutBlob stores a blob.
func (l *lease) PutBlob(ctx context.Context, r io.Reader, limit int64) (string, int64, error) {
	l.mu.Lock()
	err := l.dead
	l.mu.Unlock()
	if err != nil {
		return "", 0, fmt.Errorf("storing a blob of session %s: %w", l.id, err)
	}
	sha, size, err := l.blobs.put(ctx, r, limit)
	if err != nil {
		l.dieOfSync(err)
		return "", 0, fmt.Errorf("session %s: %w", l.id, err)
	}
	return sha, size, nil
}

// Read yields the events after seq: from the disk first, then from memory.
func (l *lease) Read(ctx context.Context, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		l.mu.Lock()
		recent := l.ring.after(after)
		head, from := l.at.seq, l.places.before(after+1)
		l.mu.Unlock()
		until := head
		if len(recent) > 0 {
			until = recent[0].Seq - 1
		}
		if until > after {
			more, err := l.readDisk(ctx, from, after, until, yield)
			if err != nil {
				yield(agent.Event{}, fmt.Errorf("reading session %s: %w", l.id, err))
			}
			if err != nil || !more {
				return
			}
		}
		for _, e := range recent {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// readDisk yields the events after..until, of which all are in the log.
func (l *lease) readDisk(ctx context.Context, p place, after, until int64, yield func(agent.Event, error) bool) (more bool, err error) {
	r, err := readFrom(l.s.d, l.dir, p)
	if err != nil {
		return false, err
	}
	defer r.close()
	fetch := l.s.fetch(l.dir)
	for r.at.seq < until && r.step() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if r.line.seq <= after {
			continue
		}
		e, err := r.line.event(fetch)
		if err != nil {
			return false, err
		}
		if !yield(e, nil) {
			return false, nil
		}
	}
	if r.err == nil && r.at.seq < until {
		return false, fmt.Errorf("%w: it ends at event %d instead of %d", ErrDamaged, r.at.seq, until)
	}
	return true, r.err
}
