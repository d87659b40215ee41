package active

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dure/agent/query"
	"dure/internal/base/keys"
	"dure/internal/extend/plugins"
)

// The scopes of settings that a plugin can be enabled in.
const (
	scopeUser    = "user"
	scopeProject = "project"
	scopeLocal   = "local"
)

// maxPrepared limits the candidates that wait for a decision.
const maxPrepared = 32

// prepare fetches a plugin and looks at it. A marketplace that the settings name is added when
// it is first needed.
func (x *Extension) prepare(ctx context.Context, q query.PreparePlugin) (p query.PreparedPlugin, err error) {
	s := x.cfg.Store()
	if q.Update != "" {
		if p.PluginCandidate, err = s.Update(ctx, q.Update); err != nil {
			return p, plugins.Problem(q.Update, x.lies(q.Update, err))
		}
		return x.propose(p), nil
	}
	src, err := plugins.ParseSource(q.Source, x.cfg.Workdir)
	if err != nil {
		return p, plugins.Problem(q.Source, err)
	}
	if _, market, ok := strings.Cut(src.Package, "@"); ok && src.Kind == plugins.FromMarketplace {
		if err := x.knowMarket(ctx, s, market); err != nil {
			return p, plugins.Problem(market, err)
		}
	}
	if p.PluginCandidate, err = s.Prepare(ctx, src); err != nil {
		return p, plugins.Problem(q.Source, err)
	}
	return x.propose(p), nil
}

// propose remembers a candidate, and adds what has to be set for it. One that comes disabled
// needs nothing yet.
func (x *Extension) propose(p query.PreparedPlugin) query.PreparedPlugin {
	x.mu.Lock()
	if len(x.prepared) >= maxPrepared {
		clear(x.prepared)
	}
	x.prepared[p.ID+" "+p.Release.Tree] = p.PluginCandidate
	x.mu.Unlock()
	if p.Plugin.Off && p.Before == nil {
		return p
	}
	in, err := x.cfg.Store().Find(p.ID)
	if err != nil {
		in.Options = nil // nobody has set anything
	}
	p.Needs = x.needs(plugins.Loaded{Plugin: plugins.Plugin{Manifest: p.Plugin}, ID: p.ID}, in.Options)
	return p
}

// knowMarket adds a marketplace that the settings name.
func (x *Extension) knowMarket(ctx context.Context, s *plugins.Store, name string) error {
	raw := x.cfg.Settings.Marketplaces[name]
	known, err := s.Markets()
	if err != nil || raw == nil || slices.ContainsFunc(known, func(k plugins.Known) bool { return k.Name == name }) {
		return err
	}
	var said struct{ Source json.RawMessage }
	if err := json.Unmarshal(raw, &said); err != nil {
		return fmt.Errorf("extraKnownMarketplaces.%s: %w", name, err)
	}
	src, err := plugins.ReadSource(said.Source)
	if err != nil {
		return fmt.Errorf("extraKnownMarketplaces.%s: %w", name, err)
	}
	if src.Path != "" && (src.Kind == plugins.FromFolder || src.Kind == plugins.FromFile) {
		src.Path = x.absolute(src.Path)
	}
	_, err = s.AddMarket(ctx, src, name)
	return err
}

// change does something with a plugin of which somebody has decided.
func (x *Extension) change(ctx context.Context, q query.ChangePlugin) (query.PluginChanged, error) {
	switch q.Do {
	case query.PluginInstall, query.PluginDiscard:
		return x.decide(q)
	case query.PluginEnable, query.PluginDisable:
		return x.enable(ctx, q.Name, q.Scope, q.Do == query.PluginEnable)
	case query.PluginRollback:
		in, err := x.cfg.Store().Rollback(q.Name)
		return query.PluginChanged{ID: in.ID, Version: in.Now.Version, SHA256: in.Now.Tree}, plugins.Problem(q.Name, x.lies(q.Name, err))
	case query.PluginRemove:
		return x.remove(q.Name, q.KeepData)
	}
	return query.PluginChanged{}, plugins.Problem(q.Name, errors.New("nothing to do with a plugin: "+q.Do))
}

