package transcript_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/state/transcript"
)

func fold(bodies ...agent.Body) *transcript.State {
	s := transcript.New()
	for i, b := range bodies {
		s.Apply(agent.Event{Seq: int64(i) + 1, Time: time.Unix(int64(i), 0), Body: b})
	}
	return s
}

// shape is a conversation, a line a message: its role, its texts, calls and
// results.
func shape(s *transcript.State) string {
	msgs, hashes := s.Conversation()
	if len(msgs) != len(hashes) {
		return "messages and hashes differ in number"
	}
	var b strings.Builder
	for _, m := range msgs {
		b.WriteString(string(m.Role))
		for _, bl := range m.Blocks {
			switch {
			case bl.Call != nil:
				b.WriteString(" call:" + bl.Call.ID)
			case bl.Result != nil:
				b.WriteString(" " + bl.Result.ID + "=" + string(bl.Result.Status))
			default:
				b.WriteString(" " + bl.Text)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func answer(step int, text string, calls ...string) agent.ModelAnswered {
	a := agent.ModelAnswered{Step: step}
	a.Message.Role = agent.Assistant
	if text != "" {
		a.Message.Blocks = append(a.Message.Blocks, agent.Block{Type: agent.TextBlock, Text: text})
	}
	for _, id := range calls {
		a.Message.Blocks = append(a.Message.Blocks, agent.Block{Type: agent.CallBlock, Call: &agent.Call{ID: id, Tool: "t"}})
	}
	return a
}

func finished(id string) agent.CallFinished {
	r := agent.OK("r")
	r.ID = id
	return agent.CallFinished{Result: r}
}

func TestConversation(t *testing.T) {
	in := func(text string) agent.InputAdded { return agent.InputAdded{Text: text} }
	for _, tt := range []struct {
		name   string
		events []agent.Body
		want   string
	}{
		{"nothing", nil, ""},
		{
			"results stand in call order",
			[]agent.Body{in("go"), answer(1, "", "1", "2"), finished("2"), finished("1"), answer(2, "done")},
			"user go\nassistant call:1 call:2\nuser 1=ok 2=ok\nassistant done\n",
		},
		{
			"open calls are answered",
			[]agent.Body{in("go"), answer(1, "x", "1", "2"), finished("2")},
			"user go\nassistant x call:1 call:2\nuser 1=error 2=ok\n",
		},
		{
			"input behind open calls",
			[]agent.Body{in("go"), answer(1, "", "1"), in("more")},
			"user go\nassistant call:1\nuser 1=error\nuser more\n",
		},
		{
			"the first result counts",
			[]agent.Body{in("go"), answer(1, "", "1"), finished("1"), agent.CallFinished{Result: agent.Result{ID: "1", Status: agent.StatusError}}},
			"user go\nassistant call:1\nuser 1=ok\n",
		},
		{"results without a call", []agent.Body{in("go"), finished("9"), answer(1, "done")}, "user go\nassistant done\n"},
		{"an answer without anything", []agent.Body{in("go"), answer(1, "")}, "user go\n"},
		{"side answers", []agent.Body{in("go"), agent.ModelAnswered{Purpose: "title", Answer: answer(1, "side").Answer}}, "user go\n"},
		{"queued input waits", []agent.Body{in("go"), agent.InputQueued{Input: "q", Text: "later"}}, "user go\n"},
		{"live events", []agent.Body{in("go"), agent.Fragment{Text: "x"}}, "user go\n"},
		{"kinds from the future", []agent.Body{in("go"), agent.Unknown{Name: "new"}}, "user go\n"},
	} {
		if got := shape(fold(tt.events...)); got != tt.want {
			t.Errorf("%s:\n%swant:\n%s", tt.name, got, tt.want)
		}
	}
}

// A state that was stored and read again goes on as if it had not been.
func TestSnapshotIsTheFold(t *testing.T) {
	price := agent.Money(5)
	a := answer(1, "x", "1", "2")
	a.Usage, a.Cost = agent.Usage{Input: 10, Output: 2}, &price
	events := []agent.Body{
		agent.SessionOpened{Session: "s", Workdir: "/w", Model: "m", Mode: agent.ModeDefault},
		agent.InputAdded{Input: "1", Text: "do something\nplease"},
		agent.TurnStarted{Turn: "t"},
		agent.ModelRequested{Turn: "t", Step: 1},
		a,
		agent.CallDecided{Proposal: agent.Proposal{Call: agent.Call{ID: "1", Tool: "t", Input: json.RawMessage(`{}`)}}, Key: "k"},
		agent.CallStarted{ID: "1", Key: "k"},
		agent.CallSpawned{ID: "1", Process: agent.Process{PID: 5}},
		agent.ApprovalAsked{ID: "ap", Proposal: agent.Proposal{Call: agent.Call{ID: "2", Input: json.RawMessage(`{}`)}}},
		agent.InputQueued{Input: "2", Text: "more"},
		agent.ChildOpened{Child: "c", Key: "k"},
		agent.CallFinished{Result: agent.Result{ID: "1", Status: agent.StatusOK, Files: []agent.FileState{{Path: "/w/a", SHA256: "x"}}}},
		agent.ApprovalResolved{ID: "ap", Decision: agent.Decision{Verdict: agent.Allow}, Remember: "session"},
		agent.CallFinished{Result: agent.Result{ID: "2", Status: agent.StatusOK}},
		agent.ChildEnded{Child: "c"},
		agent.InputAdded{Input: "2", Text: "more"},
		answer(2, "done"),
		agent.TurnEnded{Turn: "t", Reason: agent.EndDone},
	}
	want, err := fold(events...).Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range events {
		data, err := fold(events[:cut]...).Encode(0)
		if err != nil {
			t.Fatal(err)
		}
		s, err := transcript.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range events[cut:] {
			s.Apply(agent.Event{Seq: int64(cut+i) + 1, Time: time.Unix(int64(cut+i), 0), Body: b})
		}
		got, err := s.Encode(0)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Fatalf("cut behind event %d (%s):\n got %s\nwant %s", cut, events[max(cut-1, 0)].Kind(), got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	price := agent.Money(7)
	priced := answer(1, "x")
	priced.Cost, priced.Usage = &price, agent.Usage{Input: 1}
	s := fold(agent.SessionOpened{Session: "s", Workdir: "/w", Model: "m"}, agent.InputAdded{Text: strings.Repeat("가", 60)},
		agent.TurnStarted{Turn: "t"}, priced)
	got := s.Info()
	want := agent.SessionInfo{
		ID: "s", Title: strings.Repeat("가", 40), Workdir: "/w", Model: "m", Status: "interrupted", Turns: 1, Messages: 2, Head: 4,
		Created: "1970-01-01T00:00:00Z", Updated: "1970-01-01T00:00:03Z", Usage: agent.Usage{Input: 1}, Cost: &price,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	s.Apply(agent.Event{Seq: 5, Body: answer(2, "y")})
	if c := s.Info().Cost; c != nil {
		t.Errorf("the cost is %v with an answer whose price is unknown", c)
	}
}

// Requests are named by everything that is in them.
func TestRequestHash(t *testing.T) {
	base := agent.ModelRequested{Model: "m", System: "a", Tools: "b"}
	msgs := transcript.Hashes([]agent.Message{agent.UserText("x"), agent.UserText("y")})
	seen := map[string]string{transcript.RequestHash(base, msgs): "base"}
	for name, change := range map[string]func(*agent.ModelRequested, *[][]byte){
		"model":   func(r *agent.ModelRequested, _ *[][]byte) { r.Model = "n" },
		"system":  func(r *agent.ModelRequested, _ *[][]byte) { r.System = "n" },
		"tools":   func(r *agent.ModelRequested, _ *[][]byte) { r.Tools = "n" },
		"tail":    func(r *agent.ModelRequested, _ *[][]byte) { r.Tail = "n" },
		"params":  func(r *agent.ModelRequested, _ *[][]byte) { r.Params.NoTools = true },
		"purpose": func(r *agent.ModelRequested, _ *[][]byte) { r.Purpose = "n" },
		"order":   func(_ *agent.ModelRequested, m *[][]byte) { *m = [][]byte{msgs[1], msgs[0]} },
		"fewer":   func(_ *agent.ModelRequested, m *[][]byte) { *m = msgs[:1] },
	} {
		r, m := base, msgs
		change(&r, &m)
		h := transcript.RequestHash(r, m)
		if other, ok := seen[h]; ok {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[h] = name
	}
	again := base
	again.Turn, again.Step, again.Attempt = "t", 4, 2
	if transcript.RequestHash(again, msgs) != transcript.RequestHash(base, msgs) {
		t.Error("another attempt is another request")
	}
}

func BenchmarkApply(b *testing.B) {
	s := fold(agent.InputAdded{Text: "go"})
	b.ReportAllocs()
	n := int64(1)
	for b.Loop() {
		for _, body := range []agent.Body{answer(1, "text", "1"), agent.CallStarted{ID: "1"}, finished("1")} {
			n++
			s.Apply(agent.Event{Seq: n, Body: body})
		}
	}
}

// Only a yes is remembered: a no for the session must not come back as a grant.
func TestANoIsNoGrant(t *testing.T) {
	for verdict, want := range map[agent.Verdict]int{agent.Allow: 1, agent.Deny: 0, agent.Pass: 0} {
		s := fold(
			agent.ApprovalAsked{ID: "ap", Proposal: agent.Proposal{Call: agent.Call{ID: "1", Tool: "t"}}},
			agent.ApprovalResolved{ID: "ap", Decision: agent.Decision{Verdict: verdict}, Remember: "session"},
		)
		if len(s.Grants) != want {
			t.Errorf("%q for the session: %d grants, want %d", verdict, len(s.Grants), want)
		}
	}
}

// What is no UTF-8 is written into the log as a replacement character, and the
// hash of the message is the same before and after.
func TestHashesOutliveTheLog(t *testing.T) {
	body := agent.InputAdded{Text: "caf\xe9 \ufffd \\ufffd <b>"}
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	var read agent.InputAdded
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	_, live := fold(body).Conversation()
	_, again := fold(read).Conversation()
	if !reflect.DeepEqual(live, again) {
		t.Errorf("hash %x before, %x after", live, again)
	}
}
