package journal

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"dure/agent"
)

// stored makes a session with one event in a store.
func stored(t *testing.T, s *Local, id string) {
	t.Helper()
	if err := s.Create(t.Context(), Meta{SessionInfo: agent.SessionInfo{ID: id}}); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), id, Owner{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), Batch{Events: []agent.Event{{Body: agent.SessionOpened{Session: id}}}, Sync: Barrier}); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context(), Runnable, Meta{}); err != nil {
		t.Fatal(err)
	}
}

func listed(t *testing.T, s *Local) (ids []string) {
	t.Helper()
	for m, err := range s.List(t.Context(), Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID+" "+m.Status)
	}
	return ids
}

func TestDiscard(t *testing.T) {
	s, err := NewLocal(LocalOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	stored(t, s, "one")
	stored(t, s, "two")
	held, err := s.Acquire(t.Context(), "one", Owner{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(t.Context(), "one"); !errors.Is(err, ErrOwned) {
		t.Errorf("a session with an owner: %v", err)
	}
	if err := held.Release(t.Context(), Runnable, Meta{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(t.Context(), "one"); !errors.Is(err, ErrMissing) {
		t.Errorf("a session that is gone: %v", err)
	}
	if err := s.Discard(t.Context(), "../two"); err == nil {
		t.Error("a path was deleted")
	}
	if got := listed(t, s); len(got) != 1 || got[0] != "two idle" {
		t.Errorf("there are %q", got)
	}
	stored(t, s, "one") // again: what is beside it is not the old one's any more
	n, err := s.Sweep(t.Context(), func(id string) error { t.Errorf("%s exists", id); return nil })
	if n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := s.Discard(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	var beside []string
	if n, err := s.Sweep(t.Context(), func(id string) error { beside = append(beside, id); return nil }); n != 1 || err != nil || len(beside) != 1 || beside[0] != "two" {
		t.Errorf("%d, %v, %q", n, err, beside)
	}
	if due, _, err := s.queue(); err != nil || len(due) != 1 || due[0].id != "one" {
		t.Errorf("runnable: %v, %v", due, err)
	}
}

// What cannot be removed of a session keeps nothing of others, and is tried again.
func TestSweepGoesOn(t *testing.T) {
	s, err := NewLocal(LocalOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "three", "two"} {
		stored(t, s, id)
		if err := s.Discard(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	stuck := map[string]error{"one": errors.New("one is stuck"), "three": errors.New("three is stuck")}
	var tried []string
	beside := func(id string) error { tried = append(tried, id); return stuck[id] }
	n, err := s.Sweep(t.Context(), beside)
	if n != 1 || !errors.Is(err, stuck["one"]) || !errors.Is(err, stuck["three"]) {
		t.Errorf("%d, %v", n, err)
	}
	clear(stuck)
	if n, err := s.Sweep(t.Context(), beside); n != 2 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	if n, err := s.Sweep(t.Context(), beside); n != 0 || err != nil || !slices.Equal(tried, []string{"one", "three", "two", "one", "three"}) {
		t.Errorf("at the end: %d, %v, tried were %q", n, err, tried)
	}
}

// A process that dies at any write of a deletion leaves the session whole, or gone
// with what the next sweep removes.
func TestDiscardIsCutShort(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("what the dead leave open cannot be removed in the same process")
	}
	type died struct{}
	for at := 1; ; at++ {
		dir := t.TempDir()
		n := 0
		armed := false
		s, err := NewLocal(LocalOptions{Dir: dir, Fault: func(string) {
			if n++; armed && n == at {
				panic(died{})
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		stored(t, s, "one")
		armed, n = true, 0
		ended := func() (ended bool) {
			defer func() {
				if r := recover(); r != nil {
					if _, ok := r.(died); !ok {
						panic(r)
					}
				}
			}()
			if err := s.Discard(t.Context(), "one"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Sweep(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			return true
		}()
		next, err := NewLocal(LocalOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		there := len(listed(t, next)) == 1
		if there {
			if rep, err := next.Verify(t.Context(), "one"); err != nil || !rep.OK {
				t.Errorf("at %d: %v, %+v", at, err, rep)
			}
		}
		if _, err := next.Sweep(t.Context(), nil); err != nil {
			t.Errorf("at %d: %v", at, err)
		}
		if left, _ := os.ReadDir(filepath.Join(dir, trashDir)); len(left) > 0 || len(listed(t, next)) == 1 != there {
			t.Errorf("at %d: the trash has %d, the session was there: %v", at, len(left), there)
		}
		if ended {
			if there || at < 5 {
				t.Errorf("the deletion ended after %d writes, and the session is there: %v", at, there)
			}
			return
		}
	}
}
