package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"dure/agent"
	"dure/internal/state/transcript"
)

// todoTool is the tool whose newest call has the task list.
const todoTool = "todo__write"

// At returns how a session stood when event seq had been stored; 0 = the newest. ok is
// false when the log has no such event.
func At(ctx context.Context, cfg Config, seq int64) (stand agent.SessionStand, ok bool, err error) {
	s := transcript.New()
	s.Reread(func() iter.Seq2[agent.Event, error] { return cfg.Events })
	out := agent.SessionStand{Session: cfg.Session, Seq: seq}
	for e, err := range cfg.Events {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return out, false, fmt.Errorf("reading the log of %s: %w", cfg.Session, err)
		}
		out.Head = e.Seq
		if seq > 0 && e.Seq > seq {
			continue // the head is wanted, too
		}
		s.Apply(e)
		if err := s.Err(); err != nil {
			return out, false, fmt.Errorf("folding the log of %s: %w", cfg.Session, err)
		}
	}
	if seq < 0 || out.Head == 0 || seq > out.Head {
		return out, false, nil
	}
	stood(&out, s)
	return out, true, nil
}

func stood(out *agent.SessionStand, s *transcript.State) {
	out.Seq, out.Time = s.Head, s.Updated
	out.Title, out.Workdir, out.Model, out.Mode = s.Title, s.First.Workdir, s.Current(), s.Mode
	out.Turns, out.Running = s.Turns, s.Turn.Open
	out.Messages = s.Timed()
	for _, id := range slices.Sorted(maps.Keys(s.Approvals)) {
		out.Waiting = append(out.Waiting, s.Approvals[id])
	}
	out.Todos = todos(s)
	out.Task.Task = s.Task.Task
	for _, d := range s.Task.Decisions {
		out.Task.Decisions = append(out.Task.Decisions, d.Choosing)
	}
	for name, f := range s.Task.Facts {
		put(&out.Task.Facts, name, f.Text)
	}
	if p := s.Plan; p != nil {
		out.Plan = &agent.StoodPlan{ID: p.ID, Seq: p.Seq, Body: p.Body, Edits: p.Edits, State: p.State}
	}
	out.Files = slices.SortedFunc(maps.Values(s.Files), func(a, b agent.FileState) int { return cmp.Compare(a.Path, b.Path) })
	out.Grants, out.Usage, out.Cost, out.Context = s.Grants, s.Usage, s.TotalCost(), s.Context
}

// todos returns the list of the newest call that wrote one.
func todos(s *transcript.State) json.RawMessage {
	var in struct {
		Todos json.RawMessage `json:"todos"`
	}
	past := s.Past()
	for _, m := range slices.Backward(past) {
		for _, c := range slices.Backward(m.Calls()) {
			if c.Tool == todoTool && json.Unmarshal(c.Input, &in) == nil && in.Todos != nil {
				return in.Todos
			}
		}
	}
	return nil
}
