package mcpserve

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/internal/frontend/text"
)

// Nothing but a clear yes, of those that were offered, lets a call run.
func TestOnlyAYesAllows(t *testing.T) {
	s := &Server{c: Config{Text: text.For("ko"), Name: func(tool string) string { return tool }}}
	session := []agent.Choice{{Remember: agent.RememberSession, Rules: []string{"Bash(x)"}}}
	for _, tt := range []struct {
		name    string
		content map[string]any
		err     error
		choices []agent.Choice
		want    agent.Verdict
		hold    string
		code    agent.ErrorCode
	}{
		{name: "yes", content: map[string]any{"answer": "allow_once"}, want: agent.Allow},
		{name: "for the session", content: map[string]any{"answer": "allow_session"}, choices: session, want: agent.Allow, hold: agent.RememberSession},
		{name: "for the session, which was not offered", content: map[string]any{"answer": "allow_session"}, want: agent.Deny},
		{name: "always", content: map[string]any{"answer": "allow_always"}, choices: session, want: agent.Deny},
		{name: "no", content: map[string]any{"answer": "deny"}, want: agent.Deny},
		{name: "a list", content: map[string]any{"answer": []any{"allow_once"}}, want: agent.Deny},
		{name: "something else", content: map[string]any{"allow_once": true}, want: agent.Deny},
		{name: "nothing", want: agent.Deny},
		{name: "a failure", content: map[string]any{"answer": "allow_once"}, err: errors.New("gone"), want: agent.Deny},
		{name: "an answer that does not come", err: fmt.Errorf("asking: %w", errNobody), want: agent.Deny, code: agent.ErrApprovalTimeout},
	} {
		p := person{ask: func(context.Context, *mcp.ElicitParams) (map[string]any, error) { return tt.content, tt.err }}
		a := agent.ApprovalAsked{ID: "ap", Choices: tt.choices, Proposal: agent.Proposal{Call: agent.Call{Tool: "bash__exec", Input: []byte(`{"command":"x"}`)}}}
		got := s.approve(t.Context(), p, "mcp:test", a)
		if got.ID != "ap" || got.Decision.Verdict != tt.want || got.Remember != tt.hold || got.Decision.By != "mcp:test" || got.Decision.Code != tt.code {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if got := s.approve(t.Context(), person{}, "mcp", agent.ApprovalAsked{ID: "ap"}); got.Decision.Verdict != agent.Deny {
		t.Errorf("without anybody: %+v", got)
	}
}
