package servers

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRead(t *testing.T) {
	list, faults := Read(Source{Path: "p", Scope: Project, Data: []byte(`{
  // ours
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "files", "${HOME}"], "env": {"A": "${TOKEN:-none}"}, "cwd": "sub"},
    "web": {"type": "streamable-http", "url": "https://example.com/${TEAM}/mcp", "headers": {"Authorization": "Bearer $KEY"},
      "oauth": {"clientId": "c", "callbackPort": 8080, "scopes": "a b"}, "timeout": 1500, "alwaysLoad": true,},
  },
}`)})
	if len(faults) > 0 {
		t.Error(faults)
	}
	want := []Definition{
		{
			Server: Server{Name: "files", Type: Stdio, Command: "npx", Args: []string{"-y", "files", "${HOME}"}, Env: map[string]string{"A": "${TOKEN:-none}"}, Dir: "sub", Source: "p", Scope: Project},
			Line:   4, Column: 5, Vars: []string{"HOME", "TOKEN"},
		},
		{
			Server: Server{
				Name: "web", Type: HTTP, URL: "https://example.com/${TEAM}/mcp", Headers: map[string]string{"Authorization": "Bearer $KEY"},
				OAuth: &OAuth{ClientID: "c", CallbackPort: 8080, Scopes: []string{"a", "b"}}, Timeout: 1500 * time.Millisecond, AlwaysLoad: true, Source: "p", Scope: Project,
			},
			Line: 5, Column: 5, Vars: []string{"KEY", "TEAM"},
		},
	}
	if d := cmp.Diff(want, list, cmpopts.IgnoreFields(Definition{}, "Hash")); d != "" {
		t.Error(d)
	}
}

