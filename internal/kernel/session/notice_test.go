package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// heard is what the model was told last: the blocks of all user messages. A
// notice is shortened to its first words. It checks that every request ends with
// the user's side of the conversation.
func (r *rig) heard() string {
	r.t.Helper()
	r.model.mu.Lock()
	defer r.model.mu.Unlock()
	for i, req := range r.model.asked {
		if last := req.Messages[len(req.Messages)-1]; last.Role != agent.User {
			r.t.Errorf("request %d ends with what the model said: %+v", i, last)
		}
	}
	var all []string
	for _, m := range r.model.asked[len(r.model.asked)-1].Messages {
		for _, b := range m.Blocks {
			switch {
			case m.Role != agent.User:
			case b.Result != nil:
				all = append(all, "result "+b.Result.ID)
			default:
				text, _, _ := strings.Cut(b.Text, ".")
				all = append(all, text)
			}
		}
	}
	return strings.Join(all, ", ")
}

func (r *rig) settleJob(handle string) {
	r.t.Helper()
	if err := r.reach.Settle(context.Background(), agent.Settlement{Handle: handle, Result: agent.OK("done")}); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) turns(id string) (n int) {
	return strings.Count(r.log(id), "turn.started")
}

// slowly answers after a minute, unless the request is given up.
func slowly(a agent.Answer) func(context.Context) any {
	return func(ctx context.Context) any {
		select {
		case <-time.After(time.Minute):
			return a
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// What the user has stopped, or closed, stays stopped: an outcome that came before
// it is read with the user's next words, once, and asks for no answer of its own.
func TestANoticeWaitsForTheNextWords(t *testing.T) {
	for _, tt := range []struct {
		name string
		when any // what runs as the outcome comes
		shut bool
		want string
	}{
		{"interrupted in a call", say("", call("2", "sleep", `"1h"`)), false, "go, result 1, result 2, [Task job:a has ended, and?"},
		{"interrupted in an answer", slowly(say("late")), false, "go, result 1, [Task job:a has ended, and?"},
		{"closed in a call", say("", call("2", "sleep", `"1h"`)), true, "go, result 1, result 2, [Task job:a has ended, and?"},
		{"closed in an answer", slowly(say("late")), true, "go, result 1, [Task job:a has ended, and?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, say("", call("1", "write", `""`)), tt.when, say("I see"))
				defer func() { r.reg.Shutdown() }()
				r.tools["write"] = begins("job:a")
				s := r.open(agent.Open{})
				r.send(s, agent.Prompt{Text: "go"})
				r.settleJob("job:a")
				if tt.shut {
					r.reg.Shutdown()
					r.start()
					s = r.open(agent.Open{Session: s.Info.ID})
				} else {
					r.send(s, agent.Interrupt{})
				}
				settle()
				if n := r.turns(s.Info.ID); n != 1 {
					t.Errorf("%d turns:\n%s", n, r.log(s.Info.ID))
				}
				r.send(s, agent.Prompt{Text: "and?"})
				settle()
				if got := r.heard(); got != tt.want || len(r.model.asked) != 3 {
					t.Errorf("%d requests; the model read %q\n%s", len(r.model.asked), got, r.log(s.Info.ID))
				}
			})
		})
	}
}

// craft makes a session of events, as a program that was killed leaves it.
func (r *rig) craft(id string, bodies ...agent.Body) {
	r.t.Helper()
	ctx := context.Background()
	if err := r.store.Create(ctx, journal.Meta{SessionInfo: agent.SessionInfo{ID: id}}); err != nil {
		r.t.Fatal(err)
	}
	l, err := r.store.Acquire(ctx, id, journal.Owner{ID: "craft"})
	if err != nil {
		r.t.Fatal(err)
	}
	b := journal.Batch{Sync: journal.Barrier}
	for _, body := range bodies {
		b.Events = append(b.Events, agent.Event{Body: body})
	}
	if _, err := l.Append(ctx, b); err != nil {
		r.t.Fatal(err)
	}
	if err := l.Release(ctx, journal.Parked, l.Session()); err != nil {
		r.t.Fatal(err)
	}
}

// pendingCall is a turn whose first answer began a job.
func pendingCall(id string) []agent.Body {
	return []agent.Body{
		agent.SessionOpened{Session: id, Workdir: "/w", Model: "script"},
		agent.InputAdded{Input: "p1", Text: "go"},
		agent.TurnStarted{Turn: "t"},
		agent.ModelAnswered{Turn: "t", Step: 1, Answer: say("", call("1", "write", `""`))},
		agent.CallStarted{ID: "1", Tool: "write", Class: agent.Unsafe},
		agent.CallSpawned{ID: "1", Process: agent.Process{PID: 7, PGID: 7}},
		agent.CallFinished{Result: agent.Result{ID: "1", Status: agent.StatusPending, Handle: "job:a", Text: "it runs"}, Tool: "write"},
	}
}

