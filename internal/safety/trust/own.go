package trust

import (
	"path/filepath"
	"slices"
)

// OwnPlaces returns the paths at which settings of the user stand where others may write: a
// folder of settings that lies in such a space as a whole; of one in which such a space lies,
// or that is one, what it is known to hold by its names. The space itself stays writable.
func OwnPlaces(folders, names, spaces []string) []string {
	var all []string
	for _, dir := range folders {
		real := settled(dir)
		inside, around := false, false
		for _, space := range spaces {
			at := settled(space)
			inside = inside || within(at, real) || within(space, dir)
			around = around || within(real, at)
		}
		switch {
		case around:
			for _, name := range names {
				all = append(all, filepath.Join(dir, name))
			}
		case inside:
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// within reports whether a path is a folder, or below it.
func within(folder, path string) bool {
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
