package app

import (
	"encoding/json"
	"testing"
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
