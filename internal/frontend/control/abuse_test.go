package control_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/client"
	"dure/client/protocol"
	"dure/internal/frontend/control"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

// A line that is longer than a message may be is refused, and what follows it is read.
func TestGiantLines(t *testing.T) {
	t.Parallel()
	r := newRig(t, script.Reply{Text: "Hello."})
	h := r.connect()
	giant := bytes.Repeat([]byte("x"), 1<<20)
	for range 3 {
		if _, err := io.WriteString(h.in, `{"type":"UserMessage","id":"g","payload":{"text":"`); err != nil {
			t.Fatal(err)
		}
		for range 12 {
			if _, err := h.in.Write(giant); err != nil {
				t.Fatal(err)
			}
		}
		h.raw(`"}}`)
		if e, m := next[protocol.ErrorData](h, protocol.TypeError); e.Code != protocol.CodeTooLong || m.ID != "" {
			t.Errorf("%s %+v", m.ID, e)
		}
	}
	h.begin(protocol.InitializePayload{})
	h.send(protocol.TypeUserMessage, "m", "", protocol.UserMessagePayload{Text: strings.Repeat("y ", 100<<10)})
	if res, _ := next[protocol.SessionResultData](h, protocol.TypeSessionResult); res.Status != "done" {
		t.Errorf("%+v", res)
	}
}

// 10,000 requests of a host that reads none of the answers before it has sent all of them:
// each is answered, by its ID, and once.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t, script.Reply{Text: "Hello."})
	h := r.connect()
	h.begin(protocol.InitializePayload{Open: &protocol.OpenSession{}})
	const n = 10_000
	types := []protocol.Type{protocol.TypeInterrupt, protocol.TypeGetContextUsage, "Dance", protocol.TypeCanUseToolResponse, protocol.TypeRewindFiles}
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for _, i := range order {
		h.raw(fmt.Sprintf(`{"id":"r%d","type":"%s","payload":{"behavior":"deny"}}`, i, types[i%len(types)]))
	}
	h.send(protocol.TypeTerminate, "bye", "", nil)
	h.replied("bye")
	<-h.done
	answers := map[string]int{}
	for _, m := range h.sent() {
		if strings.HasPrefix(m.ID, "r") {
			answers[m.ID]++
		}
	}
	for i := range n {
		if got := answers[fmt.Sprint("r", i)]; got != 1 {
			t.Fatalf("r%d was answered %d times", i, got)
		}
	}
}

// An ID that is open is refused to another request, and free when it is answered.
func TestDuplicates(t *testing.T) {
	r := newRig(t, script.Reply{Text: strings.Repeat("On and on. ", 400), DelayMS: 20})
	h := r.connect()
	h.begin(protocol.InitializePayload{})
	h.send(protocol.TypeUserMessage, "m", "", protocol.UserMessagePayload{Text: "Talk"})
	next[protocol.TokenData](h, protocol.TypeAssistantToken)
	h.send(protocol.TypeInterrupt, "m", "", nil)
	if e := h.refused("m"); e.Code != protocol.CodeDuplicateID {
		t.Errorf("%+v", e)
	}
	h.send(protocol.TypeInterrupt, "i", "", nil)
	h.replied("i")
	if res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult); m.ID != "m" || res.Status != "interrupted" {
		t.Errorf("%s %+v", m.ID, res)
	}
	h.send(protocol.TypeInterrupt, "m", "", nil)
	if m := h.answer("m"); m.Type == protocol.TypeSessionResult { // that was the turn
		h.replied("m")
	}
}

