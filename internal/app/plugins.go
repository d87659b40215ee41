package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/base/frontmatter"
	"dure/internal/base/keys"
	"dure/internal/extend/hooks"
	"dure/internal/extend/plugins"
)

// A usedPlugin is a plugin that is in force in a folder.
type usedPlugin struct {
	plugins.Loaded
	Options map[string]string // what is set, but for secrets
	Managed bool              // the administrator has switched it on

	// covers is [frontmatter.Place].Covers of one that lies in a folder of a project.
	covers func(path string, data []byte) bool
}

// inForce is the plugins that are in force, by folder and what lies beside its skills, for
// as long as the list of what is installed stays as it is.
type inForce struct {
	mu    sync.Mutex
	stamp string                  // guarded by mu
	known map[string][]usedPlugin // guarded by mu
	notes map[string][]agent.Note // guarded by mu

	beside map[string]besideFolder // what lies beside skills, by folder; guarded by mu
}

// pluginsIn returns the plugins that are in force in a folder. Each was compared with its
// hash when it was first asked for; one that is not what it was is left out and told.
func (a *App) pluginsIn(workdir string) []usedPlugin {
	used, _ := a.loadPlugins(workdir)
	return used
}

// PluginNotes says which plugins do not load although they are enabled, and what is
// missing for others.
func (a *App) PluginNotes() []agent.Note {
	_, notes := a.loadPlugins(a.opts.Workdir)
	return notes
}

// maxForced bounds the folders whose plugins are kept in memory.
const maxForced = 16

func (a *App) loadPlugins(workdir string) ([]usedPlugin, []agent.Note) {
	beside, besides := a.besideNow(workdir)
	key := workdir + besides
	p := &a.plugged
	p.mu.Lock()
	defer p.mu.Unlock()
	stamp := stampOfFile(filepath.Join(a.pluginDir(), "plugins.json"))
	if p.stamp != stamp || p.known == nil || len(p.known) >= maxForced {
		p.stamp, p.known, p.notes = stamp, map[string][]usedPlugin{}, map[string][]agent.Note{}
	}
	if used, ok := p.known[key]; ok {
		return used, p.notes[key]
	}
	used, notes := a.readPlugins(workdir, beside)
	p.known[key], p.notes[key] = used, notes
	return used, notes
}

// stampOfFile changes when a file is written anew.
func stampOfFile(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return info.ModTime().Format(time.RFC3339Nano) + " " + fmt.Sprint(info.Size())
}

