package view

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
)

// resultOf folds events that come before a prompt and after it.
func resultOf(past, since []agent.Body) *Results {
	r := New("s1", Limits{})
	seq := int64(0)
	apply := func(bodies []agent.Body) {
		for _, b := range bodies {
			seq++
			r.Apply(agent.Event{Seq: seq, Body: b})
		}
	}
	apply(past)
	r.Begin()
	apply(since)
	return r.Results
}

func dollars(d float64) *agent.Money {
	m := agent.Money(d * 1e9)
	return &m
}

func spoke(words string, in, out int, cost *agent.Money) agent.ModelAnswered {
	m := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: words}}}
	return agent.ModelAnswered{
		Answer: agent.Answer{Message: m, Stop: agent.StopEnd, Usage: agent.Usage{Input: in, Output: out}},
		Cost:   cost, Millis: 100, FirstByte: 40,
	}
}

func turnEnd(reason agent.EndReason, in, out int, cost *agent.Money) agent.TurnEnded {
	return agent.TurnEnded{Reason: reason, Steps: 1, Usage: agent.Usage{Input: in, Output: out}, Cost: cost}
}

// What is counted for the session, and what for the turn.
func TestResultCounts(t *testing.T) {
	past := []agent.Body{
		agent.TurnStarted{},
		agent.ModelRequested{Model: "large"},
		spoke("a", 10, 1, dollars(1)), turnEnd(agent.EndDone, 10, 1, dollars(1)),
		agent.ModelRequested{Model: "small", Purpose: "compact"},
		agent.ModelAnswered{Purpose: "compact", Cost: dollars(0.5), Answer: agent.Answer{Usage: agent.Usage{Input: 7}}},
	}
	since := []agent.Body{
		agent.TurnStarted{},
		agent.ModelRequested{Model: "large"},
		spoke("b", 20, 2, dollars(2)),
		agent.ChildEnded{Child: "c", Outcome: agent.Outcome{Cost: dollars(3)}},
		agent.ChildEnded{Child: "c", Outcome: agent.Outcome{Cost: dollars(4)}},
		turnEnd(agent.EndDone, 20, 2, dollars(2)),
	}
	o := resultOf(past, since).Result("")
	o.Describe([]agent.ModelInfo{{ID: "large", Window: 1000, MaxOut: 100, Provider: "p"}})
	got, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "type": "result",
 "subtype": "success",
 "is_error": false,
 "duration_ms": 0,
 "duration_api_ms": 100,
 "ttft_ms": 40,
 "num_turns": 1,
 "result": "b",
 "stop_reason": "end_turn",
 "session_id": "s1",
 "total_cost_usd": 7.5,
 "usage": {
  "input_tokens": 20,
  "output_tokens": 2,
  "cache_read_input_tokens": 0,
  "cache_creation_input_tokens": 0
 },
 "modelUsage": {
  "large": {
   "inputTokens": 30,
   "outputTokens": 3,
   "cacheReadInputTokens": 0,
   "cacheCreationInputTokens": 0,
   "webSearchRequests": 0,
   "costUSD": 3,
   "contextWindow": 1000,
   "maxOutputTokens": 100,
   "provider": "p"
  },
  "small": {
   "inputTokens": 7,
   "outputTokens": 0,
   "cacheReadInputTokens": 0,
   "cacheCreationInputTokens": 0,
   "webSearchRequests": 0,
   "costUSD": 0.5,
   "contextWindow": 0,
   "maxOutputTokens": 0
  }
 },
 "permission_denials": [],
 "terminal_reason": "completed"
}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	since[2] = spoke("b", 20, 2, nil)
	since[5] = turnEnd(agent.EndDone, 20, 2, nil)
	if o := resultOf(past, since).Result(""); o.TotalCostUSD != nil || o.ModelUsage["large"].CostUSD != nil || o.ModelUsage["small"].CostUSD == nil {
		t.Error("a price that is not known was made up")
	}
}

