package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"dure/agent"
)

// trusted reports whether a layer speaks for the user. The files of a project
// come with the repository, whoever wrote it: until a project can be trusted
// they may forbid and choose, but not permit, and not say where a key is sent.
func (ly layer) trusted() bool { return ly.kind != Project && ly.kind != Local }

// apply lays s over what the layers before it said.
func (l *loader) apply(ly layer, s Settings) error {
	if s.Permissions == nil {
		s.Permissions = &Permissions{}
	}
	if s.Permissions.DefaultMode == nil && s.PermissionMode != nil {
		s.Permissions.DefaultMode = s.PermissionMode
	}
	if !ly.trusted() {
		l.restrict(ly, &s)
	}
	for _, step := range []func(layer, Settings) error{l.scalars, l.permissions, l.endpoints, l.limits} {
		if err := step(ly, s); err != nil {
			return err
		}
	}
	return nil
}

// restrict takes out of s what a repository may not decide, and says so.
func (l *loader) restrict(ly layer, s *Settings) {
	drop := func(key string) {
		l.note("warn", fmt.Sprintf("%s: %s is not taken from a repository; set it in your own settings", ly.place(ly.at[key]), key))
	}
	p := *s.Permissions
	if len(p.Allow) > 0 {
		drop("permissions.allow")
		p.Allow = nil
	}
	if len(p.AddDirs) > 0 {
		drop("permissions.additionalDirectories")
		p.AddDirs = nil
	}
	if p.DefaultMode != nil && l.loosens(*p.DefaultMode) {
		key := "permissions.defaultMode"
		if _, ok := ly.at[key]; !ok {
			key = "permissionMode"
		}
		drop(key)
		p.DefaultMode = nil
	}
	s.Permissions = &p
	if n := s.MaxSteps; n != nil && l.cfg.MaxSteps > 0 && (*n == 0 || *n > l.cfg.MaxSteps) {
		drop("maxSteps")
		s.MaxSteps = nil
	}
	if s.BaseURL != nil {
		drop("baseUrl")
		s.BaseURL = nil
	}
	if len(s.Providers) > 0 {
		drop("providers")
		s.Providers = nil
	}
	if len(s.Models) > 0 {
		drop("models")
		s.Models = nil
	}
	if s.Durability != nil {
		drop("durability")
		s.Durability = nil
	}
}

// loosens reports whether a mode runs more than the default one does, or asks
// about more than the mode that the layers before have chosen: plan and dontAsk
// deny what others ask about. What is no mode at all is reported as such later.
func (l *loader) loosens(mode string) bool {
	switch agent.Mode(mode) {
	case agent.ModeAcceptEdits, agent.ModeBypass:
		return true
	case agent.ModePlan:
		return l.cfg.Mode == agent.ModeDontAsk
	case agent.ModeDontAsk:
		return false
	}
	return l.cfg.Mode == agent.ModePlan || l.cfg.Mode == agent.ModeDontAsk
}

// maxText bounds a setting that may be any text of one line, in bytes: a name.
// It goes into the system prompt and onto the screen.
const maxText = 200

func (l *loader) scalars(ly layer, s Settings) error {
	for _, f := range []struct {
		key   string
		value *string
		to    *string
		among []string // empty = any text
	}{
		{"model", s.Model, &l.cfg.Model, nil},
		{"dialect", s.Dialect, &l.cfg.Dialect, []string{"claude", "dure"}},
		{"durability", s.Durability, &l.cfg.Durability, []string{"barrier", "always", "os"}},
		{"language", s.Language, &l.cfg.Language, []string{"en", "ko"}},
	} {
		if f.value == nil {
			continue
		}
		v := strings.TrimSpace(*f.value)
		if v == "" || len(v) > maxText || strings.ContainsFunc(v, unicode.IsControl) || (len(f.among) > 0 && !slices.Contains(f.among, v)) {
			return l.invalid(ly, f.key, *f.value, f.among)
		}
		l.set(ly, f.key, *f.to != v)
		*f.to = v
	}
	if s.MaxSteps != nil {
		if *s.MaxSteps < 0 {
			return l.invalid(ly, "maxSteps", fmt.Sprint(*s.MaxSteps), []string{"0", "a positive number"})
		}
		l.set(ly, "maxSteps", l.cfg.MaxSteps != *s.MaxSteps)
		l.cfg.MaxSteps = *s.MaxSteps
	}
	l.cfg.ScrubEnv = union(l.cfg.ScrubEnv, s.ScrubEnv)
	return nil
}

