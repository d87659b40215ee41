package query

import (
	"encoding/json"
	"time"
)

// ListPlugins asks for []PluginInfo: those that are installed, and those that are named
// for this run, as they are in Workdir.
type ListPlugins struct {
	Workdir string `json:"workdir,omitempty"` // "" = the program's
}

// Query returns the name of the query on the wire.
func (ListPlugins) Query() string { return "plugins" }

// PluginInfo is what is known of a plugin.
type PluginInfo struct {
	ID          string `json:"id"` // NAME@MARKETPLACE
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	Source      string `json:"source"`
	SHA256      string `json:"sha256,omitempty"` // of all that it holds, as it was said yes to
	Before      string `json:"before,omitempty"` // version that can be gone back to

	Enabled bool   `json:"enabled"`
	By      string `json:"by"` // who says so: managed, local, project, user, command, folder, plugin, flag

	// Problem says why it does not load although it is enabled; "" = it does.
	Problem string `json:"problem,omitempty"`

	Capabilities []PluginCapability `json:"capabilities"`
	Left         []string           `json:"left"`               // what it brings and that does not count
	Missing      []string           `json:"missing,omitempty"`  // options that have to be set
	Warnings     []string           `json:"warnings,omitempty"` // what was read leniently
}

// PluginCapability is something that a plugin can do once it is enabled. Two of the same text
// are the same.
type PluginCapability struct {
	Kind   string `json:"kind"`             // hook, server, program, shell, tools, mode, network, setting, secret, skill, command, agent
	Name   string `json:"name,omitempty"`   // of the event, server, skill, ...
	Detail string `json:"detail,omitempty"` // the command, the tools, ..., whole up to a limit
}

// PreparePlugin asks for a PreparedPlugin: it fetches a plugin and looks at it, and installs
// nothing.
type PreparePlugin struct {
	Source string `json:"source,omitempty"` // as a person writes it
	Update string `json:"update,omitempty"` // in its place: the name of a plugin whose newest state is fetched
}

// Query returns the name of the query on the wire.
func (PreparePlugin) Query() string { return "plugins.prepare" }

// PluginCandidate is a plugin that has been fetched and looked at, and that nobody has agreed
// to. Nothing of it counts.
type PluginCandidate struct {
	ID      string           `json:"id"`
	Plugin  PluginManifest   `json:"plugin"`
	Release PluginRelease    `json:"release"`
	Before  *PluginRelease   `json:"before,omitempty"` // what is installed under its ID
	Change  PluginDifference `json:"change"`           // of what it can do, compared with that

	// Same is set if there is nothing to update: "same", or "same-set" if the content changed and
	// the version did not.
	Same string `json:"same,omitempty"`
}

// PreparedPlugin is a candidate, with the options that have to be set before it is of use.
type PreparedPlugin struct {
	PluginCandidate
	Needs []PluginOption `json:"needs,omitempty"`
}

// PluginDifference lists the capabilities that an update adds and removes.
type PluginDifference struct {
	Added   []PluginCapability `json:"added"`
	Removed []PluginCapability `json:"removed"`
}

// PluginManifest describes a plugin. All paths in it are relative to its folder, with slashes,
// and lead nowhere else.
type PluginManifest struct {
	Name        string   `json:"name"`
	Version     string   `json:"version,omitempty"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Author      string   `json:"author,omitempty"`
	Homepage    string   `json:"homepage,omitempty"`
	Repository  string   `json:"repository,omitempty"`
	License     string   `json:"license,omitempty"`
	Keywords    []string `json:"keywords,omitempty"`
	Off         bool     `json:"off,omitempty"`        // it is not to be enabled by being installed
	MinVersion  string   `json:"minVersion,omitempty"` // of the program

	Skills   []string `json:"skills,omitempty"`   // folders with a SKILL.md in them
	Commands []string `json:"commands,omitempty"` // Markdown files
	Agents   []string `json:"agents,omitempty"`   // Markdown files
	Programs []string `json:"programs,omitempty"` // files of bin/

	Options []PluginOption `json:"options,omitempty"`
	Needs   []PluginNeed   `json:"needs,omitempty"`

	// Left lists the parts of the plugin that dure does not use. Warnings lists faults that did
	// not keep the plugin from being read.
	Left     []PluginLeft `json:"left,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`

	Can []PluginCapability `json:"capabilities"`
}

