package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dure/agent"
	"dure/internal/base/meter"
	"dure/internal/frontend/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is sent of a session, as JSON.
func TestGolden(t *testing.T) {
	c := newCollector(t)
	cfg := config(c.URL, true)
	cfg.Now = clockAfter(began)
	tell(t, cfg, story())
	for path, name := range map[string]string{"/v1/traces": "traces.json", "/v1/logs": "logs.json", "/v1/metrics": "metrics.json"} {
		if n := len(c.bodies[path]); n != 1 {
			t.Fatalf("%s: %d requests", path, n)
		}
		golden(t, name, c.bodies[path][0])
	}
	for _, h := range c.heads {
		if h.Get("Content-Type") != "application/json" || h.Get("Authorization") != "Bearer secret-0815" || !strings.HasPrefix(h.Get("User-Agent"), "dure/") {
			t.Errorf("%v", h)
		}
	}
}

// clockAfter is a clock that stands still once somebody has looked at it.
func clockAfter(at time.Time) func() time.Time {
	return func() time.Time { return at }
}

// Nothing of what is said is told, unless that is asked for; then it is, where it is asked
// for, without secrets.
func TestContent(t *testing.T) {
	for _, one := range []struct {
		name          string
		content       telemetry.Content
		spans, events bool
	}{
		{"none", telemetry.ContentNone, false, false},
		{"spans", telemetry.ContentSpans, true, false},
		{"events", telemetry.ContentEvents, false, true},
		{"both", telemetry.ContentBoth, true, true},
	} {
		for _, asJSON := range []bool{true, false} {
			c := newCollector(t)
			cfg := config(c.URL, asJSON)
			cfg.Content = one.content
			cfg.Redact = func(s string) string { return strings.ReplaceAll(s, "mend", "[masked]") }
			tell(t, cfg, story())
			for path, want := range map[string]bool{"/v1/traces": one.spans, "/v1/logs": one.events, "/v1/metrics": false} {
				body := string(c.bodies[path][0])
				if got := strings.Contains(body, canary); got != want {
					t.Errorf("%s, JSON %v: content in %s: %v", one.name, asJSON, path, got)
				}
				if want && (strings.Contains(body, "mend it") || !strings.Contains(body, "[masked] it")) {
					t.Errorf("%s: %s has what is secret", one.name, path)
				}
			}
		}
	}
}

