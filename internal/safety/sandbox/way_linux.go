package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A way is where a path leads: through links, to its end. What is not there ends
// at the first part that is missing, and what a file stands in the way of, at that.
type way struct {
	links []string
	end   string
	there bool
}

// maxLinks bounds the links of a way, as the kernel does; one with more leads
// nowhere, and ends at its last link.
const maxLinks = 40

// wayTo goes the way of an absolute path.
func wayTo(path string) way {
	w := way{end: "/", there: true}
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			w.end = filepath.Dir(w.end)
			continue
		}
		next := filepath.Join(w.end, name)
		info, err := os.Lstat(next)
		switch {
		case err != nil || !present(next):
			w.end, w.there = next, false
			return w
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(next)
			if err != nil || len(w.links) == maxLinks {
				w.end = next
				return w
			}
			w.links = append(w.links, next)
			if filepath.IsAbs(to) {
				w.end = "/"
			}
			rest = append(strings.Split(to, "/"), rest...)
		case !info.IsDir():
			w.end = next
			return w
		default:
			w.end = next
		}
	}
	return w
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