// decide installs a candidate because somebody has agreed to it, or forgets it.
func (x *Extension) decide(q query.ChangePlugin) (did query.PluginChanged, err error) {
	did.ID = q.Name
	x.mu.Lock()
	key := q.Name + " " + q.SHA256
	c, ok := x.prepared[key]
	delete(x.prepared, key)
	x.mu.Unlock()
	s := x.cfg.Store()
	switch {
	case !ok:
		return did, plugins.Problem(q.Name, fmt.Errorf("%w: nobody has fetched it with that hash", plugins.ErrUnknown))
	case q.Do == query.PluginDiscard:
		s.Discard(c)
		return did, nil
	}
	if err := s.Install(c); err != nil {
		return did, plugins.Problem(q.Name, err)
	}
	if in, err := s.Find(c.ID); err == nil {
		l, err := s.Look(in)
		did.Enabled, did.By = x.choices().Enabled(in, l.Off, x.cfg.Workdir)
		did.Enabled = did.Enabled && err == nil
	}
	return did, nil
}

// remove forgets a plugin, its secrets, and its data unless that is to stay. Secrets go first,
// by what somebody has agreed to: its files may be gone.
func (x *Extension) remove(name string, keepData bool) (did query.PluginChanged, err error) {
	s := x.cfg.Store()
	in, err := s.Find(name)
	if err != nil {
		return did, plugins.Problem(name, x.lies(name, err))
	}
	did.ID = in.ID
	asked := in.Now.Can
	if in.Before != nil {
		asked = slices.Concat(asked, in.Before.Can)
	}
	for _, c := range asked {
		if c.Kind != plugins.CanSecret || keepData {
			continue
		}
		if err := x.forget(plugins.Loaded{ID: in.ID}.SecretName(c.Name)); err != nil {
			return did, err
		}
	}
	_, err = s.Remove(in.ID, keepData)
	return did, plugins.Problem(name, err)
}

// forget deletes a secret, if it is there.
func (x *Extension) forget(secret string) error {
	if err := x.cfg.Keys.Delete(secret); err != nil && !errors.Is(err, keys.ErrNone) {
		return x.cfg.Keys.Problem(err)
	}
	return nil
}

// enable says whether a plugin is wanted: everywhere, in the folder of the program alone, or for
// everybody who works on the project. What lies beside skills is in no list of ours: the
// settings say it of that.
func (x *Extension) enable(ctx context.Context, name, scope string, on bool) (did query.PluginChanged, err error) {
	s, choices, folder := x.cfg.Store(), x.choices(), ""
	f, err := x.find(name)
	if err != nil {
		return did, err
	}
	if !f.beside {
		f.Loaded, _ = s.Look(f.in) // one that does not load is enabled or disabled all the same
	}
	switch {
	case f.beside || scope == scopeProject: // settings alone can say it
		c, err := x.cfg.SetSetting(ctx, scope, "enabledPlugins."+f.in.ID, strconv.FormatBool(on))
		if err != nil {
			return did, err
		}
		if did.Setting = &c; c.Counts { // the settings were read before
			choices = append(plugins.Choices{{Where: scope, On: map[string]bool{f.in.ID: on}, Weak: scope != scopeLocal}}, choices...)
		}
	default:
		if scope == scopeLocal {
			folder = x.cfg.Workdir
		}
		if f.in, err = s.Enable(f.in.ID, folder, on); err != nil {
			return did, plugins.Problem(name, err)
		}
	}
	did.ID = f.in.ID
	did.Enabled, did.By = choices.Enabled(f.in, f.Off, x.cfg.Workdir)
	return did, nil
}

// options returns what can be set for a plugin.
func (x *Extension) options(_ context.Context, q query.ReadPluginOptions) (query.PluginOptions, error) {
	f, err := x.look(q.Name)
	if err != nil {
		return query.PluginOptions{}, err
	}
	return query.PluginOptions{ID: f.in.ID, Options: append([]query.PluginOption{}, f.Options...), Needs: x.needs(f.Loaded, f.in.Options)}, nil
}

// needs returns what a plugin has to be told before it is of use, and nobody has told it.
func (x *Extension) needs(l plugins.Loaded, own map[string]json.RawMessage) []query.PluginOption {
	missing, list := x.missing(l, own), []query.PluginOption{}
	for _, o := range l.Options {
		if slices.Contains(missing, o.Key) {
			list = append(list, o)
		}
	}
	return list
}

