// Package active knows which plugins are active in a folder, gives the program what they
// bring, and lists and changes what is installed. It starts no goroutines.
package active

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/base/keys"
	"dure/internal/extend/plugins"
	"dure/internal/kernel/plug"
)

// Config says where plugins are, and what the settings say of them. All fields are required,
// but for the folders of this run.
type Config struct {
	Workdir  string
	Home     string // of the user
	Store    func() *plugins.Store
	Settings plugins.Settings
	Layer    func(key string) string // of the settings, from which a setting has its value
	Keys     keys.Store
	Logger   *slog.Logger
	Now      func() time.Time

	// Dirs are folders of plugins for this run, and Serverless more of them, whose servers are
	// not used.
	Dirs, Serverless []string

	// Skills returns the folders of skills, in which plugins may lie, and Trusted changes when
	// something in a project is trusted, or no longer.
	Skills  func(workdir string) []frontmatter.Place
	Trusted func() string

	// SetSetting gives a setting a value in the file of a scope, and SetOption sets an option of
	// a plugin in the user's settings; nil = it is not set any more.
	SetSetting func(ctx context.Context, scope, path, value string) (query.SettingChange, error)
	SetOption  func(ctx context.Context, plugin, key string, value json.RawMessage) error
}

// Extension has the plugins. It is safe for concurrent use.
type Extension struct {
	plug.NoSession
	cfg Config

	// What is known by folder, and by what lies beside its skills, holds as long as the list of
	// what is installed stays as it is.
	mu       sync.Mutex
	stamp    string                       // guarded by mu
	known    map[string][]Plugin          // guarded by mu
	notes    map[string][]agent.Note      // guarded by mu
	beside   map[string]besideFolder      // what lies beside skills, by folder; guarded by mu
	prepared map[string]plugins.Candidate // by ID and hash, until somebody has decided; guarded by mu
}

// New returns the extension.
func New(cfg Config) *Extension {
	return &Extension{cfg: cfg, prepared: map[string]plugins.Candidate{}}
}

// Name returns the name of the extension.
func (x *Extension) Name() string { return "plugins" }

// Answers returns the queries that the extension answers. They need no session.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{
		plug.Storeless(x.list), plug.Storeless(x.prepare), plug.Storeless(x.change), plug.Storeless(x.options), plug.Storeless(x.set),
		plug.Storeless(x.validate), plug.Storeless(x.markets), plug.Storeless(x.market), plug.Storeless(x.changeMarket),
	}
}

// A Plugin is a plugin that is active in a folder.
type Plugin struct {
	plugins.Loaded
	Options map[string]string // what is set, but for secrets
	Managed bool              // the administrator has enabled it

	// covers is [frontmatter.Place].Covers of one that lies in a folder of a project.
	covers func(path string, data []byte) bool
}

// In returns the plugins that are active in a folder. Each was compared with its hash when it
// was first asked for; one that is not what it was is left out, with a note.
func (x *Extension) In(workdir string) []Plugin {
	used, _ := x.load(workdir)
	return used
}

// Notes says which plugins do not load although they are enabled, and what is missing for
// others.
func (x *Extension) Notes() []agent.Note {
	_, notes := x.load(x.cfg.Workdir)
	return notes
}

// Reload has the active plugins read again when they are next asked for.
func (x *Extension) Reload() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.known = nil
}

// maxFolders limits the folders whose plugins are kept in memory.
const maxFolders = 16

func (x *Extension) load(workdir string) ([]Plugin, []agent.Note) {
	beside, besides := x.besideNow(workdir)
	key, store := workdir+besides, x.cfg.Store()
	x.mu.Lock()
	defer x.mu.Unlock()
	stamp := stampOfFile(store.BookPath())
	if x.stamp != stamp || x.known == nil || len(x.known) >= maxFolders {
		x.stamp, x.known, x.notes = stamp, map[string][]Plugin{}, map[string][]agent.Note{}
	}
	if used, ok := x.known[key]; ok {
		return used, x.notes[key]
	}
	r := reading{x: x, store: store, choices: x.choices(), workdir: workdir}
	r.read(beside)
	x.known[key], x.notes[key] = r.used, r.notes
	return r.used, r.notes
}

// stampOfFile changes when a file is written anew.
func stampOfFile(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return info.ModTime().Format(time.RFC3339Nano) + " " + fmt.Sprint(info.Size())
}

// reading is the plugins of a folder while they are read.
type reading struct {
	x       *Extension
	store   *plugins.Store
	choices plugins.Choices
	workdir string
	used    []Plugin
	notes   []agent.Note
}

