package plugins

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dure/internal/base/frontmatter"
)

// notHere lists what plugins may bring and what does not work here, by its key in the
// manifest and by its usual place.
var notHere = []struct{ what, key, place, why string }{
	{"language servers", "lspServers", ".lsp.json", "language servers are those of the settings"},
	{"themes", "themes", "themes", "there are no themes here"},
	{"monitors", "monitors", "monitors", "there are no monitors here"},
	{"workflows", "workflows", "workflows", "there are no workflows here"},
	{"output styles", "outputStyles", "output-styles", "there are no output styles here"},
	{"channels", "channels", "", "there are no channels here"},
	{"mods", "", "hooks/register.ts", "hooks that are code of the host do not run here: write them as commands"},
	{"mods", "", "hooks/register.js", "hooks that are code of the host do not run here: write them as commands"},
}

// knownKeys are the keys of a manifest that mean something, in plain spelling.
var knownKeys = []string{
	"$schema", "id", "name", "displayname", "title", "version", "description", "author", "homepage", "repository", "license", "keywords",
	"metadata", "defaultenabled", "type", "entry", "minappversion", "skills", "commands", "agents", "hooks", "mcpservers",
	"lspservers", "outputstyles", "workflows", "themes", "monitors", "experimental", "userconfig", "channels", "dependencies",
	"source", "category", "tags", "strict", "relevance",
}

// unknown tells what of the plugin does not count.
func (r *reader) unknown() {
	var trial map[string]json.RawMessage
	if raw, ok := r.m.keys["experimental"]; ok {
		if keys, err := decodeObject(raw); err == nil {
			trial = keys
		}
	}
	said := map[string]bool{}
	for _, n := range notHere {
		_, named := r.m.keys[frontmatter.Plain(n.key)]
		_, tried := trial[frontmatter.Plain(n.key)]
		there := n.place != "" && (r.isDir(n.place) || r.isFile(n.place))
		if (n.key != "" && (named || tried) || there) && !said[n.what] {
			said[n.what] = true
			r.left(n.what, n.why)
		}
	}
	if len(r.p.Needs) > 0 {
		var names []string
		for _, n := range r.p.Needs {
			names = append(names, n.Name)
		}
		r.left("dependencies", fmt.Sprintf("plugins that it needs do not come with it, install them yourself: %s", clip(strings.Join(names, ", "))))
	}
	if r.needsPackages() {
		r.left("packages", "packages of npm that it needs are not fetched: its programs may not run without them")
	}
	for _, key := range slices.Sorted(maps.Keys(r.m.keys)) {
		if !slices.Contains(knownKeys, key) {
			r.m.say("the key %s means nothing here", clip(key))
		}
	}
	if len(r.m.warn) > maxNamed {
		r.m.warn = append(r.m.warn[:maxNamed], fmt.Sprintf("%d more", len(r.m.warn)-maxNamed))
	}
}

// needsPackages reports whether programs of the plugin need packages of npm that are not
// in it.
func (r *reader) needsPackages() bool {
	data, err := readFile(r.fsys, "package.json", maxManifest)
	var pkg struct {
		Dependencies map[string]json.RawMessage `json:"dependencies"`
	}
	return err == nil && json.Unmarshal(data, &pkg) == nil && len(pkg.Dependencies) > 0 && !r.isDir("node_modules")
}
