package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
)

const (
	queueDir  = "queue"
	claimPoll = 250 * time.Millisecond // how often other processes' posts are looked for
)

// The queue is a folder. queue/<id> says that a session is runnable and in which
// lane; it stays until the session is released, so that the death of its owner
// leaves it runnable. queue/<id>.wake says when a session becomes runnable; there
// is one such time for a session, and a later one replaces it.
type ticket struct {
	At   time.Time `json:"at"`
	Lane string    `json:"lane,omitempty"`
}

const wakeSuffix = ".wake"

// enqueue makes a session runnable. It keeps its place when it was.
func (s *Local) enqueue(id, lane string, at time.Time) error {
	if _, _, err := s.d.stat(queueDir + "/" + id); err != nil {
		if err := s.writeTicket(id, ticket{at.UTC(), lane}); err != nil {
			return err
		}
	}
	s.wakeClaims()
	return nil
}

// setWake makes a session runnable at a later time.
func (s *Local) setWake(id string, at time.Time) error {
	if err := s.writeTicket(id+wakeSuffix, ticket{At: at.UTC()}); err != nil {
		return err
	}
	s.wakeClaims()
	return nil
}

func (s *Local) writeTicket(name string, t ticket) error {
	b, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("queueing: %w", err)
	}
	s.fault("queue.write")
	err = ensureDir(s.d, queueDir)
	if err == nil {
		err = replace(s.d, queueDir+"/"+name, append(b, '\n'), s.durable())
	}
	if err == nil && s.durable() {
		err = errors.Join(s.d.syncDir(queueDir), s.d.syncDir("."))
	}
	if err != nil {
		return fmt.Errorf("queueing: %w", err)
	}
	s.fault("queue.written")
	return nil
}

// park queues a session that is being released. The ticket goes before the inbox
// is looked at, and comes back if there is something in it: who posts does it in
// the other order, so that no message is left without a ticket.
func (l *lease) park(next Next) error {
	s := l.s
	if err := s.d.remove(queueDir + "/" + l.id); err != nil {
		return err
	}
	switch next {
	case Runnable:
		return s.enqueue(l.id, l.shown.Lane, s.now())
	case Done:
		if err := s.d.remove(queueDir + "/" + l.id + wakeSuffix); err != nil {
			return err
		}
	}
	msgs, err := s.d.list(l.dir + "/inbox")
	if err == nil && len(msgs) > 0 {
		err = s.enqueue(l.id, l.shown.Lane, s.now())
	}
	s.wakeClaims()
	return err
}

// wakeClaims makes all who wait in Claim look again.
func (s *Local) wakeClaims() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.runnable)
	s.runnable = make(chan struct{})
}

// Claim waits until it can acquire at least one session. A worker without lanes
// takes sessions of all lanes; a label of the worker excludes sessions that have
// another value for it.
func (s *Local) Claim(ctx context.Context, w Worker, n int) ([]Lease, error) {
	for {
		if err := errors.Join(ctx.Err(), s.check()); err != nil {
			return nil, fmt.Errorf("claiming sessions: %w", err)
		}
		s.mu.Lock()
		changed := s.runnable
		s.mu.Unlock()
		leases, wait, err := s.claim(ctx, w, n)
		if err != nil && len(leases) == 0 {
			return nil, fmt.Errorf("claiming sessions: %w", err)
		}
		if len(leases) > 0 || n <= 0 {
			return leases, nil // an error shows again
		}
		if s.d.shared() && (wait <= 0 || wait > claimPoll) {
			wait = claimPoll
		}
		var timer <-chan time.Time // nil: only another post can help
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer:
		}
	}
}

// A candidate is a session that is runnable.
type candidate struct {
	id string
	ticket
	woken bool // by its wake time
}

// claim acquires what is runnable now. wait is the time until something else
// will be; 0 = nothing is known.
func (s *Local) claim(ctx context.Context, w Worker, n int) (leases []Lease, wait time.Duration, err error) {
	queue, wait, err := s.queue()
	if err != nil {
		return nil, 0, err
	}
	used := map[string]int{}
	for _, c := range queue {
		if len(leases) >= n {
			break
		}
		lane, fits := s.fits(c, w)
		if !fits || len(w.Lanes) > 0 && used[lane] >= w.Lanes[lane] {
			continue
		}
		l, err := s.claimOne(ctx, c, w)
		if err != nil {
			return leases, wait, err
		}
		if l != nil {
			used[lane]++
			leases = append(leases, l)
		}
	}
	return leases, wait, nil
}

// queue reads the tickets that are due, oldest first.
func (s *Local) queue() (due []candidate, wait time.Duration, err error) {
	names, err := s.d.list(queueDir)
	if err != nil {
		return nil, 0, err
	}
	now := s.now()
	for _, name := range names {
		id, woken := strings.CutSuffix(name, wakeSuffix)
		if checkID(id) != nil {
			continue
		}
		c := candidate{id: id, woken: woken}
		b, err := readAll(s.d, queueDir+"/"+name, 4096)
		if err != nil {
			continue // it is being replaced or was taken
		}
		if json.Unmarshal(b, &c.ticket) != nil {
			c.At = now // unreadable: better once too often
		}
		if d := c.At.Sub(now); woken && d > 0 {
			if wait == 0 || d < wait {
				wait = d
			}
			continue
		}
		due = append(due, c)
	}
	sort.SliceStable(due, func(i, j int) bool { return due[i].At.Before(due[j].At) })
	return due, wait, nil
}

// fits reports whether a worker takes a session, and its lane.
func (s *Local) fits(c candidate, w Worker) (lane string, ok bool) {
	if s.lease(c.id) != nil {
		return "", false
	}
	lane = c.Lane
	dir, err := s.find(c.id)
	if err != nil {
		return lane, true // claimOne clears it away
	}
	m, _ := s.readMeta(dir) // nothing known: no lane, no labels
	if lane == "" {
		lane = m.Lane
	}
	for name, value := range w.Labels {
		if v, has := m.Labels[name]; has && v != value {
			return lane, false
		}
	}
	return lane, true
}

// claimOne acquires a candidate; nil when somebody else has it, or nobody can.
func (s *Local) claimOne(ctx context.Context, c candidate, w Worker) (Lease, error) {
	if c.woken { // from now on it is runnable until it is released
		if err := s.enqueue(c.id, c.Lane, c.At); err != nil {
			return nil, err
		}
		if err := s.d.remove(queueDir + "/" + c.id + wakeSuffix); err != nil {
			return nil, err
		}
	}
	l, err := s.Acquire(ctx, c.id, w.Owner)
	switch {
	case errors.Is(err, ErrOwned):
		return nil, nil
	case errors.Is(err, ErrMissing) || errors.Is(err, ErrDamaged):
		return nil, s.d.remove(queueDir + "/" + c.id)
	}
	return l, err
}
