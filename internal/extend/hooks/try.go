package hooks

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"dure/agent"
)

// MaxTold is how much may be written down for a trial of hooks, in bytes.
const MaxTold = 4 << 20

// A Trial is what a hook of an event would do, or why it would not run.
type Trial struct {
	Hook   Hook
	Skip   Skip   // "" = it runs
	Why    string // of a matcher that fails
	Answer *Answer
	Took   time.Duration
}

// Try fires an event for people who look at their hooks: nothing of it is recorded, no
// hook is spent that runs once, and those that nobody waits for are waited for. Of the
// hooks that the event concerns, those run for which run says so; what they do
// themselves, they do. The trials are in the order of the definitions.
func (s *Set) Try(ctx context.Context, m Moment, run func(Hook) bool) ([]Trial, Outcome, error) {
	input, data, err := s.input(m)
	if err != nil {
		return nil, Outcome{}, err
	}
	all := s.choices(m, input, false)
	ctx, done := s.together(ctx, m.Event, all)
	defer done()
	trials := make([]Trial, len(all))
	var out Outcome
	var wg sync.WaitGroup
	var mu sync.Mutex // of out
	for i, c := range all {
		t := &trials[i]
		t.Hook, t.Skip = c.hook, c.skip
		if c.err != nil {
			t.Why = c.err.Error()
		}
		if !run(c.hook) || c.skip != "" && c.skip != SkipBroken {
			continue
		}
		wg.Go(func() {
			a, begun := broken(m.Event, c.err), time.Now()
			if c.err == nil {
				a = s.fit(s.one(ctx, c.hook, m, running{held: true}, data))
			}
			t.Answer, t.Took = &a, time.Since(begun)
			mu.Lock()
			defer mu.Unlock()
			if !c.hook.Async {
				out.add(s.name(c.hook), a)
			}
		})
	}
	wg.Wait()
	return trials, out, nil
}

// Told returns what hooks are told at a moment: an object of JSON.
func (s *Set) Told(m Moment) (json.RawMessage, error) {
	_, data, err := s.input(m)
	return data, err
}

// MomentOf makes a moment of what hooks are told at an event, as people write it down:
// an object. What it says of the session takes the place of what [Config.Facts] say.
func MomentOf(e Event, told map[string]json.RawMessage) Moment {
	fields := maps.Clone(told)
	delete(fields, "hook_event_name")
	m := Moment{Event: e, Fields: fields}
	_ = json.Unmarshal(told[kinds[e].matcher], &m.Match) // what is no text, no matcher looks at
	if e == FileChanged {
		m.Match = filepath.Base(m.Match)
	}
	if !kinds[e].tool {
		return m
	}
	p := agent.Proposal{}
	_ = json.Unmarshal(told["tool_name"], &p.Call.Tool)
	_ = json.Unmarshal(told["tool_use_id"], &p.Call.ID)
	p.Call.Input = told["tool_input"]
	m.Proposal = &p
	return m
}
