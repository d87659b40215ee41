package app

import (
	"context"
	"encoding/json"

	"dure/agent"
	"dure/internal/extend/mcp/connections"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
)

// mentionable are the resources of the servers of a session, see [read.Servers].
type mentionable struct {
	of  func() *connections.Servers
	pol *policy.Policy
	grd *guard.Guard
}

// Addresses implements [read.Servers].
func (m mentionable) Addresses() []string { return m.of().Addresses() }

// Mentioned implements [read.Servers]. The policy is asked as if the model read the resource.
func (m mentionable) Mentioned(readings []string) (name string, says agent.Verdict, ok bool) {
	c := m.of()
	name, server, uri, class, ok := c.Mentioned(readings)
	if !ok {
		return "", "", false
	}
	in, err := json.Marshal(map[string]string{"server": server, "uri": uri})
	if err != nil || c.Barred(m.pol, server, uri) != "" {
		return name, agent.Deny, true
	}
	return name, m.pol.Decide(agent.Proposal{
		Call: agent.Call{ID: "mention", Tool: connections.ReadResource, Input: in}, Class: class, Group: "mcp", Risk: agent.RiskMedium,
	}).Verdict, true
}

// Read implements [read.Servers].
func (m mentionable) Read(ctx context.Context, id, name string) (agent.Result, error) {
	c := m.of()
	server, uri, _ := c.Split(name)
	r, err := c.Read(ctx, server, uri)
	if err != nil {
		return r, err
	}
	spec := agent.Spec{Name: connections.ReadResource, Group: "mcp", Budget: 2 * mention.MaxTotal}
	return m.grd.Check(ctx, spec, agent.Call{ID: id, Tool: spec.Name}, r)
}
