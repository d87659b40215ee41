package mcp

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
)

// Servers are told the key of a call and its place in the traces, and nothing else of what
// its processes have.
func TestMeta(t *testing.T) {
	const place = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, tt := range []struct {
		env  agent.CallEnv
		want sdk.Meta
	}{
		{agent.CallEnv{}, sdk.Meta{}},
		{agent.CallEnv{Key: "k", Vars: []string{"HOME=/x", "SECRET=y"}}, sdk.Meta{keyMeta: "k"}},
		{
			agent.CallEnv{Key: "k", Vars: []string{"TRACEPARENT=" + place, "TRACESTATE=a=1,b=2", "traceparent=x"}},
			sdk.Meta{keyMeta: "k", "traceparent": place, "tracestate": "a=1,b=2"},
		},
	} {
		if d := cmp.Diff(tt.want, metaOf(tt.env)); d != "" {
			t.Error(d)
		}
	}
}
