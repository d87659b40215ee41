package config

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/hosts"
)

// From says where the value of a setting comes from.
func (c Config) From(key string) string {
	if o, ok := c.Origins[key]; ok {
		return o.String()
	}
	return string(BuiltIn)
}

// Findings says for a diagnosis what holds by settings that were read from src.
func (c Config) Findings(src Sources, version string) []query.Finding {
	l := query.Findings{Group: query.Configured}
	l.Add("version", query.Good, "version", "version", cmp.Or(version, "?"))
	c.files(&l, src)
	l.Add("profile", query.Good, "profile", "profile", c.Profile, "where", c.From("profile"))
	c.outside(&l, src)
	l.Group = query.Enforced
	if list := c.Sandbox.AllowHosts; len(list) > 0 {
		l.Add("egress", query.Good, "egress.hosts", "list", strings.Join(list, ", "))
	} else {
		l.Add("egress", query.Good, "egress.none")
	}
	state := query.Good
	if c.Mode == agent.ModeBypass {
		state = query.Warn
	}
	l.Add("mode", state, "mode."+cmp.Or(string(c.Mode), string(agent.ModeDefault)), "where", c.From("permissions.defaultMode"))
	l.Add("rules", query.Good, "rules", "allow", strconv.Itoa(len(c.Allow)), "ask", strconv.Itoa(len(c.Ask)), "deny", strconv.Itoa(len(c.Deny)))
	l.Add("folders", query.Good, "folders", "list", strings.Join(append([]string{src.Workdir}, c.AddDirs...), ", "))
	return l.List
}

func (c Config) files(l *query.Findings, src Sources) {
	files := map[string]bool{}
	for _, o := range c.Origins {
		switch o.Layer {
		case User, Project, Local, Managed, Inline:
			files[cmp.Or(o.Where, string(o.Layer))] = true
		}
	}
	project, own := filepath.Join(src.Workdir, ".dure"), filepath.Join(c.Home, "settings.json")
	for _, path := range []string{own, filepath.Join(project, "settings.json"), filepath.Join(project, "settings.local.json")} {
		if _, err := os.Stat(path); err == nil {
			files[path] = true // it may say nothing that means anything
		}
	}
	if src.Settings != "" && len(files) == 0 {
		files[string(Inline)] = true
	}
	if len(files) > 0 {
		l.Add("settings", query.Good, "settings.files", "files", strings.Join(slices.Sorted(maps.Keys(files)), ", "))
	} else {
		l.Add("settings", query.Good, "settings.none", "path", own)
	}
	for _, n := range c.Notes {
		state := query.Warn
		if n.Level == "info" {
			state = query.Good
		}
		l.Add("note", state, "settings.note", "text", n.Text)
	}
}

// outside says how the program may reach out.
func (c Config) outside(l *query.Findings, src Sources) {
	switch c.Network.Mode {
	case Internal:
		l.Add("network", query.Good, "network.internal", "hosts", cmp.Or(strings.Join(c.Network.AllowHosts, ", "), "-"))
	case Offline:
		l.Add("network", query.Good, "network.off")
	default:
		l.Add("network", query.Good, "network.external")
	}
	if c.Network.CA != "" {
		l.Add("certificates", query.Good, "ca.file", "path", c.Network.CA)
	} else {
		l.Add("certificates", query.Good, "ca.system")
	}
	if c.NoAI {
		l.Add("ai", query.Warn, "ai.off", "where", c.From("ai"))
	} else {
		l.Add("ai", query.Good, "ai.on")
	}
	switch s := c.Search; {
	case s.Kind == "":
		l.Add("search", query.Good, "search.none")
	case s.KeyEnv != "" && strings.TrimSpace(src.Getenv(s.KeyEnv)) == "":
		l.Add("search", query.Warn, "search.key", "kind", s.Kind, "variable", s.KeyEnv)
	default:
		l.Add("search", query.Good, "search.ok", "kind", s.Kind, "url", cmp.Or(hosts.Shown(s.URL), "-"))
	}
	if u := c.Updates; u.Check {
		l.Add("updates", query.Good, "updates.on", "url", hosts.Shown(u.URL))
	} else {
		l.Add("updates", query.Good, "updates.off")
	}
}