// A host whose output is closed is gone, whatever runs; one whose input is closed as well.
func TestHalfClosed(t *testing.T) {
	r := newRig(t, script.Reply{Text: strings.Repeat("On and on. ", 4000), DelayMS: 5})
	h := r.connect()
	h.begin(protocol.InitializePayload{})
	h.send(protocol.TypeUserMessage, "m", "", protocol.UserMessagePayload{Text: "Talk"})
	next[protocol.TokenData](h, protocol.TypeAssistantToken)
	_ = h.out.Close()
	select {
	case <-h.done:
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	if h.err != nil {
		t.Error(h.err)
	}
}

// A signal ends all of it, also while a turn runs and nobody reads.
func TestSignal(t *testing.T) {
	t.Parallel()
	r := newRig(t, script.Reply{Text: strings.Repeat("On and on. ", 4000), DelayMS: 5})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	defer outR.Close()
	defer inW.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- control.Serve(ctx, r.cfg, control.NewLines(inR, outW)) }()
	if _, err := io.WriteString(inW, `{"type":"Initialize","id":"1"}`+"\n"+`{"type":"UserMessage","id":"2","payload":{"text":"Talk"}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for len(r.model.Requests()) == 0 {
		synchronously(t)
	}
	why := errors.New("a signal came")
	cancel(why)
	time.AfterFunc(100*time.Millisecond, func() { _ = outR.Close() }) // as the system does with a program's end
	select {
	case err := <-done:
		if !errors.Is(err, why) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	_ = inR.Close()
}

// synchronously lets others go on.
func synchronously(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(5 * time.Millisecond):
	case <-t.Context().Done():
		t.Fatal("it did not come")
	}
}

// A host that does not read costs no more than the bounds say, and misses nothing but live
// messages when it reads again.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	var replies []script.Reply
	for i := range 22 {
		replies = append(replies, script.Reply{Text: fmt.Sprint(i, " ", strings.Repeat("word ", 12<<10)), Chunk: 16384, Calls: []script.Call{{Tool: "Glob", Input: []byte(fmt.Sprintf(`{"pattern":"*.%d"}`, i))}}})
	}
	r := newRig(t, append(replies, script.Reply{Text: "Done."})...)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- control.Serve(t.Context(), r.cfg, control.NewLines(inR, outW))
		_ = outW.Close()
	}()
	if _, err := io.WriteString(inW, `{"type":"Initialize","id":"1","payload":{"no_tokens":true}}`+"\n"+`{"type":"UserMessage","id":"2","payload":{"text":"Look"}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for len(r.model.Requests()) < 22 { // the session does not wait for the host
		synchronously(t)
	}
	var said []string
	session, last := "", int64(0)
	for in := protocol.NewReader(outR, 0); last == 0; {
		line, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		m, err := protocol.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		switch m.Type {
		case protocol.TypeAssistantMessage:
			p, err := protocol.Payload[protocol.AssistantMessageData](m)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, p.Text)
		case protocol.TypeSessionResult:
			p, err := protocol.Payload[protocol.SessionResultData](m)
			if err != nil || m.ID != "2" {
				t.Fatal(m.ID, err)
			}
			session, last = m.Session, p.Seq
		}
	}
	var logged []string
	for e, err := range r.share.Attach(session).Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(agent.ModelAnswered); ok && b.Purpose == "" {
			logged = append(logged, b.Said())
		}
		if e.Seq == last {
			break
		}
	}
	if len(said) < 10 || !slices.Equal(said, logged) {
		t.Errorf("%d answers came of %d", len(said), len(logged))
	}
	rest := make(chan error, 1) // a host that reads no more would be waited for
	go func() { _, err := io.Copy(io.Discard, outR); rest <- err }()
	_ = inW.Close()
	if err := errors.Join(<-done, <-rest); err != nil {
		t.Error(err)
	}
	_ = inR.Close()
}

