package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/base/frontmatter"
)

// Output shows an agent in the background, after waiting for its end for a while. It
// reports false for what it does not know.
func (s *Swarm) Output(ctx context.Context, handle string, wait time.Duration) (agent.Result, bool) {
	j, handle := s.find(ctx, handle)
	if j == nil {
		return s.past(handle)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-timer.C:
	case <-ctx.Done():
		return agent.Failure(agent.ErrAborted, "waiting for "+handle+" was cancelled; it goes on", ""), true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over() {
		return ended(handle, j.result), true
	}
	text := fmt.Sprintf("%s: running, %d calls so far", handle, j.calls)
	if len(j.latest) > 0 {
		text += ", the latest:\n" + strings.Join(j.latest, "\n")
	}
	return agent.Result{Status: agent.StatusOK, Text: text, Output: structured(state{handle, "running"})}, true
}

// state is how a task stands.
type state struct {
	ID     string `json:"task_id"`
	Status string `json:"status"`
}

// ended shows how an agent came out.
func ended(handle string, r agent.Result) agent.Result {
	status := "completed"
	switch {
	case r.Error != nil && r.Error.Code == agent.ErrLost:
		status = "lost"
	case r.Error != nil && r.Error.Code == agent.ErrAborted:
		status = "stopped"
	case r.Failed():
		status = "failed"
	}
	return agent.Result{Status: agent.StatusOK, Text: handle + ": " + status + "\n" + r.Text, Spill: r.Spill, Output: structured(state{handle, status})}
}

func (s *Swarm) past(handle string) (agent.Result, bool) {
	if s.c.Past == nil {
		return agent.Result{}, false
	}
	r, ok := s.c.Past(handle)
	if !ok {
		return r, false
	}
	return ended(handle, r), true
}

// Stop ends an agent in the background, and waits for that.
func (s *Swarm) Stop(ctx context.Context, handle string) (agent.Result, bool) {
	j, handle := s.find(ctx, handle)
	if j == nil {
		return s.past(handle)
	}
	if j.over() {
		return agent.OK(handle + " had ended before."), true
	}
	j.stop()
	select {
	case <-j.done:
	case <-ctx.Done():
		return agent.Failure(agent.ErrAborted, "waiting for the end of "+handle+" was cancelled", ""), true
	}
	r := agent.OK(handle + " was stopped. " + s.goOn(j.id()))
	r.Output = structured(state{handle, "stopped"})
	return r, true
}

// find returns the job of a handle, with or without its type in front.
func (s *Swarm) find(ctx context.Context, handle string) (*job, string) {
	name, again, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(handle), handlePrefix), againMark)
	id := s.full(ctx, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range slices.Backward(s.jobs) { // the newest of those that go on
		if id != "" && j.id() == id && (again == "" || j.again == again) {
			return j, j.handle()
		}
	}
	if again != "" {
		id += againMark + again
	}
	return nil, handlePrefix + id
}

// maxNamed is how many agents are named where one is not known.
const maxNamed = 16

// Latest names the agents that were started last in the background, and how they stand.
func (s *Swarm) Latest() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range slices.Backward(s.jobs) {
		how := "running"
		if j.over() {
			how = "over"
		}
		if id := j.id(); id != "" && len(names) < maxNamed {
			names = append(names, fmt.Sprintf("%s (%s, %s)", short(id), j.kind, how))
		}
	}
	return names
}

// shortened is how many characters of the ID of an agent stand for it among those of a
// session.
const shortened = 8

// short is the ID of an agent as people and models write it.
func short(id string) string { return id[:min(shortened, len(id))] }

// full returns the ID that a handle, an ID or a short one means.
func (s *Swarm) full(ctx context.Context, id string) string {
	id, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(id), handlePrefix), againMark)
	if len(id) != shortened {
		return id
	}
	s.mu.Lock()
	for _, j := range s.jobs {
		if known := j.id(); short(known) == id {
			s.mu.Unlock()
			return known
		}
	}
	s.mu.Unlock()
	if s.c.Full != nil {
		if known, ok := s.c.Full(ctx, id); ok {
			return known
		}
	}
	return id
}

// List is what a model is told of the types that do not come with the program,
// at most maxListed bytes; "" = there are none.
func List(tool string, types []Definition) string {
	var b strings.Builder
	left := 0
	for _, d := range types {
		if d.Place.Scope == frontmatter.BuiltIn {
			continue
		}
		about := line(d.Description, maxAbout)
		if b.Len()+len(d.Name)+len(about) > maxListed {
			left++
			continue
		}
		quoted, err := json.Marshal(about) // so that no description looks like another entry
		if err != nil {
			continue
		}
		fmt.Fprintf(&b, "\n- %s: %s", d.Name, quoted)
	}
	if b.Len() == 0 {
		return ""
	}
	text := "Further types of agents for the tool " + tool + ", with what they say of themselves:" + b.String()
	if left > 0 {
		text += fmt.Sprintf("\n%d more are not listed.", left)
	}
	return text
}

// Bounds of the list.
const (
	maxListed = 8 << 10 // bytes
	maxAbout  = 300     // bytes of a description
)
