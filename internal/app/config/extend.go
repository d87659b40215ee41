package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"dure/agent"
	"dure/internal/safety/shell/programs"
)

// Extend is what the settings say about plugins, skills, agents and styles. What is not in force is not in it; see [Config.Inert].
type Extend struct {
	Plugins       map[string]bool // by name@marketplace; what is not there was not said
	ManagedPlugin map[string]bool // those on which the administrator has decided
	PluginConfigs map[string]json.RawMessage
	Marketplaces  map[string]json.RawMessage // beside the known ones
	OnlyMarkets   *[]json.RawMessage         // nil = any; an empty list is none
	BlockMarkets  []json.RawMessage

	Skills          map[string]string // on, name-only, user-invocable-only or off
	SkillBudget     float64           // share of the window that their list may take; 0 = built in
	SkillText       int               // characters of a description in it; 0 = built in
	NoBundledSkills bool
	NoSkillShell    bool // they run no commands while they are read

	Agent string // that sessions begin with; "" = none
	Style string // of answers; "" = none
}

// Extensions is [Extend] as a file writes it.
type Extensions struct {
	Env              map[string]string          `json:"env"`
	EnabledPlugins   map[string]bool            `json:"enabledPlugins"`
	PluginConfigs    map[string]json.RawMessage `json:"pluginConfigs"`
	Marketplaces     map[string]json.RawMessage `json:"extraKnownMarketplaces"`
	OnlyMarketplaces *[]json.RawMessage         `json:"strictKnownMarketplaces"`
	BlockedMarkets   []json.RawMessage          `json:"blockedMarketplaces"`
	SkillOverrides   map[string]string          `json:"skillOverrides"`
	SkillBudget      *float64                   `json:"skillListingBudgetFraction"`
	SkillText        *int                       `json:"skillListingMaxDescChars"`
	NoBundledSkills  *bool                      `json:"disableBundledSkills"`
	NoSkillShell     *bool                      `json:"disableSkillShellExecution"`
	Agent            *string                    `json:"agent"`
	OutputStyle      *string                    `json:"outputStyle"`
}

// The bounds of what extends the program.
const (
	maxSkillText = 100_000 // characters of a description
	maxVars      = 500     // variables of all layers
	maxVarBytes  = 32 << 10
)

// skillStates are the values of skillOverrides, the widest first.
var skillStates = []string{"on", "name-only", "user-invocable-only", "off"}

// extend applies what a layer says about what extends the program.
func (l *loader) extend(ly layer, s Settings) error {
	for _, step := range []func(layer, Settings) error{l.tools, l.env, l.plugins, l.skills} {
		if err := step(ly, s); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		key  string
		from *string
		to   *string
	}{{"agent", s.Agent, &l.cfg.Extend.Agent}, {"outputStyle", s.OutputStyle, &l.cfg.Extend.Style}} {
		if f.from == nil {
			continue
		}
		if len(*f.from) > maxText || strings.ContainsFunc(*f.from, unicode.IsControl) {
			return l.invalid(ly, f.key, clip(*f.from, maxText), []string{"a name"})
		}
		l.set(ly, f.key, *f.to != *f.from)
		*f.to = *f.from
	}
	return nil
}

// tools denies tools as wholes, which takes them from the model.
func (l *loader) tools(ly layer, s Settings) error {
	for i, name := range s.DisabledTools {
		if name == "" || len(name) > maxText || strings.ContainsAny(name, "()*") || strings.ContainsFunc(name, unicode.IsControl) {
			return l.invalidItem(ly, "disabledTools", i, name, "the name of a tool")
		}
		at := ly.item("disabledTools", i)
		r := Rule{Text: name, Verdict: agent.Deny, Reason: "the settings switch it off", Origin: Origin{ly.kind, ly.place(at)}, File: ly.path, Dir: l.base(ly)}
		r.Line, r.Column = ly.position(at)
		l.add(r)
		l.set(ly, "disabledTools", false)
	}
	return nil
}

func (l *loader) env(ly layer, s Settings) error {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		value := s.Env[name]
		switch {
		case !variable().MatchString(name):
			return ly.problem(ly.where("env"), fmt.Sprintf("env has %q, which is no name of a variable", clip(name, maxText)), "")
		case len(value) > maxVarBytes || strings.ContainsRune(value, 0):
			return ly.problem(ly.where("env"), fmt.Sprintf("env.%s has to be a text of at most %d bytes", name, maxVarBytes), "")
		case len(l.cfg.Env) >= maxVars:
			return ly.problem(ly.where("env"), fmt.Sprintf("there are more than %d variables", maxVars), "")
		}
		if l.cfg.Env == nil {
			l.cfg.Env = map[string]Secret{}
		}
		l.set(ly, "env."+name, string(l.cfg.Env[name]) != value)
		l.cfg.Env[name] = Secret(value)
	}
	return nil
}

