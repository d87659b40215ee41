package sandbox

import (
	"os/exec"
	"path/filepath"
)

// Find returns the path of a program on PATH, or "".
func Find(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	return path
}

// FindOutside is [Find] for a program that is started without asking: it has none
// where inside reports that a path, or what it leads to, is somebody else's.
func FindOutside(program string, inside func(path string) bool) string {
	path := Find(program)
	if path == "" || inside(path) {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err != nil || inside(real) {
		return ""
	}
	return path
}
