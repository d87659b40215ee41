package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/base/hosts"
	"dure/internal/base/jsonc"
	"dure/internal/base/keys"
	"dure/internal/extend/plugins"
	"dure/internal/extend/release"
	"dure/internal/safety/sandbox"
)

// What commands on plugins return.
type (
	PluginCandidate   = plugins.Candidate
	PluginInstalled   = plugins.Installed
	PluginMarket      = plugins.Known
	PluginCapability  = plugins.Capability
	PluginOption      = plugins.Option
	PluginMarketplace = plugins.Marketplace
)

// fetchTime bounds one answer of a host that plugins are fetched from.
const fetchTime = 5 * time.Minute

func (a *App) pluginDir() string { return filepath.Join(a.cfg.Data, "plugins") }

// pluginStore is where plugins are kept.
func (a *App) pluginStore() *plugins.Store {
	git := func() string {
		return sandbox.FindOutside("git", func(path string) bool {
			rel, err := filepath.Rel(a.opts.Workdir, path)
			return err == nil && filepath.IsLocal(rel)
		})
	}
	return &plugins.Store{
		Dir: a.pluginDir(), Version: a.opts.Version, Allow: a.pluginAllow(),
		Get: a.getPlugin, Git: git, Env: a.commandEnv(), Box: a.pluginBox,
	}
}

// pluginBox is what git fetches plugins in: it writes one folder, and asks the hosts that
// are named.
func (a *App) pluginBox(dir string, hosts []string) (*sandbox.Box, error) {
	for _, host := range hosts {
		if !a.near(&url.URL{Scheme: "https", Host: host}) {
			return nil, farHost(host, string(a.cfg.Network.Mode))
		}
	}
	if a.cfg.Sandbox.Off {
		return sandbox.New(sandbox.Config{Temp: a.temp()}), nil
	}
	c := sandbox.Confinement{
		Roots: []string{dir}, Read: []string{dir}, Net: sandbox.NetOff,
		Hide: append(sandbox.Hidden(a.opts.UserHome, a.opts.Environ), a.cfg.Home, a.cfg.Data),
	}
	if len(hosts) > 0 {
		c.Net, c.Egress = sandbox.NetProxy, a.egress(a.cfg.Sandbox)
		c.Egress.Allow = hosts
	}
	return sandbox.New(sandbox.Config{Temp: a.temp(), Confine: &c, Mechanisms: a.opts.Mechanisms}), nil
}

func farHost(host, mode string) error {
	return &agent.Problem{
		Code: agent.ProblemNetwork, Message: fmt.Sprintf("%s cannot be asked in network mode %s", host, mode),
		Fix: "change network.mode, or name the host in network.allowHosts", Args: map[string]string{"host": host, "mode": mode},
	}
}

// errReach is a host that does not answer.
var errReach = errors.New("it cannot be reached")

// getPlugin writes what is at an address. It follows redirects to encrypted hosts alone,
// and sends nobody to an address of this network unless the first one was there.
func (a *App) getPlugin(ctx context.Context, address string, most int64, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("it is no address")
	}
	if !a.near(req.URL) {
		return farHost(req.URL.Hostname(), string(a.cfg.Network.Mode))
	}
	req.Header.Set("User-Agent", "dure/"+a.opts.Version)
	client := http.Client{Transport: a.http.Transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) >= release.MaxMoves || !a.near(r.URL) || r.URL.Host != via[0].URL.Host && (r.URL.Scheme != "https" || numeric(r.URL)) {
			return release.ErrFar
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %s", errReach, hosts.Cause(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the host answers %s", resp.Status)
	}
	n, err := io.Copy(to, io.LimitReader(resp.Body, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%w: more than %d MiB", plugins.ErrLarge, most>>20)
	}
	return err
}

// numeric reports whether a host is an address or this machine.
func numeric(u *url.URL) bool {
	_, err := netip.ParseAddr(u.Hostname())
	return err == nil || strings.EqualFold(u.Hostname(), "localhost")
}

