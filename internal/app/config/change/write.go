package change

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/base/jsonc"
	"dure/internal/base/record"
	"dure/internal/extend/mcp/connections"
	"dure/internal/knowledge/memory/instruct"
)

// Set gives a key a value in the file of a scope. Everything else in it stays. Of a list, a text
// that is no JSON list is added.
func (x *Extension) Set(ctx context.Context, scope, name, value string) (query.SettingChange, error) {
	k, path, err := known(name)
	if err != nil {
		return query.SettingChange{}, err
	}
	raw, add := config.Value(k, value)
	return x.edit(ctx, scope, path, func(t *jsonc.Text) ([]byte, error) {
		words := config.Words(k, path)
		if !add {
			return t.Set(raw, words...)
		}
		if have, ok := t.Get(words...); ok && listed(have, raw) {
			return nil, nil
		}
		return t.Add(raw, words...)
	})
}

// listed reports whether a list has an entry already.
func listed(list, entry []byte) bool {
	plain, err := jsonc.Plain(list)
	var items []json.RawMessage
	return err == nil && json.Unmarshal(plain, &items) == nil &&
		slices.ContainsFunc(items, func(item json.RawMessage) bool { return bytes.Equal(item, entry) })
}

// Unset takes a key out of the file of a scope, or one entry of a list; "" = all of it.
func (x *Extension) Unset(ctx context.Context, scope, name, entry string) (query.SettingChange, error) {
	k, path, err := known(name)
	if err != nil {
		return query.SettingChange{}, err
	}
	return x.edit(ctx, scope, path, func(t *jsonc.Text) (out []byte, err error) {
		words := config.Words(k, path)
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

// Option sets an option of a plugin in the user's settings; a value of nil unsets it.
func (x *Extension) Option(ctx context.Context, plugin, key string, value json.RawMessage) error {
	_, err := x.edit(ctx, string(config.User), "pluginConfigs."+plugin, func(t *jsonc.Text) ([]byte, error) {
		if value == nil {
			return t.Unset("pluginConfigs", plugin, "options", key)
		}
		return t.Set(value, "pluginConfigs", plugin, "options", key)
	})
	return err
}

// Servers changes the servers in the user's settings, or in a file of the project.
func (x *Extension) Servers(ctx context.Context, c connections.FileChange) error {
	if c.Scope == string(config.User) {
		_, err := x.edit(ctx, c.Scope, "mcpServers."+c.Server, c.Edit)
		return err
	}
	_, err := x.file(ctx, c.Scope, c.File, func(before []byte) ([]byte, error) {
		t, err := jsonc.Read(before, nil)
		if err != nil {
			return nil, err
		}
		return c.Edit(t)
	}, nil)
	return err
}

// edit changes a file of settings at once and as a whole, when what it says afterwards can be
// read. change returns nil when there is nothing to do.
func (x *Extension) edit(ctx context.Context, scope, path string, change func(*jsonc.Text) ([]byte, error)) (query.SettingChange, error) {
	k, _, _ := config.Find(path)
	file, err := x.scopeFile(scope)
	if err != nil {
		return query.SettingChange{}, err
	}
	c := query.SettingChange{Key: path, Scope: scope, Path: file, Live: k.Live, Secret: k.Secret}
	c.Same, err = x.file(ctx, scope, file, func(before []byte) ([]byte, error) { return edited(before, path, change) },
		func(after []byte) error { return x.wouldRead(file, path, after) })
	if err != nil {
		return c, err
	}
	return x.counts(c)
}

// file changes a file at once and as a whole, if check agrees, which may be nil. Same says
// that there was nothing to do.
func (x *Extension) file(ctx context.Context, scope, file string, edit func(before []byte) ([]byte, error), check func(after []byte) error) (same bool, err error) {
	unlock, err := x.lock(ctx, patience)
	if err == nil {
		defer unlock()
		err = keepInside(scope, file)
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
	again := x.cfg.Keep(file)
	if err := record.Put(file, after, scope == "user"); err != nil {
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
func (x *Extension) wouldRead(file, path string, text []byte) error {
	src := x.source()
	read := src.ReadFile
	src.ReadFile = func(name string) ([]byte, error) {
		if name == file {
			return text, nil
		}
		return read(name)
	}
	err := readable(src)
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
func (x *Extension) counts(c query.SettingChange) (query.SettingChange, error) {
	e, err := config.Explain(x.source(), c.Key)
	if err != nil {
		return c, err
	}
	c.Value = json.RawMessage("null")
	for _, s := range e.Layers {
		if s.Origin.Layer != c.Scope || !strings.HasPrefix(s.Origin.Where, c.Path) {
			continue
		}
		c.Value, c.Counts, c.Why = s.Value, s.Counts, s.Why
		if s.By != nil {
			c.By = s.By.String()
		}
	}
	return c, nil
}

// patience is how long another program may hold the settings.
const patience = 5 * time.Second

// lock keeps other programs of ours from changing settings. It waits for one that
// does for a while.
func (x *Extension) lock(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	if err := os.MkdirAll(x.cfg.Started.Data, 0o700); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l := flock.New(filepath.Join(x.cfg.Started.Data, "settings.lock"), flock.SetPermissions(0o600))
	ok, err := l.TryLockContext(waiting, 20*time.Millisecond)
	if !ok && waiting.Err() != nil && ctx.Err() == nil {
		err = errors.New("another program is changing settings")
	}
	return func() { _ = l.Unlock() }, err // the end of the program unlocks it as well
}

// keepInside refuses to write through links that a repository has made.
func keepInside(scope, file string) error {
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
