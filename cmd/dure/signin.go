package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// signInCommand signs in to a server, and waits for the person.
func (p *program) signInCommand() *cobra.Command {
	answer := ""
	cmd := p.onServer("login", text.HelpMCPLogin, func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
		q := query.SignIn{Server: name, Answer: answer}
		s, err := client.Query[query.SignInState](ctx, c.Client, q)
		if err == nil && s.SignInRequired != nil {
			if err = p.showSignIn(name, s, asJSON); err != nil {
				return err
			}
			q.Await = s.AuthSession
			_, err = client.Query[query.SignInState](ctx, c.Client, q)
		}
		return p.pluginDone(err, asJSON, map[string]string{"status": "ready", "name": name}, text.SignInDone, "name", text.OneLine(name))
	})
	cmd.Flags().StringVar(&answer, "answer", "", p.text.Say(text.FlagAnswer))
	complete(cmd, "answer", values())
	localAs("servers.login", cmd)
	return cmd
}

// showSignIn tells what a person has to do, before it is waited for.
func (p *program) showSignIn(name string, q query.SignInState, asJSON bool) error {
	if asJSON {
		return p.encode(q)
	}
	then := p.text.Say(text.SignInWait, "name", text.OneLine(name))
	if q.UserCode != "" {
		then = p.text.Say(text.SignInCode, "code", text.OneLine(q.UserCode))
	}
	_, err := fmt.Fprintf(p.out, "%s\n%s\n", p.text.Say(text.SignInOpen, "url", text.Exact(q.URL)), then)
	return err
}

func (p *program) signOutCommand() *cobra.Command {
	return p.onServer("logout", text.HelpMCPLogout, func(ctx context.Context, c *cli.CLI, name string, asJSON bool) error {
		_, err := client.Query[query.SignInState](ctx, c.Client, query.SignOut{Server: name})
		return p.pluginDone(err, asJSON, map[string]string{"status": "signed_out", "name": name}, text.SignedOut, "name", text.OneLine(name))
	})
}