// PreparePlugin fetches a plugin and looks at it: from what a person writes as its source.
// A marketplace that the settings name is added when it is first needed.
func (a *App) PreparePlugin(ctx context.Context, word string) (PluginCandidate, error) {
	src, err := plugins.ParseSource(word, a.opts.Workdir)
	if err != nil {
		return PluginCandidate{}, pluginProblem(word, err)
	}
	s := a.pluginStore()
	if _, market, ok := strings.Cut(src.Package, "@"); ok && src.Kind == plugins.FromMarketplace {
		if err := a.knowMarket(ctx, s, market); err != nil {
			return PluginCandidate{}, pluginProblem(market, err)
		}
	}
	c, err := s.Prepare(ctx, src)
	if err != nil {
		return c, pluginProblem(word, err)
	}
	return c, nil
}

// knowMarket adds a marketplace that the settings name.
func (a *App) knowMarket(ctx context.Context, s *plugins.Store, name string) error {
	raw := a.cfg.Extend.Marketplaces[name]
	known, err := s.Markets()
	if err != nil || raw == nil || slices.ContainsFunc(known, func(k plugins.Known) bool { return k.Name == name }) {
		return err
	}
	var said struct{ Source plugins.Source }
	if err := json.Unmarshal(raw, &said); err != nil {
		return fmt.Errorf("extraKnownMarketplaces.%s: %w", name, err)
	}
	if src := &said.Source; src.Path != "" && !filepath.IsAbs(src.Path) && (src.Kind == plugins.FromFolder || src.Kind == plugins.FromFile) {
		src.Path = filepath.Join(a.opts.Workdir, src.Path)
	}
	_, err = s.AddMarket(ctx, said.Source, name)
	return err
}

// InstallPlugin takes in what somebody said yes to.
func (a *App) InstallPlugin(c PluginCandidate) error {
	if err := a.pluginStore().Install(c); err != nil {
		return pluginProblem(c.ID, err)
	}
	return nil
}

// DiscardPlugin forgets what nobody said yes to.
func (a *App) DiscardPlugin(c PluginCandidate) { a.pluginStore().Discard(c) }

// UpdatePlugin fetches what an installed plugin has become, and looks at it.
func (a *App) UpdatePlugin(ctx context.Context, name string) (PluginCandidate, error) {
	c, err := a.pluginStore().Update(ctx, name)
	if err != nil {
		return c, pluginProblem(name, a.lies(name, err))
	}
	return c, nil
}

// RollbackPlugin goes back to the state before the last update.
func (a *App) RollbackPlugin(name string) (PluginInstalled, error) {
	in, err := a.pluginStore().Rollback(name)
	if err != nil {
		return in, pluginProblem(name, a.lies(name, err))
	}
	return in, nil
}

// RemovePlugin forgets a plugin, its secrets, and its data unless that is to stay. Secrets
// go first, by what somebody said yes to: its files may be gone.
func (a *App) RemovePlugin(name string, keepData bool) (PluginInstalled, error) {
	s := a.pluginStore()
	in, err := s.Find(name)
	if err != nil {
		return in, pluginProblem(name, a.lies(name, err))
	}
	asked := in.Now.Can
	if in.Before != nil {
		asked = slices.Concat(asked, in.Before.Can)
	}
	for _, c := range asked {
		if c.Kind != plugins.CanSecret || keepData {
			continue
		}
		if err := a.keys().Delete(plugins.Loaded{ID: in.ID}.SecretName(c.Name)); err != nil && !errors.Is(err, keys.ErrNone) {
			return in, a.keys().Problem(err)
		}
	}
	if in, err = s.Remove(in.ID, keepData); err != nil {
		return in, pluginProblem(name, err)
	}
	return in, nil
}

// PluginSwitch is what has become of switching a plugin on or off.
type PluginSwitch struct {
	ID      string `json:"id"`
	Enabled bool   `json:"enabled"`
	By      string `json:"by"` // who decides now, which may be somebody stronger

	Setting *SettingChange `json:"setting,omitempty"` // what was written, where settings alone can say it
}

