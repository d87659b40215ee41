package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/kernel/plug"
)

func TestOneBarrierHoldsTheAnswerAndItsIntents(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1s"`)), say("done"))
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := lines(`
			input.added
			turn.started
			model.requested
			model.answered
			call.decided:allow
			call.started:1
			call.finished:1
			model.requested
			model.answered`)
		if got := r.kinds(); got != want {
			t.Errorf("log:\n%s\nwant:\n%s", got, want)
		}
		if r.syncs != 3 { // input; answer + intent + start; result of what may have changed something
			t.Errorf("%d barriers, want 3", r.syncs)
		}
		if got := r.model.asked[0].Messages; len(got) != 1 {
			t.Errorf("first request has %d messages", len(got))
		}
	})
}

func TestReadsRunAtOnceAndWritesInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("",
			call("1", "sleep", `"2s"`), call("2", "Sleep", `"1s"`),
			call("3", "write", `"1s"`), call("4", "sleep", `"1s"`)), say("done"))
		start := time.Now()
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 4*time.Second {
			t.Errorf("took %s, want 2s of two reads at once + 1s + 1s", d)
		}
		want := []string{"1: slept 2s", "2: slept 1s", "3: slept 1s", "4: slept 1s"}
		var got []string
		for _, b := range r.model.asked[1].Messages[2].Blocks {
			got = append(got, b.Result.ID+": "+b.Result.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
	})
}

func TestWhatCannotRunIsAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("",
			call("1", "nosuch", `{}`),
			call("2", "sleep", `"bad"`),
			agent.InvalidInput("3", "sleep", `{"a": "cut he`, "unexpected end"),
			call("4", "panic", `{}`),
			call("5", "fail", `{}`),
			call("6", "sleep", `"1s"`)), say("done"))
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.checkValid()
		var codes []agent.ErrorCode
		for _, b := range r.model.asked[1].Messages[2].Blocks {
			code := agent.ErrorCode("ok")
			if b.Result.Error != nil {
				code = b.Result.Error.Code
			}
			codes = append(codes, code)
		}
		want := []agent.ErrorCode{agent.ErrToolNotFound, agent.ErrInput, agent.ErrInput, agent.ErrTool, agent.ErrTool, "ok"}
		if !slices.Equal(codes, want) {
			t.Errorf("codes %v, want %v", codes, want)
		}
		if text := r.model.asked[1].Messages[2].Blocks[2].Result.Text; !strings.Contains(text, "cut he") {
			t.Errorf("the model does not see what it wrote: %q", text)
		}
	})
}

func TestGate(t *testing.T) {
	stage := func(d agent.Decision, err error) plug.Stage {
		return plug.Stage{Name: "stage", Decide: func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) { return d, err }}
	}
	allow := agent.Decision{Verdict: agent.Allow}
	ask := agent.Decision{Verdict: agent.AskUser, Reason: "rule"}
	for _, tt := range []struct {
		name   string
		stages []plug.Stage
		person *agent.Decision
		want   agent.Verdict
		asked  int
	}{
		{"nobody has an opinion, nobody is there", nil, nil, agent.Deny, 1},
		{"nobody has an opinion, the person allows", nil, &allow, agent.Allow, 1},
		{"a stage allows", []plug.Stage{stage(allow, nil)}, nil, agent.Allow, 0},
		{"a later stage asks", []plug.Stage{stage(allow, nil), stage(ask, nil)}, &allow, agent.Allow, 1},
		{"deny ends it", []plug.Stage{stage(agent.Decision{Verdict: agent.Deny}, nil), stage(allow, nil)}, &allow, agent.Deny, 0},
		{"an error denies", []plug.Stage{stage(allow, errors.New("broken"))}, &allow, agent.Deny, 0},
		{"a person's pass denies", nil, &agent.Decision{}, agent.Deny, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, say("", call("1", "sleep", `"0s"`)), say("done"))
			r.cfg.Gate = tt.stages
			asked := 0
			r.cfg.Person = func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) {
				asked++
				if tt.person == nil {
					return agent.Decision{}, errors.New("nobody is there")
				}
				return *tt.person, nil
			}
			if err := r.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.checkValid()
			if !strings.Contains(r.kinds(), "call.decided:"+string(tt.want)) || asked != tt.asked {
				t.Errorf("asked %d times, want %d; log:\n%s", asked, tt.asked, r.kinds())
			}
		})
	}
}

