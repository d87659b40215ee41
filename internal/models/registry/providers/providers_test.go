package providers

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/hosts"
	"dure/internal/base/keys"
	"dure/internal/models/registry"
)

// named is a model that only has a name.
type named struct{ info agent.ModelInfo }

func (n named) Info() agent.ModelInfo { return n.info }

func (named) Stream(context.Context, agent.Request) iter.Seq2[agent.Delta, error] { return nil }

// newModels has the usual settings, changed, with nothing on this machine to serve models.
func newModels(t *testing.T, change func(*Config), env ...string) *Extension {
	t.Helper()
	c := Config{
		Models: registry.New(nil), Model: "claude-sonnet-4-6", Profile: "code", Reach: hosts.Reach{Mode: "external"},
		Work: func(string) string { return "" }, Keys: keys.Store{Path: filepath.Join(t.TempDir(), "keys.json")},
		Getenv: func(name string) string {
			for _, e := range env {
				if v, ok := strings.CutPrefix(e, name+"="); ok {
					return v
				}
			}
			return ""
		},
		Dialects: map[string]func(Endpoint) agent.Model{"chat": func(e Endpoint) agent.Model { return named{e.Info} }},
		Servers: func(context.Context, []string) iter.Seq2[string, []agent.ModelInfo] {
			return func(func(string, []agent.ModelInfo) bool) {}
		},
	}
	c.Origin = func(string) Origin { return Origin{Where: "built-in", BuiltIn: true} }
	if change != nil {
		change(&c)
	}
	return New(c)
}

// chosen has a model chosen by settings.
func chosen(model string) func(*Config) {
	return func(c *Config) { c.Model, c.Origin = model, func(string) Origin { return Origin{Where: "user"} } }
}

