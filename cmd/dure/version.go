package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/internal/extend/release"
	"dure/internal/frontend/text"
)

func (p *program) versionCommand() *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use: "version", Short: p.text.Say(text.HelpVersion), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return p.checkVersion(cmd.Context())
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
	a, err := p.open()
	if err != nil {
		return err
	}
	defer a.Close()
	ctx, done := p.signalled(ctx)
	defer done()
	updates := a.Updates()
	newer, err := updates.Look(ctx, true)
	switch {
	case errors.Is(err, release.ErrOff):
		return p.usage(p.text.Say(text.UpdateOff), p.text.Say(text.FixUpdateOff))
	case err != nil && context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil:
		return &agent.Problem{
			Code:    agent.ProblemEndpoint,
			Message: p.text.Say(text.UpdateFailed, "url", updates.Address(), "error", p.text.Phrase(err.Error())),
			Fix:     p.text.Say(text.FixUpdateFailed),
		}
	case p.asJSON:
		_, err = fmt.Fprintf(p.out, `{"version":%q,"newer":%q}`+"\n", version, newer)
		return err
	case newer == "":
		p.say(text.UpdateNone)
	default:
		p.say(text.UpdateNewer, "new", newer, "version", version)
	}
	return nil
}

// lookForUpdate says what the last look for a newer version has found, and looks
// again in the background where the settings want it. done ends that and waits.
func (p *program) lookForUpdate(ctx context.Context) (notice string, done func()) {
	a := p.opened
	if !a.Config().Updates.Check {
		return "", func() {}
	}
	updates := a.Updates()
	if newer := updates.Newer(); newer != "" {
		notice = p.text.Say(text.UpdateNewer, "new", newer, "version", version)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = updates.Look(ctx, false) // what it finds is told at the next start
	}()
	return notice, func() {
		cancel()
		<-ended
	}
}
