package swarms

import (
	"io/fs"
	"os"
	"path/filepath"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/changeset"
	"dure/internal/extend/bundle/toolkit"
)

// kits makes the tools of the program that an agent of a bundle has by names of the bundle.
func (ext *Extension) kits(p Place, k *Code, e *bundle.Effective) func(entry, export, name, description string) (agent.Tool, bool) {
	cfg := toolkit.Config{Workspace: p.Workspace, Home: ext.cfg.Home, Masked: ext.cfg.Masked, Skills: p.Skills}
	cfg.Changes = changeset.New(changeset.Config{
		Dir: k.dir, Records: ext.cfg.Changesets, Workspace: p.Workspace,
		Allowed: e.Agent.Spec.(*bundle.Agent).Allowed,
		Load: func(files fs.FS) []bundle.Problem {
			root, err := os.OpenRoot(k.dir)
			if err != nil {
				return []bundle.Problem{{Code: query.BundleParse, Severity: query.BundleError, Message: "the folder of the bundle cannot be read"}}
			}
			defer root.Close()
			_, list := bundle.Load(ext.options(root, files, k.file, false))
			return list
		},
	})
	return toolkit.New(cfg)
}

// restore takes a commit back that the death of a program has cut short: what is started
// is what it was before, or after.
func (ext *Extension) restore(path string) error {
	dir, _, err := ext.place(path)
	if err != nil {
		return problem(path, err)
	}
	names, err := changeset.Restore(filepath.Clean(dir), ext.cfg.Changesets)
	if err != nil {
		return problem(path, err)
	}
	if len(names) > 0 {
		ext.cfg.Logger.Warn("a commit of a changeset was cut short, and is taken back", "bundle", dir, "files", names)
	}
	return nil
}
