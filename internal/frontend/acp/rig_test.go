package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

// patience is how long a test waits for something that should come at once.
const patience = time.Minute

// world is a folder, a place for sessions and a model that follows a script.
type world struct {
	t     *testing.T
	work  string
	home  string
	model *script.Server
	lang  string
	box   string // the sandbox: auto or off; "" = as the settings say

	opened func(client.Client) // is told with what a folder is worked in; nil = nobody is
}

func newWorld(t *testing.T, replies ...script.Reply) *world {
	t.Helper()
	return newWorldOf(t, script.Script{Replies: replies}, script.Options{})
}

func newWorldOf(t *testing.T, s script.Script, o script.Options) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, work: filepath.Join(dir, "work"), home: filepath.Join(dir, "home"), lang: "en"}
	for _, d := range []string{w.work, w.home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if w.model, err = script.NewServer(s, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.model.Close() })
	return w
}

// build builds the program for a folder.
func (w *world) build(f Folder) (*app.App, error) {
	flags := app.Flags{PlainOff: true, NoReflexion: true, AddDirs: f.More, AwaitServers: true, Sandbox: w.box}
	if f.Servers != nil {
		flags.Servers = []string{string(f.Servers)}
	}
	dir := f.Dir
	if dir == "" {
		dir = w.work
	}
	return app.New(app.Options{
		Editor: f.Editor, Terminal: f.Terminal, Flags: flags, UserHome: w.home, Workdir: dir, Version: "test",
		Environ: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "DURE_HOME=" + filepath.Join(w.home, "dure"),
			"ANTHROPIC_BASE_URL=" + w.model.URL(), "DURE_MODEL=script",
		},
	})
}

// config is what a server of this world is made of.
func (w *world) config() Config {
	return Config{
		Text: text.For(w.lang), Version: "test", Logger: slog.New(slog.DiscardHandler), Login: []string{"--login"},
		Ready: func(context.Context) error { return nil },
		Open: func(f Folder) (Place, error) {
			a, err := w.build(f)
			if err != nil {
				return Place{}, err
			}
			if w.opened != nil {
				w.opened(a.Client())
			}
			return Place{
				Client: a.Client(), Mode: agent.ModeDefault, Effort: "medium", Close: a.Close,
				Modes: []agent.Mode{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan},
			}, nil
		},
	}
}

// editorClient is a client over pipes. Each message that it gets is looked at.
type editorClient struct {
	t     *testing.T
	in    io.WriteCloser
	ended chan error

	// on answers what the server asks; nil = the usual answers.
	on func(method string, params json.RawMessage) (any, *wireError)

	// garbled is what is answered instead, once on has been asked, with {ID} for the ID; "" =
	// what on says.
	garbled func(method string) string

	mu      sync.Mutex
	cond    *sync.Cond
	next    int
	asked   map[string]string // methods of requests that have no answer yet, by ID
	answers map[string]message
	updates []json.RawMessage
	calls   []string // methods that the server has called
	faults  []string
	back    bool // the server has taken back what it has called
	over    bool
}

// connect starts a server and a client of it.
func (w *world) connect(caps string) *editorClient {
	w.t.Helper()
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	e := &editorClient{t: w.t, in: in, ended: make(chan error, 1), asked: map[string]string{}, answers: map[string]message{}}
	e.cond = sync.NewCond(&e.mu)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := New(w.config()).Run(ctx, theirs, ours)
		_ = ours.Close() // it has no errors
		e.ended <- err
	}()
	go e.read(out)
	w.t.Cleanup(func() {
		_ = in.Close() // likewise
		select {
		case err := <-e.ended:
			if err != nil {
				w.t.Errorf("the server: %v", err)
			}
		case <-time.After(patience):
			w.t.Error("the server does not end")
		}
		cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, f := range e.faults {
			w.t.Error(f)
		}
	})
	if caps != "" {
		e.must("initialize", `{"protocolVersion":1,"clientCapabilities":`+caps+`}`)
	}
	return e
}

