package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// searchKinds are the values of --kind.
var searchKinds = []string{"input", "answer", "call", "result", "title"}

// searchCommand is both dure search and dure sessions search.
func (p *program) searchCommand() *cobra.Command {
	var q query.Search
	rebuild := false
	cmd := p.command("search WORD...", text.HelpSearch, maxSearchWords, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		o := cli.SearchOptions{Query: q, Rebuild: rebuild, JSON: asJSON, Color: p.terminal().Color}
		var ok bool
		if o.Query.Since, ok = sinceOf(q.Since, time.Now()); !ok {
			return p.badValue("--since", q.Since, text.WantSince)
		}
		if q.Kind != "" && !slices.Contains(searchKinds, q.Kind) {
			return p.badValue("--kind", q.Kind, text.WantKind)
		}
		const mostHits = 100
		if q.Limit < 1 || q.Limit > mostHits {
			return p.usage(p.text.Say(text.BadValue, "flag", "--limit", "value", q.Limit, "wanted", p.text.Say(text.WantHits, "n", mostHits)), "")
		}
		switch {
		case filepath.IsAbs(q.Workdir):
			o.Query.Workdir = filepath.Clean(q.Workdir)
		case q.Workdir != "":
			o.Query.Workdir = filepath.Join(p.flags.workdir, q.Workdir)
		}
		o.Query.Text = strings.Join(args, " ")
		o.Home, _ = os.UserHomeDir() // folders are shown in full without it
		return c.Search(ctx, o)
	})
	f := cmd.Flags()
	f.IntVar(&q.Limit, "limit", 20, p.text.Say(text.FlagLimitHits))
	f.StringVar(&q.Session, "session", "", p.text.Say(text.FlagSearchSession))
	f.StringVar(&q.Workdir, "workdir", "", p.text.Say(text.FlagSearchWorkdir))
	f.StringVar(&q.Kind, "kind", "", p.text.Say(text.FlagKind))
	f.StringVar(&q.Since, "since", "", p.text.Say(text.FlagSince))
	f.StringVar(&q.Tag, "tag", "", p.text.Say(text.FlagTag))
	f.BoolVar(&rebuild, "rebuild", false, p.text.Say(text.FlagRebuild))
	f.SortFlags = false
	complete(cmd, "limit", values())
	complete(cmd, "session", p.sessionNames)
	complete(cmd, "kind", values(searchKinds...))
	complete(cmd, "since", values("24h", "7d", "30d"))
	complete(cmd, "tag", values())
	return cmd
}

// maxSearchWords is how many arguments a search has at most; the query itself is bounded
// in bytes and words.
const maxSearchWords = 64
