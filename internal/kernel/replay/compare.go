package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"dure/agent"
)

// What a comparison holds at most; of more, the first.
const (
	maxAligned = 500      // calls of one side
	maxAnswer  = 16 << 10 // bytes of an answer or a request
)

// Compare puts two logs side by side, but for the files that they ended with: those
// are named with what the calls said of them, by path, in the second result.
func Compare(ctx context.Context, a, b Config) (agent.Comparison, [2]map[string]agent.FileState, error) {
	var out agent.Comparison
	sides := [2]*side{newSide(a.Session), newSide(b.Session)}
	files := [2]map[string]agent.FileState{sides[0].files, sides[1].files}
	if err := run(ctx, [2]Config{a, b}, sides, &out); err != nil {
		return out, files, err
	}
	for i, to := range []*agent.ComparedSession{&out.A, &out.B} {
		*to = sides[i].ComparedSession
		to.Calls = len(sides[i].calls)
		out.Cut = out.Cut || to.Calls > maxAligned
	}
	if n := out.Shared + 1; n <= out.A.Events {
		out.PartA = n
	}
	if n := out.Shared + 1; n <= out.B.Events {
		out.PartB = n
	}
	x, y := sides[0].calls, sides[1].calls
	out.Calls = align(x[:min(len(x), maxAligned)], y[:min(len(y), maxAligned)])
	return out, files, nil
}

// run reads both logs: side by side as long as they are the same.
func run(ctx context.Context, cfgs [2]Config, sides [2]*side, out *agent.Comparison) error {
	var next [2]func() (agent.Event, error, bool)
	for i, c := range cfgs {
		n, stop := iter.Pull2(c.Events)
		defer stop()
		next[i] = n
	}
	for together := true; together; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var events [2]agent.Event
		var ok [2]bool
		for i := range next {
			var err error
			if events[i], err, ok[i] = next[i](); err != nil {
				return fmt.Errorf("reading the log of %s: %w", cfgs[i].Session, err)
			}
		}
		if together = ok[0] && ok[1] && same(events[0], events[1]); together {
			out.Shared++
		}
		for i, s := range sides {
			if ok[i] {
				s.event(events[i], together)
			}
		}
	}
	for i, s := range sides {
		for {
			e, err, ok := next[i]()
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("reading the log of %s: %w", cfgs[i].Session, err)
			}
			if !ok {
				break
			}
			s.event(e, false)
		}
	}
	return nil
}

// same reports whether two events are one: a fork has those of the log that it was
// forked from.
func same(a, b agent.Event) bool {
	return a.ID == b.ID && a.Seq == b.Seq && a.Time.Equal(b.Time) && a.Kind() == b.Kind()
}

// A side is one of the logs.
type side struct {
	agent.ComparedSession
	calls   []*agent.CallDone
	open    map[string]*agent.CallDone // without a result, by the ID of the call
	files   map[string]agent.FileState // that calls wrote or took away
	unknown bool                       // an answer has no price
}

func newSide(session string) *side {
	return &side{
		ComparedSession: agent.ComparedSession{Session: session, Cost: new(agent.Money)},
		open:            map[string]*agent.CallDone{}, files: map[string]agent.FileState{},
	}
}

// event takes an event in. What both sides have counts for what the session is, and
// not for what it did.
func (s *side) event(e agent.Event, shared bool) {
	s.Events = e.Seq
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		set(&s.Title, b.Title)
		set(&s.Model, b.Model)
		set(&s.Mode, b.Mode)
		set(&s.Parent, b.ForkOf)
	case agent.SettingsChanged:
		set(&s.Title, b.Title)
		set(&s.Model, b.Model)
		set(&s.Mode, b.Mode)
	}
	if shared {
		return
	}
	switch b := e.Body.(type) {
	case agent.InputAdded:
		if s.Asked == "" && b.Origin == "" {
			s.Asked = short(b.Text)
		}
	case agent.ModelAnswered:
		s.answered(b)
	case agent.CallDecided:
		s.decided(e.Seq, b)
	case agent.CallFinished:
		s.finished(b)
	case agent.TurnEnded:
		s.Turns++
		s.Millis += b.Millis
		s.Outcome, s.Error = b.Reason, short(b.Error)
	}
}

func (s *side) answered(b agent.ModelAnswered) {
	s.Usage = s.Usage.Add(b.Usage)
	if s.unknown = s.unknown || b.Cost == nil; s.unknown {
		s.Cost = nil
	} else {
		*s.Cost += *b.Cost
	}
	if b.Purpose == "" {
		s.Steps++
		if t := b.Message.Text(); t != "" {
			s.Answer = short(t)
		}
	}
}

func (s *side) decided(seq int64, b agent.CallDecided) {
	if b.Proposal.Origin != "" {
		return
	}
	c := &agent.CallDone{Seq: seq, Tool: b.Proposal.Call.Tool, Input: b.Proposal.Call.Input, Denied: b.Decision.Verdict == agent.Deny}
	s.calls = append(s.calls, c)
	s.open[b.Proposal.Call.ID] = c
}

func (s *side) finished(b agent.CallFinished) {
	if b.Result.Failed() {
		s.Failed++
	}
	if c := s.open[b.Result.ID]; c != nil {
		c.Status = string(b.Result.Status)
		delete(s.open, b.Result.ID)
	}
	for _, f := range b.Result.Files {
		if f.Wrote || f.Gone {
			s.files[f.Path] = f
		}
	}
}

func set[T ~string](to *T, v T) {
	if v != "" {
		*to = v
	}
}

func short(s string) string {
	if len(s) > maxAnswer {
		return string(bytes.ToValidUTF8([]byte(s[:maxAnswer]), nil))
	}
	return s
}

// align puts equal calls beside each other, as many as it can without changing the
// order of either side.
func align(x, y []*agent.CallDone) (out []agent.ComparedCall) {
	kx, ky := keysOf(x), keysOf(y)
	best := make([][]int, len(x)+1) // how many pairs the rest of both has
	for i := range best {
		best[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if kx[i] == ky[j] {
				best[i][j] = best[i+1][j+1] + 1
			} else {
				best[i][j] = max(best[i+1][j], best[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && kx[i] == ky[j]:
			out = append(out, agent.ComparedCall{A: x[i], B: y[j]})
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && best[i+1][j] >= best[i][j+1]:
			out = append(out, agent.ComparedCall{A: x[i]})
			i++
		default:
			out = append(out, agent.ComparedCall{B: y[j]})
			j++
		}
	}
	return out
}

// keysOf returns what makes calls equal: tool and input.
func keysOf(calls []*agent.CallDone) []string {
	keys := make([]string, len(calls))
	for i, c := range calls {
		var v any
		input := string(c.Input)
		if json.Unmarshal(c.Input, &v) == nil {
			input = encoded(v)
		}
		keys[i] = c.Tool + " " + input
	}
	return keys
}