func (r *reading) note(format string, args ...any) {
	r.notes = append(r.notes, agent.Note{Level: "warn", Code: "plugins", Text: fmt.Sprintf(format, args...)})
}

func (r *reading) read(beside []besidePlugin) {
	for _, n := range r.x.named() {
		l, err := r.store.LoadFolder(n.dir)
		if err != nil {
			r.note("%s", err)
			continue
		}
		if n.serverless {
			l.Servers = nil
		}
		r.used = append(r.used, r.x.use(l, nil, false))
	}
	list, err := r.store.List()
	if err != nil {
		r.note("%s", err)
		return
	}
	for _, in := range list {
		r.installed(in)
	}
	for _, one := range beside {
		r.besideSkills(one)
	}
	for id, on := range r.x.cfg.Settings.Plugins {
		if on && !strings.HasSuffix(id, "@"+plugins.SkillsDir) && !slices.ContainsFunc(list, func(in plugins.Installed) bool { return in.ID == id }) {
			r.note("the settings enable the plugin %s, and it is not installed: dure plugin install %s", id, id)
		}
	}
	slices.SortStableFunc(r.notes, func(x, y agent.Note) int { return strings.Compare(x.Text, y.Text) })
}

// rival returns the ID of the active plugin that has a name already; "" = none has.
func (r *reading) rival(name string) string {
	if i := slices.IndexFunc(r.used, func(p Plugin) bool { return p.Name == name }); i >= 0 {
		return r.used[i].ID
	}
	return ""
}

func (r *reading) installed(in plugins.Installed) {
	rival := r.rival(in.Name())
	if on, _ := r.choices.Enabled(in, false, r.workdir); !on || strings.HasSuffix(rival, "@"+plugins.Inline) {
		return // the one that is named for this run takes its place
	}
	l, err := r.store.Load(in)
	if err != nil {
		r.note("%s; it is not used: dure plugin show %s", err, in.ID)
		return
	}
	if on, _ := r.choices.Enabled(in, l.Off, r.workdir); on {
		r.add("the plugin "+in.ID, rival, l, in.Options)
	}
}

func (r *reading) besideSkills(one besidePlugin) {
	l, err := r.store.LoadBeside(one.dir, one.covers)
	if on, _ := r.choices.Enabled(plugins.Installed{ID: l.ID}, l.Off, r.workdir); !on {
		return
	}
	if err != nil {
		r.note("%s; it is not used: dure plugin show %s", err, l.ID)
		return
	}
	rival := r.rival(l.Name)
	if rival == "" {
		if err := os.MkdirAll(l.Data, 0o700); err != nil {
			r.note("%s", err)
			return
		}
	}
	if r.add("the plugin in "+one.dir, rival, l, nil) {
		r.used[len(r.used)-1].covers = one.covers
	}
}

// add makes a plugin active, unless another one of its name is, and reports whether it did.
func (r *reading) add(what, rival string, l plugins.Loaded, own map[string]json.RawMessage) bool {
	if rival != "" {
		r.note("%s: %s; it is not used: dure plugin show %s", what, taken(rival), l.ID)
		return false
	}
	if missing := r.x.missing(l, own); len(missing) > 0 {
		r.note("the plugin %s needs to be told: %s; dure plugin set %s", l.ID, strings.Join(missing, ", "), l.ID)
	}
	r.used = append(r.used, r.x.use(l, own, r.x.cfg.Settings.ManagedPlugin[l.ID]))
	return true
}

// taken says that another plugin has the name of one.
func taken(id string) string { return "another plugin of its name is in force: " + id }

// A namedPlugin is a folder with a plugin that is named for this run.
type namedPlugin struct {
	dir        string
	serverless bool // its servers are not used
}

func (x *Extension) named() (list []namedPlugin) {
	for i, dir := range slices.Concat(x.cfg.Dirs, x.cfg.Serverless) {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok { // as settings understand it
			dir = filepath.Join(x.cfg.Home, rest)
		}
		list = append(list, namedPlugin{filepath.Clean(x.absolute(dir)), i >= len(x.cfg.Dirs)})
	}
	return list
}

// absolute returns a path, which may be relative to the folder of the program.
func (x *Extension) absolute(path string) string {
	if !filepath.IsAbs(path) {
		return filepath.Join(x.cfg.Workdir, path)
	}
	return path
}

func (x *Extension) use(l plugins.Loaded, own map[string]json.RawMessage, managed bool) Plugin {
	open, _, _ := l.Values(x.chosen(l.ID, own), nil)
	return Plugin{Loaded: l, Options: open, Managed: managed}
}

