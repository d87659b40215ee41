package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	err = replace(s.d, dir+"/meta.json", append(b, '\n'), false)
	s.fault("meta.written")
	s.mu.Lock()
	delete(s.fresh, m.ID)
	s.mu.Unlock()
	return err
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

// readMeta returns what was stored, or a beginning when that is unreadable.
func (s *Local) readMeta(dir string) (Meta, error) {
	id := dir[len(sessionsDir)+len("/2006-01/"):]
	var m Meta
	b, err := readAll(s.d, dir+"/meta.json", maxMeta)
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
	entries, _, err := s.readIndex(context.Background())
	if e, ok := entries[id]; err == nil && ok {
		m.Tenant, m.Labels, m.Lane, m.Title = e.Tenant, e.Labels, e.Lane, e.Title
		m.Parent, m.ForkSeq, m.Workdir, m.Model = e.Parent, e.ForkSeq, e.Workdir, e.Model
		m.Created, m.Updated, m.Status = e.Created, e.Updated, statusIdle
	}
	return m
}

// shown reports whether a kind of event changes what List shows.
func shown(kind string) bool {
	switch kind {
	case "session.opened", "settings.changed", "turn.started", "turn.ended", "approval.asked", "approval.resolved":
		return true
	}
	return false
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
	case agent.SettingsChanged:
		set(&m.Title, b.Title)
		set(&m.Model, b.Model)
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

// saw notes that the listing is true as of an event.
func (m *Meta) saw(seq int64, t string) {
	m.Head = seq
	m.Updated = t
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
	if errors.Is(r.err, errNewer) {
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
	m.saw(l.seq, l.time)
	return nil
}
