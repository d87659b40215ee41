package skills

import (
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// The bounds of a glob: what is over them fits nothing.
const (
	maxGlob  = 300 // bytes
	maxStars = 6   // of **
	maxSets  = 6   // of {a,b}
)

// For reports whether a skill is for a file, by its path from the working folder. A glob
// without a slash fits names in any folder, and one with a slash at its end all that is
// below.
func (s Skill) For(rel string) bool {
	rel = strings.TrimPrefix(filepath.ToSlash(rel), "./")
	for _, g := range s.Paths {
		g = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(g), "./"), "/")
		if len(g) > maxGlob || strings.Count(g, "**") > maxStars || strings.Count(g, "{") > maxSets {
			continue
		}
		if strings.HasSuffix(g, "/") {
			g += "**"
		} else if !strings.Contains(g, "/") {
			g = "**/" + g
		}
		if ok, err := doublestar.Match(g, rel); ok && err == nil {
			return true
		}
	}
	return false
}
