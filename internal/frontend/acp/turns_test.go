package acp

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"dure/agent"
	"dure/client"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// All kinds of content reach the model: words as they are, what is embedded as documents,
// what is linked to as a person's mention would be.
func TestContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Reply{Text: "ok"})
	for name, content := range map[string]string{"a b.txt": "SPACED\n", "lines.txt": "L1\nL2\nL3\nL4\n"} {
		if err := os.WriteFile(filepath.Join(w.work, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := w.connect(`{}`)
	id := e.open(w.work, "")
	const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	e.must("session/prompt", `{"sessionId":`+quote(id)+`,"prompt":[
		{"type":"text","text":"look at"},
		{"type":"resource_link","uri":"file://`+w.work+`/a%20b.txt","name":"a b.txt"},
		{"type":"text","text":" and"},
		{"type":"resource_link","uri":"file://`+w.work+`/lines.txt#L2:3","name":"lines.txt"},
		{"type":"resource","resource":{"uri":"file:///x/unsaved.go","text":"EMBEDDED @/etc/hostname"}},
		{"type":"resource_link","uri":"zed:///thread/1","name":"thread"},
		{"type":"image","data":"`+dot+`","mimeType":"image/png"}]}`)
	requests := w.model.Requests()
	body := string(requests[len(requests)-1].Body)
	for _, want := range []string{"SPACED", "L2", "L3", "EMBEDDED @/etc/hostname", "unsaved.go", "zed:///thread/1", `image/png`} {
		if !strings.Contains(body, want) {
			t.Errorf("the model has not got %s", want)
		}
	}
	if strings.Contains(body, "L4") {
		t.Error("the model has got lines that were not named")
	}
	if name, err := os.ReadFile("/etc/hostname"); err == nil && strings.Contains(body, "attached file=\\\"/etc/hostname") {
		t.Errorf("what was embedded has had a file read: %s", name)
	}
}

// A turn is cancelled while the model answers, while a person is asked and before it has
// begun; what was asked is taken back.
func TestCancel(t *testing.T) {
	t.Parallel()
	t.Run("while the model answers", func(t *testing.T) {
		w := newWorld(t, script.Reply{Text: strings.Repeat("word ", 2000), DelayMS: 20})
		e := w.connect(`{}`)
		id := e.open(w.work, "")
		turn := e.send("session/prompt", `{"sessionId":`+quote(id)+`,"prompt":[{"type":"text","text":"go"}]}`)
		e.wait("words", func() bool { return strings.Contains(e.shown(), "agent_message_chunk") })
		e.line(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + quote(id) + `}}`)
		if got := e.got(turn); got.Error != nil || stopOf(got.Result) != stopCancelled {
			t.Errorf("%+v", got)
		}
	})
	t.Run("by its request", func(t *testing.T) {
		w := newWorld(t, script.Reply{Text: strings.Repeat("word ", 2000), DelayMS: 20}, script.Reply{Text: "again"})
		e := w.connect(`{}`)
		id := e.open(w.work, "")
		turn := e.send("session/prompt", `{"sessionId":`+quote(id)+`,"prompt":[{"type":"text","text":"go"}]}`)
		e.wait("words", func() bool { return strings.Contains(e.shown(), "agent_message_chunk") })
		e.line(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` + turn + `}}`)
		if got := e.got(turn); got.Error == nil || got.Error.Code != codeCancelled {
			t.Errorf("%+v", got)
		}
		if stop := e.prompt(id, "again"); stop != stopEnd {
			t.Errorf("the next turn: %s", stop)
		}
	})
	t.Run("before it has begun", func(t *testing.T) {
		w := newWorld(t, script.Reply{Text: strings.Repeat("word ", 2000), DelayMS: 20})
		e := w.connect(`{}`)
		id := e.open(w.work, "")
		turn := e.send("session/prompt", `{"sessionId":`+quote(id)+`,"prompt":[{"type":"text","text":"go"}]}`)
		e.line(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + quote(id) + `}}`)
		if got := e.got(turn); got.Error != nil || stopOf(got.Result) != stopCancelled {
			t.Errorf("%+v", got)
		}
	})
	t.Run("while a person is asked", func(t *testing.T) {
		w := newWorld(t, script.Reply{Calls: []script.Call{makes("c1", "Write", `{"file_path":"made.txt","content":"x"}`)}}, script.Reply{Text: "no"})
		e := w.connect(`{}`)
		asked, answer := make(chan struct{}), make(chan struct{})
		var once sync.Once
		e.on = func(string, json.RawMessage) (any, *wireError) {
			once.Do(func() { close(asked) })
			<-answer
			return map[string]any{"outcome": map[string]string{"outcome": "cancelled"}}, nil
		}
		id := e.open(w.work, "")
		turn := e.send("session/prompt", `{"sessionId":`+quote(id)+`,"prompt":[{"type":"text","text":"go"}]}`)
		<-asked
		e.line(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + quote(id) + `}}`)
		got := e.got(turn)
		close(answer)
		if got.Error != nil || stopOf(got.Result) != stopCancelled {
			t.Errorf("%+v", got)
		}
		if _, err := os.Stat(filepath.Join(w.work, "made.txt")); err == nil {
			t.Error("it was written")
		}
	})
}

// What somebody else answers while the editor's person thinks about it is taken back from the
// editor, and the turn goes on; the answer that still comes from there does not count.
func TestAnsweredElsewhere(t *testing.T) {
	w := newWorld(t, script.Reply{Calls: []script.Call{makes("c1", "Write", `{"file_path":"made.txt","content":"x"}`)}}, script.Reply{Text: "no"})
	places := make(chan client.Client, 4)
	w.opened = func(c client.Client) { places <- c }
	e := w.connect(`{}`)
	asked, answer := make(chan struct{}), make(chan struct{})
	var once, done sync.Once
	release := func() { done.Do(func() { close(answer) }) }
	t.Cleanup(release)
	e.on = func(string, json.RawMessage) (any, *wireError) {
		once.Do(func() { close(asked) })
		<-answer
		return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": answerOnce}}, nil
	}
	id := e.open(w.work, "")
	turn := e.send("session/prompt", `{"sessionId":`+quote(id)+`,"prompt":[{"type":"text","text":"go"}]}`)
	<-asked
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	sess := (<-places).Attach(id)
	for ev, err := range sess.Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := ev.Body.(agent.ApprovalAsked); ok {
			no := agent.Resolve{ID: b.ID, Decision: agent.Decision{Verdict: agent.Deny, By: "web"}}
			if err := sess.Resolve(ctx, no); err != nil {
				t.Error(err)
			}
			no.Decision.Verdict = agent.Allow
			if p := agent.ProblemOf(sess.Resolve(ctx, no)); p == nil || p.Code != client.ProblemAnswered || p.Args["by"] != "web" {
				t.Errorf("the second is told %+v", p)
			}
			break
		}
	}
	e.wait("that it is taken back", func() bool { return e.back })
	if got := e.got(turn); got.Error != nil || stopOf(got.Result) != stopEnd {
		t.Errorf("%+v", got)
	}
	release()
	if _, err := os.Stat(filepath.Join(w.work, "made.txt")); err == nil {
		t.Error("it was written")
	}
}

// Two sessions of one connection work beside each other.
func TestSessionsBesideEachOther(t *testing.T) {
	w := newWorldOf(t, script.Script{Replies: []script.Reply{{When: "one", Text: "FIRST", DelayMS: 5}, {When: "two", Text: "SECOND", DelayMS: 5}}}, script.Options{})
	e := w.connect(`{}`)
	one, two := e.open(w.work, ""), e.open(w.home, "")
	a := e.send("session/prompt", `{"sessionId":`+quote(one)+`,"prompt":[{"type":"text","text":"one"}]}`)
	b := e.send("session/prompt", `{"sessionId":`+quote(two)+`,"prompt":[{"type":"text","text":"two"}]}`)
	for _, id := range []string{a, b} {
		if got := e.got(id); got.Error != nil || stopOf(got.Result) != stopEnd {
			t.Errorf("%+v", got)
		}
	}
	e.mu.Lock()
	all := strings.Join(strings.Fields(e.shown()), "")
	e.mu.Unlock()
	if !strings.Contains(all, "FIRST") || !strings.Contains(all, "SECOND") {
		t.Error(all)
	}
}

// A file that is open in the editor is read and changed as it stands there, and the editor
// is told what it says then.
func TestUnsavedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		script.Reply{Calls: []script.Call{makes("c1", "Read", `{"file_path":"open.txt"}`)}},
		script.Reply{Calls: []script.Call{makes("c2", "Edit", `{"file_path":"open.txt","old_string":"UNSAVED","new_string":"CHANGED"}`)}},
		script.Reply{Calls: []script.Call{makes("c3", "Read", `{"file_path":"open.txt"}`)}},
		script.Reply{Text: "done"},
	)
	path := filepath.Join(w.work, "open.txt")
	if err := os.WriteFile(path, []byte("saved\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := w.connect(`{"fs":{"readTextFile":true,"writeTextFile":true}}`)
	var mu sync.Mutex
	buffer := "UNSAVED\n"
	var wrote []string
	e.on = func(method string, params json.RawMessage) (any, *wireError) {
		mu.Lock()
		defer mu.Unlock()
		var in struct{ Path, Content string }
		if err := json.Unmarshal(params, &in); err != nil {
			t.Error(err)
		}
		switch method {
		case "fs/read_text_file":
			if in.Path != path {
				return nil, &wireError{Code: codeMissing, Message: "it is not open"}
			}
			return map[string]string{"content": buffer}, nil
		case "fs/write_text_file":
			buffer = in.Content
			wrote = append(wrote, in.Path+": "+in.Content)
			return struct{}{}, nil
		}
		return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": answerOnce}}, nil
	}
	id := e.open(w.work, "")
	if stop := e.prompt(id, "change it"); stop != stopEnd {
		t.Errorf("it ended with %s", stop)
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "CHANGED\n" || buffer != "CHANGED\n" || len(wrote) != 1 {
		t.Errorf("the file %q, the editor %q, told %q, %v\n%s", data, buffer, wrote, err, e.shown())
	}
	bodies := w.model.Requests()
	if !strings.Contains(string(bodies[1].Body), "UNSAVED") || strings.Contains(string(bodies[1].Body), "saved\\n") {
		t.Error("the model has read the disk")
	}
}

// A file is changed once, whatever comes back from the editor; what its user has not saved
// there is not overwritten when it could not be read.
func TestGarbledFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method, line string
		told         int // how often the editor was
	}{
		"read, an error that is a text":  {"fs/read_text_file", `{"jsonrpc":"2.0","id":{ID},"error":"no"}`, 0},
		"read, a number":                 {"fs/read_text_file", `{"jsonrpc":"2.0","id":{ID},"result":{"content":7}}`, 0},
		"read, nothing":                  {"fs/read_text_file", `{"jsonrpc":"2.0","id":{ID},"result":{}}`, 0},
		"read, it is not open":           {"fs/read_text_file", `{"jsonrpc":"2.0","id":{ID},"error":{"code":-32002,"message":"no"}}`, 1},
		"write, an error that is a text": {"fs/write_text_file", `{"jsonrpc":"2.0","id":{ID},"error":"no"}`, 1},
		"write, both":                    {"fs/write_text_file", `{"jsonrpc":"2.0","id":{ID},"result":{},"error":{"code":1,"message":"no"}}`, 1},
		"write, refused":                 {"fs/write_text_file", `{"jsonrpc":"2.0","id":{ID},"error":{"code":1,"message":"no"}}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t,
				script.Reply{Calls: []script.Call{makes("c1", "Read", `{"file_path":"open.txt"}`)}},
				script.Reply{Calls: []script.Call{makes("c2", "Edit", `{"file_path":"open.txt","old_string":"saved","new_string":"saved, changed"}`)}},
				script.Reply{Text: "done"},
			)
			path := filepath.Join(w.work, "open.txt")
			if err := os.WriteFile(path, []byte("saved\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			e := w.connect(`{"fs":{"readTextFile":true,"writeTextFile":true}}`)
			e.on = func(method string, _ json.RawMessage) (any, *wireError) {
				switch method {
				case "fs/read_text_file":
					return map[string]string{"content": "saved\n"}, nil
				case "fs/write_text_file":
					return struct{}{}, nil
				}
				return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": answerOnce}}, nil
			}
			e.garbled = func(method string) string {
				if method == tt.method {
					return tt.line
				}
				return ""
			}
			if stop := e.prompt(e.open(w.work, ""), "change it"); stop != stopEnd {
				t.Errorf("it ended with %s", stop)
			}
			e.mu.Lock()
			told := len(slices.DeleteFunc(slices.Clone(e.calls), func(m string) bool { return m != "fs/write_text_file" }))
			e.mu.Unlock()
			if data, err := os.ReadFile(path); err != nil || string(data) != "saved, changed\n" || told != tt.told {
				t.Errorf("the file %q, %v; the editor was told %d times, want %d", data, err, told, tt.told)
			}
		})
	}
}