// EnablePlugin says whether a plugin is wanted: everywhere, in the working folder alone, or
// for everybody who works on the project. What lies beside skills is in no list of ours:
// the settings say it of that.
func (a *App) EnablePlugin(ctx context.Context, name, scope string, on bool) (did PluginSwitch, err error) {
	s, choices, folder := a.pluginStore(), a.pluginChoices(), ""
	in, l, beside, err := a.foundPlugin(s, name)
	if err != nil {
		return did, err
	}
	if !beside {
		l, _ = s.Look(in) // one that does not load is switched on or off all the same
	}
	switch {
	case beside || scope == string(config.Project): // settings alone can say it
		c, err := a.SetSetting(ctx, scope, "enabledPlugins."+in.ID, strconv.FormatBool(on))
		if err != nil {
			return did, err
		}
		if did.Setting = &c; c.Counts { // what the settings were when they were read is over
			weak := scope != string(config.Local)
			choices = append(plugins.Choices{{Where: scope, On: map[string]bool{in.ID: on}, Weak: weak}}, choices...)
		}
	default:
		if scope == string(config.Local) {
			folder = a.opts.Workdir
		}
		if in, err = s.Enable(in.ID, folder, on); err != nil {
			return did, pluginProblem(name, err)
		}
	}
	did.ID = in.ID
	did.Enabled, did.By = choices.Enabled(in, l.Off, a.opts.Workdir)
	return did, nil
}

// PluginEnabled reports whether an installed plugin is on.
func (a *App) PluginEnabled(id string) bool {
	s := a.pluginStore()
	in, err := s.Find(id)
	if err != nil {
		return false
	}
	l, err := s.Look(in)
	on, _ := a.pluginChoices().Enabled(in, l.Off, a.opts.Workdir)
	return on && err == nil
}

// PluginNeeds returns what a plugin that is not installed yet has to be told before it is
// of use, and nobody has told it. One that comes switched off needs nothing yet.
func (a *App) PluginNeeds(c PluginCandidate) []PluginOption {
	if c.Plugin.Off && c.Before == nil {
		return nil
	}
	in, err := a.pluginStore().Find(c.ID)
	if err != nil {
		in.Options = nil // nobody has set anything
	}
	return a.needs(plugins.Loaded{Plugin: c.Plugin, ID: c.ID}, in.Options)
}

// InstalledPluginNeeds is [App.PluginNeeds] for one that is installed, with all that can be
// set for it.
func (a *App) InstalledPluginNeeds(name string) (id string, options, needs []PluginOption, err error) {
	s := a.pluginStore()
	in, l, beside, err := a.foundPlugin(s, name)
	if err != nil {
		return "", nil, nil, err
	}
	if !beside {
		if l, err = s.Look(in); err != nil {
			return in.ID, nil, nil, pluginProblem(name, err)
		}
	}
	return in.ID, l.Options, a.needs(l, in.Options), nil
}

func (a *App) needs(l plugins.Loaded, own map[string]json.RawMessage) (list []PluginOption) {
	missing := a.missing(l, own)
	for _, o := range l.Options {
		if slices.Contains(missing, o.Key) {
			list = append(list, o)
		}
	}
	return list
}

// CheckPluginValue says what is wrong with a value before it is set.
func (a *App) CheckPluginValue(name string, o PluginOption, value string) error {
	if _, err := o.Value(value); err != nil {
		return pluginProblem(name, err)
	}
	return nil
}

// PluginOptions returns what can be set for a plugin.
func (a *App) PluginOptions(name string) (id string, options []PluginOption, err error) {
	id, options, _, err = a.InstalledPluginNeeds(name)
	return id, options, err
}

// SetPlugin sets an option of a plugin. A secret goes where keys are kept, and what a
// plugin is told that lies beside skills, into the settings.
func (a *App) SetPlugin(ctx context.Context, name, key, value string) error {
	return a.tellPlugin(ctx, name, key, &value)
}

// UnsetPlugin takes back what a plugin was told: what its author says holds again.
func (a *App) UnsetPlugin(ctx context.Context, name, key string) error {
	return a.tellPlugin(ctx, name, key, nil)
}

