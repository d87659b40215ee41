package visible_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"dure/agent"
	"dure/internal/state/archive/visible"
	"dure/internal/state/journal"
)

// store has a session of each owner, called login, one that works for Ann's, and a fork of hers
// that is Bob's. Without a tag, a session is of whoever runs the program.
func store(t *testing.T) *journal.Local {
	t.Helper()
	s, err := journal.NewLocal(journal.LocalOptions{Dir: t.TempDir(), Durability: journal.DurabilityOS})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, one := range []agent.SessionInfo{
		{ID: "s-ann", Title: "login", Tags: []string{"work", "user:ann"}},
		{ID: "s-bob", Title: "login", Tags: []string{"work", "user:bob"}},
		{ID: "s-root", Title: "login"},
		{ID: "s-child", Parent: "s-ann"},
		{ID: "s-fork", Parent: "s-ann", ForkSeq: 1, Tags: []string{"user:bob"}},
		{ID: "s-orphan", Parent: "s-gone"},
	} {
		one.Workdir, one.Status = "/p", "idle"
		m := journal.Meta{SessionInfo: one}
		if err := s.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		lease, err := s.Acquire(t.Context(), one.ID, journal.Owner{})
		if err != nil {
			t.Fatal(err)
		}
		say := func(text, purpose string) agent.Event {
			m := agent.Message{Role: agent.Assistant, Blocks: agent.UserText(text).Blocks}
			return agent.Event{Body: agent.ModelAnswered{Purpose: purpose, Answer: agent.Answer{Message: m}}}
		}
		events := []agent.Event{
			{Body: agent.SessionOpened{Session: one.ID, Parent: one.Parent, Workdir: one.Workdir}},
			say("an older answer", ""), say("the canary of "+one.ID, ""), say("a summary", "summary"),
		}
		if _, err := lease.Append(t.Context(), journal.Batch{Events: events, Seal: true}); err != nil {
			t.Fatal(err)
		}
		m.Head = int64(len(events))
		if err := lease.Release(t.Context(), journal.Done, m); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Sessions are seen by those whose they are, with what works for them, and by whoever runs the
// program: to complete, to read, and to tell apart by their names.
func TestSessionsOfOthers(t *testing.T) {
	t.Parallel()
	s := store(t)
	find := func(ctx context.Context, name string) (found agent.SessionInfo, err error) {
		n := 0
		for m, err := range s.List(ctx, journal.Query{}) {
			if err != nil {
				return found, err
			}
			if m.ID == name || m.Title == name {
				n++
				found = m.SessionInfo
			}
		}
		if n != 1 {
			return agent.SessionInfo{}, errors.New("none, or several")
		}
		return found, nil
	}
	x := visible.Sessions{Store: func() *journal.Local { return s }, Find: find}
	all := []string{"s-ann", "s-bob", "s-child", "s-fork", "s-orphan", "s-root"}
	for id, tt := range map[string]struct {
		completes []string // sessions that are listed; those of agents have no tags of their own
		reads     []string
		login     string // that is called so
	}{
		"s-ann":    {nil, []string{"s-ann", "s-child"}, "s-ann"},
		"s-child":  {[]string{"s-ann"}, []string{"s-ann", "s-child"}, "s-ann"},
		"s-bob":    {[]string{"s-fork"}, []string{"s-bob", "s-fork"}, "s-bob"},
		"s-fork":   {[]string{"s-bob"}, []string{"s-bob", "s-fork"}, "s-bob"},
		"s-root":   {[]string{"s-ann", "s-bob", "s-child", "s-fork", "s-orphan"}, all, ""},
		"s-orphan": {nil, nil, ""},
	} {
		var completes []string
		for _, c := range x.Complete(t.Context(), id, "/p", "s-", 10) {
			completes = append(completes, c[len("session:"):])
		}
		if slices.Sort(completes); !slices.Equal(completes, tt.completes) {
			t.Errorf("%s completes to %q, want %q", id, completes, tt.completes)
		}
		var reads []string
		for _, other := range all {
			info, answer, ok := x.Named(t.Context(), id, other)
			if ok && (info.ID != other || answer != "the canary of "+other) || !ok && (info.ID != "" || answer != "") {
				t.Errorf("%s reads %+v, %q of %s", id, info, answer, other)
			}
			if ok {
				reads = append(reads, other)
			}
		}
		if !slices.Equal(reads, tt.reads) {
			t.Errorf("%s reads %q, want %q", id, reads, tt.reads)
		}
		if info, _, _ := x.Named(t.Context(), id, "login"); info.ID != tt.login {
			t.Errorf("for %s, %q is called login, want %q", id, info.ID, tt.login)
		}
	}
	if got := x.Complete(t.Context(), "s-root", "/p", "s-", 2); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if got := x.Complete(t.Context(), "s-root", "/other", "s-", 10); len(got) != 0 {
		t.Errorf("of another folder: %q", got)
	}
}