// A rewrite starts the gate again: a stage that has seen the old input only has
// not agreed to the new one. A person who has answered is not asked twice.
func TestRewriteDecidesAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"1h"`), call("2", "sleep", `"9s"`)), say("done"))
		var mu sync.Mutex // reads are decided on at once
		seen := map[string][]string{}
		r.cfg.Gate = []plug.Stage{
			{Name: "watch", Decide: func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
				mu.Lock()
				defer mu.Unlock()
				seen[p.Call.ID] = append(seen[p.Call.ID], string(p.Call.Input))
				if string(p.Call.Input) == `"7s"` {
					return agent.Decision{Verdict: agent.Deny, Reason: "seven"}, nil
				}
				return agent.Decision{}, nil
			}},
			{Name: "rewrite", Decide: func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
				if string(p.Call.Input) == `"1h"` {
					return agent.Decision{Input: json.RawMessage(`"1s"`)}, nil
				}
				return agent.Decision{}, nil
			}},
		}
		asked := 0
		r.cfg.Person = func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, error) {
			asked++
			if string(p.Call.Input) == `"9s"` {
				return agent.Decision{Verdict: agent.Allow, Input: json.RawMessage(`"7s"`)}, nil
			}
			return agent.Decision{Verdict: agent.Allow, Input: json.RawMessage(`"2s"`)}, nil
		}
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string][]string{"1": {`"1h"`, `"1s"`, `"2s"`}, "2": {`"9s"`, `"7s"`}} {
			var news []string // as often as it takes, and never the old one again
			for _, in := range seen[id] {
				if !slices.Contains(news, in) {
					news = append(news, in)
				}
			}
			if !slices.Equal(news, want) || asked != 2 {
				t.Errorf("of call %s, stages saw %q (asked %d), want %q", id, seen[id], asked, want)
			}
		}
		got := r.model.asked[1].Messages[2].Blocks
		if got[0].Result.Text != "slept 2s" || !strings.Contains(got[1].Result.Text, "seven") {
			t.Errorf("results %q, %q", got[0].Result.Text, got[1].Result.Text)
		}
	})
}

// question is a tool whose calls are questions to a person.
type question struct{ agent.Tool }

func (question) Plan(context.Context, agent.ToolContext, agent.Call) (agent.Effects, error) {
	return agent.Effects{User: true}, nil
}

// Who speaks for a person may change a call, and is no person: what has become of it is
// decided on anew, unless it is a question that has been answered so.
func TestSpokenFor(t *testing.T) {
	for _, user := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			r := newRig(t, say("", call("1", "write", `"1s"`)), say("done"))
			if user {
				r.tools["write"] = question{r.tools["write"]}
			}
			r.cfg.Gate = nil
			var asked []string
			r.cfg.Hooks.Asking = func(_ context.Context, p agent.Proposal, _ agent.Decision) (agent.Decision, bool) {
				asked = append(asked, string(p.Call.Input))
				return agent.Decision{Verdict: agent.Allow, By: "hook", Input: json.RawMessage(`"2s"`)}, len(asked) == 1
			}
			if err := r.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			want, result := `"1s" "2s"`, "nobody is there"
			if user {
				want, result = `"1s"`, "slept 2s"
			}
			got := r.model.asked[1].Messages[2].Blocks[0].Result.Text
			if strings.Join(asked, " ") != want || !strings.Contains(got, result) {
				t.Errorf("a question %v: asked about %s, and the result is %q", user, asked, got)
			}
		})
	}
}

func TestStoppedByADenial(t *testing.T) {
	r := newRig(t, say("", call("1", "sleep", `"0s"`), call("2", "sleep", `"0s"`)))
	r.cfg.Gate = nil
	r.cfg.Person = func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) {
		return agent.Decision{Verdict: agent.Deny, Reason: "no", Stop: true}, nil
	}
	if err := r.run(t.Context()); !errors.Is(err, loop.ErrStopped) {
		t.Fatalf("turn ended with %v", err)
	}
	r.checkValid()
}

func TestInterruptAnswersEveryCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "write", `"1h"`), call("2", "sleep", `"1s"`)))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(agent.ErrInterrupted) })
		if err := r.run(ctx); !errors.Is(err, agent.ErrInterrupted) {
			t.Fatalf("turn ended with %v", err)
		}
		r.checkValid()
		want := lines(`
			input.added
			turn.started
			model.requested
			model.answered
			call.decided:allow
			call.decided:allow
			call.started:1
			call.finished:1=E_TOOL_ABORTED
			call.finished:2=E_TOOL_ABORTED`)
		if got := r.kinds(); got != want {
			t.Errorf("log:\n%s\nwant:\n%s", got, want)
		}
	})
}

func TestADeafToolDoesNotHoldTheTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "deaf", `{}`)))
		r.cfg.Strays = new(sync.WaitGroup)
		defer r.cfg.Strays.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(agent.ErrInterrupted) })
		start := time.Now()
		if err := r.run(ctx); !errors.Is(err, agent.ErrInterrupted) {
			t.Fatalf("turn ended with %v", err)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("idle %s after the interrupt, want within 1s", d-time.Second)
		}
		r.checkValid()
	})
}

func TestTimeLimitOfACall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"1h"`)), say("done"))
		r.cfg.Limits.Call = time.Minute
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.kinds(), "call.finished:1=E_TOOL_TIMEOUT") {
			t.Errorf("log:\n%s", r.kinds())
		}
	})
}

