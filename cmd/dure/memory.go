package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

func (p *program) memoryCommand() *cobra.Command {
	list := func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		return c.Memory(ctx, p.flags.workdir, asJSON)
	}
	cmd := p.command("memory", text.HelpMemory, 0, list)
	show := p.command("show [SCOPE]", text.HelpMemoryShow, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		scope := ""
		if len(args) == 1 {
			var err error
			if scope, err = p.scope(args); err != nil {
				return err
			}
		}
		return c.MemoryText(ctx, p.flags.workdir, scope, asJSON)
	})
	path := p.command("path [SCOPE]", text.HelpMemoryPath, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		scope, err := p.scope(args)
		if err != nil {
			return err
		}
		r, err := client.Query[query.MemoryReport](ctx, c.Client, query.ListMemory{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(r.Places, func(at query.MemoryPlace) bool { return at.Scope == scope })
		if i < 0 {
			_, err := p.makeMemory("", scope) // says why there is none
			return err
		}
		return p.told(asJSON, r.Places[i], text.ExactLine(r.Places[i].Path))
	})
	edit := p.command("edit [SCOPE]", text.HelpMemoryEdit, 1, p.editMemory)
	for _, c := range []*cobra.Command{show, path, edit} {
		c.ValidArgsFunction = p.first(values(append(cli.MemoryScopes(), "global")...))
	}
	cmd.AddCommand(p.command("list", text.HelpMemoryList, 0, list), show, edit, path, p.agentNotesCommand())
	return cmd
}

// scope is the scope that an argument names; without one, project.
func (p *program) scope(args []string) (string, error) {
	word := strings.Join(args, "")
	scope, ok := cli.MemoryScope(word)
	if !ok {
		return "", p.usage(p.text.Say(text.MemoryNoScope, "name", text.OneLine(word)), p.text.Say(text.FixMemoryScope, "list", strings.Join(cli.MemoryScopes(), ", ")))
	}
	return scope, nil
}

// editMemory opens the file of a scope in the user's editor, or says where it is.
func (p *program) editMemory(ctx context.Context, _ *cli.CLI, args []string, asJSON bool) error {
	scope, err := p.scope(args)
	if err != nil {
		return err
	}
	place, err := p.makeMemory("", scope)
	if err != nil {
		return err
	}
	if asJSON {
		return p.encode(place)
	}
	if !p.edits() {
		if _, err = fmt.Fprintln(p.out, text.ExactLine(place.Path)); err == nil && p.opened.Desktop().Editor() == nil {
			_, err = fmt.Fprintln(p.err, p.text.Say(text.LabelNote)+p.text.Say(text.MemoryNoEditor))
		}
		return err
	}
	return p.opened.Desktop().Edit(ctx, place.Path, p.in, p.out, p.err)
}

// makeMemory returns the file for instructions of a scope, and makes one that is missing.
func (p *program) makeMemory(workdir, scope string) (query.MemoryPlace, error) {
	return client.Query[query.MemoryPlace](context.Background(), p.client(), query.MakeMemory{Workdir: workdir, Scope: scope})
}

// remember adds a line to the instructions of a scope, and returns their file and what takes
// the line back.
func (p *program) remember(workdir, scope, line string) (path string, undo func() error, err error) {
	ctx, c := context.Background(), p.client()
	added, err := client.Query[query.MemoryAdded](ctx, c, query.AddMemory{Workdir: workdir, Scope: scope, Text: line})
	return added.Path, func() error {
		_, err := client.Query[query.MemoryPlace](ctx, c, query.UndoMemory{Workdir: workdir, Added: added})
		return err
	}, err
}
