package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"dure/agent"
)

// The states that the store itself gives a session, see [agent.SessionInfo].
const (
	statusIdle        = "idle"
	statusRunning     = "running"
	statusWaiting     = "waiting"
	statusInterrupted = "interrupted"
	statusDamaged     = "damaged"
)

const maxMeta = 1 << 20 // bytes of meta.json

// writeMeta stores what List shows. It is derived from the log, but for labels
// and tenant, so it is not synced.
func (s *Local) writeMeta(dir string, m Meta) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding the listing: %w", err)
	}
	if len(b) > maxMeta {
		return fmt.Errorf("the listing has %d bytes, more than the %d it may have", len(b), maxMeta)
	}
	s.fault("meta.write")
	err = replace(s.d, dir+"/meta.json", summed(b), false)
	s.fault("meta.written")
	s.mu.Lock()
	delete(s.fresh, m.ID)
	s.mu.Unlock()
	return err
}

// summed returns a listing, which is a JSON object, with a checksum of it at its end.
func summed(b []byte) []byte {
	b = b[:len(b)-1]
	return fmt.Appendf(slices.Clip(b), `,"sum":"%08x"}`+"\n", crc32.Checksum(b, castagnoli()))
}

// isSummed reports whether a listing is as it was written. One from before there was
// a checksum has none, and every session that is used gets one: that it may be
// without goes with the next version of the log.
func isSummed(b []byte) bool {
	n := len(b) - len(`,"sum":"00000000"}`+"\n")
	if n > 0 && bytes.Equal(summed(append(slices.Clone(b[:n]), '}')), b) {
		return true
	}
	var m Meta
	if json.Unmarshal(b, &m) != nil {
		return false
	}
	old, err := json.Marshal(m)
	return err == nil && bytes.Equal(append(old, '\n'), b)
}

// maxFresh bounds how many new sessions are remembered without a file.
const maxFresh = 1024

