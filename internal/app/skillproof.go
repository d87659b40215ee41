package app

import (
	"path/filepath"
	"strings"

	"dure/internal/extend/skills"
	"dure/internal/safety/trust"
	"dure/internal/safety/trust/folders"
)

// proofOf returns what says whether files beside one that extends the program are as they
// were when its folder was trusted; nil = it is no project's, or built in.
func (a *App) proofOf(workdir, file string) func(path string, data []byte) bool {
	if file == "" {
		return nil
	}
	for _, kind := range []string{folders.Skills, folders.Commands} {
		for _, p := range a.trust.All(workdir, kind) {
			if rel, err := filepath.Rel(p.Dir, file); err == nil && filepath.IsLocal(rel) {
				return p.Covers
			}
		}
	}
	return a.trust.Covers // of a folder below the working folder
}

// lenderOf returns what a file lends as; ok = its files have to be proven.
func (a *App) lenderOf(workdir, name, file string) (l trust.Lender, ok bool) {
	l = trust.Lender{Name: name, Covers: a.proofOf(workdir, file)}
	if strings.EqualFold(filepath.Base(file), skills.File) {
		l.Dir = filepath.Dir(file)
	}
	return l, l.Covers != nil
}
