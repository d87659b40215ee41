package app

import (
	"strings"
	"testing"

	"dure/internal/models/registry"
)

// What tools start has the key of no provider.
func TestCommandsHaveNoKeys(t *testing.T) {
	t.Parallel()
	env := []string{"KEEP=1", "MY_KEY=k"}
	for _, p := range registry.Providers() {
		for _, name := range p.Keys {
			env = append(env, name+"=k")
		}
	}
	a := newApp(t, `{"providers":{"mine":{"baseUrl":"https://models.example.org","keyEnv":"MY_KEY"}}}`, env...)
	for _, entry := range a.commandEnv() {
		if strings.HasSuffix(entry, "=k") {
			t.Error(entry)
		}
	}
}
