package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/kernel/plug"
	"dure/internal/kernel/replay"
	"dure/internal/kernel/session"
	"dure/internal/state/journal"
)

func TestATurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1s"`)), say("all done"))
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		want := text(`
			session.opened
			input.added go
			turn.started
			model.requested
			model.answered
			call.decided allow
			call.started
			call.finished 1
			model.requested
			model.answered
			turn.ended done
			log.sealed`)
		if got := r.log(s.Info.ID); got != want {
			t.Errorf("log:\n%s\nwant:\n%s", got, want)
		}
	})
}

func TestInputWhileATurnRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"10s"`)), say("ok"), say("and later"))
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{ID: "a", Text: "go"})
		r.send(s, agent.Prompt{ID: "b", Text: "steer"})
		r.send(s, agent.Prompt{ID: "b", Text: "steer"}) // the same input again
		r.send(s, agent.Prompt{ID: "c", Text: "afterwards", Later: true})
		settle()
		want := text(`
			session.opened
			input.added go
			turn.started
			model.requested
			model.answered
			call.decided allow
			call.started
			input.queued steer
			input.queued afterwards
			call.finished 1
			input.added steer
			model.requested
			model.answered
			turn.ended done
			log.sealed
			input.added afterwards
			turn.started
			model.requested
			model.answered
			turn.ended done
			log.sealed`)
		if got := r.log(s.Info.ID); got != want {
			t.Errorf("log:\n%s\nwant:\n%s", got, want)
		}
	})
}

func TestApproval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1s"`), call("2", "write", `"1s"`)), say("done"))
		defer r.reg.Shutdown()
		r.allow = false
		s := r.open(agent.Open{Approver: true})
		r.send(s, agent.Prompt{Text: "go"})
		id := func() (id string) {
			for e := range r.store.Read(t.Context(), s.Info.ID, 0) {
				if a, ok := e.Body.(agent.ApprovalAsked); ok {
					id = a.ID
				}
			}
			return id
		}
		first := id()
		r.send(s, agent.Resolve{ID: first, Decision: agent.Decision{Verdict: agent.Allow}, Remember: "session"})
		for range 3 { // the first answer wins, and late ones neither count nor block
			r.send(s, agent.Resolve{ID: first, Decision: agent.Decision{Verdict: agent.Deny}})
		}
		settle()
		if second := id(); second != first {
			r.send(s, agent.Resolve{ID: second, Decision: agent.Decision{Verdict: agent.Deny, Reason: "no"}})
		} else {
			t.Error("the second call was not asked about")
		}
		settle()
		log := r.log(s.Info.ID)
		want := text(`
			approval.asked
			approval.resolved
			call.decided allow
			call.started
			call.finished 1
			approval.asked
			approval.resolved
			call.decided deny
			call.finished 2 E_TOOL_DENIED`)
		if !strings.Contains(log, want) || strings.Count(log, "approval.resolved") != 2 {
			t.Errorf("log:\n%s\nwant in it:\n%s", log, want)
		}
		if len(r.given) != 1 || r.given[0] != "write" {
			t.Errorf("grants %v", r.given)
		}
	})
}

func TestNobodyToAskMeansNo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1s"`)), say("done"))
		defer r.reg.Shutdown()
		r.allow = false
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		synctest.Wait()
		log := r.log(s.Info.ID)
		if !strings.Contains(log, "call.finished 1 E_TOOL_DENIED") || strings.Contains(log, "approval.asked") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// An approval waits as long as it takes, also over the end of the process.
func TestApprovalSurvivesARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1s"`)), say("done"))
		r.allow = false
		s := r.open(agent.Open{Approver: true})
		r.send(s, agent.Prompt{Text: "go"})
		id := r.crash(s.Info.ID)
		s = r.open(agent.Open{Session: id, Approver: true})
		defer r.reg.Shutdown()
		r.send(s, agent.Continue{})
		var asked string
		for e := range r.store.Read(t.Context(), id, 0) {
			if a, ok := e.Body.(agent.ApprovalAsked); ok {
				asked = a.ID
			}
		}
		r.send(s, agent.Resolve{ID: asked, Decision: agent.Decision{Verdict: agent.Allow}})
		settle()
		log := r.log(id)
		if strings.Count(log, "approval.asked") != 1 || strings.Count(log, "call.started") != 1 || !strings.HasSuffix(log, "turn.ended done\nlog.sealed") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// crash copies the log as it is now into a new store, as if the process had
