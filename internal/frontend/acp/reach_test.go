package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

// Every method that the official schema has an agent serve is served, but for those whose
// capability is not offered, and nothing else is. What it is asked for in a wrong way is
// refused as JSON-RPC says.
func TestMethodsOfTheSchema(t *testing.T) {
	sdk(t)
	o, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]string{
		"logout":         "auth.logout is not offered: keys are no client's",
		"session/cancel": "it is a notification",
	}
	w := newWire(t, t.Context(), newStill().config())
	w.open(1)
	known := map[string]bool{}
	for _, d := range o.raw["$defs"].(map[string]any) {
		def, _ := d.(map[string]any)
		method, _ := def["x-method"].(string)
		if def["x-side"] != "agent" || known[method] {
			continue
		}
		known[method] = true
		_, served := table()[method]
		if served == (left[method] != "") {
			t.Errorf("%s: served %v, left out %q", method, served, left[method])
		}
		for _, params := range []string{`{}`, `[]`, `"text"`, `{"sessionId":5,"cwd":[],"cursor":{},"methodId":[],"protocolVersion":""}`} {
			w.send(`{"jsonrpc":"2.0","id":"of ` + method + `","method":"` + method + `","params":` + params + `}`)
			m := w.next()
			for m.Method != "" {
				m = w.next()
			}
			allowed := []int{codeParams, codeMissing}
			if !served {
				allowed = []int{codeMethod}
			}
			if method == "session/list" && params == `{}` {
				if m.Error != nil {
					t.Errorf("%s %s: %v", method, params, m.Error)
				}
				continue
			}
			if string(m.ID) != `"of `+method+`"` || m.Error == nil || !slices.Contains(allowed, m.Error.Code) {
				t.Errorf("%s %s: id %s, %v", method, params, m.ID, m.Error)
			}
		}
	}
	for method := range table() {
		if !known[method] {
			t.Errorf("the schema knows no %s", method)
		}
	}
	w.leave()
}

// A client is told how full the model's window is, and what the session has cost so far.
func TestUsage(t *testing.T) {
	s := newStill()
	s.models = []agent.ModelInfo{{ID: "m", Provider: "p", Window: 1000}}
	w := newWire(t, t.Context(), s.config())
	w.open(1)
	cost := agent.Money(1_500_000_000)
	s.happens("s1", agent.SettingsChanged{Model: "m"})
	for range 2 {
		s.happens("s1", agent.ModelAnswered{Answer: agent.Answer{Model: "m", Usage: agent.Usage{Input: 100, CacheRead: 20, CacheWrite: 3, Output: 2}}, Cost: &cost})
	}
	var told []usageUpdate
	for len(told) < 2 {
		m := w.next()
		var n struct {
			Update usageUpdate `json:"update"`
		}
		if json.Unmarshal(m.Params, &n) == nil && n.Update.Kind == "usage_update" {
			told = append(told, n.Update)
		}
	}
	for i, u := range told {
		if u.Used != 125 || u.Size != 1000 || u.Cost == nil || u.Cost.Amount != 1.5*float64(i+1) || u.Cost.Currency != "USD" {
			t.Errorf("%d: %+v", i, u)
		}
	}
	w.leave()
}

// A client's person is told and asked in their language.
func TestKorean(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Reply{Calls: []script.Call{makes("c1", "Write", `{"file_path":"만든 것.txt","content":"하나\n"}`)}}, script.Reply{Text: "다 했습니다."})
	w.lang = "ko"
	e := w.connect(`{}`)
	var asked []permissionIn
	e.on = permits("allow_once", &asked)
	id := e.open(w.work, "")
	if stop := e.prompt(id, "파일을 만들어 주세요"); stop != stopEnd {
		t.Errorf("it ended with %s", stop)
	}
	ko := text.For("ko")
	if len(asked) != 1 || asked[0].Options[0].Name != ko.Say(text.ACPOnce) || ko.Say(text.ACPOnce) == text.For("en").Say(text.ACPOnce) {
		t.Errorf("asked: %+v", asked)
	}
	if !strings.Contains(asked[0].Call.Title, "만든 것.txt") || e.words("agent_message_chunk") != "다 했습니다." {
		t.Errorf("%q, %q", asked[0].Call.Title, e.words("agent_message_chunk"))
	}
	e.clear()
	e.prompt(id, "/없는것")
	if got := e.words("agent_message_chunk"); !strings.HasPrefix(got, ko.Say(text.SlashUnknown, "name", "/없는것")) {
		t.Errorf("said: %q", got)
	}
}

// Each option takes each of its values, and says so.
func TestEveryOption(t *testing.T) {
	w := newWorld(t)
	e := w.connect(`{}`)
	var out opened
	if err := json.Unmarshal(e.must("session/new", `{"cwd":`+quote(w.work)+`,"mcpServers":[]}`), &out); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, o := range out.Options {
		ids = append(ids, o.ID)
		for _, v := range o.Values {
			var set configOut
			if err := json.Unmarshal(e.must("session/set_config_option", `{"sessionId":`+quote(out.ID)+`,"configId":`+quote(o.ID)+`,"value":`+quote(v.Value)+`}`), &set); err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(set.Options, func(p configOption) bool { return p.ID == o.ID })
			if i < 0 || set.Options[i].Current != v.Value {
				t.Errorf("%s = %s: %+v", o.ID, v.Value, set.Options)
			}
		}
	}
	if !slices.Equal(ids, []string{optionMode, optionModel, optionEffort}) {
		t.Errorf("options: %v", ids)
	}
}

