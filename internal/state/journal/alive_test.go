package journal

import (
	"errors"
	"testing"
	"time"
)

// An owner answers whoever asks; one that does nothing any more does not.
func TestAlive(t *testing.T) {
	dir := t.TempDir()
	open := func() *Local {
		s, err := NewLocal(LocalOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	mine, theirs := open(), open() // as in two processes
	stored(t, mine, "one")
	l, err := mine.Acquire(t.Context(), "one", Owner{})
	if err != nil {
		t.Fatal(err)
	}
	if alive, err := theirs.Alive(t.Context(), "one", time.Minute); !alive || err != nil {
		t.Errorf("an owner that lives: %v, %v", alive, err)
	}
	if who, err := theirs.Holder("one"); err != nil || who.PID == 0 || who.Since.IsZero() {
		t.Errorf("%+v, %v", who, err)
	}
	if err := l.Release(t.Context(), Parked, Meta{}); err != nil {
		t.Fatal(err)
	}
	dirOf, err := mine.find("one")
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := mine.d.lock(dirOf+"/lock", []byte("{}\n")) // and nothing that answers
	if err != nil {
		t.Fatal(err)
	}
	if alive, err := theirs.Alive(t.Context(), "one", 10*time.Millisecond); alive || err != nil {
		t.Errorf("an owner that hangs: %v, %v", alive, err)
	}
	if _, _, err := mine.d.stat(dirOf + "/" + askName); !missing(err) {
		t.Errorf("the question is still there: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Alive(t.Context(), "none", 0); !errors.Is(err, ErrMissing) {
		t.Errorf("no session: %v", err)
	}
}