func (l *loader) plugins(ly layer, s Settings) error {
	to := &l.cfg.Extend
	for id, on := range s.EnabledPlugins {
		if to.Plugins == nil {
			to.Plugins = map[string]bool{}
		}
		l.set(ly, "enabledPlugins."+id, to.Plugins[id] != on)
		to.Plugins[id] = on
		if ly.kind == Managed {
			if to.ManagedPlugin == nil {
				to.ManagedPlugin = map[string]bool{}
			}
			to.ManagedPlugin[id] = true
		}
	}
	merge := func(key string, from map[string]json.RawMessage, into *map[string]json.RawMessage) {
		for name, raw := range from {
			if *into == nil {
				*into = map[string]json.RawMessage{}
			}
			l.set(ly, key+"."+name, string((*into)[name]) != string(raw))
			(*into)[name] = raw
		}
	}
	merge("pluginConfigs", s.PluginConfigs, &to.PluginConfigs)
	merge("extraKnownMarketplaces", s.Marketplaces, &to.Marketplaces)
	if s.OnlyMarketplaces != nil && ly.kind != Managed {
		l.note("warn", fmt.Sprintf("%s: %s is for administrators", ly.place(ly.where("strictKnownMarketplaces")), "strictKnownMarketplaces"))
	} else if s.OnlyMarketplaces != nil {
		l.set(ly, "strictKnownMarketplaces", false)
		to.OnlyMarkets = s.OnlyMarketplaces
	}
	if len(s.BlockedMarkets) > 0 {
		l.set(ly, "blockedMarketplaces", false)
		to.BlockMarkets = append(to.BlockMarkets, s.BlockedMarkets...)
	}
	return nil
}

func (l *loader) skills(ly layer, s Settings) error {
	to := &l.cfg.Extend
	for _, name := range slices.Sorted(maps.Keys(s.SkillOverrides)) {
		state := s.SkillOverrides[name]
		if !slices.Contains(skillStates, state) {
			return ly.problem(ly.where("skillOverrides"), fmt.Sprintf("skillOverrides.%s is %q and has to be one of: %s", clip(name, maxText), clip(state, maxText), strings.Join(skillStates, ", ")), "")
		}
		if to.Skills == nil {
			to.Skills = map[string]string{}
		}
		l.set(ly, "skillOverrides."+name, to.Skills[name] != state)
		to.Skills[name] = state
	}
	if v := s.SkillBudget; v != nil {
		if !(*v >= 0 && *v <= 1) {
			return l.invalid(ly, "skillListingBudgetFraction", fmt.Sprint(*v), []string{"a number from 0 to 1"})
		}
		l.set(ly, "skillListingBudgetFraction", to.SkillBudget != *v)
		to.SkillBudget = *v
	}
	if v := s.SkillText; v != nil {
		if *v < 1 || *v > maxSkillText {
			return l.invalid(ly, "skillListingMaxDescChars", fmt.Sprint(*v), []string{fmt.Sprintf("a number from 1 to %d", maxSkillText)})
		}
		l.set(ly, "skillListingMaxDescChars", to.SkillText != *v)
		to.SkillText = *v
	}
	for _, f := range []struct {
		key  string
		from *bool
		to   *bool
	}{{"disableBundledSkills", s.NoBundledSkills, &to.NoBundledSkills}, {"disableSkillShellExecution", s.NoSkillShell, &to.NoSkillShell}} {
		if f.from != nil {
			l.set(ly, f.key, *f.to != *f.from)
			*f.to = *f.from
		}
	}
	return nil
}

// restrictExtend takes out of s what a repository may not decide about what extends the
// program. Plugins and variables count once the folder is trusted; what the user
// has closed no repository opens, and what protects the user none takes away.
func (l *loader) restrictExtend(ly layer, s *Settings, drop func(key string)) {
	later := func(key string) { l.inert(ly, key, ly.where(key), Untrusted, "") }
	to := l.cfg.Extend
	if s.PluginConfigs != nil {
		drop("pluginConfigs")
		s.PluginConfigs = nil
	}
	if v := s.NoSkillShell; v != nil && !*v && to.NoSkillShell {
		drop("disableSkillShellExecution")
		s.NoSkillShell = nil
	}
	kept := map[string]string{}
	for name, state := range s.SkillOverrides {
		if slices.Index(skillStates, state) < slices.Index(skillStates, to.Skills[name]) {
			l.inert(ly, "skillOverrides", ly.where("skillOverrides"), Foreign, name)
			continue
		}
		kept[name] = state
	}
	if s.SkillOverrides != nil {
		s.SkillOverrides = kept
	}
	l.restrictVars(ly, s)
	if l.permits(ly) {
		return
	}
	for _, f := range []struct {
		key  string
		here bool
		take func()
	}{
		{"enabledPlugins", s.EnabledPlugins != nil, func() { s.EnabledPlugins = nil }},
		{"extraKnownMarketplaces", s.Marketplaces != nil, func() { s.Marketplaces = nil }},
		{"skillListingBudgetFraction", s.SkillBudget != nil, func() { s.SkillBudget = nil }},
		{"skillListingMaxDescChars", s.SkillText != nil, func() { s.SkillText = nil }},
		{"disableBundledSkills", s.NoBundledSkills != nil, func() { s.NoBundledSkills = nil }},
		{"agent", s.Agent != nil, func() { s.Agent = nil }},
	} {
		if f.here {
			later(f.key)
			f.take()
		}
	}
}

// restrictVars takes from a repository no variable that decides which programs run, what
// they load, where they send what, or what this one does; and none at all from one that
// is not trusted.
func (l *loader) restrictVars(ly layer, s *Settings) {
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		switch {
		case programs.Steers(name, programs.Folder):
			l.inert(ly, "env", ly.where("env"), Foreign, name)
		case !l.permits(ly):
			l.inert(ly, "env", ly.where("env"), Untrusted, name)
		default:
			kept[name] = s.Env[name]
		}
	}
	if s.Env != nil {
		s.Env = kept
	}
}
