package cli

import (
	"testing"

	"dure/agent"
	"dure/internal/frontend/text"
)

func TestToolsLine(t *testing.T) {
	for want, b := range map[string]agent.ToolsChanged{
		"": {Added: []string{"plan__exit"}, Removed: []string{"plan__enter"}},
		"tools: +git/log +Bash ~git/show -weather/now": {
			Added: []string{"mcp__git__log", "bash__exec", "plan__exit"}, Changed: []string{"mcp__git__show"}, Removed: []string{"mcp__weather__now"},
		},
	} {
		if got := toolsLine(text.For("en"), b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := toolsLine(text.For("ko"), agent.ToolsChanged{Added: []string{"mcp__a__b"}}); got != "도구: +a/b" {
		t.Error(got)
	}
}
