package offer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/tools/catalog"
	"dure/internal/tools/kit"
)

// rules withhold the tools that they name, by the layer that says so.
type rules map[string]string

func (rules) Look() {}

func (r rules) Withholds(s agent.Spec) (by agent.Opinion, ok bool) {
	layer, ok := r[s.Name]
	return agent.Opinion{Source: layer, Rule: s.Name, Reason: "it is denied"}, ok
}

func (r rules) Switch(name string, on bool) error {
	if delete(r, name); !on {
		r[name] = "session"
	}
	return nil
}

// record is a log that is only written.
type record struct {
	plug.Log
	bodies []agent.Body
}

func (r *record) Record(list ...agent.Body) error {
	r.bodies = append(r.bodies, list...)
	return nil
}

func newCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	cat := catalog.New(catalog.Config{})
	for _, s := range []agent.Spec{
		{Name: "file-system__read", Group: "files", Class: agent.Read},
		{Name: "file-system__write", Group: "files"},
		{Name: "bash__exec", Group: "system"},
		{Name: "todo__write", Group: "planning"},
		{Name: catalog.Search, Group: "planning", Class: agent.Read},
		{Name: agent.FormTool, Group: "planning"},
	} {
		s.Input = json.RawMessage(`{"type":"object"}`)
		if err := cat.Register(kit.Tool{About: s}, catalog.BuiltIn, ""); err != nil {
			t.Fatal(err)
		}
	}
	theirs := agent.Spec{Name: "mcp__s__t", Description: strings.Repeat("long ", 100), Input: json.RawMessage(`{"type":"object"}`)}
	if err := cat.Register(kit.Tool{About: theirs}, catalog.MCP, "s"); err != nil {
		t.Fatal(err)
	}
	return cat
}

func newExtension(t *testing.T, cat *catalog.Catalog, p Policy, only []string) *Extension {
	t.Helper()
	c := Config{
		Search: 10, Window: func(string) int { return 1000 },
		Work:  func(string) (agent.Profile, error) { return agent.Profile{Name: "code"}, nil },
		Begin: func(string, agent.Profile) (*catalog.Catalog, Policy, error) { return cat, p, nil },
		Lent:  func(agent.Profile) (*catalog.Catalog, error) { return cat, nil },
	}
	if only != nil {
		c.Only = &only
	}
	return New(c)
}

func names(specs []agent.Spec) string {
	var all []string
	for _, s := range specs {
		all = append(all, s.Name)
	}
	return strings.Join(all, " ")
}

// A kind of work has the tools that it names, in any spelling, of those that there are.
func TestToolsOfWork(t *testing.T) {
	for _, tt := range []struct {
		tools, only []string
		want        string
	}{
		{nil, nil, "answer__structured bash__exec file-system__read file-system__write todo__write mcp__s__t"},
		{[]string{"Read", "all"}, nil, "answer__structured bash__exec file-system__read file-system__write todo__write mcp__s__t"},
		{[]string{"read-only"}, nil, "file-system__read"},
		{[]string{"Read", "group:planning"}, nil, "answer__structured file-system__read todo__write"},
		{nil, []string{"default"}, "answer__structured bash__exec file-system__read file-system__write todo__write mcp__s__t"},
		{nil, []string{"Bash", "Nothing"}, "answer__structured bash__exec mcp__s__t"},
		{[]string{"group:files"}, []string{"Read", "Bash"}, "file-system__read"},
	} {
		s, err := newExtension(t, newCatalog(t), rules{}, tt.only).Begin("", agent.Profile{Tools: tt.tools})
		if err != nil {
			t.Fatal(err)
		}
		if got := names(s.Step().Specs()); got != tt.want {
			t.Errorf("%v of %v: %s, want %s", tt.tools, tt.only, got, tt.want)
		}
	}
	_, err := newExtension(t, newCatalog(t), rules{}, nil).Begin("", agent.Profile{Name: "code", Tools: []string{"Raed"}})
	if p := agent.ProblemOf(err); p == nil || p.Code != agent.ProblemSettings || !strings.Contains(p.Message, `there is no tool "Raed"`) {
		t.Errorf("a tool that is not there: %v", err)
	}
}

