package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// sync returns when the bytes up to target are on the disk. Of several callers
// one syncs for all who have written until then.
func (l *lease) sync(target int64) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	if l.synced >= target || l.dead != nil {
		defer l.mu.Unlock()
		if l.synced >= target {
			return nil
		}
		return l.dead
	}
	w, f, fresh := l.written, l.file, l.fresh
	l.mu.Unlock()

	err := l.flush(f, fresh)

	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flushed(w, err)
}

// syncHeld is sync for callers who hold l.mu and keep it.
func (l *lease) syncHeld() error {
	if !l.s.durable() || l.synced == l.written && !l.fresh {
		return nil
	}
	return l.flushed(l.written, l.flush(l.file, l.fresh))
}

// flush puts blobs, lines and names on the disk, in this order.
func (l *lease) flush(f file, fresh bool) error {
	l.s.fault("append.sync")
	err := l.blobs.sync()
	if err == nil {
		err = f.Sync()
	}
	if err == nil && fresh {
		err = l.s.syncDirs(l.dir)
	}
	l.s.fault("append.synced")
	return err
}

// flushed notes what became of a flush of the first w bytes. An error is final:
// the kernel may have dropped what it could not write, and a second attempt
// would report success.
func (l *lease) flushed(w int64, err error) error {
	if l.synced >= w && !l.fresh {
		return nil // a new segment was begun meanwhile, which synced the old one
	}
	if err != nil {
		return l.die(fmt.Errorf("syncing the log: %w", err))
	}
	l.synced = max(l.synced, w)
	l.fresh = false
	if l.lazy != nil && l.synced == l.written {
		l.lazy.Stop()
		l.lazy = nil
	}
	return nil
}

// syncLazy runs a second after bytes were written that no Barrier followed.
func (l *lease) syncLazy() {
	l.mu.Lock()
	l.lazy = nil
	target, dead := l.written, l.dead
	l.mu.Unlock()
	if dead == nil {
		_ = l.sync(target) // it ended the lease
	}
}

// syncDirs makes the names in a session's folder durable, and its own.
func (s *Local) syncDirs(dir string) error {
	month := dir[:len(sessionsDir)+len("/2006-01")]
	for _, d := range [...]string{dir, month, sessionsDir, "."} {
		if err := s.d.syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// Release gives the session up. The session is free when it returns, also when
// it returns an error.
func (l *lease) Release(_ context.Context, next Next, m Meta) error {
	err := l.shut(func() error {
		if m.ID != "" {
			l.replaceMeta(m)
		}
		err := errors.Join(l.s.writeMeta(l.dir, l.shown), l.park(next))
		l.s.index(entry{Meta: l.shown})
		return err
	})
	if err != nil {
		return fmt.Errorf("releasing session %s: %w", l.id, err)
	}
	return nil
}

// replaceMeta takes the owner's word for everything that the log does not know
// better.
func (l *lease) replaceMeta(m Meta) {
	known := l.shown
	m.ID, m.Head, m.Bytes = known.ID, known.Head, known.Bytes
	m.Created, m.Updated = known.Created, known.Updated
	set(&known.Status, m.Status)
	m.Status = known.Status
	l.shown = m
}

// shut ends the lease. last runs when everything is on the disk, before anybody
// else can have the session; nil leaves the session as a crash would.
func (l *lease) shut(last func() error) error {
	l.syncing.Lock() // also waits for the timers' work in progress
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.dead, errReleased) {
		return l.dead
	}
	err := l.dead
	if err == nil {
		err = l.syncHeld()
	}
	for _, t := range []*time.Timer{l.lazy, l.poll} {
		if t != nil {
			t.Stop()
		}
	}
	l.lazy, l.poll = nil, nil
	if err == nil && last != nil {
		err = last()
	}
	l.dead = errReleased
	l.cancel(errReleased)
	_ = l.file.Close() // it is synced, or err says so
	l.s.mu.Lock()
	delete(l.s.leases, l.id)
	l.s.mu.Unlock()
	return errors.Join(err, l.unlock())
}

// errReleased is the end of a lease in good order.
var errReleased = fmt.Errorf("the lease was released: %w", ErrClosed)
