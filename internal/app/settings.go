package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/app/config/live"
	"dure/internal/base/jsonc"
	"dure/internal/base/record"
	"dure/internal/knowledge/memory/instruct"
)

// What settings are, for those who show and change them.
type (
	SettingKey  = config.Key
	SettingSaid = config.Said
	Setting     = config.Setting
)

// SettingKeys returns all keys, sorted.
func SettingKeys() []SettingKey { return config.Keys() }

// FindSetting returns the key that a person means, and its path as files of ours spell
// it; without one, what may have been meant.
func FindSetting(name string) (k SettingKey, path, nearest string) { return config.Find(name) }

// SettingsSchema is a JSON Schema of a settings file.
func SettingsSchema() []byte { return config.Schema() }

// SettingScopes are the scopes that are written, the one to take when none is named
// first.
func SettingScopes() []string { return []string{"user", "project", "local"} }

// SettingsFile is a file that settings are read from.
type SettingsFile struct {
	Scope  string `json:"scope"`
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Ours   bool   `json:"ours"` // it may be written; those of .claude folders are only read
}

// settingsSource is where the settings of now come from.
func (a *App) settingsSource() config.Sources {
	src := a.permissions.Source()
	src.Trusted = a.cfg.Trusted
	return src
}

// Settings returns the keys that have a value; also those with a built-in one when all
// is set.
func (a *App) Settings(all bool) ([]Setting, error) {
	return config.All(a.settingsSource(), all)
}

// ExplainSetting says what each layer says about a key, the weakest first, and what holds.
func (a *App) ExplainSetting(path string) (json.RawMessage, []SettingSaid, error) {
	return config.Explain(a.settingsSource(), path)
}

// SettingsFiles returns the files that settings are read from, the weakest first.
func (a *App) SettingsFiles() []SettingsFile {
	files := config.Files(a.settingsSource())
	list := make([]SettingsFile, len(files))
	for i, f := range files {
		_, err := os.Stat(f.Path)
		list[i] = SettingsFile{Scope: string(f.Layer), Path: f.Path, Exists: err == nil, Ours: f.Ours}
	}
	return list
}

// scopeFile is the file of a scope that is written.
func (a *App) scopeFile(scope string) (string, error) {
	for _, f := range config.Files(a.settingsSource()) {
		if f.Ours && string(f.Layer) == scope && slices.Contains(SettingScopes(), scope) {
			return f.Path, nil
		}
	}
	return "", &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("there are no settings of the scope %q here", scope), Fix: "name one of: " + strings.Join(SettingScopes(), ", "),
	}
}

// MakeSettings returns the file of a scope, which it makes where it is missing.
func (a *App) MakeSettings(scope string) (string, error) {
	path, err := a.scopeFile(scope)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		err = a.keepInside(scope, path)
		if err == nil {
			err = record.Make(path, "{\n}\n", scope == "user")
		}
		if err != nil {
			return "", writingProblem(path, err)
		}
	}
	return path, nil
}

// CheckSettings reads the settings once more, and returns what is wrong with them.
func (a *App) CheckSettings() error {
	cfg, err := config.Load(a.settingsSource())
	if err != nil {
		return err
	}
	return live.Check(&cfg)
}

// SetSetting gives a key a value in the file of a scope; what else stands there stays as
// it is. Of a list, a text that is no JSON list is added to what is there.
func (a *App) SetSetting(ctx context.Context, scope, path, value string) (query.SettingChange, error) {
	k, path, _ := config.Find(path)
	raw, add := config.Value(k, value)
	return a.changeSettings(ctx, scope, path, func(t *jsonc.Text) ([]byte, error) {
		words := config.Words(k, path)
		if add {
			if have, ok := t.Get(words...); ok && listed(have, raw) {
				return nil, nil
			}
			return t.Add(raw, words...)
		}
		return t.Set(raw, words...)
	})
}

