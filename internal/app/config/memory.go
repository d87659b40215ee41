package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Memory says which instruction files a model gets. Zero numbers are left to the
// package that they are for.
type Memory struct {
	Off      bool     // none
	Managed  string   // folder of the administrator's
	User     string   // a file in the place of the user's own ones; absolute; "" = those
	Depth    int      // files that include one another: 1 to 5
	Chars    int      // of all of them together
	Excludes []string // patterns of absolute paths that are not read
	Outside  bool     // files of a trusted project may include others from outside of it
}

// FileMemory is [Memory] as a file writes it.
type FileMemory struct {
	Enabled  *bool    `json:"enabled"`
	User     *string  `json:"user"`
	Depth    *int     `json:"depth"`
	Chars    *int     `json:"maxChars"`
	Excludes []string `json:"excludes"`
	Outside  *bool    `json:"outside"`
}

// The bounds of what the files may hold together, in characters.
const (
	minMemory = 1000
	maxMemory = 1_000_000
)

// maxExcludes bounds the patterns of all layers, and maxPattern one of them in bytes.
const (
	maxExcludes = 1000
	maxPattern  = 1024
)

func (l *loader) memory(ly layer, s Settings) error {
	m := s.Memory
	if m == nil {
		m = &FileMemory{}
	}
	to := &l.cfg.Memory
	for _, f := range []struct {
		key   string
		value *bool
		have  bool
		set   func(bool)
	}{
		{"memory.enabled", m.Enabled, !to.Off, func(v bool) { to.Off = !v }},
		{"memory.outside", m.Outside, to.Outside, func(v bool) { to.Outside = v }},
	} {
		if f.value != nil {
			l.set(ly, f.key, f.have != *f.value)
			f.set(*f.value)
		}
	}
	if m.User != nil {
		path := ""
		if *m.User != "" {
			path = l.absolute(*m.User)
		}
		l.set(ly, "memory.user", to.User != path)
		to.User = path
	}
	for _, f := range []struct {
		key         string
		value       *int
		to          *int
		least, most int
	}{
		{"memory.depth", m.Depth, &to.Depth, 1, 5},
		{"memory.maxChars", m.Chars, &to.Chars, minMemory, maxMemory},
	} {
		if f.value == nil {
			continue
		}
		if *f.value < f.least || *f.value > f.most {
			return l.invalid(ly, f.key, fmt.Sprint(*f.value), []string{fmt.Sprintf("a number from %d to %d", f.least, f.most)})
		}
		l.set(ly, f.key, *f.to != *f.value)
		*f.to = *f.value
	}
	if err := l.excludes(ly, "memory.excludes", m.Excludes); err != nil {
		return err
	}
	return l.excludes(ly, "claudeMdExcludes", s.MemoryExcludes)
}

func (l *loader) excludes(ly layer, key string, patterns []string) error {
	for i, p := range patterns {
		if p == "" || len(p) > maxPattern {
			return l.invalidItem(ly, key, i, p, fmt.Sprintf("a pattern of at most %d bytes", maxPattern))
		}
		if len(l.cfg.Memory.Excludes) >= maxExcludes {
			return l.invalidItem(ly, key, i, p, fmt.Sprintf("%d patterns at most", maxExcludes))
		}
		if !strings.HasPrefix(p, "**") {
			p = filepath.ToSlash(l.absolute(p))
		}
		l.set(ly, key, false)
		l.cfg.Memory.Excludes = append(l.cfg.Memory.Excludes, p)
	}
	return nil
}

// restrictMemory takes from a repository only what it leaves out of a trusted
// folder's files: what the user has told the model is not the repository's.
func (l *loader) restrictMemory(ly layer, s *Settings, drop func(key string)) {
	l.untrusted(ly, "claudeMdExcludes", &s.MemoryExcludes)
	if s.Memory == nil {
		return
	}
	m := s.Memory
	for _, f := range []struct {
		key   string
		given bool
	}{
		{"memory.enabled", m.Enabled != nil},
		{"memory.user", m.User != nil},
		{"memory.depth", m.Depth != nil},
		{"memory.maxChars", m.Chars != nil},
		{"memory.outside", m.Outside != nil},
	} {
		if f.given {
			drop(f.key)
		}
	}
	kept := FileMemory{Excludes: m.Excludes}
	l.untrusted(ly, "memory.excludes", &kept.Excludes)
	s.Memory = &kept
}
