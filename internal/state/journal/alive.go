package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// askName is the file with which somebody asks the owner of a session for a sign of
// life: the owner removes it, within [mailPoll] and what a busy machine adds.
const askName = "ask"

// answerPoll is how often an answer is looked for.
const answerPoll = 50 * time.Millisecond

// Alive reports whether the owner of a session answers within the given time. It
// never disturbs an owner. A process that was stopped, or hangs as a whole, does not
// answer. A session without an owner is an error: nobody has to be asked then.
func (s *Local) Alive(ctx context.Context, id string, within time.Duration) (bool, error) {
	alive, err := s.alive(ctx, id, within)
	if err != nil {
		return true, fmt.Errorf("asking the owner of session %s: %w", id, err)
	}
	return alive, nil
}

func (s *Local) alive(ctx context.Context, id string, within time.Duration) (bool, error) {
	if s.lease(id) != nil {
		return true, nil
	}
	dir, err := s.find(id)
	if err != nil {
		return true, err
	}
	name := dir + "/" + askName
	f, err := s.d.open(name, toExtend)
	if err != nil {
		return true, err
	}
	if err := f.Close(); err != nil {
		return true, err
	}
	limit, tick := time.NewTimer(within), time.NewTicker(answerPoll)
	defer limit.Stop()
	defer tick.Stop()
	for {
		if _, _, err := s.d.stat(name); missing(err) {
			return true, nil
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return false, s.d.remove(name)
		case <-ctx.Done():
			return true, errors.Join(context.Cause(ctx), s.d.remove(name))
		}
	}
}

// answer gives a sign of life to whoever asks for one.
func (l *lease) answer() {
	name := l.dir + "/" + askName
	if _, _, err := l.s.d.stat(name); err == nil {
		_ = l.s.d.remove(name) // who asked waits on
	}
}

// Holder says whose lock a session has had last, as far as its lock file tells.
func (s *Local) Holder(id string) (OwnedError, error) {
	dir, err := s.find(id)
	if err != nil {
		return OwnedError{}, err
	}
	owned, _ := errors.AsType[*OwnedError](s.ownedBy(id, dir))
	return *owned, nil
}

// Holds reports whether the process that a lock file names has the lock. What the file
// says is no proof: the process may have ended, and its number be that of another one;
// and whoever can write the file can name anybody. On macOS and Windows it is enough
// that the process is older than the lock.
func (s *Local) Holds(o OwnedError) bool {
	dir, err := s.find(o.Session)
	name := s.d.real(dir + "/lock")
	return err == nil && name != "" && holds(name, o.PID, o.Since)
}

// Owned reports whether a session is open, here or in another program.
func (s *Local) Owned(id string) bool {
	owner, err := s.Holder(id)
	return err == nil && s.Holds(owner)
}
