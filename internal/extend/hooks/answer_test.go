package hooks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"dure/agent"
)

// line is an answer in one line: what is not as usual.
func line(a Answer) string {
	var w []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			w = append(w, fmt.Sprintf(format, args...))
		}
	}
	add(true, "%s", a.Outcome)
	add(a.Verdict != "", "verdict %s", a.Verdict)
	add(a.Defer, "defer")
	add(a.Block, "block")
	add(a.Reason != "", "reason %q", a.Reason)
	add(a.Stop, "stop %q", a.Because)
	add(a.Context != "", "context %q", a.Context)
	add(a.Message != "", "message %q", a.Message)
	add(a.Input != nil, "input %s", a.Input)
	add(a.Output != nil, "output %s", a.Output)
	add(a.Grants != nil, "grants %s", a.Grants)
	add(a.Interrupt, "interrupt")
	add(a.Watch != nil, "watch %v", a.Watch)
	add(a.Title != "", "title %q", a.Title)
	add(a.First != "", "first %q", a.First)
	add(a.Path != "", "path %s", a.Path)
	add(a.Action != "", "action %s", a.Action)
	add(a.Async, "async")
	add(a.Bell != "", "bell %q", a.Bell)
	add(len(a.Warn) > 0, "warn %s", strings.Join(a.Warn, "; "))
	add(a.Invalid != "", "invalid %s", a.Invalid)
	return strings.Join(w, ", ")
}

