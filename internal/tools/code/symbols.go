package code

import (
	"context"
	"path"
	"strings"
	"time"

	"dure/internal/safety/workspace"
)

// Limits of one search for a symbol. What lies beyond them is not found.
const (
	searchTime   = 2 * time.Second
	searchFiles  = 50_000
	searchPlaces = 20
)

// A Place is where a symbol is declared: lines of a file, from 1.
type Place struct {
	Path        string // as it was given
	First, Last int
}

// Declared returns where a symbol is declared in files, paths below the root of a
// workspace with slashes: Name, Type.Name or package.Name, with dots or double colons.
// Of what is declared several times, the places whose whole name fits come first; at
// most 20. Only files of known languages that have the name in them are looked at
// closely.
func Declared(ctx context.Context, ws *workspace.Workspace, files []string, name string) []Place {
	name = strings.ReplaceAll(name, "::", ".")
	owner, last, nested := "", name, false
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		owner, last, nested = name[:i], name[i+1:], true
	}
	root, err := ws.OpenRoot(ws.Root())
	if err != nil || last == "" {
		return nil
	}
	defer func() { _ = root.Close() }() // only read
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var whole, part []Place
	for _, p := range files[:min(len(files), searchFiles)] {
		l := languageOf(p)
		if l == nil || l.data || ctx.Err() != nil || len(whole) >= searchPlaces {
			continue
		}
		text, ok := below(root, p)
		if !ok || !strings.Contains(text, last) {
			continue
		}
		above := ""
		for _, s := range l.outline(p, text).Symbols {
			at := Place{p, s.Line, s.End}
			switch {
			case s.Name == name, nested && s.Name == last && (above == owner || path.Base(path.Dir(p)) == owner):
				whole = append(whole, at)
			case !nested && strings.HasSuffix(s.Name, "."+last):
				part = append(part, at)
			}
			if s.Level == 1 {
				above = s.Name
			}
		}
	}
	all := append(whole, part...)
	return all[:min(len(all), searchPlaces)]
}
