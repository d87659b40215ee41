package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// maxKeyInput bounds what is read as a key, in bytes.
const maxKeyInput = 16 << 10

// accountCommands are those about providers, their keys and their models.
func (p *program) accountCommands() []*cobra.Command {
	file := false
	login := p.command("login [PROVIDER]", text.HelpLogin, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		return p.login(ctx, c, args, file, asJSON)
	})
	login.Args = p.onlyProvider
	login.Flags().BoolVar(&file, "file", false, p.text.Say(text.FlagFile))
	logout := p.command("logout PROVIDER", text.HelpLogout, 1, p.logout)
	for _, c := range []*cobra.Command{login, logout} {
		c.ValidArgsFunction = p.first(p.providerNames)
	}
	localAs("keys.change", login, logout)
	local := false
	models := p.command("models [FILTER]", text.HelpModels, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		return c.Models(ctx, cli.ModelsOptions{Filter: strings.Join(args, ""), Local: local, JSON: asJSON})
	})
	models.Flags().BoolVar(&local, "local", false, p.text.Say(text.FlagLocal))
	models.ValidArgsFunction = p.first(p.modelNames)
	test := p.command("test [MODEL]", text.HelpModelsTest, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		return c.CheckModel(ctx, strings.Join(args, ""), asJSON)
	})
	test.ValidArgsFunction = p.first(p.modelNames)
	models.AddCommand(test)
	providers := p.command("providers", text.HelpProviders, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		return c.Providers(ctx, asJSON)
	})
	return []*cobra.Command{login, logout, providers, models}
}

// onlyProvider takes a provider's name, and warns whoever writes a key behind it.
func (p *program) onlyProvider(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return p.usage(p.text.Say(text.LoginInArgs), p.text.Say(text.FixLoginNoKey, "name", text.OneLine(args[0])))
	}
	return nil
}

// login keeps the key of a provider: from standard input where that is no
// terminal, else as it is typed, unseen.
func (p *program) login(ctx context.Context, c *cli.CLI, args []string, file, asJSON bool) error {
	name := strings.Join(args, "")
	if name == "" {
		if !cli.IsTerminal(p.in) {
			return p.usage(p.text.Say(text.LoginNoName), p.text.Say(text.FixLoginNoName))
		}
		var err error
		if name, err = c.AskProvider(ctx); err != nil {
			return err
		}
	}
	provider, err := p.provider(ctx, c, name)
	if err != nil {
		return err
	}
	key, err := p.readKey(ctx, provider)
	if err != nil {
		return err
	}
	if key == "" {
		return p.usage(p.text.Say(text.LoginNoKey), p.text.Say(text.FixLoginNoKey, "name", provider.Name))
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return p.usage(p.text.Say(text.LoginBadKey), p.text.Say(text.FixLoginNoKey, "name", provider.Name))
	}
	r, err := client.Query[query.KeyChange](ctx, c.Client, query.ChangeKey{Provider: provider.Name, Key: key, File: file})
	if err != nil {
		return err
	}
	shadow := ""
	if rest, ok := strings.CutPrefix(provider.Key, "environment ("); ok {
		shadow = strings.TrimSuffix(rest, ")")
	}
	return c.LoggedIn(provider.Name, r.Place, shadow, asJSON)
}

// logout forgets the key of a provider.
func (p *program) logout(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
	if len(args) == 0 {
		return p.usage(p.text.Say(text.LoginNoName), p.text.Say(text.FixUnknownProvider))
	}
	provider, err := p.provider(ctx, c, args[0])
	if err != nil {
		return err
	}
	r, err := client.Query[query.KeyChange](ctx, c.Client, query.ChangeKey{Provider: provider.Name})
	if err != nil {
		return err
	}
	return c.LoggedOut(provider.Name, r.Removed, asJSON)
}

// provider returns the provider that a person names.
func (p *program) provider(ctx context.Context, c *cli.CLI, name string) (query.ProviderInfo, error) {
	list, err := client.Query[[]query.ProviderInfo](ctx, c.Client, query.ListProviders{})
	if err != nil {
		return query.ProviderInfo{}, err
	}
	i := slices.IndexFunc(list, func(info query.ProviderInfo) bool { return strings.EqualFold(info.Name, name) })
	if i >= 0 {
		return list[i], nil
	}
	var names []string
	for _, info := range list {
		names = append(names, info.Name)
	}
	fix := p.text.Say(text.FixUnknownProvider)
	if near := cli.Nearest(strings.ToLower(name), names); near != "" {
		fix = p.text.Say(text.DidYouMean, "name", near) + " " + fix
	}
	const shown = 40 // cells: what stands there may be a key
	return query.ProviderInfo{}, p.usage(p.text.Say(text.UnknownProvider, "name", text.Cut(text.OneLine(name), shown)), fix)
}

// readKey reads the key of a provider: a line of standard input.
func (p *program) readKey(ctx context.Context, provider query.ProviderInfo) (string, error) {
	return p.readSecret(ctx, p.text.Say(text.LoginPrompt, "provider", text.OneLine(provider.Title)))
}

// readSecret reads a line of standard input, unseen where that is a terminal.
func (p *program) readSecret(ctx context.Context, prompt string) (string, error) {
	if !cli.IsTerminal(p.in) {
		line, err := bufio.NewReader(io.LimitReader(p.in, maxKeyInput)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", p.usage(err.Error(), "")
		}
		return strings.TrimSpace(line), nil
	}
	fd := int(p.in.Fd())
	state, err := term.MakeRaw(fd) // before anybody is asked: nothing is shown from here on
	if err != nil {
		return "", p.usage(err.Error(), "")
	}
	defer term.Restore(fd, state) //nolint:errcheck // the terminal may be gone
	screen := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{p.in, p.err}, "")
	type read struct {
		key string
		err error
	}
	got := make(chan read, 1)
	go func() { // ends with what is typed, or with the program
		key, err := screen.ReadPassword(prompt + " ")
		got <- read{key, err}
	}()
	select {
	case r := <-got:
		if errors.Is(r.err, io.EOF) { // Ctrl-C, or Ctrl-D
			fmt.Fprint(p.err, "\r\n")
			r.err = &cli.Exited{Code: cli.ExitInterrupted, Err: r.err}
		}
		return strings.TrimSpace(r.key), r.err
	case <-ctx.Done():
		fmt.Fprint(p.err, "\r\n")
		return "", context.Cause(ctx)
	}
}
