package sdk

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
)

// These messages are as the packages declare them.
func TestProgressMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.request("i", `{"subtype":"initialize"}`)
		d.next("control_response")
		denied := agent.Proposal{Call: agent.Call{ID: "c1", Tool: "Bash", Input: json.RawMessage(`{"command":"rm x"}`)}}
		asked := agent.Proposal{Call: agent.Call{ID: "c2", Tool: "Write"}}
		no := agent.Decision{Verdict: agent.Deny, Reason: "no", By: "rule", Rule: "Bash(rm *)"}
		result := func(id string) agent.CallFinished {
			return agent.CallFinished{Tool: "Bash", Result: agent.Result{ID: id, Status: agent.StatusError, Text: "it is denied", Error: &agent.ToolError{Code: agent.ErrDenied, Message: "no"}}}
		}
		d.w.emit(
			agent.TurnStarted{Turn: "t"}, agent.CallDecided{Proposal: denied, Decision: no, Key: "k1"}, result("c1"),
			agent.ApprovalAsked{ID: "a", Proposal: asked}, agent.ApprovalResolved{ID: "a", Decision: agent.Decision{Verdict: agent.Deny}},
			agent.CallDecided{Proposal: asked, Decision: agent.Decision{Verdict: agent.Deny, By: "host"}, Key: "k2"}, result("c2"),
			agent.CallStarted{ID: "c3", Tool: "Bash", Key: "k3"},
		)
		var got []string
		for len(got) < 2 {
			line, err := d.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, `"permission_denied"`) || strings.Contains(line, `"tool_progress"`) {
				got = append(got, regexp.MustCompile(`"(uuid|session_id)":"[^"]*",`).ReplaceAllString(strings.TrimSpace(line), ""))
			}
		}
		want := []string{
			`{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"c1","decision_reason_type":"rule","decision_reason":"no","message":"it is denied"}`,
			`{"type":"tool_progress","tool_use_id":"c3","tool_name":"Bash","parent_tool_use_id":null,"elapsed_time_seconds":946684810}`,
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s\nwant %s", got[i], want[i])
			}
		}
		d.w.emit(result("c3"), agent.TurnEnded{Turn: "t", Reason: agent.EndDone})
		d.next("result")
	})
}

// A hook that runs for long is told of until it is over; of others than those of the beginning,
// only who has asked for it is told.
func TestHookProgress(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t)
			d.h.c.Hooks = wanted // nothing has begun
			d.request("i", `{"subtype":"initialize"}`)
			d.next("control_response")
			one := 1
			d.w.emit(agent.HookStarted{Run: "r1", Event: "SessionStart", Hook: "begin"}, agent.HookStarted{Run: "r2", Event: "PreToolUse", Hook: "look"})
			synctest.Wait()
			time.Sleep(beatEvery + time.Second)
			synctest.Wait()
			d.w.emit(
				agent.HookRan{Run: "r2", Event: "PreToolUse", Hook: "look", Outcome: agent.HookBlocked, Reason: "not you", Exit: &one},
				agent.HookRan{Run: "r1", Event: "SessionStart", Hook: "begin", Outcome: agent.HookPassed, Context: "welcome"},
				agent.TurnStarted{Turn: "t"}, agent.TurnEnded{Turn: "t", Reason: agent.EndDone},
			)
			var got []string
			for {
				line, err := d.out.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(line, `"result"`) {
					break
				}
				if strings.Contains(line, `"subtype":"hook_`) {
					got = append(got, regexp.MustCompile(`"(uuid|session_id)":"[^"]*",`).ReplaceAllString(strings.TrimSpace(line), ""))
				}
			}
			begin, look := `"hook_id":"r1","hook_name":"SessionStart:begin","hook_event":"SessionStart"`, `"hook_id":"r2","hook_name":"PreToolUse:look","hook_event":"PreToolUse"`
			nothing := `,"stdout":"","stderr":"","output":""}`
			want := []string{
				`{"type":"system","subtype":"hook_started",` + begin + `}`,
				`{"type":"system","subtype":"hook_progress",` + begin + nothing,
				`{"type":"system","subtype":"hook_response",` + begin + `,"stdout":"welcome","stderr":"","output":"welcome","outcome":"success"}`,
			}
			if wanted {
				want = append(want,
					`{"type":"system","subtype":"hook_started",`+look+`}`,
					`{"type":"system","subtype":"hook_progress",`+look+nothing,
					`{"type":"system","subtype":"hook_response",`+look+`,"stdout":"","stderr":"not you","output":"not you","exit_code":1,"outcome":"error"}`,
				)
			}
			slices.Sort(got) // the two run beside each other
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%v:\n%s\nwant\n%s", wanted, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// A conversation that cannot be shortened stays as it is, and the host reads why; the next
// message comes behind that.
func TestCompactOfAHost(t *testing.T) {
	d := newDesk(t)
	d.say(`{"type":"user","message":{"role":"user","content":"/compact the plan"}}`)
	d.say(`{"type":"user","message":{"role":"user","content":"/compacted"}}`)
	if c, ok := d.commands(1)[0].(agent.Compact); !ok || c.Focus != "the plan" {
		t.Fatalf("%+v", d.commands(1))
	}
	d.w.emit(agent.Note{Code: "memory", Text: "other"}, agent.Note{Level: "info", Text: "the conversation is short already"})
	var r struct {
		Subtype string
		Result  string
		Turns   int  `json:"num_turns"`
		Wrong   bool `json:"is_error"`
	}
	data, err := json.Marshal(d.next("result"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || r.Subtype != "success" || r.Wrong || r.Turns != 0 || r.Result != "the conversation is short already" {
		t.Errorf("%s, %v", data, err)
	}
	if p, ok := d.commands(2)[1].(agent.Prompt); !ok || p.Text != "/compacted" {
		t.Errorf("%+v", d.commands(2))
	}
	id := d.commands(2)[1].(agent.Prompt).ID
	d.w.emit(agent.InputAdded{Input: id, Text: "x"}, agent.TurnStarted{Turn: "t"}, agent.TurnEnded{Turn: "t", Reason: agent.EndDone})
	d.next("result")

	// Who gives up waiting for it is answered.
	d.say(`{"type":"user","message":{"role":"user","content":"/compact"}}`)
	d.commands(3)
	d.request("n", `{"subtype":"interrupt"}`)
	if words := string(d.next("result")["result"]); !strings.Contains(words, "interrupt") {
		t.Error(words)
	}
}

// What is to be kept of a conversation may begin on a line of its own.
func TestCompactsFor(t *testing.T) {
	for words, want := range map[string]string{"/compact": "", " /compact\nthe plan ": "the plan", "/compact\tall of it": "all of it", "/compact a\nb": "a\nb"} {
		if focus, ok := compactsFor(message{Text: words}); !ok || focus != want {
			t.Errorf("%q: %q, %v", words, focus, ok)
		}
	}
	for _, words := range []string{"/compacted", "/compact-it now", "compact", "see /compact"} {
		if _, ok := compactsFor(message{Text: words}); ok {
			t.Errorf("%q is one", words)
		}
	}
}
