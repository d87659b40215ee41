package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
	"dure/internal/knowledge/memory/lessons"
)

// lessonsCommand shows and changes what was learnt from past tasks.
func (p *program) lessonsCommand() *cobra.Command {
	cmd := p.command("lessons [TYPE]", text.HelpLessons, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		var q query.ListLessons
		if len(args) == 1 {
			q.Type = args[0]
		}
		list, err := client.Query[[]query.Lesson](ctx, c.Client, q)
		if err != nil {
			return p.lessonError(err)
		}
		return c.Lessons(list, asJSON)
	})
	cmd.ValidArgsFunction = p.first(values(lessons.Names()...))
	all := false
	forget := p.command("delete [TYPE|ID]", text.HelpForget, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if (len(args) == 1) == all {
			return p.usage(p.text.Say(text.LessonsWhich), "")
		}
		n, err := client.Query[int](ctx, c.Client, query.DeleteLessons{Which: strings.Join(args, ""), All: all})
		if err != nil {
			return p.lessonError(err)
		}
		if asJSON {
			return json.NewEncoder(p.out).Encode(map[string]int{"deleted": n})
		}
		_, err = fmt.Fprintln(p.out, p.text.Say(text.LessonsDeleted, "n", n))
		return err
	})
	forget.Flags().BoolVar(&all, "all", false, p.text.Say(text.FlagAllLessons))
	forget.ValidArgsFunction = p.first(values(lessons.Names()...))
	add := p.command("add TYPE TEXT", text.HelpLearn, 2, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) < 2 {
			return p.usage(p.text.Say(text.LessonsText), "")
		}
		if _, err := client.Query[query.Lesson](ctx, c.Client, query.AddLesson{Type: args[0], Text: args[1]}); err != nil {
			return p.lessonError(err)
		}
		if asJSON {
			return json.NewEncoder(p.out).Encode(map[string]string{"added": args[0]})
		}
		_, err := fmt.Fprintln(p.out, p.text.Say(text.LessonsAdded, "type", args[0]))
		return err
	})
	add.ValidArgsFunction = p.first(values(lessons.Names()...))
	checklist := p.command("checklist", text.HelpChecklist, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		return tell(ctx, p, c.Client, query.ReadChecklist{}, asJSON, func(b *strings.Builder, list query.Checklist) {
			fmt.Fprintln(b, text.Clean(list.Path))
			for _, l := range slices.Concat(list.Code, list.Files) {
				fmt.Fprintln(b, "  - "+text.OneLine(l))
			}
		})
	})
	cmd.AddCommand(add, forget, checklist)
	return cmd
}

// lessonError says in the user's language that there is no such type or lesson.
func (p *program) lessonError(err error) error {
	if pr := agent.ProblemOf(err); pr != nil && pr.Args["lesson"] != "" {
		return p.usage(p.text.Say(text.LessonsUnknown, "what", text.OneLine(pr.Args["lesson"])), p.text.Say(text.FixLessons, "list", strings.Join(lessons.Names(), ", ")))
	}
	return err
}
