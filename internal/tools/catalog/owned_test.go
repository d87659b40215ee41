package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dure/agent"
)

// brought is a tool of somebody else.
type brought struct {
	name, about, input string
}

func (b brought) Spec() agent.Spec {
	return agent.Spec{Name: b.name, Description: b.about, Input: json.RawMessage(b.input)}
}

func (brought) Plan(context.Context, agent.ToolContext, agent.Call) (agent.Effects, error) {
	return agent.Effects{}, nil
}

func (brought) Run(context.Context, agent.ToolContext, agent.Call) (agent.Result, error) {
	return agent.OK(""), nil
}

// checking is one that can be probed.
type checking struct{ brought }

func (checking) Mark(context.Context, agent.ToolContext, agent.Call) (json.RawMessage, error) {
	return nil, nil
}

func (checking) Probe(context.Context, agent.ToolContext, agent.Call, json.RawMessage) (agent.Probe, agent.Result, error) {
	return agent.ProbeUnknown, agent.Result{}, nil
}

func bring(names ...string) (tools []agent.Tool) {
	for _, n := range names {
		tools = append(tools, brought{name: n})
	}
	return tools
}

// Tools come and go between steps, all those of an owner at once, and nothing of what
// others have changes.
func TestSet(t *testing.T) {
	c := newCatalog(t, Claude)
	for _, step := range []struct {
		from  string
		tools []string
		want  string
	}{
		{"a", []string{"mcp__a__two", "mcp__a__one"}, "mcp__a__one mcp__a__two mcp__git__log"},
		{"b", []string{"mcp__b__one"}, "mcp__a__one mcp__a__two mcp__b__one mcp__git__log"},
		{"a", []string{"mcp__a__three", "mcp__a__one"}, "mcp__a__one mcp__a__three mcp__b__one mcp__git__log"},
		{"a", nil, "mcp__b__one mcp__git__log"},
		{"nobody", nil, "mcp__b__one mcp__git__log"},
	} {
		before := names(c.Step(nil))
		s := c.Step(nil)
		if refused := c.Set(MCP, step.from, bring(step.tools...)); refused != nil {
			t.Errorf("%s: refused %v", step.from, refused)
		}
		if got, want := names(c.Step(nil)), "bash__exec file-system__read file-system__write weather__now "+step.want; got != want {
			t.Errorf("%s: tools %s, want %s", step.from, got, want)
		}
		if names(s) != before {
			t.Errorf("%s: a step that has begun changed to %s", step.from, names(s))
		}
	}
}

// What cannot be put before a model is refused, and the rest of its owner's tools is not.
func TestSetRefuses(t *testing.T) {
	c := New(Config{})
	many := make([]agent.Tool, maxOwned+1)
	for i := range many {
		many[i] = brought{name: fmt.Sprintf("mcp__many__t%d", i)}
	}
	for _, tt := range []struct {
		source Source
		tools  []agent.Tool
		want   string
	}{
		{MCP, bring("mcp__a__b", "plain__name"), "names that begin with mcp__"},
		{Plugin, bring("mcp__a__b"), "names that begin with mcp__"},
		{BuiltIn, bring("a__b"), "nobody else brings"},
		{"odd", bring("a__b"), "nobody else brings"},
		{Plugin, bring("noexport"), "is not resource__export"},
		{Plugin, bring("a__b", "a__b"), "another one with its name"},
		{MCP, many, "more than 1024"},
		{Plugin, []agent.Tool{brought{name: "a__b", input: `{"type":`}}, "cannot be read"},
		{Plugin, []agent.Tool{brought{name: "a__b", input: `[]`}}, "cannot be read"},
		{Plugin, []agent.Tool{brought{name: "a__b", input: `{"type":"string"}`}}, "not that of an object"},
		{Plugin, []agent.Tool{brought{name: "a__b", input: `null`}}, "not that of an object"},
		{Plugin, []agent.Tool{brought{name: "a__b", about: strings.Repeat("x", maxDescription+1)}}, "its description has"},
		{Plugin, []agent.Tool{brought{name: "a__b", input: `{"type":"object","title":"` + strings.Repeat("x", maxSchema) + `"}`}}, "its description has"},
	} {
		refused := c.Set(tt.source, "x", tt.tools)
		if len(refused) != 1 || !strings.Contains(refused[0].Err.Error(), tt.want) || len(c.List()) != len(tt.tools)-1 {
			t.Errorf("%s, %d tools: refused %v, want %s; %d are there", tt.source, len(tt.tools), refused, tt.want, len(c.List()))
		}
		c.Set(tt.source, "x", nil)
	}
}

