package cli

import (
	"context"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// readable sees to it that a prompt which is a command names one that works without a
// conversation. Nothing is opened for one that does not.
func (c *CLI) readable(ctx context.Context, o PrintOptions) error {
	if !strings.HasPrefix(o.Prompt, "/") {
		return nil
	}
	r, err := client.Query[query.CommandRead](ctx, c.Client, query.ReadCommand{Workdir: o.Open.Workdir, Text: o.Prompt})
	if err != nil {
		return err
	}
	shown := "/" + text.OneLine(bounded(r.Name))
	p := &agent.Problem{Code: agent.ProblemUsage}
	switch {
	case r.Is == query.ReadSend:
		return nil
	case r.Is == query.ReadRun, r.Kind == query.CommandBuiltIn:
		p.Message = c.Text.Say(text.CommandNotHere, "name", shown)
	case r.Is == query.ReadRefuse:
		p.Message = c.Text.Say(text.CommandOff, "name", shown, "why", text.OneLine(bounded(r.Why)))
	default:
		p.Message = c.Text.Say(text.SlashUnknown, "name", shown)
		if len(r.Near) > 0 {
			p.Fix = c.Text.Say(text.CommandNear, "list", "/"+text.OneLine(strings.Join(r.Near, ", /")))
		}
	}
	return p
}
