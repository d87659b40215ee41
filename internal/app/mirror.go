package app

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"dure/internal/app/config"
	"dure/internal/state/archive/imports"
	"dure/internal/state/archive/mirror"
	"dure/internal/state/transcript"
	"dure/internal/tools/catalog"
)

// projects is the folder where programs for agent sessions look for conversations, and the
// name of the folder in it, if that is set.
func (o Options) projects() (dir, name string) {
	getenv := getenv(o.Environ)
	if dir = getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		name = getenv("CLAUDE_CODE_PROJECT_DIR_NAME")
		if filepath.Base(name) != name || name == "." || name == ".." || len(name) > 64 {
			name = ""
		}
	}
	return filepath.Join(cmp.Or(dir, filepath.Join(o.UserHome, ".claude")), "projects"), name
}

// newMirror makes what writes them.
func (a *App) newMirror() *mirror.Extension {
	dir, name := a.opts.projects()
	on := a.cfg.Mirror == config.MirrorAll || a.cfg.Mirror == config.MirrorSDK && a.opts.Flags.Hosted
	return mirror.Extend(mirror.Settings{
		Off: !on || a.opts.Flags.Scratch, Projects: dir, Name: name, Version: a.opts.Version, Shown: catalog.Claude.Name, Adopted: imports.Code, Logger: a.opts.Logger,
		Above: func(id string) (mirror.Root, bool) {
			if a.parent.Works(id) {
				return a.inherited.Mirror, true
			}
			return mirror.Root{}, false
		},
		Find: a.sessions.find, Hears: a.tells,
		Told: func(c mirror.Config, lines []byte, err error) {
			if a.parent != nil {
				a.parent.Mirrored(c.Agent, lines, err)
				return
			}
			a.opts.Host.Mirrored(c.Path(), lines, err)
		},
	})
}

// AdoptTranscript makes a session of ours, of the same ID, of one that exists only where
// programs for agent sessions keep them: a fork that one of them has made. It reports
// whether there is one, in the folder of the working folder or in any other.
func (a *App) AdoptTranscript(ctx context.Context, id string) (bool, error) {
	if !transcript.IsUUID(id) {
		return false, nil
	}
	if _, err := a.sessions.open(); err != nil {
		return false, err
	}
	dir, name := a.opts.projects()
	real, err := filepath.EvalSymlinks(a.opts.Workdir)
	if err != nil {
		real = a.opts.Workdir
	}
	paths := []string{filepath.Join(dir, cmp.Or(name, mirror.Folder(real)), id+".jsonl")}
	if others, err := filepath.Glob(filepath.Join(dir, "*", id+".jsonl")); err == nil {
		paths = append(paths, others...)
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		row, err := a.imports.Adopt(ctx, path, id)
		if err != nil {
			return false, err
		}
		return row.Session == id, nil
	}
	return false, nil
}