// What is wrong is told with its place, and leaves the other servers as they are.
func TestFaults(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"mcpServers": {"a": {"command": 1}}}`, `p:1:34: the server a: command has to be a text | p:1:22: the server a: it has no command`},
		{"{\"mcpServers\": {\n \"a\": {}}}", `p:2:7: the server a: it has no command`},
		{`{"mcpServers": {"a": {"type": "http"}}}`, `p:1:22: the server a: it has no url`},
		{`{"mcpServers": {"a": {"url": "ftp://x"}}}`, `p:1:22: the server a: its url is no address of http or https`},
		{`{"mcpServers": {"a": {"url": "https://me:pw@x"}}}`, `p:1:22: the server a: its url has a name or a password in it: send it in a header`},
		{`{"mcpServers": {"a": {"type": "carrier", "command": "x"}}}`, `p:1:31: the server a: "carrier" is no way to speak with a server`},
		{`{"mcpServers": {"a": {"type": "sdk"}}}`, `p:1:31: the server a: servers inside of programs are given by those programs`},
		{`{"mcpServers": {"a": {"command": "x", "url": "https://x"}}}`, `p:1:22: the server a: it has both a command and an address`},
		{`{"mcpServers": {"a__b": {"command": "x"}}}`, `p:1:17: the server a__b: its name has __ in it, which parts the names of its tools`},
		{`{"mcpServers": {"agent:a:b": {"command": "x"}}}`, `p:1:17: the server agent:a:b: its name begins as those of plugins and of types of agents do`},
		{`{"mcpServers": {"plugin:a:b": {"command": "x"}}}`, `p:1:17: the server plugin:a:b: its name begins as those of plugins and of types of agents do`},
		{`{"mcpServers": {"a": {"command": "x", "timeout": "1s"}}}`, `p:1:50: the server a: timeout has to be a number of milliseconds`},
		{`{"mcpServers": {"a": {"url": "https://x", "headers": {"A": "x\ny"}}}}`, `p:1:60: the server a: headers.A has more than one line`},
		{`{"mcpServers": []}`, `p:1:16: mcpServers is no object`},
		{`{"mcpservers": {}}`, `p:1:2: the key mcpservers means nothing here`},
		{`{"x": 1}`, `p:1:1: it has no mcpServers`},
		{`[]`, `p:1:1: it is no object`},
		{"{\n  \"mcpServers\": {\"a\" 1}}", `p:2:22: this is no valid JSON: invalid character '1' after object key`},
		{`{"a": /* `, `p:1:7: a comment is not closed`},
		{`{"mcpServers": {"a": {"command": "x", "arg": []}}}`, `p:1:39: the server a: the key arg means nothing here`},
	} {
		list, faults := Read(Source{Path: "p", Scope: Project, Data: []byte(tt.in)})
		var got []string
		odd := true
		for _, f := range faults {
			got, odd = append(got, f.Error()), odd && f.Odd
		}
		if s := strings.Join(got, " | "); s != tt.want || odd != (len(list) == 1) {
			t.Errorf("%s\ngot  %s\nwant %s (%d servers)", tt.in, s, tt.want, len(list))
		}
	}
	list, faults := Read(Source{Path: "p", Data: []byte(`{"mcpServers": {"bad": {}, "good": {"command": "x"}, "good": {"command": "y"}}}`)})
	if len(list) != 1 || list[0].Command != "y" || len(faults) != 2 {
		t.Errorf("%+v, %v", list, faults)
	}
}

// Plugins write their servers without mcpServers around them.
func TestFlat(t *testing.T) {
	list, faults := Read(Source{Path: "p", Data: []byte(`{"a": {"command": "x"}}`)})
	if len(list) != 1 || len(faults) > 0 {
		t.Error(list, faults)
	}
}

func one(t *testing.T, scope, body string) Definition {
	t.Helper()
	list, faults := Read(Source{Path: scope, Scope: scope, Bare: true, Data: []byte(body)})
	if len(list) != 1 {
		t.Fatal(list, faults)
	}
	return list[0]
}

// Another text with the same meaning is the same definition, and any other is not.
func TestHash(t *testing.T) {
	a := one(t, Project, `{"a": {"command": "x", "args": ["1"]}}`)
	for body, same := range map[string]bool{
		`{"a": {"args": [ "1" ], /* why */ "command": "x",},}`:       true,
		`{"a": {"command": "x", "args": ["1"], "description": "d"}}`: true,
		`{"a": {"command": "x", "args": ["2"]}}`:                     false,
		`{"b": {"command": "x", "args": ["1"]}}`:                     false,
		`{"a": {"command": "x", "args": ["1"], "env": {"A": "1"}}}`:  false,
	} {
		if b := one(t, Project, body); (a.Hash == b.Hash) != same || a.Hash == "" {
			t.Errorf("%s: same is %v", body, !same)
		}
	}
}

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "1", "B": "${A}", "EMPTY": "", "LINES": "x\ny"}
	asked := map[string]bool{}
	lookup := func(name string) (string, bool) { asked[name] = true; v, ok := vars[name]; return v, ok }
	d := one(t, Project, `{"s": {"url": "https://h/${A}/${NONE:-usual}/${EMPTY:-e}", "headers": {"X": "$A ${B} $lower a$", "Y": "${EMPTY}"}}}`)
	s, err := d.Expand(lookup)
	if err != nil || s.URL != "https://h/1/usual/e" || s.Headers["X"] != "1 ${A} $lower a$" || s.Headers["Y"] != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if d := cmp.Diff(map[string]string{"A": "1", "B": "${A}"}, s.Values); d != "" {
		t.Error("what was put in:", d)
	}
	if d.URL != "https://h/${A}/${NONE:-usual}/${EMPTY:-e}" || d.Headers["X"] != "$A ${B} $lower a$" {
		t.Errorf("the definition was changed: %+v", d)
	}
	if d := cmp.Diff(map[string]bool{"A": true, "B": true, "NONE": true, "EMPTY": true}, asked); d != "" {
		t.Error("other variables than those that are named were asked for:", d)
	}
	for body, want := range map[string]string{
		`{"s": {"command": "${MISSING}", "args": ["${GONE}", "${GONE}"]}}`: "these variables are not set: GONE, MISSING",
		`{"s": {"url": "${A}"}}`:                                    "with its variables, its url is no address of http or https",
		`{"s": {"url": "https://h", "headers": {"X": "${LINES}"}}}`: "with its variables, the header X has more than one line",
	} {
		if _, err := one(t, Project, body).Expand(lookup); err == nil || err.Error() != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func raws(list ...string) (all []json.RawMessage) {
	for _, s := range list {
		all = append(all, json.RawMessage(s))
	}
	return all
}

func TestPolicy(t *testing.T) {
	local := Server{Name: "a", Type: Stdio, Command: "npx", Args: []string{"x"}}
	remote := Server{Name: "r", Type: HTTP, URL: "https://mcp.example.com/v1?q=1"}
	none := []json.RawMessage{}
	named, byCommand := raws(`{"serverName":"a"}`), raws(`{"serverName":"a"}`, `{"serverCommand":["npx","y"]}`)
	byURL := raws(`{"serverUrl":"https://*.example.com/*"}`)
	evil := raws(`{"serverUrl":"https://*.good.com/*"}`)
	for i, tt := range []struct {
		p  Policy
		s  Server
		ok bool
	}{
		{Policy{}, local, true},
		{Policy{Allowed: &none}, local, false},
		{Policy{Allowed: &named}, local, true},
		{Policy{Allowed: &named}, remote, false},
		{Policy{Allowed: &byCommand}, local, false}, // the name alone is what anybody may choose
		{Policy{Allowed: &byURL}, remote, true},
		{Policy{Allowed: &byURL}, local, false},
		{Policy{Allowed: &evil}, Server{Type: HTTP, URL: "https://evil.com/x.good.com/"}, false},
		{Policy{Denied: raws(`{"serverName":"a"}`)}, local, false},
		{Policy{Denied: raws(`{"serverCommand":["npx","x"]}`)}, local, false},
		{Policy{Denied: raws(`{"serverUrl":"https://mcp.example.com/*"}`)}, remote, false},
		{Policy{Denied: raws(`{"serverUrl":"HTTPS://x"}`)}, remote, true},
		{Policy{Denied: raws(`{}`)}, remote, false}, // nobody can tell what it was meant for
		{Policy{Denied: raws(`{"serverName":"x","serverUrl":"y"}`)}, local, false},
		{Policy{Allowed: &named, Denied: named}, local, false},
		// who denies a name denies it to plugins and types of agents too; who allows one does not
		{Policy{Denied: named}, Server{Name: "plugin:p:a", Type: Stdio}, false},
		{Policy{Denied: named}, Server{Name: "agent:kit:reviewer:a", Type: Stdio}, false},
		{Policy{Denied: raws(`{"serverName":"plugin:p:a"}`)}, Server{Name: "plugin:p:a", Type: Stdio}, false},
		{Policy{Denied: raws(`{"serverName":"b:a"}`)}, Server{Name: "agent:t:b:a", Type: Stdio}, false},
		{Policy{Denied: named}, Server{Name: "plugin:a:b", Type: Stdio}, true},
		{Policy{Denied: named}, Server{Name: "agent:a", Type: Stdio}, true},
		{Policy{Denied: named}, Server{Name: "x:y:a", Type: Stdio}, true}, // its own name
		{Policy{Allowed: &named}, Server{Name: "plugin:p:a", Type: Stdio}, false},
	} {
		if why := tt.p.Forbids(tt.s); (why == "") != tt.ok {
			t.Errorf("%d: %q", i, why)
		}
	}
}

func TestResolve(t *testing.T) {
	project, mine := one(t, Project, `{"a": {"command": "x"}}`), one(t, User, `{"a": {"command": "mine"}}`)
	vars := one(t, Project, `{"k": {"url": "https://h", "headers": {"A": "${MY_KEY}"}}}`)
	ofAgents := project
	ofAgents.Name, ofAgents.Agent = "agent:reviewer:a", "reviewer"
	trusted := true
	base := func(edit func(*Config), list ...Definition) []Known {
		c := Config{
			Lookup: func(string) (string, bool) { return "v", true }, Secret: func(name string) bool { return name == "MY_KEY" },
		}
		for _, d := range list {
			d.Trusted = trusted
			c.Definitions = append(c.Definitions, d)
		}
		if edit != nil {
			edit(&c)
		}
		return Resolve(c)
	}
	approve := func(hash string) func(*Config) {
		return func(c *Config) { c.Choices.Approve("a", hash, true); c.Choices.Approve("k", vars.Hash, true) }
	}
	for i, tt := range []struct {
		edit func(*Config)
		list []Definition
		want []State
	}{
		{nil, []Definition{project}, []State{Waiting}},
		{approve(project.Hash), []Definition{project}, []State{Ready}},
		{approve("other"), []Definition{project}, []State{Changed}},
		{func(c *Config) { c.Choices.Approve("a", project.Hash, false) }, []Definition{project}, []State{Rejected}},
		{func(c *Config) { c.AllProject = true }, []Definition{project}, []State{Ready}},
		{func(c *Config) { c.Enabled = []string{"a"} }, []Definition{project}, []State{Ready}},
		{func(c *Config) { c.AllProject = true; c.Disabled = []string{"a"} }, []Definition{project}, []State{Off}},
		{func(c *Config) { c.AllProject = true; c.Disabled = []string{"a"} }, []Definition{ofAgents}, []State{Off}},
		{func(c *Config) { c.Enabled = []string{"a"} }, []Definition{ofAgents}, []State{Waiting}},
		{nil, []Definition{mine}, []State{Ready}},
		{nil, []Definition{mine, project}, []State{Waiting, Hidden}}, // a weaker one does not take its place
		{func(c *Config) { c.Choices.Switch("a", false) }, []Definition{mine}, []State{Off}},
		{func(c *Config) { c.ManagedOnly = true }, []Definition{mine}, []State{Forbidden}},
		{approve(project.Hash), []Definition{vars}, []State{Broken}},
		{func(c *Config) { c.Policy.Denied = raws(`{"serverName":"a"}`) }, []Definition{mine}, []State{Forbidden}},
		{func(c *Config) { c.Lookup = func(string) (string, bool) { return "", false } }, []Definition{one(t, User, `{"v": {"command": "${X}"}}`)}, []State{Broken}},
	} {
		var got []State
		for _, k := range base(tt.edit, tt.list...) {
			got = append(got, k.State)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%d: %s", i, d)
		}
	}
	trusted = false
	if got := base(approve(project.Hash), project); got[0].State != Untrusted {
		t.Error(got[0].State)
	}
	if got := base(nil, mine); got[0].State != Ready {
		t.Error(got[0].State)
	}
}