// Calls that were denied, whoever has done it: a rule, a hook, nobody who answers.
func TestResultDenials(t *testing.T) {
	deny := func(id string, d agent.Decision) agent.CallDecided {
		d.Verdict = agent.Deny
		return agent.CallDecided{Proposal: agent.Proposal{Call: agent.Call{ID: id, Tool: "bash__exec", Input: json.RawMessage(`{}`)}}, Decision: d}
	}
	r := resultOf([]agent.Body{deny("old", agent.Decision{})}, []agent.Body{
		deny("rule", agent.Decision{By: "rule"}), deny("hook", agent.Decision{By: "hook:a"}),
		deny("code", agent.Decision{By: "policy", Code: agent.ErrBlockedByHook}), deny("late", agent.Decision{Code: agent.ErrApprovalTimeout}),
	})
	var got []string
	for i, d := range r.Result("").Denials {
		got = append(got, fmt.Sprint(d.ID, " ", r.Denied()[i].Hook))
	}
	if d := cmp.Diff([]string{"rule false", "hook true", "code true", "late false"}, got); d != "" {
		t.Error(d)
	}
}

// How turns end, as programs read it.
func TestResultEnds(t *testing.T) {
	for _, tt := range []struct {
		end  agent.TurnEnded
		want string // subtype, is_error, terminal_reason, result, status
	}{
		{agent.TurnEnded{Reason: agent.EndDone}, "success false completed said 0"},
		{agent.TurnEnded{Reason: agent.EndLimit}, "error_max_turns true max_turns said 0"},
		{agent.TurnEnded{Reason: agent.EndLimit, Problem: agent.ProblemBudget}, "error_max_budget_usd true budget_exhausted said 0"},
		{agent.TurnEnded{Reason: agent.EndFailed, Problem: agent.ProblemForm}, "error_max_structured_output_retries true structured_output_retry_exhausted said 0"},
		{agent.TurnEnded{Reason: agent.EndFailed, Fail: agent.FailServer}, "success true api_error why 529"},
		{agent.TurnEnded{Reason: agent.EndFailed, Fail: agent.FailContext}, "success true prompt_too_long why 529"},
		{agent.TurnEnded{Reason: agent.EndFailed}, "error_during_execution true turn_setup_failed why 0"},
		{agent.TurnEnded{Reason: agent.EndInterrupted}, "error_during_execution true aborted_streaming said 0"},
		{agent.TurnEnded{Reason: agent.EndStopped}, "error_during_execution true hook_stopped said 0"},
		{agent.TurnEnded{Reason: agent.EndRefused}, "success true completed said 0"},
	} {
		o := resultOf(nil, []agent.Body{agent.TurnStarted{}, spoke("said", 1, 1, nil), agent.ModelFailed{Status: 529}, tt.end}).Result("why")
		if got := fmt.Sprint(o.Subtype, " ", o.IsError, " ", o.TerminalReason, " ", o.Result, " ", o.APIErrorStatus); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.end, got, tt.want)
		}
	}
}

// The answer in the form that was asked for is the input of the newest call that came out
// well.
func TestResultFormed(t *testing.T) {
	call := func(id, input string, r agent.Result) []agent.Body {
		r.ID = id
		c := agent.Call{ID: id, Tool: agent.FormTool, Input: json.RawMessage(input)}
		return []agent.Body{agent.CallDecided{Proposal: agent.Proposal{Call: c}, Decision: agent.Decision{Verdict: agent.Allow}}, agent.CallFinished{Tool: agent.FormTool, Result: r}}
	}
	bodies := append(call("c1", `{"n":1}`, agent.OK("")), call("c2", `{"n":2}`, agent.Failure(agent.ErrInput, "", ""))...)
	o := resultOf(nil, append(bodies, agent.TurnEnded{Reason: agent.EndDone})).Result("")
	if string(o.Structured) != `{"n":1}` || o.Result != `{"n":1}` {
		t.Errorf("%s, and as a text %q", o.Structured, o.Result)
	}
	if o := resultOf(bodies, nil).Result(""); o.Structured != nil {
		t.Error("the answer to an earlier prompt is told again")
	}
}