// Of content the parts are told that are asked for, each without the others, at both places
// and without secrets. What nobody can ask for by itself comes only with all.
func TestPartsOfContent(t *testing.T) {
	const prompt, answer, input, result, rest, thought = "mark-prompt", "mark-answer", "mark-input", "mark-result", "mark-rest", "mark-thought"
	call := agent.Call{ID: "c1", Tool: "read", Input: json.RawMessage(`{"path":"` + input + ` hush \u0068ush","n":1e400}`)}
	s := sessions{"s1": happened(
		began, "p",
		agent.SessionOpened{Session: "s1", Model: "m-1"},
		agent.InputAdded{Input: "i1", Text: prompt + " hush"},
		agent.TurnStarted{Turn: "t1"},
		agent.ContextAdded{Source: "memory", Text: rest},
		agent.ModelRequested{Turn: "t1", Step: 1, Attempt: 1, Model: "m-1"},
		agent.ModelAnswered{Turn: "t1", Step: 1, Answer: agent.Answer{Stop: agent.StopCalls, Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{
			{Type: agent.ThinkingBlock, Text: thought}, {Type: agent.TextBlock, Text: answer + " hush"}, {Type: agent.CallBlock, Call: &call},
		}}}},
		agent.CallDecided{Turn: "t1", Step: 1, Proposal: agent.Proposal{Call: call, Class: agent.Read}, Decision: agent.Decision{Verdict: agent.Allow}, Key: "k1"},
		agent.CallStarted{ID: "c1", Tool: "read", Class: agent.Read, Key: "k1"},
		agent.CallFinished{Result: agent.Result{ID: "c1", Status: agent.StatusOK, Text: result + " hush"}, Tool: "read"},
		agent.InputAdded{Input: "i2", Text: rest, Origin: "child:x"},
		agent.ModelRequested{Turn: "t1", Step: 2, Attempt: 1, Model: "m-1"},
		agent.ModelAnswered{Turn: "t1", Step: 2, Answer: agent.Answer{Stop: agent.StopEnd, Message: agent.Message{Role: agent.Assistant}}},
		agent.TurnEnded{Turn: "t1", Reason: agent.EndDone},
	)}
	marks := []string{prompt, answer, input, result, rest, thought}
	for _, one := range []struct {
		content telemetry.Content
		parts   telemetry.Parts
		want    []string
	}{
		{telemetry.ContentBoth, 0, []string{prompt, answer, input, result, rest}},
		{telemetry.ContentBoth, telemetry.PartPrompts, []string{prompt}},
		{telemetry.ContentBoth, telemetry.PartAnswers, []string{answer}},
		{telemetry.ContentBoth, telemetry.PartInputs, []string{input}},
		{telemetry.ContentBoth, telemetry.PartResults, []string{result}},
		{telemetry.ContentBoth, telemetry.PartInputs | telemetry.PartResults, []string{input, result}},
		{telemetry.ContentNone, telemetry.PartPrompts | telemetry.PartResults, nil},
	} {
		c := newCollector(t)
		cfg := config(c.URL, true)
		cfg.Content, cfg.Parts = one.content, one.parts
		cfg.Redact = func(s string) string { return strings.ReplaceAll(s, "hush", "[masked]") }
		tell(t, cfg, s)
		for _, path := range []string{"/v1/traces", "/v1/logs"} {
			body := string(bytes.Join(c.bodies[path], nil))
			for _, mark := range marks {
				if got, want := strings.Contains(body, mark), slices.Contains(one.want, mark); got != want {
					t.Errorf("parts %d: %s in %s: %v", one.parts, mark, path, got)
				}
			}
			if strings.Contains(body, "hush") || strings.Contains(body, "0068ush") {
				t.Errorf("parts %d: %s has what is secret", one.parts, path)
			}
		}
	}
}

