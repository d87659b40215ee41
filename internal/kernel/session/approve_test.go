package session_test

import (
	"strings"
	"testing"

	"dure/agent"
)

// Who answers for a person may say that they did not in time, and nothing else of what
// their no is.
func TestWhatANoIsCalled(t *testing.T) {
	for code, want := range map[agent.ErrorCode]string{
		agent.ErrApprovalTimeout: "E_TOOL_APPROVAL_TIMEOUT", agent.ErrBlockedByHook: "E_TOOL_DENIED", "E_ELSE": "E_TOOL_DENIED",
	} {
		bubble(t, func(t *testing.T) {
			r := newRig(t, say("", call("1", "write", `"1s"`)), say("done"))
			defer r.reg.Shutdown()
			r.allow = false
			s := r.open(agent.Open{Approver: true})
			r.send(s, agent.Prompt{Text: "go"})
			for e := range r.store.Read(t.Context(), s.Info.ID, 0) {
				if a, ok := e.Body.(agent.ApprovalAsked); ok {
					r.send(s, agent.Resolve{ID: a.ID, Decision: agent.Decision{Verdict: agent.Deny, Code: code}})
				}
			}
			settle()
			if log := r.log(s.Info.ID); !strings.Contains(log, "call.finished 1 "+want+"\n") {
				t.Errorf("%s: log:\n%s", code, log)
			}
		})
	}
}
