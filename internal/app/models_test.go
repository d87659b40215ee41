package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// newApp builds the program in an empty home, with nothing on this machine to
// serve models.
func newApp(t *testing.T, settings string, env ...string) *App {
	t.Helper()
	home := t.TempDir()
	a, err := New(Options{
		Environ: append([]string{"DURE_HOME=" + home}, env...), UserHome: home, Workdir: home, Version: "test", Flags: Flags{Settings: nowhere(settings)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// nowhere leads the servers that are looked for on this machine to a port that
// nobody listens at.
func nowhere(settings string) string {
	all := map[string]any{}
	if settings != "" {
		if err := json.Unmarshal([]byte(settings), &all); err != nil {
			panic(err)
		}
	}
	providers, _ := all["providers"].(map[string]any)
	if providers == nil {
		providers = map[string]any{}
	}
	for _, name := range []string{"ollama", "lmstudio", "llamacpp", "vllm", "litellm"} {
		if providers[name] == nil {
			providers[name] = map[string]any{"baseUrl": "http://127.0.0.1:9"}
		}
	}
	all["providers"] = providers
	data, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestTheModelNobodyNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, settings string
		env            []string
		profile, want  string
		problem        agent.ProblemCode
	}{
		{"no key", "", nil, "code", "", agent.ProblemNoKey},
		{"a key", "", []string{"ANTHROPIC_API_KEY=k"}, "code", "anthropic/claude-sonnet-4-6", ""},
		{"a token", "", []string{"ANTHROPIC_AUTH_TOKEN=k"}, "code", "anthropic/claude-sonnet-4-6", ""},
		{"another provider's key", "", []string{"DEEPSEEK_API_KEY=k"}, "code", "", agent.ProblemUsage},
		{"... whose model is named", `{"providers":{"deepseek":{"model":"deepseek-chat"}}}`, []string{"DEEPSEEK_API_KEY=k"}, "code", "deepseek/deepseek-chat", ""},
		{"the first key counts", "", []string{"ANTHROPIC_API_KEY=k", "GEMINI_API_KEY=k"}, "code", "anthropic/claude-sonnet-4-6", ""},
		{"settings", `{"model":"opus"}`, nil, "code", "opus", ""},
		{"settings of a profile", `{"model":"opus","profiles":{"chat":{"model":"haiku"}}}`, nil, "chat", "haiku", ""},
		{"... not of another one", `{"model":"opus","profiles":{"chat":{"model":"haiku"}}}`, nil, "code", "opus", ""},
		{"a base URL takes the usual name", "", []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:1"}, "code", "claude-sonnet-4-6", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := newApp(t, c.settings, c.env...).usual(c.profile)
			p := agent.ProblemOf(err)
			if got != c.want || (p == nil) != (c.problem == "") || p != nil && p.Code != c.problem {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestWhoServesAModel(t *testing.T) {
	t.Parallel()
	const own = `{"providers":{"here":{"type":"gemini","baseUrl":"https://here.example","headers":{"X-Key":"k"}}},"models":[{"id":"tiny","provider":"here","window":8000}]}`
	for _, c := range []struct {
		name, settings string
		env            []string
		id, provider   string
		problem        agent.ProblemCode
	}{
		{"opus", "", []string{"ANTHROPIC_API_KEY=k"}, "claude-opus-5-5", "anthropic", ""},
		{"openrouter/anthropic/claude-opus-5", "", []string{"OPENROUTER_API_KEY=k"}, "openrouter/anthropic/claude-opus-5", "openrouter", ""},
		{"openrouter/claude-opus-5", "", []string{"OPENROUTER_API_KEY=k"}, "openrouter/claude-opus-5", "openrouter", ""},
		{"tiny", own, nil, "tiny", "here", ""},
		{"here/large", own, nil, "here/large", "here", ""},
		{"ollama/qwen3:8b", "", nil, "ollama/qwen3:8b", "ollama", ""},
		{"anything", "", []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:1"}, "anything", "anthropic", ""},
		{"opsu", "", []string{"ANTHROPIC_API_KEY=k"}, "", "", agent.ProblemModel},
		{"opus", "", nil, "", "", agent.ProblemNoKey},
		{"opus", `{"ai":false}`, []string{"ANTHROPIC_API_KEY=k"}, "", "", agent.ProblemNoAI},
		{"opus", `{"network":{"mode":"internal"}}`, []string{"ANTHROPIC_API_KEY=k"}, "", "", agent.ProblemNetwork},
		{"opus", `{"network":{"mode":"off"}}`, []string{"ANTHROPIC_API_KEY=k"}, "", "", agent.ProblemNetwork},
		{"opus", `{"network":{"mode":"internal","allowHosts":["*.anthropic.com"]}}`, []string{"ANTHROPIC_API_KEY=k"}, "claude-opus-5-5", "anthropic", ""},
		{"opus", `{"network":{"mode":"off","allowHosts":["*.anthropic.com"]}}`, []string{"ANTHROPIC_API_KEY=k"}, "", "", agent.ProblemNetwork},
		{"ollama/x", `{"network":{"mode":"off"}}`, nil, "ollama/x", "ollama", ""},
		{"x", `{"models":[{"id":"x","provider":"gone"}]}`, nil, "", "", agent.ProblemSettings},
	} {
		t.Run(c.name+c.settings, func(t *testing.T) {
			m, err := newApp(t, c.settings, c.env...).model(c.name)
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
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/tags":
			fmt.Fprint(w, `{"models":[{"name":"qwen3:8b","model":"qwen3:8b"}]}`)
		case "/api/show":
			fmt.Fprint(w, `{"model_info":{"qwen3.context_length":40960},"capabilities":["completion","tools"]}`)
		case "/v1/models":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"qwen3:8b","object":"model"}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	a := newApp(t, fmt.Sprintf(`{"providers":{"ollama":{"baseUrl":%q}}}`, srv.URL))
	a.localWithin(t.Context(), time.Minute) // however busy the machine is
	if name, err := a.usual("code"); name != "ollama/qwen3:8b" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	m, err := a.model("qwen3:8b")
	if err != nil || m.Info().ID != "ollama/qwen3:8b" || m.Info().Window != 40960 {
		t.Errorf("%+v, %v", m, err)
	}
	list, err := client.Query[[]agent.ModelInfo](t.Context(), a.Client(), query.ListModels{Local: true})
	if err != nil || list[len(list)-1].ID != "qwen3:8b" || list[len(list)-1].Provider != "ollama" {
		t.Errorf("%v", err)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	a := newApp(t, "")
	if _, err := a.Login("openia", "k", false); agent.ProblemOf(err) == nil || !strings.Contains(err.Error(), "openia") {
		t.Errorf("%v", err)
	}
	if place, err := a.Login("openai", "sk-1", false); place != "file" || err != nil {
		t.Errorf("%s, %v", place, err)
	}
	p, _ := a.provider("openai")
	if key, from, err := a.key(p); key != "sk-1" || from != "file" || err != nil {
		t.Errorf("%q from %q, %v", key, from, err)
	}
	list, err := client.Query[[]query.ProviderInfo](t.Context(), a.Client(), query.ListProviders{})
	if err != nil || list[1].Name != "openai" || list[1].Key != "file" {
		t.Errorf("%+v, %v", list, err)
	}
	if err := a.Logout("openai"); err != nil {
		t.Error(err)
	}
	if key, _, _ := a.key(p); key != "" {
		t.Error("the key is still there")
	}
}

// The address of a provider is shown without the password in it.
func TestProvidersAreShownWithoutPasswords(t *testing.T) {
	t.Parallel()
	a := newApp(t, "", "OPENAI_BASE_URL=https://kim:hunter2@models.example.org/v1?key=hunter2", "OPENAI_API_KEY=k")
	list, err := a.listProviders()
	if text := fmt.Sprintf("%+v", list); err != nil || strings.Contains(text, "hunter2") || !strings.Contains(text, "https://models.example.org/v1") {
		t.Errorf("%s, %v", text, err)
	}
}