// Each case is a reply to an event, and what it means.
func TestAnswers(t *testing.T) {
	const allow = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"fine"}}`
	for _, tt := range []struct {
		event Event
		exit  int
		out   string
		err   string
		want  string
	}{
		{PreToolUse, 0, "", "", "passed"},
		{PreToolUse, 0, "just words", "", "passed"},
		{PreToolUse, 0, allow, "", `passed, verdict allow, reason "fine"`},
		{PreToolUse, 7, allow, "", `passed, verdict allow, reason "fine"`},
		{PreToolUse, 2, allow, "no", `blocked, verdict deny, block, reason "no"`},
		{PreToolUse, 2, `{"decision":"block","reason":"why"}`, "no", `blocked, verdict deny, block, reason "why"`},
		{PreToolUse, 0, `{"decision":"block","reason":"why","systemMessage":7}`, "", "failed, invalid systemMessage has to be a text"},
		{PreToolUse, 0, `{"decision":"allow"}`, "", `failed, invalid decision is "allow": it has to be approve or block`},
		{PermissionRequest, 0, `{"decision":"approve"}`, "", "passed"},
		{PostToolUse, 0, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedInput":{"a":1}}}`, "", "passed, warn updatedInput is no field of hookSpecificOutput at PostToolUse, and does nothing"},
		{SessionStart, 0, `{"hookSpecificOutput":{"hookEventName":"SessionStart","permissionDecision":"allow"}}`, "", "passed, warn permissionDecision is no field of hookSpecificOutput at SessionStart, and does nothing"},
		{SessionEnd, 0, `{"systemMessage":"bye","continue":false}`, "", "passed"},
		{SessionEnd, 2, "", "bye", `passed, message "bye"`},
		{Elicitation, 0, `{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"maybe"}}`, "", `failed, invalid action is "maybe": it has to be accept, decline or cancel`},
		{PreToolUse, 2, "", "not that", `blocked, verdict deny, block, reason "not that"`},
		{PreToolUse, 2, "", "", `blocked, verdict deny, block, reason "exit code 2"`},
		{PreToolUse, 1, "", "oops\nmore", "failed, invalid Failed with non-blocking status code: oops"},
		{PreToolUse, 127, "", "", "failed, invalid Failed with non-blocking status code: exit code 127"},
		{PreToolUse, 0, `{"decision":"block","reason":"old form"}`, "", `blocked, verdict deny, block, reason "old form"`},
		{PreToolUse, 0, `{"decision":"approve"}`, "", "passed, verdict allow"},
		{PreToolUse, 0, `{"decision":"perhaps"}`, "", `failed, invalid decision is "perhaps": it has to be approve or block`},
		{PreToolUse, 2, `{"decision":"perhaps"}`, "stderr", `blocked, verdict deny, block, reason "stderr", invalid decision is "perhaps": it has to be approve or block`},
		{PreToolUse, 0, `{"permissionDecision":"deny"}`, "", "passed, warn permissionDecision does nothing there: put it into hookSpecificOutput"},
		{PreToolUse, 0, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"r"}}`, "", `blocked, verdict deny, reason "r"`},
		{PreToolUse, 0, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}`, "", "passed, verdict ask"},
		{PreToolUse, 0, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}`, "", "passed, defer"},
		{PreToolUse, 0, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls"}}}`, "", `passed, input {"command":"ls"}`},
		{PreToolUse, 0, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":"ls"}}`, "", "failed, invalid updatedInput has to be an object"},
		{PreToolUse, 0, `{"hookSpecificOutput":{"permissionDecision":"deny"}}`, "", "failed, invalid hookSpecificOutput has no hookEventName"},
		{PreToolUse, 0, `{"hookSpecificOutput":{"hookEventName":"Stop"}}`, "", "failed, invalid hookSpecificOutput is for Stop, and the event is PreToolUse"},
		{PreToolUse, 0, `{"continue":false,"stopReason":"enough"}`, "", `passed, stop "enough"`},
		{PreToolUse, 0, `{"systemMessage":"hello","suppressOutput":true}`, "", `passed, message "hello"`},
		{PreToolUse, 0, `{"systemMessage":7}`, "", "failed, invalid systemMessage has to be a text"},
		{PreToolUse, 0, `{"async":true,"asyncTimeout":5}`, "", "passed"},
		{PreToolUse, 0, `{broken`, "", "passed"},
		{PreToolUse, 0, `[1]`, "", "passed"},
		{PreToolUse, 0, `{"terminalSequence":"\u001b]0;title\u0007\u0007\u001b[2J"}`, "", `passed, bell "\x1b]0;title\a\a", warn what is no title, notice or bell in terminalSequence does not reach a terminal`},
		{PreToolUse, 0, `{"terminalSequence":"\u001b]52;c;eA==\u0007"}`, "", "passed, warn what is no title, notice or bell in terminalSequence does not reach a terminal"},
		{UserPromptSubmit, 0, "look at this", "", `passed, context "look at this"`},
		{UserPromptSubmit, 1, "look at this", "", "failed, invalid Failed with non-blocking status code: exit code 1"},
		{UserPromptSubmit, 2, "", "no", `blocked, verdict deny, block, reason "no"`},
		{UserPromptSubmit, 0, `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"c","sessionTitle":"t"}}`, "", `passed, context "c", title "t"`},
		{SessionStart, 0, "plain", "", `passed, context "plain"`},
		{SessionStart, 2, "", "for the user", `passed, message "for the user"`},
		{SessionStart, 0, `{"hookSpecificOutput":{"hookEventName":"SessionStart","watchPaths":["a"],"initialUserMessage":"go"}}`, "", `passed, watch [a], first "go"`},
		{PermissionRequest, 2, "", "no", `passed, message "no"`},
		{PermissionRequest, 0, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{"a":1},"updatedPermissions":[]}}}`, "", `passed, verdict allow, input {"a":1}, grants []`},
		{PermissionRequest, 0, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"m","interrupt":true}}}`, "", `blocked, verdict deny, reason "m", interrupt`},
		{PostToolUse, 2, "", "look", `blocked, verdict deny, block, reason "look"`},
		{PostToolUse, 0, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"x":1}}}`, "", `passed, output {"x":1}`},
		{Stop, 0, `{"decision":"block","reason":"more"}`, "", `blocked, verdict deny, block, reason "more"`},
		{Stop, 0, `{"decision":"block"}`, "", "failed, invalid decision is block, and there is no reason that the model could go on with"},
		{Stop, 2, "", "tests fail", `blocked, verdict deny, block, reason "tests fail"`},
		{Notification, 2, "", "x", `passed, message "x"`},
		{Notification, 0, `{"decision":"block","reason":"r"}`, "", "passed, warn Notification cannot be blocked: decision does nothing"},
		{WorktreeCreate, 0, "\x1b[32mcreating\x1b[0m\n\x1b[1m/w/tree\x1b[0m\n\n", "", "passed, path /w/tree"},
		{WorktreeCreate, 1, "", "no room", `blocked, verdict deny, block, reason "no room"`},
		{Elicitation, 0, `{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"decline"}}`, "", "passed, action decline"},
	} {
		a := read(tt.event, reply{exit: tt.exit, out: tt.out, err: tt.err})
		if got := line(a); got != tt.want {
			t.Errorf("%s, exit %d, %q, %q:\n%s, want\n%s", tt.event, tt.exit, tt.out, tt.err, got, tt.want)
		}
	}
}

func TestAnswersOfServersAndModels(t *testing.T) {
	for out, want := range map[string]string{
		"":                                  "passed",
		`{"decision":"block","reason":"r"}`: `blocked, verdict deny, block, reason "r"`,
		"<html>":                            "failed, invalid the answer is no JSON object",
	} {
		if got := line(read(PreToolUse, reply{out: out, server: true})); got != want {
			t.Errorf("%q: %s, want %s", out, got, want)
		}
	}
	for _, tt := range []struct {
		event Event
		hook  Hook
		text  string
		want  string
	}{
		{PreToolUse, Hook{Type: Prompt}, `{"ok":true}`, "passed"},
		{PreToolUse, Hook{Type: Prompt}, "```json\n{\"ok\":false,\"reason\":\"r\"}\n```", `blocked, verdict deny, block, reason "r", stop "r"`},
		{PreToolUse, Hook{Type: Prompt, GoOn: true}, `{"ok":false}`, `blocked, verdict deny, block, reason "a hook has said no"`},
		{PreToolUse, Hook{Type: Agent}, `{"ok":false,"reason":"r"}`, `blocked, verdict deny, block, reason "r"`},
		{Stop, Hook{Type: Prompt}, `{"ok":false,"reason":"go on"}`, `blocked, verdict deny, block, reason "go on"`},
		{Stop, Hook{Type: Prompt}, `{"ok":false,"reason":"go on","impossible":true}`, "passed"},
		{PermissionRequest, Hook{Type: Prompt}, `{"ok":false}`, "passed"},
		{PreToolUse, Hook{Type: Prompt}, "I would block that", `failed, invalid the model did not answer with {"ok": true} or {"ok": false, "reason": "..."}`},
	} {
		a := Answer{Outcome: agent.HookPassed}
		a.verdict(tt.event, tt.hook, tt.text)
		if got := line(a); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.event, tt.text, got, tt.want)
		}
	}
}