// tellPlugin sets an option of a plugin; nil = it is not set any more.
func (a *App) tellPlugin(ctx context.Context, name, key string, value *string) error {
	s := a.pluginStore()
	in, l, beside, err := a.foundPlugin(s, name)
	if err == nil && !beside {
		l, err = s.Look(in)
	}
	if err != nil {
		return pluginProblem(name, err)
	}
	o, err := l.Option(key)
	if err != nil {
		return pluginProblem(name, err)
	}
	var raw json.RawMessage
	if value != nil {
		if raw, err = o.Value(*value); err != nil {
			return pluginProblem(name, err)
		}
	}
	switch {
	case o.Sensitive && value == nil:
		if err := a.keys().Delete(l.SecretName(key)); err != nil && !errors.Is(err, keys.ErrNone) {
			return a.keys().Problem(err)
		}
	case o.Sensitive:
		if _, err := a.keys().Set(l.SecretName(key), *value); err != nil {
			return a.keys().Problem(err)
		}
	case beside:
		_, err := a.changeSettings(ctx, string(config.User), "pluginConfigs."+l.ID, func(t *jsonc.Text) ([]byte, error) {
			if value == nil {
				return t.Unset("pluginConfigs", l.ID, "options", key)
			}
			return t.Set(raw, "pluginConfigs", l.ID, "options", key)
		})
		return err
	default:
		if err := s.Set(in.ID, key, raw); err != nil {
			return pluginProblem(name, err)
		}
	}
	return nil
}

