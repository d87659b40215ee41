package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
)

// pixel is an image as far as its type goes.
var pixel = []byte("\x89PNG\r\n\x1a\n")

// everything is a server with all that there is.
func everything() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "every\x1bthing", Version: "1.2"}, &sdk.ServerOptions{
		Instructions: "Use it\u202e well.",
		CompletionHandler: func(_ context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			v := r.Params.Argument.Value
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{v + "1", v + "2", "\x1b[2J"}}}, nil
		},
	})
	object := json.RawMessage(`{"type":"object"}`)
	tool := func(name string, f sdk.ToolHandler) {
		s.AddTool(&sdk.Tool{Name: name, Description: "does " + name, InputSchema: object}, f)
	}
	says := func(list ...sdk.Content) (*sdk.CallToolResult, error) { return &sdk.CallToolResult{Content: list}, nil }
	tool("echo", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return says(&sdk.TextContent{Text: string(r.Params.Arguments)}, &sdk.TextContent{Text: fmt.Sprint(r.Params.Meta[keyMeta])})
	})
	tool("parts", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{
			StructuredContent: map[string]any{"n": 1},
			Content: []sdk.Content{
				&sdk.ImageContent{MIMEType: "image/png", Data: pixel}, &sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("wave")},
				&sdk.ResourceLink{URI: "file:///a", Name: "a", Description: "the first"},
				&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "x:///b", Text: "inside"}},
				&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "x:///c", MIMEType: "application/pdf", Blob: []byte("%PDF")}},
				&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "x:///d", MIMEType: "application/zip", Blob: []byte("PK")}},
			},
		}, nil
	})
	tool("fails", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such thing"}}}, nil
	})
	tool("counts", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		// Where answers are no streams there is no way for it.
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half"})
		return says(&sdk.TextContent{Text: "counted"})
	})
	tool("asks", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Params.InputResponses == nil {
			return &sdk.CallToolResult{RequestState: "s", InputRequests: sdk.InputRequestMap{
				"form":  &sdk.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":7}},"required":["name"]}`)},
				"model": &sdk.CreateMessageParams{MaxTokens: 50, SystemPrompt: "Be brief.", Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "2+2?"}}}}, //nolint:staticcheck // SA1019: servers of today still ask for it
				"roots": &sdk.ListRootsParams{},                                                                                                                                        //nolint:staticcheck // SA1019: servers of today still ask for it
			}}, nil
		}
		data, err := json.Marshal(r.Params.InputResponses)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(data)}}}, err
	})
	tool("grows", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		tool("grown", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return says() })
		return says()
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet me", Title: "Greeting", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
			{Role: "user", Content: &sdk.TextContent{Text: "Hello " + r.Params.Arguments["who"]}}, {Role: "assistant", Content: &sdk.ImageContent{MIMEType: "image/png", Data: pixel}},
		}}, nil
	})
	read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "it is " + r.Params.URI}}}, nil
	}
	s.AddResource(&sdk.Resource{URI: "note:///one", Name: "one", MIMEType: "text/plain", Size: 3}, read)
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "note:///{id}", Name: "notes"}, read)
	return s
}

// ways are those in which a server can be reached; each returns its definition.
var ways = map[string]func(*rig) servers.Server{
	"pipes": func(r *rig) servers.Server {
		r.real["every"] = everything
		return stdio("every")[0]
	},
	"http": func(r *rig) servers.Server {
		return overNet(r, sdk.NewStreamableHTTPHandler(hangUp(r.t, each), nil))
	},
	"http without sessions": func(r *rig) servers.Server {
		return overNet(r, sdk.NewStreamableHTTPHandler(hangUp(r.t, each), &sdk.StreamableHTTPOptions{Stateless: true}))
	},
	"http with json": func(r *rig) servers.Server {
		return overNet(r, sdk.NewStreamableHTTPHandler(hangUp(r.t, each), &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	},
	"sse": func(r *rig) servers.Server {
		s := overNet(r, sdk.NewSSEHandler(hangUp(r.t, each), nil))
		s.Type = servers.SSE
		return s
	},
	"sse, said to be http": func(r *rig) servers.Server {
		return overNet(r, sdk.NewSSEHandler(hangUp(r.t, each), nil))
	},
	"memory": func(*rig) servers.Server { return servers.Server{Name: "every", Type: servers.SDK} },
}

func each(*http.Request) *sdk.Server { return everything() }

// hangUp ends the sessions of servers when a test is over: those of HTTP outlive it.
func hangUp(t *testing.T, get func(*http.Request) *sdk.Server) func(*http.Request) *sdk.Server {
	var mu sync.Mutex
	var all []*sdk.Server
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range all {
			for ss := range s.Sessions() {
				ss.Close()
			}
		}
	})
	return func(q *http.Request) *sdk.Server {
		s := get(q)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return s
	}
}

