package app_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// A dice throws sessions: what the model says, what the user does about it.
type dice struct {
	*rand.Rand
	world *world

	mu    sync.Mutex // what an interrupted request still asks for comes beside what the user does
	model *dice      // throws the replies
	slow  bool       // the next reply is a command that takes until it is interrupted
	fault bool       // a reply fails at first
}

// begin starts a session's throws.
func (d *dice) begin(seed uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Rand = rand.New(rand.NewPCG(7, seed))
	d.model = &dice{Rand: rand.New(rand.NewPCG(8, seed))}
}

// next says what the next reply is to be.
func (d *dice) next(slow, fault bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow, d.fault = d.slow || slow, d.fault || fault
}

// reply is anything that a model may say.
func (d *dice) reply(script.Request) script.Reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.model
	if d.slow {
		d.slow = false
		return script.Reply{Calls: []script.Call{m.call("Bash", "command", "sleep 60")}}
	}
	r := script.Reply{Text: fmt.Sprintf("I say %d. 한글", m.IntN(1000))}
	if m.IntN(4) == 0 {
		r.Thinking = "hm"
	}
	if d.fault {
		d.fault = false
		r.Faults = []script.Fault{{Kind: script.Status, Status: 529, RetryAfter: "0"}}
	}
	if m.IntN(12) == 0 {
		r.Faults = []script.Fault{{Kind: script.Status, Status: 400, Message: "no"}}
	}
	for m.IntN(3) > 0 && len(r.Calls) < 4 {
		r.Calls = append(r.Calls, m.anyCall())
	}
	return r
}

func (d *dice) file() string { return fmt.Sprintf("f%d.txt", d.IntN(3)) }

func (d *dice) anyCall() script.Call {
	switch d.IntN(10) {
	case 9:
		return d.call("Agent", "prompt", fmt.Sprintf("do %d for me", d.IntN(1000)), "subagent_type", []string{"", "Explore", "nobody"}[d.IntN(3)])
	case 0:
		return d.call("Write", "file_path", d.file(), "content", fmt.Sprintf("line %d\n", d.IntN(9)))
	case 1:
		return d.call("Edit", "file_path", d.file(), "old_string", "line", "new_string", "word")
	case 2:
		return d.call("Bash", "command", fmt.Sprintf("echo %d >> %s", d.IntN(9), d.file()))
	case 3:
		return d.call("Bash", "command", "rm -f "+d.file())
	case 4:
		return d.call("Nonsense", "x", "y")
	case 5:
		return script.Call{Tool: "Read", Raw: `{"file_path": "f`}
	case 6:
		return d.call("Bash", "command", "cat missing.txt")
	}
	return d.call("Read", "file_path", d.file())
}

func (d *dice) call(tool string, pairs ...string) script.Call {
	in := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		in[pairs[i]] = pairs[i+1]
	}
	data, err := json.Marshal(in)
	if err != nil {
		d.world.t.Fatal(err)
	}
	return script.Call{Tool: tool, Input: data}
}

// turn says something and answers what is asked, until the turn has ended.
func (d *dice) turn(k *talk) {
	k.send(agent.Prompt{Text: fmt.Sprintf("do %d", d.IntN(1000))})
	if d.IntN(5) == 0 {
		k.send(agent.Prompt{Text: "and that", Later: d.IntN(2) == 0})
	}
	for over := false; !over; {
		switch b := k.until("a question or the end", func(agent.Event) bool { return true }).Body.(type) {
		case agent.ApprovalAsked:
			a := agent.Resolve{ID: b.ID, Decision: agent.Decision{Verdict: []agent.Verdict{agent.Allow, agent.Allow, agent.Deny}[d.IntN(3)]}}
			if strings.Contains(string(b.Proposal.Call.Input), "sleep") { // of a turn that was cut short
				a.Decision.Verdict = agent.Deny
			}
			if a.Decision.Verdict == agent.Allow && d.IntN(3) == 0 {
				a.Remember = agent.RememberSession
			}
			k.send(a)
		case agent.TurnEnded:
			over = true
		}
	}
}