// FuzzServe has a host send whatever bytes: each line is answered with a message, or with
// none, and the connection ends when the input has ended.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		`{"type":"Initialize","id":"1"}` + "\n" + `{"type":"UserMessage","id":"2","payload":{"text":"x"}}` + "\n" + `{"type":"Terminate","id":"3"}`,
		`{"type":"Initialize","id":"1","payload":{"open":{"new":"a"}}}` + "\n" + `{"type":"Interrupt","id":"1","session":"a"}` + "\n" + `{"type":"Terminate","id":"3","session":"a"}`,
		`{"type":"CanUseToolResponse","id":"` + strings.Repeat("x", 200) + `"}`, "\xff\x00\n\n{}", `{"type":"Initialize","id":"1","payload":{"hooks":[{}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		still := &still{all: map[string]chan struct{}{}}
		var out bytes.Buffer
		if err := control.Serve(t.Context(), still.config(), control.NewLines(bytes.NewReader(data), &out)); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if _, err := protocol.Decode(line); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
	})
}

// still are sessions in which nothing happens but what the test has happen.
type still struct {
	mu     sync.Mutex
	all    map[string]chan struct{} // closed with the session; guarded by mu
	events []agent.Event            // of each; guarded by mu
	sent   []agent.Command          // guarded by mu
}

func (s *still) config() control.Config {
	return control.Config{
		Version: "test", Logger: slog.New(slog.DiscardHandler), Text: text.For("en"), Own: true, Lasting: false,
		Start: func(context.Context, control.Begin) (control.Program, error) {
			return control.Program{Client: client.New(s), Workdir: "/", Text: text.For("en")}, nil
		},
	}
}

func (s *still) Open(_ context.Context, o agent.Open) (agent.SessionInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := o.New + o.Session
	if id == "" {
		id = fmt.Sprint("s", len(s.all))
	}
	if s.all[id] != nil {
		return agent.SessionInfo{}, &agent.Problem{Code: agent.ProblemOwned, Message: "it is open"}
	}
	s.all[id] = make(chan struct{})
	return agent.SessionInfo{ID: id}, nil
}

func (s *still) Send(_ context.Context, _ string, c agent.Command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, c)
	return nil
}

func (s *still) Events(ctx context.Context, id string, _ int64) iter.Seq2[agent.Event, error] {
	s.mu.Lock()
	over, events := s.all[id], s.events
	s.mu.Unlock()
	return func(yield func(agent.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if over == nil { // closed before somebody read
			return
		}
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
}

func (s *still) Query(context.Context, agent.Query) (any, error) {
	return nil, &agent.Problem{Code: agent.ProblemMissing, Message: "there is nothing"}
}

func (s *still) Close(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if over := s.all[id]; over != nil {
		close(over)
		delete(s.all, id)
	}
	return nil
}

// The host's word is waited for 30 seconds unless it has said otherwise, whether or not it
// reads, and then the call is denied.
func TestThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &still{all: map[string]chan struct{}{}, events: []agent.Event{{Seq: 1, Body: agent.ApprovalAsked{ID: "ap", Proposal: agent.Proposal{Call: agent.Call{ID: "c", Tool: "t", Input: []byte("{}")}}}}}}
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- control.Serve(t.Context(), s.config(), control.NewLines(inR, outW)) }()
		if _, err := io.WriteString(inW, `{"type":"Initialize","id":"1","payload":{"can_use_tool":true,"open":{}}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		answers := func() []agent.Command {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			return append([]agent.Command(nil), s.sent...)
		}
		time.Sleep(30*time.Second - time.Millisecond)
		if got := answers(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Millisecond)
		got := answers()
		if len(got) != 1 {
			t.Fatalf("%+v", got)
		}
		no, ok := got[0].(agent.Resolve)
		if !ok || no.ID != "ap" || no.Decision.Verdict != agent.Deny || no.Decision.Code != agent.ErrApprovalTimeout || !strings.Contains(no.Decision.Reason, "30s") {
			t.Errorf("%+v", got)
		}
		_ = outR.Close()
		_ = inW.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A call that is put aside ends what the host waits for, with what the turn has come to so
// far; when the turn goes on, its result is that of all of it.
func TestPutAside(t *testing.T) {
	dime := agent.Money(100_000_000)
	answer := func(text string) agent.Body {
		return agent.ModelAnswered{Answer: agent.Answer{Message: agent.Message{Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}, Usage: agent.Usage{Output: 3}}, Cost: &dime}
	}
	s := &still{all: map[string]chan struct{}{}}
	for i, b := range []agent.Body{
		agent.TurnStarted{Turn: "t"},
		answer("One."),
		agent.CallDecided{Proposal: agent.Proposal{Call: agent.Call{ID: "no", Tool: "t"}}, Decision: agent.Decision{Verdict: agent.Deny, By: "rule", Reason: "never"}},
		agent.CallDeferred{Turn: "t", Step: 1, Call: agent.Call{ID: "c", Tool: "t"}, Reason: "later"},
		agent.TurnStarted{Turn: "t", Attempt: 1},
		answer("Two."),
		agent.TurnEnded{Turn: "t", Reason: agent.EndDone, Steps: 2, Usage: agent.Usage{Output: 6}},
		agent.TurnStarted{Turn: "u"},
		agent.TurnEnded{Turn: "u", Reason: agent.EndFailed, Error: "it broke", Fail: agent.FailContext},
	} {
		s.events = append(s.events, agent.Event{Seq: int64(i + 1), Body: b})
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- control.Serve(t.Context(), s.config(), control.NewLines(inR, outW))
		_ = outW.Close()
	}()
	if _, err := io.WriteString(inW, `{"type":"Initialize","id":"1","payload":{"open":{}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	var got []protocol.SessionResultData
	for in := protocol.NewReader(outR, 0); len(got) < 3; {
		line, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if m, err := protocol.Decode(line); err != nil || m.Type != protocol.TypeSessionResult {
			continue
		} else if p, err := protocol.Payload[protocol.SessionResultData](m); err == nil {
			got = append(got, p)
		}
	}
	_ = outR.Close()
	_ = inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	first, second, third := got[0], got[1], got[2]
	if first.Status != "deferred" || first.Error != "later" || first.Text != "One." || first.Usage.Output != 3 || first.Cost == nil || *first.Cost != dime.Dollars() || first.Steps != 1 || len(first.Denials) != 1 || first.Denials[0].By != "rule" {
		t.Errorf("%+v", first)
	}
	if second.Status != "done" || second.Text != "Two." || second.Usage.Output != 6 || second.Turns != 1 || len(second.Denials) != 1 {
		t.Errorf("%+v", second)
	}
	if third.Status != "failed" || third.Text != "" || third.Error != "it broke" || third.Code != string(agent.FailContext) || third.Turns != 2 || third.Denials != nil {
		t.Errorf("%+v", third)
	}
}

// At the end, a host is waited for as long as it reads, however slowly.
func TestReadsToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &still{all: map[string]chan struct{}{}}
		for i := range 9 {
			s.events = append(s.events, agent.Event{Seq: int64(i + 1), Body: agent.Note{Text: "note"}})
		}
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- control.Serve(t.Context(), s.config(), control.NewLines(inR, outW))
			_ = outW.Close()
		}()
		if _, err := io.WriteString(inW, `{"type":"Initialize","id":"1","payload":{"open":{}}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_ = inW.Close()
		n := 0
		for in := protocol.NewReader(outR, 0); ; n++ {
			if _, err := in.Next(); err != nil {
				break
			}
			time.Sleep(20 * time.Second)
		}
		if n != 10 {
			t.Errorf("%d messages came", n)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
