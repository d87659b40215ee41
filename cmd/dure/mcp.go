package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/extend/mcp/servers"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// serverFlags are the flags of the commands on servers.
type serverFlags struct {
	scope, transport, clientID string
	env, headers               []string
	port                       int
}

// serversCommand lists and changes the servers of the Model Context Protocol.
func (p *program) serversCommand() *cobra.Command {
	list := func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		return c.Servers(ctx, "", asJSON)
	}
	cmd := p.command("mcp", text.HelpMCP, 0, list)
	cmd.AddCommand(p.command("list", text.HelpMCPList, 0, list))
	cmd.AddCommand(
		p.onServer("get", text.HelpMCPGet, func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
			return c.Servers(ctx, name, asJSON)
		}),
		p.onServer("test", text.HelpMCPTest, p.testServer),
		p.addServerCommand(), p.addJSONCommand(), p.removeServerCommand(), p.signInCommand(), p.signOutCommand(),
		p.onServer("approve", text.HelpMCPApprove, p.changeServer(query.ServerApprove, text.ServerApprovedLater)),
		p.onServer("reject", text.HelpMCPReject, p.changeServer(query.ServerReject, text.ServerRejected)),
		p.onServer("enable", text.HelpMCPEnable, p.changeServer(query.ServerEnable, text.ServerOn)),
		p.onServer("disable", text.HelpMCPDisable, p.changeServer(query.ServerDisable, text.ServerOff)),
		p.command("reset-project-choices", text.HelpMCPReset, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
			n, err := client.Query[int](ctx, c.Client, query.ResetServers{})
			return p.pluginDone(err, asJSON, map[string]int{"forgotten": n}, text.ServersReset, "n", n)
		}),
	)
	cmd.AddCommand(p.mcpServeCommand())
	return cmd
}

// testServer connects a server and shows what it has.
func (p *program) testServer(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
	return tell(ctx, p, c.Client, query.TestServer{Server: name}, asJSON, func(b *strings.Builder, r query.ServerTest) {
		fmt.Fprintln(b, p.text.Say(text.ServerTested, "name", text.OneLine(r.Name), "title", text.ExactLine(r.Title), "protocol", text.OneLine(r.Protocol), "ms", r.Milliseconds))
		for _, part := range []struct {
			head text.Key
			list []query.ServerOffer
		}{{text.ServerTools, r.Tools}, {text.ServerPrompts, r.Prompts}, {text.ServerResources, r.Resources}} {
			if len(part.list) == 0 {
				continue
			}
			fmt.Fprintln(b, p.text.Say(part.head, "n", len(part.list)))
			for _, o := range part.list {
				const longest = 160
				fmt.Fprintln(b, strings.TrimSuffix("  "+text.ExactLine(o.Name)+": "+text.Cut(text.OneLine(o.Description), longest), ": "))
			}
		}
		for _, l := range r.Left {
			fmt.Fprintln(b, "  "+text.ExactLine(l))
		}
	})
}

// onServer makes a command on one server.
func (p *program) onServer(use string, short text.Key, run func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error) *cobra.Command {
	cmd := p.command(use+" NAME", short, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.ServerWhich), "dure mcp list")
		}
		return run(ctx, c, args[0], asJSON)
	})
	cmd.ValidArgsFunction = p.first(p.serverNames)
	return cmd
}

// serverNames are the names of the servers that some source names.
func (p *program) serverNames(ctx context.Context) (names []cobra.Completion) {
	p.quietly(func(c client.Client) {
		r, err := client.Query[query.ServerReport](ctx, c, query.ListServers{})
		if err != nil {
			return
		}
		for _, s := range r.Servers {
			if s.State != "hidden" {
				names = append(names, described(s.Name, text.OneLine(s.Run)))
			}
		}
	})
	return names
}

func (p *program) serverScope(cmd *cobra.Command, f *serverFlags, usual string) {
	cmd.Flags().StringVarP(&f.scope, "scope", "s", usual, p.text.Say(text.FlagMCPScope))
	complete(cmd, "scope", values(servers.Scopes()...))
}

// maxServerWords bounds a command line that is added.
const maxServerWords = 500

func (p *program) addServerCommand() *cobra.Command {
	var f serverFlags
	cmd := p.command("add NAME COMMAND|URL [ARGUMENT...]", text.HelpMCPAdd, maxServerWords, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		raw, err := p.newServer(args, f)
		if err != nil {
			return err
		}
		return p.addServer(ctx, c, f.scope, args[0], raw, asJSON)
	})
	p.serverScope(cmd, &f, servers.Scopes()[0])
	flags := cmd.Flags()
	flags.SetInterspersed(true)
	flags.StringVarP(&f.transport, "transport", "t", "", p.text.Say(text.FlagMCPTransport))
	flags.StringArrayVarP(&f.env, "env", "e", nil, p.text.Say(text.FlagMCPEnv))
	flags.StringArrayVarP(&f.headers, "header", "H", nil, p.text.Say(text.FlagMCPHeader))
	flags.StringVar(&f.clientID, "client-id", "", p.text.Say(text.FlagMCPClientID))
	flags.IntVar(&f.port, "callback-port", 0, p.text.Say(text.FlagMCPPort))
	flags.SortFlags = false
	complete(cmd, "transport", values("stdio", "http", "sse"))
	for _, name := range []string{"env", "header", "client-id", "callback-port"} {
		complete(cmd, name, values())
	}
	return cmd
}

