package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dure/internal/extend/oauth"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// signInCommand signs in to a server, and waits for the person.
func (p *program) signInCommand() *cobra.Command {
	answer := ""
	cmd := p.onServer("login", text.HelpMCPLogin, func(ctx context.Context, _ *cli.CLI, name string, asJSON bool) error {
		var err error
		if answer != "" {
			err = p.opened.AnswerSignIn(ctx, name, answer)
		} else {
			err = p.opened.SignIn(ctx, name, func(q oauth.Needed) error { return p.showSignIn(name, q, asJSON) })
		}
		return p.pluginDone(err, asJSON, map[string]string{"status": "ready", "name": name}, text.SignInDone, "name", text.OneLine(name))
	})
	cmd.Flags().StringVar(&answer, "answer", "", p.text.Say(text.FlagAnswer))
	complete(cmd, "answer", values())
	return cmd
}

// showSignIn tells what a person has to do, before it is waited for.
func (p *program) showSignIn(name string, q oauth.Needed, asJSON bool) error {
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
	return p.onServer("logout", text.HelpMCPLogout, func(ctx context.Context, _ *cli.CLI, name string, asJSON bool) error {
		err := p.opened.SignOut(ctx, name)
		return p.pluginDone(err, asJSON, map[string]string{"status": "signed_out", "name": name}, text.SignedOut, "name", text.OneLine(name))
	})
}
