package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/kernel/plug"
)

// checked is a tool that can find out whether a call of it took effect.
type checked struct {
	tool
	probe agent.Probe
}

func (checked) Mark(context.Context, agent.ToolContext, agent.Call) (json.RawMessage, error) {
	return json.RawMessage(`"before"`), nil
}

func (c checked) Probe(context.Context, agent.ToolContext, agent.Call, json.RawMessage) (agent.Probe, agent.Result, error) {
	return c.probe, agent.OK("found"), nil
}

// What becomes of a call that a crash interrupted depends on its class alone.
func TestResume(t *testing.T) {
	ran := 0
	run := func(ctx context.Context, _ agent.Call) (agent.Result, error) {
		ran++
		return agent.OK("ran " + agent.CallEnvOf(ctx).Key[:4]), nil
	}
	for _, tt := range []struct {
		name  string
		class agent.Class
		probe agent.Probe
		stage string // how far the call had come: answered, decided, started
		yes   bool   // a person says to run it again
		runs  int
		want  string
	}{
		{"not decided yet", agent.Unsafe, "", "answered", false, 1, "ran"},
		{"decided", agent.Unsafe, "", "decided", false, 1, "ran"},
		{"read", agent.Read, "", "started", false, 1, "ran"},
		{"idempotent", agent.Idempotent, "", "started", false, 1, "ran"},
		{"checkable, done", agent.Checkable, agent.ProbeDone, "started", false, 0, "found"},
		{"checkable, not done", agent.Checkable, agent.ProbeNotDone, "started", false, 1, "ran"},
		{"checkable, unknown", agent.Checkable, agent.ProbeUnknown, "started", false, 0, "outcome is unknown"},
		{"unsafe", agent.Unsafe, "", "started", false, 0, "outcome is unknown"},
		{"unsafe, a person wants it", agent.Unsafe, "", "started", true, 1, "ran"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ran = 0
			r := newRig(t, say("done"))
			r.tools["do"] = checked{tool{"do", tt.class, run}, tt.probe}
			c := call("1", "do", `{}`)
			key := loop.Key("s", "t", 1, "1")
			var bodies []agent.Body
			bodies = append(bodies, agent.InputAdded{Text: "go"}, agent.TurnStarted{Turn: "t"},
				agent.ModelAnswered{Turn: "t", Step: 1, Answer: say("", c)})
			if tt.stage != "answered" {
				bodies = append(bodies, agent.CallDecided{
					Proposal: agent.Proposal{Call: c, Class: tt.class}, Decision: agent.Decision{Verdict: agent.Allow}, Key: key,
				})
			}
			if tt.stage == "started" {
				bodies = append(bodies, agent.CallStarted{ID: "1", Tool: "do", Class: tt.class, Key: key, Mark: json.RawMessage(`"before"`)},
					agent.CallSpawned{ID: "1", Process: agent.Process{PID: 7}})
			}
			if err := r.store(true, bodies...); err != nil {
				t.Fatal(err)
			}
			var reaped []agent.Process
			r.cfg.Reap = func(p agent.Process) { reaped = append(reaped, p) }
			r.cfg.Pending, r.cfg.First = r.state.Open, 2
			var told []string
			r.cfg.Hooks.Batch = tellsOf(&told)
			if tt.yes {
				r.cfg.AskAgain = true
				r.cfg.Person = func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) {
					return agent.Decision{Verdict: agent.Allow}, nil
				}
			}
			if _, err := loop.Turn(t.Context(), r.cfg); err != nil {
				t.Fatal(err)
			}
			r.checkValid()
			got := r.model.asked[0].Messages[2].Blocks[0].Result.Text
			if ran != tt.runs || !strings.Contains(got, tt.want) {
				t.Errorf("ran %d times, want %d; result %q, want %q; log:\n%s", ran, tt.runs, got, tt.want, r.kinds())
			}
			if tt.want == "ran" && !strings.Contains(got, key[:4]) {
				t.Errorf("the call ran under another key: %q, want %s", got, key[:4])
			}
			if len(told) != 1 || told[0] != "do {}: "+got {
				t.Errorf("hooks were told %q", told)
			}
			if tt.stage == "started" && len(reaped) != 1 {
				t.Errorf("reaped %v, want the one process", reaped)
			}
		})
	}
}

