package policy

import (
	"encoding/json"
	"testing"

	"dure/agent"
	"dure/internal/tools/catalog"
)

// What a rule says of a call that cannot be read, its name decides.
func TestFits(t *testing.T) {
	t.Parallel()
	fits := Fits("/w", "", catalog.New(catalog.Config{Dialect: "claude"}).Canonical)
	for _, tt := range []struct {
		rule, tool string
		want       bool
	}{
		{"Bash(rm *)", "bash__exec", true},
		{"bash__exec", "bash__exec", true},
		{"*", "bash__exec", true},
		{"Read", "bash__exec", false},
		{"mcp__a__*", "mcp__a__b", true},
		{"mcp__a", "mcp__a__b", true},
		{"mcp__c__*", "mcp__a__b", false},
	} {
		p := agent.Proposal{Call: agent.Call{Tool: tt.tool, Input: json.RawMessage(`{}`)}, Effects: agent.Effects{Unreadable: "nobody knows"}}
		if got := fits(tt.rule, p); got != tt.want {
			t.Errorf("%s fits %s: %v", tt.rule, tt.tool, got)
		}
	}
}
