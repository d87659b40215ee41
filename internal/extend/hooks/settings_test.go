package hooks

import (
	"encoding/json"
	"strings"
	"testing"
)

// The administrator's hooks run whatever others have switched off, unless he has himself;
// where only his run, so do those that he has switched on elsewhere.
func TestHookSources(t *testing.T) {
	t.Parallel()
	raw := func(layer string) Defined {
		return Defined{Source: Source{Layer: layer}, JSON: json.RawMessage(`{"Stop": "true"}`), Managed: layer == "managed"}
	}
	more := []Defined{{Source: Source{Layer: "plugin", Name: "forced"}, Managed: true}, {Source: Source{Layer: "plugin", Name: "own"}}}
	for _, tt := range []struct {
		cfg  Settings
		want string
	}{
		{Settings{}, "managed, user, project, plugin forced, plugin own"},
		{Settings{Off: true}, "managed, plugin forced"},
		{Settings{ManagedOnly: true}, "managed, plugin forced"},
		{Settings{ManagedOff: true}, ""},
	} {
		tt.cfg.Sources = []Defined{raw("managed"), raw("user"), raw("project")}
		var got []string
		for _, s := range tt.cfg.On(more...) {
			got = append(got, s.String())
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.cfg, got, tt.want)
		}
	}
}
