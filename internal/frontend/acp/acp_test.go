package acp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/internal/models/script"
)

func makes(id, tool, input string) script.Call {
	return script.Call{ID: id, Tool: tool, Input: json.RawMessage(input)}
}

// permits answers permission requests with the first option of a kind, and keeps them.
func permits(kind string, kept *[]permissionIn) func(string, json.RawMessage) (any, *wireError) {
	return func(method string, params json.RawMessage) (any, *wireError) {
		var in permissionIn
		if method != "session/request_permission" || json.Unmarshal(params, &in) != nil {
			return nil, &wireError{Code: codeMethod, Message: "no " + method}
		}
		*kept = append(*kept, in)
		for _, o := range in.Options {
			if o.Kind == kind {
				return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": o.ID}}, nil
			}
		}
		return map[string]any{"outcome": map[string]string{"outcome": "cancelled"}}, nil
	}
}

// A conversation: words, a call that is asked about, its outcome, the end.
func TestConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		script.Reply{Thinking: "I think.", Text: "I write.", Calls: []script.Call{makes("c1", "Write", `{"file_path":"made.txt","content":"one\ntwo\n"}`)}},
		script.Reply{Text: "It is written."},
	)
	e := w.connect(`{}`)
	var asked []permissionIn
	e.on = permits("allow_once", &asked)
	id := e.open(w.work, "")
	if stop := e.prompt(id, "write a file"); stop != stopEnd {
		t.Errorf("it ended with %q", stop)
	}
	if data, err := os.ReadFile(filepath.Join(w.work, "made.txt")); err != nil || string(data) != "one\ntwo\n" {
		t.Errorf("the file: %q, %v", data, err)
	}
	if got := e.words("agent_message_chunk"); got != "I write.It is written." {
		t.Errorf("said: %q", got)
	}
	if got := e.words("agent_thought_chunk"); got != "I think." {
		t.Errorf("thought: %q", got)
	}
	if len(asked) != 1 || asked[0].Call.ID != "c1" || asked[0].Call.Kind != "edit" || len(asked[0].Call.Content) == 0 || asked[0].Call.Content[0].Type != "diff" {
		t.Errorf("asked: %+v", asked)
	}
	calls := e.told("tool_call")
	if len(calls) != 1 || calls[0]["toolCallId"] != "c1" || calls[0]["kind"] != "edit" {
		t.Errorf("calls: %v", calls)
	}
	var states []string
	for _, u := range e.told("tool_call_update") {
		if s, ok := u["status"].(string); ok {
			states = append(states, s)
		}
	}
	if !slices.Contains(states, callRuns) || states[len(states)-1] != callCompleted {
		t.Errorf("states: %v", states)
	}
	if e.words("user_message_chunk") != "" {
		t.Error("the client is told what it has said")
	}
	if len(e.told("available_commands_update")) != 1 {
		t.Error("no commands")
	}
	// What was said is there for who loads the session.
	e.must("session/close", `{"sessionId":`+quote(id)+`}`)
	e.clear()
	e.must("session/load", `{"sessionId":`+quote(id)+`,"cwd":`+quote(w.work)+`,"mcpServers":[]}`)
	if got := e.words("user_message_chunk") + "/" + e.words("agent_message_chunk"); got != "write a file/I write.It is written." {
		t.Errorf("loaded: %q", got)
	}
	if c := e.told("tool_call"); len(c) != 1 {
		t.Errorf("loaded calls: %v", c)
	}
	// ... and not for who resumes it.
	e.must("session/close", `{"sessionId":`+quote(id)+`}`)
	e.clear()
	e.must("session/resume", `{"sessionId":`+quote(id)+`,"cwd":`+quote(w.work)+`,"mcpServers":[]}`)
	if got := e.words("user_message_chunk") + e.words("agent_message_chunk"); got != "" {
		t.Errorf("resumed: %q", got)
	}
}

// A no, and no answer at all, keep a call from running.
func TestOnlyAYesAllows(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"reject_once", "nonsense"} {
		w := newWorld(t,
			script.Reply{Calls: []script.Call{makes("c1", "Write", `{"file_path":"made.txt","content":"x"}`)}},
			script.Reply{Text: "It is not."},
		)
		e := w.connect(`{}`)
		var asked []permissionIn
		e.on = permits(kind, &asked)
		e.prompt(e.open(w.work, ""), "write")
		if _, err := os.Stat(filepath.Join(w.work, "made.txt")); err == nil || len(asked) != 1 {
			t.Errorf("%s: it was written, or nobody was asked: %d", kind, len(asked))
		}
	}
}

