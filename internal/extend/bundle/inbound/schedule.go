package inbound

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dure/internal/base/cron"
	"dure/internal/extend/bundle"
)

// TickEvent is the event of a schedule.
const TickEvent = "tick"

// MostFailures is how many times in a row a schedule may fail: then it is not run any more.
const MostFailures = 3

// Schedule is a [Connector] that brings a message at certain times. What was to come while
// it did not run does not come later. It fails when what it brings is not answered.
type Schedule struct {
	When cron.Schedule
	Text string // of the message
	Now  func() time.Time
	Well func() // when a message was answered; nil = nobody wants to know
}

// Run implements [Connector].
func (s *Schedule) Run(ctx context.Context, sink Sink) error {
	for {
		now := s.Now()
		next := s.When.Next(now)
		if next.IsZero() {
			return nil
		}
		if err := s.sleep(ctx, next); err != nil {
			return err
		}
		stamp := next.UTC().Format(time.RFC3339)
		d, err := sink(ctx, bundle.Message{ID: stamp, Event: TickEvent, Text: s.Text, Properties: map[string]any{"time": stamp}})
		switch {
		case errors.Is(err, ErrBusy):
			continue // this time is left out
		case err != nil:
			return fmt.Errorf("at %s: %w", stamp, err)
		}
		if _, err := d.Wait(ctx); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			return fmt.Errorf("at %s: %w", stamp, err)
		}
		if s.Well != nil {
			s.Well()
		}
	}
}

// sleep waits until a time. It looks at the clock at least every minute: that may be set, and
// machines are put to sleep.
func (s *Schedule) sleep(ctx context.Context, until time.Time) error {
	for {
		left := until.Sub(s.Now())
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(min(left, time.Minute))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