// listed reports whether a list has an entry already.
func listed(list, entry []byte) bool {
	plain, err := jsonc.Plain(list)
	var items []json.RawMessage
	return err == nil && json.Unmarshal(plain, &items) == nil &&
		slices.ContainsFunc(items, func(item json.RawMessage) bool { return bytes.Equal(item, entry) })
}

// UnsetSetting takes a key out of the file of a scope, or one entry of a list; "" = all
// of it.
func (a *App) UnsetSetting(ctx context.Context, scope, path, entry string) (query.SettingChange, error) {
	k, path, _ := config.Find(path)
	return a.changeSettings(ctx, scope, path, func(t *jsonc.Text) ([]byte, error) {
		words := config.Words(k, path)
		var out []byte
		var err error
		if entry == "" {
			out, err = t.Unset(words...)
		} else {
			raw, _ := config.Value(k, entry)
			out, err = t.Remove(func(have []byte) bool { return bytes.Equal(have, raw) }, words...)
		}
		if errors.Is(err, jsonc.ErrNotThere) {
			return nil, nil
		}
		return out, err
	})
}

// changeSettings changes a file of settings at once and as a whole, when what it says
// afterwards can be read. change returns nil when there is nothing to do.
func (a *App) changeSettings(ctx context.Context, scope, path string, change func(*jsonc.Text) ([]byte, error)) (query.SettingChange, error) {
	k, _, _ := config.Find(path)
	file, err := a.scopeFile(scope)
	if err != nil {
		return query.SettingChange{}, err
	}
	c := query.SettingChange{Key: path, Scope: scope, Path: file, Live: k.Live, Secret: k.Secret}
	c.Same, err = a.changeFile(ctx, scope, file, func(before []byte) ([]byte, error) { return edited(before, path, change) },
		func(after []byte) error { return a.wouldRead(file, path, after) })
	if err != nil {
		return c, err
	}
	return a.counts(c)
}

// changeFile changes a file at once and as a whole, if check agrees, which may be nil. Same says
// that there was nothing to do.
func (a *App) changeFile(ctx context.Context, scope, file string, edit func(before []byte) ([]byte, error), check func(after []byte) error) (same bool, err error) {
	unlock, err := a.lockSettings(ctx, settingsWait)
	if err == nil {
		defer unlock()
		err = a.keepInside(scope, file)
	}
	if err != nil {
		return false, writingProblem(file, err)
	}
	before, err := config.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		before, err = nil, nil
	}
	var after []byte
	if err == nil {
		after, err = edit(before)
	}
	if err != nil {
		return false, writingProblem(file, err)
	}
	if after == nil || bytes.Equal(before, after) {
		return true, nil
	}
	if check != nil {
		if err := check(after); err != nil {
			return false, err
		}
	}
	again := a.trustedApart(file)
	if err := replaceText(file, after, scope == "user"); err != nil {
		return false, writingProblem(file, err)
	}
	again()
	return false, nil
}

// edited applies a change to the text of a file, in which the key may stand under
// another word.
func edited(before []byte, path string, change func(*jsonc.Text) ([]byte, error)) ([]byte, error) {
	t, err := jsonc.Read(before, config.SameKey)
	if err != nil {
		return nil, err
	}
	text := before
	for _, other := range config.OtherWords(path) {
		if _, ok := t.Get(other...); !ok {
			continue
		}
		if text, err = t.Unset(other...); err != nil {
			return nil, err
		}
		if t, err = jsonc.Read(text, config.SameKey); err != nil {
			return nil, err
		}
	}
	after, err := change(t)
	if after == nil && err == nil {
		after = text
	}
	return after, err
}

