package catalog

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent"
)

// fake is a tool that is only described.
type fake struct {
	name, group string
	enabled     *bool
}

func (f fake) Spec() agent.Spec {
	return agent.Spec{Name: f.name, Group: f.group, Input: json.RawMessage(`{"type":"object"}`)}
}

func (fake) Plan(context.Context, agent.ToolContext, agent.Call) (agent.Effects, error) {
	return agent.Effects{}, nil
}

func (fake) Run(context.Context, agent.ToolContext, agent.Call) (agent.Result, error) {
	return agent.OK(""), nil
}

func (f fake) Enabled() bool { return f.enabled == nil || *f.enabled }

// plain hides Enabled.
type plain struct{ agent.Tool }

// asks has a schema for people.
type asks struct{ plain }

func (asks) Spec() agent.Spec {
	return agent.Spec{Name: "user__ask", Input: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`)}
}

func (asks) AnswerSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"a":{"type":"string"}},"required":["q"],"additionalProperties":false}`)
}

func newCatalog(t *testing.T, d Dialect) *Catalog {
	c := New(Config{Dialect: d, Now: func() time.Time { return time.Unix(1, 0) }})
	for _, tt := range []struct {
		name, group string
		source      Source
	}{
		{"mcp__git__log", "custom", MCP},
		{"file-system__read", "files", BuiltIn},
		{"weather__now", "web", Plugin},
		{"bash__exec", "system", BuiltIn},
		{"file-system__write", "files", BuiltIn},
	} {
		if err := c.Register(plain{fake{name: tt.name, group: tt.group}}, tt.source, ""); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func names(s *Step) string {
	var n []string
	for _, spec := range s.Specs() {
		n = append(n, spec.Name)
	}
	return strings.Join(n, " ")
}

func TestRegistry(t *testing.T) {
	c := newCatalog(t, Claude)
	for _, tt := range []struct {
		name   string
		source Source
		want   string
	}{
		{"bash__exec", BuiltIn, "tool already registered: bash__exec"},
		{"noexport", BuiltIn, `registering a tool: tool name "noexport" is not resource__export`},
		{"mcp__a__b", Plugin, "registering mcp__a__b: names that begin with mcp__ are those of MCP servers, and theirs do"},
		{"a__b", MCP, "registering a__b: names that begin with mcp__ are those of MCP servers, and theirs do"},
		{"a__b", "somewhere", `registering a__b: unknown source "somewhere"`},
	} {
		if err := c.Register(fake{name: tt.name}, tt.source, ""); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	e, ok := c.Get("weather__now")
	e.Tool = nil
	want := Entry{Spec: fake{name: "weather__now", group: "web"}.Spec(), Own: "weather__now", Source: Plugin, Registered: time.Unix(1, 0)}
	if !ok || !reflect.DeepEqual(e, want) {
		t.Errorf("entry %+v, want %+v", e, want)
	}
	if got := len(c.ByGroup("files")); got != 2 {
		t.Errorf("%d tools in group files", got)
	}
	for word, want := range map[string]int{"group:files": 2, "group:none": 0, "bash__exec": 1, "bash__none": 0, "": 0} {
		if got := len(c.Meant(word)); got != want {
			t.Errorf("%q means %d tools, want %d", word, got, want)
		}
	}
	if !c.Unregister("weather__now") || c.Unregister("weather__now") || c.Has("weather__now") || len(c.List()) != 4 {
		t.Error("unregistering")
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"bash__exec": true, "file-system__multi-edit": true, "a__b": true, "mcp__server__tool": true, "mcp__s__t__u": true,
		"mcp__s__" + strings.Repeat("t", 56): true,
		"":                                   false, "bash": false, "__b": false, "a__": false, "a__b__c": false, "a.b__c": false, "a__b c": false, "a__도구": false,
		"mcp__server": false, "mcp____tool": false, "a__" + strings.Repeat("b", 62): false, "a__b\n": false,
	} {
		if err := checkName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCanonical(t *testing.T) {
	c := newCatalog(t, Dure)
	for name, want := range map[string]string{
		"bash__exec": "bash__exec", "Bash": "bash__exec", "bash": "bash__exec", "process": "bash__exec",
		"Read": "file-system__read", "file_read": "file-system__read", "file.read": "file-system__read",
		"MultiEdit": "file-system__multi-edit", "file-system__multi-edit": "file-system__multi-edit",
		"AskUserQuestion": "user__ask", "script_create": "file-system__write", "list_directory": "file-system__list",
		"mcp__git__log": "mcp__git__log", "weather__now": "weather__now", "group:files": "group:files",
		"": "", "nothing": "", "mcp__git__gone": "", "group:": "",
	} {
		got, ok := c.Canonical(name)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, ok, want)
		}
	}
	for spelling, canonical := range aliases {
		if folding.Replace(strings.ToLower(spelling)) != spelling {
			t.Errorf("alias %q can never be found", spelling)
		}
		if checkName(canonical) != nil {
			t.Errorf("alias %q means %q", spelling, canonical)
		}
	}
}

func TestStep(t *testing.T) {
	c := newCatalog(t, Claude)
	s := c.Step(nil)
	if got, want := names(s), "bash__exec file-system__read file-system__write weather__now mcp__git__log"; got != want {
		t.Errorf("tools %s, want %s", got, want)
	}
	if want := map[string]string{"bash__exec": "Bash", "file-system__read": "Read", "file-system__write": "Write"}; !maps.Equal(s.Names(), want) {
		t.Errorf("names %v", s.Names())
	}
	if c.Step(nil) != s {
		t.Error("a catalog is made anew though nothing changed")
	}
	for name, want := range map[string]string{
		"Bash": "bash__exec", "bash__exec": "bash__exec", "mcp__git__log": "mcp__git__log",
		"bash": "", "Edit": "", "nothing": "",
	} {
		tool, ok := s.Lookup(name)
		if ok != (want != "") || ok && tool.Spec().Name != want {
			t.Errorf("%s: %v", name, ok)
		}
	}

	only := c.Step(func(s agent.Spec) bool { return s.Group == "files" })
	if got, want := names(only), "file-system__read file-system__write"; got != want {
		t.Errorf("filtered: %s, want %s", got, want)
	}
	c.Unregister("bash__exec")
	if _, ok := s.Lookup("Bash"); !ok {
		t.Error("a step lost a tool that was unregistered later")
	}
	if _, ok := c.Step(nil).Lookup("Bash"); ok {
		t.Error("the next step has it still")
	}
	if got := len(New(Config{Dialect: Dure}).Step(nil).Names()); got != 0 {
		t.Errorf("%d names in the canonical dialect", got)
	}
}

func TestConditionalTool(t *testing.T) {
	c := New(Config{})
	on := false
	if err := c.Register(fake{name: "git__log", enabled: &on}, BuiltIn, ""); err != nil {
		t.Fatal(err)
	}
	if got := names(c.Step(nil)); got != "" {
		t.Errorf("off: %s", got)
	}
	on = true
	if got := names(c.Step(nil)); got != "git__log" {
		t.Errorf("on: %s", got)
	}
	wanted := func(s agent.Spec) bool { return s.Name == "git__log" }
	if s := c.Step(wanted); c.Step(nil) != s || c.Step(wanted) != s {
		t.Error("a catalog is made anew though the same tools are enabled and wanted")
	}
	if got := names(c.Step(func(agent.Spec) bool { return false })); got != "" {
		t.Errorf("with none wanted: %s", got)
	}
	if got := names(c.Step(wanted)); got != "git__log" {
		t.Errorf("wanted again: %s", got)
	}
	on = false
	if got := names(c.Step(wanted)); got != "" {
		t.Errorf("off again: %s", got)
	}
}

// What only a person may give is taken from what anybody else gives.
func TestStepCheckAnswers(t *testing.T) {
	c := New(Config{})
	if err := c.Register(asks{}, BuiltIn, ""); err != nil {
		t.Fatal(err)
	}
	s := c.Step(nil)
	for _, tt := range []struct {
		input    string
		byPerson bool
		want     string
	}{
		{`{"q":"1","a":"yes"}`, false, `{"q":"1"}`},
		{`{"q":"1","a":"yes"}`, true, `{"q":"1","a":"yes"}`},
		{`{"q":"1"}`, true, `{"q":"1"}`},
		{`{"q":"1","b":"yes"}`, true, ""},
	} {
		got, bad := s.Check(asks{}.Spec(), json.RawMessage(tt.input), tt.byPerson)
		if string(got) != tt.want || (bad == nil) != (tt.want != "") {
			t.Errorf("%s: %s, %v", tt.input, got, bad)
		}
	}
}

func TestDialectsPresentEachNameOnce(t *testing.T) {
	seen := map[string]string{}
	for d, table := range dialects {
		for canonical, shown := range table {
			if err := checkName(canonical); err != nil {
				t.Error(err)
			}
			if other, ok := seen[shown]; ok && other != canonical {
				t.Errorf("%s: %s presents %s and %s", d, shown, canonical, other)
			}
			seen[shown] = canonical
		}
	}
	if !slices.Contains(slices.Collect(maps.Keys(dialects)), Claude) {
		t.Error("no dialect claude")
	}
}
