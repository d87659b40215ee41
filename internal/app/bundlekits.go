package app

import (
	"io/fs"
	"os"
	"path/filepath"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/changeset"
	"dure/internal/extend/bundle/toolkit"
	"dure/internal/safety/guard"
)

// kits makes the tools of the program that an agent of a bundle has by names of the bundle.
func (a *App) kits(c toolConfig, k *BundleCode, e *bundle.Effective) func(entry, export, name, description string) (agent.Tool, bool) {
	cfg := toolkit.Config{Workspace: c.ws, Home: a.opts.UserHome, Masked: guard.Masked}
	cfg.Changes = changeset.New(changeset.Config{
		Dir: k.dir, Records: a.changesets(), Workspace: c.ws,
		Allowed: e.Agent.Spec.(*bundle.Agent).Allowed,
		Load: func(files fs.FS) []bundle.Problem {
			root, err := os.OpenRoot(k.dir)
			if err != nil {
				return []bundle.Problem{{Code: query.BundleParse, Severity: query.BundleError, Message: "the folder of the bundle cannot be read"}}
			}
			defer root.Close()
			_, list := bundle.Load(a.bundleOptions(root, files, k.file, false))
			return list
		},
	})
	if c.skills != nil {
		cfg.Skills = func() (list []toolkit.Skill) {
			for _, s := range c.skills.Set.List() {
				if s.Off != "" || s.NoModel {
					continue
				}
				one := toolkit.Skill{Name: s.Name}
				if !s.Bare {
					one.Description = s.Described()
				}
				list = append(list, one)
			}
			return list
		}
	}
	return toolkit.New(cfg)
}

// changesets is the folder for what bundles were that are changed.
func (a *App) changesets() string { return filepath.Join(a.cfg.Data, "changesets") }

// restoreBundle takes a commit back that the death of a program has cut short: what is started
// is what it was before, or after.
func (a *App) restoreBundle(path string) error {
	dir, _, err := a.bundlePlace(path)
	if err != nil {
		return bundleProblem(path, err)
	}
	names, err := changeset.Restore(filepath.Clean(dir), a.changesets())
	if err != nil {
		return bundleProblem(path, err)
	}
	if len(names) > 0 {
		a.opts.Logger.Warn("a commit of a changeset was cut short, and is taken back", "bundle", dir, "files", names)
	}
	return nil
}
