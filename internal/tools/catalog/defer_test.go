package catalog

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"dure/agent"
)

// always is a tool that says that it is always listed.
type always struct{ brought }

func (always) AlwaysLoad() bool { return true }

func namesOf(specs []agent.Spec) string {
	var n []string
	for _, s := range specs {
		n = append(n, strings.TrimPrefix(s.Name, mcpPrefix))
	}
	return strings.Join(n, " ")
}

// Sets are listed from the smallest on as long as there is room, and whole; what says that
// it is always loaded is, and so is what was chosen. The tool that searches comes and goes
// with those that are named.
func TestDefer(t *testing.T) {
	c := New(Config{})
	for _, name := range []string{"bash__exec", Search} {
		if err := c.Register(fake{name: name}, BuiltIn, ""); err != nil {
			t.Fatal(err)
		}
	}
	about := strings.Repeat("x", 100)
	tool := func(name string) brought { return brought{name: name, about: about} }
	c.Set(MCP, "big", []agent.Tool{tool("mcp__big__a"), tool("mcp__big__b"), tool("mcp__big__c"), always{tool("mcp__big__z")}})
	c.Set(MCP, "small", []agent.Tool{tool("mcp__small__a")})
	c.Set(Plugin, "two", []agent.Tool{tool("two__a"), tool("two__b")})
	for _, tt := range []struct {
		d             Deferral
		choose        []string
		listed, named string
	}{
		{Deferral{}, nil, "bash__exec two__a two__b big__a big__b big__c big__z small__a", ""},
		{Deferral{On: true, Room: 10_000}, nil, "bash__exec two__a two__b big__a big__b big__c big__z small__a", ""},
		{Deferral{On: true, Room: 500}, nil, "bash__exec tool__search two__a two__b big__z small__a", "big__a big__b big__c"},
		{Deferral{On: true, Room: 200}, nil, "bash__exec tool__search big__z small__a", "two__a two__b big__a big__b big__c"},
		{Deferral{On: true}, nil, "bash__exec tool__search big__z", "two__a two__b big__a big__b big__c small__a"},
		{Deferral{On: true}, []string{"mcp__big__b", "mcp__gone__a"}, "bash__exec tool__search big__b big__z", "two__a two__b big__a big__c small__a"},
		{Deferral{}, nil, "bash__exec two__a two__b big__a big__b big__c big__z small__a", ""},
	} {
		c.Defer(tt.d)
		c.Choose(tt.choose...)
		s := c.Step(nil)
		if listed, named := namesOf(s.Specs()), namesOf(s.Named()); listed != tt.listed || named != tt.named {
			t.Errorf("%+v: listed %s, want %s; named %s, want %s", tt.d, listed, tt.listed, named, tt.named)
		}
		if c.Step(nil) != s {
			t.Errorf("%+v: a catalog is made anew though nothing changed", tt.d)
		}
		for _, spec := range s.Named() {
			if _, ok := s.Lookup(spec.Name); ok {
				t.Errorf("%+v: %s can be called", tt.d, spec.Name)
			}
		}
	}
	c.Defer(Deferral{On: true})
	if s := c.Step(func(s agent.Spec) bool { return s.Name != Search }); s.Named() != nil || len(s.Specs()) != 8 {
		t.Errorf("without the tool that searches %s are named", namesOf(s.Named()))
	}
}

// A call of what the model cannot call is told why, and what to do.
func TestRefuse(t *testing.T) {
	c := newCatalog(t, Claude)
	if err := c.Register(fake{name: Search}, BuiltIn, ""); err != nil {
		t.Fatal(err)
	}
	c.Defer(Deferral{On: true})
	s := c.Step(func(s agent.Spec) bool { return s.Name != "file-system__write" })
	for name, want := range map[string]string{
		"mcp__git__log":      `E_TOOL_NOT_IN_CATALOG: mcp__git__log is not loaded. Load it first, and call it in your next step: ToolSearch with the query "select:mcp__git__log".`,
		"Write":              `E_TOOL_NOT_IN_CATALOG: Unknown tool in this step: Write Use only the tools that are listed.`,
		"file-system__write": `E_TOOL_NOT_IN_CATALOG: Unknown tool in this step: file-system__write Use only the tools that are listed.`,
		"file_read":          `E_TOOL_NOT_FOUND: Unknown tool: file_read Its name is Read.`,
		"mcp__git__gone":     `E_TOOL_NOT_FOUND: Unknown tool: mcp__git__gone Use only the tools that are listed.`,
		"Edit":               `E_TOOL_NOT_FOUND: Unknown tool: Edit Use only the tools that are listed.`,
	} {
		if _, ok := s.Lookup(name); ok {
			t.Errorf("%s is found", name)
		}
		if e := s.Refuse(name); e.Error()+" "+e.Suggestion != want {
			t.Errorf("%s: %v %s, want %s", name, e, e.Suggestion, want)
		}
	}
	if e := s.Refuse(strings.Repeat("x", 1000)); len(e.Message) > 2*maxName {
		t.Errorf("a long name is said in %d bytes", len(e.Message))
	}
}

// BenchmarkStep makes the catalog of a step of 200 tools of ten servers beside forty.
func BenchmarkStep(b *testing.B) {
	for b.Loop() {
		c := New(Config{})
		for i := range 40 {
			if err := c.Register(brought{name: fmt.Sprintf("own__t%d", i)}, BuiltIn, ""); err != nil {
				b.Fatal(err)
			}
		}
		if err := c.Register(fake{name: Search}, BuiltIn, ""); err != nil {
			b.Fatal(err)
		}
		c.Defer(Deferral{On: true, Room: 60_000})
		for i := range 10 {
			tools := make([]agent.Tool, 20)
			for j := range tools {
				tools[j] = brought{fmt.Sprintf("mcp__s%d__t%d", i, j), strings.Repeat("what it does ", 40), `{"type":"object","properties":{"a":{"type":"string"}}}`}
			}
			c.Set(MCP, fmt.Sprint(i), tools)
		}
		if s := c.Step(nil); cmp.Or(len(s.Named()), len(s.Specs())) == 0 {
			b.Fatal("no tools")
		}
	}
}
