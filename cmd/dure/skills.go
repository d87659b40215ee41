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

// skillsCommand lists, checks, makes and moves skills.
func (p *program) skillsCommand() *cobra.Command {
	list := func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		return c.Skills(ctx, p.flags.workdir, asJSON)
	}
	cmd := p.command("skills", text.HelpSkills, 0, list)
	show := p.command("show NAME", text.HelpSkillsShow, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.SkillNames), "")
		}
		s, err := client.Query[query.SkillInfo](ctx, c.Client, query.ShowSkill{Workdir: p.flags.workdir, Name: args[0]})
		if err != nil {
			return err
		}
		return c.Skill(s, asJSON)
	})
	check := p.command("validate [PATH]...", text.HelpSkillsValidate, maxSkillPaths, p.checkSkills)
	scope := ""
	fresh := p.command("new NAME", text.HelpSkillsNew, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		at, err := p.skillScope(scope, args)
		if err != nil {
			return err
		}
		s, err := client.Query[query.SkillAdded](ctx, c.Client, query.AddSkill{Workdir: p.flags.workdir, Name: args[0], Scope: at})
		if err != nil {
			return err
		}
		return p.told(asJSON, s.SkillInfo, p.text.Say(text.SkillMade, "path", text.OneLine(s.Path)))
	})
	taken := p.command("import PATH", text.HelpSkillsImport, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		at, err := p.skillScope(scope, args)
		if err != nil {
			return err
		}
		s, err := client.Query[query.SkillAdded](ctx, c.Client, query.AddSkill{Workdir: p.flags.workdir, From: args[0], Scope: at})
		if err != nil {
			return err
		}
		said := p.text.Say(text.SkillTaken, "name", text.OneLine(s.Name), "path", text.OneLine(s.Path))
		if len(s.Unknown) > 0 {
			said += "\n" + p.text.Say(text.SkillDrops, "list", text.OneLine(strings.Join(s.Unknown, ", ")))
		}
		return p.told(asJSON, s.SkillInfo, said)
	})
	for _, c := range []*cobra.Command{fresh, taken} {
		c.Flags().StringVar(&scope, "scope", "", p.text.Say(text.FlagSkillScope))
	}
	given := p.command("export NAME [FOLDER]", text.HelpSkillsExport, 2, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		if len(args) == 0 {
			return p.usage(p.text.Say(text.SkillNames), "")
		}
		into := p.flags.workdir
		if len(args) == 2 {
			into = args[1]
		}
		s, err := client.Query[query.SkillInfo](ctx, c.Client, query.ExportSkill{Workdir: p.flags.workdir, Name: args[0], Into: into})
		if err != nil {
			return err
		}
		return p.told(asJSON, s, p.text.Say(text.SkillGiven, "name", text.OneLine(s.Name), "path", text.OneLine(s.Path)))
	})
	cmd.AddCommand(p.command("list", text.HelpSkillsList, 0, list), show, check, fresh, taken, given)
	return cmd
}

// maxSkillPaths bounds the skills that are checked at once.
const maxSkillPaths = 1000

// checkSkills says of skills whether they are as the standard wants them: of all that do
// not come with the program where none is named. It fails when one is not.
func (p *program) checkSkills(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
	list := []query.SkillInfo{}
	if len(args) == 0 {
		all, err := client.Query[[]query.SkillInfo](ctx, p.client(), query.ListSkills{Workdir: p.flags.workdir})
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(all, func(s query.SkillInfo) bool { return s.Source == "builtin" })
		if len(list) == 0 && !asJSON {
			_, err := fmt.Fprintln(p.out, p.text.Say(text.SkillsNoneOwn))
			return err
		}
	}
	for _, path := range args {
		s, err := client.Query[query.SkillInfo](ctx, c.Client, query.ShowSkill{Path: path})
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	if err := c.CheckedSkills(list, asJSON); err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(s query.SkillInfo) bool { return !s.Valid }) {
		return &cli.Exited{Code: cli.ExitFailed}
	}
	return nil
}

// skillScope is where a skill is to be kept.
func (p *program) skillScope(scope string, args []string) (string, error) {
	if len(args) == 0 {
		return "", p.usage(p.text.Say(text.SkillNames), "")
	}
	if scope == "" {
		scope = cli.SkillScopes()[0]
	}
	if !slices.Contains(cli.SkillScopes(), scope) {
		return "", p.usage(p.text.Say(text.SkillScopes, "name", text.OneLine(scope)), p.text.Say(text.FixMemoryScope, "list", strings.Join(cli.SkillScopes(), ", ")))
	}
	return scope, nil
}
