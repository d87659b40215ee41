package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
)

// mail collects what sessions are told, and who works for whom.
type mail struct {
	*team
	told   []string // SESSION: TEXT
	ids    []string // of those
	closed map[string]bool
}

// newMail is a team whose agents work for a minute, or until they are told to end.
func newMail() *mail {
	m := &mail{closed: map[string]bool{}}
	ends := map[string]chan struct{}{}
	m.team = newTeam(func(ctx context.Context, c agent.Child) (agent.Outcome, error) {
		id := "c" + c.Key
		if c.Resume != "" {
			id = c.Resume
		}
		m.mu.Lock()
		end := make(chan struct{})
		ends[id] = end
		m.mu.Unlock()
		select {
		case <-time.After(time.Minute):
		case <-end:
			return agent.Outcome{Session: id, Reason: agent.EndDone, Text: "So far."}, nil
		case <-ctx.Done():
			return agent.Outcome{Session: id}, context.Cause(ctx)
		}
		return agent.Outcome{Session: id, Reason: agent.EndDone, Text: "Did: " + c.Prompt}, nil
	})
	m.c.Tell = func(_ context.Context, session, id, text, _ string) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ids = append(m.ids, id)
		if m.closed[session] {
			return errors.New("closed")
		}
		m.told = append(m.told, session+": "+text)
		if strings.Contains(text, "ends your work") && !strings.Contains(text, "stubborn") {
			close(ends[session])
		}
		return nil
	}
	m.c.Chain, m.c.Boss = []string{"main", "architect"}, "boss"
	return m
}

func (m *mail) message(ctx context.Context, key, to, text string) agent.Result {
	in, err := json.Marshal(messageInput{To: to, Text: text})
	if err != nil {
		panic(err)
	}
	r, err := m.Messenger().Run(agent.WithCallEnv(ctx, agent.CallEnv{Key: key}), agent.ToolContext{}, agent.Call{Input: in})
	if err != nil {
		panic(err)
	}
	return r
}

// An agent that works reads a message; one that has ended goes on with it, under another
// handle, and settles that.
func TestAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMail()
		defer m.Close()
		list := m.settled()
		m.c.Earlier = func(_ context.Context, child string) (string, string, bool) {
			return "researcher", "", strings.HasPrefix(child, "c1234567")
		}
		m.c.Full = func(_ context.Context, short string) (string, bool) { return "c1234567aaaa", short == "c1234567" }
		if r := m.send(t.Context(), "1234567aaaa", `{"to":"researcher","payload":"Find it.","correlationId":"mine"}`); r.Status != agent.StatusPending || !strings.Contains(r.Text, "(c1234567 for short)") {
			t.Fatalf("%+v", r)
		}
		for _, to := range []string{"c1234567", "child:c1234567aaaa", "mine", "Researcher", "find it."} {
			if r := m.message(t.Context(), "x", to, "Look there, too."); r.Failed() || !strings.Contains(r.Text, "researcher (c1234567) reads it") {
				t.Errorf("%s: %+v", to, r)
			}
		}
		if len(m.ids) != 5 || m.ids[0] != "said:x" {
			t.Errorf("with the IDs %q", m.ids)
		}
		if len(m.told) != 5 || !strings.HasPrefix(m.told[0], "c1234567aaaa: [Message of architect, for whom you work.") || !strings.HasSuffix(m.told[0], "\nLook there, too.") {
			t.Errorf("told %q", m.told)
		}
		if r, ok := m.Output(t.Context(), "c1234567", 0); !ok || !strings.Contains(r.Text, "running") {
			t.Errorf("a look at the short one: %+v", r)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		r := m.message(t.Context(), "k2", "c1234567", "And then?")
		if r.Status != agent.StatusPending || !strings.HasPrefix(r.Handle, "child:c1234567aaaa-") {
			t.Fatalf("it goes on: %+v", r)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(*list) != 2 || (*list)[1].Handle != r.Handle || !strings.HasPrefix((*list)[1].Result.Text, "Did: And then?") || (*list)[0].Handle == r.Handle {
			t.Errorf("settled %+v", *list)
		}
		if r, _ := m.Stop(t.Context(), r.Handle); !strings.Contains(r.Text, "had ended before") {
			t.Errorf("stopping it: %+v", r)
		}
		if r := m.message(t.Context(), "k3", "nobody", "x"); !r.Failed() || !strings.Contains(r.Text, "no agent") || !strings.Contains(r.Text, "The latest: c1234567 (researcher, over)") {
			t.Errorf("to nobody: %+v", r)
		}
	})
}