// What the gate denies is denied before the editor is asked for anything.
func TestEditorIsNoWayAroundTheGate(t *testing.T) {
	w := newWorld(t,
		script.Reply{Calls: []script.Call{makes("c1", "Read", `{"file_path":"/outside/secret.txt"}`)}},
		script.Reply{Text: "no"},
	)
	e := w.connect(`{"fs":{"readTextFile":true,"writeTextFile":true}}`)
	e.on = func(method string, _ json.RawMessage) (any, *wireError) {
		if method != "session/request_permission" {
			t.Errorf("the editor was asked: %s", method)
			return map[string]string{"content": "SECRET"}, nil
		}
		return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": answerDeny}}, nil
	}
	e.prompt(e.open(w.work, ""), "read it")
	for _, r := range w.model.Requests() {
		if strings.Contains(string(r.Body), "SECRET") {
			t.Error("the model has read it")
		}
	}
}

// Questions of the model are a form where the client has forms, and one question after the
// other elsewhere.
func TestQuestions(t *testing.T) {
	t.Parallel()
	ask := makes("q1", "AskUserQuestion", `{"questions":[{"question":"Which one?","options":[{"label":"Red"},{"label":"Blue","description":"as the sky"}]},{"question":"And which of these?","options":[{"label":"A"},{"label":"B"}],"multiSelect":true}]}`)
	for _, forms := range []bool{true, false} {
		w := newWorld(t, script.Reply{Calls: []script.Call{ask}}, script.Reply{Text: "thanks"})
		caps := `{}`
		if forms {
			caps = `{"elicitation":{"form":{}}}`
		}
		e := w.connect(caps)
		e.on = func(method string, params json.RawMessage) (any, *wireError) {
			if method == "elicitation/create" {
				return map[string]any{"action": "accept", "content": map[string]any{"q1": "Blue", "q2": []string{"A", "B"}}}, nil
			}
			var in permissionIn
			if err := json.Unmarshal(params, &in); err != nil {
				t.Error(err)
			}
			return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": in.Options[1].ID}}, nil
		}
		if stop := e.prompt(e.open(w.work, ""), "ask"); stop != stopEnd {
			t.Errorf("it ended with %s", stop)
		}
		bodies := w.model.Requests()
		last := string(bodies[len(bodies)-1].Body)
		want := []string{"Blue", "A, B"}
		if !forms {
			want = []string{"Blue", "B"}
		}
		for _, s := range want {
			if !strings.Contains(last, s) {
				t.Errorf("forms %v: the model has not got %q: %.3000s", forms, s, last[max(0, len(last)-3000):])
			}
		}
	}
}