// A call that is stopped at its limit keeps what it has to show, and what it
// knows of files.
func TestOutputOfACallThatTookTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "slow", `{}`)), say("done"))
		r.cfg.Limits.Call = time.Second
		files := []agent.FileState{{Path: "/w/a", Wrote: true}}
		r.tools["slow"] = tool{"slow", agent.Unsafe, func(ctx context.Context, _ agent.Call) (agent.Result, error) {
			<-ctx.Done()
			res := agent.Failure(agent.ErrAborted, "", "")
			res.Files, res.Stream = files, io.NopCloser(strings.NewReader("much output"))
			return res, nil
		}}
		var got string
		r.cfg.Guard = func(_ context.Context, _ agent.Spec, _ agent.Call, res agent.Result) (agent.Result, error) {
			if res.Stream != nil {
				data, err := io.ReadAll(res.Stream)
				if err != nil {
					t.Error(err)
				}
				got = string(data)
			}
			return res, nil
		}
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, "limit of 1s") || !strings.HasSuffix(got, "much output") {
			t.Errorf("output %q", got)
		}
		if res := r.model.asked[1].Messages[2].Blocks[0].Result; !slices.Equal(res.Files, files) || res.Error.Code != agent.ErrTimeout {
			t.Errorf("result %+v", res)
		}
	})
}

func TestRetry(t *testing.T) {
	rate := func(after time.Duration) error {
		return &agent.ModelError{Class: agent.FailRate, Status: 429, RetryAfter: after}
	}
	cut := &agent.ModelError{Class: agent.FailServer, Message: "cut"}
	auth := &agent.ModelError{Class: agent.FailAuth, Status: 401}
	for _, tt := range []struct {
		name    string
		answers []any
		failed  []string
		wait    time.Duration
		err     error
	}{
		{"waits as long as it is told", []any{rate(7 * time.Second), say("ok")}, []string{"model.failed:rate-limit/7000ms/true"}, 7 * time.Second, nil},
		{"doubles its own delay", []any{cut, cut, say("ok")}, []string{"model.failed:server-error/1000ms/true", "model.failed:server-error/2000ms/true"}, 3 * time.Second, nil},
		{"gives up after three", []any{cut, cut, cut}, []string{"model.failed:server-error/1000ms/true", "model.failed:server-error/2000ms/true", "model.failed:server-error/0ms/false"}, 3 * time.Second, cut},
		{"never repeats what cannot help", []any{auth}, []string{"model.failed:auth/0ms/false"}, 0, auth},
		{"does not wait for an hour", []any{rate(time.Hour)}, []string{"model.failed:rate-limit/3600000ms/false"}, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, tt.answers...)
				start := time.Now()
				err := r.run(t.Context())
				if tt.err != nil && !errors.Is(err, tt.err) {
					t.Errorf("ended with %v, want %v", err, tt.err)
				}
				if d := time.Since(start); d != tt.wait {
					t.Errorf("waited %s, want %s", d, tt.wait)
				}
				var failed []string
				for line := range strings.Lines(r.kinds()) {
					if strings.HasPrefix(line, "model.failed") {
						failed = append(failed, strings.TrimSpace(line))
					}
				}
				if !slices.Equal(failed, tt.failed) {
					t.Errorf("failures %q, want %q", failed, tt.failed)
				}
			})
		})
	}
}

