// Package local reads command lines as the shell of this machine will that runs them: it looks
// at the disk for what patterns match and where folders are. It opens no file, runs nothing and
// starts no goroutines.
package local

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/safety/shell"
)

// Reader returns what reads command lines for a shell, with "" for the usual one of the system.
// repository is [shell.Options.Repository].
func Reader(home, sh string, repository func(folder string) bool) func(command, dir string) agent.Effects {
	if sh == "" && runtime.GOOS == "windows" {
		sh = "powershell.exe"
	}
	return func(command, dir string) agent.Effects {
		return shell.Read(command, shell.Options{Shell: sh, Dir: dir, Home: home, Glob: glob, Folder: isFolder, Repository: repository})
	}
}

// isFolder reports whether a shell could go to a path.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// The limits of a glob. What goes beyond them cannot be known.
const (
	maxGlobEntries = 10_000 // names in one folder
	maxGlobMatches = 1_000
)

// glob returns the existing paths that an absolute pattern matches, as a shell
// without options would: names that begin with a dot have to be asked for.
func glob(pattern string) (matches []string, ok bool) {
	if !filepath.IsAbs(pattern) || strings.Contains(pattern, "[[:") || strings.Contains(pattern, "[[.") || strings.Contains(pattern, "[[=") {
		return nil, false
	}
	top := filepath.VolumeName(pattern) + string(filepath.Separator)
	parts := strings.FieldsFunc(pattern[len(top):], func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
	at := []string{top}
	for _, part := range parts {
		if at, ok = below(at, strings.ReplaceAll(part, "[!", "[^")); !ok {
			return nil, false
		}
	}
	if os.IsPathSeparator(pattern[len(pattern)-1]) { // folders only, and so written
		at = slices.DeleteFunc(at, func(path string) bool { return !isFolder(path) })
		for i := range at {
			at[i] += string(filepath.Separator)
		}
	}
	slices.Sort(at)
	return at, true
}

// below returns what matches one part of a pattern in any of the folders.
func below(dirs []string, part string) (found []string, ok bool) {
	plain := !strings.ContainsAny(part, `*?[\`)
	for _, dir := range dirs {
		if plain {
			if _, err := os.Lstat(filepath.Join(dir, part)); err == nil {
				found = append(found, filepath.Join(dir, part))
			}
			continue
		}
		names, ok := namesIn(dir)
		if !ok {
			return nil, false
		}
		for _, name := range names {
			fits, err := filepath.Match(part, name)
			if err != nil {
				return nil, false
			}
			if fits && (name[0] != '.' || part[0] == '.') {
				found = append(found, filepath.Join(dir, name))
			}
		}
		if len(found) > maxGlobMatches {
			return nil, false
		}
	}
	return found, true
}

// namesIn lists a folder. One that is none has no names.
func namesIn(dir string) (names []string, ok bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, os.IsNotExist(err)
	}
	defer f.Close()
	names, _ = f.Readdirnames(maxGlobEntries + 1) // what is no folder has none
	if len(names) == 0 {
		return nil, true
	}
	return names, len(names) <= maxGlobEntries
}