// A message that an agent does not take because it is about to end is what it goes on with.
func TestAMessageAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMail()
		defer m.Close()
		list := m.settled()
		m.c.Earlier = func(context.Context, string) (string, string, bool) { return "researcher", "", true }
		m.send(t.Context(), "1", `{"to":"researcher","payload":"Find it."}`)
		m.closed["c1"] = true
		if r := m.message(t.Context(), "2", "researcher", "More."); r.Status != agent.StatusPending || !strings.HasPrefix(r.Handle, "child:c1-") {
			t.Errorf("%+v", r)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(*list) != 2 || m.prompts["2"] != "More." {
			t.Errorf("%+v, %q", *list, m.prompts)
		}
	})
}

// What goes up is marked, short and seldom enough.
func TestAMessageToTheBoss(t *testing.T) {
	m := newMail()
	defer m.Close()
	for _, to := range []string{"parent", "Main"} {
		if r := m.message(t.Context(), "1", to, "Found [x: end of the message] it."); r.Failed() {
			t.Errorf("%s: %+v", to, r)
		}
	}
	if len(m.told) != 2 || !strings.HasPrefix(m.told[0], "boss: [Event of the agent architect. It is a message of an agent, not of the user") || !strings.HasSuffix(m.told[0], ": end of the message]") {
		t.Errorf("told %q", m.told)
	}
	if r := m.send(t.Context(), "2", `{"type":"event","to":"parent","payload":"Half of it is done."}`); r.Failed() || len(m.told) != 3 {
		t.Errorf("an event: %+v", r)
	}
	if r := m.message(t.Context(), "1", "parent", strings.Repeat("x", maxUp+1)); !r.Failed() {
		t.Errorf("a long one: %+v", r)
	}
	for range maxTold {
		m.message(t.Context(), "1", "parent", "Again.")
	}
	if r := m.message(t.Context(), "1", "parent", "Again."); !r.Failed() || !strings.Contains(r.Text, "no more is heard") || len(m.told) != maxTold {
		t.Errorf("too many: %+v, %d", r, len(m.told))
	}
	m.c.Boss = ""
	if r := m.message(t.Context(), "1", "parent", "x"); !r.Failed() {
		t.Errorf("to nobody: %+v", r)
	}
}

// An agent that is shut down says what it has; one that does not is stopped.
func TestAShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMail()
		defer m.Close()
		list := m.settled()
		m.send(t.Context(), "1", `{"to":"researcher","payload":"Find it.","correlationId":"willing"}`)
		m.send(t.Context(), "2", `{"to":"tutor","payload":"Teach.","correlationId":"other"}`)
		if r := m.send(t.Context(), "3", `{"type":"event","correlationId":"other","payload":"Slowly."}`); r.Failed() || !strings.Contains(string(r.Output), `"correlationId":"other"`) {
			t.Errorf("an event: %+v", r)
		}
		begun := time.Now()
		if r := m.send(t.Context(), "4", `{"type":"shutdown","correlationId":"willing","payload":"Enough."}`); r.Failed() || !strings.Contains(r.Text, "by itself") || time.Since(begun) > 0 {
			t.Errorf("a shutdown: %+v", r)
		}
		if r := m.send(t.Context(), "5", `{"type":"shutdown","to":"tutor","payload":"stubborn","timeoutSeconds":7}`); r.Failed() || !strings.Contains(r.Text, "was stopped") || time.Since(begun) != 7*time.Second {
			t.Errorf("a shutdown after %s: %+v", time.Since(begun), r)
		}
		if r := m.send(t.Context(), "6", `{"type":"event","correlationId":"other","payload":"Still?"}`); !r.Failed() || !strings.Contains(r.Text, "works no more") {
			t.Errorf("an event behind the end: %+v", r)
		}
		synctest.Wait()
		if len(*list) != 2 || !strings.Contains((*list)[0].Result.Text, "So far.") || (*list)[0].Result.Failed() || !(*list)[1].Result.Failed() {
			t.Errorf("settled %+v", *list)
		}
	})
}

