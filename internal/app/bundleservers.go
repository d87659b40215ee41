package app

import (
	"context"
	"encoding/json"
	"fmt"

	"dure/agent"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/extend/mcp"
	"dure/internal/tools/kit"
)

// usableServer says why tools of a bundle cannot be those of a server; nil = they can.
func (a *App) usableServer(dir, tool, name string) error {
	why, fix := a.servers.ForBundle(dir, name)
	if why == "" {
		return nil
	}
	return &agent.Problem{Code: agent.ProblemBundle, Message: fmt.Sprintf("%s is of the server %s: %s", tool, kit.Clip(name), why), Fix: fix}
}

// serverTool finds a tool of a server, as a session has it: what says something else of itself
// than when it was first seen is not there until somebody agrees.
func (a *App) serverTool(ctx context.Context, p swarms.Place, server, tool string) (*mcp.Tool, error) {
	t, err := a.servers.Of(p.ID).Tool(ctx, server, tool, p.Catalog)
	if err != nil {
		return nil, &agent.ToolError{Code: agent.ErrMCPUnavailable, Message: err.Error(), Suggestion: "dure mcp get " + server + " says how it stands with the server."}
	}
	return t, nil
}

// invokeServer calls a tool of a server for one of a bundle.
func (a *App) invokeServer(ctx context.Context, p swarms.Place, server, tool string, input json.RawMessage) (agent.Result, error) {
	t, err := a.serverTool(ctx, p, server, tool)
	if err != nil {
		return agent.Result{}, err
	}
	return t.Run(ctx, agent.ToolContext{}, agent.Call{Tool: tool, Input: input})
}

// serverAsks reports whether no mode allows a tool of a server without the person.
func (a *App) serverAsks(ctx context.Context, p swarms.Place, server, tool string) (bool, error) {
	t, err := a.serverTool(ctx, p, server, tool)
	return err == nil && t.Traits().Asks, err
}