// A request that is given up with its turn ends with it, and not with the session: nobody
// says of it that it has failed.
func TestInterruptedRequest(t *testing.T) {
	c := newCollector(t)
	tell(t, config(c.URL, true), sessions{"s1": happened(
		began, "p",
		agent.SessionOpened{Session: "s1", Model: "m-1"},
		agent.TurnStarted{Turn: "t1"},
		agent.ModelRequested{Turn: "t1", Step: 1, Attempt: 1, Model: "m-1"},
		agent.ModelRequested{Turn: "t1", Step: 1, Attempt: 1, Purpose: "title", Model: "m-small"},
		agent.TurnEnded{Turn: "t1", Reason: agent.EndInterrupted},
		agent.ModelAnswered{Turn: "t1", Step: 1, Purpose: "title", Answer: agent.Answer{Stop: agent.StopEnd}},
		agent.InputAdded{Input: "i2", Text: "later"},
	)})
	var told struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					Name string `json:"name"`
					End  string `json:"endTimeUnixNano"`
				} `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := json.Unmarshal(bytes.Join(c.bodies["/v1/traces"], nil), &told); err != nil {
		t.Fatal(err)
	}
	ends := map[string]string{}
	for _, s := range told.ResourceSpans[0].ScopeSpans[0].Spans {
		if ends[s.Name] != "" {
			t.Errorf("%s is told twice", s.Name)
		}
		ends[s.Name] = s.End
	}
	at := func(n int) string { return fmt.Sprint(began.Add(time.Duration(n) * 10 * time.Millisecond).UnixNano()) }
	if ends["chat m-1"] != at(5) || ends["invoke_agent dure"] != at(5) || ends["chat m-small"] != at(6) {
		t.Errorf("%v", ends)
	}
}

// The figures are counted even when nothing is sent, and no goroutine sends it.
func TestFiguresAlone(t *testing.T) {
	r := meter.New(began)
	tell(t, telemetry.Config{Meter: r, Now: clockAfter(began), Provider: func(string) string { return "anthropic" }}, story())
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`dure_sessions_total{dure_session_lane="main",dure_session_start="new"} 1`,
		`dure_sessions_total{dure_session_lane="subagent",dure_session_start="agent"} 1`,
		`dure_tool_calls_total{gen_ai_tool_name="bash",dure_tool_outcome="denied"} 1`,
		`dure_tool_calls_total{gen_ai_tool_name="agent",dure_tool_outcome="pending"} 1`,
		`dure_tokens_total{gen_ai_provider_name="anthropic",gen_ai_request_model="m-1",dure_token_kind="cache_read"} 1000`,
		`dure_cost_usd_total{gen_ai_provider_name="anthropic",gen_ai_request_model="m-1"} 0.003`,
		`dure_model_failures_total{gen_ai_provider_name="anthropic",gen_ai_request_model="m-1",error_type="auth"} 1`,
		`dure_turns_total{gen_ai_agent_name="dure",dure_turn_reason="failed"} 1`,
		`gen_ai_client_token_usage_count{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="m-1",gen_ai_response_model="m-1-0102",gen_ai_token_type="input"} 1`,
		`gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="m-1",gen_ai_response_model="m-1-0102",gen_ai_token_type="input"} 1150`,
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("there is no %s in\n%s", want, b.String())
		}
	}
}

// Questions are counted as long as nobody has answered them, those of before, too; what ends
// without an answer is not waited for any more.
func TestWaiting(t *testing.T) {
	asked := func(id string) agent.Body { return agent.ApprovalAsked{ID: id} }
	for want, bodies := range map[float64][]agent.Body{
		0: {asked("a"), agent.ApprovalResolved{ID: "a"}, agent.ApprovalResolved{ID: "b"}, agent.TurnEnded{Turn: "t"}},
		1: {asked("a"), asked("a"), asked("b"), agent.ApprovalResolved{ID: "b"}},
		2: {asked("x"), agent.TurnEnded{Turn: "t"}, asked("a"), asked("b")},
	} {
		for _, since := range []time.Time{began, began.Add(time.Minute)} {
			r := meter.New(began)
			o := telemetry.New(telemetry.Config{Meter: r, Now: clockAfter(since)})
			reached, goOn := make(chan struct{}), make(chan struct{})
			o.Watch(held{sessions{"s": happened(began, "s", bodies...)}, reached, goOn})
			o.Follow("s", since)
			<-reached
			if got := value(r, "dure.approvals.waiting"); got != want {
				t.Errorf("%d events: %v wait, want %v", len(bodies), got, want)
			}
			close(goOn)
			if err := o.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := value(r, "dure.approvals.waiting"); got != 0 {
				t.Errorf("%v wait when the session has ended", got)
			}
		}
	}
}

// held are sessions that say when all has been read, and go on then.
type held struct {
	sessions
	reached, goOn chan struct{}
}

func (h held) Events(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for e, err := range h.sessions.Events(ctx, id, after) {
			if !yield(e, err) {
				return
			}
		}
		close(h.reached)
		<-h.goOn
	}
}

func value(r *meter.Registry, name string) (v float64) {
	for _, m := range r.Read() {
		for _, s := range m.Series {
			if m.Name == name {
				v += s.Value
			}
		}
	}
	return v
}

// What happened before a session was opened here is told of by nobody, and what is followed
// twice is told of once.
func TestOnce(t *testing.T) {
	r := meter.New(began)
	o := telemetry.New(telemetry.Config{Meter: r, Now: clockAfter(began.Add(time.Second))})
	w := o.Watch(story())
	if _, err := w.Open(t.Context(), agent.Open{Session: "s1"}); err != nil {
		t.Fatal(err)
	}
	o.Follow("s1", began)
	o.Follow("s1", began)
	if err := o.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Read() {
		for _, s := range m.Series {
			if s.Value > 0 && m.Name == "dure.turns" {
				t.Errorf("%s %v", m.Name, s)
			}
		}
	}
	if _, err := w.Open(t.Context(), agent.Open{Session: "s1"}); err != nil { // nobody follows it any more
		t.Fatal(err)
	}
}

func TestGoldensHaveNoContent(t *testing.T) {
	for _, name := range []string{"traces.json", "logs.json", "metrics.json"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil || strings.Contains(string(data), canary) || strings.Contains(string(data), "secret-0815") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