// pluginProblem is what is wrong with a plugin or a marketplace.
func pluginProblem(name string, err error) error {
	if p := agent.ProblemOf(err); p != nil {
		return p
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	fix := "look at what is there with dure plugin list, and at a folder with dure plugin validate"
	switch {
	case errors.Is(err, plugins.ErrChanged):
		fix = "if you trust what it is now, install it again; else remove it"
	case errors.Is(err, errUntrusted):
		fix = "look at it with dure trust show, then trust it with dure trust"
	case errors.Is(err, plugins.ErrForbidden):
		fix = "ask your administrator"
	case errors.Is(err, plugins.ErrMarket):
		fix = "add it with dure plugin marketplace add SOURCE, then install NAME@MARKETPLACE"
	case errors.Is(err, plugins.ErrNoMarket):
		fix = "add it with dure plugin marketplace add SOURCE"
	case errors.Is(err, plugins.ErrOption):
		fix = "see what can be set with dure plugin set " + name
	case errors.Is(err, errReach):
		fix = "check the address and the network, and run it again"
	case errors.Is(err, plugins.ErrSource), errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(err.Error(), "fetching "):
		fix = "name a folder, an archive, OWNER/REPOSITORY, an address that begins with https://, npm:PACKAGE or NAME@MARKETPLACE"
	}
	return &agent.Problem{
		Code: agent.ProblemPlugin, Message: fmt.Sprintf("plugin %s: %v", name, err), Fix: fix, Err: err,
		Args: map[string]string{"name": name, "error": err.Error(), "fix": fix},
	}
}

// ListPlugins returns the plugins that are installed or named for this run.
func (a *App) ListPlugins(workdir string) ([]query.PluginInfo, error) {
	workdir = cmp.Or(workdir, a.opts.Workdir)
	s := a.pluginStore()
	all := []query.PluginInfo{}
	for _, n := range a.namedPlugins() {
		l, err := s.LoadFolder(n.dir)
		info := query.PluginInfo{ID: l.ID, Source: n.dir, Enabled: true, By: "flag"}
		if err != nil {
			info.Name, info.Problem = filepath.Base(n.dir), err.Error()
		}
		all = append(all, a.described(info, l, nil))
	}
	list, err := s.List()
	if err != nil {
		return nil, pluginProblem("list", err)
	}
	choices := a.pluginChoices()
	for _, in := range list {
		l, err := s.Look(in)
		info := query.PluginInfo{ID: in.ID, Name: in.Name(), Version: in.Now.Version, Source: in.Now.Source.String(), SHA256: in.Now.Tree}
		if in.Before != nil {
			info.Before = in.Before.Version
		}
		if err != nil {
			info.Problem = err.Error()
		}
		info.Enabled, info.By = choices.Enabled(in, l.Off, workdir)
		all = append(all, a.described(info, l, in.Options))
	}
	all = append(all, a.listBeside(workdir, choices)...)
	first := map[string]string{} // of a name, which is in force
	for i, info := range all {
		switch id, ok := first[info.Name]; {
		case !info.Enabled || info.Problem != "":
		case ok:
			all[i].Problem = taken(id)
		default:
			first[info.Name] = info.ID
		}
	}
	return all, nil
}

// described adds what a plugin says of itself.
func (a *App) described(info query.PluginInfo, l plugins.Loaded, own map[string]json.RawMessage) query.PluginInfo {
	info.Capabilities, info.Left = []query.PluginCapability{}, []string{}
	if info.Problem != "" {
		return info
	}
	p := l.Plugin
	info.Name, info.Title, info.Description, info.Warnings = p.Name, p.Title, p.Description, p.Warnings
	info.Version = cmp.Or(info.Version, p.Version)
	info.Missing = a.missing(l, own)
	for _, c := range p.Can {
		info.Capabilities = append(info.Capabilities, query.PluginCapability{Kind: string(c.Kind), Name: c.Name, Detail: c.Detail})
	}
	for _, one := range p.Left {
		info.Left = append(info.Left, one.What+": "+one.Why)
	}
	for _, kind := range []string{plugins.Commands, plugins.Agents} {
		_, left := l.Folders(kind)
		for _, one := range left {
			info.Left = append(info.Left, one.What+": "+one.Why)
		}
	}
	return info
}

// PluginMarkets returns the marketplaces that were added.
func (a *App) PluginMarkets() ([]PluginMarket, error) {
	list, err := a.pluginStore().Markets()
	if err != nil {
		return nil, pluginProblem("marketplaces", err)
	}
	return some(list), nil
}

// PluginMarket returns what a marketplace lists.
func (a *App) PluginMarket(name string) (PluginMarketplace, error) {
	m, err := a.pluginStore().Market(name)
	if err != nil {
		return m, pluginProblem(name, err)
	}
	return m, nil
}

// AddPluginMarket adds a marketplace.
func (a *App) AddPluginMarket(ctx context.Context, word string) (PluginMarket, error) {
	src, err := plugins.ParseSource(word, a.opts.Workdir)
	var k PluginMarket
	if err == nil {
		k, err = a.pluginStore().AddMarket(ctx, src, "")
	}
	if err != nil {
		return k, pluginProblem(word, err)
	}
	return k, nil
}

// UpdatePluginMarkets asks marketplaces anew: one, or with "" all.
func (a *App) UpdatePluginMarkets(ctx context.Context, name string) ([]PluginMarket, error) {
	s := a.pluginStore()
	names := []string{name}
	if name == "" {
		names = nil
		known, err := s.Markets()
		if err != nil {
			return nil, pluginProblem("marketplaces", err)
		}
		for _, k := range known {
			names = append(names, k.Name)
		}
	}
	all := []PluginMarket{}
	for _, name := range names {
		k, err := s.UpdateMarket(ctx, name)
		if err != nil {
			return all, pluginProblem(name, err)
		}
		all = append(all, k)
	}
	return all, nil
}

// RemovePluginMarket forgets a marketplace.
func (a *App) RemovePluginMarket(name string) error {
	if err := a.pluginStore().RemoveMarket(name); err != nil {
		return pluginProblem(name, err)
	}
	return nil
}

// ValidatePlugin reads a plugin or a marketplace in a folder, and installs nothing.
func (a *App) ValidatePlugin(dir string) (PluginCheck, error) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.opts.Workdir, dir)
	}
	check := PluginCheck{Path: dir}
	p, m, err := plugins.Validate(dir)
	if err != nil {
		return check, pluginProblem(dir, err)
	}
	check.Plugin, check.Marketplace = p, m
	return check, nil
}

// PluginCheck is what a folder has been found to be.
type PluginCheck struct {
	Path        string               `json:"path"`
	Plugin      *plugins.Plugin      `json:"plugin,omitempty"`
	Marketplace *plugins.Marketplace `json:"marketplace,omitempty"`
}
