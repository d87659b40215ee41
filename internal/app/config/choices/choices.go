// Package choices limits which models are asked: neither a repository nor the settings of another
// program send the conversation to a provider that the user did not choose. It starts no
// goroutines.
package choices

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/models/registry/providers"
)

// byRepository reports whether the files of the project gave a value.
func byRepository(o config.Origin) bool { return o.Layer == config.Project || o.Layer == config.Local }

// choices are the settings that say which models are asked.
func choices(c config.Config) []string {
	list := []string{"model", "fallbackModel", "smallModel"}
	for name := range maps.Keys(c.Profiles) {
		list = append(list, modelKey(name))
	}
	slices.Sort(list)
	return slices.DeleteFunc(list, func(key string) bool { return !byRepository(c.Origins[key]) })
}

// modelKey is the setting that names the model of a profile.
func modelKey(profile string) string { return "profiles." + profile + ".model" }

// profileOf returns the profile whose model a setting names.
func profileOf(key string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(key, "profiles."); ok {
		name, ok = strings.CutSuffix(name, ".model")
	}
	return name, ok
}

// Limit takes back what a repository, or the settings of another program, says about models
// where that would send the conversation to a provider that the user did not choose. src is
// where the settings came from. A repository may choose among the models of the providers that
// the user's own settings name; where they name nobody, of the one that would be asked without
// the repository.
func Limit(cfg *config.Config, src config.Sources, models *providers.Extension) error {
	if err := limitRepository(cfg, src, models); err != nil {
		return err
	}
	limitBorrowed(cfg, models)
	return nil
}

func limitRepository(cfg *config.Config, src config.Sources, models *providers.Extension) error {
	list := choices(*cfg)
	if len(list) == 0 {
		return nil
	}
	read, owned := src.ReadFile, cfg.OwnFolders(src)
	src.ReadFile = func(path string) ([]byte, error) {
		dir := filepath.Dir(path)
		if name := filepath.Base(dir); filepath.Dir(dir) == src.Workdir && (name == ".dure" || name == ".claude") && !slices.Contains(owned, dir) {
			return nil, fs.ErrNotExist
		}
		return read(path)
	}
	own, err := config.Load(src)
	if err != nil {
		return err
	}
	may := chosen(own, models)
	for _, key := range list {
		if slices.ContainsFunc(modelsIn(*cfg, key), func(m string) bool { return !may(models.ServedBy(m)) }) {
			take(cfg, own, key)
		}
	}
	return nil
}

// limitBorrowed takes back a model that was chosen in a .claude folder, for another
// program, where there is no key for it here.
func limitBorrowed(cfg *config.Config, models *providers.Extension) {
	if !slices.Contains(cfg.Borrowed, cfg.Origins["model"].Where) {
		return
	}
	if p, ok := models.Find(models.ServedBy(cfg.Model)); ok {
		if _, err := models.Key(p); p.Local || err == nil {
			return
		}
	}
	cfg.Model, cfg.Origins["model"] = config.DefaultModel, config.Origin{Layer: config.BuiltIn}
}

// modelsIn returns the models that a setting names.
func modelsIn(c config.Config, key string) []string {
	switch key {
	case "model":
		return []string{c.Model}
	case "fallbackModel":
		return c.Fallback
	case "smallModel":
		return []string{c.SmallModel}
	}
	if name, ok := profileOf(key); ok && c.Profiles[name].Model != nil {
		return []string{*c.Profiles[name].Model}
	}
	return nil
}

// chosen returns whether a provider is one that own settings choose.
func chosen(own config.Config, models *providers.Extension) func(provider string) bool {
	var names []string
	for key, origin := range own.Origins {
		if !origin.BuiltIn() {
			names = append(names, modelsIn(own, key)...)
		}
	}
	var list []string
	for _, name := range names {
		list = append(list, models.ServedBy(name))
	}
	if own.Origins["model"].BuiltIn() && own.BaseURL == "" {
		p, ok := firstKeyed(models)
		if !ok {
			return func(string) bool { return true } // without a key nobody is asked but this machine
		}
		list = append(list, p.Name)
	}
	if own.BaseURL != "" {
		list = append(list, "anthropic")
	}
	return func(provider string) bool { return slices.Contains(list, provider) }
}

// firstKeyed is the first provider elsewhere that there is a key for.
func firstKeyed(models *providers.Extension) (providers.Provider, bool) {
	for _, p := range models.All() {
		if _, err := models.Key(p); !p.Local && err == nil {
			return p, true
		}
	}
	return providers.Provider{}, false
}

// take takes a setting from own settings, and says so.
func take(cfg *config.Config, own config.Config, key string) {
	cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Code: "settings", Text: fmt.Sprintf(
		"%s: %s is not taken from a repository; set it in your own settings", cfg.Origins[key].Where, key)})
	switch key {
	case "model":
		cfg.Model = own.Model
	case "fallbackModel":
		cfg.Fallback = own.Fallback
	case "smallModel":
		cfg.SmallModel = own.SmallModel
	default:
		name, _ := profileOf(key)
		p := cfg.Profiles[name]
		p.Model = own.Profiles[name].Model
		cfg.Profiles[name] = p
	}
	if origin, ok := own.Origins[key]; ok {
		cfg.Origins[key] = origin
	} else {
		delete(cfg.Origins, key)
	}
}