// wouldRead reports what would be wrong with the settings if a file had another text.
func (a *App) wouldRead(file, path string, text []byte) error {
	src := a.settingsSource()
	read := src.ReadFile
	src.ReadFile = func(name string) ([]byte, error) {
		if name == file {
			return text, nil
		}
		return read(name)
	}
	cfg, err := config.Load(src)
	if err == nil {
		err = live.Check(&cfg)
	}
	p := agent.ProblemOf(err)
	if p == nil || p.Code != agent.ProblemSettings {
		return err
	}
	what := p.Args["error"]
	if !strings.HasPrefix(what, path) {
		what = path + ": " + what
	}
	return &agent.Problem{
		Code: agent.ProblemUsage, Message: what, Err: err,
		Fix: "nothing was changed; dure config explain " + path + " says what it may be",
	}
}

// counts says whether what a file says about a key is in force.
func (a *App) counts(c query.SettingChange) (query.SettingChange, error) {
	_, layers, err := a.ExplainSetting(c.Key)
	if err != nil {
		return c, err
	}
	c.Value = json.RawMessage("null")
	for _, s := range layers {
		if string(s.Origin.Layer) != c.Scope || !strings.HasPrefix(s.Origin.Where, c.Path) {
			continue
		}
		c.Value, c.Counts, c.Why = s.Value, s.Counts, string(s.Why)
		if s.By != nil {
			c.By = s.By.String()
		}
	}
	return c, nil
}

// settingsWait is how long another program may hold the settings.
const settingsWait = 5 * time.Second

// lockSettings keeps other programs of ours from changing settings. It waits for one that
// does for a while.
func (a *App) lockSettings(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	if err := os.MkdirAll(a.cfg.Data, 0o700); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l := flock.New(filepath.Join(a.cfg.Data, "settings.lock"), flock.SetPermissions(0o600))
	ok, err := l.TryLockContext(waiting, 20*time.Millisecond)
	if !ok && waiting.Err() != nil && ctx.Err() == nil {
		err = errors.New("another program is changing settings")
	}
	return func() { _ = l.Unlock() }, err // the end of the program unlocks it as well
}

// keepInside refuses to write through links that a repository has made.
func (a *App) keepInside(scope, file string) error {
	if scope == "user" {
		return nil // that is the person's own, who may link it as they like
	}
	for _, path := range []string{filepath.Dir(file), file} {
		if info, err := os.Lstat(path); err == nil && info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			return instruct.ErrLinked
		}
	}
	return nil
}

// trustedApart returns what trusts the folder anew when it is trusted, and a file is all
// that has changed by then: it was its user who changed it.
func (a *App) trustedApart(file string) (again func()) {
	rel, err := filepath.Rel(a.opts.Workdir, file)
	if err != nil || !filepath.IsLocal(rel) {
		return func() {}
	}
	before, err := a.trust.Look(a.opts.Workdir)
	if err != nil || !before.State.Trusted {
		return func() {}
	}
	return func() {
		after, err := a.trust.Look(a.opts.Workdir)
		if err != nil || len(after.State.Changed) != 1 || after.State.Changed[0].Path != filepath.ToSlash(rel) {
			return // it is asked about
		}
		again := query.ChangeTrust{Dir: after.Path, Do: query.TrustFolder, By: "command", Files: after.Files}
		if _, err := a.query(context.Background(), again); err != nil {
			a.opts.Logger.Warn("trusting the folder anew", "error", err)
		}
	}
}

// replaceText puts a text in the place of a file at once; links of the user's own stay.
func replaceText(path string, text []byte, private bool) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	folder, mode := fs.FileMode(0o755), fs.FileMode(0o644)
	if private {
		folder, mode = 0o700, 0o600
	}
	if err := os.MkdirAll(filepath.Dir(path), folder); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".settings-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if runtime.GOOS != "windows" {
		err = errors.Join(err, f.Chmod(mode))
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func writingProblem(path string, err error) error {
	what := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		what = pe.Err
	}
	return &agent.Problem{
		Code: agent.ProblemSettings, Message: fmt.Sprintf("settings %s: %v", path, what), Fix: "Mend it there, or move the file away.", Err: err,
		Args: map[string]string{"path": path, "error": what.Error()},
	}
}
