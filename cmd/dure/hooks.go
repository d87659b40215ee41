package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/extend/hooks"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// hooksCommand shows and tries what runs at the moments of a session.
func (p *program) hooksCommand() *cobra.Command {
	list := func(use string, short text.Key) *cobra.Command {
		cmd := p.command(use+" [EVENT]", short, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
			event, err := p.hookEvent(strings.Join(args, ""))
			if err != nil {
				return err
			}
			return c.Hooks(ctx, event, asJSON)
		})
		cmd.ValidArgsFunction = p.first(values(hookEvents()...))
		return cmd
	}
	cmd := list("hooks", text.HelpHooks)
	events := p.command("events", text.HelpHooksEvents, 0, func(_ context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		var all []cli.HookEvent
		for _, e := range hooks.Events() {
			row := cli.HookEvent{Event: string(e), Matches: e.MatchedField(), Blocks: e.Blocks()}
			for _, t := range e.Types() {
				row.Types = append(row.Types, string(t))
			}
			all = append(all, row)
		}
		return c.HookEvents(all, asJSON)
	})
	dry := false
	test := p.command("test EVENT", text.HelpHooksTest, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.HookNoEvent, "event", "\"\""), p.text.Say(text.HookFixEvent))
		}
		event, err := p.hookEvent(args[0])
		if err != nil {
			return err
		}
		told, err := p.toldHooks(ctx)
		if err != nil {
			return err
		}
		r, err := client.Query[query.HookTrial](ctx, p.client(), query.TryHooks{Event: event, Told: string(told), Dry: dry})
		if err != nil {
			return err
		}
		return c.HookTrial(r, asJSON)
	})
	test.Flags().BoolVar(&dry, "dry-run", false, p.text.Say(text.FlagHooksDry))
	test.ValidArgsFunction = p.first(values(hookEvents()...))
	cmd.AddCommand(list("list", text.HelpHooksList), events, test)
	return cmd
}

// hookEvents are the names of the events.
func hookEvents() (names []string) {
	for _, e := range hooks.Events() {
		names = append(names, string(e))
	}
	return names
}

// hookEvent returns the event that a word means, in any spelling; "" stays "".
func (p *program) hookEvent(word string) (string, error) {
	if word == "" {
		return "", nil
	}
	if e, ok := hooks.EventOf(word); ok {
		return string(e), nil
	}
	names := hookEvents()
	fix := p.text.Say(text.HookFixEvent)
	if near := cli.Nearest(word, append(names, "list", "events", "test")); near != "" {
		fix = p.text.Say(text.DidYouMean, "name", near) + " " + fix
	}
	return "", p.usage(p.text.Say(text.HookNoEvent, "event", text.Cut(text.OneLine(word), 40)), fix)
}

// toldHooks reads what hooks are to be told from the input. Somebody who sits in front of
// it is told that.
func (p *program) toldHooks(ctx context.Context) ([]byte, error) {
	if cli.IsTerminal(p.in) {
		fmt.Fprintln(p.err, p.text.Say(text.HookTestInput))
	}
	type input struct {
		data []byte
		err  error
	}
	read := make(chan input, 1)
	go func() { // ends with the input, which for a terminal is the end of the process
		data, err := io.ReadAll(io.LimitReader(p.in, hooks.MaxTold+1))
		read <- input{data, err}
	}()
	select {
	case in := <-read:
		if in.err != nil {
			return nil, &agent.Problem{Code: agent.ProblemUsage, Message: "the input cannot be read: " + in.err.Error(), Err: in.err}
		}
		return in.data, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
