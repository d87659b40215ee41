package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"time"
)

// What an inbox may hold.
const (
	maxInbox    = 1000     // messages
	maxMsg      = 16 << 20 // bytes of a message's body
	maxMsgWords = 256      // bytes of its ID, sender and kind each
	maxParcel   = 4 << 10  // bytes of a posted body within the log; a longer one is a blob
	mailPoll    = 250 * time.Millisecond
)

// A message is a file: a line of JSON, and the body. Its name is made of its ID,
// so that a second one with the same ID has no place.
type msgHead struct {
	ID   string `json:"id"`
	From string `json:"from,omitempty"`
	Kind string `json:"kind"`
	At   int64  `json:"at"` // Unix time in nanoseconds
	N    int64  `json:"n"`  // order within a process, whose clock may stand still
	Size int    `json:"size"`
}

func msgName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

func checkMsg(m Msg) error {
	switch {
	case m.ID == "" || len(m.ID) > maxMsgWords:
		return fmt.Errorf("the ID of a message has 1 to %d bytes: %.80q", maxMsgWords, m.ID)
	case len(m.From) > maxMsgWords || len(m.Kind) > maxMsgWords:
		return fmt.Errorf("the sender and the kind of a message have at most %d bytes", maxMsgWords)
	case len(m.Body) > maxMsg:
		return fmt.Errorf("a message of %d bytes (at most %d)", len(m.Body), maxMsg)
	}
	return nil
}

// Post leaves a message. It is durable when Post returns.
func (s *Local) Post(_ context.Context, to, lane string, m Msg) error {
	err := s.check()
	if err == nil {
		err = s.post(to, lane, m)
	}
	if err != nil {
		return fmt.Errorf("posting to session %s: %w", to, err)
	}
	return nil
}

func (s *Local) post(to, lane string, m Msg) error {
	if err := checkMsg(m); err != nil {
		return err
	}
	dir, err := s.find(to)
	if err != nil {
		return err
	}
	known, err := s.leave(dir, m)
	if err != nil {
		return err
	}
	// A message that was there already may have been left by a sender who died
	// before this.
	if known != msgTaken {
		if err := s.enqueue(to, lane, s.now()); err != nil {
			return err
		}
	}
	if l := s.lease(to); l != nil {
		l.nudge()
	}
	return nil
}

type msgState uint8

const (
	msgNew msgState = iota
	msgWaits
	msgTaken
)

// leave writes the message's file unless the message is known. The inbox is
// looked at before the receipts, because the owner writes the receipt before it
// empties the inbox.
func (s *Local) leave(dir string, m Msg) (msgState, error) {
	inbox, name := dir+"/inbox", msgName(m.ID)
	if _, _, err := s.d.stat(inbox + "/" + name); err == nil {
		return msgWaits, nil
	}
	taken, err := s.receipts(dir, map[string]bool{name: true})
	if err != nil {
		return 0, err
	}
	if taken[name] {
		return msgTaken, nil
	}
	names, err := s.d.list(inbox)
	if err != nil {
		return 0, err
	}
	if len(names) >= maxInbox {
		return 0, fmt.Errorf("%w: %d messages", ErrFull, len(names))
	}
	head, err := json.Marshal(msgHead{m.ID, m.From, m.Kind, s.now().UnixNano(), s.posted.Add(1), len(m.Body)})
	if err != nil {
		return 0, err
	}
	s.fault("inbox.write")
	if err := ensureDir(s.d, inbox); err != nil {
		return 0, err
	}
	content := append(append(head, '\n'), m.Body...)
	if err := replace(s.d, inbox+"/"+name, content, s.durable()); err != nil {
		return 0, err
	}
	if s.durable() {
		if err := errors.Join(s.d.syncDir(inbox), s.syncDirs(dir)); err != nil {
			return 0, err
		}
	}
	s.fault("inbox.written")
	return msgNew, nil
}

// Inbox returns the messages that wait, oldest first.
func (l *lease) Inbox(_ context.Context) ([]Msg, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.dead
	var msgs []Msg
	if err == nil {
		msgs, err = l.s.inbox(l.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the inbox of session %s: %w", l.id, err)
	}
	return msgs, nil
}

// inbox reads an inbox, and clears it of what was taken before a crash. Only the
// owner may call it.
func (s *Local) inbox(dir string) ([]Msg, error) {
	names, err := s.d.list(dir + "/inbox")
	if err != nil || len(names) == 0 {
		return nil, err
	}
	want := map[string]bool{}
	for _, name := range names {
		want[name] = true
	}
	taken, err := s.receipts(dir, want)
	if err != nil {
		return nil, err
	}
	type waiting struct {
		msgHead
		Msg
	}
	var found []waiting
	for _, name := range names {
		file := dir + "/inbox/" + name
		if taken[name] {
			if err := s.d.remove(file); err != nil {
				return nil, err
			}
			continue
		}
		h, m, err := readMsg(s.d, file)
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", name, err)
		}
		found = append(found, waiting{h, m})
	}
	sort.Slice(found, func(i, j int) bool {
		a, b := found[i].msgHead, found[j].msgHead
		switch {
		case a.At != b.At:
			return a.At < b.At
		case a.N != b.N:
			return a.N < b.N
		}
		return a.ID < b.ID
	})
	msgs := make([]Msg, len(found))
	for i, w := range found {
		msgs[i] = w.Msg
	}
	return msgs, nil
}

