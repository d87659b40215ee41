package app

import (
	"slices"

	"dure/agent"
	"dure/internal/app/config"
)

// The sources that [Flags.Sources] may name.
const (
	SourceUser    = config.User
	SourceProject = config.Project
	SourceLocal   = config.Local
)

// layers are the layers of settings that are read; nil = all.
func (f Flags) layers() []config.Layer {
	if f.Sources == nil {
		return nil
	}
	all := []config.Layer{} // not nil: none is not all
	for _, name := range *f.Sources {
		all = append(all, config.Layer(name))
	}
	return all
}

// reads reports whether what stands in files of a layer is read.
func (f Flags) reads(kind config.Layer) bool {
	return f.Sources == nil || slices.Contains(f.layers(), kind)
}

// settings turns flags into the layer that they are.
func (f Flags) settings() config.Values {
	v := config.Values{}
	mode := f.Mode
	if f.Skip {
		mode = string(agent.ModeBypass)
	}
	for path, text := range map[string]string{
		"model": f.Model, "baseUrl": f.BaseURL, "permissions.defaultMode": mode, "dialect": f.Dialect, "durability": f.Durability,
		"fallbackModel": f.Fallback, "profile": f.Profile, "effort": f.Effort, "sandbox.mode": f.Sandbox,
	} {
		if text != "" {
			v[path] = text
		}
	}
	for path, list := range map[string][]string{"permissions.allow": f.Allow, "permissions.deny": f.Deny, "permissions.additionalDirectories": f.AddDirs} {
		if len(list) > 0 {
			v[path] = list
		}
	}
	if len(f.Providers) > 0 {
		v["providers"] = f.Providers
	}
	if f.PlainOff {
		v["context.auto"] = false
	}
	if f.NoReflexion || !f.reads(config.User) {
		v["reflexion.enabled"] = false
	}
	if f.Budget.Dollars != 0 {
		v["budget.usd"] = f.Budget.Dollars
	}
	if f.Budget.Tokens != 0 {
		v["budget.tokens"] = f.Budget.Tokens
	}
	return v
}