// died, and starts another one over it.
func (r *rig) crash(id string) string { r.t.Helper(); return r.crashBehind(id, "") }

// crashBehind is crash right behind the first event of a kind; "" = the last
// event of all.
func (r *rig) crashBehind(id, kind string) string {
	r.t.Helper()
	ctx := context.Background()
	var events []agent.Event
	for e, err := range r.store.Read(ctx, id, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		events = append(events, agent.Event{Body: e.Body})
		if e.Kind() == kind {
			break
		}
	}
	old, oldStore := r.reg, r.store

	r.store = journal.NewMemory(journal.MemoryOptions{})
	if err := r.store.Create(ctx, journal.Meta{SessionInfo: agent.SessionInfo{ID: id}}); err != nil {
		r.t.Fatal(err)
	}
	l, err := r.store.Acquire(ctx, id, journal.Owner{ID: "copy"})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := l.Append(ctx, journal.Batch{Events: events, Sync: journal.Barrier}); err != nil {
		r.t.Fatal(err)
	}
	if err := l.Release(ctx, journal.Parked, l.Session()); err != nil {
		r.t.Fatal(err)
	}
	old.Shutdown()
	_ = oldStore.Close()
	r.start()
	return id
}

func TestInterruptAndGoOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1h"`)), say("back"))
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		start := time.Now()
		r.send(s, agent.Interrupt{})
		r.send(s, agent.Interrupt{})
		if d := time.Since(start); d > time.Second {
			t.Errorf("idle after %s", d)
		}
		r.send(s, agent.Prompt{Text: "again"})
		settle()
		log := r.log(s.Info.ID)
		want := text(`
			call.finished 1 E_TOOL_ABORTED
			turn.ended interrupted
			log.sealed
			input.added again`)
		if !strings.Contains(log, want) {
			t.Errorf("log:\n%s", log)
		}
		if m := r.model.asked[1].Messages; !m[2].Blocks[0].Result.Failed() || m[3].Text() != "again" {
			t.Errorf("second request: %+v", m)
		}
	})
}

func TestLiveEventsStandBeforeWhatStoresThem(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("one two three"))
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		events := make(chan []agent.Event)
		go func() { events <- collect(t, s, 0) }()
		synctest.Wait()
		r.send(s, agent.Prompt{Text: "go"})
		all := <-events
		var streamed string
		var answered bool
		next := int64(1)
		for _, e := range all {
			switch b := e.Body.(type) {
			case agent.Fragment:
				if answered {
					t.Error("a fragment stands behind its answer")
				}
				streamed += b.Text
			case agent.ModelAnswered:
				answered = true
			}
			if !e.Live() {
				if e.Seq != next {
					t.Fatalf("event %d follows %d:\n%s", e.Seq, next-1, show(all))
				}
				next++
			}
		}
		if streamed != "one two three" {
			t.Errorf("streamed %q", streamed)
		}
	})
}

