package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

var (
	auditVerdicts = []string{string(agent.Allow), string(agent.Deny)}
	auditFormats  = []string{string(cli.AuditText), string(cli.AuditJSON), string(cli.AuditLines), string(cli.AuditCSV)}
)

func (p *program) auditCommand() *cobra.Command {
	var q query.ListDecisions
	verdict, since, format, here := "", "", "", false
	cmd := p.command("audit [SESSION]", text.HelpAudit, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		from, ok := sinceOf(since, time.Now())
		switch {
		case !ok:
			return p.badValue("--since", since, text.WantSince)
		case verdict != "" && !slices.Contains(auditVerdicts, verdict):
			return p.badValue("--verdict", verdict, text.WantVerdict)
		case format != "" && !slices.Contains(auditFormats, format):
			return p.badValue("--format", format, text.WantFormat)
		}
		if asJSON && format == "" {
			format = string(cli.AuditJSON)
		}
		q.Since, q.Verdict, q.Plans = from, agent.Verdict(verdict), true
		if here {
			q.Workdir = p.flags.workdir
		}
		return c.Audit(ctx, cli.AuditOptions{Session: strings.Join(args, ""), Query: q, Format: cli.AuditFormat(format)})
	})
	f := cmd.Flags()
	f.StringVar(&q.Tool, "tool", "", p.text.Say(text.FlagTool))
	f.StringVar(&verdict, "verdict", "", p.text.Say(text.FlagVerdict))
	f.StringVar(&q.By, "by", "", p.text.Say(text.FlagDecider))
	f.StringVar(&since, "since", "", p.text.Say(text.FlagSince))
	f.IntVar(&q.Limit, "limit", 0, p.text.Say(text.FlagLimit))
	f.BoolVar(&here, "here", false, p.text.Say(text.FlagHere))
	f.StringVar(&format, "format", "", p.text.Say(text.FlagFormat))
	f.SortFlags = false
	cmd.ValidArgsFunction = p.first(p.sessionNames)
	complete(cmd, "verdict", values(auditVerdicts...))
	complete(cmd, "by", values("rule", "mode", "user", "floor", "hook", "read-only"))
	complete(cmd, "since", values("24h", "7d", "30d"))
	complete(cmd, "format", values(auditFormats...))
	return cmd
}

// badValue is a value that a flag does not take.
func (p *program) badValue(flag, value string, wanted text.Key) error {
	return p.usage(p.text.Say(text.BadValue, "flag", flag, "value", text.OneLine(value), "wanted", p.text.Say(wanted)), "")
}