// tellsOf notes what hooks are told of the calls of an answer.
func tellsOf(told *[]string) func(context.Context, []agent.Call, []agent.CallFinished) bool {
	return func(_ context.Context, calls []agent.Call, results []agent.CallFinished) bool {
		for i, c := range calls {
			*told = append(*told, c.Tool+" "+string(c.Input)+": "+results[i].Result.Text)
		}
		return false
	}
}

func TestADeniedCallStaysDenied(t *testing.T) {
	r := newRig(t, say("done"))
	c := call("1", "write", `"0s"`)
	if err := r.store(true, agent.InputAdded{Text: "go"}, agent.TurnStarted{Turn: "t"},
		agent.ModelAnswered{Turn: "t", Step: 1, Answer: say("", c, call("2", "sleep", `"0s"`))},
		agent.CallDecided{Proposal: agent.Proposal{Call: c, Class: agent.Unsafe}, Decision: agent.Decision{Verdict: agent.Deny, Reason: "no"}},
	); err != nil {
		t.Fatal(err)
	}
	r.cfg.Pending, r.cfg.First = r.state.Open, 2
	var told []string
	r.cfg.Hooks.Batch = tellsOf(&told)
	if _, err := loop.Turn(t.Context(), r.cfg); err != nil {
		t.Fatal(err)
	}
	got := r.model.asked[0].Messages[2].Blocks
	if len(told) != 2 || told[0] != `write "0s": `+got[0].Result.Text || told[1] != `sleep "0s": slept 0s` {
		t.Errorf("hooks were told %q", told)
	}
	if !strings.Contains(got[0].Result.Text, "denied: no") || got[1].Result.Text != "slept 0s" {
		t.Errorf("results %q, %q", got[0].Result.Text, got[1].Result.Text)
	}
	if n := strings.Count(r.kinds(), "call.decided"); n != 2 {
		t.Errorf("%d decisions in the log, want the old one and one for the second call", n)
	}
}

// A model that answers a side question with calls has none to make: nothing runs.
func TestSideQuestionAnsweredWithCalls(t *testing.T) {
	r := newRig(t, say("side", call("1", "sleep", `"0s"`)))
	prepare := r.cfg.Prepare
	r.cfg.Prepare = func(ctx context.Context, w loop.Want) (loop.Step, error) {
		step, err := prepare(ctx, w)
		step.Tools = plug.Tools{}
		return step, err
	}
	a, err := loop.Ask(t.Context(), r.cfg, agent.Question{Purpose: "summary", Messages: []agent.Message{agent.UserText("sum up")}})
	if err != nil || a.Message.Text() != "side" || len(a.Message.Calls()) != 1 {
		t.Fatalf("Ask: %+v, %v", a, err)
	}
	if got := r.kinds(); got != lines("model.requested\nmodel.answered") {
		t.Errorf("log:\n%s", got)
	}
}

