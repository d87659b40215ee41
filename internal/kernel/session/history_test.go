package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// firstHalf shortens a conversation to its newest n messages.
func firstHalf(keep int) func(context.Context, plug.Compaction) (*agent.ContextCompacted, error) {
	return func(_ context.Context, c plug.Compaction) (*agent.ContextCompacted, error) {
		n := len(c.Messages) - keep
		if n < 1 {
			return nil, nil
		}
		return &agent.ContextCompacted{
			Strategy: "summarize", Messages: n, Through: c.Messages[n-1].Seq, Before: 100, After: 10,
			Head: []agent.Message{agent.UserText(fmt.Sprintf("[%d messages, %s]", n, c.Trigger))},
		}, nil
	}
}

// asked is the last request that the model got, a line a message.
func asked(m *script) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	for _, msg := range m.asked[len(m.asked)-1].Messages {
		line := string(msg.Role) + " " + msg.Text()
		for _, b := range msg.Blocks {
			if b.Result != nil {
				line += b.Result.Text
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func used(a agent.Answer, tokens int) agent.Answer {
	a.Usage = agent.Usage{Input: tokens}
	return a
}

func TestCompactWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, used(say("one"), 10), used(say("two"), 900), used(say("three"), 20), say("four"))
		r.model.window, r.compact = 1000, firstHalf(1)
		s := r.open(agent.Open{})
		for _, text := range []string{"a", "b", "c", "d"} {
			r.send(s, agent.Prompt{Text: text})
			settle()
		}
		const want = "user [4 messages, auto]\nuser c\nassistant three\nuser d"
		if got := asked(r.model); got != want {
			t.Errorf("the model was asked\n%s\nwant\n%s", got, want)
		}
		if n := strings.Count(r.log(s.Info.ID), "context.compacted"); n != 1 {
			t.Errorf("%d compactions", n)
		}
		r.reg.Shutdown()
	})
}

// A provider that refuses the length of a request is asked again with a shorter
// one, once.
func TestCompactOnOverflow(t *testing.T) {
	tooLong := &agent.ModelError{Class: agent.FailContext, Message: "too long"}
	for name, tt := range map[string]struct {
		answers []any
		want    string
	}{
		"then it fits":    {[]any{say("one"), tooLong, say("two")}, "done"},
		"and still not":   {[]any{say("one"), tooLong, tooLong}, "failed"},
		"nothing to gain": {[]any{tooLong}, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tt.answers...)
				r.compact = firstHalf(1)
				s := r.open(agent.Open{})
				for range len(tt.answers)/2 + 1 {
					r.send(s, agent.Prompt{Text: "go"})
					settle()
				}
				log := r.log(s.Info.ID)
				if !strings.Contains(log, "turn.ended "+tt.want) {
					t.Errorf("the log is\n%s", log)
				}
				if n := strings.Count(log, "context.compacted"); (n == 1) != (len(tt.answers) > 1) {
					t.Errorf("%d compactions", n)
				}
				r.reg.Shutdown()
			})
		})
	}
}

func TestCompactOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, say("one"), say("two"), say("three"), say("four"))
		hold := make(chan struct{})
		r.compact = func(ctx context.Context, c plug.Compaction) (*agent.ContextCompacted, error) {
			if c.Trigger == plug.TriggerManual {
				<-hold
			}
			return firstHalf(1)(ctx, c)
		}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "a"})
		settle()
		r.send(s, agent.Prompt{Text: "b"})
		settle()
		r.send(s, agent.Compact{Focus: "the goal"})
		if err := s.Send(t.Context(), agent.Compact{}); problemOf(err) != agent.ProblemBusy {
			t.Errorf("a second one: %v", err)
		}
		r.send(s, agent.Prompt{Text: "c"}) // waits
		close(hold)
		settle()
		const want = "user [3 messages, manual]\nassistant two\nuser c"
		if got := asked(r.model); got != want {
			t.Errorf("the model was asked\n%s\nwant\n%s", got, want)
		}
		r.send(s, agent.Restore{})
		r.send(s, agent.Prompt{Text: "d"})
		settle()
		if got, want := asked(r.model), "user a\nassistant one\nuser b\nassistant two\nuser c\nassistant three\nuser d"; got != want {
			t.Errorf("after it was taken back the model was asked\n%s\nwant\n%s", got, want)
		}
		if err := s.Send(t.Context(), agent.Restore{}); problemOf(err) != agent.ProblemWhole {
			t.Errorf("a second time: %v", err)
		}
		r.reg.Shutdown()
	})
}