func overNet(r *rig, h http.Handler) servers.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("X-Own") != "yes" {
			http.Error(w, "who is that?", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, q)
	}))
	r.t.Cleanup(srv.Close)
	r.t.Cleanup(srv.CloseClientConnections)
	return servers.Server{Name: "every", Type: servers.HTTP, URL: srv.URL, Headers: map[string]string{"X-Own": "yes"}}
}

// plainHTTP is a [Config.HTTP].
func plainHTTP(t *testing.T) func(servers.Server) (*http.Client, error) {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return func(servers.Server) (*http.Client, error) { return &http.Client{Transport: tr}, nil }
}

// All that a server has can be used, whatever the way to it is.
func TestEverything(t *testing.T) {
	t.Parallel()
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			changed := make(chan string, 100)
			c := Config{
				Servers: []servers.Server{way(r)}, HTTP: plainHTTP(t), Version: "9",
				Roots:    func() []string { return []string{"/w/a b"} },
				OnChange: func(s string) { changed <- s },
				Dial: func(ctx context.Context, _ servers.Server) (sdk.Transport, error) {
					ours, theirs := sdk.NewInMemoryTransports()
					_, err := everything().Connect(ctx, theirs, nil)
					return ours, err
				},
				Elicit: func(_ context.Context, q Elicitation) (plug.ElicitReply, error) {
					want := []Field{{Name: "age", Type: "integer", Default: json.RawMessage("7")}, {Name: "name", Type: "string", Required: true}}
					if q.Server != "every" || q.Message != "Who?" || !reflect.DeepEqual(q.Fields, want) {
						t.Errorf("the person is asked %+v", q)
					}
					return plug.ElicitReply{Action: Accept, Content: map[string]any{"name": "Ann", "more": "than asked"}}, nil
				},
				Ask: func(_ context.Context, server string, q agent.Question) (agent.Answer, error) {
					if server != "every" || q.System != "Be brief." || q.MaxTokens != 50 || q.Messages[0].Text() != "2+2?" {
						t.Errorf("the model is asked %+v", q)
					}
					m := agent.UserText("4")
					m.Role = agent.Assistant
					return agent.Answer{Message: m, Model: "m"}, nil
				},
			}
			s := r.open(c)
			st := state(s, "every")
			if st.State != Connected || st.Title != "everything 1.2" || st.Instructions != "Use it well." || st.Tools != 6 || st.Prompts != 1 || st.Resources != 1 || st.Templates != 1 {
				t.Fatalf("the server is %+v", st)
			}
			tools(t, s)
			texts(t, s)
			if got := run(t, s, "mcp__every__asks", `{}`); name == "http without sessions" || name == "http with json" {
				if got.Failed() == (st.Protocol > settle) {
					t.Errorf("asking: %s (%s)", got.Text, st.Protocol)
				}
			} else if got.Text != `{"form":{"action":"accept","content":{"age":7,"name":"Ann"}},"model":{"content":{"type":"text","text":"4"},"model":"m","role":"assistant","stopReason":"endTurn"},"roots":{"roots":[{"name":"a b","uri":"file:///w/a%20b"}]}}` {
				t.Errorf("the answers are %s", got.Text)
			}
			if strings.HasPrefix(name, "http with") { // it forgets at once what it learned
				return
			}
			run(t, s, "mcp__every__grows", `{}`)
			for state(s, "every").Tools != 7 {
				select {
				case <-changed:
				case <-time.After(slow):
					t.Fatal("a new tool was not noticed")
				}
			}
		})
	}
}

