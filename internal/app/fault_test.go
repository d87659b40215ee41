package app_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// quick are limits with which a stall is over soon. Nothing shorter is accepted.
const quick = `{"limits":{"idle":"1s","ping":"1s"}}`

// once are limits with which nothing is tried again.
const once = `{"limits":{"idle":"1s","ping":"1s","retries":1}}`

// task is a conversation of two answers: the first shows text and calls a tool,
// the second ends the turn. The faults befall the first.
func task(faults ...script.Fault) script.Script {
	call := script.Call{Tool: "Write", Input: input(fields{"file_path": "made.txt", "content": "made\n"})}
	return script.Script{ByStep: true, Replies: []script.Reply{
		{Text: "Now I make the file that you have asked for.", Calls: []script.Call{call}, Chunk: 4, Faults: faults},
		{Text: "The file is there, and nothing else was touched.", Chunk: 4},
	}}
}

// concurrently runs subtests beside each other: they wait, and need no processor.
func concurrently[T any](t *testing.T, tests []T, name func(T) string, run func(*testing.T, T)) {
	var wg sync.WaitGroup
	for _, tt := range tests {
		wg.Go(func() { t.Run(name(tt), func(t *testing.T) { run(t, tt) }) })
	}
	wg.Wait()
}

// Whatever goes wrong with one attempt, the next one finishes the task: the call
// runs once, and no text stands twice on the screen.
func TestFaultsAreOutlived(t *testing.T) {
	t.Parallel()
	type fault struct {
		name  string
		class agent.FailureClass // of the attempt that failed; "" = none did
		fault script.Fault
	}
	tests := []fault{
		{"rate limit", agent.FailRate, script.Fault{Kind: script.Status, Status: 429, RetryAfter: "1"}},
		{"rate limit without advice", agent.FailRate, script.Fault{Kind: script.Status, Status: 429}},
		{"overloaded", agent.FailServer, script.Fault{Kind: script.Status, Status: 529}},
		{"server error", agent.FailServer, script.Fault{Kind: script.Status, Status: 500}},
		{"gateway with a page", agent.FailServer, script.Fault{Kind: script.HTML, Status: 502}},
		{"cut before anything", agent.FailServer, script.Fault{Kind: script.Cut}},
		{"cut behind the start", agent.FailServer, script.Fault{Kind: script.Cut, After: 1}},
		{"cut in text", agent.FailServer, script.Fault{Kind: script.Cut, After: 8}},
		{"cut between blocks", agent.FailServer, script.Fault{Kind: script.Cut, After: 15}},
		{"cut in a call", agent.FailServer, script.Fault{Kind: script.Cut, After: 20}},
		{"cut in a line", agent.FailServer, script.Fault{Kind: script.Cut, Bytes: 777}},
		{"cut in the headers of a line", agent.FailServer, script.Fault{Kind: script.Cut, Bytes: 3}},
		{"ended before anything", agent.FailServer, script.Fault{Kind: script.Cut, Clean: true}},
		{"ended in text", agent.FailServer, script.Fault{Kind: script.Cut, After: 8, Clean: true}},
		{"ended in a call", agent.FailServer, script.Fault{Kind: script.Cut, After: 22, Clean: true}},
		{"ended in a line", agent.FailServer, script.Fault{Kind: script.Cut, Bytes: 1500, Clean: true}},
		{"reset before anything", agent.FailServer, script.Fault{Kind: script.Reset}},
		{"reset in text", agent.FailServer, script.Fault{Kind: script.Reset, After: 8}},
		{"error in text", agent.FailServer, script.Fault{Kind: script.Error, After: 8, Message: "Overloaded"}},
		{"error in a call", agent.FailServer, script.Fault{Kind: script.Error, After: 20, Type: "api_error", Message: "broken"}},
		{"silence", agent.FailTimeout, script.Fault{Kind: script.Stall, After: 8}},
		{"silence before anything", agent.FailTimeout, script.Fault{Kind: script.Stall}},
		{"nothing but pings", agent.FailTimeout, script.Fault{Kind: script.Pings, After: 8}},
		{"a pause", "", script.Fault{Kind: script.Stall, After: 8, ForMS: 300}},
		{"pings for a while", "", script.Fault{Kind: script.Pings, After: 8, ForMS: 300}},
		{"slow to begin", "", script.Fault{Kind: script.Slow, ForMS: 1200}},
	}
	concurrently(t, tests, func(f fault) string { return f.name }, func(t *testing.T, f fault) {
		w := newWorld(t, task(f.fault), script.Options{})
		flags := app.Flags{Allow: []string{"Write"}}
		if f.class == agent.FailTimeout { // elsewhere a busy machine is no stall
			flags.Settings = quick
		}
		k := w.talk(flags, agent.Open{})
		if end := k.turn("Make the file."); end.Reason != agent.EndDone || end.Error != "" {
			t.Errorf("the turn ended: %+v", end)
		}
		var classes []agent.FailureClass
		for _, b := range all[agent.ModelFailed](k.seen) {
			classes = append(classes, b.Class)
			if !b.Retry || b.Error == "" {
				t.Errorf("the failed attempt: %+v", b)
			}
		}
		want := []agent.FailureClass{f.class}
		if f.class == "" {
			want = nil
		}
		if !slices.Equal(classes, want) {
			t.Errorf("attempts failed with %q, want %q", classes, want)
		}
		k.toldOnce(2)
		if n := len(all[agent.CallStarted](k.seen)); n != 1 || w.read("made.txt") != "made\n" {
			t.Errorf("the call was started %d times; the file has %q", n, w.read("made.txt"))
		}
		k.sound()
	})
}

