package app

import (
	"path/filepath"
	"strings"

	"dure/internal/extend/skills"
	"dure/internal/safety/trust"
)

// proofOf returns what says whether files beside one that extends the program are as they
// were when its folder was trusted; nil = it is no project's, or built in.
func (a *App) proofOf(workdir, file string) func(path string, data []byte) bool {
	if file == "" {
		return nil
	}
	for _, kind := range []string{inSkills, inCommands} {
		for _, p := range a.extensions(workdir, kind) {
			if rel, err := filepath.Rel(p.Dir, file); err == nil && filepath.IsLocal(rel) {
				return p.Covers
			}
		}
	}
	return a.covered // of a folder below the working folder
}

// lenderOf returns what a file lends as; ok = its files have to be proven.
func (a *App) lenderOf(workdir, name, file string) (l trust.Lender, ok bool) {
	l = trust.Lender{Name: name, Covers: a.proofOf(workdir, file)}
	if strings.EqualFold(filepath.Base(file), skills.File) {
		l.Dir = filepath.Dir(file)
	}
	return l, l.Covers != nil
}
