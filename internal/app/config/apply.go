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

// apply lays s over what the layers before it said.
func (l *loader) apply(ly layer, s Settings) error {
	l.record(ly, s)
	if s.Permissions == nil {
		s.Permissions = &Permissions{}
	}
	if s.Permissions.DefaultMode == nil && s.PermissionMode != nil {
		s.Permissions.DefaultMode = s.PermissionMode
	}
	if !ly.own() {
		l.restrict(ly, &s)
	}
	for _, step := range []func(layer, Settings) error{l.scalars, l.permissions, l.endpoints, l.choices, l.profiles, l.network, l.limits, l.memory, l.confine, l.care, l.planned, l.hooks, l.servers, l.extend, l.worktree, l.lanes, l.telemetry} {
		if err := step(ly, s); err != nil {
			return err
		}
	}
	return nil
}

// notices are the values of notify.
var notices = []string{"off", "bell", "terminal", "system"}

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
		{"notify", s.Notify, &l.cfg.Notify, notices},
		{"language", s.Language, &l.cfg.Language, []string{"en", "ko"}},
		{"effort", s.Effort, &l.cfg.Effort, efforts},
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
	if c := s.Checkpoints; c != nil {
		l.set(ly, "checkpoints", l.cfg.NoCheckpoints == *c)
		l.cfg.NoCheckpoints = !*c
	}
	if err := l.budget(ly, s.Budget); err != nil {
		return err
	}
	if err := l.retention(ly, s.Retention); err != nil {
		return err
	}
	return l.compact(ly, s.Compact)
}

func (l *loader) retention(ly layer, r *FileRetention) error {
	if r == nil {
		return nil
	}
	to := &l.cfg.Retention
	if v := r.Days; v != nil {
		const most = 36_500 // a hundred years
		if *v < 0 || *v > most {
			return l.invalid(ly, "retention.days", fmt.Sprint(*v), []string{"a number from 0 to 36500"})
		}
		l.set(ly, "retention.days", to.Days != *v)
		to.Days = *v
	}
	if r.Auto != nil {
		l.set(ly, "retention.auto", to.Auto != *r.Auto)
		to.Auto = *r.Auto
	}
	return nil
}

func (l *loader) compact(ly layer, c *FileCompact) error {
	if c == nil {
		return nil
	}
	to := &l.cfg.Compact
	if c.Auto != nil {
		l.set(ly, "compact.auto", to.Auto != *c.Auto)
		to.Auto = *c.Auto
	}
	if v := c.Threshold; v != nil {
		if !(*v >= 0.2 && *v <= 0.95) {
			return l.invalid(ly, "compact.threshold", fmt.Sprint(*v), []string{"a number from 0.2 to 0.95"})
		}
		l.set(ly, "compact.threshold", to.Threshold != *v)
		to.Threshold = *v
	}
	if v := c.Strategy; v != nil {
		if !slices.Contains(strategies, *v) {
			return l.invalid(ly, "compact.strategy", *v, strategies)
		}
		l.set(ly, "compact.strategy", to.Strategy != *v)
		to.Strategy = *v
	}
	if v := c.Recent; v != nil {
		if *v < 1 || *v > 1000 {
			return l.invalid(ly, "compact.recent", fmt.Sprint(*v), []string{"a number from 1 to 1000"})
		}
		l.set(ly, "compact.recent", to.Recent != *v)
		to.Recent = *v
	}
	return nil
}

// strategies are the values of compact.strategy.
var strategies = []string{"truncate-tools", "truncate-oldest", "summarize", "hybrid"}

// maxDollars bounds a budget, so that it can be counted in billionths.
const maxDollars = 1e9

func (l *loader) budget(ly layer, b *FileBudget) error {
	if b == nil {
		return nil
	}
	if d := b.Dollars; d != nil {
		if !(*d >= 0 && *d <= maxDollars) {
			return l.invalid(ly, "budget.usd", fmt.Sprint(*d), []string{"0", "an amount of US dollars"})
		}
		l.set(ly, "budget.usd", l.cfg.Budget.Dollars != *d)
		l.cfg.Budget.Dollars = *d
	}
	if n := b.Tokens; n != nil {
		if *n < 0 {
			return l.invalid(ly, "budget.tokens", fmt.Sprint(*n), []string{"0", "a positive number"})
		}
		l.set(ly, "budget.tokens", l.cfg.Budget.Tokens != *n)
		l.cfg.Budget.Tokens = *n
	}
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
	if err := l.rules(ly, s); err != nil {
		return err
	}
	var dirs []string
	for i, dir := range p.AddDirs {
		if dir == "" {
			return l.invalidItem(ly, "permissions.additionalDirectories", i, dir, "a folder")
		}
		dirs = append(dirs, l.absolute(dir))
	}
	l.cfg.AddDirs = union(l.cfg.AddDirs, dirs)
	for i, name := range p.SafeVars {
		if !variable().MatchString(name) {
			return l.invalidItem(ly, "permissions.safeVars", i, name, "the name of a variable")
		}
		l.set(ly, "permissions.safeVars", false)
	}
	l.cfg.SafeVars = union(l.cfg.SafeVars, p.SafeVars)
	if v := p.DisableBypass; v != nil {
		if *v != "disable" {
			return l.invalid(ly, disableBypass, *v, []string{"disable"})
		}
		l.set(ly, disableBypass, false)
		l.cfg.NoBypass = true
	}
	if ly.kind != Managed && (on(p.ManagedOnly) || on(s.ManagedRulesOnly)) {
		key := "permissions.managedOnly"
		if !on(p.ManagedOnly) {
			key = "allowManagedPermissionRulesOnly"
		}
		l.note("warn", fmt.Sprintf("%s: %s is for administrators", ly.place(ly.where(key)), key))
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
		if p.Type != "" && !slices.Contains(protocols, p.Type) {
			return l.invalid(ly, "providers."+name+".type", p.Type, protocols)
		}
		l.set(ly, "providers."+name, false)
		l.cfg.Providers[name] = p
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

// protocols are the values of providers.*.type.
var protocols = []string{"anthropic", "chat", "responses", "gemini"}

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
	if !strings.Contains(s, "@") {
		return s
	}
	if scheme, _, ok := strings.Cut(s, "://"); ok {
		return scheme + "://" + hidden
	}
	return hidden
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
		{"limits.header", s.Limits.Header, &l.cfg.Limits.Header},
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
	"maxSteps": "--max-turns", "fallbackModel": "--fallback-model", "effort": "--effort", "profile": "--profile", "dialect": "--tool-dialect", "durability": "--durability",
	"sandbox.mode": "--sandbox", "budget.usd": "--max-budget-usd", "budget.tokens": "--max-budget-tokens",
	"context.auto": "--no-auto-context",
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
	return ly.problem(ly.where(key), fmt.Sprintf("%s is %q and has to be one of: %s", key, value, want), "")
}

// invalidItem reports an entry of a list that means nothing.
func (l *loader) invalidItem(ly layer, key string, i int, value, want string) error {
	if ly.data == nil {
		return l.invalid(ly, key, value, []string{want})
	}
	return ly.problem(ly.item(key, i), fmt.Sprintf("%s is %q and has to be one of: %s", key, clip(value, maxText), want), "")
}

// union appends those of more that are not in have.
func union(have, more []string) []string {
	if len(more) == 0 {
		return have
	}
	seen := make(map[string]bool, len(have))
	for _, h := range have {
		seen[h] = true
	}
	for _, m := range more {
		if !seen[m] {
			seen[m] = true
			have = append(have, m)
		}
	}
	return have
}