// What is wrong with a request is said with the codes of JSON-RPC.
func TestErrors(t *testing.T) {
	w := newWorld(t)
	e := w.connect("")
	if m := e.do("session/list", `{}`); m.Error == nil || m.Error.Code != codeRequest {
		t.Errorf("before initialize: %+v", m.Error)
	}
	e.must("initialize", `{"protocolVersion":99,"clientCapabilities":{"_meta":{"x":1}},"_meta":{"y":2}}`)
	id := e.open(w.work, `,"_meta":{"z":3}`)
	s := `"sessionId":` + quote(id)
	for _, tt := range []struct {
		method, params string
		code           int
	}{
		{"no/such", `{}`, codeMethod},
		{"session/fork", `{}`, codeMethod},
		{"session/new", `{"cwd":"relative","mcpServers":[]}`, codeParams},
		{"session/new", `[]`, codeParams},
		{"session/new", `{"cwd":"/no/such/folder/here","mcpServers":[]}`, codeParams},
		{"session/new", `{"cwd":` + quote(w.work) + `,"mcpServers":[{"name":"a","type":"pigeon"}]}`, codeParams},
		{"session/new", `{"cwd":` + quote(w.work) + `,"additionalDirectories":["here"],"mcpServers":[]}`, codeParams},
		{"session/load", `{"sessionId":"none","cwd":"/","mcpServers":[]}`, codeMissing},
		{"session/load", `{` + s + `,"cwd":"/","mcpServers":[]}`, codeParams},
		{"session/resume", `{"cwd":"/"}`, codeParams},
		{"session/list", `{"cwd":"here"}`, codeParams},
		{"session/list", `{"cursor":"x"}`, codeParams},
		{"session/close", `{"sessionId":"none"}`, codeMissing},
		{"session/delete", `{"sessionId":"none"}`, codeMissing},
		{"session/set_mode", `{` + s + `,"modeId":"bypassPermissions"}`, codeParams},
		{"session/set_config_option", `{` + s + `,"configId":"nothing","value":"x"}`, codeParams},
		{"session/set_config_option", `{` + s + `,"configId":"mode","type":"boolean","value":true}`, codeParams},
		{"session/prompt", `{"sessionId":"none","prompt":[{"type":"text","text":"x"}]}`, codeMissing},
		{"session/prompt", `{` + s + `,"prompt":[]}`, codeParams},
		{"session/prompt", `{` + s + `,"prompt":[{"type":"text","text":"  "}]}`, codeParams},
		{"session/prompt", `{` + s + `,"prompt":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}`, codeParams},
		{"session/prompt", `{` + s + `,"prompt":[{"type":"image","data":"?","mimeType":"image/png"}]}`, codeParams},
		{"session/prompt", `{` + s + `,"prompt":[{"type":"smell"}]}`, codeParams},
		{"authenticate", `{"methodId":"none"}`, codeParams},
	} {
		m := e.do(tt.method, tt.params)
		if m.Error == nil || m.Error.Code != tt.code || strings.TrimSpace(m.Error.Message) == "" {
			t.Errorf("%s %s: %+v, want %d", tt.method, tt.params, m.Error, tt.code)
			continue
		}
		if tt.code != codeParams && tt.code != codeMissing {
			continue
		}
		var data struct{ Code, Fix string }
		if err := json.Unmarshal(m.Error.Data, &data); err != nil || data.Code == "" || data.Fix == "" {
			t.Errorf("%s %s: nothing is said that helps: %s, %v", tt.method, tt.params, m.Error.Data, err)
		}
	}
	var in initializeOut
	if err := json.Unmarshal(e.must("initialize", `{"protocolVersion":0}`), &in); err != nil || in.Version != protocol {
		t.Errorf("version %d, %v", in.Version, err)
	}
	e.must("authenticate", `{"methodId":"kept-key"}`)
}

// Modes and models are chosen, and all who follow are told.
func TestOptions(t *testing.T) {
	w := newWorld(t, script.Reply{Text: "a"}, script.Reply{Text: "b"})
	e := w.connect(`{}`)
	id := e.open(w.work, "")
	s := `"sessionId":` + quote(id)
	e.must("session/set_mode", `{`+s+`,"modeId":"plan"}`)
	e.wait("the mode", func() bool { return strings.Contains(e.shown(), `"currentModeId":"plan"`) })
	var out configOut
	if err := json.Unmarshal(e.must("session/set_config_option", `{`+s+`,"configId":"mode","value":"acceptEdits"}`), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Options) < 2 || out.Options[0].Current != "acceptEdits" || out.Options[1].Current != "script" {
		t.Errorf("options: %+v", out.Options)
	}
	if err := json.Unmarshal(e.must("session/set_config_option", `{`+s+`,"configId":"model","value":"other"}`), &out); err != nil {
		t.Fatal(err)
	}
	if out.Options[1].Current != "other" {
		t.Errorf("model: %+v", out.Options[1])
	}
	e.prompt(id, "/mode")
	if got := e.words("agent_message_chunk"); !strings.Contains(got, "acceptEdits") {
		t.Errorf("/mode: %q", got)
	}
	e.clear()
	e.prompt(id, "/nonsuch")
	if got := e.words("agent_message_chunk"); !strings.Contains(got, "/nonsuch") {
		t.Errorf("/nonsuch: %q", got)
	}
}

// Sessions are listed in pages, closed and deleted.
func TestSessionsComeAndGo(t *testing.T) {
	w := newWorld(t)
	e := w.connect(`{}`)
	one, two := e.open(w.work, ""), e.open(w.home, "")
	var out listOut
	list := func(params string) (ids []string) {
		if err := json.Unmarshal(e.must("session/list", params), &out); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.Sessions {
			ids = append(ids, r.ID)
		}
		return ids
	}
	if got := list(`{}`); !slices.Contains(got, one) || !slices.Contains(got, two) {
		t.Errorf("all: %v", got)
	}
	if got := list(`{"cwd":` + quote(w.home) + `}`); !slices.Equal(got, []string{two}) {
		t.Errorf("of a folder: %v", got)
	}
	e.must("session/close", `{"sessionId":`+quote(one)+`}`)
	e.must("session/delete", `{"sessionId":`+quote(one)+`}`)
	e.must("session/delete", `{"sessionId":`+quote(two)+`}`)
	if got := list(`{}`); len(got) > 0 {
		t.Errorf("after all: %v", got)
	}
}
