package sdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

var update = flag.Bool("update", false, "rewrite what tests expect")

// world is a program for hosts: it keeps what it is told, and answers with what it was
// made with. It is safe for concurrent use.
type world struct {
	events chan agent.Event
	gone   chan struct{}

	mu    sync.Mutex
	past  []agent.Body    // what had happened before the host's time
	name  string          // of the session; others have no events; guarded by mu
	seq   int64           // guarded by mu
	sent  []agent.Command // guarded by mu
	asked []string        // of powers; guarded by mu
	over  bool            // guarded by mu
	tags  []string        // guarded by mu
	hold  chan struct{}   // what a change of the title waits for; nil = nothing
}

func newWorld() *world {
	return &world{events: make(chan agent.Event, 100_000), gone: make(chan struct{})}
}

func (w *world) Open(_ context.Context, o agent.Open) (agent.SessionInfo, error) {
	w.mu.Lock()
	w.name = o.New + o.Session
	w.mu.Unlock()
	w.emit(w.past...)
	return agent.SessionInfo{ID: o.New + o.Session, Model: "small-1", Head: int64(len(w.past))}, nil
}

func (w *world) Send(ctx context.Context, _ string, c agent.Command) error {
	if change, ok := c.(agent.Change); ok && change.Title != "" && w.hold != nil {
		select {
		case <-w.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.mu.Lock()
	w.sent = append(w.sent, c)
	w.mu.Unlock()
	switch c := c.(type) {
	case agent.Resolve:
		w.emit(agent.ApprovalResolved(c))
	case agent.Change:
		if c.Model == "none" {
			return errors.New("there is no model \"none\"")
		}
		if c.Tags != nil {
			w.mu.Lock()
			w.tags = *c.Tags
			w.mu.Unlock()
		}
		w.emit(agent.SettingsChanged{Model: c.Model, Mode: c.Mode, Title: c.Title, Tags: c.Tags})
	}
	return nil
}

// emit has something happen in the session.
func (w *world) emit(list ...agent.Body) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range list {
		w.seq++
		if !w.over {
			w.events <- agent.Event{Seq: w.seq, ID: fmt.Sprint("ev_", w.seq), Time: time.UnixMilli(0).UTC(), Body: b}
		}
	}
}

func (w *world) Events(ctx context.Context, id string, _ int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		if !w.is(id) {
			return
		}
		for {
			select {
			case e := <-w.events:
				if !yield(e, nil) {
					return
				}
			case <-w.gone:
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// is reports whether a session is the one that was opened.
func (w *world) is(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return id == w.name
}

func (w *world) Close(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.over = true
		close(w.gone)
	}
	return nil
}

func (w *world) Query(_ context.Context, q agent.Query) (any, error) {
	switch q := q.(type) {
	case query.ListCommands:
		return []query.CommandInfo{
			{Name: "clear", Description: "Begins anew", Kind: query.CommandBuiltIn},
			{Name: "greet", Description: "Greets", Hint: "[who]", Kind: query.CommandCustom},
			{Name: "review", Description: "Reviews", Kind: query.CommandSkill},
		}, nil
	case query.ListAgents:
		return []query.AgentInfo{{Name: "Explore", Description: "Looks around", State: "active"}, {Name: "odd", State: "invalid"}}, nil
	case query.ListModels:
		return []agent.ModelInfo{{ID: "small-1", Provider: "here", Name: "Small", Thinking: "budget"}, {ID: "far-1", Provider: "there"}}, nil
	case query.ListProviders:
		return []query.ProviderInfo{{Name: "here", Key: "env"}, {Name: "there"}}, nil
	case agent.ContextUsage:
		return agent.ContextReport{Model: "small-1", Used: 300, Window: 1000, Ratio: 0.3, Parts: []agent.ContextPart{
			{Name: "system_prompt", Tokens: 100, Parts: []agent.ContextPart{{Name: "role", Tokens: 100}}},
			{Name: "messages", Tokens: 200},
			{Name: "autocompact_buffer", Tokens: 100},
			{Name: "free_space", Tokens: 600},
		}}, nil
	case query.ListMemory:
		return query.MemoryReport{Files: []query.MemoryFile{{Path: "/w/CLAUDE.md", Scope: "project", State: "active", Chars: 40}, {Path: "/x", Scope: "user", State: "excluded"}}}, nil
	case query.ListHooks:
		return query.HookReport{Hooks: []query.HookInfo{{Event: "PreToolUse", Matcher: "Bash", Type: "callback", Run: "hook_0", Seconds: 60, Layer: "host", Source: "host"}}}, nil
	case query.RuleChange:
		w.note("%s %s %v %s", q.Change, q.Verdict, q.Rules, q.Scope)
		if slices.Contains(q.Rules, "*") {
			return nil, errors.New("nobody can hold that")
		}
		return query.RuleEdited{}, nil
	case query.FolderRule:
		if q.Dir == "" {
			return nil, errors.New("a folder has to have a path")
		}
		return "Read(/" + q.Dir + "/**)", nil
	case query.ListRules:
		return query.RuleReport{Mode: agent.ModeDefault, Rules: []query.RuleInfo{{Rule: "Bash(rm *)", Verdict: agent.Deny, Layer: "user"}, {Rule: "Read", Verdict: agent.Allow, Layer: "session", Off: true}}}, nil
	case query.Diff:
		return query.DiffReport{Added: 3, Removed: 1}, nil
	case query.PlanRewind:
		return query.RewindPlan{Added: 1, Removed: 2, Files: []query.RewindItem{
			{FileDiff: query.FileDiff{Path: "a.txt"}, Action: "restore"}, {FileDiff: query.FileDiff{Path: "b", Kind: "link"}, Conflict: "refused"},
		}}, nil
	case query.CompleteMention:
		return []string{q.Typed + ".go"}, nil
	case query.ListPlugins:
		return []query.PluginInfo{{Name: "good", Source: "folder", Version: "1.0.0", Enabled: true}, {Name: "bad", Enabled: true, Problem: "x"}, {Name: "off"}}, nil
	case query.ReadCommand:
		name, rest, _ := strings.Cut(strings.TrimPrefix(q.Text, "/"), " ")
		switch name {
		case "clear", "context", "cost", "quit":
			return query.CommandRead{Is: query.ReadRun, Kind: query.CommandBuiltIn, Name: name, Arguments: rest}, nil
		case "broken":
			return query.CommandRead{Is: query.ReadRefuse, Kind: query.CommandCustom, Name: name, Why: "its file is no text"}, nil
		case "gret":
			return query.CommandRead{Is: query.ReadUnknown, Name: name, Near: []string{"greet"}}, nil
		}
		return query.CommandRead{Is: query.ReadSend}, nil
	case agent.FindSession:
		if !w.is(q.Name) {
			return agent.SessionInfo{ID: q.Name}, nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return agent.SessionInfo{ID: q.Name, Head: w.seq, Tags: w.tags}, nil
	case query.ListTools:
		return query.ToolReport{}, nil
	case query.ServersNow:
		return []query.ServerNow{
			{Name: "in", State: "connected", Title: "in", Version: "1", Scope: "given", Type: "sdk", Tools: []query.ServerToolNow{{Name: "t", Description: "Does it", ReadOnly: true}}},
			{Name: "out", State: "failed", Problem: "it ended", Scope: "project", Type: "stdio", Run: "node server.js"},
		}, nil
	case query.ConnectServer:
		if q.Do != query.ServerReconnect {
			w.note("toggle %s %v", q.Server, q.Do == query.ServerEnable)
		}
		return []query.ServerNow{}, known404(q.Server)
	case query.SetServers:
		w.note("set %s", q.Servers)
		return query.ServersSet{Added: []string{"new"}, Removed: []string{}, Errors: map[string]string{}}, nil
	case query.ReadServer:
		return agent.OK("what it says"), nil
	case query.ListSettings:
		return []query.Setting{
			{Key: "model", Value: json.RawMessage(`"small-1"`), Origin: query.SettingOrigin{Layer: "user"}},
			{Key: "permissions.deny", Value: json.RawMessage(`["Bash"]`), Origin: query.SettingOrigin{Layer: "managed"}},
		}, nil
	case query.ChangeSetting:
		w.note("save %s %s %s", q.Scope, q.Key, q.Value)
		return query.SettingChange{}, nil
	case query.ListServers:
		return query.ServerReport{}, nil
	}
	return nil, errors.New("nobody knows")
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, fmt.Sprintf(format, args...))
}

func (w *world) CallTool(_ context.Context, _, tool string, input json.RawMessage) (agent.Result, error) {
	w.note("call %s %s", tool, input)
	switch tool {
	case "mcp__s__broken":
		return agent.Failure(agent.ErrTool, "it broke", ""), nil
	case outputTool:
		return agent.OK("job_1: running\nline one\n"), nil
	}
	return agent.OK("done"), nil
}

func known404(name string) error {
	if name == "nobody" {
		return errors.New("there is no MCP server \"nobody\"")
	}
	return nil
}

func (w *world) HearServer(server string, message []byte) error {
	w.note("heard %s %s", server, message)
	return known404(server)
}

func (w *world) ReadFile(_, path string, most int64) (query.FileText, error) {
	if path != "a.txt" {
		return query.FileText{}, fmt.Errorf("%s is outside of the folders of this session", path)
	}
	data := []byte("한 줄\n")
	return query.FileText{Path: "/w/a.txt", Data: data[:min(int64(len(data)), most)], Cut: int64(len(data)) > most}, nil
}

func (w *world) SawFile(_, path string, at time.Time) error {
	w.note("saw %s %d", path, at.UnixMilli())
	return nil
}

func (w *world) SetThinking(_ string, tokens *int) error {
	w.note("thinks %v", tokens != nil)
	return nil
}

func (w *world) ApplySettings(settings json.RawMessage, try bool) error {
	if !try {
		w.note("apply %s", settings)
	}
	if strings.Contains(string(settings), "cleanupPeriodDays") {
		return errors.New("cleanupPeriodDays cannot be changed while a session runs")
	}
	return nil
}

func (w *world) Below(_, path string) error {
	if path != "/w/sub" {
		return fmt.Errorf("%s is not below the folders of this session", path)
	}
	return nil
}

func (w *world) Reload(string, bool, bool) error { return nil }

// desk is a host on a program of this world.
type desk struct {
	t    testing.TB
	w    *world
	h    *Host
	in   *io.PipeWriter
	out  *bufio.Reader
	code chan int
}

func newDesk(t testing.TB) *desk { return newDeskOn(t, newWorld(), agent.Open{}) }

func newDeskOn(t testing.TB, w *world, o agent.Open, edits ...func(*Config)) *desk {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	d := &desk{t: t, w: w, in: inW, out: bufio.NewReaderSize(outR, 1<<20), code: make(chan int, 1)}
	c := Config{
		Options: Options{Lines: true}, In: inR, Out: outW, Err: io.Discard, Now: time.Now, Text: text.For("en"),
		Start: func(context.Context, *Initialize) (Program, error) {
			return Program{
				Client: client.New(d.w), Open: o, Version: "2.1.328", Workdir: "/w", Name: func(s string) string { return s }, Asks: true, KeySource: "none",
				API: d.w, Protocol: "2025-11-25",
			}, nil
		},
	}
	for _, edit := range edits {
		edit(&c)
	}
	d.h = New(c)
	go func() { // ends with the input
		d.code <- d.h.Run(context.Background())
		_ = outW.Close()
	}()
	t.Cleanup(func() {
		d.w.emit(agent.TurnEnded{Turn: "t", Reason: agent.EndDone}) // of one that a test has left open
		_ = inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }() // until the host ends
		select {
		case <-d.code:
		case <-time.After(30 * time.Second):
			t.Error("the host does not end")
		}
	})
	return d
}

// say sends a line.
func (d *desk) say(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, line+"\n"); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) request(id, request string) {
	d.t.Helper()
	d.say(`{"type":"control_request","request_id":"` + id + `","request":` + request + `}`)
}

// next is the next line that is of a type.
func (d *desk) next(kind string) map[string]json.RawMessage {
	d.t.Helper()
	for {
		line, err := d.out.ReadBytes('\n')
		if err != nil {
			d.t.Fatalf("the output ends before a %s", kind)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(line, &m); err != nil {
			d.t.Fatalf("%s: %v", line, err)
		}
		if string(m["type"]) == `"`+kind+`"` {
			return m
		}
	}
}

// commands waits until so many commands have come, and returns them.
func (d *desk) commands(n int) []agent.Command {
	d.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		d.w.mu.Lock()
		sent := slices.Clone(d.w.sent)
		d.w.mu.Unlock()
		if len(sent) >= n {
			return sent
		}
		select {
		case <-tick.C:
		case <-deadline:
			d.t.Fatalf("%d commands have come: %+v", len(sent), sent)
		}
	}
}

// Each request of testdata/requests.txt has the answer that stands under it.
func TestRequests(t *testing.T) {
	const path = "testdata/requests.txt"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	var got strings.Builder
	n, asked := 0, map[string]bool{}
	for line := range strings.Lines(string(data)) {
		req, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
		if !ok {
			if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
				got.WriteString(line)
			}
			continue
		}
		n++
		var head struct{ Subtype string }
		if err := json.Unmarshal([]byte(req), &head); err != nil {
			t.Fatalf("%s: %v", req, err)
		}
		asked[head.Subtype] = true
		fmt.Fprintf(&got, "> %s\n< %s\n", req, d.answer(fmt.Sprint("r", n), req))
	}
	for name := range controls() {
		if !asked[name] {
			t.Errorf("%s is not asked", name)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got.String() != string(data) {
		t.Errorf("the answers are others (-update rewrites them):\n%s", got.String())
	}
}

// answer is what a request is answered.
func (d *desk) answer(id, req string) []byte {
	d.t.Helper()
	d.request(id, req)
	var r answered
	if err := json.Unmarshal(d.next("control_response")["response"], &r); err != nil || r.RequestID != id {
		d.t.Fatalf("%s: %+v, %v", req, r, err)
	}
	if r.Subtype != "success" {
		return []byte(strings.TrimSpace("error: " + strings.ReplaceAll(r.Error, "\n", " ") + " " + r.Code))
	}
	answer, _ := marshal(r.Response) // it was read from JSON
	return bytes.TrimSpace(answer)
}

// asks is a question about a call.
func asks(id, tool, input string) agent.ApprovalAsked {
	return agent.ApprovalAsked{
		ID: id, Reason: "mode default", Proposal: agent.Proposal{Call: agent.Call{ID: "c" + id, Tool: tool, Input: json.RawMessage(input)}},
		Choices: []agent.Choice{{Remember: agent.RememberSession, Rules: []string{"Bash(ls *)"}}, {Remember: agent.RememberAlways, Rules: []string{"Bash(ls *)", "Read"}}},
	}
}

// wish is a yes of a host that wants more to hold.
func wish(updates string) string {
	return `{"behavior":"allow","updatedPermissions":[` + updates + `]}`
}

// What a host answers to a question about a call, and what becomes of it.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, tool, input, answer, want string }{
		{"allow", "Bash", `{"command":"ls"}`, `{"behavior":"allow","updatedInput":{"command":"ls"},"toolUseID":"x"}`, `{"verdict":"allow","by":"host"}`},
		{"other input", "Bash", `{"command":"ls"}`, `{"behavior":"allow","updatedInput":{"command":"ls -l"}}`, `{"verdict":"allow","by":"host","input":{"command":"ls -l"}}`},
		{"deny", "Bash", `{}`, `{"behavior":"deny","message":"no"}`, `{"verdict":"deny","reason":"no","by":"host"}`},
		{"interrupt", "Bash", `{}`, `{"behavior":"deny","message":"no","interrupt":true}`, `{"verdict":"deny","reason":"no","by":"host","stop":true} + interrupt`},
		{"no word", "Bash", `{}`, `{}`, `{"verdict":"deny","reason":"it needs approval, and the host answered with \"\": it has to be allow or deny","by":"host"}`},
		{"garbage", "Bash", `{}`, `"yes"`, `{"verdict":"deny","reason":"it needs approval, and the answer of the host is no object that can be read","by":"host"}`},
		{"input no object", "Bash", `{}`, `{"behavior":"allow","updatedInput":"ls"}`, `{"verdict":"deny","reason":"it needs approval, and the updatedInput of the host cannot be used: it is no object","by":"host"}`},
		{"for the session", "Bash", `{}`, `{"behavior":"allow","updatedPermissions":[{"type":"addRules","behavior":"allow","destination":"session","rules":[{"toolName":"Bash","ruleContent":"ls *"}]}]}`, `{"verdict":"allow","by":"host"} session [Bash(ls *)]`},
		{"for ever", "Bash", `{}`, `{"behavior":"allow","updatedPermissions":[{"type":"addRules","behavior":"allow","destination":"localSettings","rules":[{"toolName":"Read"}]}]}`, `{"verdict":"allow","by":"host"} always [Read]`},
		{"both", "Bash", `{}`, `{"behavior":"allow","updatedPermissions":[{"type":"addRules","behavior":"allow","destination":"localSettings","rules":[{"toolName":"Read"}]},{"type":"addRules","behavior":"allow","destination":"session","rules":[{"toolName":"Bash"}]}]}`, `{"verdict":"allow","by":"host"} session [Read Bash]`},
		{"rules that deny", "Bash", `{}`, wish(`{"type":"addRules","behavior":"deny","destination":"session","rules":[{"toolName":"Read"}]}`), `add deny [Read] session + {"verdict":"allow","by":"host"}`},
		{"rules that ask, in a file", "Bash", `{}`, wish(`{"type":"addRules","behavior":"ask","destination":"userSettings","rules":[{"toolName":"Bash","ruleContent":"git push *"}]}`), `add ask [Bash(git push *)] user + {"verdict":"allow","by":"host"}`},
		{"rules that deny are replaced", "Bash", `{}`, wish(`{"type":"replaceRules","behavior":"deny","destination":"session","rules":[{"toolName":"Read"},{"toolName":"Edit"}]}`), `replace deny [Read Edit] session + {"verdict":"allow","by":"host"}`},
		{"rules that deny cannot be held", "Bash", `{}`, wish(`{"type":"addRules","behavior":"deny","destination":"session","rules":[{"toolName":"*"}]}`), `add deny [*] session + {"verdict":"deny","reason":"it needs approval, and updatedPermissions of the host cannot hold: nobody can hold that","by":"host"}`},
		{"rules that allow are replaced", "Bash", `{}`, wish(`{"type":"replaceRules","behavior":"allow","destination":"session","rules":[{"toolName":"Bash"}]}`), `revoke [Read] + {"verdict":"allow","by":"host"} session [Bash]`},
		{"taken back", "Bash", `{}`, wish(`{"type":"removeRules","behavior":"allow","destination":"session","rules":[{"toolName":"Bash","ruleContent":"ls *"}]},{"type":"removeRules","behavior":"deny","destination":"session","rules":[{"toolName":"Read"}]}`), `remove deny [Read] session + revoke [Bash(ls *)] + {"verdict":"allow","by":"host"}`},
		{"taken back for good", "Bash", `{}`, wish(`{"type":"removeRules","behavior":"allow","destination":"localSettings","rules":[{"toolName":"Bash"}]}`), `remove allow [Bash] local + revoke [Bash] + {"verdict":"allow","by":"host"}`},
		{"folders", "Bash", `{}`, wish(`{"type":"addDirectories","destination":"session","directories":["/a","/b"]}`), `{"verdict":"allow","by":"host"} session [Read(//a/**) Read(//b/**)]`},
		{"folders for ever", "Bash", `{}`, wish(`{"type":"addDirectories","destination":"localSettings","directories":["/a"]}`), `{"verdict":"allow","by":"host"} always [Read(//a/**)]`},
		{"folders taken back", "Bash", `{}`, wish(`{"type":"removeDirectories","destination":"session","directories":["/a"]}`), `revoke [Read(//a/**)] + {"verdict":"allow","by":"host"}`},
		{"no folder", "Bash", `{}`, wish(`{"type":"addDirectories","destination":"session","directories":[""]}`), `{"verdict":"deny","reason":"it needs approval, and updatedPermissions of the host cannot hold: a folder has to have a path","by":"host"}`},
		{"no such update", "Bash", `{}`, wish(`{"type":"forbidAll","destination":"session"}`), `{"verdict":"deny","reason":"it needs approval, and updatedPermissions of the host cannot hold: there is no update \"forbidAll\"","by":"host"}`},
		{"no such verdict", "Bash", `{}`, wish(`{"type":"addRules","behavior":"never","destination":"session","rules":[{"toolName":"Read"}]}`), `{"verdict":"deny","reason":"it needs approval, and updatedPermissions of the host cannot hold: there are no rules that say \"never\"","by":"host"}`},
		{"no such destination", "Bash", `{}`, wish(`{"type":"addRules","behavior":"deny","destination":"moon","rules":[{"toolName":"Read"}]}`), `{"verdict":"deny","reason":"it needs approval, and updatedPermissions of the host cannot hold: there is no destination \"moon\"","by":"host"}`},
		{"no tool", "Bash", `{}`, wish(`{"type":"addRules","behavior":"deny","destination":"session","rules":[{}]}`), `{"verdict":"deny","reason":"it needs approval, and updatedPermissions of the host cannot hold: a rule has no toolName","by":"host"}`},
		{"a mode that the program did not begin with", "Bash", `{}`, wish(`{"type":"setMode","mode":"bypassPermissions","destination":"session"}`), `{"verdict":"allow","by":"host"}`},
		{"taken back with a no", "Bash", `{}`, `{"behavior":"deny","message":"no","updatedPermissions":[{"type":"removeRules","behavior":"allow","destination":"session","rules":[{"toolName":"Bash"}]}]}`, `{"verdict":"deny","reason":"no","by":"host"}`},
		{"mode", "Bash", `{}`, `{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}]}`, `mode acceptEdits + {"verdict":"allow","by":"host"}`},
		{"a question rewritten", askTool, `{"questions":[{"question":"A?"}]}`, `{"behavior":"allow","updatedInput":{"questions":[{"question":"B?"}]}}`, `{"verdict":"allow","by":"host"}`},
		{"answers to no question", askTool, `[]`, `{"behavior":"allow","updatedInput":{"answers":{"A?":"yes"}}}`, `{"verdict":"deny","reason":"it needs approval, and the updatedInput of the host cannot be used: the question is no object","by":"host"}`},
		{"answers", askTool, `{"questions":[{"question":"A?"}]}`, `{"behavior":"allow","updatedInput":{"questions":[],"answers":{"A?":"yes"},"more":1}}`, `{"verdict":"allow","by":"host","input":{"answers":{"A?":"yes"},"questions":[{"question":"A?"}]}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			d.request("i", `{"subtype":"initialize"}`)
			d.next("control_response")
			d.w.emit(agent.TurnStarted{Turn: "t"}, asks("1", tt.tool, tt.input))
			q := d.next("control_request")
			d.say(`{"type":"control_response","response":{"subtype":"success","request_id":` + string(q["request_id"]) + `,"response":` + tt.answer + `}}`)
			want := strings.Split(tt.want, " + ")
			n := len(want)
			if f := strings.Fields(want[0]); slices.Contains([]string{query.RulesAdded, query.RulesRemoved, query.RulesReplaced}, f[0]) {
				n--
			}
			sent := d.commands(n)
			d.w.mu.Lock()
			all := slices.Clone(d.w.asked)
			d.w.mu.Unlock()
			for _, c := range sent {
				switch c := c.(type) {
				case agent.Resolve:
					data, _ := marshal(c.Decision) // it always encodes
					s := strings.TrimSpace(string(data))
					if c.Remember != "" {
						s += fmt.Sprintf(" %s %v", c.Remember, c.Rules)
					}
					all = append(all, s)
				case agent.Change:
					all = append(all, "mode "+string(c.Mode))
				case agent.Revoke:
					all = append(all, fmt.Sprint("revoke ", c.Rules))
				default:
					all = append(all, c.Command())
				}
			}
			if got := strings.Join(all, " + "); got != tt.want {
				t.Errorf("\n%s, want\n%s", got, tt.want)
			}
		})
	}
}

// What a host is asked about a call says all that it needs.
func TestQuestion(t *testing.T) {
	d := newDesk(t)
	d.request("i", `{"subtype":"initialize"}`)
	d.next("control_response")
	a := asks("1", "Bash", `{"command":"ls","description":"Lists"}`)
	a.Child, a.Rule = "kid", "Bash"
	d.w.emit(agent.TurnStarted{Turn: "t"}, a)
	const want = `{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls","description":"Lists"},"tool_use_id":"c1","permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls *"}],"behavior":"allow","destination":"session"},{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls *"},{"toolName":"Read"}],"behavior":"allow","destination":"localSettings"}],"decision_reason":"mode default","decision_reason_type":"rule","display_name":"Bash","description":"Lists","agent_id":"kid"}`
	if got := string(d.next("control_request")["request"]); got != want {
		t.Errorf("\n%s, want\n%s", got, want)
	}
}

// Of a tool of a server, the host is told whose it is.
func TestQuestionOfAServer(t *testing.T) {
	d := newDesk(t)
	d.request("i", `{"subtype":"initialize"}`)
	d.next("control_response")
	d.w.emit(agent.TurnStarted{Turn: "t"}, asks("1", "mcp__out__t", `{}`))
	if got := string(d.next("control_request")["request"]); !strings.Contains(got, `"mcp_server":{"name":"out","source":"project"}`) {
		t.Errorf("%s", got)
	}
}

// A question that somebody else has answered is taken back, and an answer that comes all
// the same changes nothing.
func TestQuestionIsMoot(t *testing.T) {
	d := newDesk(t)
	d.request("i", `{"subtype":"initialize"}`)
	d.next("control_response")
	d.w.emit(agent.TurnStarted{Turn: "t"}, asks("1", "Bash", `{}`))
	q := d.next("control_request")
	d.w.emit(agent.ApprovalResolved{ID: "1", Decision: agent.Decision{Verdict: agent.Allow}})
	if c := d.next("control_cancel_request"); string(c["request_id"]) != string(q["request_id"]) {
		t.Errorf("%s was taken back", c["request_id"])
	}
	d.say(`{"type":"control_response","response":{"subtype":"success","request_id":` + string(q["request_id"]) + `,"response":{"behavior":"deny","message":"late"}}}`)
	d.request("m", `{"subtype":"rename_session","title":"T"}`) // behind it
	d.next("control_response")
	for _, c := range d.commands(1) {
		if r, ok := c.(agent.Resolve); ok {
			t.Errorf("the late answer was taken: %+v", r)
		}
	}
}

// Where the host cannot answer any more, what waits for it is denied as nobody's answer.
func TestQuestionBehindTheEnd(t *testing.T) {
	d := newDesk(t)
	d.request("i", `{"subtype":"initialize"}`)
	d.next("control_response")
	d.w.emit(agent.TurnStarted{Turn: "t"}, asks("1", "Bash", `{}`))
	d.next("control_request")
	_ = d.in.Close() // it is a pipe
	r, ok := d.commands(1)[0].(agent.Resolve)
	if !ok || r.Decision.Verdict != agent.Deny || r.Decision.Code != agent.ErrApprovalTimeout || r.ID != "1" {
		t.Errorf("%+v", r)
	}
	d.w.emit(asks("2", "Bash", `{}`))
	if r, ok := d.commands(2)[1].(agent.Resolve); !ok || r.ID != "2" || r.Decision.Code != agent.ErrApprovalTimeout {
		t.Errorf("%+v", r)
	}
	d.w.emit(agent.TurnEnded{Turn: "t", Reason: agent.EndDone})
	d.next("result")
}

// A question that was open before the host's time is put to it, and one that was answered
// is not.
func TestQuestionOfBefore(t *testing.T) {
	w := newWorld()
	w.past = []agent.Body{
		agent.TurnStarted{Turn: "t"}, asks("1", "Bash", `{}`), agent.ApprovalResolved{ID: "1"}, asks("2", "Bash", `{}`), agent.SettingsChanged{Title: "T"},
	}
	d := newDeskOn(t, w, agent.Open{Session: "s1"})
	d.request("i", `{"subtype":"initialize"}`)
	q := d.next("control_request")
	if !strings.Contains(string(q["request"]), `"tool_use_id":"c2"`) {
		t.Errorf("%s", q["request"])
	}
	d.say(`{"type":"control_response","response":{"subtype":"success","request_id":` + string(q["request_id"]) + `,"response":{"behavior":"allow"}}}`)
	if r, ok := d.commands(1)[0].(agent.Resolve); !ok || r.ID != "2" || r.Decision.Verdict != agent.Allow {
		t.Errorf("%+v", r)
	}
}

// What the session asks of hooks and servers of the host, and of its user.
func TestAsksOfTheHost(t *testing.T) {
	d := newDesk(t)
	d.request("i", `{"subtype":"initialize"}`)
	d.next("control_response")
	for _, tt := range []struct {
		ask                func() (any, error)
		want, answer, says string
	}{
		{
			func() (any, error) {
				b, err := d.h.Callback(t.Context(), "hook_0", []byte(`{"x":1}`), "c1")
				return string(b), err
			},
			`{"subtype":"hook_callback","callback_id":"hook_0","input":{"x":1},"tool_use_id":"c1"}`, `{"continue":true}`, `{"continue":true}`,
		},
		{
			func() (any, error) {
				b, err := d.h.Message(t.Context(), "in", []byte(`{"jsonrpc":"2.0"}`))
				return string(b), err
			},
			`{"subtype":"mcp_message","server_name":"in","message":{"jsonrpc":"2.0"}}`, `{"mcp_response":{"id":1}}`, `{"id":1}`,
		},
		{
			func() (any, error) { return d.h.Message(t.Context(), "in", []byte(`{}`)) },
			`{"subtype":"mcp_message","server_name":"in","message":{}}`, `{}`, "error: the host has answered without an mcp_response",
		},
		{
			func() (any, error) {
				a, c, err := d.h.Elicit(t.Context(), "in", "Who?", "", "", json.RawMessage(`{"type":"object"}`))
				return fmt.Sprint(a, c), err
			},
			`{"subtype":"elicitation","mcp_server_name":"in","message":"Who?","mode":"form","requested_schema":{"type":"object"}}`, `{"action":"accept","content":{"name":"x"}}`, "acceptmap[name:x]",
		},
		{
			func() (any, error) {
				a, _, err := d.h.Elicit(t.Context(), "in", "Look", "https://a.b", "e1", nil)
				return a, err
			},
			`{"subtype":"elicitation","mcp_server_name":"in","message":"Look","mode":"url","url":"https://a.b","elicitation_id":"e1"}`, `{"action":"perhaps"}`,
			`error: the host answered with the action "perhaps": it has to be accept, decline or cancel`,
		},
	} {
		said := make(chan string, 1)
		go func() {
			v, err := tt.ask()
			if err != nil {
				said <- "error: " + err.Error()
				return
			}
			said <- fmt.Sprint(v)
		}()
		q := d.next("control_request")
		if string(q["request"]) != tt.want {
			t.Errorf("\n%s, want\n%s", q["request"], tt.want)
		}
		d.say(`{"type":"control_response","response":{"subtype":"success","request_id":` + string(q["request_id"]) + `,"response":` + tt.answer + `}}`)
		if got := <-said; got != tt.says {
			t.Errorf("%s, want %s", got, tt.says)
		}
	}
}

// Every request is answered, and once, whatever their IDs and however many come at once.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	const n = 10_000
	d := newDesk(t)
	kinds := []string{
		`{"subtype":"mcp_status"}`, `{"subtype":"levitate"}`, `{"subtype":"get_context_usage"}`, `{"subtype":"read_file","path":"a.txt"}`, `{"subtype":"set_model","model":"none"}`,
		`{"subtype":"list_models"}`, `[]`, `{"subtype":7}`, `{}`,
	}
	ids := rand.New(rand.NewPCG(1, 2)).Perm(n)
	go func() {
		for i, id := range ids {
			_, _ = fmt.Fprintf(d.in, `{"type":"control_request","request_id":"q%d","request":%s}`+"\n", id, kinds[i%len(kinds)]) // a failure ends the reading below
		}
	}()
	seen := map[string]bool{}
	for range n {
		var r answered
		if err := json.Unmarshal(d.next("control_response")["response"], &r); err != nil || seen[r.RequestID] {
			t.Fatalf("%+v, %v", r, err)
		}
		seen[r.RequestID] = true
	}
}

// What a host says of itself, and what it is told of it.
func TestInitialize(t *testing.T) {
	for _, tt := range []struct{ request, want string }{
		{`{"hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h0","h1"],"timeout":5,"onFailure":"block"}]}}`, `{"PreToolUse":[{"hooks":[{"callback":"h0","onFailure":"block","timeout":5,"type":"callback"},{"callback":"h1","onFailure":"block","timeout":5,"type":"callback"}],"matcher":"Bash"}]}`},
		{`{}`, ``},
		{`{"hooks":{"Stop":[{"onFailure":"explode"}]}}`, `error: initialize: onFailure of a hook of Stop is "explode": it has to be continue or block`},
	} {
		init, err := parseInitialize([]byte(tt.request))
		got := ""
		if err == nil {
			var data json.RawMessage
			data, err = init.HookSettings()
			got = string(data)
		}
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.request, got, tt.want)
		}
	}
	init, err := parseInitialize([]byte(`{"sdkMcpServers":["a","b","c"],"sdkMcpServerConfigs":{"a":{"timeout":1500}},"sdkMcpServerManifests":{
		"a":{"initializeResult":{"protocolVersion":"2025-11-25","capabilities":{}},"toolsListResult":{"tools":[]}},
		"b":{"initializeResult":{"protocolVersion":"2024-11-05","capabilities":{}}},"c":{"initializeResult":[]},"d":{"initializeResult":{}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(init.Parking("2025-11-25")); got != "map[a:parked b:protocol_version_mismatch c:malformed d:not_honoured]" {
		t.Error(got)
	}
	if got := init.CallTime("a"); got != 1500*time.Millisecond {
		t.Error(got)
	}
}

// Whatever the members of a request are, it is answered once, and the next one too.
func FuzzRequests(f *testing.F) {
	for name := range controls() {
		f.Add(name, `"title":"x","mode":"plan","model":"m","path":"a.txt","serverName":"s"`)
	}
	f.Add("initialize", `"hooks":{"PreToolUse":[{"hookCallbackIds":["a"]}]},"sdkMcpServerManifests":{"x":{}}`)
	f.Add("interrupt", `"cancel_queued":true`)
	f.Add("mcp_call", `"tool":"mcp__s__t","timeout_ms":-1,"expires_at":"x"`)
	f.Add("apply_flag_settings", `"settings":{"permissions":7,"model":{},"effortLevel":[]}`)
	f.Fuzz(func(t *testing.T, name, members string) {
		subtype, _ := json.Marshal(name) // a text always encodes
		body := `{"subtype":` + string(subtype) + `,` + members + `}`
		if !json.Valid([]byte(body)) || strings.Contains(body, "\n") {
			body = `{"subtype":` + string(subtype) + `}`
		}
		d := newDesk(t)
		for _, id := range []string{"one", "two"} {
			d.request(id, body)
		}
		var ids []string
		for range 2 {
			var r answered
			if err := json.Unmarshal(d.next("control_response")["response"], &r); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.RequestID)
		}
		if slices.Sort(ids); !slices.Equal(ids, []string{"one", "two"}) {
			t.Errorf("answered are %q", ids)
		}
	})
}