func (a *App) readPlugins(workdir string, beside []besidePlugin) (used []usedPlugin, notes []agent.Note) {
	note := func(text string) {
		notes = append(notes, agent.Note{Level: "warn", Code: "plugins", Text: text})
	}
	store := a.pluginStore()
	for _, n := range a.namedPlugins() {
		l, err := store.LoadFolder(n.dir)
		if err != nil {
			note(err.Error())
			continue
		}
		if n.serverless {
			l.Servers = nil
		}
		used = append(used, a.use(l, nil, false))
	}
	list, err := store.List()
	if err != nil {
		note(err.Error())
		return used, notes
	}
	choices := a.pluginChoices()
	for _, in := range list {
		first := slices.IndexFunc(used, func(u usedPlugin) bool { return u.Name == in.Name() })
		if on, _ := choices.Enabled(in, false, workdir); !on || first >= 0 && strings.HasSuffix(used[first].ID, "@"+plugins.Inline) {
			continue // the one that is named for this run takes its place
		}
		l, err := store.Load(in)
		if err != nil {
			note(err.Error() + "; it is not used: dure plugin show " + in.ID)
			continue
		}
		if on, _ := choices.Enabled(in, l.Off, workdir); !on {
			continue
		}
		if first >= 0 {
			note("the plugin " + in.ID + ": " + taken(used[first].ID) + "; it is not used: dure plugin show " + in.ID)
			continue
		}
		one := a.use(l, in.Options, a.cfg.Extend.ManagedPlugin[in.ID])
		if missing := a.missing(l, in.Options); len(missing) > 0 {
			note(fmt.Sprintf("the plugin %s needs to be told: %s; dure plugin set %s", in.ID, strings.Join(missing, ", "), in.ID))
		}
		used = append(used, one)
	}
	for _, one := range beside {
		l, err := store.LoadBeside(one.dir, one.covers)
		on, _ := choices.Enabled(plugins.Installed{ID: l.ID}, l.Off, workdir)
		switch {
		case err != nil && on:
			note(err.Error() + "; it is not used: dure plugin show " + l.ID)
		case err != nil || !on:
		case slices.ContainsFunc(used, func(u usedPlugin) bool { return u.Name == l.Name }):
			first := slices.IndexFunc(used, func(u usedPlugin) bool { return u.Name == l.Name })
			note("the plugin in " + one.dir + ": " + taken(used[first].ID) + "; it is not used: dure plugin show " + l.ID)
		default:
			if err := os.MkdirAll(l.Data, 0o700); err != nil {
				note(err.Error())
				continue
			}
			if missing := a.missing(l, nil); len(missing) > 0 {
				note(fmt.Sprintf("the plugin %s needs to be told: %s; dure plugin set %s", l.ID, strings.Join(missing, ", "), l.ID))
			}
			u := a.use(l, nil, a.cfg.Extend.ManagedPlugin[l.ID])
			u.covers = one.covers
			used = append(used, u)
		}
	}
	for id, on := range a.cfg.Extend.Plugins {
		if on && !strings.HasSuffix(id, "@"+plugins.SkillsDir) && !slices.ContainsFunc(list, func(in plugins.Installed) bool { return in.ID == id }) {
			note(fmt.Sprintf("the settings enable the plugin %s, and it is not installed: dure plugin install %s", id, id))
		}
	}
	slices.SortStableFunc(notes, func(x, y agent.Note) int { return strings.Compare(x.Text, y.Text) })
	return used, notes
}

// taken is what is the matter with a plugin whose name another one has.
func taken(id string) string { return "another plugin of its name is in force: " + id }

// A namedPlugin is a folder with a plugin that is named for this run.
type namedPlugin struct {
	dir        string
	serverless bool // the servers of it are not used
}

// namedPlugins are those of this run.
func (a *App) namedPlugins() (list []namedPlugin) {
	f := a.opts.Flags
	for i, dir := range slices.Concat(f.PluginDirs, f.ServerlessDirs) {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok { // as settings understand it
			dir = filepath.Join(a.opts.UserHome, rest)
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(a.opts.Workdir, dir)
		}
		list = append(list, namedPlugin{filepath.Clean(dir), i >= len(f.PluginDirs)})
	}
	return list
}

func (a *App) use(l plugins.Loaded, own map[string]json.RawMessage, managed bool) usedPlugin {
	open, _, _ := l.Values(a.pluginSet(l.ID, own), nil)
	return usedPlugin{Loaded: l, Options: open, Managed: managed}
}

// pluginSet is what the user has set for a plugin, the stronger before the weaker: what the
// administrator says, what was said with a command, what the settings say.
func (a *App) pluginSet(id string, own map[string]json.RawMessage) []map[string]json.RawMessage {
	var said struct{ Options map[string]json.RawMessage }
	if raw := a.cfg.Extend.PluginConfigs[id]; raw != nil {
		_ = json.Unmarshal(raw, &said) // what has no options says nothing
	}
	if a.cfg.Origins["pluginConfigs."+id].Layer == config.Managed {
		return []map[string]json.RawMessage{said.Options, own}
	}
	return []map[string]json.RawMessage{own, said.Options}
}

// missing is what a plugin needs and its user has not set.
func (a *App) missing(l plugins.Loaded, own map[string]json.RawMessage) []string {
	_, _, missing := l.Values(a.pluginSet(l.ID, own), a.pluginSecret(l))
	return missing
}

// pluginSecret finds the secrets of a plugin.
func (a *App) pluginSecret(l plugins.Loaded) func(key string) string {
	return func(key string) string {
		v, _, err := a.keys().Get(l.SecretName(key))
		if err != nil && !errors.Is(err, keys.ErrNone) {
			a.opts.Logger.Warn("reading a secret of a plugin", "plugin", l.ID, "option", key, "error", err)
		}
		return v
	}
}

