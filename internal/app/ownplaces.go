package app

import (
	"path/filepath"
	"slices"

	"dure/internal/extend/inbound/schedules"
	"dure/internal/safety/workspace"
)

// ownNames is what settings, programs and knowledge of the user are called in a folder that
// they share with a project: the project's own files are nobody's settings.
var ownNames = []string{
	"settings.json", "settings.local.json", "policy.jsonc", "credentials.json", "trust.json", "grants", "mcp", "links.json", schedules.File,
	"hooks", "plugins", "prompts", inSkills, inCommands, inAgents,
}

// ownFolders are the folders in which settings speak for the user, and where the program
// keeps what it knows, wherever the environment has put them.
func (a *App) ownFolders() []string {
	return append(a.cfg.OwnFolders(a.permissions.source()), a.cfg.Data)
}

// ownHeld is what confined commands leave alone of them. Where the program has folders for
// commands in one, the rest of it is hidden from them.
func (a *App) ownHeld(ws *workspace.Workspace, workdir string, writable []string) []string {
	spaces := slices.Concat([]string{ws.Root(), workdir, a.treesHome()}, a.cfg.AddDirs, writable)
	return ownPlaces(a.ownFolders(), spaces)
}

// ownPlaces are the paths at which settings of the user stand where others may write: a
// folder of settings that lies in such a space as a whole; of one in which such a space
// lies, or that is one, what it is known to hold. The space itself stays writable.
func ownPlaces(folders, spaces []string) []string {
	var all []string
	for _, dir := range folders {
		real := settled(dir)
		inside, around := false, false
		for _, space := range spaces {
			at := settled(space)
			inside = inside || isWithin(at, real) || isWithin(space, dir)
			around = around || isWithin(real, at)
		}
		switch {
		case around:
			for _, name := range ownNames {
				all = append(all, filepath.Join(dir, name))
			}
		case inside:
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isWithin reports whether a path is a folder, or below it.
func isWithin(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// settled is a path with the links resolved that lead to as much of it as there is.
func settled(path string) string {
	path = filepath.Clean(path)
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			rest, _ := filepath.Rel(at, path) // it is below it
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}