// Commands, plans and what they print are told as what they are.
func TestCallsAsTheyAre(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "bash")
	w := newWorld(t,
		script.Reply{Calls: []script.Call{makes("c1", "TodoWrite", `{"todos":[{"content":"Look","status":"in_progress","activeForm":"Looking"},{"content":"Do","status":"pending"}]}`)}},
		script.Reply{Calls: []script.Call{makes("c2", "Bash", `{"command":"echo PRINTED; exit 3"}`)}},
		script.Reply{Calls: []script.Call{makes("c3", "Grep", `{"pattern":"x"}`), makes("c4", "NoSuchTool", `{}`)}},
		script.Reply{Text: "done"},
	)
	e := w.connect(`{}`)
	var asked []permissionIn
	e.on = permits("allow_once", &asked)
	e.prompt(e.open(w.work, ""), "go")
	if p := e.told("plan"); len(p) != 1 || len(p[0]["entries"].([]any)) != 2 {
		t.Errorf("plan: %v", p)
	}
	kinds := map[string]any{}
	for _, c := range e.told("tool_call") {
		kinds[c["toolCallId"].(string)] = c["kind"]
	}
	if kinds["c1"] != "think" || kinds["c2"] != "execute" || kinds["c3"] != "search" || kinds["c4"] != "other" {
		t.Errorf("kinds: %v", kinds)
	}
	last := map[string]any{}
	content := ""
	for _, u := range e.told("tool_call_update") {
		if s := u["status"]; s != nil {
			last[u["toolCallId"].(string)] = s
		}
		if u["toolCallId"] == "c2" && u["content"] != nil {
			data, _ := json.Marshal(u["content"])
			content = string(data)
		}
	}
	if last["c1"] != callCompleted || last["c3"] != callCompleted || last["c4"] != callFailed || !strings.Contains(content, "PRINTED") {
		t.Errorf("states: %v, %s", last, content)
	}
	for _, a := range asked {
		if a.Call.ID == "c2" && (a.Call.Kind != "execute" || !strings.Contains(a.Call.Title, "echo PRINTED")) {
			t.Errorf("asked: %+v", a.Call)
		}
	}
}

