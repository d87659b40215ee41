package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dure/agent"
)

// loader holds what the steps of Load share.
type loader struct {
	src  Sources
	cfg  Config
	said map[string]layer // who spoke last of a profile
	told map[string]bool  // files and keys of which the user was told that they are inert
	left int              // how much is inert
	odd  int              // how many rules cannot be read

	watched telemetrySaid
	table   []Key // see [loader.rows]
}

// Load reads all layers and returns what they say together. Its errors are
// [*agent.Problem].
func Load(src Sources) (Config, error) {
	c, err := load(src)
	if err == nil && src.Trusted && c.Trust == TrustNever {
		src.Trusted = false // the layer that says so may come after those that it is about
		return load(src)
	}
	return c, err
}

func load(src Sources) (Config, error) {
	l, err := newLoader(src)
	if err != nil {
		return Config{}, err
	}
	files, others := l.files(), l.claudeFiles()
	for _, step := range []func() error{
		func() error { return l.both(User, others.user, files.user) },
		func() error { return l.both(Project, others.project, files.project) },
		func() error { return l.both(Local, others.local, "") },
		func() error { return l.top(others.top) },
		func() error { return l.both(Local, "", files.local) },
		l.inline,
		l.environment,
		func() error { return l.apply(layer{kind: Flags, said: l.src.Flags.written()}) },
		func() error { return l.managed(files, others) },
		func() error { l.telemetryVariables(); return nil },
		l.proxies,
		l.checkProfiles,
	} {
		if err := step(); err != nil {
			return Config{}, err
		}
	}
	l.finish()
	return l.cfg, nil
}

func newLoader(src Sources) (*loader, error) {
	if src.Getenv == nil {
		src.Getenv = func(string) string { return "" }
	}
	if src.ReadDir == nil {
		src.ReadDir = readDir
	}
	l := &loader{src: src, cfg: builtIn(), told: map[string]bool{}, said: map[string]layer{}, watched: telemetrySaid{sample: 1, exit: usualTelemetryExit, content: "off", general: sending{url: usualCollector}}}
	if src.Language != "" {
		l.cfg.Language = src.Language
	}
	return l, l.places()
}

// finish is what can be said when all layers have spoken.
func (l *loader) finish() {
	l.cfg.Trusted = l.src.Trusted
	l.finishHooks()
	l.finishTelemetry()
	if l.cfg.NoBypass && l.cfg.Mode == agent.ModeBypass {
		l.note("warn", fmt.Sprintf("mode %s is switched off by %s", agent.ModeBypass, l.cfg.Origins[disableBypass]))
		l.cfg.Mode = agent.ModeDefault
		l.cfg.Origins["permissions.defaultMode"] = l.cfg.Origins[disableBypass]
	}
	if more := l.odd - maxUnknown; more > 0 {
		l.note("warn", fmt.Sprintf("%d more rules cannot be read", more))
	}
	if more := l.left - maxInert; more > 0 {
		l.cfg.Inert = append(l.cfg.Inert, Inert{What: fmt.Sprintf("%d more", more)})
	}
}

// DefaultModel is the model when nobody has chosen one.
const DefaultModel = "claude-sonnet-4-6"

// builtIn is the weakest layer.
func builtIn() Config {
	c := Config{
		Model:        DefaultModel,
		Mode:         agent.ModeDefault,
		Dialect:      "claude",
		ToolSearch:   usualToolShare,
		Durability:   "barrier",
		Notify:       "off",
		Mirror:       MirrorSDK,
		Compact:      Compact{Auto: true},
		Retention:    Retention{Days: 30},
		Context:      Context{Auto: true},
		Reflexion:    Reflexion{Enabled: true, EvaluateOnSuccess: true, MaxEntries: 5},
		Plan:         Plan{Mode: agent.PlanOff, Retries: 3},
		Verification: Verification{Enabled: true, Cowork: true, Code: true},
		Language:     "en",
		Profile:      "code",
		Network:      Network{Mode: External},
		Trust:        TrustAsk,
		Origins:      map[string]Origin{},
	}
	for _, name := range []string{"model", "permissions.defaultMode", "dialect", "durability", "language", "profile", "network.mode", "trust.mode", "sandbox.mode"} {
		c.Origins[name] = Origin{Layer: BuiltIn}
	}
	return c
}

// both applies the settings of a layer that is read, others' first; "" = there are none.
func (l *loader) both(kind Layer, others, own string) error {
	if !l.src.reads(kind) {
		return nil
	}
	if others != "" {
		if err := l.claude(kind, others); err != nil {
			return err
		}
	}
	return l.file(kind, own)
}

// top applies the file at the top of a repository of which the project is a folder.
func (l *loader) top(path string) error {
	if !l.src.reads(Local) {
		return nil
	}
	return l.theirFile(layer{kind: Local, path: path, outside: true})
}

// reads reports whether the files of a layer are read.
func (s Sources) reads(kind Layer) bool { return s.Only == nil || slices.Contains(s.Only, kind) }

// file applies the settings at path, if there are any; "" = there are none.
func (l *loader) file(kind Layer, path string) error {
	if path == "" {
		return nil
	}
	ly, err := l.readFile(kind, path)
	if err != nil || ly.data == nil {
		return err
	}
	return l.applyFile(ly)
}

// readFile reads a file; one that is not there has no data.
func (l *loader) readFile(kind Layer, path string) (layer, error) {
	data, err := l.src.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return layer{}, nil // a folder that is none is reported when something is written to it
	}
	return l.read(kind, path, data, err)
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
	ly, err := l.read(kind, path, data, err)
	if err != nil {
		return err
	}
	return l.applyFile(ly)
}

func (l *loader) read(kind Layer, path string, data []byte, err error) (layer, error) {
	ly := layer{kind: kind, path: path}
	if err != nil {
		return ly, ly.problem(0, "reading it: "+cause(err), "Make it readable, or move it away.")
	}
	unknown, err := ly.read(data)
	if err != nil {
		return ly, err
	}
	for _, u := range unknown {
		l.note("warn", u)
	}
	return ly, nil
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
