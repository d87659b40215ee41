package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// driverName is what the settings are called that the program which drives this one has for
// the administrator's layer.
const driverName = "managedSettings"

// binding says what becomes of a key of those settings, spelled as in a .claude folder.
type binding int

const (
	binds   binding = iota // it holds
	ifTrue                 // it holds when it is true, and restricts nothing else
	ifFalse                // likewise
	met                    // nothing here does what it forbids
)

// bindings are the keys that only restrict. Those that could permit something are left out,
// whatever they say; those that would restrict what nobody restricts here are none of either.
var bindings = map[string]binding{
	"permissions.deny": binds, "permissions.ask": binds, "permissions.disableBypassPermissionsMode": binds,
	"allowManagedPermissionRulesOnly": ifTrue, "allowManagedHooksOnly": ifTrue, "allowManagedMcpServersOnly": ifTrue,
	"allowedMcpServers": binds, "deniedMcpServers": binds, "disabledMcpjsonServers": binds,
	"strictKnownMarketplaces": binds, "blockedMarketplaces": binds,
	"disableBundledSkills": ifTrue, "disableSkillShellExecution": ifTrue, "enableAllProjectMcpServers": ifFalse,
	"sandbox.enabled": ifTrue, "sandbox.network.deniedDomains": binds,
	"sandbox.filesystem.denyRead": binds, "sandbox.filesystem.denyWrite": binds,
	"permissions.disableAutoMode": met, "disableAutoMode": met, "disableRemoteControl": met, "disableClaudeAiConnectors": met,
	"disableAgentView": met, "disableWorkflows": met, "disableArtifact": met, "disableCommandPluginSources": met,
	"disableWindowsBashCommandSplit": met, "enableWorkflows": met, "enableArtifact": met, "parentSettingsBehavior": met,
}

// sandboxLocks are the keys that leave it to the administrator to loosen the confinement.
var sandboxLocks = []string{"sandbox.network.allowManagedDomainsOnly", "sandbox.filesystem.allowManagedReadPathsOnly"}

// driver is what the program that drives this one has for the administrator's layer.
type driver struct {
	data       []byte // what binds of it; nil = nothing does
	rules, box bool   // others permit nothing, and loosen nothing of the confinement
}

// restricting reads settings of which only what restricts is to hold. One that cannot be held
// is an error: whoever relies on it would be wrong.
func restricting(text string) (d driver, err error) {
	if strings.TrimSpace(text) == "" {
		return d, nil
	}
	if len(text) > maxFile {
		return d, fmt.Errorf("they have more than %d bytes", maxFile)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return d, err
	}
	if all == nil {
		return d, fmt.Errorf("they are no object")
	}
	held, err := d.take(all, "")
	if err != nil {
		return d, err
	}
	d.data, err = json.Marshal(held)
	return d, err
}

// take returns what binds of an object.
func (d *driver) take(in map[string]json.RawMessage, prefix string) (map[string]any, error) {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		path, raw := prefix+key, in[key]
		if string(raw) == "null" {
			continue
		}
		if slices.Contains([]string{"permissions", "sandbox", "sandbox.network", "sandbox.filesystem"}, path) {
			var below map[string]json.RawMessage
			if err := json.Unmarshal(raw, &below); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			held, err := d.take(below, path+".")
			if err != nil {
				return nil, err
			}
			out[key] = held
			continue
		}
		yes := string(raw) == "true"
		how, known := bindings[path]
		if known && (how == ifTrue || how == ifFalse) || slices.Contains(sandboxLocks, path) {
			if !yes && string(raw) != "false" {
				return nil, fmt.Errorf("%s has to be true or false", path)
			}
		}
		switch {
		case slices.Contains(sandboxLocks, path):
			d.box = d.box || yes
		case path == "disableAllHooks": // the administrator's own go on
			if raw := string(raw); raw != "false" && raw != `"false"` {
				out["allowManagedHooksOnly"] = true
			}
		case path == "enabledPlugins": // what is on there may be on
			off, err := switchedOff(raw)
			if err != nil {
				return nil, fmt.Errorf("%s%w", path, err)
			}
			if len(off) > 0 {
				out[key] = off
			}
		case path == "allowedHttpHookUrls" || path == "httpHookAllowedEnvVars": // others add to them
			if string(raw) == "[]" {
				out[key] = raw
			}
		case known && (how == binds || how == ifTrue && yes || how == ifFalse && string(raw) == "false"):
			d.rules = d.rules || path == "allowManagedPermissionRulesOnly"
			out[key] = raw
		case known, slices.Contains(accepted, path), slices.ContainsFunc(translated(), func(t translation) bool { return t.path == path }):
		case string(raw) == "false" || string(raw) == "[]" || string(raw) == "{}":
		default:
			return nil, fmt.Errorf("%s cannot be held here", clip(path, maxText))
		}
	}
	return out, nil
}

// switchedOff returns the plugins that a list of them switches off. One may be on for some of
// its versions.
func switchedOff(raw json.RawMessage) (map[string]bool, error) {
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	off := map[string]bool{}
	for id, value := range all {
		switch on := value.(type) {
		case bool:
			if !on {
				off[id] = false
			}
		case nil, []any:
		default:
			return nil, fmt.Errorf(".%s has to be true or false", clip(id, maxText))
		}
	}
	return off, nil
}

// driven applies what binds of it, below the administrator's own.
func (l *loader) driven(d driver) error {
	if d.data == nil {
		return nil
	}
	f := theirs{l, layer{kind: Managed, path: driverName, compat: true, positions: positions{at: map[string]int64{}, items: map[string][]int64{}}}}
	root, err := f.parse(d.data, nil)
	if err != nil {
		return err
	}
	odd, notes := l.odd, len(l.cfg.Notes)
	f.keys(root, "")
	if l.odd > odd { // of what binds, all has to
		why := "a value in them cannot be read"
		if notes < len(l.cfg.Notes) {
			why = l.cfg.Notes[notes].Text
		}
		return f.ly.problem(0, why, "Mend it.")
	}
	return nil
}