// pluginPlaces are where plugins have files of a kind for the sessions of a folder.
func (a *App) pluginPlaces(workdir, kind string) (all []frontmatter.Place) {
	for _, p := range a.pluginsIn(workdir) {
		dirs, _ := p.Folders(kind)
		for _, dir := range dirs {
			all = append(all, frontmatter.Place{
				Scope: frontmatter.Plugin, Dir: dir, Trusted: true, Plugin: p.ID, Root: p.Root, Data: p.Data, Options: p.Options, Covers: p.covers,
			})
		}
	}
	return all
}

// pluginFolders are what confined commands may read of plugins, and what they may write.
func (a *App) pluginFolders(workdir string) (reads, writes []string) {
	for _, p := range a.pluginsIn(workdir) {
		reads, writes = append(reads, p.Root, p.Data), append(writes, p.Data)
	}
	return reads, writes
}

// moreHooks returns the hooks of plugins, and of the embedding program. Secrets reach those
// of plugins in their environment alone.
func (a *App) moreHooks(workdir string) (all []hooks.Defined) {
	all = a.opts.Host.sources()
	for _, p := range a.pluginsIn(workdir) {
		options := maps.Clone(p.Options)
		maps.Copy(options, p.secrets(a.pluginSecret(p.Loaded)))
		for _, h := range p.Hooks {
			raw, told := plugins.Expand(h.Raw, p.Options)
			for _, text := range told {
				a.opts.Logger.Warn("hooks of a plugin", "plugin", p.ID, "file", h.File, "problem", text)
			}
			all = append(all, hooks.Defined{
				Source: hooks.Source{
					Layer: "plugin", Name: p.ID, File: filepath.Join(p.Root, filepath.FromSlash(cmp.Or(h.File, "plugin.json"))),
					Root: p.Root, Data: p.Data, Options: options,
				},
				JSON: raw, Managed: p.Managed,
			})
		}
	}
	return all
}

func (p usedPlugin) secrets(of func(key string) string) map[string]string {
	_, secrets, _ := p.Values(nil, of)
	return secrets
}

// pluginAgent is the agent that plugins want sessions to begin with: the first that names
// one of its own; "" = none does.
func (a *App) pluginAgent(workdir string) string {
	for _, p := range a.pluginsIn(cmp.Or(workdir, a.opts.Workdir)) {
		var name string
		if json.Unmarshal(p.Settings["agent"], &name) == nil && slices.ContainsFunc(p.Can, func(c plugins.Capability) bool {
			return c.Kind == plugins.CanAgent && c.Name == name
		}) {
			return p.Name + ":" + name
		}
	}
	return ""
}

// withPluginPrograms lets commands find the programs of plugins, behind all others: none
// of them takes the place of one that the machine has.
func (a *App) withPluginPrograms(env []string, workdir string) []string {
	var dirs []string
	for _, p := range a.pluginsIn(workdir) {
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

// pluginChoices is what the settings say of plugins. A repository that is not trusted
// says nothing in them.
func (a *App) pluginChoices() plugins.Choices {
	var all plugins.Choices
	for id, on := range a.cfg.Extend.Plugins {
		layer := a.cfg.Origins["enabledPlugins."+id].Layer
		all = append(all, plugins.Choice{
			Where: string(layer), On: map[string]bool{id: on}, Weak: layer == config.User || layer == config.Project,
		})
	}
	return all
}

// pluginAllow is what the administrator says of where plugins come from.
func (a *App) pluginAllow() plugins.Allow {
	e := a.cfg.Extend
	allow := plugins.Allow{Strict: e.OnlyMarkets != nil}
	if allow.Strict {
		for _, raw := range *e.OnlyMarkets {
			var src plugins.Source
			if json.Unmarshal(raw, &src) == nil {
				allow.Known = append(allow.Known, src)
			}
		}
	}
	for _, raw := range e.BlockMarkets {
		var src plugins.Source
		if json.Unmarshal(raw, &src) != nil {
			allow.Unread = true
			continue
		}
		allow.Blocked = append(allow.Blocked, src)
	}
	return allow
}