// A session that was killed while a question waited goes on: it asks again when it is
// loaded.
func TestQuestionSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		script.Reply{Calls: []script.Call{makes("c1", "Write", `{"file_path":"made.txt","content":"x"}`)}},
		script.Reply{Text: "written"}, script.Reply{Text: "more"},
	)
	e := w.connect(`{}`)
	asked := make(chan struct{})
	var once sync.Once
	e.on = func(string, json.RawMessage) (any, *wireError) {
		once.Do(func() { close(asked) })
		select {} // nobody answers
	}
	id := e.open(w.work, "")
	e.send("session/prompt", `{"sessionId":`+quote(id)+`,"prompt":[{"type":"text","text":"go"}]}`)
	<-asked
	if err := e.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-e.ended; err != nil {
		t.Error(err)
	}
	e.ended <- nil
	again := w.connect(`{}`)
	var kept []permissionIn
	again.on = permits("allow_once", &kept)
	again.must("session/load", `{"sessionId":`+quote(id)+`,"cwd":`+quote(w.work)+`,"mcpServers":[]}`)
	if again.words("user_message_chunk") != "go" {
		t.Errorf("loaded: %s", again.shown())
	}
	if stop := again.prompt(id, "go on"); stop != stopEnd {
		t.Errorf("it ended with %s", stop)
	}
	if _, err := os.Stat(filepath.Join(w.work, "made.txt")); err != nil || len(kept) != 1 || kept[0].Call.ID != "c1" {
		t.Errorf("asked again: %+v, %v", kept, err)
	}
}