// newServer makes a definition of a command line.
func (p *program) newServer(args []string, f serverFlags) (json.RawMessage, error) {
	if len(args) < 2 {
		return nil, p.usage(p.text.Say(text.ServerAddWhat), p.text.Say(text.FixServerAdd))
	}
	d := map[string]any{}
	remote := f.transport == "http" || f.transport == "sse" ||
		f.transport == "" && (strings.HasPrefix(args[1], "https://") || strings.HasPrefix(args[1], "http://"))
	switch {
	case remote && len(args) > 2, f.transport != "" && f.transport != "stdio" && !remote:
		return nil, p.usage(p.text.Say(text.ServerAddWhat), p.text.Say(text.FixServerAdd))
	case remote:
		d["type"], d["url"] = "http", args[1]
		if f.transport != "" {
			d["type"] = f.transport
		}
	default:
		d["command"], d["args"] = args[1], append([]string{}, args[2:]...)
	}
	env, ok := pairs(f.env, "=")
	if !ok || remote && len(env) > 0 {
		return nil, p.usage(p.text.Say(text.ServerPair, "flag", "--env", "want", "NAME=VALUE"), p.text.Say(text.FixServerAdd))
	}
	headers, ok := pairs(f.headers, ":")
	if !ok || !remote && len(headers) > 0 {
		return nil, p.usage(p.text.Say(text.ServerPair, "flag", "--header", "want", `"Name: value"`), p.text.Say(text.FixServerAdd))
	}
	if len(env) > 0 {
		d["env"] = env
	}
	if len(headers) > 0 {
		d["headers"] = headers
	}
	oauth := map[string]any{}
	if f.clientID != "" {
		oauth["clientId"] = f.clientID
	}
	if f.port != 0 {
		oauth["callbackPort"] = f.port
	}
	if len(oauth) > 0 {
		d["oauth"] = oauth
	}
	return json.Marshal(d)
}

// pairs reads names and values that a sign parts.
func pairs(list []string, sign string) (map[string]string, bool) {
	all := map[string]string{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, sign)
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, false
		}
		if sign == ":" {
			value = strings.TrimSpace(value)
		}
		all[name] = value
	}
	return all, true
}

func (p *program) addJSONCommand() *cobra.Command {
	var f serverFlags
	cmd := p.command("add-json NAME JSON", text.HelpMCPAddJSON, 2, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) < 2 {
			return p.usage(p.text.Say(text.ServerBadJSON), `dure mcp add-json NAME '{"command": "..."}'`)
		}
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(args[1]), &object) != nil {
			return p.usage(p.text.Say(text.ServerBadJSON), `dure mcp add-json NAME '{"command": "..."}'`)
		}
		return p.addServer(ctx, c, f.scope, args[0], json.RawMessage(args[1]), asJSON)
	})
	p.serverScope(cmd, &f, servers.Scopes()[0])
	return cmd
}

func (p *program) addServer(ctx context.Context, c *cli.CLI, scope, name string, raw json.RawMessage, asJSON bool) error {
	change, err := client.Query[query.ServerChange](ctx, c.Client, query.AddServer{Scope: scope, Server: name, Definition: raw})
	said := text.ServerAdded
	if change.Path != "" {
		said = text.ServerAddedIn
	}
	return p.pluginDone(err, asJSON, change, said, "name", name, "scope", p.text.Word("scope."+scope), "path", text.OneLine(change.Path))
}

func (p *program) removeServerCommand() *cobra.Command {
	var f serverFlags
	cmd := p.onServer("remove", text.HelpMCPRemove, func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
		change, err := client.Query[query.ServerChange](ctx, c.Client, query.RemoveServer{Scope: f.scope, Server: name})
		return p.pluginDone(err, asJSON, change, text.ServerRemoved, "name", text.OneLine(name), "scope", p.text.Word("scope."+change.Scope))
	})
	p.serverScope(cmd, &f, "")
	return cmd
}

// changeServer returns what decides on a server, and says so.
func (p *program) changeServer(do string, said text.Key) func(context.Context, *cli.CLI, string, bool) error {
	return func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
		info, err := client.Query[query.ServerInfo](ctx, c.Client, query.ChangeServer{Server: name, Do: do})
		if said == text.ServerApprovedLater && info.State == "ready" {
			said = text.ServerApproved
		}
		return p.pluginDone(err, asJSON, info, said, "name", text.OneLine(name), "run", text.ExactLine(info.Run), "state", p.text.Word("server."+info.State))
	}
}