// toldOnce checks that the screen shows each of n answers as it is in the log.
func (k *talk) toldOnce(n int) {
	k.t.Helper()
	if screen, log := shown(k.seen), said(k.seen); !slices.Equal(screen, log) || len(log) != n {
		k.t.Errorf("the screen shows %q\nthe log has %q", screen, log)
	}
}

// What cannot be mended ends the turn with an error that says what it was, and
// the session takes the next prompt.
func TestFaultsThatStayEndClearly(t *testing.T) {
	t.Parallel()
	type fault struct {
		name  string
		class agent.FailureClass
		says  string
		fault script.Fault
	}
	tests := []fault{
		{"rate limit", agent.FailRate, "429", script.Fault{Kind: script.Status, Status: 429}},
		{"rate limit for an hour", agent.FailRate, "1h0m0s", script.Fault{Kind: script.Status, Status: 429, RetryAfter: "3600"}},
		{"overloaded", agent.FailServer, "529", script.Fault{Kind: script.Status, Status: 529}},
		{"server error", agent.FailServer, "500", script.Fault{Kind: script.Status, Status: 500}},
		{"bad key", agent.FailAuth, "no such key", script.Fault{Kind: script.Status, Status: 401, Message: "no such key"}},
		{"refused", agent.FailInvalid, "max_tokens", script.Fault{Kind: script.Status, Status: 400, Message: "max_tokens: too many"}},
		{"no such model", agent.FailNotFound, "model: script", script.Fault{Kind: script.Status, Status: 404, Message: "model: script"}},
		{"too long", agent.FailContext, "too long", script.Fault{Kind: script.Status, Status: 400, Message: "prompt is too long: 9 tokens > 8 maximum"}},
		{"a web page", agent.FailProtocol, "base URL", script.Fault{Kind: script.HTML}},
		{"no stream", agent.FailProtocol, "", script.Fault{Kind: script.Garbage}},
		{"cut", agent.FailServer, "", script.Fault{Kind: script.Cut, After: 8}},
		{"ended", agent.FailServer, "", script.Fault{Kind: script.Cut, After: 8, Clean: true}},
		{"reset", agent.FailServer, "lost", script.Fault{Kind: script.Reset, After: 8}},
		{"silence", agent.FailTimeout, "nothing for 1s", script.Fault{Kind: script.Stall, After: 8}},
		{"nothing but pings", agent.FailTimeout, "pings", script.Fault{Kind: script.Pings, After: 8}},
		{"error in the stream", agent.FailServer, "Overloaded", script.Fault{Kind: script.Error, After: 8, Message: "Overloaded"}},
	}
	concurrently(t, tests, func(f fault) string { return f.name }, func(t *testing.T, f fault) {
		w := newWorld(t, task(f.fault), script.Options{})
		k := w.talk(app.Flags{Settings: once, Allow: []string{"Write"}}, agent.Open{})
		end := k.turn("Make the file.")
		if end.Reason != agent.EndFailed || end.Fail != f.class || !strings.Contains(end.Error, f.says) || end.Error == "" {
			t.Errorf("the turn ended: %+v", end)
		}
		t.Logf("%s: %s", end.Fail, end.Error)
		if n := len(w.model.Requests()); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
		if end := k.turn("Try again."); end.Reason != agent.EndDone || w.read("made.txt") != "made\n" {
			t.Errorf("the second turn ended: %+v", end)
		}
		k.toldOnce(2)
		k.sound()
	})
}

