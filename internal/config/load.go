package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"dure/agent"
)

// loader holds what the steps of Load share.
type loader struct {
	src Sources
	cfg Config
}

// Load reads all layers and returns what they say together. Its errors are
// [*agent.Problem].
func Load(src Sources) (Config, error) {
	if src.Getenv == nil {
		src.Getenv = func(string) string { return "" }
	}
	l := &loader{src: src, cfg: builtIn()}
	if src.Language != "" {
		l.cfg.Language = src.Language
	}
	if err := l.places(); err != nil {
		return Config{}, err
	}
	for _, step := range []func() error{
		func() error { return l.file(User, filepath.Join(l.cfg.Home, "settings.json")) },
		func() error { return l.file(Project, filepath.Join(src.Workdir, ".dure", "settings.json")) },
		func() error { return l.file(Local, filepath.Join(src.Workdir, ".dure", "settings.local.json")) },
		l.inline,
		l.environment,
		func() error { return l.apply(layer{kind: Flags}, src.Flags) },
		func() error { return l.file(Managed, managedFile(src.OS)) },
	} {
		if err := step(); err != nil {
			return Config{}, err
		}
	}
	return l.cfg, nil
}

// builtIn is the weakest layer.
func builtIn() Config {
	c := Config{
		Model:      "claude-sonnet-4-6",
		Mode:       agent.ModeDefault,
		Dialect:    "claude",
		Durability: "barrier",
		Language:   "en",
		Origins:    map[string]Origin{},
	}
	for _, name := range []string{"model", "permissions.defaultMode", "dialect", "durability", "language"} {
		c.Origins[name] = Origin{Layer: BuiltIn}
	}
	return c
}

// file applies the settings at path, if there are any.
func (l *loader) file(kind Layer, path string) error {
	data, err := l.src.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // a folder that is none is reported when something is written to it
	}
	return l.data(kind, path, data, err)
}

// inline applies what --settings names or holds.
func (l *loader) inline() error {
	s := strings.TrimSpace(l.src.Settings)
	switch {
	case s == "":
		return nil
	case s[0] == '{':
		return l.data(Inline, "", []byte(s), nil)
	}
	path := l.absolute(s)
	data, err := l.src.ReadFile(path)
	return l.data(Inline, path, data, err)
}

func (l *loader) data(kind Layer, path string, data []byte, err error) error {
	ly := layer{kind: kind, path: path}
	if err != nil {
		return ly.problem(0, "reading it: "+cause(err), "Make it readable, or move it away.")
	}
	s, unknown, err := ly.read(data)
	if err != nil {
		return err
	}
	for _, u := range unknown {
		l.note("warn", u)
	}
	return l.apply(ly, s)
}

// cause is err without the path that its reader is told anyway.
func cause(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func (l *loader) note(level, text string) {
	l.cfg.Notes = append(l.cfg.Notes, agent.Note{Level: level, Code: "settings", Text: text})
}

// absolute returns path as it is meant on the command line and in files: ~ is
// the user's home, and what is relative stands in the working directory.
func (l *loader) absolute(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && l.src.UserHome != "" {
		return filepath.Join(l.src.UserHome, rest)
	}
	if !filepath.IsAbs(path) {
		return filepath.Join(l.src.Workdir, path)
	}
	return filepath.Clean(path)
}