// modes are the values of permissions.defaultMode; manual is another word for
// default.
var modes = []string{
	string(agent.ModeDefault), string(agent.ModeAcceptEdits), string(agent.ModePlan),
	string(agent.ModeDontAsk), string(agent.ModeBypass),
}

func (l *loader) permissions(ly layer, s Settings) error {
	const key = "permissions.defaultMode"
	p := s.Permissions
	if p.DefaultMode != nil {
		mode := *p.DefaultMode
		if mode == "manual" {
			mode = string(agent.ModeDefault)
		}
		if !slices.Contains(modes, mode) {
			return l.invalid(ly, key, mode, modes)
		}
		l.set(ly, key, string(l.cfg.Mode) != mode)
		l.cfg.Mode = agent.Mode(mode)
	}
	for _, r := range []struct {
		key  string
		from []string
		to   *[]Rule
	}{
		{"permissions.allow", p.Allow, &l.cfg.Allow},
		{"permissions.deny", p.Deny, &l.cfg.Deny},
		{"permissions.ask", p.Ask, &l.cfg.Ask},
	} {
		for _, text := range r.from {
			if strings.TrimSpace(text) == "" {
				return l.invalid(ly, r.key, text, []string{"a rule such as Bash"})
			}
			*r.to = append(*r.to, Rule{strings.TrimSpace(text), l.origin(ly, r.key)})
		}
	}
	for _, dir := range p.AddDirs {
		if dir == "" {
			return l.invalid(ly, "permissions.additionalDirectories", dir, []string{"a folder"})
		}
		l.cfg.AddDirs = union(l.cfg.AddDirs, []string{l.absolute(dir)})
	}
	return nil
}

func (l *loader) endpoints(ly layer, s Settings) error {
	if s.BaseURL != nil {
		u, ok := endpoint(*s.BaseURL)
		if !ok {
			return l.invalid(ly, "baseUrl", shownURL(*s.BaseURL), []string{"an address such as https://host/path"})
		}
		l.set(ly, "baseUrl", l.cfg.BaseURL != u)
		l.cfg.BaseURL = u
	}
	for _, name := range slices.Sorted(maps.Keys(s.Providers)) {
		p := s.Providers[name]
		if p.BaseURL != "" {
			u, ok := endpoint(p.BaseURL)
			if !ok {
				return l.invalid(ly, "providers."+name+".baseUrl", shownURL(p.BaseURL), []string{"an address such as https://host/path"})
			}
			p.BaseURL = u
		}
		if l.cfg.Providers == nil {
			l.cfg.Providers = map[string]Provider{}
		}
		l.set(ly, "providers."+name, false)
		l.cfg.Providers[name] = p
		key := "providers." + name
		l.note("warn", fmt.Sprintf("%s: %s is not used yet: every model is reached through baseUrl", ly.place(ly.at[key]), key))
		if p.KeyEnv != "" {
			l.cfg.ScrubEnv = union(l.cfg.ScrubEnv, []string{p.KeyEnv})
		}
	}
	for _, m := range s.Models {
		if m.ID == "" {
			return l.invalid(ly, "models", "", []string{"a list of models, each with an id"})
		}
		l.set(ly, "models", false)
		l.cfg.Models = append(l.cfg.Models, m)
	}
	return nil
}

