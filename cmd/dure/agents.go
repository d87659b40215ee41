package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// agentsCommand lists, shows, checks and makes types of agents.
func (p *program) agentsCommand() *cobra.Command {
	list := func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error { return c.Agents(ctx, "", asJSON) }
	cmd := p.command("agents", text.HelpAgents, 0, list)
	show := p.command("show NAME", text.HelpAgentsShow, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.AgentsWhich), p.text.Say(text.AgentNamesWhich))
		}
		return c.Agents(ctx, args[0], asJSON)
	})
	show.ValidArgsFunction = p.first(p.agentNames)
	validate := p.command("validate [FILE]...", text.HelpAgentsValidate, 1000, p.validateAgents)
	validate.ValidArgsFunction = nil // files
	cmd.AddCommand(p.command("list", text.HelpAgentsList, 0, list), show, validate, p.newAgentCommand())
	return cmd
}

func (p *program) validateAgents(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
	var list []query.AgentInfo
	for _, path := range args {
		info, err := client.Query[query.AgentInfo](ctx, c.Client, query.CheckAgent{Path: path})
		if err != nil {
			return err
		}
		list = append(list, info)
	}
	if len(args) == 0 {
		var err error
		if list, err = client.Query[[]query.AgentInfo](ctx, c.Client, query.ListAgents{}); err != nil {
			return err
		}
	}
	sound, err := c.CheckedAgents(list, asJSON)
	if err == nil && !sound {
		return &cli.Exited{Code: cli.ExitFailed}
	}
	return err
}

func (p *program) newAgentCommand() *cobra.Command {
	about, ofProject := "", false
	cmd := p.command("new NAME", text.HelpAgentsNew, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.AgentsWhich), "")
		}
		file, err := client.Query[query.AgentFile](ctx, c.Client, query.AddAgent{Name: args[0], Description: about, Project: ofProject})
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(p.out).Encode(file)
		}
		_, err = fmt.Fprintln(p.out, p.text.Say(text.AgentMade, "path", text.OneLine(file.Path)))
		return err
	})
	cmd.Flags().StringVar(&about, "description", "", p.text.Say(text.FlagAgentAbout))
	cmd.Flags().BoolVar(&ofProject, "project", false, p.text.Say(text.FlagAgentProject))
	cmd.Flags().SortFlags = false
	complete(cmd, "description", values())
	return cmd
}

// agentNames are the names of agents that can be used.
func (p *program) agentNames(ctx context.Context) []cobra.Completion {
	return named(ctx, p, query.ListAgents{}, func(info query.AgentInfo) cobra.Completion {
		if info.State != "active" {
			return ""
		}
		return info.Name
	})
}