func readMsg(d disk, name string) (msgHead, Msg, error) {
	var h msgHead
	b, err := readAll(d, name, maxMsg+8*maxMsgWords+256)
	if err != nil {
		return h, Msg{}, err
	}
	head, body, _ := bytes.Cut(b, []byte("\n"))
	if err := json.Unmarshal(head, &h); err != nil {
		return h, Msg{}, err
	}
	if h.Size != len(body) {
		return h, Msg{}, fmt.Errorf("its body has %d bytes instead of %d: %w", len(body), h.Size, ErrDamaged)
	}
	return h, Msg{ID: h.ID, From: h.From, Kind: h.Kind, Body: body}, nil
}

// A receipt is the name of a message that was consumed and the event that the
// log had come to, as a line of fixed length. The log says the same where an
// append consumed the message, and completes the receipts after a crash.
const receiptLen = 32 + 1 + 16 + 1

func receipt(id string, seq int64) string { return fmt.Sprintf("%s %016x\n", msgName(id), seq) }

// receipts returns which of the wanted messages were consumed.
func (s *Local) receipts(dir string, want map[string]bool) (map[string]bool, error) {
	f, err := s.d.open(dir+"/receipts", toRead)
	if err != nil {
		if missing(err) {
			return nil, nil
		}
		return nil, err
	}
	defer f.Close()
	taken := map[string]bool{}
	buf := make([]byte, 1024*receiptLen)
	for off := int64(0); ; off += int64(len(buf)) {
		n, err := f.ReadAt(buf, off)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for b := buf[:n]; len(b) >= receiptLen; b = b[receiptLen:] {
			if name := string(b[:32]); want[name] {
				taken[name] = true
			}
		}
		if n < len(buf) {
			return taken, nil
		}
	}
}

// lastReceipt returns the event of the last receipt, after cutting off what a
// crash left of a write.
func (s *Local) lastReceipt(dir string) (int64, error) {
	name := dir + "/receipts"
	size, _, err := s.d.stat(name)
	if err != nil {
		if missing(err) {
			return 0, nil
		}
		return 0, err
	}
	if odd := size % receiptLen; odd != 0 {
		size -= odd
		if err := s.d.truncate(name, size); err != nil {
			return 0, err
		}
	}
	if size == 0 {
		return 0, nil
	}
	f, err := s.d.open(name, toRead)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b := make([]byte, receiptLen)
	if _, err := f.ReadAt(b, size-receiptLen); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	seq, err := strconv.ParseInt(string(b[33:49]), 16, 64)
	if err != nil {
		return 0, nil // damaged: the log is asked from its beginning
	}
	return seq, nil
}

// take removes what an append has consumed. The log is on the disk first, then
// the receipts, then the messages go: a crash leaves a message that is known to
// be consumed, never one that is lost. l.mu is held.
func (l *lease) take(d draft, logged bool) error {
	err := l.dead
	if err == nil && logged {
		err = l.syncHeld()
	}
	if err == nil {
		if err = l.s.taken(l.dir, d.taken, l.at.seq); err != nil && logged {
			return l.die(fmt.Errorf("recording what messages were taken: %w", err))
		}
	}
	return err
}

func (s *Local) taken(dir string, ids []string, seq int64) error {
	var b []byte
	for _, id := range ids {
		b = append(b, receipt(id, seq)...)
	}
	s.fault("receipts.write")
	f, err := s.d.open(dir+"/receipts", toExtend)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return errors.Join(err, s.d.truncate(dir+"/receipts", size))
	}
	if s.durable() {
		if err := f.Sync(); err != nil {
			return err
		}
		if size == 0 {
			if err := s.d.syncDir(dir); err != nil {
				return err
			}
		}
	}
	s.fault("receipts.written")
	for _, id := range ids {
		if err := s.d.remove(dir + "/inbox/" + msgName(id)); err != nil {
			return err
		}
	}
	return nil
}

// nudge tells the owner to look into the inbox.
func (l *lease) nudge() {
	select {
	case l.mail <- struct{}{}:
	default:
	}
}

// pollMail looks for messages of other processes: one stat of a folder.
func (l *lease) pollMail() {
	l.answer()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead != nil || l.poll == nil {
		return
	}
	// The time of a change may be as coarse as 10 ms and worse: a folder that
	// changed lately is taken to have changed again.
	_, changed, err := l.s.d.stat(l.dir + "/inbox")
	if err == nil && (!changed.Equal(l.mailSeen) || time.Since(changed) < 2*time.Second) {
		l.mailSeen = changed
		if names, err := l.s.d.list(l.dir + "/inbox"); err == nil && len(names) > 0 {
			l.nudge()
		}
	}
	l.poll.Reset(mailPoll)
}
