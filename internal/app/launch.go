package app

import (
	"cmp"
	"io/fs"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/launch"
	"dure/internal/extend/skills/builtin"
	"dure/internal/extend/swarm"
	"dure/internal/extend/swarm/presets"
)

func (a *App) newLauncher() *launch.Extension {
	env := getenv(a.opts.Environ)
	return launch.New(launch.Config{
		Home: a.cfg.Home, Workdir: a.opts.Workdir, User: cmp.Or(a.cfg.User.Name, env("USER"), env("USERNAME")), Language: a.cfg.Language,
		NoAI: a.cfg.NoAI, Search: a.cfg.Search.Kind != "", Mode: a.cfg.Mode,
		Open: wire{a}.Open, Close: wire{a}.Close, Small: a.models.SmallFor,
		Reach: func(session string) agent.Reach { return a.sessions.reg.Reach(session) },
		Typed: a.commands.List,
		Skills: func() []frontmatter.Embedded {
			if a.cfg.Extend.NoBundledSkills {
				return nil
			}
			return frontmatter.ReadEmbedded(builtin.Files, "*/SKILL.md")
		},
		Agents: func() []frontmatter.Embedded { return frontmatter.ReadEmbedded(presets.Files, "*.md") },
		About:  func(name, about string) string { return ownAbout(a.cfg.Language, name, about) },
	})
}

// ownAbout is how a skill or an agent that comes with the program is described to people:
// in their language where it has it, else as models read it. Names of the two are apart.
func ownAbout(language, name, about string) string {
	if language != "ko" {
		return about
	}
	return cmp.Or(koreans()[strings.ToLower(name)], about)
}

// koreans are the descriptions in Korean, by names in small letters.
var koreans = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for pattern, files := range map[string]fs.FS{"*/SKILL.md": builtin.Files, "*.md": presets.Files, "kinds/*.md": swarm.Kinds} {
		for _, e := range frontmatter.ReadEmbedded(files, pattern) {
			all[strings.ToLower(e.Fields["name"])] = e.Fields["metadata.ko"]
		}
	}
	return all
})