// A session that was begun elsewhere is listed, loaded with what was said in it, and gone
// on with.
func TestBegunElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Reply{Text: "FROM THERE"}, script.Reply{Text: "FROM HERE"})
	a, err := w.build(Folder{Dir: w.work})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	there, err := a.Client().Open(ctx, agent.Open{Workdir: w.work})
	if err != nil {
		t.Fatal(err)
	}
	if err := there.Send(ctx, agent.Prompt{Text: "begun there"}); err != nil {
		t.Fatal(err)
	}
	for e, err := range there.Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, over := e.Body.(agent.TurnEnded); over {
			break
		}
	}
	if err := there.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	e := w.connect(`{}`)
	id := quote(there.Info.ID)
	if got := string(e.must("session/list", `{"cwd":`+quote(w.work)+`}`)); !strings.Contains(got, id) {
		t.Errorf("listed: %s", got)
	}
	e.must("session/load", `{"sessionId":`+id+`,"cwd":`+quote(w.work)+`,"mcpServers":[]}`)
	if got := e.words("user_message_chunk") + "/" + e.words("agent_message_chunk"); got != "begun there/FROM THERE" {
		t.Errorf("loaded: %q", got)
	}
	e.must("session/resume", `{"sessionId":`+id+`,"cwd":`+quote(w.work)+`}`)
	e.clear()
	if stop := e.prompt(there.Info.ID, "and on"); stop != stopEnd || e.words("agent_message_chunk") != "FROM HERE" {
		t.Errorf("%s: %q", stop, e.words("agent_message_chunk"))
	}
	requests := w.model.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "begun there") || !strings.Contains(last, "FROM THERE") {
		t.Error("the model does not know what was said there")
	}
}

// A session that was put away is not listed; whoever knows it opens it again and goes on with
// it, and it stays put away.
func TestPutAway(t *testing.T) {
	w := newWorld(t, script.Reply{Text: "FROM THERE"}, script.Reply{Text: "FROM HERE"})
	a, err := w.build(Folder{Dir: w.work})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	e := w.connect(`{}`)
	session := e.open(w.work, "")
	if stop := e.prompt(session, "begun there"); stop != stopEnd {
		t.Errorf("it ended with %s", stop)
	}
	id := quote(session)
	e.must("session/close", `{"sessionId":`+id+`}`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	away, err := a.Client().Open(ctx, agent.Open{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	if err := errors.Join(away.Send(ctx, agent.Change{Archived: &yes}), away.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	if got := string(e.must("session/list", `{"cwd":`+quote(w.work)+`}`)); strings.Contains(got, id) {
		t.Errorf("listed: %s", got)
	}
	e.clear()
	e.must("session/load", `{"sessionId":`+id+`,"cwd":`+quote(w.work)+`,"mcpServers":[]}`)
	if got := e.words("agent_message_chunk"); got != "FROM THERE" {
		t.Errorf("loaded: %q", got)
	}
	e.clear()
	if stop := e.prompt(session, "and on"); stop != stopEnd || e.words("agent_message_chunk") != "FROM HERE" {
		t.Errorf("%s: %q", stop, e.words("agent_message_chunk"))
	}
	e.must("session/close", `{"sessionId":`+id+`}`)
	info, err := client.Query[agent.SessionInfo](ctx, a.Client(), agent.FindSession{Name: session})
	if err != nil || !info.Archived {
		t.Errorf("it is %+v, %v", info, err)
	}
}

// Servers that a client hands over are reached over HTTP, in both ways, with the headers
// that it names as they stand.
func TestServersOverHTTP(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "tell", Description: "tells"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "TOLD OVER HTTP"}}}, nil, nil
	})
	for kind, served := range map[string]http.Handler{
		"http": mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil),
		"sse":  mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil),
	} {
		t.Run(kind, func(t *testing.T) {
			var mu sync.Mutex
			words := map[string]bool{}
			at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				words[r.Header.Get("X-Word")] = true
				mu.Unlock()
				served.ServeHTTP(w, r)
			}))
			t.Cleanup(func() { // after the sessions are closed
				at.CloseClientConnections()
				at.Close()
			})
			w := newWorld(t, script.Reply{Calls: []script.Call{makes("c1", "mcp__teller__tell", `{}`)}}, script.Reply{Text: "done"})
			e := w.connect(`{}`)
			var asked []permissionIn
			e.on = permits("allow_once", &asked)
			var out opened
			if err := json.Unmarshal(e.must("session/new", fmt.Sprintf(`{"cwd":%s,"mcpServers":[{"type":%q,"name":"teller","url":%q,"headers":[{"name":"X-Word","value":"${HOME} as it is"}]}]}`, quote(w.work), kind, at.URL)), &out); err != nil {
				t.Fatal(err)
			}
			e.prompt(out.ID, "call it")
			bodies := w.model.Requests()
			if last := string(bodies[len(bodies)-1].Body); !strings.Contains(last, "TOLD OVER HTTP") {
				t.Errorf("asked %d, the model has: %.2000s", len(asked), last[max(0, len(last)-2000):])
			}
			e.must("session/close", `{"sessionId":`+quote(out.ID)+`}`)
			mu.Lock()
			defer mu.Unlock()
			if len(words) != 1 || !words["${HOME} as it is"] {
				t.Errorf("headers: %v", words)
			}
		})
	}
}