// read takes what the server says.
func (e *editorClient) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			e.take([]byte(line))
		}
		if err != nil {
			e.mu.Lock()
			e.over = true
			e.cond.Broadcast()
			e.mu.Unlock()
			return
		}
	}
}

func (e *editorClient) take(line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		e.fault("a line that is no message: %v: %.200s", err, line)
		return
	}
	e.mu.Lock()
	method := m.Method
	if method == "" {
		method = e.asked[string(m.ID)]
		delete(e.asked, string(m.ID))
		e.answers[string(m.ID)] = m
	} else if m.ID != nil {
		e.calls = append(e.calls, method)
	}
	if method == "$/cancel_request" {
		e.back = true
	}
	if m.Method == "session/update" {
		e.updates = append(e.updates, m.Params)
	}
	e.cond.Broadcast()
	e.mu.Unlock()
	for _, f := range faultsOf(method, line) {
		e.fault("%s", f)
	}
	if m.Method != "" && m.ID != nil {
		go e.answer(m)
	}
}

func (e *editorClient) fault(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = append(e.faults, fmt.Sprintf(format, args...))
}

// answer answers what the server asks.
func (e *editorClient) answer(m message) {
	var result any
	bad := &wireError{Code: codeMethod, Message: "no"}
	if e.on != nil {
		result, bad = e.on(m.Method, m.Params)
	}
	if e.garbled != nil {
		if line := e.garbled(m.Method); line != "" {
			e.line(strings.ReplaceAll(line, "{ID}", string(m.ID)))
			return
		}
	}
	out := message{Version: "2.0", ID: m.ID, Error: bad}
	if bad == nil {
		out.Result, _ = json.Marshal(result) // of tests
	}
	data, _ := json.Marshal(out) // likewise
	e.line(string(data))
}

// line sends a line.
func (e *editorClient) line(s string) {
	_, _ = io.WriteString(e.in, s+"\n") // the server may be over: then nothing comes back
}

// send asks for something, and returns the ID under which the answer comes.
func (e *editorClient) send(method, params string) string {
	e.mu.Lock()
	e.next++
	id, params := fmt.Sprint(e.next), strings.ReplaceAll(params, "\n", " ")
	e.asked[id] = method
	e.mu.Unlock()
	e.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

// wait waits until something is so.
func (e *editorClient) wait(what string, is func() bool) {
	e.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		e.mu.Lock()
		late = true
		e.cond.Broadcast()
		e.mu.Unlock()
	})
	defer timer.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for !is() {
		if late || e.over {
			e.t.Fatalf("%s does not come; over: %v\n%s", what, e.over, e.shown())
		}
		e.cond.Wait()
	}
}

// shown is what was told, for people.
func (e *editorClient) shown() string {
	var b strings.Builder
	for _, u := range e.updates {
		fmt.Fprintf(&b, "%.300s\n", u)
	}
	return b.String()
}

// got returns the answer to a request.
func (e *editorClient) got(id string) message {
	e.t.Helper()
	e.wait("the answer to "+id, func() bool { _, ok := e.answers[id]; return ok })
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.answers[id]
}

// do asks for something and returns the answer.
func (e *editorClient) do(method, params string) message {
	e.t.Helper()
	return e.got(e.send(method, params))
}

// must is do, of what has to succeed.
func (e *editorClient) must(method, params string) json.RawMessage {
	e.t.Helper()
	m := e.do(method, params)
	if m.Error != nil {
		e.t.Fatalf("%s: %v\n%s", method, m.Error, m.Error.Data)
	}
	return m.Result
}

// open opens a new session in a folder.
func (e *editorClient) open(dir, more string) string {
	e.t.Helper()
	var out struct {
		ID string `json:"sessionId"`
	}
	if err := json.Unmarshal(e.must("session/new", `{"cwd":`+quote(dir)+`,"mcpServers":[]`+more+`}`), &out); err != nil || out.ID == "" {
		e.t.Fatalf("no session: %v", err)
	}
	return out.ID
}

