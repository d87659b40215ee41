package launch

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"dure/agent/query"
	"dure/internal/base/frontmatter"
)

// palette lists what can be launched. A file that cannot be read is left out: the lists
// of its kind say what is wrong with it.
func (x *Extension) palette(ctx context.Context, q query.ListPalette) ([]query.PaletteEntry, error) {
	all := []query.PaletteEntry{}
	typed, err := x.cfg.Typed(ctx, query.ListCommands{Workdir: q.Workdir, Language: x.cfg.Language})
	if err != nil {
		return nil, err
	}
	for _, c := range typed {
		if c.Off != "" {
			continue
		}
		kind := "command"
		if c.Kind == query.CommandSkill {
			kind = "skill"
		}
		all = append(all, query.PaletteEntry{Kind: kind, Name: c.Name, Description: c.Description, Use: strings.TrimSpace("/" + c.Name + " " + c.Hint)})
	}
	for _, s := range x.cfg.Skills() {
		// What is typed means a command or skill that is listed under the name.
		if !slices.ContainsFunc(all, func(e query.PaletteEntry) bool { return e.Name == s.Name }) {
			all = append(all, x.own("skill", s, s.Name, "/"+s.Name+" "+s.Fields["argument-hint"]))
		}
	}
	for _, a := range x.cfg.Agents() {
		all = append(all, x.own("agent", a, a.Fields["name"], "dure --agent "+a.Name))
	}
	snippets, _ := x.snippets().List()
	for _, s := range snippets {
		if s.Error == "" {
			all = append(all, query.PaletteEntry{Kind: "snippet", Name: s.Name, Description: cmp.Or(s.Description, firstLine(s.Text)), Use: "dure snippet use " + s.Name})
		}
	}
	links, _ := x.links()
	for _, l := range links {
		all = append(all, query.PaletteEntry{Kind: "link", Name: l.Name, Description: cmp.Or(l.Description, l.URL), Use: strings.TrimSpace("dure link open " + l.Name + " " + parameters(l))})
	}
	return all, nil
}

// own is the entry of what comes with the program.
func (x *Extension) own(kind string, e frontmatter.Embedded, known, use string) query.PaletteEntry {
	return query.PaletteEntry{
		Kind: kind, Name: e.Name, Description: x.cfg.About(known, e.Fields["description"]), Use: strings.TrimSpace(use),
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