// A notice that was read with other input asks for nothing.
func TestANoticeThatWasReadAsksForNothing(t *testing.T) {
	for _, ended := range []bool{false, true} {
		t.Run(fmt.Sprint("turn ended: ", ended), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, say("I see"))
				defer r.reg.Shutdown()
				bodies := append(pendingCall("s"),
					agent.CallSettled{Handle: "job:a", ID: "1", Notice: "[Task job:a has ended.]"},
					agent.InputQueued{Input: "settled:job:a", Origin: "settled"},
					agent.InputAdded{Text: "Go on", Origin: "loop"},
					agent.ModelAnswered{Turn: "t", Step: 2, Answer: say("that is all")},
				)
				if ended {
					bodies = append(bodies, agent.TurnEnded{Turn: "t", Reason: agent.EndDone})
				}
				r.craft("s", bodies...)
				s := r.open(agent.Open{Session: "s"})
				if want := map[bool]string{false: "interrupted", true: "idle"}[ended]; s.Info.Status != want {
					t.Errorf("the session is %s", s.Info.Status)
				}
				if err := s.Send(t.Context(), agent.Continue{}); (agent.ProblemOf(err) != nil) != ended {
					t.Error(err)
				}
				settle()
				if n := len(r.model.asked); n != 0 {
					t.Errorf("%d requests:\n%s", n, r.log("s"))
				}
			})
		})
	}
}

// A turn that a crash cut short reads at its next step what it has lost.
func TestALostJobIsReadByTheTurnThatGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("I see"))
		defer r.reg.Shutdown()
		r.craft("s", pendingCall("s")...)
		s := r.open(agent.Open{Session: "s"})
		if len(r.reaped) != 1 || r.reaped[0].PGID != 7 {
			t.Errorf("ended %+v", r.reaped)
		}
		r.send(s, agent.Continue{})
		settle()
		if got, want := r.heard(), "go, result 1, [Task job:a is lost"; got != want {
			t.Errorf("the model read %q", got)
		}
	})
}

// So does a turn that waited for a person while its session was closed.
func TestAJobThatEndsWithAParkedTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `""`)), say("", call("2", "sleep", `"1s"`)), say("I see"))
		r.tools["write"] = begins("job:a")
		r.person = func(p agent.Proposal) bool { return p.Call.ID == "2" }
		r.closed = func() { r.settleJob("job:a") }
		s := r.open(agent.Open{Approver: true})
		r.send(s, agent.Prompt{Text: "go"})
		r.reg.Shutdown()
		r.closed = nil
		r.start()
		defer func() { r.reg.Shutdown() }()
		s = r.open(agent.Open{Session: s.Info.ID, Approver: true})
		r.send(s, agent.Continue{})
		r.send(s, agent.Resolve{ID: r.asked(s.Info.ID)[0], Decision: agent.Decision{Verdict: agent.Allow}})
		settle()
		if got, want := r.heard(), "go, result 1, result 2, [Task job:a has ended"; got != want || r.turns(s.Info.ID) != 2 {
			t.Errorf("the model read %q\n%s", got, r.log(s.Info.ID))
		}
	})
}

// An outcome that comes while a person is being asked neither answers the question
// nor is lost.
func TestAnOutcomeWhileAPersonIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `""`), call("2", "sleep", `"1s"`)), say("I see"))
		defer r.reg.Shutdown()
		r.tools["write"] = begins("job:a")
		r.person = func(p agent.Proposal) bool { return p.Call.ID == "2" }
		s := r.open(agent.Open{Approver: true})
		r.send(s, agent.Prompt{Text: "go"})
		r.settleJob("job:a")
		settle()
		if len(r.model.asked) != 1 {
			t.Fatalf("log:\n%s", r.log(s.Info.ID))
		}
		r.send(s, agent.Resolve{ID: r.asked(s.Info.ID)[0], Decision: agent.Decision{Verdict: agent.Allow}})
		settle()
		if got, want := r.heard(), "go, result 1, result 2, [Task job:a has ended"; got != want || r.turns(s.Info.ID) != 1 {
			t.Errorf("the model read %q\n%s", got, r.log(s.Info.ID))
		}
	})
}

// taken is a store whose sessions another owner can take over.
type taken struct {
	journal.Store
	take func() // the last lease
}

func (s *taken) Acquire(ctx context.Context, id string, who journal.Owner) (journal.Lease, error) {
	l, err := s.Store.Acquire(ctx, id, who)
	if err != nil {
		return nil, err
	}
	valid, cancel := context.WithCancel(l.Valid())
	s.take = func() { cancel(); _ = l.Release(context.Background(), journal.Parked, l.Session()) }
	return lapsed{l, valid}, nil
}

