package shell

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
)

// maxPlaced is how many of those are followed in one text.
const maxPlaced = 64

// placed is a path that a command has put, or copied, to where another one is from
// then on. What it holds may be a link: what is behind the new path is then what was
// behind the old one.
type placed struct{ from, to string }

// places notes what a command puts elsewhere.
func (w *walker) places(name string, sc *agent.SimpleCommand) {
	switch name[strings.LastIndexByte(name, '/')+1:] {
	case "cp", "gcp", "mv", "gmv", "ln", "gln":
	default:
		return
	}
	sources := sc.Removes
	if len(sources) == 0 {
		sources = sc.Reads
	}
	if len(sc.Writes) == 0 {
		return
	}
	target := filepath.ToSlash(sc.Writes[0])
	for _, s := range sources {
		s = filepath.ToSlash(s)
		if len(w.placed) >= maxPlaced {
			w.unreadable("what is where, after so much was copied or moved")
			return
		}
		if s != target {
			w.placed = append(w.placed, placed{s, target}, placed{s, path.Join(target, path.Base(s))})
		}
	}
}

// led adds where paths led before they were put where they are. Those in except
// are taken away themselves, not what they lead to.
func (w *walker) led(list, except []string) []string {
	if len(w.placed) == 0 {
		return list
	}
	for _, p := range list {
		at := filepath.ToSlash(p)
		for _, m := range w.placed {
			rest, ok := strings.CutPrefix(at, m.to)
			if !ok || rest != "" && rest[0] != '/' || rest == "" && slices.Contains(except, p) {
				continue
			}
			list = append(list, filepath.FromSlash(m.from+rest))
		}
	}
	return once(list)
}
