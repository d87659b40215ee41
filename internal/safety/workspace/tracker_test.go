package workspace

import (
	"errors"
	"testing"
	"time"

	"dure/agent"
)

func TestTracker(t *testing.T) {
	w, _, _ := open(t)
	at := time.Unix(1000, 0)
	tr := w.NewTracker([]agent.FileState{
		{Path: "/read", SHA256: "1"},
		{Path: "/edited", SHA256: "1"},
		{Path: "/edited", SHA256: "2", Wrote: true},
		{Path: "/removed", SHA256: "1"},
		{Path: "/removed", Gone: true},
		{Path: "/huge"},
	})
	tr.Saw("/huge-now", State{Size: 9, ModTime: at})
	for _, c := range []struct {
		path string
		now  State
		want error
	}{
		{"/read", State{SHA256: "1", Size: 3, ModTime: at}, nil},
		{"/read", State{SHA256: "2", Size: 3, ModTime: at}, ErrChanged},
		{"/edited", State{SHA256: "2"}, nil},
		{"/edited", State{SHA256: "1"}, ErrChanged},
		{"/removed", State{SHA256: "1"}, ErrUnseen},
		{"/never", State{SHA256: "1"}, ErrUnseen},
		{"/huge", State{Size: 9, ModTime: at}, ErrUnseen}, // a log keeps no times
		{"/huge-now", State{Size: 9, ModTime: at}, nil},
		{"/huge-now", State{Size: 9, ModTime: at.Add(1)}, ErrChanged},
		{"/huge-now", State{Size: 8, ModTime: at}, ErrChanged},
		{"/read", State{Size: 3, ModTime: at}, ErrChanged}, // has grown too large to compare
	} {
		if err := tr.Check(c.path, c.now); !errors.Is(err, c.want) {
			t.Errorf("%s %+v: %v", c.path, c.now, err)
		}
	}
}