// set sets an option of a plugin, or no longer does. A secret goes where keys are kept, and what
// is set for a plugin that lies beside skills, into the settings.
func (x *Extension) set(ctx context.Context, q query.SetPlugin) (string, error) {
	f, err := x.look(q.Name)
	if err != nil {
		return "", err
	}
	o, err := f.Option(q.Key)
	var raw json.RawMessage
	if err == nil && q.Value != nil {
		raw, err = plugins.Value(o, *q.Value)
	}
	switch {
	case err != nil:
	case o.Sensitive && q.Value == nil:
		return f.in.ID, x.forget(f.SecretName(q.Key))
	case o.Sensitive:
		if _, err := x.cfg.Keys.Set(f.SecretName(q.Key), *q.Value); err != nil {
			return "", x.cfg.Keys.Problem(err)
		}
	case f.beside:
		return f.in.ID, x.cfg.SetOption(ctx, f.in.ID, q.Key, raw)
	default:
		err = x.cfg.Store().Set(f.in.ID, q.Key, raw)
	}
	return f.in.ID, plugins.Problem(q.Name, err)
}

// lies says of a plugin that was not installed and is in no list of ours where it lies.
func (x *Extension) lies(name string, err error) error {
	if !errors.Is(err, plugins.ErrUnknown) {
		return err
	}
	if l, ok := x.findBeside(name); ok {
		return fmt.Errorf("it was not installed, and lies in %s: change it there", l.Root)
	}
	return err
}

// markets returns the marketplaces that were added.
func (x *Extension) markets(context.Context, query.ListMarketplaces) ([]query.PluginMarket, error) {
	list, err := x.cfg.Store().Markets()
	return append([]query.PluginMarket{}, list...), plugins.Problem("marketplaces", err)
}

// market returns what a marketplace lists.
func (x *Extension) market(_ context.Context, q query.ReadMarketplace) (query.PluginMarketplace, error) {
	m, err := x.cfg.Store().Market(q.Name)
	return m, plugins.Problem(q.Name, err)
}

func (x *Extension) changeMarket(ctx context.Context, q query.ChangeMarketplace) ([]query.PluginMarket, error) {
	s := x.cfg.Store()
	switch q.Do {
	case query.MarketplaceAdd:
		src, err := plugins.ParseSource(q.Source, x.cfg.Workdir)
		var k query.PluginMarket
		if err == nil {
			k, err = s.AddMarket(ctx, src, "")
		}
		return []query.PluginMarket{k}, plugins.Problem(q.Source, err)
	case query.MarketplaceUpdate:
		return x.updateMarkets(ctx, s, q.Name)
	case query.MarketplaceRemove:
		return []query.PluginMarket{}, plugins.Problem(q.Name, s.RemoveMarket(q.Name))
	}
	return nil, plugins.Problem(q.Name, errors.New("nothing to do with a marketplace: "+q.Do))
}

// updateMarkets asks marketplaces anew: one, or with "" all.
func (x *Extension) updateMarkets(ctx context.Context, s *plugins.Store, name string) ([]query.PluginMarket, error) {
	names, all := []string{name}, []query.PluginMarket{}
	if name == "" {
		known, err := s.Markets()
		if err != nil {
			return nil, plugins.Problem("marketplaces", err)
		}
		names = nil
		for _, k := range known {
			names = append(names, k.Name)
		}
	}
	for _, name := range names {
		k, err := s.UpdateMarket(ctx, name)
		if err != nil {
			return all, plugins.Problem(name, err)
		}
		all = append(all, k)
	}
	return all, nil
}

// validate reads a plugin or a marketplace in a folder, and installs nothing.
func (x *Extension) validate(_ context.Context, q query.ValidatePlugin) (check query.PluginCheck, err error) {
	if check.Path = q.Path; !filepath.IsAbs(check.Path) {
		check.Path = filepath.Join(x.cfg.Workdir, check.Path)
	}
	check.Plugin, check.Marketplace, err = plugins.Validate(check.Path)
	return check, plugins.Problem(check.Path, err)
}
