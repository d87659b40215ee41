package inbound

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/base/cron/tab"
)

// lookAgain is how often it is looked what is scheduled: that changes, clocks are set, and
// machines are put to sleep.
const lookAgain = time.Minute

// settleWait bounds how long the outcome of a run is written when all ends.
const settleWait = 10 * time.Second

// Planned runs what is scheduled. Each time is taken by one of the programs that run, and what
// was to come while none did does not come later. A run that goes on is not begun again.
type Planned struct {
	Tab    *tab.Tab
	Client client.Client
	Now    func() time.Time
	// Mine reports whether a schedule is run here.
	Mine func(agent.Schedule) bool
	// Open returns how the session of a run is opened.
	Open func(agent.Schedule) agent.Open
	// Note is told how runs end, and what else fails, without an ID then. It may be called
	// from several goroutines.
	Note func(agent.ScheduleNote)

	all     sync.WaitGroup
	mu      sync.Mutex
	running map[string]bool
}

// Run returns when ctx is done, and all that it has begun has ended.
func (p *Planned) Run(ctx context.Context) error {
	defer p.all.Wait()
	from := p.Now()
	for {
		now := p.Now()
		next := p.due(ctx, from, now)
		from = now
		timer := time.NewTimer(max(0, min(next.Sub(p.Now()), lookAgain)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// due begins what was to come behind from, up to now, and returns when there is more.
func (p *Planned) due(ctx context.Context, from, now time.Time) (next time.Time) {
	next = now.Add(lookAgain)
	list, err := p.Tab.List()
	if err != nil {
		p.Note(agent.ScheduleNote{Time: now, Error: err.Error()})
		return next
	}
	for _, s := range list {
		if s.Disabled || !p.Mine(s) {
			continue
		}
		when, err := tab.Parse(s)
		if err != nil {
			continue // a program of another version has written it; the list shows it
		}
		begin := from
		if s.Created.After(from) {
			begin = s.Created
		}
		at := when.Next(begin)
		if !at.IsZero() && !at.After(now) {
			p.begin(ctx, s, at)
			at = when.Next(now)
		}
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

// begin takes a time and runs what is to happen then.
func (p *Planned) begin(ctx context.Context, s agent.Schedule, at time.Time) {
	if !p.runs(s.ID) {
		return
	}
	ok, err := p.Tab.Claim(ctx, s.ID, at) // it may have to wait for other programs
	if err != nil {
		p.Note(agent.ScheduleNote{ID: s.ID, Time: at, Error: err.Error()})
	}
	if !ok {
		p.over(s.ID)
		return
	}
	p.all.Go(func() {
		defer p.over(s.ID)
		p.Note(p.Once(ctx, s, at))
	})
}

// runs notes that a schedule runs, and reports false where it does so already.
func (p *Planned) runs(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[id] {
		return false
	}
	if p.running == nil {
		p.running = map[string]bool{}
	}
	p.running[id] = true
	return true
}

func (p *Planned) over(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, id)
}

// Once runs a schedule and keeps how that came out. What ctx ends has not failed.
func (p *Planned) Once(ctx context.Context, s agent.Schedule, at time.Time) agent.ScheduleNote {
	note := agent.ScheduleNote{ID: s.ID, Time: at}
	var err error
	note.Session, note.Text, err = Ask(ctx, p.Client, p.Open(s), "schedule-"+s.ID, s.Prompt)
	if err != nil {
		note.Error = err.Error()
	}
	if err != nil && ctx.Err() != nil {
		return note
	}
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWait)
	defer cancel()
	after, kept := p.Tab.Ended(keeping, s.ID, note.Session, err)
	if kept != nil && note.Error == "" {
		note.Error = fmt.Sprintf("keeping how it ended: %v", kept)
	}
	note.Disabled = after.Disabled
	return note
}