// Servers that a client hands over are connected, and their tools can be called.
func TestServersOfAClient(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		prooftest.Lacking(t, "python3", err)
	}
	const server = `
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    r = {}
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "tell", "description": "tells", "inputSchema": {"type": "object"}}]}
    elif m["method"] == "tools/call":
        r = {"content": [{"type": "text", "text": "TOLD " + os.environ["WORD"] + " " + sys.argv[1]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`
	w := newWorld(t, script.Reply{Calls: []script.Call{makes("c1", "mcp__teller__tell", `{}`)}}, script.Reply{Text: "done"})
	path := filepath.Join(w.work, "server.py")
	if err := os.WriteFile(path, []byte(server), 0o600); err != nil {
		t.Fatal(err)
	}
	e := w.connect(`{}`)
	var asked []permissionIn
	e.on = permits("allow_once", &asked)
	var out opened
	if err := json.Unmarshal(e.must("session/new", `{"cwd":`+quote(w.work)+`,"mcpServers":[{"name":"teller","command":`+quote(python)+`,"args":[`+quote(path)+`,"$HOME"],"env":[{"name":"WORD","value":"${PATH} as it is"}]}]}`), &out); err != nil {
		t.Fatal(err)
	}
	e.prompt(out.ID, "call it")
	bodies := w.model.Requests()
	if last := string(bodies[len(bodies)-1].Body); !strings.Contains(last, "TOLD ${PATH} as it is $HOME") {
		t.Errorf("asked %d, the model has: %.2000s", len(asked), last[max(0, len(last)-2000):])
	}
}