func TestASlowReaderMissesNoStoredEvent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"1s"`)), say("done"))
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		next := int64(1)
		for e, err := range s.Events(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Live() {
				continue
			}
			if e.Seq != next {
				t.Fatalf("event %d follows %d", e.Seq, next-1)
			}
			next++
			time.Sleep(time.Minute)
			if e.Kind() == "log.sealed" {
				return
			}
		}
	})
}

// A prompt that says nothing is refused: no provider would take it.
func TestABlankPrompt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		for _, blank := range []string{"", " \n\t"} {
			if err := s.Send(t.Context(), agent.Prompt{Text: blank}); err == nil {
				t.Errorf("%q was taken", blank)
			}
		}
		if got := r.log(s.Info.ID); got != "session.opened" {
			t.Errorf("log:\n%s", got)
		}
	})
}

func TestSettings(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("done"))
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		if err := s.Send(t.Context(), agent.Change{Model: "nosuch"}); agent.ProblemOf(err) == nil {
			t.Errorf("unknown model: %v", err)
		}
		r.send(s, agent.Change{Mode: agent.ModePlan, Title: "work"})
		if len(r.modes) != 1 || r.modes[0] != agent.ModePlan {
			t.Errorf("modes %v", r.modes)
		}
		list, err := client.Query[agent.SessionList](t.Context(), client.New(r.reg), agent.ListSessions{})
		if err != nil || len(list.Sessions) != 1 || list.Sessions[0].Title != "work" {
			t.Errorf("list: %+v, %v", list, err)
		}
	})
}

func TestAWrongModelLeavesNothingBehind(t *testing.T) {
	r := newRig(t)
	defer r.reg.Shutdown()
	_, err := client.New(r.reg).Open(t.Context(), agent.Open{Model: "nosuch"})
	if p := agent.ProblemOf(err); p == nil || p.Code != agent.ProblemModel {
		t.Errorf("opening: %v", err)
	}
	for m := range r.store.List(t.Context(), journal.Query{}) {
		t.Errorf("a session was left behind: %+v", m)
	}
}

func TestOneOwner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("done"))
		s := r.open(agent.Open{})
		other := *r
		other.start()
		_, err := client.New(other.reg).Open(t.Context(), agent.Open{Session: s.Info.ID})
		if p := agent.ProblemOf(err); p == nil || p.Code != agent.ProblemOwned || !errors.Is(err, journal.ErrOwned) {
			t.Errorf("opening a second time: %v", err)
		}
		// Who does not own the session reaches it through its inbox.
		if err := other.reg.Send(t.Context(), s.Info.ID, agent.Prompt{ID: "x", Text: "from outside"}); err != nil {
			t.Error(err)
		}
		settle()
		if log := r.log(s.Info.ID); !strings.Contains(log, "input.added from outside") || !strings.Contains(log, "turn.ended done") {
			t.Errorf("log:\n%s", log)
		}
		other.reg.Shutdown()
		r.reg.Shutdown()
	})
}

// A model that is asked something aside, and has no tools for it, calls one all the same.
func TestSideQuestionAnsweredWithCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("side", agent.Call{Tool: "sleep", Input: []byte(`"1s"`)}))
		defer r.reg.Shutdown()
		r.open(agent.Open{})
		a, err := r.reach.Ask(t.Context(), agent.Question{Purpose: "title", Messages: []agent.Message{agent.UserText("x")}})
		if err != nil || a.Message.Text() != "side" || len(a.Message.Calls()) != 1 || a.Message.Calls()[0].ID == "" {
			t.Fatalf("Ask: %+v, %v", a, err)
		}
	})
}

func TestSideCallsStayOutOfTheConversation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("side", call("9", "sleep", `"1s"`)), say("main")) // it was offered no tools
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		a, err := r.reach.Ask(t.Context(), agent.Question{Purpose: "title", System: "name it", Messages: []agent.Message{agent.UserText("x")}})
		if err != nil || a.Message.Text() != "side" {
			t.Fatalf("Ask: %+v, %v", a, err)
		}
		res, err := r.reach.Invoke(t.Context(), agent.Invocation{Origin: "test", Tool: "sleep", Input: []byte(`"1s"`)})
		if err != nil || res.Text != "slept 1s" {
			t.Fatalf("Invoke: %+v, %v", res, err)
		}
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		if got := r.model.asked[1].Messages; len(got) != 1 {
			t.Errorf("the conversation: %+v", got)
		}
		r.verify(s.Info.ID, 2)
	})
}

// verify replays the log and expects every request to be the same.
func (r *rig) verify(id string, requests int) {
	r.t.Helper()
	rep, err := replay.Verify(r.t.Context(), replay.Config{
		Session: id, Events: r.store.Read(r.t.Context(), id, 0), Blob: r.blob(id),
	})
	if err != nil || !rep.OK || rep.Requests != requests {
		r.t.Errorf("replay: %+v, %v, want %d requests", rep, err, requests)
	}
}

func TestReplayFindsTheFirstDifference(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"2s"`), call("2", "sleep", `"1s"`), call("3", "nosuch", `{}`)), say("done"))
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		r.send(s, agent.Prompt{Text: "more"})
		settle()
		r.verify(s.Info.ID, 2)
		rep, err := replay.Verify(t.Context(), replay.Config{
			Session: s.Info.ID, Blob: r.blob(s.Info.ID),
			Events: func(yield func(agent.Event, error) bool) {
				for e, err := range r.store.Read(t.Context(), s.Info.ID, 0) {
					if b, ok := e.Body.(agent.CallFinished); ok && b.Result.ID == "2" {
						b.Result.Text = "slept 3s"
						e.Body = b
					}
					if !yield(e, err) {
						return
					}
				}
			},
		})
		if err != nil || rep.OK || rep.Requests != 2 || !strings.Contains(rep.Problem, "hash") {
			t.Errorf("a changed result: %+v, %v", rep, err)
		}
	})
}

func TestThresholdsAreReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		at := func(n int) agent.Answer {
			a := say("", call("1", "sleep", `"1s"`))
			a.Usage = agent.Usage{Input: n}
			return a
		}
		r := newRig(t, at(79), at(80), at(90), at(95), at(96), say("done"))
		defer r.reg.Shutdown()
		r.model.window = 100
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		var got []float64
		for e := range r.store.Read(t.Context(), s.Info.ID, 0) {
			if b, ok := e.Body.(agent.ContextThreshold); ok {
				got = append(got, b.Threshold, b.Ratio)
			}
		}
		want, _ := json.Marshal([]float64{0.8, 0.8, 0.95, 0.95})
		if data, _ := json.Marshal(got); string(data) != string(want) {
			t.Errorf("thresholds and ratios %s, want %s", data, want)
		}
	})
}

// A turn that crashes again and again at the same place is given up.
func TestPoison(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hang := func(ctx context.Context) any { <-ctx.Done(); return context.Cause(ctx) }
		r := newRig(t, hang, hang, hang, hang, hang, say("never"))
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		id := s.Info.ID
		for range 5 {
			r.crash(id)
			s = r.open(agent.Open{Session: id})
			r.send(s, agent.Continue{})
		}
		defer r.reg.Shutdown()
		if log := r.log(id); !strings.HasSuffix(log, "turn.ended failed\nlog.sealed") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// What waits behind a turn that is given up is not in the conversation before who has a
// word on it was asked.
func TestPoisonAndWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hang := func(ctx context.Context) any { <-ctx.Done(); return context.Cause(ctx) }
		r := newRig(t, hang, hang, hang, hang, hang, say("done"))
		r.hooks = func(plug.Session) (h plug.Hooks) {
			h.Heard = func(_ context.Context, q agent.InputQueued) (string, *agent.InputDropped) {
				if strings.Contains(q.Text, "secret") {
					return "", &agent.InputDropped{Reason: "not that", By: "hook:test"}
				}
				return q.Text, nil
			}
			return h
		}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		r.send(s, agent.Prompt{Text: "the secret", Later: true})
		id := s.Info.ID
		for range 5 {
			r.crash(id)
			s = r.open(agent.Open{Session: id})
			r.send(s, agent.Continue{})
		}
		defer r.reg.Shutdown()
		r.send(s, agent.Prompt{Text: "on"})
		settle()
		log := r.log(id)
		if strings.Contains(log, "input.added the secret") || !strings.Contains(log, "input.dropped not that") || !strings.Contains(log, "input.added on") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// A log that cannot be written ends the session, and readers are told why.
func TestReadersLearnWhyASessionEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"1s"`)), say("done"))
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		r.tools["sleep"] = tool{"sleep", agent.Read, func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error) {
			_ = r.store.Close() // from here on nothing can be written
			return agent.OK(""), nil
		}}
		ended := make(chan error)
		go func() {
			var last error
			for _, err := range s.Events(t.Context(), 0) {
				last = err
			}
			ended <- last
		}()
		synctest.Wait()
		r.send(s, agent.Prompt{Text: "go"})
		if err := <-ended; !errors.Is(err, journal.ErrClosed) {
			t.Errorf("the last word was %v", err)
		}
	})
}

// An answer that comes before the resumed call waits for it is not lost.
func TestAnAnswerBeforeTheCallWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1s"`)), say("done"))
		r.allow = false
		s := r.open(agent.Open{Approver: true})
		r.send(s, agent.Prompt{Text: "go"})
		id := r.crash(s.Info.ID)
		s = r.open(agent.Open{Session: id, Approver: true})
		defer r.reg.Shutdown()
		var asked string
		for e := range r.store.Read(t.Context(), id, 0) {
			if a, ok := e.Body.(agent.ApprovalAsked); ok {
				asked = a.ID
			}
		}
		r.send(s, agent.Resolve{ID: asked, Decision: agent.Decision{Verdict: agent.Allow}})
		r.send(s, agent.Continue{})
		settle()
		if log := r.log(id); strings.Count(log, "approval.asked") != 1 || !strings.HasSuffix(log, "turn.ended done\nlog.sealed") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// A yes to a call is no yes to running it once more after a crash: that is asked
