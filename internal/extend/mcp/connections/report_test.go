//go:build unix

package connections_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/mcp/connections"
	"dure/internal/safety/policy"
)

// People hear once, before they have said anything, that a server cannot be used, and why,
// and that it can be used again.
func TestNewsOfServers(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/about"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	one := func(def string) *rig {
		r := newRig(t, connections.Config{Given: []string{`{"mcpServers": {"one": ` + def + `}}`}})
		r.open(policy.Config{}, map[string]string{})
		return r
	}
	one(`{"type": "http", "url": "` + s.URL + `/mcp"}`).hears("the server one wants you to sign in; dure mcp login one")
	r := one(`{"command": "sh", "args": ["server.sh"]}`) // which is not there yet
	r.hears("the server one is not connected: ")
	r.write("server.sh", echoes)
	ask[query.ServerInfo](r, query.ChangeServer{Session: "s1", Do: query.ServerReconnect, Server: "one"})
	if notes := r.hears("the server one is connected now"); len(notes) != 2 {
		t.Errorf("%q", notes)
	}
}

// How an argument of a prompt may go on, its server says: of the last word that is typed, and
// of all that is left for the last argument. What cannot be shown is no proposal.
func TestArgumentsOfPrompts(t *testing.T) {
	t.Parallel()
	tells := `*'"method":"completion/complete"'*)
    arg=$(printf '%s' "$line" | sed -n 's/.*"argument":{"name":"\([^"]*\)","value":"\([^"]*\)"}.*/\1 \2/p') who=$(printf '%s' "$line" | sed -n 's/.*"arguments":{"who":"\([^"]*\)"}.*/\1/p')
    answer '{"completion":{"values":["'"$arg|$who"'","two\nlines"]}}' ;;
  *'"method":"prompts/get"'*)`
	r := newRig(t, connections.Config{Given: []string{given}})
	r.write("server.sh", strings.Replace(strings.Replace(echoes, `*'"method":"prompts/get"'*)`, tells, 1), `"prompts":{}`, `"prompts":{},"completions":{}`, 1))
	r.open(policy.Config{}, nil)
	r.server()
	for line, want := range map[string]query.PromptValues{
		"/mcp__sh__greet ":                             {Argument: "who", Values: []string{"who |"}},
		"/mcp__sh__greet Bo":                           {Argument: "who", Typed: "Bo", Value: "Bo", Values: []string{"who Bo|"}},
		`/mcp__sh__greet  "Bob S`:                      {Argument: "who", Typed: `"Bob S`, Value: "Bob S", Values: []string{"who Bob S|"}},
		`/mcp__sh__greet "Bob Smith" `:                 {Argument: "how", Values: []string{"how |Bob Smith"}},
		"/mcp__sh__greet Bob very  warm":               {Argument: "how", Typed: "very  warm", Value: "very warm", Values: []string{"how very warm|Bob"}},
		"/mcp__sh__greet":                              {},
		"/mcp__sh__other Bo":                           {},
		"greet Bo":                                     {},
		"/mcp__sh__greet Bo\x00":                       {},
		"/mcp__sh__greet " + strings.Repeat("x", 5000): {},
	} {
		got := ask[query.PromptValues](r, query.CompletePrompt{Session: "s1", Text: line})
		if got.Argument != want.Argument || got.Typed != want.Typed || got.Value != want.Value || !slices.Equal(got.Values, want.Values) {
			t.Errorf("%.40q: %+v, want %+v", line, got, want)
		}
	}
}

// A test of a server says what it has, or why it cannot be used.
func TestTestingServers(t *testing.T) {
	t.Parallel()
	r := newRig(t, connections.Config{Given: []string{given}})
	r.write("server.sh", echoes)
	got := ask[query.ServerTest](r, query.TestServer{Server: "sh"})
	if got.Title != "sh 1" || len(got.Tools) != 1 || got.Tools[0].Name != "mcp__sh__echo" || len(got.Prompts) != 1 ||
		got.Prompts[0].Name != "mcp__sh__greet WHO [HOW]" || len(got.Resources) != 1 || got.Resources[0].Name != "note://one" {
		t.Errorf("%+v", got)
	}
	r.write("server.sh", strings.Replace(echoes, `*'"method":"initialize"'*)`,
		`*'"method":"initialize"'*'"sampling"'*'"elicitation"'*|*'"method":"initialize"'*'"elicitation"'*'"sampling"'*)`, 1))
	if _, err := tries[query.ServerTest](r, query.TestServer{Server: "sh"}); err != nil {
		t.Errorf("a server that offers more to whoever lets it ask: %v", err)
	}
	r = newRig(t, connections.Config{
		Given:   []string{`{"mcpServers": {"gone": {"command": "no-such-program-anywhere"}}}`},
		Covered: func(string, []byte) bool { return false },
	})
	r.write(".mcp.json", `{"mcpServers": {"theirs": {"command": "touch", "args": ["canary"]}}}`)
	for name, want := range map[string]string{"theirs": "untrusted", "nobody": "there is no such server", "gone": ""} {
		_, err := tries[query.ServerTest](r, query.TestServer{Server: name})
		if agent.ProblemOf(err) == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(r.work, "canary")); err == nil {
		t.Error("a server was started that is not trusted")
	}
}

// A diagnosis names the servers of the folder where there are some: those that are used, those
// that wait for a yes, and what is missing for others.
func TestServersInDiagnosis(t *testing.T) {
	t.Parallel()
	r := newRig(t, connections.Config{})
	r.write(".mcp.json", `{"mcpServers": {"theirs": {"command": "a"}, "odd": {}}}`)
	for name, raw := range map[string]string{"mine": `{"command":"b"}`, "lacks": `{"command":"${NO_SUCH_VARIABLE}"}`} {
		ask[query.ServerChange](r, query.AddServer{Scope: "local", Server: name, Definition: json.RawMessage(raw)})
	}
	var got []string
	for _, f := range r.Findings(t.Context()) {
		if f.Name == "mcp" {
			got = append(got, f.State+" "+f.Code+" "+f.Args["list"]+f.Args["name"])
		}
	}
	if s := strings.Join(got, "; "); s != "warn mcp.broken lacks; ok mcp.ok mine; warn mcp.waiting theirs; warn settings.note " {
		t.Error(s)
	}
}

// Nobody signs in to a program, to a server that there is not, or with an answer to nothing.
func TestNobodySignsIn(t *testing.T) {
	t.Parallel()
	r := newRig(t, connections.Config{})
	ask[query.ServerChange](r, query.AddServer{Scope: "local", Server: "files", Definition: json.RawMessage(`{"command":"files"}`)})
	for name, says := range map[string]string{"files": "nobody signs in to a program", "none": "there is no such server"} {
		for _, q := range []agent.Query{query.SignIn{Server: name}, query.SignOut{Server: name}} {
			if _, err := tries[query.SignInState](r, q); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%+v: %v", q, err)
			}
		}
	}
	if _, err := tries[query.SignInState](r, query.SignIn{Server: "files", Answer: "http://127.0.0.1:1/callback?state=guessed&code=x"}); err == nil {
		t.Error("an answer to nothing is taken")
	}
}
