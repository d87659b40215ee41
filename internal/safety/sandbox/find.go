package sandbox

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Find returns the path of a program on PATH, or "".
func Find(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	return path
}

// Outside returns a [Find] for programs that are started without asking: it has none where
// inside reports that a path, or what it leads to, is somebody else's. PATH may have folders of
// a repository, which may have brought a git of its own.
func Outside(inside func(path string) bool) func(program string) string {
	return func(program string) string {
		path := Find(program)
		if path == "" || inside(path) {
			return ""
		}
		if real, err := filepath.EvalSymlinks(path); err != nil || inside(real) {
			return ""
		}
		return path
	}
}

// PathOutside returns an environment whose PATH has no folders inside, and no
// relative ones: a language server starts what it finds there unasked, as gopls
// does go.
func PathOutside(env []string, inside func(path string) bool) []string {
	env = slices.Clone(env)
	for i, entry := range env {
		name, list, ok := strings.Cut(entry, "=")
		if !ok || !strings.EqualFold(name, "PATH") {
			continue
		}
		kept := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool {
			real, err := filepath.EvalSymlinks(dir)
			return err != nil || !filepath.IsAbs(dir) || inside(dir) || inside(real)
		})
		env[i] = name + "=" + strings.Join(kept, string(filepath.ListSeparator))
	}
	return env
}

// ShellName returns what the shell of commands is called.
func ShellName(find func(program string) string) string {
	switch {
	case runtime.GOOS == "windows":
		return "PowerShell"
	case Shell(find) != "":
		return "bash"
	}
	return "sh"
}

// Shell returns the shell that commands run in; "" = the usual one of the system.
func Shell(find func(program string) string) string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return find("bash")
}