// tools calls the tools of everything.
func tools(t *testing.T, s *Set) {
	t.Helper()
	ctx := agent.WithCallEnv(t.Context(), agent.CallEnv{Key: "k1"})
	if r := runIn(ctx, t, s, "mcp__every__echo", `{"a":[1,"ä"]}`); r.Text != "{\"a\":[1,\"ä\"]}\nk1" {
		t.Errorf("echo: %q", r.Text)
	}
	r := run(t, s, "mcp__every__parts", `{}`)
	want := "[audio, audio/wav, 4 bytes: models here do not hear]\n[resource a: file:///a: the first]\n[resource x:///b]\ninside\n[resource x:///d, application/zip, 2 bytes: it cannot be shown]"
	if r.Text != want || string(r.Output) != `{"n":1}` || len(r.Blocks) != 2 || r.Blocks[0].Type != agent.ImageBlock || r.Blocks[1].Type != agent.DocumentBlock {
		t.Errorf("parts: %+v", r)
	}
	wants(t, run(t, s, "mcp__every__fails", `{}`), agent.ErrTool, "no such thing")
	shown := make(chan string, 10)
	ctx = agent.WithCallEnv(t.Context(), agent.CallEnv{Progress: func(text string) { shown <- text }})
	if r := runIn(ctx, t, s, "mcp__every__counts", `{}`); r.Text != "counted" {
		t.Errorf("counts: %q", r.Text)
	}
	select {
	case text := <-shown:
		if text != "1/2 half\n" {
			t.Errorf("progress: %q", text)
		}
	default: // it may come behind the answer, and then nobody waits for it
	}
	if r := s.Call(t.Context(), "every", "echo", []byte(`{}`)); !strings.HasPrefix(r.Text, "{}") {
		t.Errorf("a hook's call: %q", r.Text)
	}
}

// texts uses the prompts and resources of everything.
func texts(t *testing.T, s *Set) {
	t.Helper()
	p := s.Prompts()[0]
	if p.Command != "mcp__every__greet_me" || p.Title != "Greeting" || !p.Arguments[0].Required {
		t.Errorf("the prompt is %+v", p)
	}
	msgs, err := s.Prompt(t.Context(), "every", "greet me", map[string]string{"who": "Bo"})
	if err != nil || len(msgs) != 2 || msgs[0].Text() != "Hello Bo" || msgs[1].Role != agent.Assistant || msgs[1].Blocks[0].Type != agent.ImageBlock {
		t.Errorf("the prompt says %+v, %v", msgs, err)
	}
	if r := s.Resources()[0]; r.URI != "note:///one" || r.Size != 3 || s.Templates()[0].URI != "note:///{id}" {
		t.Errorf("the resource is %+v, the template %+v", r, s.Templates()[0])
	}
	if r, err := s.Read(t.Context(), "every", "note:///two"); err != nil || r.Text != "it is note:///two" {
		t.Errorf("reading: %+v, %v", r, err)
	}
	if list, err := s.Complete(t.Context(), "every", Wanted{Prompt: "greet me", Argument: "who", Value: "B"}); err != nil || !slices.Equal(list, []string{"B1", "B2"}) {
		t.Errorf("completion: %q, %v", list, err)
	}
	if _, err := s.Read(t.Context(), "nobody", "x"); err == nil || err.Error() != `there is no MCP server "nobody"` {
		t.Errorf("a server that is not there: %v", err)
	}
}