// A source that is trusted less never takes a name from one that is trusted more, and who
// comes first makes no difference.
func TestNamesThatCollide(t *testing.T) {
	sets := []func(c *Catalog){
		func(c *Catalog) {
			if err := c.Register(fake{name: "file-system__read"}, BuiltIn, ""); err != nil {
				t.Error(err)
			}
		},
		func(c *Catalog) { c.Set(Plugin, "the one", bring("file-system__read", "weather__now")) },
		func(c *Catalog) { c.Set(Plugin, "two__parts", bring("weather__now", "bash__exec")) },
		func(c *Catalog) { c.Set(Extension, "", bring("weather__now")) },
		func(c *Catalog) { c.Set(MCP, "a.b", bring("mcp__a_b__get", "mcp__a_b__put")) },
		func(c *Catalog) {
			c.Set(MCP, "a_b", []agent.Tool{checking{brought{name: "mcp__a_b__get"}}, brought{name: "mcp__a_b__" + strings.Repeat("x", 54)}})
		},
		func(c *Catalog) { c.Set(MCP, "a-b", bring("mcp__a_b__"+strings.Repeat("x", 54))) },
	}
	const want = "file-system__read the-one-file-system__read two_parts-bash__exec two_parts-weather__now weather__now weather__now-324a18a6" +
		" mcp__a_b__get mcp__a_b__get-7b491f65 mcp__a_b__put"
	for range 20 {
		order := slices.Clone(sets)
		for i := range order {
			j := (i*7 + len(order)) % len(order)
			order[i], order[j] = order[j], order[i]
		}
		sets = order
		c := New(Config{})
		for _, set := range order {
			set(c)
		}
		s := c.Step(nil)
		if got := names(s); !strings.HasPrefix(got, want) {
			t.Fatalf("tools %s, want %s", got, want)
		}
		probed := 0
		for _, e := range c.List() {
			tool, ok := s.Lookup(e.Spec.Name)
			if !ok || tool.Spec().Name != e.Spec.Name {
				t.Fatalf("%s is not found", e.Spec.Name)
			}
			if _, can := e.Tool.(agent.Checker); can {
				if _, ok := tool.(agent.Checker); !ok {
					t.Errorf("%s cannot be probed any more", e.Spec.Name)
				}
				probed++
			}
		}
		if probed != 1 {
			t.Errorf("%d tools can be probed", probed)
		}
	}
}

// What the catalog does not take is kept, with whose it is and why, until its owner brings
// others: nobody's tool goes missing unseen.
func TestRefusedIsKept(t *testing.T) {
	c := New(Config{})
	if err := c.Register(brought{name: "a__b"}, BuiltIn, ""); err != nil {
		t.Fatal(err)
	}
	c.Set(MCP, "s", bring("mcp__s__a", "plain__name"))
	c.Set(Plugin, "p", bring("a__b", "Bash"))
	told := func() (all []string) {
		for _, r := range c.Refused() {
			all = append(all, fmt.Sprintf("%s %s %s: %v", r.Source, r.From, r.Name, r.Err))
		}
		return all
	}
	want := []string{
		`plugin p Bash: tool name "Bash" is not resource__export`,
		`mcp s plain__name: names that begin with mcp__ are those of MCP servers, and theirs do`,
	}
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
	c.Set(MCP, "s", bring("mcp__s__a"))
	if got := told(); !slices.Equal(got, want[:1]) {
		t.Errorf("mended, and refused %q", got)
	}

	// Every name that it could have is another's.
	taken := []string{"a__b", "x-a__b", (&Entry{Own: "a__b", Source: Extension, From: "x"}).marked()}
	c = New(Config{})
	for _, name := range taken {
		if err := c.Register(brought{name: name}, BuiltIn, ""); err != nil {
			t.Fatal(err)
		}
	}
	refused := c.Set(Extension, "x", bring("a__b"))
	if got := told(); len(refused) != 1 || len(got) != 1 || got[0] != "extension x a__b: all names for it are taken" {
		t.Errorf("without a name: refused %v, kept %q", refused, got)
	}
	c.Unregister(taken[1])
	if got := told(); got != nil {
		t.Errorf("with a name: %q", got)
	}
}
