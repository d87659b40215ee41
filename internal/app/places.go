package app

import (
	"cmp"
	"path/filepath"
	"slices"

	"dure/internal/app/config"
	"dure/internal/base/frontmatter"
	"dure/internal/safety/trust"
)

// The kinds of files that extend the program, by the folders that they lie in.
const (
	inSkills   = "skills"
	inCommands = "commands"
	inAgents   = "agents"
)

// ownerFolders are the folders in which files that extend programs of this sort lie,
// ours first. The third is for skills alone.
var ownerFolders = trust.Owners

// extensions returns where files of a kind are looked for by a session in a folder, each
// once: the administrator's, the user's, and those of the project from the folder
// itself up to the root of its repository, nearest first. Nothing of it is read, and
// none of them need be there. What counts of two files of one name is for the kind to
// say.
func (a *App) extensions(workdir, kind string) []frontmatter.Place {
	return append(a.filePlaces(workdir, kind), a.plugins.Places(workdir, kind)...)
}

// filePlaces are those of [App.extensions] that are no plugin's.
func (a *App) filePlaces(workdir, kind string) []frontmatter.Place {
	owners := ownerFolders
	if kind != inSkills {
		owners = owners[:2]
	}
	var all []frontmatter.Place
	add := func(scope frontmatter.Scope, trusted bool, base string, owners ...string) {
		if base == "" {
			return
		}
		for _, owner := range owners {
			dir := filepath.Join(base, owner, kind)
			if !slices.ContainsFunc(all, func(p frontmatter.Place) bool { return p.Dir == dir }) {
				p := frontmatter.Place{Scope: scope, Dir: dir, Trusted: trusted}
				if trusted && scope == frontmatter.Project {
					p.Covers = a.covered
				}
				all = append(all, p)
			}
		}
	}
	if managed := a.cfg.Memory.Managed; managed != "" {
		add(frontmatter.Managed, true, managed, "")
		add(frontmatter.Managed, true, managed, owners...)
	}
	if a.opts.Flags.reads(config.User) {
		add(frontmatter.User, true, a.cfg.Home, "")
		add(frontmatter.User, true, a.opts.UserHome, owners[1:]...)
	}
	if !a.opts.Flags.reads(config.Project) {
		return all
	}
	top, trusted := a.project(workdir)
	if !trusted {
		top = cmp.Or(gitTop(workdir), top)
	}
	for dir := workdir; ; dir = filepath.Dir(dir) {
		add(frontmatter.Project, trusted, dir, owners...)
		if dir == top || dir == filepath.Dir(dir) {
			return all
		}
	}
}
