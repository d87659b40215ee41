package journal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// trashDir holds the folders of sessions that are deleted, by their IDs, until
// [Local.Sweep] has removed them.
const trashDir = "trash"

// Discard deletes a session: from one moment to the next it is not in the store any
// more, whatever happens then. What it held is removed by [Local.Sweep]. It is
// ErrOwned while the session has an owner.
func (s *Local) Discard(ctx context.Context, id string) error {
	if err := s.discard(ctx, id); err != nil {
		return fmt.Errorf("deleting session %s: %w", id, err)
	}
	return nil
}

func (s *Local) discard(ctx context.Context, id string) error {
	if err := errors.Join(ctx.Err(), s.check()); err != nil {
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
	if runtime.GOOS == "windows" { // no folder moves there with an open file in it
		if err := unlock(); err != nil {
			return err
		}
		unlock = func() error { return nil }
	}
	if err := s.moveToTrash(id, dir); err != nil {
		return errors.Join(err, unlock())
	}
	s.mu.Lock()
	delete(s.fresh, id)
	s.mu.Unlock()
	return unlock()
}

func (s *Local) moveToTrash(id, dir string) error {
	to := trashDir + "/" + id
	if err := ensureDir(s.d, trashDir); err != nil {
		return err
	}
	if err := s.d.remove(to); err != nil { // of another one that was called so
		return err
	}
	s.fault("discard.rename")
	if err := s.d.rename(dir, to); err != nil {
		return err
	}
	s.fault("discard.renamed")
	if !s.durable() {
		return nil
	}
	month := dir[:len(dir)-len(id)-1]
	return errors.Join(s.d.syncDir(trashDir), s.d.syncDir(month), s.d.syncDir("."))
}

// Sweep removes what deleted sessions have left, also in a process that has died
// since, and returns how many there were. beside removes what others keep for a
// session, before the trash forgets it; it is not called for one that exists again. What
// cannot be removed stays in the trash, for the next time, and keeps nothing else there.
func (s *Local) Sweep(ctx context.Context, beside func(id string) error) (n int, err error) {
	ids, err := s.d.list(trashDir)
	if err != nil {
		return 0, fmt.Errorf("emptying the trash: %w", err)
	}
	var errs []error
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return n, errors.Join(append(errs, fmt.Errorf("emptying the trash: %w", err))...)
		}
		if err := s.sweep(id, beside); err != nil {
			errs = append(errs, fmt.Errorf("removing what is left of session %s: %w", id, err))
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}

func (s *Local) sweep(id string, beside func(string) error) error {
	if _, err := s.find(id); errors.Is(err, ErrMissing) {
		for _, name := range []string{queueDir + "/" + id, queueDir + "/" + id + wakeSuffix, outboxDir + "/" + id} {
			if err := s.d.remove(name); err != nil {
				return err
			}
		}
		if isID(id) && beside != nil {
			if err := beside(id); err != nil {
				return err
			}
		}
	}
	s.fault("discard.remove")
	err := s.d.remove(trashDir + "/" + id)
	s.fault("discard.removed")
	return err
}