// A server that wants somebody to sign in, and one that sends away, get no secret and
// no second chance.
func TestWebRefusals(t *testing.T) {
	t.Parallel()
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { leaked.Store(true) }))
	defer other.Close()
	serve := func(f http.HandlerFunc) string {
		srv := httptest.NewServer(f)
		t.Cleanup(srv.Close)
		t.Cleanup(srv.CloseClientConnections)
		return srv.URL
	}
	def := func(name, url string) servers.Server {
		return servers.Server{Name: name, Type: servers.HTTP, URL: url, Headers: map[string]string{"Authorization": "secret"}, Startup: 20 * time.Second}
	}
	list := []servers.Server{
		def("locked", serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })),
		def("elsewhere", serve(func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
		})),
		def("endless", serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for many := strings.Repeat(" ", 1<<20); ; {
				if _, err := w.Write([]byte(many)); err != nil {
					return
				}
			}
		})),
		def("pinned", serve(func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: %s/steal\n\n", other.URL)
			w.(http.Flusher).Flush()
			<-q.Context().Done() // the end of the stream would be a reason of its own
		})),
		def("nowhere", "ftp://x"),
	}
	list[3].Type = servers.SSE
	r := newRig(t)
	s := r.open(Config{Servers: list, HTTP: plainHTTP(t)})
	for name, part := range map[string]string{
		"locked": "sign in", "elsewhere": "another place", "endless": "", "pinned": "another place", "nowhere": "no http",
	} {
		st := state(s, name)
		if st.State == Connected || !strings.Contains(st.Problem, part) {
			t.Errorf("%s is %s: %s", name, st.State, st.Problem)
		}
	}
	if st := state(s, "locked"); st.State != NeedsAuth {
		t.Errorf("locked is %s", st.State)
	}
	if leaked.Load() {
		t.Error("a request went to another place")
	}
}

// What a server says of its tools is taken as a claim, and its names are made to fit.
func TestSpecs(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("long", 30)
	list := []string{
		`{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"title":"Reads"},"_meta":{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":9000}}`,
		`{"name":"pay","inputSchema":{},"_meta":{"anthropic/requiresUserInteraction":true}}`,
		`{"name":"a.b","description":"hid\u202eden\u001b[0m","inputSchema":{"type":"object","description":"x\u200by","properties":{"a":{"type":"string"}}}}`,
		`{"name":"a_b","inputSchema":{"type":"object"}}`, `{"name":"a/b","inputSchema":{"type":"object"}}`,
		`{"name":"` + long + `","inputSchema":{"type":"object"}}`, `{"name":"` + long + `2","inputSchema":{"type":"object"}}`,
		`{"name":"list","inputSchema":{"type":"array"}}`, `{"name":"deep","inputSchema":` + strings.Repeat(`{"items":`, 80) + `{}` + strings.Repeat("}", 80) + `}`,
		`{"name":"big","inputSchema":{"type":"object","x":"` + strings.Repeat("x", maxSchema) + `"}}`, `{"name":"read","inputSchema":{"type":"object"}}`, `null`, `{"inputSchema":{"type":"object"}}`,
	}
	for _, name := range []string{"plugin:p:s", "plugin_p_s", "서버"} {
		r.scripts[name] = func(p *peer, m message) bool {
			if m.Method != "tools/list" {
				return false
			}
			all := slices.Clone(list)
			if p.asked("tools/list")%2 == 0 {
				slices.Reverse(all)
			}
			p.reply(m, `{"tools":[`+strings.Join(all, ",")+`]}`)
			return true
		}
	}
	s := r.open(Config{Servers: stdio("plugin:p:s", "plugin_p_s", "서버"), Trusted: func(s servers.Server) bool { return s.Name == "plugin_p_s" }})
	var names []string
	byName := map[string]*Tool{}
	for _, tool := range s.Tools() {
		n := tool.Spec().Name
		names = append(names, n)
		byName[n] = tool.(*Tool)
		if len(n) > maxName {
			t.Errorf("%s is too long", n)
		}
	}
	if len(names) != 21 || len(byName) != 21 {
		t.Errorf("%d tools under %d names: %s", len(names), len(byName), strings.Join(names, "\n"))
	}
	read := byName["mcp__plugin_p_s__read"]
	if sp := read.Spec(); sp.Class != agent.Read || sp.Risk != agent.RiskMedium || sp.Budget != 9000 || read.Traits() != (Traits{Title: "Reads", ReadOnly: true, AlwaysLoad: true}) {
		t.Errorf("read is %+v, %+v", sp, read.Traits())
	}
	for n, tool := range byName {
		if tool.Server() != "plugin_p_s" && tool.Spec().Class != agent.Unsafe {
			t.Errorf("%s of a server that is not trusted is %s", n, tool.Spec().Class)
		}
	}
	if !byName["mcp__plugin_p_s__pay"].Traits().Asks || string(byName["mcp__plugin_p_s__pay"].Spec().Input) != `{"type":"object"}` {
		t.Error("pay does not ask, or has no schema")
	}
	for n, asks := range map[string]bool{"mcp__plugin_p_s__pay": true, "mcp__plugin_p_s__read": false} {
		if e, err := byName[n].Plan(t.Context(), agent.ToolContext{}, agent.Call{}); err != nil || e.Transactional != asks {
			t.Errorf("%s has the effects %+v, %v", n, e, err)
		}
	}
	if byName["mcp__plugin_p_s__a_b"].Remote() != "a_b" {
		t.Error("a name that fits is not kept")
	}
	for _, tool := range byName {
		if tool.Remote() == "a.b" && (tool.Spec().Description != "hidden[0m" || !strings.Contains(string(tool.Spec().Input), `"xy"`)) {
			t.Errorf("a.b says %q, %s", tool.Spec().Description, tool.Spec().Input)
		}
	}
	if left := state(s, "plugin_p_s").Left; len(left) != 5 {
		t.Errorf("what is left out: %q", left)
	}
	first := read.Print()
	list[0] = strings.Replace(list[0], `"inputSchema"`, `"description":"Now it does more.","inputSchema"`, 1)
	if err := s.Reconnect(t.Context(), "plugin_p_s"); err != nil {
		t.Fatal(err)
	}
	for _, tool := range s.Tools() {
		tool := tool.(*Tool)
		if byName[tool.Spec().Name] == nil {
			t.Errorf("%s has a new name", tool.Spec().Name)
		}
		if same := tool.Print() == byName[tool.Spec().Name].Print(); same == (tool.Server() == "plugin_p_s" && tool.Remote() == "read") {
			t.Errorf("the print of %s, which was %s: %s", tool.Spec().Name, first, tool.Print())
		}
	}
}

