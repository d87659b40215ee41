package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestLanesKeepOrderForAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLanes(nil)
		var order []string
		run := func(name, key string) {
			release, err := l.Acquire(t.Context(), LaneMain, key)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			order = append(order, name+" in")
			time.Sleep(time.Second)
			order = append(order, name+" out")
		}
		for i := range 3 {
			go run(fmt.Sprint(i), "a")
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want := []string{"0 in", "0 out", "1 in", "1 out", "2 in", "2 out"}
		if !slices.Equal(order, want) {
			t.Errorf("order %q", order)
		}
	})
}

func TestLanesBoundTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLanes(map[string]LaneConfig{LaneSubagent: {Turns: 2, Queue: 3}})
		var releases []func()
		for i := range 2 {
			release, err := l.Acquire(t.Context(), LaneSubagent, fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Acquire(ctx, LaneSubagent, "late"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third one got in: %v", err)
		}
		// Another lane is not in the way: a child never waits for its parent.
		if _, err := l.Acquire(t.Context(), LaneMain, "0"); err != nil {
			t.Error(err)
		}
		releases[0]()
		releases[0]() // twice is once
		if _, err := l.Acquire(t.Context(), LaneSubagent, "0"); err != nil {
			t.Error(err)
		}
		if running, waiting := l.Loads(); running != 3 || waiting != 0 {
			t.Errorf("in all lanes: running %d, waiting %d", running, waiting)
		}
		if running, waiting := l.Load(LaneSubagent); running != 2 || waiting != 0 {
			t.Errorf("%d running, %d waiting", running, waiting)
		}
	})
}

func TestLanesTurnAwayWhenFullOrReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLanes(map[string]LaneConfig{LaneCron: {Turns: 1, Queue: 1}})
		release, err := l.Acquire(t.Context(), LaneCron, "a")
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error)
		go func() {
			_, err := l.Acquire(t.Context(), LaneCron, "b")
			waiting <- err
		}()
		synctest.Wait()
		if _, err := l.Acquire(t.Context(), LaneCron, "c"); !errors.Is(err, ErrLaneFull) {
			t.Errorf("a queue of one took two: %v", err)
		}
		l.Reset(LaneCron)
		if err := <-waiting; !errors.Is(err, ErrLaneReset) {
			t.Errorf("a waiter of the old generation: %v", err)
		}
		again, err := l.Acquire(t.Context(), LaneCron, "a")
		if err != nil {
			t.Fatal(err)
		}
		release() // of the old generation: must not let go of the new one
		if running, _ := l.Load(LaneCron); running != 1 {
			t.Error("a handle of the old generation released the new one")
		}
		again()
		l.Close()
		if _, err := l.Acquire(t.Context(), LaneCron, "a"); !errors.Is(err, ErrLaneReset) {
			t.Errorf("closed lanes let somebody in: %v", err)
		}
	})
}

func TestLanesWaitersThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLanes(nil)
		release, _ := l.Acquire(t.Context(), LaneMain, "a")
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := l.Acquire(ctx, LaneMain, "a")
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("giving up: %v", err)
		}
		release()
		if _, err := l.Acquire(t.Context(), LaneMain, "a"); err != nil {
			t.Error(err)
		}
	})
}
