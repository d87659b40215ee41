package session

import (
	"fmt"
	"testing"

	"dure/agent"
)

// An answer is remembered as the rules that it names, else as those of the choice
// that it takes; one that has neither, and a no, hold for the call alone.
func TestRemembered(t *testing.T) {
	asked := agent.ApprovalAsked{Choices: []agent.Choice{{Remember: "session", Rules: []string{"a"}}, {Remember: "always", Rules: []string{"b"}}}}
	for _, tt := range []struct {
		verdict  agent.Verdict
		remember string
		rules    []string
		want     string
	}{
		{agent.Allow, "session", nil, "session [a]"},
		{agent.Allow, "always", nil, "always [b]"},
		{agent.Allow, "always", []string{"c"}, "always [c]"},
		{agent.Allow, "", []string{"c"}, " []"},
		{agent.Allow, "for ever", []string{"c"}, " []"},
		{agent.Deny, "always", []string{"c"}, " []"},
		{agent.AskUser, "session", nil, " []"},
	} {
		remember, rules := remembered(asked, agent.Resolve{Decision: agent.Decision{Verdict: tt.verdict}, Remember: tt.remember, Rules: tt.rules})
		if got := fmt.Sprint(remember, " ", rules); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt, got, tt.want)
		}
	}
	if remember, _ := remembered(agent.ApprovalAsked{}, agent.Resolve{Decision: agent.Decision{Verdict: agent.Allow}, Remember: "always"}); remember != "" {
		t.Error("an answer without rules is remembered")
	}
}
