package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/internal/app/config"
)

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
			a, err := New(Options{
				Environ: append(strings.Fields(c.env), "DURE_HOME="+home), UserHome: home, Workdir: work, Version: "test",
			})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			cfg := a.Config()
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