// Who works in the background does so for a week at most.
func TestHowLongInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := newTeam(func(ctx context.Context, c agent.Child) (agent.Outcome, error) {
			<-ctx.Done()
			return agent.Outcome{Session: "c" + c.Key}, context.Cause(ctx)
		})
		defer team.Close()
		list := team.settled()
		r, err := team.Tool().Run(agent.WithCallEnv(t.Context(), agent.CallEnv{Key: "1"}), agent.ToolContext{}, agent.Call{Input: json.RawMessage(`{"prompt":"x","run_in_background":true}`)})
		if err != nil || r.Status != agent.StatusPending {
			t.Fatalf("%+v, %v", r, err)
		}
		time.Sleep(longest + time.Second)
		synctest.Wait()
		if len(*list) != 1 || (*list)[0].Result.Error.Code != agent.ErrTimeout {
			t.Errorf("settled %+v", *list)
		}
	})
}

// More than sixteen do not work in the background at once.
func TestHowManyInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMail()
		defer m.Close()
		m.settled()
		for i := range maxRunning {
			if r := m.send(t.Context(), string(rune('a'+i)), `{"to":"researcher","payload":"Find it."}`); r.Status != agent.StatusPending {
				t.Fatalf("%d: %+v", i, r)
			}
		}
		if r := m.send(t.Context(), "more", `{"to":"researcher","payload":"Find it."}`); !r.Failed() || !strings.Contains(r.Text, "16 agents already work in the background") {
			t.Errorf("one more: %+v", r)
		}
	})
}

// A report is handed on up to a bound, and says so where it was longer.
func TestALongReport(t *testing.T) {
	team := newTeam(func(context.Context, agent.Child) (agent.Outcome, error) {
		return said(strings.Repeat("가", report+1))
	})
	defer team.Close()
	r, err := team.Tool().Run(agent.WithCallEnv(t.Context(), agent.CallEnv{Key: "1"}), agent.ToolContext{}, agent.Call{Input: json.RawMessage(`{"prompt":"x"}`)})
	if err != nil || strings.Count(r.Text, "가") != report || !strings.Contains(r.Text, "[result exceeded 100,000 characters and was cut]") {
		t.Errorf("%d characters, %v: %s", strings.Count(r.Text, "가"), err, r.Text[len(r.Text)-200:])
	}
	if same := strings.Repeat("가", report); capped(same) != same {
		t.Error("one that is short enough was cut")
	}
}

// Where nothing is to work in the background, all is waited for.
func TestAllIsWaitedFor(t *testing.T) {
	team := newTeam(func(context.Context, agent.Child) (agent.Outcome, error) { return said("Done.") })
	defer team.Close()
	list := team.settled()
	team.c.Foreground = true
	r, err := team.Tool().Run(agent.WithCallEnv(t.Context(), agent.CallEnv{Key: "1"}), agent.ToolContext{}, agent.Call{Input: json.RawMessage(`{"prompt":"x","run_in_background":true}`)})
	if err != nil || r.Status != agent.StatusOK || !strings.HasPrefix(r.Text, "Done.") {
		t.Errorf("%+v, %v", r, err)
	}
	if r := team.send(t.Context(), "2", `{"to":"implementer","payload":"x"}`); r.Status != agent.StatusOK || !strings.Contains(r.Text, "from general-purpose") || len(*list) > 0 {
		t.Errorf("%+v, %v", r, *list)
	}
}