// endpoint checks the address of a model's service. One that carries a user and
// a password is refused, because addresses are shown and logged.
func endpoint(s string) (string, bool) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return "", false
	}
	return strings.TrimRight(u.String(), "/"), true
}

// shownURL hides what may be a password.
func shownURL(s string) string {
	if scheme, _, ok := strings.Cut(s, "://"); ok && strings.Contains(s, "@") {
		return scheme + "://" + hidden
	}
	return s
}

// Bounds of the limits.
const (
	maxRetries = 20
	maxWait    = time.Hour
)

func (l *loader) limits(ly layer, s Settings) error {
	if s.Limits == nil {
		return nil
	}
	if n := s.Limits.Retries; n != nil {
		if *n < 1 || *n > maxRetries {
			return l.invalid(ly, "limits.retries", fmt.Sprint(*n), []string{fmt.Sprintf("1 to %d", maxRetries)})
		}
		l.set(ly, "limits.retries", l.cfg.Limits.Retries != *n)
		l.cfg.Limits.Retries = *n
	}
	for _, f := range []struct {
		key   string
		value *string
		to    *time.Duration
	}{
		{"limits.idle", s.Limits.Idle, &l.cfg.Limits.Idle},
		{"limits.ping", s.Limits.Ping, &l.cfg.Limits.Ping},
	} {
		if f.value == nil {
			continue
		}
		d, err := time.ParseDuration(*f.value)
		if err != nil || d < time.Second || d > maxWait {
			return l.invalid(ly, f.key, *f.value, []string{"a time from 1s to 1h"})
		}
		l.set(ly, f.key, *f.to != d)
		*f.to = d
	}
	return nil
}

// set records where a value comes from. What the administrator decides is told
// to a user who had asked for something else.
func (l *loader) set(ly layer, key string, differs bool) {
	before, given := l.cfg.Origins[key]
	if ly.kind == Managed && given && differs && before.Layer != BuiltIn {
		l.note("info", fmt.Sprintf("%s is set by your administrator (%s), which overrides %s", key, ly.path, before))
	}
	l.cfg.Origins[key] = l.origin(ly, key)
}

func (l *loader) origin(ly layer, key string) Origin {
	if ly.kind == Environment {
		return Origin{Environment, ly.path}
	}
	if ly.kind == Flags {
		return Origin{Flags, flagOf[key]}
	}
	return Origin{ly.kind, ly.path}
}

// flagOf names the flag that carries a setting.
var flagOf = map[string]string{
	"model": "--model", "baseUrl": "--base-url", "permissions.defaultMode": "--permission-mode",
	"permissions.allow": "--allow", "permissions.deny": "--deny", "permissions.additionalDirectories": "--add-dir",
	"maxSteps": "--max-turns", "dialect": "--tool-dialect", "durability": "--durability",
}

// invalid reports a value of the right type that means nothing.
func (l *loader) invalid(ly layer, key, value string, among []string) error {
	want := strings.Join(among, ", ")
	if want == "" {
		want = "a text"
	}
	if ly.kind == Flags {
		return &agent.Problem{
			Code:    agent.ProblemUsage,
			Message: fmt.Sprintf("%s: %q is none of: %s", flagOf[key], value, want),
			Fix:     "See dure --help.",
			Args:    map[string]string{"flag": flagOf[key], "value": value, "wanted": want},
		}
	}
	if ly.kind == Environment {
		return ly.problem(0, fmt.Sprintf("%q is none of: %s", value, want), "Mend the environment variable "+ly.path+", or unset it.")
	}
	return ly.problem(ly.at[key], fmt.Sprintf("%s is %q and has to be one of: %s", key, value, want), "")
}

func union(have, more []string) []string {
	for _, m := range more {
		if !slices.Contains(have, m) {
			have = append(have, m)
		}
	}
	return have
}