type lapsed struct {
	journal.Lease
	valid context.Context
}

func (l lapsed) Valid() context.Context { return l.valid }

// An outcome that comes when another process owns the log is that process's to
// settle: as lost, once.
func TestAnOutcomeAfterAnotherOwnerHasCome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `""`)), say("started"), say("I see"))
		store := &taken{Store: r.store}
		r.store = store
		r.start()
		r.tools["write"] = begins("job:a")
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		late := r.reach
		r.closed = func() {
			if err := late.Settle(context.Background(), agent.Settlement{Handle: "job:a", Result: agent.OK("done")}); err == nil {
				t.Error("it was settled in a log that another one owns")
			}
		}
		store.take()
		synctest.Wait()
		r.closed = nil
		r.start()
		defer r.reg.Shutdown()
		s = r.open(agent.Open{Session: s.Info.ID})
		r.send(s, agent.Prompt{Text: "and?"})
		settle()
		log := r.log(s.Info.ID)
		if got, want := r.heard(), "go, result 1, [Task job:a is lost, and?"; got != want || strings.Count(log, "call.settled") != 1 {
			t.Errorf("the model read %q\n%s", got, log)
		}
	})
}

// An outcome that comes while the session is being closed wakes nobody.
func TestAnOutcomeWakesNoSessionThatIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `""`)), say("started"))
		r.tools["write"] = begins("job:a")
		s := r.open(agent.Open{})
		r.closed = func() { r.settleJob("job:a"); r.settleJob("job:a") }
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		r.reg.Shutdown()
		if got := r.log(s.Info.ID); !strings.HasSuffix(got, "turn.ended done\nlog.sealed\ncall.settled") {
			t.Errorf("log:\n%s", got)
		}
	})
}

// A fork has neither the jobs of the session that it was forked from nor their
// processes.
func TestAForkLeavesTheJobsOfItsOrigin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("I see"))
		defer r.reg.Shutdown()
		open := []agent.Body{
			agent.ModelAnswered{Turn: "t", Step: 2, Answer: say("", call("2", "write", `""`))},
			agent.CallDecided{Turn: "t", Step: 2, Proposal: agent.Proposal{Call: call("2", "write", `""`), Class: agent.Unsafe}, Decision: agent.Decision{Verdict: agent.Allow}},
			agent.CallStarted{ID: "2", Tool: "write", Class: agent.Unsafe},
			agent.CallSpawned{ID: "2", Process: agent.Process{PID: 8, PGID: 8}},
		}
		r.craft("s", append(pendingCall("s"), open...)...)
		const head = 11
		if err := r.store.Fork(t.Context(), "s", head, "f"); err != nil {
			t.Fatal(err)
		}
		s := r.open(agent.Open{Session: "f"})
		r.send(s, agent.Continue{})
		settle()
		if len(r.reaped) > 0 {
			t.Errorf("ended %+v", r.reaped)
		}
		if got, want := r.heard(), "go, result 1, result 2, [Task job:a is lost"; got != want {
			t.Errorf("the model read %q", got)
		}
		var opened agent.SessionOpened
		for e := range r.store.Read(t.Context(), "f", head) {
			if b, ok := e.Body.(agent.SessionOpened); ok {
				opened = b
			}
		}
		if opened.Session != "f" || opened.ForkOf != "s" || opened.ForkSeq != head {
			t.Errorf("opened as %+v", opened)
		}
		state := transcript.New()
		for e := range r.store.Read(t.Context(), "s", 0) {
			state.Apply(e)
		}
		if len(state.Pending) != 1 {
			t.Errorf("the origin's job is %+v", state.Settled)
		}
	})
}

// A child is not over before what was said to it meanwhile is answered.
func TestAChildWithMoreToDo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"1m"`)), say("first"), slowly(say("second")))
		defer r.reg.Shutdown()
		r.open(agent.Open{})
		done := make(chan agent.Outcome, 1)
		go func() {
			out, err := r.reach.Spawn(t.Context(), agent.Child{Prompt: "do it", Key: "k"})
			if err != nil {
				t.Error(err)
			}
			done <- out
		}()
		synctest.Wait()
		for m := range r.store.List(t.Context(), journal.Query{}) {
			if m.Parent != "" {
				if err := r.reg.Send(t.Context(), m.ID, agent.Prompt{Text: "and this", Later: true}); err != nil {
					t.Error(err)
				}
			}
		}
		if out := <-done; out.Text != "second" || out.Reason != agent.EndDone {
			t.Errorf("outcome %+v\n%s", out, r.log(out.Session))
		}
	})
}
