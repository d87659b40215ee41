package client

import (
	"context"
	"errors"
	"iter"
	"testing"

	"dure/agent"
)

// room is a session in which questions are asked. Whatever else answers them does so just
// before what is sent here.
type room struct {
	Transport
	status  string
	log     []agent.Event
	rival   func(r *room)
	refuses error
}

func (r *room) add(b agent.Body) {
	r.log = append(r.log, agent.Event{Seq: int64(len(r.log) + 1), Body: b})
}

// resolve records the first answer, as sessions do.
func (r *room) resolve(c agent.Resolve) {
	open := false
	for _, e := range r.log {
		switch b := e.Body.(type) {
		case agent.ApprovalAsked:
			open = open || b.ID == c.ID
		case agent.ApprovalResolved:
			open = open && b.ID != c.ID
		}
	}
	if open {
		r.add(agent.ApprovalResolved(c))
	}
}

func (r *room) Query(context.Context, agent.Query) (any, error) {
	return agent.SessionInfo{ID: "s", Head: int64(len(r.log)), Status: r.status}, nil
}

func (r *room) Send(_ context.Context, _ string, c agent.Command) error {
	if r.refuses != nil {
		return r.refuses
	}
	if r.rival != nil {
		r.rival(r)
	}
	r.resolve(c.(agent.Resolve))
	r.add(agent.TurnEnded{})
	return nil
}

func (r *room) Events(ctx context.Context, _ string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for _, e := range append([]agent.Event{{Body: agent.Fragment{Text: "live"}}}, r.log...) {
			if (e.Live() || e.Seq > after) && !yield(e, nil) {
				return
			}
		}
		<-ctx.Done() // it goes on
	}
}

// Whoever answers a question that was answered before has that said, with who it was; so has
// who answers otherwise at the same time.
func TestResolve(t *testing.T) {
	said := func(id string, v agent.Verdict, by string) agent.Resolve {
		return agent.Resolve{ID: id, Decision: agent.Decision{Verdict: v, By: by}}
	}
	rival := func(v agent.Verdict) func(*room) {
		return func(r *room) { r.resolve(said("q", v, "web")) }
	}
	gone := errors.New("gone")
	for name, tt := range map[string]struct {
		room   room
		before bool // somebody has answered before
		id     string
		code   agent.ProblemCode
		err    error
	}{
		"the first":                 {room: room{status: "running"}, id: "q"},
		"the second":                {room: room{status: "running"}, before: true, id: "q", code: ProblemAnswered},
		"at once, otherwise":        {room: room{status: "running", rival: rival(agent.Deny)}, id: "q", code: ProblemAnswered},
		"at once, the same":         {room: room{status: "running", rival: rival(agent.Allow)}, id: "q"},
		"nobody asks":               {room: room{status: "running"}, id: "another", code: ProblemNoQuestion},
		"it does not run":           {room: room{status: "waiting"}, before: true, id: "q"},
		"it cannot be sent":         {room: room{status: "running", refuses: gone}, id: "q", err: gone},
		"it cannot be sent, at all": {room: room{refuses: gone}, id: "q", err: gone},
	} {
		t.Run(name, func(t *testing.T) {
			r := &tt.room
			r.add(agent.ApprovalAsked{ID: "other"})
			r.add(agent.ApprovalAsked{ID: "q"})
			r.resolve(said("other", agent.Deny, "else"))
			if tt.before {
				r.resolve(said("q", agent.Deny, "web"))
			}
			err := New(r).Attach("s").Resolve(t.Context(), said(tt.id, agent.Allow, "me"))
			p := agent.ProblemOf(err)
			switch {
			case tt.code == "":
				if !errors.Is(err, tt.err) {
					t.Errorf("%v", err)
				}
			case p == nil || p.Code != tt.code || p.Args["id"] != tt.id:
				t.Errorf("%v, %+v", err, p)
			case tt.code == ProblemAnswered && (p.Args["by"] != "web" || p.Args["verdict"] != "deny"):
				t.Errorf("%+v", p.Args)
			}
		})
	}
}