// prompt says something, and returns why the turn ended.
func (e *editorClient) prompt(session, words string) string {
	e.t.Helper()
	return stopOf(e.must("session/prompt", `{"sessionId":`+quote(session)+`,"prompt":[{"type":"text","text":`+quote(words)+`}]}`))
}

func stopOf(result json.RawMessage) string {
	var out promptOut
	_ = json.Unmarshal(result, &out) // "" else
	return out.Stop
}

func quote(s string) string {
	data, _ := json.Marshal(s) // a text always encodes
	return string(data)
}

// told returns the updates of a kind.
func (e *editorClient) told(kind string) (list []map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, u := range e.updates {
		var n struct {
			Update map[string]any `json:"update"`
		}
		if json.Unmarshal(u, &n) == nil && n.Update["sessionUpdate"] == kind {
			list = append(list, n.Update)
		}
	}
	return list
}

// words are the texts of the updates of a kind, put together.
func (e *editorClient) words(kind string) string {
	var b strings.Builder
	for _, u := range e.told(kind) {
		if c, ok := u["content"].(map[string]any); ok {
			s, _ := c["text"].(string)
			b.WriteString(s)
		}
	}
	return b.String()
}

// clear forgets what was told.
func (e *editorClient) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = nil
}

// faultsOf looks at a message of the server: at its shape, and by the official schema
// where that is there.
func faultsOf(method string, line []byte) (faults []string) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(line, &m); err != nil {
		return []string{err.Error()}
	}
	return append(shapeFaults(method, line), schemaFaults(method, m)...)
}

// shapeFaults looks at the shape of a message of the server.
func shapeFaults(method string, line []byte) (faults []string) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(line, &m); err != nil {
		return []string{err.Error()}
	}
	say := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf(format, args...)+fmt.Sprintf(": %.400s", line))
	}
	if string(m["jsonrpc"]) != `"2.0"` {
		say("jsonrpc is not 2.0")
	}
	for name := range m {
		if !slices.Contains([]string{"jsonrpc", "id", "method", "params", "result", "error"}, name) {
			say("a message has a field %s", name)
		}
	}
	kinds := 0
	for _, name := range []string{"method", "result", "error"} {
		if m[name] != nil {
			kinds++
		}
	}
	if kinds != 1 || m["method"] == nil && m["id"] == nil {
		say("neither a request nor an answer")
	}
	if m["method"] != nil && !slices.Contains([]string{
		"session/update", "session/request_permission", "fs/read_text_file", "fs/write_text_file", "elicitation/create", "$/cancel_request",
		"terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release",
	}, method) {
		say("the method %s is none of a client", method)
	}
	if method == "session/update" {
		var n struct {
			ID     string         `json:"sessionId"`
			Update map[string]any `json:"update"`
		}
		if err := json.Unmarshal(m["params"], &n); err != nil || n.ID == "" {
			say("an update of no session")
		}
		for _, field := range needed[fmt.Sprint(n.Update["sessionUpdate"])] {
			if n.Update[field] == nil {
				say("an update without %s", field)
			}
		}
		if needed[fmt.Sprint(n.Update["sessionUpdate"])] == nil {
			say("an update of no kind")
		}
	}
	return faults
}

// needed are the fields that updates have to have.
var needed = map[string][]string{
	"user_message_chunk": {"content"}, "agent_message_chunk": {"content"}, "agent_thought_chunk": {"content"},
	"tool_call": {"toolCallId", "title"}, "tool_call_update": {"toolCallId"}, "plan": {"entries"},
	"available_commands_update": {"availableCommands"}, "current_mode_update": {"currentModeId"},
	"config_option_update": {"configOptions"}, "session_info_update": {}, "usage_update": {"used", "size"},
	"notice": {"severity", "title"},
}