func TestFallback(t *testing.T) {
	cut := &agent.ModelError{Class: agent.FailServer, Message: "cut"}
	quota := &agent.ModelError{Class: agent.FailQuota, Status: 402}
	auth := &agent.ModelError{Class: agent.FailAuth, Status: 401}
	const out = "model.failed:server-error/"
	for _, tt := range []struct {
		name     string
		answers  []any
		fallback []string
		failed   string   // kinds of the failures
		asked    []string // models
		err      error
	}{
		{
			"after the retries, and for the rest of the turn",
			[]any{cut, cut, cut, say("", call("1", "sleep", `"1s"`)), say("ok")},
			[]string{"b"},
			out + "1000ms/true " + out + "2000ms/true " + out + "0ms/true/b",
			[]string{"", "", "", "b", "b"},
			nil,
		},
		{"at once when waiting will not help", []any{quota, say("ok")}, []string{"b"}, "model.failed:quota/0ms/true/b", []string{"", "b"}, nil},
		{"one after the other", []any{quota, quota, say("ok")}, []string{"b", "b", "c"}, "model.failed:quota/0ms/true/b model.failed:quota/0ms/true/c", []string{"", "b", "c"}, nil},
		{"until none is left", []any{quota, quota}, []string{"b"}, "model.failed:quota/0ms/true/b model.failed:quota/0ms/false", []string{"", "b"}, quota},
		{"past one that cannot be asked", []any{quota, say("ok")}, []string{"gone", "b"}, "model.failed:quota/0ms/true/b", []string{"", "b"}, nil},
		{"and one that cannot be asked is none", []any{quota}, []string{"gone"}, "model.failed:quota/0ms/false", []string{""}, quota},
		{"not for a wrong key", []any{auth}, []string{"b"}, "model.failed:auth/0ms/false", []string{""}, auth},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, tt.answers...)
				r.cfg.Fallback = tt.fallback
				if err := r.run(t.Context()); !errors.Is(err, tt.err) {
					t.Errorf("ended with %v, want %v", err, tt.err)
				}
				if r.held != 0 || r.most != 1 {
					t.Errorf("%d requests are still paid for, %d were at once", r.held, r.most)
				}
				var failed, asked []string
				for line := range strings.Lines(r.kinds()) {
					if strings.HasPrefix(line, "model.failed") {
						failed = append(failed, strings.TrimSpace(line))
					}
				}
				for _, req := range r.model.asked {
					asked = append(asked, req.Model)
				}
				if got := strings.Join(failed, " "); got != tt.failed {
					t.Errorf("failures %q, want %q", got, tt.failed)
				}
				if !slices.Equal(asked, tt.asked) {
					t.Errorf("asked %q, want %q", asked, tt.asked)
				}
			})
		})
	}
}

// What is put aside for a request whose length was refused is free for the question
// that shortens the conversation, and for the request that follows.
func TestShorterIsPaidOnce(t *testing.T) {
	tooLong := &agent.ModelError{Class: agent.FailContext, Message: "too long"}
	inBubble(t, func(t *testing.T) {
		r := newRig(t, tooLong, say("ok"))
		during := -1
		r.cfg.Shorten = func(context.Context) (bool, error) { during = r.held; return true, nil }
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if during != 0 || r.held != 0 || r.most != 1 {
			t.Errorf("%d requests were paid for meanwhile, %d at once, %d still are", during, r.most, r.held)
		}
	})
}

