package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dure/internal/base/keys/secret"
	"dure/internal/extend/plugins"
	"dure/internal/safety/shell/programs"
)

// Extend is what the settings say about plugins, skills, agents and styles. What is not in force is not in it; see [Config.Inert].
type Extend struct {
	plugins.Settings

	Skills          map[string]string // on, name-only, user-invocable-only or off
	SkillBudget     float64           // share of the window that their list may take; 0 = built in
	SkillText       int               // characters of a description in it; 0 = built in
	NoBundledSkills bool
	NoSkillShell    bool // they run no commands while they are read

	Agent string // that sessions begin with; "" = none
	Style string // of answers; "" = none
}

// The bounds of what extends the program.
const (
	maxSkillText = 100_000 // characters of a description
	maxVars      = 500     // variables of all layers
	maxVarBytes  = 32 << 10
)

// skillStates are the values of skillOverrides, the widest first.
var skillStates = []string{"on", "name-only", "user-invocable-only", "off"}

// env applies variables for commands. A repository sets none that decides which programs
// run, what they load, where they send what, or what this one does; and none at all if it is
// not trusted.
func (l *loader) env(e entry) error {
	var all map[string]string
	if err := e.decode(&all); err != nil {
		return err
	}
	at := e.ly.where(e.path)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		switch {
		case !e.ly.own() && programs.Steers(name, programs.Folder):
			l.inert(e.ly, e.path, at, Foreign, name)
			continue
		case !l.permits(e.ly):
			l.inert(e.ly, e.path, at, Untrusted, name)
			continue
		case !variable().MatchString(name):
			return e.problem(fmt.Sprintf("env has %q, which is no name of a variable", clip(name, maxText)), "")
		case len(value) > maxVarBytes || strings.ContainsRune(value, 0):
			return e.problem(fmt.Sprintf("env.%s has to be a text of at most %d bytes", name, maxVarBytes), "")
		case len(l.cfg.Env) >= maxVars:
			return e.problem(fmt.Sprintf("there are more than %d variables", maxVars), "")
		}
		put(e, &l.cfg.Env, name, secret.Text(value))
	}
	return nil
}

// secretWords mark the name of a variable as that of a secret.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH"}

// scrubbed applies scrubEnv, of which a repository may name only secrets. To take a variable
// away can loosen as well: those that name a proxy, switch scripts of packages off or pin a
// toolchain protect the user.
func (l *loader) scrubbed(e entry) error {
	var all []string
	if err := e.decode(&all); err != nil {
		return err
	}
	for i, name := range all {
		is := func(word string) bool { return strings.Contains(strings.ToUpper(name), word) }
		if !e.ly.own() && !slices.ContainsFunc(secretWords, is) {
			l.inert(e.ly, e.path, e.ly.item(e.path, i), Foreign, name)
			continue
		}
		l.cfg.ScrubEnv = union(l.cfg.ScrubEnv, []string{name})
	}
	return nil
}

func (l *loader) plugins(e entry) error {
	var all map[string]bool
	if err := e.decode(&all); err != nil || e.refused() {
		return err
	}
	to := &l.cfg.Extend
	for id, on := range all {
		if put(e, &to.Plugins, id, on); e.ly.kind != Managed {
			continue
		}
		if to.ManagedPlugin == nil {
			to.ManagedPlugin = map[string]bool{}
		}
		to.ManagedPlugin[id] = true
	}
	return nil
}

// members takes an object whose members are for others to read.
func (l *loader) members(to *map[string]json.RawMessage) func(entry) error {
	return func(e entry) error {
		var all map[string]json.RawMessage
		if err := e.decode(&all); err != nil || e.refused() {
			return err
		}
		for name, raw := range all {
			put(e, to, name, raw)
		}
		return nil
	}
}

func (l *loader) onlyMarkets(e entry) error {
	var all []json.RawMessage
	if err := e.decode(&all); err != nil {
		return err
	}
	if e.ly.kind != Managed {
		l.note("warn", fmt.Sprintf("%s: %s is for administrators", e.ly.place(e.ly.where(e.path)), e.path))
		return nil
	}
	e.set(false)
	l.cfg.Extend.OnlyMarkets = &all
	return nil
}

// more takes a list to which each layer adds.
func more(to *[]json.RawMessage) func(entry) error {
	return func(e entry) error {
		var all []json.RawMessage
		if err := e.decode(&all); err != nil || len(all) == 0 {
			return err
		}
		e.set(false)
		*to = append(slices.Clone(*to), all...)
		return nil
	}
}

// skills applies which skills are hidden. A repository may hide more.
func (l *loader) skills(e entry) error {
	var all map[string]string
	if err := e.decode(&all); err != nil {
		return err
	}
	to := &l.cfg.Extend
	for _, name := range slices.Sorted(maps.Keys(all)) {
		state := all[name]
		if !e.ly.own() && slices.Index(skillStates, state) < slices.Index(skillStates, to.Skills[name]) {
			l.inert(e.ly, e.path, e.ly.where(e.path), Foreign, name)
			continue
		}
		if !slices.Contains(skillStates, state) {
			return e.problem(fmt.Sprintf("skillOverrides.%s is %q and has to be one of: %s", clip(name, maxText), clip(state, maxText), strings.Join(skillStates, ", ")), "")
		}
		put(e, &to.Skills, name, state)
	}
	return nil
}
