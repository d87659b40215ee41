package config

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every key has a place in the page about settings: itself, or the object that it
// stands in with its last part. Its row says who may set it.
func TestKeysAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `.*$").FindAllString(string(data), -1)
	rows = slices.DeleteFunc(rows, func(row string) bool { return strings.Count(row, " | ") != 2 }) // key, meaning, who
	for _, k := range Keys() {
		path := strings.ReplaceAll(k.Path, "*", "NAME")
		at := strings.LastIndexByte(path, '.')
		i := slices.IndexFunc(rows, func(row string) bool {
			first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			return strings.Contains(first, "`"+path+"`") ||
				at > 0 && strings.Contains(first, "`"+path[:at]+"`") && strings.Contains(row, "`"+path[at+1:]+"`")
		})
		if i < 0 {
			t.Errorf("docs/settings.md does not say what %s is", path)
			continue
		}
		cells := strings.Split(strings.Trim(rows[i], "| "), " | ")
		if who := cells[len(cells)-1]; !strings.Contains(who, string(k.Who)) {
			t.Errorf("docs/settings.md: %s may be set by %s, and not by %s", path, k.Who, who)
		}
	}
}

// Whatever a file may say is taken: by its key, or by the object that it stands in.
func TestKeysAreTaken(t *testing.T) {
	for _, k := range Keys() {
		if k.Means[0] == "" || k.Means[1] == "" {
			t.Errorf("%s means nothing", k.Path)
		}
		group, _, _ := strings.Cut(k.Path, ".")
		if k.take == nil && wholes[group] == nil && k.Path != "$schema" {
			t.Errorf("nobody takes %s", k.Path)
		}
	}
}

// What a repository may only tighten has a rule for what is looser: without one it could loosen it.
func TestRepositoriesOnlyTighten(t *testing.T) {
	l := new(loader)
	for _, d := range slices.Concat(l.modelKeys(), l.talkKeys(), l.accessKeys(), l.extendKeys(), l.otherKeys()) {
		if d.key().Who != TighterOnly {
			continue
		}
		if f := reflect.ValueOf(d).Elem().FieldByName("looser"); f.IsValid() && f.IsNil() {
			t.Errorf("%s has no rule for what is looser", d.key().Path)
		}
	}
}

// A key that is null says nothing, whoever may set it.
func TestNull(t *testing.T) {
	skipWindows(t)
	c, err := Load(machine{files: map[string]string{projectFile: `{"hooks": null, "mcpServers": null, "baseUrl": null, "telemetry": null, "sandbox": {"write": null, "limits": null}, "allowManagedHooksOnly": null}`}}.sources())
	if err != nil || len(c.Inert) > 0 || len(c.Notes) > 0 || len(c.Hooks.Sources)+len(c.MCP.Sources) > 0 {
		t.Errorf("%v; inert %v, notes %v", err, c.Inert, c.Notes)
	}
}