// keepMeta stores the listing of a new session. A file is made only for what the
// log will not say: it costs as much as the rest of a new session.
func (s *Local) keepMeta(dir string, m Meta) error {
	s.mu.Lock()
	if m.Tenant == "" && len(m.Labels) == 0 && len(s.fresh) < maxFresh {
		s.fresh[m.ID] = m
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return s.writeMeta(dir, m)
}

// readMeta returns what was stored, or a beginning when that is unreadable or not as
// it was written.
func (s *Local) readMeta(dir string) (Meta, error) {
	id := dir[len(sessionsDir)+len("/2006-01/"):]
	var m Meta
	b, err := readAll(s.d, dir+"/meta.json", maxMeta)
	if err == nil && !isSummed(b) {
		err = errSum
	}
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err == nil && m.ID == id {
		return m, nil
	}
	s.mu.Lock()
	m, fresh := s.fresh[id]
	s.mu.Unlock()
	if fresh {
		return m, nil
	}
	return s.indexed(id), err
}

// indexed returns what the index says of a session, to begin with: everything
// that the log says is read from there again.
func (s *Local) indexed(id string) Meta {
	var m Meta
	m.ID = id
	entries, _, err := s.readIndex(context.Background(), id)
	var e entry
	if err == nil && json.Unmarshal([]byte(entries[id]), &e) == nil {
		m.Tenant, m.Labels, m.Lane, m.Title = e.Tenant, e.Labels, e.Lane, e.Title
		m.Parent, m.ForkSeq, m.Workdir, m.Model = e.Parent, e.ForkSeq, e.Workdir, e.Model
		m.Created, m.Updated, m.Status = e.Created, e.Updated, statusIdle
	}
	return m
}

// shown reports whether a kind of event changes what List shows.
func shown(kind string) bool {
	switch kind {
	case "session.opened", "settings.changed", "turn.started", "turn.ended", "approval.asked", "approval.resolved", "answer.rated":
		return true
	}
	return false
}

// count counts what was said.
func (m *Meta) count(kind string) {
	if kind == "input.added" || kind == "model.answered" {
		m.Messages++
	}
}

// fold takes an event into the listing.
func (m *Meta) fold(b agent.Body) {
	switch b := b.(type) {
	case agent.SessionOpened:
		if b.ForkOf != "" {
			m.Parent, m.ForkSeq = b.ForkOf, b.ForkSeq
		}
		set(&m.Parent, b.Parent)
		set(&m.Title, b.Title)
		set(&m.Workdir, b.Workdir)
		set(&m.Model, b.Model)
		set(&m.Lane, b.Lane)
		set(&m.Profile, b.Profile)
		m.Named = m.Named || b.Named()
		if b.Origin != nil {
			m.Origin = b.Origin
		}
	case agent.Rated:
		m.rate(b)
	case agent.SettingsChanged:
		m.Named = m.Named || b.Named()
		set(&m.Title, b.Title)
		set(&m.Model, b.Model)
		if b.Tags != nil {
			m.Tags = *b.Tags
		}
		if b.Pinned != nil {
			m.Pinned = *b.Pinned
		}
		if b.Archived != nil {
			m.Archived = *b.Archived
		}
	case agent.TurnStarted:
		m.Status = statusRunning
	case agent.ApprovalAsked:
		m.Status = statusWaiting
	case agent.ApprovalResolved:
		m.Status = statusRunning
	case agent.TurnEnded:
		m.Status = statusIdle
		m.Turns++
		m.Usage = m.Usage.Add(b.Usage)
		m.Cost = addCost(m.Cost, b.Cost, m.Turns == 1)
	}
}

// rate counts what a person thinks of an answer, once for each.
func (m *Meta) rate(b agent.Rated) {
	count := map[bool]*int{true: &m.Good, false: &m.Bad}
	if b.Was != nil {
		*count[*b.Was]--
	}
	*count[b.Good]++
}

func set(field *string, value string) {
	if value != "" {
		*field = value
	}
}

// addCost adds what may be unknown: unknown and anything is unknown.
func addCost(sum, more *agent.Money, first bool) *agent.Money {
	if more == nil || sum == nil && !first {
		return nil
	}
	total := *more
	if sum != nil {
		total += *sum
	}
	return &total
}

// quiet reports whether a kind of event says nothing of the work of a session: it was
// opened, sealed, renamed or put away. Such an event makes no session the newest one.
func quiet(kind string) bool {
	switch kind {
	case "session.opened", "settings.changed", "log.sealed", "answer.rated":
		return true
	}
	return false
}

// changedAt is the time of the newest event that is not quiet; "" when all are, but for
// those that are the first of a session.
func changedAt(events []agent.Event, first bool) string {
	for _, e := range slices.Backward(events) {
		if !quiet(e.Body.Kind()) {
			return e.Time.Format(time.RFC3339Nano)
		}
	}
	if first {
		return events[0].Time.Format(time.RFC3339Nano)
	}
	return ""
}

// saw notes that the listing is true as of an event, and when that was; "" when the
// event is quiet.
func (m *Meta) saw(seq int64, t string) {
	m.Head = seq
	set(&m.Updated, t)
	if m.Created == "" {
		m.Created = t
	}
	if m.Status == "" {
		m.Status = statusIdle
	}
}

// derive brings a stored listing up to date with its log. A log that cannot be
// read is damaged as far as the listing is concerned.
func (s *Local) derive(dir string) Meta {
	m, _ := s.readMeta(dir) // what is missing comes from the log
	p, err := placeBefore(s.d, dir, m.Head+1)
	if err == nil {
		err = s.foldFrom(dir, p, &m)
	}
	if err != nil {
		m.Status = statusDamaged
	} else if m.Status == statusDamaged {
		m.Status = statusIdle
	}
	if segs, err := segments(s.d, dir); err == nil {
		m.Bytes = 0
		for _, seg := range segs {
			m.Bytes += seg.size
		}
	}
	if m.Created == "" {
		t, ok := idTime(m.ID)
		if !ok {
			_, t, _ = s.d.stat(dir) // better than nothing
		}
		m.Created = t.UTC().Format(time.RFC3339Nano)
		m.Updated = m.Created
	}
	return m
}

func (s *Local) foldFrom(dir string, p place, m *Meta) error {
	r, err := readFrom(s.d, dir, p)
	if err != nil {
		return err
	}
	defer r.close()
	fetch := s.fetch(dir)
	from := m.Head
	for r.step() {
		if r.line.seq <= from {
			continue
		}
		if err := m.foldLine(r.line, fetch); err != nil {
			return err
		}
	}
	if errors.Is(r.err, ErrNewer) {
		return nil // it can be listed, if not opened
	}
	return r.err
}

func (m *Meta) foldLine(l line, fetch func(blobRef) ([]byte, error)) error {
	if shown(l.kind) {
		e, err := l.event(fetch)
		if err != nil {
			return err
		}
		m.fold(e.Body)
	}
	m.count(l.kind)
	when := l.time
	if quiet(l.kind) && m.Updated != "" {
		when = ""
	}
	m.saw(l.seq, when)
	return nil
}