func TestAskAndInvoke(t *testing.T) {
	r := newRig(t, say("side"))
	a, err := loop.Ask(t.Context(), r.cfg, agent.Question{Purpose: "summary", Messages: []agent.Message{agent.UserText("sum up")}})
	if err != nil || a.Message.Text() != "side" {
		t.Fatalf("Ask: %+v, %v", a, err)
	}
	step, _ := r.prepare(t.Context(), loop.Want{})
	res, err := loop.Invoke(t.Context(), r.cfg, step.Tools, "iv_1", agent.Invocation{Origin: "test", Tool: "write", Input: []byte(`"0s"`)})
	if err != nil || res.Text != "slept 0s" {
		t.Fatalf("Invoke: %+v, %v", res, err)
	}
	r.cfg.Gate = nil // nobody allows, nobody is there
	res, err = loop.Invoke(t.Context(), r.cfg, step.Tools, "iv_2", agent.Invocation{Origin: "test", Tool: "write", Input: []byte(`"0s"`)})
	if err != nil || !res.Failed() {
		t.Fatalf("denied Invoke: %+v, %v", res, err)
	}
	want := lines(`
		model.requested
		model.answered
		call.decided:allow
		call.started:iv_1
		call.finished:iv_1
		call.decided:deny
		call.finished:iv_2=E_TOOL_DENIED`)
	if got := r.kinds(); got != want {
		t.Errorf("log:\n%s\nwant:\n%s", got, want)
	}
	if len(r.state.Messages) != 0 {
		t.Errorf("the conversation saw %d messages of what happened beside it", len(r.state.Messages))
	}
}

// A crash between the last answer and the end of the turn asks the model
// nothing that it has answered already.
func TestResumeBehindTheLastAnswer(t *testing.T) {
	for _, tt := range []struct {
		stop     agent.StopReason
		queued   []string
		requests int
		last     string // of the conversation that is asked about
	}{
		{agent.StopEnd, nil, 0, ""},
		{agent.StopEnd, []string{"one more thing"}, 1, "one more thing"},
		{agent.StopPause, nil, 1, "half"},
		{agent.StopLength, nil, 1, "Your answer was cut"},
	} {
		a := say("half")
		a.Stop = tt.stop
		r := newRig(t, say("done"))
		if err := r.store(true, agent.InputAdded{Text: "go"}, agent.TurnStarted{Turn: "t"}, agent.ModelAnswered{Turn: "t", Step: 1, Answer: a}); err != nil {
			t.Fatal(err)
		}
		r.queued, r.cfg.Stopped, r.cfg.First = tt.queued, r.state.Turn.Stop, 2
		steps, err := loop.Turn(t.Context(), r.cfg)
		if err != nil || len(r.model.asked) != tt.requests || steps != 1+tt.requests {
			t.Errorf("%s: %d requests, %d steps, %v", tt.stop, len(r.model.asked), steps, err)
			continue
		}
		if tt.requests > 0 {
			m := r.model.asked[0].Messages
			if got := m[len(m)-1].Text(); !strings.HasPrefix(got, tt.last) {
				t.Errorf("%s: the conversation ends with %q, want %q", tt.stop, got, tt.last)
			}
		}
	}
}

// A call that a crash interrupted may have done its work: when the turn is
// stopped before anybody knows, the model is not told that it did not run.
func TestInterruptedWhileAskingToRunAgain(t *testing.T) {
	r := newRig(t)
	c := call("1", "write", `"0s"`)
	if err := r.store(true, agent.InputAdded{Text: "go"}, agent.TurnStarted{Turn: "t"},
		agent.ModelAnswered{Turn: "t", Step: 1, Answer: say("", c, call("2", "write", `"0s"`))},
		agent.CallDecided{Proposal: agent.Proposal{Call: c, Class: agent.Unsafe}, Decision: agent.Decision{Verdict: agent.Allow}},
		agent.CallStarted{ID: "1", Tool: "write", Class: agent.Unsafe},
	); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	r.cfg.AskAgain = true
	r.cfg.Person = func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) {
		cancel(agent.ErrInterrupted)
		return agent.Decision{}, agent.ErrInterrupted
	}
	r.cfg.Pending, r.cfg.First = r.state.Open, 2
	if _, err := loop.Turn(ctx, r.cfg); !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	want := "call.finished:1=E_TOOL_OUTCOME_UNKNOWN\ncall.finished:2=E_TOOL_ABORTED"
	if log := r.kinds(); !strings.HasSuffix(log, want) {
		t.Errorf("log:\n%s\nwant at its end:\n%s", log, want)
	}
}