// A session has the tools of its role and of its kind of work, but for those that rules
// withhold, and always the one by which it answers in a form. An edited session has no work.
func TestToolsOfSession(t *testing.T) {
	role := func(s agent.Spec) bool { return s.Group != "system" && s.Name != agent.FormTool }
	work := agent.Profile{Tools: []string{"group:files", "group:system", "group:planning"}}
	for _, tt := range []struct {
		open agent.Open
		want string
	}{
		{agent.Open{}, "file-system__read todo__write"},
		{agent.Open{Schema: json.RawMessage(`{}`)}, "answer__structured file-system__read todo__write"},
		{agent.Open{Edit: true}, "file-system__read todo__write tool__search"},
	} {
		s := newExtension(t, newCatalog(t), nil, nil).Session(plug.Session{Open: tt.open}, newCatalog(t), rules{"file-system__write": "user"}, work)
		has, err := s.Keep(role)
		if err != nil {
			t.Fatal(err)
		}
		if got := names(s.Step().Specs()); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.open, got, tt.want)
		}
		if has(agent.Spec{Name: "file-system__write", Group: "files"}) || !has(agent.Spec{Name: "file-system__read", Group: "files"}) {
			t.Errorf("%+v: what is withheld is not known", tt.open)
		}
	}
}

// What would fill the window is named, found by a search, and kept.
func TestToolsAreLookedFor(t *testing.T) {
	var kept record
	b := plug.Session{Log: &kept}
	s := newExtension(t, nil, nil, nil).Session(b, newCatalog(t), rules{}, agent.Profile{})
	at := plug.Moment{Has: func(string, string) bool { return true }}
	if got := s.extra(t.Context(), at)[0].Text; !strings.Contains(got, "mcp__s__*: t") {
		t.Errorf("named: %s", got)
	}
	if e := s.Catalog().Refuse("mcp__s__t"); e.Code != agent.ErrNotInCatalog || e.Suggestion == "" {
		t.Errorf("refused: %+v", e)
	}
	r, err := s.Search().Run(t.Context(), agent.ToolContext{}, agent.Call{ID: "c", Input: json.RawMessage(`{"query":"select:mcp__s__t"}`)})
	if err != nil || len(kept.bodies) != 1 || !slices.Equal(kept.bodies[0].(agent.ToolsSelected).Tools, []string{"mcp__s__t"}) {
		t.Fatalf("%s, %v, %v", r.Text, kept.bodies, err)
	}
	if got := s.extra(t.Context(), at)[0].Text; got != "There are no further tools to be loaded." {
		t.Errorf("named afterwards: %s", got)
	}
}

// A report says of each tool how it stands, and a tool that is switched off is given back.
func TestReports(t *testing.T) {
	cat, p := newCatalog(t), rules{"bash__exec": "/etc/policy.json"}
	x := newExtension(t, cat, p, nil)
	if _, err := x.list(t.Context(), query.ListTools{Session: "s"}); agent.ProblemOf(err) == nil {
		t.Errorf("a session that is not open: %v", err)
	}
	s := x.Session(plug.Session{ID: "s"}, cat, p, agent.Profile{Tools: []string{"group:files", "group:system", "group:planning"}})
	if _, err := s.Keep(nil); err != nil {
		t.Fatal(err)
	}
	points, err := s.Attach(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer points.Close()
	if _, err := x.switchTool(t.Context(), query.SwitchTool{Session: "s", Tool: "read"}); err != nil {
		t.Fatal(err)
	}
	r, err := x.list(t.Context(), query.ListTools{Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, i := range r.Tools {
		states = append(states, strings.Join(strings.Fields(i.Shown+" "+i.State+" "+i.Why+" "+i.At), " "))
	}
	want := "StructuredOutput on, Bash off rule /etc/policy.json, Read off session, Write on, TodoWrite on, ToolSearch off none-named, mcp__s__t off role"
	if got := strings.Join(states, ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if r, err := x.switchTool(t.Context(), query.SwitchTool{Session: "s", Tool: "Read", On: true}); err != nil || r.Tools[0].State != "on" {
		t.Errorf("given back: %+v, %v", r, err)
	}
	if _, err := x.list(t.Context(), query.ListTools{Session: "s", Tool: "Raed"}); err == nil || agent.ProblemOf(err).Fix != "did you mean Read?" {
		t.Errorf("a tool that is not there: %v", err)
	}
}

// Lent are the tools that mean something outside of a conversation.
func TestLendable(t *testing.T) {
	x := newExtension(t, newCatalog(t), nil, nil)
	for want, only := range map[string][]string{
		"bash__exec file-system__read file-system__write mcp__s__t": nil,
		"bash__exec file-system__read":                              {"Read", "bash"},
		"file-system__read file-system__write":                      {"group:files"},
	} {
		if list, err := x.lendable(t.Context(), query.ListLendable{Only: only}); err != nil || names(list) != want {
			t.Errorf("%v: %s, %v, want %s", only, names(list), err, want)
		}
	}
	for _, name := range []string{"TodoWrite", "Raed", "group:planning"} {
		if _, err := x.lendable(t.Context(), query.ListLendable{Only: []string{name}}); err == nil || !strings.Contains(err.Error(), "no tool that can be lent") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
