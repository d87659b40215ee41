package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dure/agent"
)

// forked is a tape that goes on from an event of another one.
func (p *tape) forked(at int64) *tape {
	f := &tape{T: p.T, blobs: p.blobs, state: p.state, events: slices.Clone(p.events[:at])}
	f.add(agent.SessionOpened{Session: "f", ForkOf: "s", ForkSeq: at, Title: "a fork", Model: "other"})
	return f
}

func compareTapes(t *testing.T, a, b *tape) string {
	t.Helper()
	x, y := a.config(a.events), b.config(b.events)
	y.Session = "f"
	c, files, err := Compare(t.Context(), x, y)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintln(&out, "shared", c.Shared, c.PartA, c.PartB)
	for i, s := range []agent.ComparedSession{c.A, c.B} {
		fmt.Fprintf(&out, "%s model=%s parent=%s asked=%q answer=%q outcome=%s turns=%d steps=%d calls=%d failed=%d in=%d files=%d\n",
			s.Session, s.Model, s.Parent, s.Asked, s.Answer, s.Outcome, s.Turns, s.Steps, s.Calls, s.Failed, s.Usage.Input, len(files[i]))
	}
	for _, p := range c.Calls {
		sign, call := "=", p.A
		if p.B == nil {
			sign = "a"
		} else if p.A == nil {
			sign, call = "b", p.B
		}
		fmt.Fprintf(&out, "%s %s %s\n", sign, call.Tool, call.Status)
	}
	return out.String()
}

func TestCompare(t *testing.T) {
	p := told(t)
	f := p.forked(3)
	c := agent.Call{ID: "q", Tool: "grep"}
	w := agent.Call{ID: "w", Tool: "write"}
	f.answer(1, "otherwise", c, w)
	f.decide(1, c, agent.Read, agent.Allow)
	f.decide(1, w, agent.Idempotent, agent.Allow)
	f.start(1, c, agent.Read)
	f.add(finished("q", "found"))
	done := finished("w", "written")
	done.Result.Files = []agent.FileState{{Path: "/w/x", Wrote: true}, {Path: "/w/read"}}
	f.add(done)
	f.end(1)
	want := `shared 3 4 4
s model=m parent= asked="and more" answer="more" outcome=done turns=2 steps=3 calls=3 failed=1 in=30 files=0
f model=other parent=s asked="" answer="otherwise" outcome=done turns=1 steps=1 calls=2 failed=0 in=10 files=1
a read ok
b grep ok
= write ok
a rm error
`
	if got := compareTapes(t, p, f); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	same := "shared 23 0 0\n"
	if got := compareTapes(t, p, p); !strings.HasPrefix(got, same) {
		t.Errorf("with itself:\n%s", got)
	}
	other := newTape(t)
	other.events[0].ID = "another"
	if got := compareTapes(t, p, other); !strings.HasPrefix(got, "shared 0 1 1\n") {
		t.Errorf("with a stranger:\n%s", got)
	}
}

// How a session stood at an event is what its log said until then.
func TestAt(t *testing.T) {
	p := told(t)
	p.add(agent.CallFinished{Result: agent.Result{ID: "z", Status: agent.StatusOK, Files: []agent.FileState{{Path: "/w/b"}, {Path: "/w/a", Wrote: true}}}})
	for seq, want := range map[int64]string{
		1:  "1 of 24: 0 turns, false, 0 messages, 0 files, cost 0",
		4:  "4 of 24: 1 turns, true, 1 messages, 0 files, cost 0",
		13: "13 of 24: 1 turns, true, 3 messages, 0 files, cost 5",
		0:  "24 of 24: 2 turns, false, 6 messages, 2 files, cost 15",
	} {
		s, ok, err := At(t.Context(), p.config(p.events), seq)
		got := fmt.Sprintf("%d of %d: %d turns, %t, %d messages, %d files, cost %d", s.Seq, s.Head, s.Turns, s.Running, len(s.Messages), len(s.Files), *s.Cost)
		if err != nil || !ok || got != want {
			t.Errorf("at %d: %s, %v\nwant %s", seq, got, err, want)
		}
	}
	if _, ok, err := At(t.Context(), p.config(p.events), 99); ok || err != nil {
		t.Errorf("behind the end: %v, %v", ok, err)
	}
}