// PluginOption is something that a user may set for a plugin.
type PluginOption struct {
	Key         string          `json:"key"`
	Type        string          `json:"type"` // string, number, boolean, directory or file
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Sensitive   bool            `json:"sensitive,omitempty"`
	Required    bool            `json:"required,omitempty"`
	Multiple    bool            `json:"multiple,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Min         *float64        `json:"min,omitempty"` // of a number, or of the length of a text
	Max         *float64        `json:"max,omitempty"`
}

// PluginNeed is another plugin that a plugin does not work without.
type PluginNeed struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// PluginLeft is something that a plugin brings and that does not count.
type PluginLeft struct {
	What string `json:"what"` // a word such as themes, or a path
	Why  string `json:"why"`
}

// PluginRelease is one state of a plugin.
type PluginRelease struct {
	Name    string       `json:"name"`
	Version string       `json:"version"` // its own, a commit, the hash of an archive, or "unknown"
	Set     bool         `json:"set,omitempty"`
	Tree    string       `json:"sha256"` // of all that it holds
	Source  PluginSource `json:"source"`
	Commit  string       `json:"commit,omitempty"`
	At      time.Time    `json:"at"`

	// Entry is its entry in the marketplace.
	Entry  map[string]json.RawMessage `json:"entry,omitempty"`
	Strict bool                       `json:"strict,omitempty"`

	Can []PluginCapability `json:"capabilities"` // that somebody has agreed to
}

// PluginSource is where a plugin or a marketplace comes from.
type PluginSource struct {
	Kind    string `json:"source"`
	Path    string `json:"path,omitempty"`    // folder, file, or folder in a repository
	Repo    string `json:"repo,omitempty"`    // owner/name
	URL     string `json:"url,omitempty"`     // of a repository, an archive or a file
	Ref     string `json:"ref,omitempty"`     // branch or tag; "" = the usual one
	SHA     string `json:"sha,omitempty"`     // the whole name of a commit
	SHA256  string `json:"sha256,omitempty"`  // of an archive
	Package string `json:"package,omitempty"` // of npm
	Version string `json:"version,omitempty"` // of a package; "" = the latest
	Host    string `json:"hostPattern,omitempty"`
	Place   string `json:"pathPattern,omitempty"`
}

// ChangePlugin asks for a PluginChanged: it does something with a plugin.
type ChangePlugin struct {
	Do   string `json:"do"`   // one of the constants below
	Name string `json:"name"` // or the ID

	SHA256   string `json:"sha256,omitempty"`   // of the candidate that is installed or discarded
	Scope    string `json:"scope,omitempty"`    // in which it is enabled or disabled: user, project, local; "" = user
	KeepData bool   `json:"keepData,omitempty"` // what is removed keeps its data and secrets
}

// What [ChangePlugin] does.
const (
	PluginInstall  = "install"
	PluginDiscard  = "discard"
	PluginEnable   = "enable"
	PluginDisable  = "disable"
	PluginRemove   = "remove"
	PluginRollback = "rollback" // to the state before the last update
)

// Query returns the name of the query on the wire.
func (ChangePlugin) Query() string { return "plugins.change" }

// PluginChanged is what has become of a plugin.
type PluginChanged struct {
	ID      string `json:"id"`
	Enabled bool   `json:"enabled"`
	By      string `json:"by"` // who decides that now, which may be somebody stronger

	Setting *SettingChange `json:"setting,omitempty"` // what was written, where settings alone can say it

	Version string `json:"version,omitempty"` // of the state that was gone back to
	SHA256  string `json:"sha256,omitempty"`
}

// ReadPluginOptions asks for the PluginOptions of a plugin that is there.
type ReadPluginOptions struct {
	Name string `json:"name"`
}

// Query returns the name of the query on the wire.
func (ReadPluginOptions) Query() string { return "plugins.options" }

// PluginOptions is what can be set for a plugin, and what of it has to be.
type PluginOptions struct {
	ID      string         `json:"id"`
	Options []PluginOption `json:"options"`
	Needs   []PluginOption `json:"needs"`
}

// SetPlugin sets an option of a plugin, and asks for its ID. A secret goes where keys are kept.
type SetPlugin struct {
	Name  string  `json:"name"`
	Key   string  `json:"key"`
	Value *string `json:"value"` // null = what its author says applies again
}

// Query returns the name of the query on the wire.
func (SetPlugin) Query() string { return "plugins.set" }

// ValidatePlugin asks for a PluginCheck: it reads a plugin or a marketplace in a folder, and
// installs nothing.
type ValidatePlugin struct {
	Path string `json:"path"`
}

// Query returns the name of the query on the wire.
func (ValidatePlugin) Query() string { return "plugins.validate" }

// PluginCheck is what a folder has been found to be.
type PluginCheck struct {
	Path        string             `json:"path"`
	Plugin      *PluginManifest    `json:"plugin,omitempty"`
	Marketplace *PluginMarketplace `json:"marketplace,omitempty"`
}

// ListMarketplaces asks for the []PluginMarket that were added.
type ListMarketplaces struct{}

// Query returns the name of the query on the wire.
func (ListMarketplaces) Query() string { return "plugins.markets" }

// PluginMarket is a marketplace that was added.
type PluginMarket struct {
	Name    string       `json:"name"`
	Source  PluginSource `json:"source"`
	Tree    string       `json:"sha256"`
	Commit  string       `json:"commit,omitempty"`
	Plugins int          `json:"plugins"`
	At      time.Time    `json:"at"`
}

// ReadMarketplace asks for the PluginMarketplace of a name, as it was when it was last updated.
type ReadMarketplace struct {
	Name string `json:"name"`
}

// Query returns the name of the query on the wire.
func (ReadMarketplace) Query() string { return "plugins.market" }

// PluginMarketplace lists plugins and where they are.
type PluginMarketplace struct {
	Name        string            `json:"name"`
	Owner       string            `json:"owner,omitempty"`
	Description string            `json:"description,omitempty"`
	Version     string            `json:"version,omitempty"`
	Plugins     []PluginEntry     `json:"plugins"`
	Renames     map[string]string `json:"renames,omitempty"` // "" = it is gone
	Warnings    []string          `json:"warnings,omitempty"`
}

// PluginEntry is one plugin of a marketplace.
type PluginEntry struct {
	Name        string       `json:"name"`
	Version     string       `json:"version,omitempty"`
	Description string       `json:"description,omitempty"`
	Category    string       `json:"category,omitempty"`
	Tags        []string     `json:"tags,omitempty"`
	Source      PluginSource `json:"from"`
	Strict      bool         `json:"-"` // the manifest of the plugin says what it brings, and the entry adds to it

	Keys map[string]json.RawMessage `json:"-"` // all that it says, in plain spelling
}

// ChangeMarketplace adds, updates or removes a marketplace, and asks for the []PluginMarket that
// it added or updated.
type ChangeMarketplace struct {
	Do     string `json:"do"`               // one of the constants below
	Source string `json:"source,omitempty"` // of what is added, as a person writes it
	Name   string `json:"name,omitempty"`   // of what is updated or removed; "" = all are updated
}

// What [ChangeMarketplace] does.
const (
	MarketplaceAdd    = "add"
	MarketplaceUpdate = "update"
	MarketplaceRemove = "remove"
)

// Query returns the name of the query on the wire.
func (ChangeMarketplace) Query() string { return "plugins.markets.change" }
