// Package change answers what people ask of settings: which there are, where each comes from,
// and changes of the files that they stand in. A file is changed as a whole or not at all,
// and only if what it says afterwards can be read. It starts no goroutines.
package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/app/config/live"
	"dure/internal/base/record"
	"dure/internal/kernel/plug"
)

// Config is what the extension needs of the program.
type Config struct {
	Live    *live.Settings
	Started config.Config // the settings when the program started
	Version string        // of the program
	Mask    func(text string) string

	// Keep returns what keeps the working folder trusted once the user has changed a file in it.
	Keep func(file string) (again func())
}

// Extension has the settings.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(c Config) *Extension { return &Extension{cfg: c} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "settings" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{
		plug.Storeless(x.List), plug.Storeless(find), plug.Storeless(x.explain), plug.Storeless(x.files),
		plug.Storeless(x.make), plug.Storeless(x.check), plug.Storeless(x.change),
	}
}

// Findings says what is in force by the settings.
func (x *Extension) Findings(context.Context) []query.Finding {
	return x.cfg.Started.Findings(x.cfg.Live.Source(), x.cfg.Version)
}

// source is where the settings of now come from.
func (x *Extension) source() config.Sources {
	src := x.cfg.Live.Source()
	src.Trusted = x.cfg.Started.Trusted
	return src
}

// List answers [query.ListSettings].
func (x *Extension) List(_ context.Context, q query.ListSettings) ([]query.Setting, error) {
	list, err := config.All(x.source(), q.All)
	for i := range list {
		if q.Masked {
			list[i].Value = json.RawMessage(x.cfg.Mask(string(list[i].Value)))
		}
	}
	return list, err
}

func find(_ context.Context, q query.FindSettings) (found query.FoundSettings, err error) {
	add := func(k config.Key, path string) {
		found.Keys = append(found.Keys, query.SettingKey{
			Path: path, Type: string(k.Type), Meaning: k.Meaning(q.Language), Default: k.Default, Values: k.Among,
			Least: k.Least, Most: k.Most, Who: string(k.Who), Live: k.Live,
		})
	}
	within := ""
	if q.Name != "" {
		k, path, nearest := config.Find(q.Name)
		if path == "" {
			return query.FoundSettings{Keys: []query.SettingKey{}, Nearest: nearest}, nil
		}
		if add(k, path); k.Type != config.Group {
			return found, nil
		}
		within = path + "."
	}
	for _, k := range config.Keys() {
		if strings.HasPrefix(k.Path, within) {
			add(k, k.Path)
		}
	}
	return found, nil
}

func (x *Extension) explain(_ context.Context, q query.ExplainSetting) (query.ExplainedSetting, error) {
	_, path, err := known(q.Key)
	if path == "" {
		return query.ExplainedSetting{}, err
	}
	return config.Explain(x.source(), path)
}

// known returns the setting that somebody means. A group is none.
func known(name string) (k config.Key, path string, err error) {
	k, path, nearest := config.Find(name)
	if path != "" && k.Type != config.Group {
		return k, path, nil
	}
	fix := "dure config list --all lists them"
	if nearest != "" {
		fix = "did you mean " + nearest + "? " + fix
	}
	return k, path, &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("there is no setting %q", name), Fix: fix}
}

func (x *Extension) files(context.Context, query.ListSettingsFiles) ([]query.SettingsFile, error) {
	list := config.Files(x.source())
	for i := range list {
		_, err := os.Stat(list[i].Path)
		list[i].Exists = err == nil
	}
	return list, nil
}

// scopeFile is the file of a scope that is written.
func (x *Extension) scopeFile(scope string) (string, error) {
	if slices.Contains(query.SettingScopes(), scope) {
		for _, f := range config.Files(x.source()) {
			if f.Ours && f.Scope == scope {
				return f.Path, nil
			}
		}
	}
	return "", &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("there are no settings of the scope %q here", scope),
		Fix: "name one of: " + strings.Join(query.SettingScopes(), ", "),
	}
}

// make returns the file of a scope, which it makes where it is missing.
func (x *Extension) make(_ context.Context, q query.MakeSettings) (query.SettingsFile, error) {
	path, err := x.scopeFile(q.Scope)
	if err != nil {
		return query.SettingsFile{}, err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		err = keepInside(q.Scope, path)
		if err == nil {
			err = record.Make(path, "{\n}\n", q.Scope == "user")
		}
		if err != nil {
			return query.SettingsFile{}, writingProblem(path, err)
		}
	}
	return query.SettingsFile{Scope: q.Scope, Path: path, Exists: true, Ours: true}, nil
}

func (x *Extension) check(context.Context, query.CheckSettings) (bool, error) {
	err := readable(x.source())
	return err == nil, err
}

// readable reads settings, and returns what is wrong with them.
func readable(src config.Sources) error {
	cfg, err := config.Load(src)
	if err != nil {
		return err
	}
	return live.Check(&cfg)
}

func (x *Extension) change(ctx context.Context, q query.ChangeSetting) (query.SettingChange, error) {
	if err := x.Writable(q.Scope); err != nil {
		return query.SettingChange{}, err
	}
	switch q.Do {
	case query.SettingSet:
		return x.Set(ctx, q.Scope, q.Key, q.Value)
	case query.SettingUnset:
		return x.Unset(ctx, q.Scope, q.Key, q.Value)
	}
	return query.SettingChange{}, &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("a setting cannot be changed by %q", q.Do),
		Fix: "name one of: " + query.SettingSet + ", " + query.SettingUnset,
	}
}

// Writable reports why nobody can change the settings of a scope: they are not in force in
// this run.
func (x *Extension) Writable(scope string) error {
	if only := x.source().Only; only != nil && !slices.Contains(only, config.Layer(scope)) {
		return &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("the settings of the scope %q do not count in this run", scope),
			Fix: "name the scope in --setting-sources, or leave that flag out",
		}
	}
	return nil
}