// each time anew.
func TestAYesIsNotForASecondRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1h"`)), say("done"))
		r.allow = false
		s := r.open(agent.Open{Approver: true})
		r.send(s, agent.Prompt{Text: "go"})
		id := s.Info.ID
		var asked []string
		for _, v := range []agent.Verdict{agent.Allow, agent.Allow, agent.Deny} {
			for e := range r.store.Read(t.Context(), id, 0) {
				if a, ok := e.Body.(agent.ApprovalAsked); ok && !slices.Contains(asked, a.ID) {
					asked = append(asked, a.ID)
				}
			}
			r.send(s, agent.Resolve{ID: asked[len(asked)-1], Decision: agent.Decision{Verdict: v}})
			if v == agent.Allow { // it runs now, and dies
				r.crash(id)
				s = r.open(agent.Open{Session: id, Approver: true})
				r.send(s, agent.Continue{})
			}
		}
		settle()
		defer r.reg.Shutdown()
		log := r.log(id)
		if len(asked) != 3 || strings.Count(log, "call.started") != 2 || !strings.Contains(log, "call.finished 1 E_TOOL_OUTCOME_UNKNOWN") {
			t.Errorf("asked %q; log:\n%s", asked, log)
		}
	})
}

// Input that was accepted is served after a crash, also when that came before
// its turn had begun.
func TestAcceptedInputIsServedAfterACrash(t *testing.T) {
	for _, tt := range []struct {
		name, behind string
		want         string
	}{
		{"before the turn", "input.added", "input.added go\nturn.started\nmodel.requested\nmodel.answered\nturn.ended done\nlog.sealed"},
		{
			"between two turns", "turn.ended",
			"turn.ended done\ninput.added later\nturn.started\nmodel.requested\nmodel.answered\nturn.ended done\nlog.sealed",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, say("", call("1", "sleep", `"1s"`)), say("done"), say("done"), say("done"), say("done"))
				s := r.open(agent.Open{})
				r.send(s, agent.Prompt{Text: "go"})
				r.send(s, agent.Prompt{Text: "later", Later: true})
				settle()
				id := r.crashBehind(s.Info.ID, tt.behind)
				s = r.open(agent.Open{Session: id})
				defer r.reg.Shutdown()
				if s.Info.Status != "interrupted" {
					t.Errorf("the session is %s", s.Info.Status)
				}
				r.model.mu.Lock()
				r.model.answers = append(r.model.answers[:len(r.model.asked):len(r.model.asked)], say("done"), say("done"))
				r.model.mu.Unlock()
				r.send(s, agent.Continue{})
				settle()
				log := strings.ReplaceAll(r.log(id), "session.opened\n", "")
				if !strings.HasSuffix(log, tt.want) {
					t.Errorf("log:\n%s", log)
				}
				if err := s.Send(t.Context(), agent.Continue{}); agent.ProblemOf(err) == nil {
					t.Errorf("going on with nothing: %v", err)
				}
			})
		})
	}
}