// What stops is started again with growing pauses, what is switched off is gone, and
// what is asked for has an answer.
func TestComingAndGoing(t *testing.T) {
	r := newRig(t)
	s := r.open(Config{Servers: stdio("a", "b")})
	if err := s.Disable("b"); err != nil {
		t.Fatal(err)
	}
	for _, tool := range s.Tools() {
		if tool.(*Tool).Server() == "b" {
			t.Error("a server that is switched off has tools")
		}
	}
	var u *Unavailable
	if err := s.Reconnect(t.Context(), "b"); !errors.As(err, &u) || u.State != Disabled {
		t.Errorf("connecting what is switched off: %v", err)
	}
	if err := s.Enable("b"); err != nil {
		t.Fatal(err)
	}
	if err := s.Reconnect(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	if got := run(t, s, "mcp__b__t", `{}`); got.Text != "ok" {
		t.Errorf("got %q", got.Text)
	}
	for _, f := range []func(string) error{s.Enable, s.Disable, func(n string) error { return s.Reconnect(t.Context(), n) }} {
		if err := f("c"); err == nil {
			t.Error("a server that is not there was found")
		}
	}
	r.mu.Lock()
	r.refuse["a"] = errors.New("the disk is full")
	r.mu.Unlock()
	if err := s.Reconnect(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("connecting what does not start: %v", err)
	}
	s.Close()
	if err := s.Wait(t.Context()); err != nil && !errors.Is(err, errClosed) {
		t.Error(err)
	}
	if got := run(t, s, "mcp__b__t", `{}`); !got.Failed() {
		t.Error("a closed set has served a call")
	}
}
