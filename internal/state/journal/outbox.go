package journal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const outboxDir = "outbox"

// A message to another session leaves with the append that posts it: it is part
// of the log. outbox/<id> names the event from which on a log may hold messages
// that have not arrived. It is there before the append, and goes when everything
// has arrived; who opens the session or the store meanwhile delivers again, and
// the recipient knows what it has.

// expectPosts makes the outbox entry of a session that is about to post. known
// reports that there was one.
func (s *Local) expectPosts(id string, seq int64) (known bool, err error) {
	name := outboxDir + "/" + id
	if _, _, err := s.d.stat(name); err == nil {
		return true, nil
	}
	s.fault("outbox.write")
	err = ensureDir(s.d, outboxDir)
	if err == nil {
		err = replace(s.d, name, []byte(strconv.FormatInt(seq, 10)+"\n"), s.durable())
	}
	if err == nil && s.durable() {
		err = errors.Join(s.d.syncDir(outboxDir), s.d.syncDir("."))
	}
	if err != nil {
		return false, fmt.Errorf("preparing the outbox: %w", err)
	}
	s.fault("outbox.written")
	return false, nil
}

// deliver hands over what an append has just posted. What does not arrive stays
// in the outbox; the append stands.
func (l *lease) deliver(posts map[string][]Msg, backlog bool) {
	if backlog {
		l.s.redeliver(l.id, l.dir)
		return
	}
	for to, msgs := range posts {
		for _, m := range msgs {
			if l.s.post(to, "", m) != nil {
				return
			}
		}
	}
	l.s.delivered(l.id)
}

func (s *Local) delivered(id string) {
	s.fault("outbox.remove")
	_ = s.d.remove(outboxDir + "/" + id) // otherwise they are delivered again
}

// redeliverAll delivers what processes that died did not. It is called when a
// store is opened; the folder is nearly always empty.
func (s *Local) redeliverAll() {
	ids, err := s.d.list(outboxDir)
	if err != nil {
		return // the owners will deliver
	}
	for _, id := range ids {
		dir, err := s.find(id)
		if err != nil {
			continue
		}
		if unlock, err := s.d.lock(dir+"/lock", nil); err == nil {
			s.redeliver(id, dir)
			_ = unlock() // the lock goes with its file in any case
		}
	}
}

// redeliver delivers everything that a log has posted since its outbox entry.
// The caller is the session's owner, or holds its lock.
func (s *Local) redeliver(id, dir string) {
	b, err := readAll(s.d, outboxDir+"/"+id, 64)
	if err != nil {
		return
	}
	seq, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		seq = 1
	}
	parcels, err := s.parcels(dir, seq)
	if err != nil {
		return
	}
	for _, p := range parcels {
		m := Msg{ID: p.ID, From: p.From, Kind: p.Kind, Body: p.Body}
		if p.Blob != "" {
			if m.Body, err = s.longBody(dir, p.Blob); err != nil {
				return
			}
		}
		if s.post(p.To, "", m) != nil {
			return
		}
	}
	s.delivered(id)
}

// parcels reads what a log has posted from seq on. The log is made durable: a
// message must not arrive that its sender does not remember.
func (s *Local) parcels(dir string, seq int64) ([]parcel, error) {
	p, err := placeBefore(s.d, dir, seq)
	if err != nil {
		return nil, err
	}
	r, err := readFrom(s.d, dir, p)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var parcels []parcel
	for r.step() {
		if r.line.seq < seq {
			continue
		}
		x, err := r.line.extra() // on the last line of an append, which is whole then
		if err != nil {
			return nil, err
		}
		parcels = append(parcels, x.Posts...)
	}
	if len(parcels) > 0 && s.durable() && len(r.segs) > 0 {
		f, err := s.d.open(r.segs[0].name, toAppend)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := f.Sync(); err != nil {
			return nil, err
		}
	}
	return parcels, r.err
}

func (s *Local) longBody(dir, sha string) ([]byte, error) {
	if !isHash(sha) {
		return nil, fmt.Errorf("not a blob: %.80q", sha)
	}
	name := blobName(dir, sha)
	size, _, err := s.d.stat(name)
	if err != nil {
		return nil, err
	}
	return s.fetch(dir)(blobRef{SHA256: sha, Size: size})
}