// What is asked before a conversation is shortened may forbid that, which is noted
// once, or add to its focus; what is told afterwards has the event.
func TestCompactHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, used(say("one"), 900), used(say("two", agent.Call{ID: "c", Tool: "sleep", Input: []byte(`"1s"`)}), 900), used(say("three"), 900), say("four"))
		cut := firstHalf(1)
		r.model.window, r.compact = 1000, func(ctx context.Context, c plug.Compaction) (*agent.ContextCompacted, error) {
			more, err := c.Before(ctx, c.Trigger, c.Focus)
			if err != nil {
				return nil, err
			}
			done, err := cut(ctx, c)
			if done != nil {
				done.Strategy = more
			}
			return done, err
		}
		var told []string
		r.before = func(_ context.Context, trigger, focus string) (string, error) {
			if trigger == plug.TriggerAuto {
				return "", errors.New("not now")
			}
			return "keep " + focus, nil
		}
		r.after = func(_ context.Context, done agent.ContextCompacted) {
			told = append(told, done.Trigger+" "+done.Strategy)
		}
		s := r.open(agent.Open{})
		for _, text := range []string{"a", "b"} {
			r.send(s, agent.Prompt{Text: text})
			settle()
		}
		log := r.log(s.Info.ID)
		if strings.Count(log, "\nnote") != 1 || told != nil {
			t.Errorf("told %q; the log is\n%s", told, log)
		}
		r.send(s, agent.Compact{Focus: "it"})
		settle()
		if want := []string{"manual keep it"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		r.reg.Shutdown()
	})
}

// A compaction that fails leaves the conversation as it is, and says so.
func TestCompactFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, used(say("one"), 900), say("two"))
		r.model.window = 1000
		r.compact = func(context.Context, plug.Compaction) (*agent.ContextCompacted, error) {
			return nil, errors.New("no summary")
		}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "a"})
		settle()
		r.send(s, agent.Prompt{Text: "b"})
		settle()
		if got := asked(r.model); got != "user a\nassistant one\nuser b" {
			t.Errorf("the model was asked\n%s", got)
		}
		if log := r.log(s.Info.ID); !strings.Contains(log, "note") || strings.Count(log, "turn.ended done") != 2 {
			t.Errorf("the log is\n%s", log)
		}
		r.reg.Shutdown()
	})
}

func TestRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, say("one"), say("two", call("1", "write", `"1s"`)), say("three"), say("four"), say("five"))
		var files []agent.Rewind
		r.rewind = func(_ context.Context, w agent.Rewind) (agent.FilesRewound, error) {
			files = append(files, w)
			if w.Only != nil {
				return agent.FilesRewound{}, errors.New("no such file")
			}
			return agent.FilesRewound{To: "cp", Files: 2}, nil
		}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "a"})
		settle()
		var to int64
		r.each(s.Info.ID, func(e agent.Event) { to = e.Seq })
		r.send(s, agent.Prompt{Text: "b"})
		if err := s.Send(t.Context(), agent.Rewind{To: to, Conversation: true}); problemOf(err) != agent.ProblemBusy {
			t.Errorf("while a turn runs: %v", err)
		}
		settle()
		if err := s.Send(t.Context(), agent.Rewind{To: 1 << 40, Conversation: true}); problemOf(err) != agent.ProblemEvent {
			t.Errorf("to the future: %v", err)
		}
		if err := s.Send(t.Context(), agent.Rewind{To: to, Conversation: true, Files: true, Only: []string{"x"}}); err == nil {
			t.Error("a rewind whose files failed was accepted")
		}
		r.send(s, agent.Rewind{To: to, Conversation: true, Files: true})
		r.send(s, agent.Prompt{Text: "c"})
		settle()
		const want = "user a\nassistant one\nuser c"
		if got := asked(r.model); got != want {
			t.Errorf("the model was asked\n%s\nwant\n%s", got, want)
		}
		if len(files) != 2 || files[1].To != to {
			t.Errorf("files were asked for %+v", files)
		}
		r.reg.Shutdown()

		r.start() // and after a restart
		s = r.open(agent.Open{Session: s.Info.ID})
		r.send(s, agent.Prompt{Text: "d"})
		settle()
		if got := asked(r.model); got != want+"\nassistant four\nuser d" {
			t.Errorf("after a restart the model was asked\n%s", got)
		}
		r.reg.Shutdown()
	})
}

