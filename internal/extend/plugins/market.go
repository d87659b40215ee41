package plugins

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"dure/internal/base/frontmatter"
)

const (
	marketFile = ".claude-plugin/marketplace.json"
	maxMarket  = 4 << 20 // bytes
	maxEntries = 10_000  // plugins of a marketplace
)

// ownNames are names that stand for what no marketplace is.
var ownNames = []string{Local, Inline, SkillsDir, "builtin", "synced"}

// Names that stand in the place of a marketplace's.
const (
	Local     = "local"      // of plugins that were installed from a source of their own
	Inline    = "inline"     // of plugins that are named for one run
	SkillsDir = "skills-dir" // of plugins that lie in folders of skills
)

// vendorNames begin the names of marketplaces that their vendor alone may give.
var vendorNames = []string{"claude-", "anthropic-"}

// vendorOwner is who on GitHub that is.
const vendorOwner = "anthropics"

// checkMarketName refuses names that stand for others.
func checkMarketName(name string, from Source) error {
	if err := checkName("the marketplace", name); err != nil {
		return err
	}
	if slices.Contains(ownNames, name) {
		return fmt.Errorf("the name %q is taken for something else: it cannot be a marketplace", name)
	}
	owner, _, _ := strings.Cut(from.Repo, "/")
	for _, start := range vendorNames {
		if strings.HasPrefix(name, start) && (from.Kind != FromGitHub || !strings.EqualFold(owner, vendorOwner)) {
			return fmt.Errorf("names that begin with %q are for github:%s/… alone", start, vendorOwner)
		}
	}
	return nil
}

// ParseMarketplace reads a marketplace. A plugin in it that cannot be read is left out
// and told.
func ParseMarketplace(data []byte) (Marketplace, error) {
	var m Marketplace
	if len(data) > maxMarket {
		return m, fmt.Errorf("it is larger than %d bytes", maxMarket)
	}
	var top struct {
		Name        string
		Owner       json.RawMessage
		Description string
		Version     string
		Plugins     []json.RawMessage
		Renames     map[string]*string
		Metadata    struct {
			PluginRoot           string
			Description, Version string
		}
	}
	if err := json.Unmarshal(data, &top); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			before := string(data[:min(int(syntax.Offset), len(data))])
			return m, fmt.Errorf("line %d, column %d: %w", 1+strings.Count(before, "\n"), len(before)-strings.LastIndexByte(before, '\n')-1, err)
		}
		return m, err
	}
	if err := checkName("the marketplace", top.Name); err != nil {
		return m, err
	}
	if len(top.Plugins) > maxEntries {
		return m, fmt.Errorf("it has more than %d plugins", maxEntries)
	}
	m = Marketplace{Name: top.Name, Description: limit(top.Description), Version: limit(top.Version), Plugins: []Entry{}}
	if m.Description == "" {
		m.Description = limit(top.Metadata.Description)
	}
	who := manifest{keys: map[string]json.RawMessage{"owner": top.Owner}}
	m.Owner = who.person("owner")
	seen := map[string]bool{}
	for i, raw := range top.Plugins {
		e, err := parseEntry(raw, top.Metadata.PluginRoot)
		if err == nil && seen[e.Name] {
			err = fmt.Errorf("another one is named %s", e.Name)
		}
		if err != nil {
			m.Warnings = append(m.Warnings, fmt.Sprintf("plugins[%d] is left out: %v", i, err))
			continue
		}
		seen[e.Name] = true
		m.Plugins = append(m.Plugins, e)
	}
	for _, name := range slices.Sorted(maps.Keys(top.Renames)) {
		if m.Renames == nil {
			m.Renames = map[string]string{}
		}
		if to := top.Renames[name]; to != nil {
			m.Renames[name] = *to
		} else {
			m.Renames[name] = ""
		}
	}
	return m, nil
}

// limit cuts a text of others that is shown.
func limit(s string) string { return s[:min(len(s), maxLine)] }