func TestLoopBreaker(t *testing.T) {
	bad := func(id string) agent.Answer { return say("", call(id, "fail", `{"x":1}`)) }
	r := newRig(t, bad("1"), bad("2"), bad("3"), bad("4"), bad("5"), bad("6"), say("never"))
	if err := r.run(t.Context()); !errors.Is(err, loop.ErrRepeating) {
		t.Fatalf("ended with %v", err)
	}
	want := "call.finished:4=" + string(agent.ErrRepeating)
	if got := r.kinds(); !strings.Contains(got, want) || strings.Count(got, "call.started") != 3 {
		t.Errorf("log:\n%s", got)
	}
	r.checkValid()
}

func TestLimit(t *testing.T) {
	for _, closing := range []bool{false, true} {
		r := newRig(t, say("", call("1", "sleep", `"0s"`)), say("", call("2", "sleep", `"0s"`)), say("summary"))
		r.cfg.Limits.Steps, r.cfg.Limits.Closing = 2, closing
		if err := r.run(t.Context()); !errors.Is(err, loop.ErrLimit) {
			t.Fatalf("ended with %v", err)
		}
		want := 2
		if closing {
			want = 3
		}
		if len(r.model.asked) != want {
			t.Errorf("closing %t: %d requests, want %d", closing, len(r.model.asked), want)
		}
		if closing && !r.model.asked[2].NoTools {
			t.Error("the closing request may use tools")
		}
		r.checkValid()
	}
}

func TestStopReasons(t *testing.T) {
	with := func(a agent.Answer, s agent.StopReason) agent.Answer { a.Stop = s; return a }
	for _, tt := range []struct {
		name     string
		answers  []any
		requests int
		err      error
	}{
		{"end", []any{say("a")}, 1, nil},
		{"stop sequence", []any{with(say("a"), agent.StopSequence)}, 1, nil},
		{"one that nobody knows", []any{with(say("a"), "new_reason")}, 1, nil},
		{"pause asks again", []any{with(say("a"), agent.StopPause), say("b")}, 2, nil},
		{"length goes on", []any{with(say("a"), agent.StopLength), say("b")}, 2, nil},
		{"length goes on three times", []any{with(say("a"), agent.StopLength), with(say("b"), agent.StopLength), with(say("c"), agent.StopLength), with(say("d"), agent.StopLength)}, 4, nil},
		{"refusal", []any{with(say(""), agent.StopRefusal)}, 1, loop.ErrRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.answers...)
			if err := r.run(t.Context()); !errors.Is(err, tt.err) {
				t.Errorf("ended with %v, want %v", err, tt.err)
			}
			if len(r.model.asked) != tt.requests {
				t.Errorf("%d requests, want %d", len(r.model.asked), tt.requests)
			}
		})
	}
}

func TestSteering(t *testing.T) {
	r := newRig(t, say("", call("1", "sleep", `"0s"`)), say("ok"))
	r.queued = []string{"wait"}
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.model.asked[1].Messages; len(got) != 4 || got[3].Text() != "wait" {
		t.Errorf("second request: %+v", got)
	}
}

// Input that has entered the conversation is put to the model, also when the
// turn would have been given up at that very moment.
func TestInputAtTheEndOfATurnIsAnswered(t *testing.T) {
	cut := func() agent.Answer { a := say("a"); a.Stop = agent.StopLength; return a }
	fail := func() agent.Answer { return say("", call("1", "fail", `{}`)) }
	for _, tt := range []struct {
		name    string
		answers []agent.Answer // the input comes with the last
	}{
		{"cut too often", []agent.Answer{cut(), cut(), cut(), cut()}},
		{"repeated too often", []agent.Answer{fail(), fail(), fail(), fail(), fail(), fail()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r *rig
			var answers []any
			for i, a := range tt.answers {
				answers = append(answers, func(context.Context) any {
					if i == len(tt.answers)-1 {
						r.queued = []string{"and now this"}
					}
					return a
				})
			}
			r = newRig(t, append(answers, say("answered"))...)
			if err := r.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(r.model.asked); n != len(tt.answers)+1 {
				t.Errorf("%d requests, want %d; log:\n%s", n, len(tt.answers)+1, r.kinds())
			}
		})
	}
}