// A turn that a crash has cut short, or that waits for a person, keeps nobody from
// going back: it is over then.
func TestRewindOfATurnThatWasCutShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("one", call("1", "write", `"1s"`)), say("two"))
		defer func() { r.reg.Shutdown() }()
		r.allow = false
		s := r.open(agent.Open{Approver: true})
		r.send(s, agent.Prompt{Text: "a"})
		settle()
		id := r.crash(s.Info.ID)
		s = r.open(agent.Open{Session: id, Edit: true})
		r.send(s, agent.Rewind{To: 1, Conversation: true})
		if log := r.log(id); !strings.HasSuffix(log, "turn.ended interrupted\nconversation.rewound") {
			t.Errorf("the log is\n%s", log)
		}
		if err := s.Send(t.Context(), agent.Continue{}); problemOf(err) != agent.ProblemOver {
			t.Errorf("going on with it: %v", err)
		}
		r.send(s, agent.Prompt{Text: "b"})
		settle()
		if got, want := asked(r.model), "user b"; got != want {
			t.Errorf("the model was asked\n%s\nwant\n%s", got, want)
		}
	})
}

func TestForkAndTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, say("one"), say("two"), say("three"))
		s := r.open(agent.Open{Title: "mine"})
		r.send(s, agent.Prompt{Text: "a"})
		settle()
		var at int64
		r.each(s.Info.ID, func(e agent.Event) { at = e.Seq })
		r.send(s, agent.Prompt{Text: "b"})
		settle()
		tags, yes := []string{"x"}, true
		r.send(s, agent.Change{Tags: &tags, Pinned: &yes})
		f := r.open(agent.Open{Fork: s.Info.ID, At: at})
		if f.Info.ID == s.Info.ID {
			t.Fatal("it is the same session")
		}
		r.send(f, agent.Prompt{Text: "c"})
		settle()
		if got := asked(r.model); got != "user a\nassistant one\nuser c" {
			t.Errorf("the fork asked\n%s", got)
		}
		all := r.open(agent.Open{Fork: s.Info.ID})
		infos := map[string]agent.SessionInfo{}
		got, err := r.reg.Query(t.Context(), agent.ListSessions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range got.(agent.SessionList).Sessions {
			infos[i.ID] = i
		}
		if i := infos[f.Info.ID]; strings.Join(i.Tags, " ") != "forked" || i.Pinned || i.Title != "mine" {
			t.Errorf("the fork is %+v", i)
		}
		if i := infos[all.Info.ID]; strings.Join(i.Tags, " ") != "x forked" || !i.Pinned {
			t.Errorf("the fork of all is %+v", i)
		}
		if i := infos[s.Info.ID]; strings.Join(i.Tags, " ") != "x" || !i.Pinned {
			t.Errorf("the original is %+v", i)
		}
		if _, err := r.reg.Open(t.Context(), agent.Open{Fork: "nosuch"}); problemOf(err) != agent.ProblemMissing {
			t.Errorf("a fork of nothing: %v", err)
		}
		r.reg.Shutdown()
	})
}

func problemOf(err error) agent.ProblemCode {
	if p := agent.ProblemOf(err); p != nil {
		return p.Code
	}
	return ""
}

// each calls f with the events of a session.
func (r *rig) each(id string, f func(agent.Event)) {
	r.t.Helper()
	for e, err := range r.store.Read(context.Background(), id, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		f(e)
	}
}
