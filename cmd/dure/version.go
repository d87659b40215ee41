package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

func (p *program) versionCommand() *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use: "version", Short: p.text.Say(text.HelpVersion), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return p.with(func(*cli.CLI) error { return p.checkVersion(cmd.Context()) })
			}
			return p.printVersion(p.asJSON)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, p.text.Say(text.FlagCheck))
	p.jsonFlag(cmd)
	return cmd
}

// checkVersion asks for the newest version, and says whether this is it.
func (p *program) checkVersion(ctx context.Context) error {
	ctx, done := p.signalled(ctx)
	defer done()
	u, err := client.Query[query.Update](ctx, p.client(), query.FindUpdate{Now: true})
	switch {
	case err != nil:
		return err
	case u.Off:
		return p.usage(p.text.Say(text.UpdateOff), p.text.Say(text.FixUpdateOff))
	case u.Error != "":
		return &agent.Problem{
			Code:    agent.ProblemEndpoint,
			Message: p.text.Say(text.UpdateFailed, "url", u.URL, "error", p.text.Phrase(u.Error)),
			Fix:     p.text.Say(text.FixUpdateFailed),
		}
	case p.asJSON:
		_, err = fmt.Fprintf(p.out, `{"version":%q,"newer":%q}`+"\n", u.Version, u.Newer)
		return err
	case u.Newer == "":
		p.say(text.UpdateNone)
	default:
		p.say(text.UpdateNewer, "new", u.Newer, "version", u.Version)
	}
	return nil
}

// lookForUpdate says what the last look for a newer version has found, and looks
// again in the background where the settings want it. done ends that and waits.
func (p *program) lookForUpdate(ctx context.Context) (notice string, done func()) {
	c := p.client()
	u, err := client.Query[query.Update](ctx, c, query.FindUpdate{Known: true})
	if u.Newer != "" {
		notice = p.text.Say(text.UpdateNewer, "new", u.Newer, "version", u.Version)
	}
	if err != nil || u.Off {
		return notice, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = client.Query[query.Update](ctx, c, query.FindUpdate{}) // what it finds is told at the next start
	}()
	return notice, func() {
		cancel()
		<-ended
	}
}