// act does one thing that a user may do.
func (d *dice) act(k *talk) *talk {
	head := k.seen[len(k.seen)-1].Seq
	try := func(c agent.Command) { _ = k.Send(d.world.t.Context(), c) } // it may be refused
	switch d.IntN(8) {
	case 0:
		try(agent.Change{Mode: []agent.Mode{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan, agent.ModeDontAsk}[d.IntN(4)]})
	case 1:
		try(agent.Compact{})
	case 2:
		try(agent.Restore{})
	case 3:
		try(agent.Rewind{To: 1 + d.Int64N(max(head, 1)), Conversation: true, Files: d.IntN(2) == 0})
	case 4:
		d.next(true, false)
		try(agent.Change{Mode: agent.ModeBypass})
		k.send(agent.Prompt{Text: "wait"})
		k.until("the command or the end", func(e agent.Event) bool { return e.Kind() == "call.started" || e.Kind() == "turn.ended" })
		if k.seen[len(k.seen)-1].Kind() == "call.started" {
			k.send(agent.Interrupt{})
			body[agent.TurnEnded](k)
		}
	case 5:
		if err := k.Session.Close(d.world.t.Context()); err != nil {
			d.world.t.Fatal(err)
		}
		return d.open(k.Client, agent.Open{Session: k.Info.ID, Approver: true})
	case 6:
		d.next(false, true)
	}
	d.turn(k)
	return k
}

func (d *dice) open(c client.Client, o agent.Open) *talk {
	return d.world.talkOn(c, o)
}

// A session that is replayed comes to what its log has, whatever has happened in it.
func TestReplaysOfGeneratedSessions(t *testing.T) {
	t.Parallel()
	n := 8
	if prooftest.Long() {
		n = 200
	}
	d := &dice{}
	w := newWorld(t, script.Script{}, script.Options{Keep: -1, Func: func(r script.Request) script.Reply { return d.reply(r) }})
	d.world = w
	prog := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	var sum agent.ReplayReport
	sessions := 0
	for i := range n {
		d.begin(uint64(i))
		k := w.talkTo(prog, agent.Open{Approver: true})
		d.turn(k)
		for range 1 + d.IntN(5) {
			k = d.act(k)
		}
		ids := []string{k.Info.ID}
		if d.IntN(3) == 0 {
			at := 1 + d.Int64N(k.seen[len(k.seen)-1].Seq)
			f := d.open(k.Client, agent.Open{Fork: k.Info.ID, At: at, Approver: true})
			d.turn(f)
			ids = append(ids, f.Info.ID)
		}
		closed := ids
		for _, b := range all[agent.ChildEnded](k.seen) {
			ids = append(ids, b.Child)
		}
		for _, id := range ids {
			rep, err := client.Query[agent.ReplayReport](t.Context(), prog.Client(), query.VerifyReplay{Session: id})
			if err != nil || !rep.OK {
				t.Fatalf("session %d, %s: %+v, %v\n%s", i, id, rep, err, names(k.seen))
			}
			sessions++
			if !slices.Contains(closed, id) {
				continue // a person's answers to an agent stand in the log of its parent
			}
			sum.Requests, sum.Decisions, sum.Redecided, sum.Folds = sum.Requests+rep.Requests, sum.Decisions+rep.Decisions, sum.Redecided+rep.Redecided, sum.Folds+rep.Folds
		}
		for _, id := range closed {
			if err := k.Client.Attach(id).Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d sessions: %d requests, %d decisions, %d of them made again, %d states compared", sessions, sum.Requests, sum.Decisions, sum.Redecided, sum.Folds)
	if sum.Redecided < sum.Decisions {
		t.Errorf("%d of %d decisions were made again", sum.Redecided, sum.Decisions)
	}
}
