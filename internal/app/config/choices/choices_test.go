package choices

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"dure/internal/app/config"
	"dure/internal/models/registry"
	"dure/internal/models/registry/providers"
)

// limited are the settings of a folder, once they are limited.
func limited(t *testing.T, home, workdir string, environ ...string) config.Config {
	t.Helper()
	env := map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	src := config.Sources{ReadFile: config.ReadFile, UserHome: home, Workdir: workdir, OS: runtime.GOOS, Getenv: func(name string) string { return env[name] }}
	cfg, err := config.Load(src)
	if err == nil {
		err = Limit(&cfg, src, providers.New(providers.Config{Models: registry.New(cfg.Models), Providers: cfg.Providers, Getenv: src.Getenv}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A repository may choose a model, and not a provider that its user did not.
func TestARepositoryChoosesAmongTheUsersProviders(t *testing.T) {
	t.Parallel()
	const both = "ANTHROPIC_API_KEY=k OPENROUTER_API_KEY=k"
	for _, c := range []struct {
		name, user, repository, env string
		want                        string // model|fallback|small|model of the chat profile
		notes                       int
	}{
		{"the same provider", `{"model":"opus"}`, `{"model":"haiku"}`, both, "haiku|||", 0},
		{"another provider", `{"model":"opus"}`, `{"model":"openrouter/any/model"}`, both, "opus|||", 1},
		{"... that nobody excluded", `{}`, `{"model":"openrouter/any/model"}`, both, "claude-sonnet-4-6|||", 1},
		{"the only one with a key", `{}`, `{"model":"openrouter/any/model"}`, "OPENROUTER_API_KEY=k", "openrouter/any/model|||", 0},
		{"one that the user names elsewhere", `{"model":"opus","fallbackModel":"openrouter/x/y"}`, `{"model":"openrouter/any/model"}`, both, "openrouter/any/model|openrouter/x/y||", 0},
		{"fallback", `{"model":"opus"}`, `{"fallbackModel":"haiku,openrouter/any/model"}`, both, "opus|||", 1},
		{"fallback of the same", `{"model":"opus"}`, `{"fallbackModel":"haiku"}`, both, "opus|haiku||", 0},
		{"small", `{"model":"opus","smallModel":"haiku"}`, `{"smallModel":"openrouter/any/model"}`, both, "opus||haiku|", 1},
		{"profile", `{"model":"opus"}`, `{"profiles":{"chat":{"model":"openrouter/any/model"}}}`, both, "opus|||", 1},
		{"this machine", `{"model":"opus"}`, `{"model":"ollama/any"}`, both, "opus|||", 1},
		{"nobody knows where", `{"model":"opus"}`, `{"model":"any"}`, both, "opus|||", 1},
		{"no key at all", `{}`, `{"model":"ollama/any"}`, "", "ollama/any|||", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			home, work := t.TempDir(), t.TempDir()
			for path, text := range map[string]string{
				filepath.Join(home, "settings.json"): c.user, filepath.Join(work, ".dure", "settings.json"): c.repository,
			} {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cfg := limited(t, home, work, append(strings.Fields(c.env), "DURE_HOME="+home)...)
			got := strings.Join([]string{cfg.Model, strings.Join(cfg.Fallback, ","), cfg.SmallModel, chatModel(cfg)}, "|")
			if got != c.want || len(cfg.Notes) != c.notes {
				t.Errorf("%s, notes %v", got, cfg.Notes)
			}
			if c.notes > 0 && cfg.Origins["model"].Layer == config.Project {
				t.Errorf("the origin is %s", cfg.Origins["model"])
			}
		})
	}
}

func chatModel(c config.Config) string {
	w, _ := c.Work("chat")
	return w.Model
}

// A model that was chosen for another program counts where there is a key for it.
func TestBorrowedModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, theirs, want string
	}{
		{"ANTHROPIC_API_KEY", "opus[1m]", "opus"},
		{"OPENAI_API_KEY", "opus", config.DefaultModel},
		{"ANTHROPIC_API_KEY", "nobody-knows-this", config.DefaultModel},
		{"ANTHROPIC_API_KEY", "default", config.DefaultModel},
	} {
		home := t.TempDir()
		path := filepath.Join(home, ".claude", "settings.json")
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(`{"model": "`+tt.theirs+`"}`), 0o600)); err != nil {
			t.Fatal(err)
		}
		cfg := limited(t, home, t.TempDir(), "DURE_HOME="+filepath.Join(home, ".dure"), tt.key+"=x")
		if cfg.Model != tt.want || (tt.want == config.DefaultModel) != cfg.Origins["model"].BuiltIn() {
			t.Errorf("%s with %s: %s by %s", tt.theirs, tt.key, cfg.Model, cfg.Origins["model"])
		}
	}
}