// Closing a session while a person is being asked ends neither the turn nor the
// question.
func TestAQuestionOutlivesTheSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1s"`), call("2", "sleep", `"1s"`)), say("done"))
		r.allow = false
		s := r.open(agent.Open{Approver: true})
		r.send(s, agent.Prompt{Text: "go"})
		id := s.Info.ID
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if log := r.log(id); !strings.HasSuffix(log, "approval.asked") {
			t.Errorf("log of the closed session:\n%s", log)
		}
		list, err := client.Query[agent.SessionList](t.Context(), client.New(r.reg), agent.ListSessions{})
		if err != nil || len(list.Sessions) != 1 || list.Sessions[0].Status != "waiting" {
			t.Errorf("list: %+v, %v", list, err)
		}
		r.allow = true
		s = r.open(agent.Open{Session: id, Approver: true})
		defer r.reg.Shutdown()
		r.send(s, agent.Continue{})
		settle()
		if log := r.log(id); strings.Count(log, "call.finished") != 2 || !strings.HasSuffix(log, "turn.ended done\nlog.sealed") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// A command that came by mail is taken once: "go on" does not start a turn that
// has failed since again and again.
func TestContinueByMailIsTakenOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, errors.New("down"), errors.New("down"), errors.New("down"), errors.New("down"))
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.send(s, agent.Continue{}) // into the inbox
		r.open(agent.Open{Session: s.Info.ID})
		defer r.reg.Shutdown()
		settle()
		if err := r.store.Post(t.Context(), s.Info.ID, "", journal.Msg{ID: "m", Kind: "change", Body: []byte(`{"title":"t"}`)}); err != nil {
			t.Fatal(err)
		}
		settle()
		if n := len(r.model.asked); n != 2 {
			t.Errorf("%d requests, want one for the prompt and one for the message; log:\n%s", n, r.log(s.Info.ID))
		}
	})
}

// A turn that is stopped before it could begin ends under its own ID, with
// figures of its own and not those of the turn before.
func TestATurnThatNeverBegan(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("one"))
		lanes := session.NewLanes(map[string]session.LaneConfig{session.LaneMain: {Turns: 1}})
		r.reg = session.New(session.Config{Store: r.store, Build: r.build, Lanes: lanes})
		defer r.reg.Shutdown()
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "first"})
		release, err := lanes.Acquire(t.Context(), session.LaneMain, "another")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		time.Sleep(time.Minute)
		r.send(s, agent.Prompt{Text: "second"})
		r.send(s, agent.Interrupt{})
		var ends []agent.TurnEnded
		for e := range r.store.Read(t.Context(), s.Info.ID, 0) {
			if b, ok := e.Body.(agent.TurnEnded); ok {
				ends = append(ends, b)
			}
		}
		if len(ends) != 2 || ends[1].Turn == ends[0].Turn {
			t.Fatalf("ends %+v", ends)
		}
		ends[1].Turn, ends[1].Cost = "", nil
		if want := (agent.TurnEnded{Reason: agent.EndInterrupted}); ends[1] != want {
			t.Errorf("end %+v, want %+v", ends[1], want)
		}
	})
}

// fullDisk is a store that has no room for snapshots, and counts them.
type fullDisk struct {
	journal.Store
	tried int
}

type fullLease struct {
	journal.Lease
	store *fullDisk
}

func (s *fullDisk) Acquire(ctx context.Context, id string, who journal.Owner) (journal.Lease, error) {
	l, err := s.Store.Acquire(ctx, id, who)
	return fullLease{l, s}, err
}

func (l fullLease) Snapshot(context.Context, int64, []byte) error {
	l.store.tried++
	return errors.New("no room")
}

// A snapshot that cannot be written is tried again with the next one, and not
// at every event.
func TestASnapshotThatFailsIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		store := &fullDisk{Store: r.store}
		r.store = store
		r.start()
		s := r.open(agent.Open{})
		for range 2200 {
			if err := s.Send(t.Context(), agent.Change{Title: "t"}); err != nil {
				t.Fatal(err)
			}
		}
		r.reg.Shutdown()
		if store.tried != 1 {
			t.Errorf("%d attempts, want 1", store.tried)
		}
	})
}
