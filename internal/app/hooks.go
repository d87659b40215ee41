package app

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/extend/hooks"
)

// A hookSource is the value of "hooks" of one place, and whose word it is.
type hookSource struct {
	hooks.Source
	JSON []byte

	// Managed says that the administrator has switched it on: it runs where only his
	// hooks do.
	Managed bool
}

// HookFault is something in the definition of hooks that does not count.
type HookFault struct {
	File string `json:"file,omitempty"`
	hooks.Fault
}

// String says it to people: where, what, and what to do.
func (f HookFault) String() string {
	text := config.PlaceOf(f.File, f.At) + ": " + strings.TrimPrefix(f.At, "/") + ": " + f.Message
	if f.Fix != "" {
		text += "; " + f.Fix
	}
	return text
}

// hookLayers are the layers of settings as hooks name them.
var hookLayers = map[config.Layer]string{
	config.Managed: "managed", config.User: "user", config.Project: "project", config.Local: "local",
	config.Inline: "flags", config.Flags: "flags", config.Environment: "flags",
}

// hookSources returns where the hooks of sessions stand, as the settings have it: the
// administrator's first. What is not to run is not among them.
func hookSources(cfg config.Config, more ...hookSource) []hookSource {
	h := cfg.Hooks
	var all []hookSource
	for _, s := range h.Sources {
		all = append(all, hookSource{
			Source: hooks.Source{Layer: hookLayers[s.Layer], File: s.File, Theirs: s.Theirs}, JSON: s.JSON, Managed: s.Layer == config.Managed,
		})
	}
	return slices.DeleteFunc(append(all, more...), func(s hookSource) bool {
		return h.ManagedOff || (h.Off || h.ManagedOnly && s.Layer != hooks.HostLayer) && !s.Managed
	})
}

// readHooks reads the hooks of sources. What cannot be read is left out and told.
func readHooks(sources []hookSource) (all []hooks.Hook, faults []HookFault) {
	for _, s := range sources {
		list, bad := hooks.Parse(s.JSON, s.Source)
		all = append(all, list...)
		for _, f := range bad {
			faults = append(faults, HookFault{s.String(), f})
		}
	}
	return all, faults
}

// maxHookNotes is how many of the mistakes in hooks are told one by one.
const maxHookNotes = 20

// noteHooks tells what is wrong with the hooks of the settings.
func noteHooks(cfg *config.Config) {
	_, faults := readHooks(hookSources(*cfg))
	for i, f := range faults {
		if i == maxHookNotes {
			cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Code: "hooks", Text: fmt.Sprintf("%d more mistakes in hooks", len(faults)-i)})
			return
		}
		cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Code: "hooks", Text: f.String()})
	}
}

// A hookReach says which addresses hooks may ask.
type hookReach struct {
	only  []*regexp.Regexp // nil = any
	named map[string]bool  // host:port of private addresses that the user has named himself
}

// reachOf returns what the settings, and the hooks of the user's own, let hooks ask.
func reachOf(cfg config.Hooks, all []hooks.Hook) hookReach {
	r := hookReach{named: map[string]bool{}}
	if cfg.URLs != nil {
		r.only = []*regexp.Regexp{}
	}
	for _, p := range cfg.URLs {
		parts := strings.Split(p, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		r.only = append(r.only, regexp.MustCompile("^"+strings.Join(parts, ".*")+"$"))
	}
	for _, p := range cfg.OwnURLs {
		r.name(strings.TrimRight(strings.SplitN(p, "*", 2)[0], "?#"), strings.Contains(p, "*"))
	}
	for _, h := range all {
		switch h.Source.Layer {
		case "managed", "user", "flags", "host":
			r.name(h.URL, false)
		}
	}
	return r
}

// name permits the host of an address. Of a pattern its beginning has to say more than
// the host: http://10.0.0.1* would fit 10.0.0.100 as well.
func (r hookReach) name(raw string, pattern bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || pattern && !strings.HasPrefix(u.Path, "/") {
		return
	}
	r.named[portOf(u)] = true
}

// allows reports whether the settings let hooks ask an address.
func (r hookReach) allows(raw string) bool {
	return r.only == nil || slices.ContainsFunc(r.only, func(re *regexp.Regexp) bool { return re.MatchString(raw) })
}

// portOf is the host and port that an address leads to.
func portOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + " " + port
}