func TestTheModelNobodyNamed(t *testing.T) {
	t.Parallel()
	own := func(c *Config) {
		chosen("opus")(c)
		c.Work = func(profile string) string { return map[string]string{"chat": "haiku"}[profile] }
	}
	for _, c := range []struct {
		name          string
		change        func(*Config)
		env           string
		profile, want string
		problem       agent.ProblemCode
	}{
		{"no key", nil, "", "code", "", agent.ProblemNoKey},
		{"a key", nil, "ANTHROPIC_API_KEY=k", "code", "anthropic/claude-sonnet-4-6", ""},
		{"a token", func(c *Config) { c.AuthToken = "k" }, "", "code", "anthropic/claude-sonnet-4-6", ""},
		{"another provider's key", nil, "DEEPSEEK_API_KEY=k", "code", "", agent.ProblemUsage},
		{"... whose model is named", func(c *Config) { c.Providers = map[string]registry.Setting{"deepseek": {Model: "deepseek-chat"}} }, "DEEPSEEK_API_KEY=k", "code", "deepseek/deepseek-chat", ""},
		{"the first key counts", nil, "ANTHROPIC_API_KEY=k GEMINI_API_KEY=k", "code", "anthropic/claude-sonnet-4-6", ""},
		{"settings", chosen("opus"), "", "code", "opus", ""},
		{"settings of a profile", own, "", "chat", "haiku", ""},
		{"... not of another one", own, "", "code", "opus", ""},
		{"a base URL takes the usual name", func(c *Config) { c.BaseURL = "http://127.0.0.1:1" }, "", "code", "claude-sonnet-4-6", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := newModels(t, c.change, strings.Fields(c.env)...).Usual(c.profile)
			p := agent.ProblemOf(err)
			if got != c.want || (p == nil) != (c.problem == "") || p != nil && p.Code != c.problem {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestWhoServesAModel(t *testing.T) {
	t.Parallel()
	own := func(c *Config) {
		c.Providers = map[string]registry.Setting{"here": {Type: "gemini", BaseURL: "https://here.example", Headers: map[string]string{"X-Key": "k"}}}
		c.Models = registry.New([]agent.ModelInfo{{ID: "tiny", Provider: "here", Window: 8000}})
	}
	reach := func(mode string, also ...string) func(*Config) {
		return func(c *Config) { c.Reach = hosts.Reach{Mode: mode, Also: also} }
	}
	const key = "ANTHROPIC_API_KEY=k"
	for _, c := range []struct {
		name, change string
		by           func(*Config)
		env          string
		id, provider string
		problem      agent.ProblemCode
	}{
		{"opus", "", nil, key, "claude-opus-5-5", "anthropic", ""},
		{"openrouter/anthropic/claude-opus-5", "", nil, "OPENROUTER_API_KEY=k", "openrouter/anthropic/claude-opus-5", "openrouter", ""},
		{"openrouter/claude-opus-5", "", nil, "OPENROUTER_API_KEY=k", "openrouter/claude-opus-5", "openrouter", ""},
		{"tiny", "own", own, "", "tiny", "here", ""},
		{"here/large", "own", own, "", "here/large", "here", ""},
		{"ollama/qwen3:8b", "", nil, "", "ollama/qwen3:8b", "ollama", ""},
		{"anything", "base URL", func(c *Config) { c.BaseURL = "http://127.0.0.1:1" }, "", "anything", "anthropic", ""},
		{"opsu", "", nil, key, "", "", agent.ProblemModel},
		{"opus", "no key", nil, "", "", "", agent.ProblemNoKey},
		{"opus", "no AI", func(c *Config) { c.NoAI = true }, key, "", "", agent.ProblemNoAI},
		{"opus", "internal", reach("internal"), key, "", "", agent.ProblemNetwork},
		{"opus", "off", reach("off"), key, "", "", agent.ProblemNetwork},
		{"opus", "internal with a host", reach("internal", "*.anthropic.com"), key, "claude-opus-5-5", "anthropic", ""},
		{"opus", "off with a host", reach("off", "*.anthropic.com"), key, "", "", agent.ProblemNetwork},
		{"ollama/x", "off", reach("off"), "", "ollama/x", "ollama", ""},
		{"x", "gone", func(c *Config) { c.Models = registry.New([]agent.ModelInfo{{ID: "x", Provider: "gone"}}) }, "", "", "", agent.ProblemSettings},
	} {
		t.Run(c.name+c.change, func(t *testing.T) {
			m, err := newModels(t, c.by, c.env).Model(c.name)
			p := agent.ProblemOf(err)
			if (p == nil) != (c.problem == "") || p != nil && p.Code != c.problem {
				t.Fatalf("%v", err)
			}
			if m != nil && (m.Info().ID != c.id || m.Info().Provider != c.provider) {
				t.Errorf("%+v", m.Info())
			}
		})
	}
}

// A server on this machine is found, and its models can be asked without a key.
func TestModelsOfThisMachine(t *testing.T) {
	t.Parallel()
	const base = "http://127.0.0.1:9"
	x := newModels(t, func(c *Config) {
		c.Providers = map[string]registry.Setting{"ollama": {BaseURL: base}}
		c.Servers = func(context.Context, []string) iter.Seq2[string, []agent.ModelInfo] {
			return func(yield func(string, []agent.ModelInfo) bool) {
				yield(base, []agent.ModelInfo{{ID: "qwen3:8b", Window: 40960}})
			}
		}
	})
	if name, err := x.Usual("code"); name != "ollama/qwen3:8b" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	m, err := x.Model("qwen3:8b")
	if err != nil || m.Info().ID != "ollama/qwen3:8b" || m.Info().Window != 40960 {
		t.Errorf("%+v, %v", m, err)
	}
	list, err := x.models(t.Context(), query.ListModels{Local: true})
	if err != nil || list[len(list)-1].ID != "qwen3:8b" || list[len(list)-1].Provider != "ollama" {
		t.Errorf("%v", err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	x := newModels(t, nil)
	change := func(name, key string) (query.KeyChange, error) {
		return x.changeKey(t.Context(), query.ChangeKey{Provider: name, Key: key})
	}
	if _, err := change("openia", "k"); agent.ProblemOf(err) == nil || !strings.Contains(err.Error(), "openia") {
		t.Errorf("%v", err)
	}
	if r, err := change("openai", "sk-1"); r.Place != "file" || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	p, _ := x.Find("openai")
	if key, from, err := x.key(p); key != "sk-1" || from != "file" || err != nil {
		t.Errorf("%q from %q, %v", key, from, err)
	}
	list, err := x.list(t.Context(), query.ListProviders{})
	if err != nil || list[1].Name != "openai" || list[1].Key != "file" {
		t.Errorf("%+v, %v", list, err)
	}
	for _, removed := range []bool{true, false} {
		if r, err := change("openai", ""); r.Removed != removed || err != nil {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if key, _, _ := x.key(p); key != "" {
		t.Error("the key is still there")
	}
}

// The address of a provider is shown without the password in it.
func TestProvidersAreShownWithoutPasswords(t *testing.T) {
	t.Parallel()
	x := newModels(t, nil, "OPENAI_BASE_URL=https://kim:hunter2@models.example.org/v1?key=hunter2", "OPENAI_API_KEY=k")
	list, err := x.list(t.Context(), query.ListProviders{})
	if text := fmt.Sprintf("%+v", list); err != nil || strings.Contains(text, "hunter2") || !strings.Contains(text, "https://models.example.org/v1") {
		t.Errorf("%s, %v", text, err)
	}
}
