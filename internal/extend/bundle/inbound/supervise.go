package inbound

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// How often what fails is started again: some times at once, then later each time.
const (
	freeStarts = 5
	firstPause = time.Second
	maxPause   = 300 * time.Second
)

// pause is how long to wait before the nth start after a failure, counted from 1.
func pause(n int) time.Duration {
	if n <= freeStarts {
		return 0
	}
	d := firstPause
	for range n - freeStarts - 1 {
		if d *= 2; d >= maxPause {
			return maxPause
		}
	}
	return d
}

// Supervise runs something until it returns nil or ctx is done, and starts it again when it
// fails. run calls well when it has done what it is for: the count begins anew then. failed
// is told each failure, with how long is waited after it; it may be nil. After most failures
// in a row it gives up, and returns the last one; 0 = it never does.
func Supervise(ctx context.Context, most int, run func(ctx context.Context, well func()) error, failed func(err error, n int, wait time.Duration)) error {
	fails := 0
	for {
		fine := make(chan struct{}, 1)
		err := guarded(ctx, run, func() {
			select {
			case fine <- struct{}{}:
			default:
			}
		})
		if err == nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		select {
		case <-fine:
			fails = 0
		default:
		}
		fails++
		wait, over := pause(fails), fails == most
		if over {
			wait = 0
		}
		if failed != nil {
			failed(err, fails, wait)
		}
		if over {
			return fmt.Errorf("given up after %d failures: %w", fails, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// guarded makes an error of a panic.
func guarded(ctx context.Context, run func(context.Context, func()) error, well func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return run(ctx, well)
}
