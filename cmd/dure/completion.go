package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// What completion may cost: somebody waits for it with a finger on the key.
const (
	completionTime = time.Second
	maxCompletions = 200
)

// shells are those that there is a script for, with the line that takes it in.
var shells = []struct{ name, line string }{
	{"bash", "source <(dure completion bash)"},
	{"zsh", "source <(dure completion zsh)"},
	{"fish", "dure completion fish | source"},
	{"powershell", "dure completion powershell | Out-String | Invoke-Expression"},
}

func (p *program) completionCommand() *cobra.Command {
	var names []string
	for _, s := range shells {
		names = append(names, s.name)
	}
	cmd := &cobra.Command{
		Use: "completion [" + strings.Join(names, "|") + "]", Short: p.text.Say(text.HelpCompletion), Args: p.atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.listShells()
			}
			return p.script(cmd.Root(), args[0], names)
		},
		ValidArgsFunction: p.first(values(names...)),
	}
	p.jsonFlag(cmd)
	return cmd
}

// listShells says how each shell takes its script in.
func (p *program) listShells() error {
	named, lines := map[string]string{}, []string{}
	for _, s := range shells {
		named[s.name] = s.line
		lines = append(lines, s.name+strings.Repeat(" ", 12-len(s.name))+s.line)
	}
	return p.told(p.asJSON, named, lines...)
}

// script writes the script of a shell.
func (p *program) script(root *cobra.Command, shell string, names []string) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(p.out, true)
	case "zsh":
		return root.GenZshCompletion(p.out)
	case "fish":
		return root.GenFishCompletion(p.out, true)
	case "powershell", "pwsh":
		return root.GenPowerShellCompletionWithDesc(p.out)
	}
	return p.usage(p.text.Say(text.UnknownShell, "shell", text.OneLine(shell)), p.text.Say(text.FixUnknownShell, "list", strings.Join(names, ", ")))
}

// source lists what may stand at a place. It says nothing of errors.
type source func(ctx context.Context) []cobra.Completion

// complete ties a flag to its values.
func complete(cmd *cobra.Command, flag string, from source) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return starting(cmd.Context(), from, typed), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag is not there: a mistake in this program
	}
}

// first completes the first argument, and none behind it.
func (p *program) first(from source) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return starting(cmd.Context(), from, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// starting returns what begins as it was typed. Of a list with commas the last
// entry is completed.
func starting(ctx context.Context, from source, typed string) []cobra.Completion {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	var some []cobra.Completion
	for _, c := range from(ctx) {
		if strings.HasPrefix(strings.ToLower(c), strings.ToLower(typed[len(before):])) && len(some) < maxCompletions {
			some = append(some, before+c)
		}
	}
	return some
}

func values(list ...string) source {
	return func(context.Context) []cobra.Completion { return list }
}

// completeFlags ties the flags of the root command to their values.
func (p *program) completeFlags(root *cobra.Command) {
	for flag, from := range map[string]source{
		"resume": p.sessionNames, "model": p.modelNames, "fallback-model": p.modelNames,
		"agent": p.agentNames, "agents": values(),
		"profile": p.profileNames, "sandbox": values("auto", "off"),
		"permission-mode": values(string(agent.ModeDefault), string(agent.ModeAcceptEdits), string(agent.ModePlan),
			string(agent.ModeDontAsk), string(agent.ModeBypass)),
		"allow": p.toolNames, "allowedTools": p.toolNames, "allowed-tools": p.toolNames,
		"deny": p.toolNames, "disallowedTools": p.toolNames, "disallowed-tools": p.toolNames,
		"output-format": values(string(cli.FormatText), string(cli.FormatJSON), string(cli.FormatNDJSON)),
		"tool-dialect":  values("claude", "dure"), "durability": values("barrier", "always", "os"),
		"json-schema": values(), "max-turns": values(), "max-budget-usd": values(), "max-budget-tokens": values(), "session-id": values(), "resume-session-at": values(), "name": values(), "append-system-prompt": values(), "base-url": values(), "server": values(),
	} {
		complete(root, flag, from)
	}
	for flag, f := range map[string]cobra.CompletionFunc{
		"add-dir": func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		"settings": func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
	} {
		if err := root.RegisterFlagCompletionFunc(flag, f); err != nil {
			panic(err) // the flag is not there: a mistake in this program
		}
	}
}

// quietly runs f on the client of the program, if that can be built.
func (p *program) quietly(f func(client.Client)) {
	if a, err := p.open(); err == nil {
		f(p.client())
		_ = a.Close() // nobody is told
		p.opened = nil
	}
}

// named returns a completion for each entry of the answer to a query; "" = none. Nobody is told
// of errors.
func named[T any](ctx context.Context, p *program, q agent.Query, name func(T) cobra.Completion) (list []cobra.Completion) {
	p.quietly(func(c client.Client) {
		all, _ := client.Query[[]T](ctx, c, q)
		for _, v := range all {
			if c := name(v); c != "" {
				list = append(list, c)
			}
		}
	})
	return list
}

// sessionNames are the IDs of the newest sessions, with their titles.
func (p *program) sessionNames(ctx context.Context) (list []cobra.Completion) {
	p.quietly(func(c client.Client) {
		page, err := client.Query[agent.SessionList](ctx, c, agent.ListSessions{Limit: maxCompletions})
		if err != nil {
			return
		}
		for _, s := range page.Sessions {
			const title = 60
			list = append(list, described(s.ID, text.Cut(text.OneLine(s.Title), title)))
		}
	})
	return list
}

// modelNames are the models, as provider/model and by their short names.
func (p *program) modelNames(ctx context.Context) (list []cobra.Completion) {
	p.quietly(func(c client.Client) {
		infos, err := client.Query[[]agent.ModelInfo](ctx, c, query.ListModels{})
		if err != nil {
			return
		}
		for _, m := range infos {
			for _, alias := range m.Aliases {
				list = append(list, described(alias, m.Name))
			}
			list = append(list, described(m.Provider+"/"+m.ID, m.Name), described(m.ID, m.Name))
		}
	})
	return list
}

func (p *program) providerNames(ctx context.Context) []cobra.Completion {
	return named(ctx, p, query.ListProviders{NoKeys: true}, func(one query.ProviderInfo) cobra.Completion { return one.Name })
}

func (p *program) toolNames(ctx context.Context) (list []cobra.Completion) {
	p.quietly(func(c client.Client) {
		r, _ := client.Query[query.ToolReport](ctx, c, query.ListTools{})
		for _, t := range r.Tools {
			list = append(list, t.Shown)
		}
		slices.Sort(list)
	})
	return slices.Concat(list, []cobra.Completion{"group:files"})
}

// described is a value with what it is. Values of strangers may hold anything.
func described(value, what string) cobra.Completion {
	value = text.OneLine(value)
	if what == "" {
		return value
	}
	return cobra.CompletionWithDesc(value, what)
}