// chosen is what the user has set for a plugin, the stronger before the weaker: what the
// administrator says, what was set with a command, what the settings say.
func (x *Extension) chosen(id string, own map[string]json.RawMessage) []map[string]json.RawMessage {
	var set struct{ Options map[string]json.RawMessage }
	if raw := x.cfg.Settings.PluginConfigs[id]; raw != nil {
		_ = json.Unmarshal(raw, &set) // what has no options sets nothing
	}
	if x.cfg.Layer("pluginConfigs."+id) == string(frontmatter.Managed) {
		return []map[string]json.RawMessage{set.Options, own}
	}
	return []map[string]json.RawMessage{own, set.Options}
}

// missing is what a plugin needs and its user has not set.
func (x *Extension) missing(l plugins.Loaded, own map[string]json.RawMessage) []string {
	_, _, missing := l.Values(x.chosen(l.ID, own), x.secret(l))
	return missing
}

// secret finds the secrets of a plugin.
func (x *Extension) secret(l plugins.Loaded) func(key string) string {
	return func(key string) string {
		v, _, err := x.cfg.Keys.Get(l.SecretName(key))
		if err != nil && !errors.Is(err, keys.ErrNone) {
			x.cfg.Logger.Warn("reading a secret of a plugin", "plugin", l.ID, "option", key, "error", err)
		}
		return v
	}
}

// Values returns the options of a plugin with its secrets.
func (x *Extension) Values(p Plugin) map[string]string {
	_, secrets, _ := p.Loaded.Values(nil, x.secret(p.Loaded))
	values := maps.Clone(p.Options)
	maps.Copy(values, secrets)
	return values
}

// Places are where plugins have files of a kind for the sessions of a folder.
func (x *Extension) Places(workdir, kind string) (all []frontmatter.Place) {
	for _, p := range x.In(workdir) {
		dirs, _ := p.Folders(kind)
		for _, dir := range dirs {
			all = append(all, frontmatter.Place{
				Scope: frontmatter.Plugin, Dir: dir, Trusted: true, Plugin: p.ID, Root: p.Root, Data: p.Data, Options: p.Options, Covers: p.covers,
			})
		}
	}
	return all
}

// Folders are what confined commands may read of plugins, and what they may write.
func (x *Extension) Folders(workdir string) (reads, writes []string) {
	for _, p := range x.In(workdir) {
		reads, writes = append(reads, p.Root, p.Data), append(writes, p.Data)
	}
	return reads, writes
}

// Agent is the agent that plugins want sessions to begin with: the first that names one of its
// own; "" = none does.
func (x *Extension) Agent(workdir string) string {
	for _, p := range x.In(cmp.Or(workdir, x.cfg.Workdir)) {
		var name string
		if json.Unmarshal(p.Settings["agent"], &name) == nil && slices.ContainsFunc(p.Can, func(c plugins.Capability) bool {
			return c.Kind == plugins.CanAgent && c.Name == name
		}) {
			return p.Name + ":" + name
		}
	}
	return ""
}

// Programs lets commands find the programs of plugins, behind all others: none of them takes
// the place of one that the machine has.
func (x *Extension) Programs(env []string, workdir string) []string {
	var dirs []string
	for _, p := range x.In(workdir) {
		if len(p.Programs) > 0 {
			dirs = append(dirs, filepath.Join(p.Root, "bin"))
		}
	}
	if len(dirs) == 0 {
		return env
	}
	env = slices.Clone(env)
	for i, entry := range env {
		if name, list, ok := strings.Cut(entry, "="); ok && strings.EqualFold(name, "PATH") {
			env[i] = name + "=" + strings.Join(append(filepath.SplitList(list), dirs...), string(filepath.ListSeparator))
		}
	}
	return env
}

// choices is what the settings say of plugins. A repository that is not trusted says nothing
// in them.
func (x *Extension) choices() plugins.Choices {
	var all plugins.Choices
	for id, on := range x.cfg.Settings.Plugins {
		layer := x.cfg.Layer("enabledPlugins." + id)
		all = append(all, plugins.Choice{
			Where: layer, On: map[string]bool{id: on}, Weak: layer == scopeUser || layer == scopeProject,
		})
	}
	return all
}

// Variable returns a variable that the servers of a plugin may name.
func (x *Extension) Variable(p Plugin, name string) (string, bool) {
	switch name {
	case "CLAUDE_PLUGIN_ROOT":
		return p.Root, true
	case "CLAUDE_PLUGIN_DATA":
		return p.Data, true
	}
	key, ok := strings.CutPrefix(name, "user_config.")
	if !ok {
		return "", false
	}
	v, ok := x.Values(p)[key]
	return v, ok
}