// Whatever IDs a model gives its calls, those of the conversation are unique.
func TestCallIDsAreUnique(t *testing.T) {
	answer := say("", call("call_t_1_2", "sleep", `"0s"`), call("a", "sleep", `"0s"`), call("a", "sleep", `"0s"`), call("", "sleep", `"0s"`))
	seen := map[string]bool{}
	for _, turn := range []string{"t", "u"} { // step 1 of each
		r := newRig(t, answer, say("done"))
		r.cfg.Turn = turn
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.checkValid()
		for i, c := range r.model.asked[1].Messages[1].Calls() {
			if i >= 2 || turn == "t" { // the IDs that were made here, and the model's once
				if seen[c.ID] {
					t.Errorf("turn %s: the ID %s is there twice", turn, c.ID)
				}
				seen[c.ID] = true
			}
		}
	}
}

func TestALogThatCannotBeWrittenStopsEffects(t *testing.T) {
	r := newRig(t)
	r.model.answers = []any{func(context.Context) any {
		r.broken = errors.New("disk full")
		return say("", call("1", "write", `"0s"`))
	}}
	ran := false
	r.tools["write"] = tool{"write", agent.Unsafe, func(context.Context, agent.Call) (agent.Result, error) {
		ran = true
		return agent.OK(""), nil
	}}
	if err := r.run(t.Context()); err == nil || ran {
		t.Errorf("ended with %v, ran: %t", err, ran)
	}
}

func TestStateMachineIsDriven(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, &agent.ModelError{Class: agent.FailServer}, say("", call("1", "sleep", `"1s"`)), say("done"))
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range r.live {
			if c, ok := b.(agent.StateChanged); ok {
				got = append(got, string(c.To)+" "+c.Reason)
			}
		}
		want := []string{
			"streaming ", "idle retry", "streaming ", "tool_use ", "executing ", "streaming ", "done completed", "idle ",
		}
		if !slices.Equal(got, want) {
			t.Errorf("states %q, want %q", got, want)
		}
	})
}

func TestMachineRefusesOtherTransitions(t *testing.T) {
	var m loop.Machine
	if err := m.To(agent.StateExecuting, ""); err == nil || !strings.Contains(err.Error(), "allowed are streaming") {
		t.Errorf("idle to executing: %v", err)
	}
	if m.State() != agent.StateIdle {
		t.Errorf("state is %s after a refused transition", m.State())
	}
}

// shout is a cleaner that holds every last letter back.
type shout struct {
	tool string
	held string
}

func (s *shout) Add(text string) string {
	text = s.held + strings.ToUpper(text)
	s.held = text[len(text)-1:]
	return text[:len(text)-1]
}

func (s *shout) Flush() string { return s.tool + s.held }

// The output of a call is cleaned as one text, whatever its parts, and nothing is
// shown when the call is over.
func TestLiveOutput(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("c1", "talk", `{}`), call("c2", "talk", `{}`)), say("done"))
		var late func(string)
		r.tools["talk"] = tool{name: "talk", class: agent.Read, run: func(ctx context.Context, c agent.Call) (agent.Result, error) {
			env := agent.CallEnvOf(ctx)
			for _, part := range []string{"a", "bc", "d"} {
				env.Progress(part)
			}
			if c.ID == "c1" {
				late = env.Progress
			}
			return agent.OK("said"), nil
		}}
		r.cfg.Clean = func(s agent.Spec) plug.Cleaner { return &shout{tool: s.Name} }
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		late("late")
		got := map[string]string{}
		for _, b := range r.live {
			if o, ok := b.(agent.CallOutput); ok {
				got[o.ID] += "|" + o.Text
			}
		}
		if want := (map[string]string{"c1": "|AB|C|talkD", "c2": "|AB|C|talkD"}); !maps.Equal(got, want) {
			t.Errorf("shown were %q, want %q", got, want)
		}
	})
}