// Three attempts are made, and then it is said why the last one failed.
func TestAttemptsEnd(t *testing.T) {
	t.Parallel()
	busy := script.Fault{Kind: script.Status, Status: 529, Header: map[string]string{"Retry-After-Ms": "20"}}
	w := newWorld(t, task(busy, busy, busy), script.Options{})
	k := w.talk(app.Flags{}, agent.Open{})
	if end := k.turn("Make the file."); end.Reason != agent.EndFailed || end.Fail != agent.FailServer {
		t.Errorf("the turn ended: %+v", end)
	}
	if n := len(w.model.Requests()); n != 3 {
		t.Errorf("the model was asked %d times", n)
	}
	k.sound()
}

// A wish of the provider is obeyed to the moment, as its own clock has it.
func TestRetryAfter(t *testing.T) {
	// What is promised, and what a machine with other things to do is allowed.
	const promised, allowed = 50 * time.Millisecond, 250 * time.Millisecond
	for _, tt := range []struct {
		name, header string
		wait         time.Duration
	}{
		{"Retry-After", "1", time.Second},
		{"Retry-After-Ms", "120", 120 * time.Millisecond},
	} {
		fault := script.Fault{Kind: script.Status, Status: 429, Header: map[string]string{tt.name: tt.header}}
		w := newWorld(t, task(fault), script.Options{})
		k := w.talk(app.Flags{Allow: []string{"Write"}}, agent.Open{})
		if end := k.turn("Make the file."); end.Reason != agent.EndDone {
			t.Errorf("the turn ended: %+v", end)
		}
		requests := w.model.Requests()
		if len(requests) != 3 {
			t.Fatalf("the model was asked %d times", len(requests))
		}
		late := requests[1].Time.Sub(requests[0].Time) - tt.wait
		t.Logf("%s: %s: asked again %v after the time that was asked for (promised: %v)", tt.name, tt.header, late, promised)
		if late < 0 || late > allowed {
			t.Errorf("%s: %s: asked again %v after the time that was asked for", tt.name, tt.header, late)
		}
	}
}

// Input of a call that is no JSON is answered, and the model mends it.
func TestMalformedInput(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{"file_path":"made.txt","content":"ma`, `["made.txt"]`, `{"file_path":"made.txt"}{}`, `nonsense`, `{"file_path":"\ud8`} {
		s := script.Script{ByStep: true, Replies: []script.Reply{
			{Text: "First.", Calls: []script.Call{{ID: "bad", Tool: "Write", Raw: raw}}},
			{Text: "Again.", Calls: []script.Call{{ID: "good", Tool: "Write", Input: input(fields{"file_path": "made.txt", "content": "made\n"})}}},
			{Text: "Done."},
		}}
		w := newWorld(t, s, script.Options{})
		k := w.talk(app.Flags{Allow: []string{"Write"}}, agent.Open{})
		if end := k.turn("Make the file."); end.Reason != agent.EndDone {
			t.Errorf("%s: the turn ended: %+v", raw, end)
		}
		if r := k.result("bad"); r.Error == nil || r.Error.Code != agent.ErrInput {
			t.Errorf("%s: the result is %+v", raw, r)
		}
		if r := k.result("good"); r.Failed() || w.read("made.txt") != "made\n" {
			t.Errorf("%s: the result is %+v", raw, r)
		}
		k.toldOnce(3)
		k.sound()
		for _, bad := range refusals(w.model) {
			t.Error(bad)
		}
	}
}

// An interrupt ends the turn at once, also while nothing comes from the model or
// an attempt is waited for.
func TestInterruptWhileWaiting(t *testing.T) {
	t.Parallel()
	type wait struct {
		name  string
		fault script.Fault
		sign  func(agent.Event) bool // that it waits
	}
	requested := func(e agent.Event) bool { _, ok := e.Body.(agent.ModelRequested); return ok }
	tests := []wait{
		{"for the answer to begin", script.Fault{Kind: script.Slow}, requested},
		{"in the middle of an answer", script.Fault{Kind: script.Stall, After: 8}, func(e agent.Event) bool { _, ok := e.Body.(agent.Fragment); return ok }},
		{"for another attempt", script.Fault{Kind: script.Status, Status: 429, RetryAfter: "60"}, func(e agent.Event) bool { _, ok := e.Body.(agent.ModelFailed); return ok }},
	}
	for _, tt := range tests {
		w := newWorld(t, task(tt.fault), script.Options{})
		k := w.talk(app.Flags{}, agent.Open{})
		k.send(agent.Prompt{Text: "Make the file."})
		k.until(tt.name, tt.sign)
		begun := time.Now()
		k.send(agent.Interrupt{})
		end := body[agent.TurnEnded](k)
		took := time.Since(begun)
		t.Logf("waiting %s: interrupted in %v", tt.name, took)
		if end.Reason != agent.EndInterrupted || took > 20*time.Second {
			t.Errorf("waiting %s: the turn ended after %v: %+v", tt.name, took, end)
		}
		k.sound()
	}
}
