package main

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// usageKinds are the values of --by.
var usageKinds = []string{"day", "model", "project", "session"}

func (p *program) usageCommand() *cobra.Command {
	by, since, chart := usageKinds[0], "", false
	cmd := p.command("usage", text.HelpSpent, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		from, ok := sinceOf(since, time.Now())
		if !ok {
			return p.badValue("--since", since, text.WantSince)
		}
		if !slices.Contains(usageKinds, by) {
			return p.badValue("--by", by, text.WantBy)
		}
		home, _ := os.UserHomeDir() // folders are shown in full without it
		return c.Usage(ctx, cli.UsageOptions{By: by, Since: from, Chart: chart, JSON: asJSON, Home: home})
	})
	f := cmd.Flags()
	f.StringVar(&by, "by", by, p.text.Say(text.FlagBy))
	f.StringVar(&since, "since", "", p.text.Say(text.FlagSince))
	f.BoolVar(&chart, "chart", false, p.text.Say(text.FlagChart))
	f.SortFlags = false
	complete(cmd, "by", values(usageKinds...))
	complete(cmd, "since", values("24h", "7d", "30d"))
	return cmd
}

// sinceOf reads how far back somebody means: a number of days, hours or weeks
// before now, or a day, which begins at midnight.
func sinceOf(s string, now time.Time) (rfc3339 string, ok bool) {
	if s == "" {
		return "", true
	}
	if day, err := time.ParseInLocation(time.DateOnly, s, now.Location()); err == nil {
		return day.Format(time.RFC3339), true
	}
	const most = 100_000 // of the unit
	n, err := strconv.Atoi(strings.TrimRight(s, "hdw"))
	if err != nil || n < 0 || n > most || len(s) < 2 {
		return "", false
	}
	switch s[len(strconv.Itoa(n)):] {
	case "h":
		return now.Add(-time.Duration(n) * time.Hour).Format(time.RFC3339), true
	case "d":
		return now.AddDate(0, 0, -n).Format(time.RFC3339), true
	case "w":
		return now.AddDate(0, 0, -7*n).Format(time.RFC3339), true
	}
	return "", false
}