// Several answers make one: deny before defer before ask before allow, and a stop before
// all of them.
func TestOutcomes(t *testing.T) {
	in := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, tt := range []struct {
		name    string
		answers []Answer
		want    string
	}{
		{"none", nil, " "},
		{"allow and ask", []Answer{{Verdict: agent.Allow, Reason: "a"}, {Verdict: agent.AskUser, Reason: "b"}}, "ask b"},
		{"ask and defer", []Answer{{Defer: true, Reason: "later"}, {Verdict: agent.AskUser}}, " later defer"},
		{"defer and deny", []Answer{{Defer: true}, {Verdict: agent.Deny, Block: true, Reason: "no"}}, "deny no block"},
		{"two denials", []Answer{{Verdict: agent.Deny, Reason: "no"}, {Verdict: agent.Deny, Reason: "never"}, {Verdict: agent.Deny, Reason: "no"}}, "deny no; never"},
		{"stop", []Answer{{Verdict: agent.Allow}, {Stop: true, Because: "enough"}}, "allow  stop enough"},
		{"the last input", []Answer{{Input: in(`{"a":1}`)}, {Input: in(`{"a":2}`)}, {}}, `  {"a":2}`},
		{"watching", []Answer{{Watch: []string{"a"}}, {Watch: []string{"b"}}}, "  [a b]"},
	} {
		var o Outcome
		for _, a := range tt.answers {
			o.add("command x", a)
		}
		got := string(o.Verdict) + " " + strings.Join(o.Reasons, "; ")
		for _, w := range []struct {
			ok   bool
			text string
		}{{o.Defer, "defer"}, {o.Block, "block"}, {o.Stop, "stop " + o.Because}, {o.Input != nil, string(o.Input)}, {o.Watch != nil, fmt.Sprint(o.Watch)}} {
			if w.ok {
				got += " " + w.text
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// What a failing hook means is for its definition to say, where anything can be blocked.
func TestFailures(t *testing.T) {
	failed := Answer{Outcome: agent.HookFailed, Invalid: "x"}
	for _, tt := range []struct {
		event Event
		hook  Hook
		a     Answer
		want  bool
	}{
		{PreToolUse, Hook{}, failed, false},
		{PreToolUse, Hook{Block: true}, failed, true},
		{PreToolUse, Hook{Block: true}, Answer{Outcome: agent.HookTimedOut}, true},
		{PreToolUse, Hook{Block: true, Async: true}, failed, false},
		{PreToolUse, Hook{Block: true}, Answer{Outcome: agent.HookCancelled}, false},
		{Stop, Hook{Block: true}, failed, false},
		{Notification, Hook{Block: true}, failed, false},
		{PreModelSwitch, Hook{}, Answer{Outcome: agent.HookTimedOut}, true},
		{PreModelSwitch, Hook{}, failed, false},
	} {
		if got := tt.hook.failing(tt.event, tt.a); got.Block != tt.want {
			t.Errorf("%s %+v %s: %v", tt.event, tt.hook.Block, tt.a.Outcome, got.Block)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		hook Hook
		env  time.Duration
		want time.Duration
	}{
		{Hook{}, 0, closingLimit},
		{Hook{Timeout: 10 * time.Second}, 0, 10 * time.Second},
		{Hook{Timeout: 90 * time.Second}, 0, closingMost},
		{Hook{Timeout: 30 * time.Second, Source: Source{Layer: "plugin"}}, 0, closingLimit},
		{Hook{Timeout: 30 * time.Second}, 3 * time.Second, 3 * time.Second},
	} {
		s := New(Config{Closing: tt.env})
		if got := s.closing([]choice{{hook: tt.hook}}); got != tt.want {
			t.Errorf("end of a session with %v of %s and %v: %v, want %v", tt.hook.Timeout, tt.hook.Source, tt.env, got, tt.want)
		}
	}
	for _, tt := range []struct {
		hook Hook
		want time.Duration
	}{
		{Hook{Event: UserPromptSubmit, Type: Command}, 30 * time.Second},
		{Hook{Event: UserPromptSubmit, Type: Command, Async: true}, 600 * time.Second},
		{Hook{Event: UserPromptSubmit, Type: Agent}, 60 * time.Second},
		{Hook{Event: PreToolUse, Type: Prompt}, 30 * time.Second},
		{Hook{Event: MessageDisplay, Type: HTTP}, 10 * time.Second},
		{Hook{Event: PreModelSwitch, Type: Command}, 30 * time.Second},
		{Hook{Event: Stop, Type: MCPTool}, 600 * time.Second},
		{Hook{Event: Stop, Type: Command, Timeout: time.Second}, time.Second},
	} {
		if got := tt.hook.Limit(); got != tt.want {
			t.Errorf("%s %s: %v, want %v", tt.hook.Event, tt.hook.Type, got, tt.want)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add("PreToolUse", 0, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`, "")
	f.Add("PermissionRequest", 2, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`, "x")
	f.Fuzz(func(t *testing.T, event string, exit int, out, err string) {
		e, ok := EventOf(event)
		if !ok {
			return
		}
		a := read(e, reply{exit: exit, out: out, err: err})
		if exit == 2 && kinds[e].blocks != never && !a.Block {
			t.Errorf("exit code 2 does not block: %+v", a)
		}
		if a.Block && a.Verdict == agent.Allow {
			t.Errorf("blocked and allowed: %+v", a)
		}
	})
}

// Of a header only the variables that a hook may have stand for something; a dollar
// alone is one.
func TestHeaders(t *testing.T) {
	s := New(Config{Var: func(name string) (string, bool) { return "<" + name + ">\r\n", true }})
	defer s.Close()
	h := Hook{Vars: []string{"A", "B_2"}}
	for v, want := range map[string]string{
		"Bearer $A": "Bearer <A>", "${B_2}x": "<B_2>x", "$C${D}.": ".", "a$$-$1 $": "a$$-$1 $", "${A": "${A", "$A$A": "<A><A>",
	} {
		if got := s.filled(h, v); got != want {
			t.Errorf("%s is %q, want %q", v, got, want)
		}
	}
}
