package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"dure/internal/app/config"
	"dure/internal/kernel/session"
)

// Lanes are bounded by the user, part for part; a repository bounds none, and agents are
// not bounded so.
func TestLanes(t *testing.T) {
	load := func(file, project string) (config.Config, error) {
		return config.Load(config.Sources{
			UserHome: "/home/u", Workdir: "/repo", OS: "linux", Getenv: func(string) string { return "" }, Settings: file,
			ReadFile: func(path string) ([]byte, error) {
				if path == "/repo/.dure/settings.json" && project != "" {
					return []byte(project), nil
				}
				return nil, fs.ErrNotExist
			},
		})
	}
	c, err := load(`{"lanes":{"cron":{"turns":5},"bulk":{"turns":1,"queue":3}}}`, "")
	want := map[string]session.LaneConfig{"cron": {Turns: 5}, "bulk": {Turns: 1, Queue: 3}}
	if err != nil || !maps.Equal(c.Lanes, want) {
		t.Errorf("%+v, %v", c.Lanes, err)
	}
	if c, err = load("", `{"lanes":{"cron":{"turns":5}}}`); err != nil || len(c.Lanes) != 0 || !slices.ContainsFunc(c.Inert, func(i config.Inert) bool { return strings.Contains(fmt.Sprint(i), "lanes") }) {
		t.Errorf("of a repository: %+v, %+v, %v", c.Lanes, c.Inert, err)
	}
	var many []string
	for i := range 33 {
		many = append(many, fmt.Sprintf(`"l%d":{"turns":1}`, i))
	}
	for _, bad := range []string{
		`"cron":{"turns":0}`, `"cron":{"turns":1001}`, `"cron":{"queue":-1}`, `"subagent":{"turns":1}`, `"a\nb":{"turns":1}`, strings.Join(many, ","),
	} {
		if _, err := load(`{"lanes":{`+bad+`}}`, ""); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "lanes.") {
			t.Errorf("%.40s: %v", bad, err)
		}
	}
}