// A call is shown once to who may change its input, before the gate, which decides about
// what has become of it; what is refused there is not decided about at all.
func TestCalling(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"1s"`), call("2", "write", `"2s"`), call("3", "look", `"3s"`)), say("done"))
		var seen []string
		r.cfg.Hooks.Calling = func(_ context.Context, c agent.Call) (json.RawMessage, error) {
			seen = append(seen, c.ID)
			if c.ID == "3" {
				return nil, errors.New("not that one")
			}
			return json.RawMessage(`"5s"`), nil
		}
		asked := map[string]string{}
		allow := r.cfg.Gate[0].Decide
		r.cfg.Gate[0].Decide = func(ctx context.Context, p agent.Proposal, d agent.Decision) (agent.Decision, error) {
			asked[p.Call.ID] = string(p.Call.Input)
			return allow(ctx, p, d)
		}
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(seen, " "); got != "1 2 3" {
			t.Errorf("seen: %s", got)
		}
		if len(asked) != 2 || asked["1"] != `"5s"` || asked["2"] != `"5s"` {
			t.Errorf("decided about: %v", asked)
		}
		for _, e := range r.log {
			if f, ok := e.Body.(agent.CallFinished); ok && f.Result.ID == "3" && (f.Result.Error == nil || f.Result.Error.Code != agent.ErrDenied) {
				t.Errorf("the call that was refused: %+v", f.Result)
			}
		}
		r.checkValid()
	})
}

// What is around turns and steps runs each once, sees what came of it, and cannot change
// that; where it does not go on, nothing happens.
func TestAround(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"1s"`)), say("done"))
		var seen []string
		note := func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) }
		r.cfg.Hooks.Turn = func(turn string, steps int) { note("turn %s after %d", turn, steps) }
		r.cfg.Hooks.AroundTurn = func(ctx context.Context, run func(context.Context) error) error {
			note("in")
			err := run(ctx)
			note("out %v, again: %v", err, run(ctx))
			return errors.New("it did not matter")
		}
		r.cfg.Hooks.AroundStep = func(ctx context.Context, n int, run func(context.Context) (plug.Stepped, error)) error {
			done, err := run(ctx)
			note("step %d %q %v %v", n, done.Answer.Message.Text(), done.More, err)
			return errors.New("nor that")
		}
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := `turn t after 0; in; step 1 "" true <nil>; step 2 "done" false <nil>; out <nil>, again: it ran already: what it does is done once`
		if got := strings.Join(seen, "; "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		r.checkValid()
	})
}

func TestAroundThatDoesNotGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*plug.TurnHooks, error)
		err  error
		want error
	}{
		"turn": {func(h *plug.TurnHooks, err error) {
			h.AroundTurn = func(context.Context, func(context.Context) error) error { return err }
		}, nil, loop.ErrStopped},
		"turn fails": {func(h *plug.TurnHooks, err error) {
			h.AroundTurn = func(context.Context, func(context.Context) error) error { return err }
		}, io.ErrNoProgress, io.ErrNoProgress},
		"step": {func(h *plug.TurnHooks, err error) {
			h.AroundStep = func(context.Context, int, func(context.Context) (plug.Stepped, error)) error { return err }
		}, nil, loop.ErrStopped},
		"step fails": {func(h *plug.TurnHooks, err error) {
			h.AroundStep = func(context.Context, int, func(context.Context) (plug.Stepped, error)) error { return err }
		}, io.ErrNoProgress, io.ErrNoProgress},
		"panic": {func(h *plug.TurnHooks, _ error) {
			h.AroundTurn = func(ctx context.Context, run func(context.Context) error) error {
				defer func() { _ = recover() }()
				return run(ctx)
			}
			h.AroundStep = func(context.Context, int, func(context.Context) (plug.Stepped, error)) error { panic("oh") }
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, say("done"))
				c.set(&r.cfg.Hooks, c.err)
				err := r.run(t.Context())
				if err == nil || c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("the turn ended with %v", err)
				}
				if len(r.model.asked) > 0 {
					t.Error("the model was asked")
				}
			})
		})
	}
}