func parseEntry(raw json.RawMessage, root string) (Entry, error) {
	keys, err := decodeObject(raw)
	if err != nil {
		return Entry{}, err
	}
	m := manifest{keys: keys}
	e := Entry{
		Name: m.text("name"), Version: m.text("version"), Description: m.text("description"), Category: m.text("category"),
		Tags: m.texts("tags"), Strict: true, Keys: keys,
	}
	if err := checkName("the name", e.Name); err != nil {
		return e, err
	}
	if raw, ok := keys["strict"]; ok {
		if json.Unmarshal(raw, &e.Strict) != nil {
			return e, fmt.Errorf("%s: strict has to be true or false", e.Name)
		}
	}
	if isNull(keys["source"]) {
		return e, fmt.Errorf("%s: it names no source", e.Name)
	}
	if e.Source, err = ReadSource(keys["source"]); err != nil {
		return e, fmt.Errorf("%s: %w", e.Name, err)
	}
	if e.Source.Kind == FromRelative && root != "" && !strings.HasPrefix(e.Source.Path, "./") {
		e.Source.Path = path.Join(root, e.Source.Path)
	}
	if e.Source.Kind == FromURL {
		e.Source.Kind = FromGit
	}
	if e.Source.Kind == FromFolder || e.Source.Kind == FromFile || e.Source.Kind == FromMarketplace {
		return e, fmt.Errorf("%s: a marketplace names no places on this machine", e.Name)
	}
	if strings.HasPrefix(strings.ToLower(e.Source.URL), "file:") {
		return e, fmt.Errorf("%s: a marketplace names no places on this machine", e.Name)
	}
	if err := check(e.Source); err != nil {
		return e, fmt.Errorf("%s: %w", e.Name, err)
	}
	return e, nil
}

// find returns the plugin of a name, or what has become of it.
func find(m Marketplace, name string) (Entry, error) {
	i := slices.IndexFunc(m.Plugins, func(e Entry) bool { return e.Name == name })
	if i >= 0 {
		return m.Plugins[i], nil
	}
	to, moved := m.Renames[name]
	switch {
	case moved && to == "":
		return Entry{}, fmt.Errorf("%w: the marketplace %s has given up %s", ErrUnknown, m.Name, name)
	case moved:
		return Entry{}, fmt.Errorf("%w: the marketplace %s calls %s %s now", ErrUnknown, m.Name, name, clip(to))
	}
	return Entry{}, fmt.Errorf("%w: the marketplace %s has no %s", ErrUnknown, m.Name, clip(name))
}

// readEntry reads a plugin that a marketplace lists. Its manifest is stronger, unless
// the marketplace says that it itself is all: then no manifest may name components.
func readEntry(dir string, e Entry) (Plugin, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Plugin{}, fmt.Errorf("reading a plugin: %w", err)
	}
	defer root.Close()
	return readEntryFS(root.FS(), e)
}

var componentKeys = []string{"skills", "commands", "agents", "hooks", "mcpServers", "lspServers", "outputStyles", "workflows", "themes", "monitors"}

func readEntryFS(fsys fs.FS, e Entry) (Plugin, error) {
	m, err := readManifest(fsys)
	if err != nil {
		return Plugin{}, err
	}
	if m.file != "" && !e.Strict {
		for _, key := range componentKeys {
			if _, ok := m.keys[frontmatter.Plain(key)]; ok {
				return Plugin{}, fmt.Errorf("%s: the marketplace says what the plugin brings, and so does its manifest (%s): one of them has to go", m.file, key)
			}
		}
	}
	if m.file == "" {
		m.keys, m.file = map[string]json.RawMessage{}, marketFile
	}
	for key, raw := range e.Keys {
		if _, has := m.keys[key]; !has && key != "source" && key != "strict" {
			m.keys[key] = raw
		}
	}
	p, err := read(fsys, e.Name, m)
	if err == nil && p.Name != e.Name {
		err = fmt.Errorf("the marketplace lists %s, and the plugin there is named %s", e.Name, p.Name)
	}
	return p, err
}
