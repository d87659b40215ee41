package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/base/keys/secret"
	"dure/internal/models/registry"
)

// apply lays what a layer says over what the layers before it said.
func (l *loader) apply(ly layer) error {
	if ly.said == nil {
		return nil
	}
	l.record(ly)
	return l.take(ly, ly.said, tree(), "")
}

// applyFile is apply for a file of ours, whose errors say where in it.
func (l *loader) applyFile(ly layer) error {
	err := l.apply(ly)
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		te.Field = field(ly.root, te.Field, int(te.Offset))
		return ly.decodeProblem(te)
	}
	return err
}

// notices are the values of notify.
var notices = []string{"off", "bell", "terminal", "system"}

// maxText bounds a setting that may be any text of one line, in bytes: a name.
// It goes into the system prompt and onto the screen.
const maxText = 200

// strategies are the values of compact.strategy.
var strategies = []string{"truncate-tools", "truncate-oldest", "summarize", "hybrid"}

// maxDollars bounds a budget, so that it can be counted in billionths.
const maxDollars = 1e9

// modes are the values of permissions.defaultMode; manual is another word for
// default.
var modes = []string{
	string(agent.ModeDefault), string(agent.ModeAcceptEdits), string(agent.ModePlan),
	string(agent.ModeDontAsk), string(agent.ModeBypass),
}

// providers applies what is said of endpoints that serve models.
func (l *loader) providers(e entry) error {
	var all map[string]registry.Setting
	if err := e.decode(&all); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p, key := all[name], e.path+"."+name
		if p.BaseURL != "" {
			u, ok := endpoint(p.BaseURL)
			if !ok {
				return l.invalid(e.ly, key+".baseUrl", shownURL(p.BaseURL), "an address such as https://host/path")
			}
			p.BaseURL = u
		}
		if p.Type != "" && !slices.Contains(protocols, p.Type) {
			return l.invalid(e.ly, key+".type", p.Type, strings.Join(protocols, ", "))
		}
		if l.cfg.Providers == nil {
			l.cfg.Providers = map[string]registry.Setting{}
		}
		l.set(e.ly, key, false)
		l.cfg.Providers[name] = p
		if p.KeyEnv != "" {
			l.cfg.ScrubEnv = union(l.cfg.ScrubEnv, []string{p.KeyEnv})
		}
	}
	return nil
}

func (l *loader) models(e entry) error {
	var all []agent.ModelInfo
	if err := e.decode(&all); err != nil || e.refused() {
		return err
	}
	for _, m := range all {
		if m.ID == "" {
			return e.invalid("", "a list of models, each with an id")
		}
		e.set(false)
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
		return scheme + "://" + secret.Hidden
	}
	return secret.Hidden
}

// Bounds of the limits.
const (
	maxRetries = 20
	maxWait    = time.Hour
)

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
func (l *loader) invalid(ly layer, key, value, want string) error {
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
		return l.invalid(ly, key, value, want)
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
