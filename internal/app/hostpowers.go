package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/mcp/servers"
	"dure/internal/safety/workspace"
)

// Bounds of what an embedding program may ask.
const (
	maxHostRead = 10 << 20 // bytes of a file, and what is usual
	maxSeed     = 8 << 20  // bytes of a file that it says it has read
)

// hostOrigin is the origin of calls that the embedding program makes itself.
const hostOrigin = "host"

// CallTool calls a tool in a session that is open, through its gate, on behalf of the
// embedding program. The tool may have any of its names.
func (a *App) CallTool(ctx context.Context, session, tool string, input json.RawMessage) (agent.Result, error) {
	t, err := a.toolsOfSession(session)
	if err != nil {
		return agent.Result{}, err
	}
	name, ok := t.cat.Canonical(tool)
	if !ok {
		return agent.Result{}, fmt.Errorf("there is no tool %q", servers.Clip(tool))
	}
	reg, err := a.open()
	if err != nil {
		return agent.Result{}, err
	}
	reach := reg.Reach(session)
	if reach.Invoke == nil {
		return agent.Result{}, agent.NotOpen(session)
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return reach.Invoke(ctx, agent.Invocation{Origin: hostOrigin, Tool: name, Input: input})
}

// within opens a file of the folders of a session that is open, if rules let it be read.
func (a *App) within(session, path string) (*member, workspace.File, string, error) {
	d := a.members.member(session)
	if d == nil {
		return nil, nil, "", agent.NotOpen(session)
	}
	given, resolved, err := d.ws.Resolve(path)
	if err != nil {
		return nil, nil, "", err
	}
	d.d.Look()
	if d.d.Policy.DeniesRead(given) || d.d.Policy.DeniesRead(resolved) {
		return nil, nil, "", fmt.Errorf("a rule denies reading %s", given)
	}
	for _, dir := range append([]string{d.ws.Root()}, a.cfg.AddDirs...) {
		rel, err := filepath.Rel(dir, resolved)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		root, err := d.ws.OpenRoot(dir)
		if err != nil {
			return nil, nil, "", err
		}
		f, err := workspace.OpenRegular(root, rel) // no link leads out of it
		_ = root.Close()                           // what is open stays open
		if err != nil {
			return nil, nil, "", err
		}
		return d, f, resolved, nil
	}
	return nil, nil, "", fmt.Errorf("%s is outside of the folders of this session", given)
}

// ReadFile reads at most most bytes of a file in the folders of a session that is open; 0
// is what is usual, 10 MiB.
func (a *App) ReadFile(session, path string, most int64) (query.FileText, error) {
	if most <= 0 || most > maxHostRead {
		most = maxHostRead
	}
	_, f, resolved, err := a.within(session, path)
	if err != nil {
		return query.FileText{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return query.FileText{}, err
	}
	cut := int64(len(data)) > most
	return query.FileText{Path: resolved, Data: data[:min(int64(len(data)), most)], Cut: cut}, nil
}

// SawFile notes that a session has seen a file as it was at a time: it may be changed then
// without being read first, unless it has changed since.
func (a *App) SawFile(session, path string, at time.Time) error {
	d, f, resolved, err := a.within(session, path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.ModTime().Truncate(time.Millisecond).After(at) {
		return fmt.Errorf("%s has changed since", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSeed+1))
	if err != nil {
		return err
	}
	if len(data) > maxSeed {
		return fmt.Errorf("%s is longer than %d bytes", path, maxSeed)
	}
	d.tracker.Saw(resolved, workspace.StateOf(info, data))
	return nil
}

// SetThinking has a session think for as many tokens from its next request on; nil = as
// the settings say.
func (a *App) SetThinking(session string, tokens *int) error {
	d := a.members.member(session)
	if d == nil {
		return agent.NotOpen(session)
	}
	d.tokens.Store(tokens)
	return nil
}

// thinks is how many tokens a session thinks for, if that was said for it.
func (m *member) thinks() (int, bool) {
	tokens := m.tokens.Load()
	if tokens == nil {
		return 0, false
	}
	return *tokens, true
}

// ReloadSkills reads the skills of a session again, and what can be typed.
func (a *App) ReloadSkills(session string) error {
	h := a.hooks.Of(session)
	if h == nil {
		return agent.NotOpen(session)
	}
	h.Reread()
	return nil
}

// ReloadPlugins reads the plugins again that are in force.
func (a *App) ReloadPlugins() { a.plugins.Reload() }

// SettingsNow returns the settings that have a value, without secrets.
func (a *App) SettingsNow() ([]query.Setting, error) {
	return a.settings.List(context.Background(), query.ListSettings{Masked: true})
}

// ApplySettings puts settings over those of the command line, for as long as the program
// runs, see [live.Settings.Put].
func (a *App) ApplySettings(settings json.RawMessage) error { return a.permissions.Put(settings, true) }

// TrySettings reports why ApplySettings would refuse settings; nil = it would not.
func (a *App) TrySettings(settings json.RawMessage) error { return a.permissions.Put(settings, false) }

// SaveSetting writes a setting into the file of a scope, on behalf of the embedding program.
func (a *App) SaveSetting(ctx context.Context, scope, key, value string) error {
	return a.settings.Save(ctx, scope, key, value)
}

// Below is an error where a path is no folder below those that a session works in.
func (a *App) Below(session, path string) error {
	one := a.members.member(session)
	if one == nil {
		return agent.NotOpen(session)
	}
	given, resolved, err := one.ws.Resolve(path)
	if err != nil {
		return err
	}
	if i, err := os.Stat(resolved); err != nil || !i.IsDir() {
		return fmt.Errorf("%s is no folder", given)
	}
	for _, dir := range append([]string{one.ws.Root()}, a.cfg.AddDirs...) {
		if _, root, err := one.ws.Resolve(dir); err == nil {
			dir = root
		}
		if rel, err := filepath.Rel(dir, resolved); err == nil && rel != "." && filepath.IsLocal(rel) {
			return nil
		}
	}
	return fmt.Errorf("%s is not below the folders of this session", given)
}
