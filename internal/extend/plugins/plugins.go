// Package plugins keeps plugins: folders that bring skills, commands, agents, hooks and
// servers. It owns how they come onto this machine (fetched and unpacked within bounds),
// what they are (named by the hash of all they hold, and compared with it whenever they
// are loaded), what each of them can do, and which are installed and enabled.
//
// It never runs anything of a plugin, and takes nobody's consent for granted: a plugin
// counts once somebody has said yes to the hash that was shown. What it does not
// understand of a plugin is told. Git runs in the given box; while it does, a goroutine
// looks at how much it writes, and ends with it.
package plugins

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"dure/agent/query"
)

// The types that queries carry.
type (
	Manifest    = query.PluginManifest
	Option      = query.PluginOption
	Need        = query.PluginNeed
	Left        = query.PluginLeft
	Capability  = query.PluginCapability
	Change      = query.PluginDifference
	Candidate   = query.PluginCandidate
	Release     = query.PluginRelease
	Source      = query.PluginSource
	Known       = query.PluginMarket
	Marketplace = query.PluginMarketplace
	Entry       = query.PluginEntry
)

// A Plugin is what a folder brings.
type Plugin struct {
	Manifest
	Hooks    []Hooks                    `json:"-"`
	Servers  map[string]json.RawMessage `json:"-"` // of the Model Context Protocol, by name
	Settings map[string]json.RawMessage `json:"-"` // "agent" alone
}

// Hooks are the hooks of one file, or of the manifest.
type Hooks struct {
	File string          // "" = the manifest
	Raw  json.RawMessage // an object: event to list
}

// Bounds of a manifest and of what it names.
const (
	maxManifest = 256 << 10 // bytes
	maxNamed    = 500       // components of one kind, options, keywords
	maxLine     = 2_000     // bytes of one text of a manifest
	maxName     = 64        // bytes of a name
	maxMarkdown = 1 << 20   // bytes of a skill, command or agent that is looked into
)

// ErrMarket says that a folder is a marketplace, and no plugin.
var ErrMarket = errors.New("the folder is a marketplace, which lists plugins, and no plugin")

// ErrNone says that a folder is no plugin.
var ErrNone = errors.New("the folder is no plugin: it has neither a manifest nor skills, commands, agents, hooks or servers")

// lazy is an expression that is read when it is first asked.
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

var isName = lazy(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)

// checkName refuses what cannot be part of a name on the screen and of a folder.
func checkName(what, name string) error {
	if len(name) > maxName || !isName().MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("%s %q is no name: small letters, digits and hyphens, at most %d", what, clip(name), maxName)
	}
	return nil
}

// clip bounds a text that others wrote, for messages.
func clip(s string) string {
	const most = 100
	if len(s) <= most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:most], "\uFFFD") + "…"
}

// local checks a path of a manifest, and cleans it: relative, with slashes, below the
// folder. "." is the folder itself.
func local(p string) (string, error) {
	bad := strings.ContainsAny(p, "\\\x00:") || path.IsAbs(p) || len(p) > maxPath
	clean := path.Clean(p)
	if p == "" || bad || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("%q does not lead to something in the folder of the plugin: write it as ./folder", clip(p))
	}
	return clean, nil
}
