package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// bashes is a reply that runs a command.
func bashes(command, more string) script.Reply {
	data, _ := json.Marshal(command) // it is a string
	return script.Reply{Calls: []script.Call{{ID: "toolu_1", Tool: "Bash", Input: json.RawMessage(`{"command":` + string(data) + more + `}`)}}}
}

// quietly leaves out what says how the session is.
func quietly(told string) string {
	var out []string
	for l := range strings.Lines(told) {
		if l != "control_response\n" && l != "system/session_state_changed\n" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "")
}

// find returns the first line of a kind.
func (h *host) find(is string) wireLine {
	h.t.Helper()
	i := slices.IndexFunc(h.seen, func(l wireLine) bool { return l.is() == is })
	if i < 0 {
		h.t.Fatalf("no %s\n%s", is, h.told())
	}
	return h.seen[i]
}

// at reads a field, whose name may lead through objects and lists.
func (l wireLine) at(path string) any {
	var v any = l.fields
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// wants wants fields of a line: a path and a value, and so on.
func (l wireLine) wants(t *testing.T, fields ...any) {
	t.Helper()
	for i := 0; i < len(fields); i += 2 {
		if got := l.at(fields[i].(string)); fmt.Sprint(got) != fmt.Sprint(fields[i+1]) {
			t.Errorf("%s: %v, want %v\n%.2000s", fields[i], got, fields[i+1], l.raw)
		}
	}
}

// The flags of hosts have two spellings, and may be empty.
func TestHostFlags(t *testing.T) {
	t.Parallel()
	const input = "--input-format"
	for name, args := range map[string][]string{
		"equals":  {"--output-format=stream-json", "--verbose", "--input-format=stream-json", "--model=script", "--tools=", "--setting-sources=", "--system-prompt=", "--max-turns=2", "--betas=a,b", "--thinking=adaptive", "--effort=max", "--permission-prompts=none"},
		"blanks":  {"--output-format", "stream-json", "--verbose", input, "stream-json", "--model", "script", "--tools", "", "--setting-sources", "", "--system-prompt", "", "--max-turns", "2", "--betas", "a,b", "--thinking", "disabled", "--effort", "xhigh"},
		"repeats": {"--output-format", "stream-json", input, "stream-json", "--add-dir=.", "--add-dir", "..", "--mcp-config", `{"mcpServers":{}}`, "--mcp-config={\"mcpServers\":{}}", "--settings", `{"limits":{"retries":1}}`, "--allowedTools=Bash,Read", "--disallowedTools=Write"},
		"others":  {"--output-format", "stream-json", input, "stream-json", "--debug-file=x", "--task-budget=5", "--session-mirror", "--allow-dangerously-skip-permissions", "--project-config-root=.", "--initialize-fields=settings", "--thinking-display=summarized", "--max-thinking-tokens=2048", "--channels=x"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, script.Reply{Text: "DONE"})
			h.start(args...)
			h.initialise("")
			h.say(user("Go."))
			l := h.until("result")
			l.wants(t, "result", "DONE", "is_error", false)
			if tools := h.find("system/init").at("tools"); (len(tools.([]any)) == 0) != (name == "equals" || name == "blanks") {
				t.Errorf("tools: %v", tools)
			}
			h.end(0)
		})
	}
	for want, args := range map[string][]string{
		"unknown flag --no-such":   append(slices.Clone(usualArgs), "--no-such=1"),
		"local":                    append(slices.Clone(usualArgs), "--setting-sources=elsewhere"),
		"one of":                   {"--output-format", "stream-json", input, "xml"},
		"--input-format":           {"--output-format", "stream-json", "--session-mirror", "Go."},
		"--no-session-persistence": append(slices.Clone(usualArgs), "--session-mirror", "--no-session-persistence"),
		"--thinking":               append(slices.Clone(usualArgs), "--thinking=hard"),
	} {
		h := newHost(t, script.Reply{Text: "DONE"})
		h.start(args...)
		h.end(2)
		if len(h.seen) > 0 || !strings.Contains(h.stderr.String(), want) {
			t.Errorf("%q: %s%s", args, h.told(), h.stderr.String())
		}
	}
}

// Hosts ask for the version before anything else.
func TestHostVersion(t *testing.T) {
	for _, args := range [][]string{{"-v"}, {"--version"}} {
		h := newHost(t, script.Reply{})
		cmd := exec.Command(dureProgram(t), args...)
		cmd.Env = h.env
		out, err := cmd.Output()
		if err != nil || !regexp.MustCompile(`^2\.\d+\.\d+ \(dure \d+\.\d+\.\d+\S*\)\n$`).Match(out) {
			t.Errorf("%q: %q, %v", args, out, err)
		}
	}
}

// A turn with calls, of which one is denied because nobody can be asked.
func TestHostTools(t *testing.T) {
	t.Parallel()
	h := newHost(t,
		script.Reply{Thinking: "I think.", Text: "I'll look.", Calls: []script.Call{
			{ID: "toolu_1", Tool: "Bash", Input: json.RawMessage(`{"command":"echo hello; echo more >&2"}`)},
			{ID: "toolu_2", Tool: "Write", Input: json.RawMessage(`{"file_path":"new","content":"x"}`)},
		}},
		script.Reply{Text: "Done."})
	h.start(append(slices.Clone(usualArgs), "--allowedTools=Bash")...)
	h.initialise("")
	h.say(user("Go."))
	r := h.until("result")
	h.end(0)
	want := "system/init\nassistant\nassistant\nassistant\nassistant\nuser\nuser\nassistant\nresult/success\n"
	h.find("system/permission_denied").wants(t, "tool_name", "Write", "tool_use_id", "toolu_2")
	if got := strings.Replace(quietly(h.told()), "system/permission_denied\n", "", 1); got != want { // it comes with either result
		t.Errorf("%s", got)
	}
	r.wants(t, "num_turns", 2, "result", "Done.", "permission_denials.0.tool_name", "Write", "permission_denials.0.tool_use_id", "toolu_2",
		"permission_denials.0.tool_input.content", "x", "permission_denials.1", nil)
	var blocks []string
	ids := map[any]bool{}
	for _, l := range h.seen {
		switch {
		case l.Type == "assistant" && len(blocks) < 4:
			blocks = append(blocks, l.at("message.content.0.type").(string))
			ids[l.at("message.id")] = true
			if block := l.at("message.content.0").(map[string]any); block["type"] == "thinking" {
				if _, ok := block["signature"].(string); !ok {
					t.Errorf("thinking without a signature: %s", l.raw)
				}
			}
		case l.Type == "user" && l.at("message.content.0.tool_use_id") == "toolu_1":
			l.wants(t, "message.content.0.type", "tool_result", "tool_use_result.stdout", "hello\nmore\n", "parent_tool_use_id", nil)
		case l.Type == "user":
			l.wants(t, "message.content.0.tool_use_id", "toolu_2", "message.content.0.is_error", true)
		}
	}
	if got := strings.Join(blocks, " "); got != "thinking text tool_use tool_use" || len(ids) != 1 {
		t.Errorf("%s, %d IDs", got, len(ids))
	}
}

// What agents do is shown with the call that they work for.
func TestHostAgents(t *testing.T) {
	t.Parallel()
	h := newHost(t,
		script.Reply{When: "CHILDTASK", Text: "Looking.", Calls: []script.Call{{ID: "toolu_9", Tool: "Bash", Input: json.RawMessage(`{"command":"echo inside"}`)}}},
		script.Reply{When: "inside", Text: "FOUND"},
		script.Reply{Calls: []script.Call{{ID: "toolu_1", Tool: "Agent", Input: json.RawMessage(`{"description":"Look","prompt":"CHILDTASK","subagent_type":"general-purpose"}`)}}},
		script.Reply{Text: "Done."})
	h.start(append(slices.Clone(usualArgs), "--allowedTools=Bash,Agent")...)
	h.initialise("")
	h.say(user("Go."))
	r := h.until("result")
	h.end(0)
	r.wants(t, "result", "Done.", "is_error", false)
	h.find("system/task_started").wants(t, "tool_use_id", "toolu_1", "task_type", "local_agent", "subagent_type", "general-purpose", "is_backgrounded", false)
	h.find("system/task_notification").wants(t, "tool_use_id", "toolu_1", "status", "completed", "summary", "FOUND")
	var inside []string
	for _, l := range h.seen {
		if l.at("parent_tool_use_id") == "toolu_1" {
			inside = append(inside, l.Type+" "+fmt.Sprint(l.at("message.content.0.type")))
		}
	}
	if got := strings.Join(inside, ", "); got != "assistant tool_use, user tool_result" {
		t.Errorf("of the agent: %s", got)
	}
}

// A command in the background keeps the session from being at rest, and wakes the model
// when it is over.
func TestHostBackground(t *testing.T) {
	t.Parallel()
	h := newHost(t, bashes("sleep 1; echo over", `,"run_in_background":true,"description":"Wait"`), script.Reply{Text: "Started."}, script.Reply{Text: "It is over."})
	h.env = append(h.env, "CLAUDE_CODE_SDK_READS_SESSION_STATE=1")
	h.start(append(slices.Clone(usualArgs), "--allowedTools=Bash")...)
	h.initialise("")
	h.say(user("Go."))
	h.until("result").wants(t, "result", "Started.")
	h.until("result").wants(t, "result", "It is over.", "origin.kind", "task-notification")
	for l := h.until("system/session_state_changed"); l.at("state") != "idle"; l = h.until("system/session_state_changed") {
	}
	h.end(0)
	h.find("system/task_started").wants(t, "tool_use_id", "toolu_1", "description", "Wait", "is_backgrounded", true)
	h.find("system/task_notification").wants(t, "status", "completed")
	var states []string
	for _, l := range h.seen {
		switch l.is() {
		case "system/session_state_changed":
			states = append(states, l.at("state").(string))
		case "result/success":
			states = append(states, "result")
		case "system/background_tasks_changed":
			states = append(states, fmt.Sprint(len(l.at("tasks").([]any))))
		}
	}
	if got := strings.Join(states, " "); got != "running 1 result 0 result idle" {
		t.Errorf("%s", got)
	}
}

// A request that fails is made again, and the host is told so.
func TestHostRetries(t *testing.T) {
	t.Parallel()
	h := newHost(t, script.Reply{Text: "DONE", Faults: []script.Fault{{Kind: script.Status, Status: 529, RetryAfter: "0"}}})
	h.start(usualArgs...)
	h.initialise("")
	h.say(user("Go."))
	h.until("result").wants(t, "result", "DONE")
	h.end(0)
	h.find("system/api_retry").wants(t, "attempt", 1, "error_status", 529, "error", "overloaded")
}

// Sessions are gone on with: as they are, in a copy, and from a message on.
func TestHostResumes(t *testing.T) {
	t.Parallel()
	h := newHost(t, slices.Repeat([]script.Reply{{Text: "DONE"}}, 20)...)
	const id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	const first, second = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	turn := func(words, uuid string, args ...string) wireLine {
		t.Helper()
		h.start(append(slices.Clone(usualArgs), args...)...)
		h.initialise("")
		h.say(strings.Replace(user(words), `{"type":"user"`, `{"type":"user","uuid":"`+uuid+`"`, 1))
		r := h.until("result")
		h.end(0)
		return r
	}
	turn("FIRST", first, "--session-id="+id).wants(t, "session_id", id)
	answer := h.find("assistant").at("uuid").(string)
	turn("SECOND", second, "--resume="+id).wants(t, "session_id", id)
	turn("THIRD", someID(), "--continue").wants(t, "session_id", id)
	if copied := turn("FOURTH", someID(), "--resume="+id, "--fork-session"); copied.at("session_id") == id {
		t.Error("the copy is the session itself")
	}
	asked := func() string {
		all := h.model.Requests()
		return string(all[len(all)-1].Body)
	}
	if body := asked(); !strings.Contains(body, "SECOND") || !strings.Contains(body, "FOURTH") {
		t.Errorf("the copy does not have what was said: %s", body)
	}
	turn("FIFTH", someID(), "--resume="+id, "--resume-session-at="+answer).wants(t, "session_id", id)
	if body := asked(); !strings.Contains(body, "FIRST") || strings.Contains(body, "SECOND") {
		t.Errorf("the session did not go back: %s", body)
	}
	turn("SIXTH", someID(), "--resume="+id, "--fork-session", "--resume-session-at="+answer, "--session-id="+second).wants(t, "session_id", second)
	if body := asked(); !strings.Contains(body, "FIRST") || strings.Contains(body, "FIFTH") {
		t.Errorf("the copy has too much: %s", body)
	}
}

// someID is a UUID.
func someID() string {
	return fmt.Sprintf("%08x-0000-4000-8000-000000000000", uint32(time.Now().UnixNano()))
}

// The life of the program follows that of its input.
func TestHostLife(t *testing.T) {
	t.Parallel()
	t.Run("nothing is asked", func(t *testing.T) {
		h := newHost(t, script.Reply{Text: "DONE"})
		h.start(usualArgs...)
		h.end(1)
		if !strings.Contains(h.stderr.String(), "before anything was asked") {
			t.Error(h.stderr.String())
		}
	})
	t.Run("only what it is", func(t *testing.T) {
		h := newHost(t, script.Reply{Text: "DONE"})
		h.start(usualArgs...)
		h.initialise("")
		h.end(0)
	})
	t.Run("the input ends at once", func(t *testing.T) {
		h := newHost(t, script.Reply{Text: "DONE"})
		h.start(usualArgs...)
		h.say(user("Go.")) // without a word of what it is
		h.end(0)
		h.find("result/success").wants(t, "result", "DONE")
	})
	t.Run("messages wait for their turns", func(t *testing.T) {
		h := newHost(t, script.Reply{Text: "ONE"}, script.Reply{Text: "TWO"}, script.Reply{Text: "THREE"})
		h.start(append(slices.Clone(usualArgs), "--replay-user-messages")...)
		h.initialise("")
		h.say(user("1"), user("2"), user("3"))
		h.end(0)
		want := strings.Repeat("user\nsystem/init\nassistant\nresult/success\n", 3)
		if got := quietly(h.told()); got != want {
			t.Errorf("%s", got)
		}
	})
	t.Run("print mode", func(t *testing.T) {
		h := newHost(t, script.Reply{Text: "DONE"})
		h.start("-p", "--output-format", "stream-json", "--verbose", "Go.")
		h.end(0)
		if got := quietly(h.told()); got != "system/init\nassistant\nresult/success\n" {
			t.Errorf("%s", got)
		}
	})
	t.Run("an error", func(t *testing.T) {
		h := newHost(t, script.Reply{Faults: slices.Repeat([]script.Fault{{Kind: script.Status, Status: 400}}, 9)})
		h.start("-p", "--output-format", "stream-json", "Go.")
		h.end(1)
		h.find("result/success").wants(t, "is_error", true, "terminal_reason", "api_error", "api_error_status", 400)
		if h.stderr.String() == "" {
			t.Error("nothing says why")
		}
	})
	t.Run("it cannot begin", func(t *testing.T) {
		h := newHost(t, script.Reply{Text: "DONE"})
		h.start(append(slices.Clone(usualArgs), "--resume=00000000-0000-4000-8000-000000000000")...)
		if r := h.initialise(""); r["subtype"] != "error" {
			t.Errorf("%v", r)
		}
		h.end(1)
		h.find("result/error_during_execution").wants(t, "is_error", true, "terminal_reason", "turn_setup_failed")
	})
	if runtime.GOOS == "windows" {
		return // its signals are others
	}
	t.Run("it is told to end", func(t *testing.T) {
		h := newHost(t, bashes("sleep 60", ""))
		h.start(append(slices.Clone(usualArgs), "--allowedTools=Bash")...)
		h.initialise("")
		h.say(user("Go."))
		h.until("assistant")
		if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		h.end(143)
		for _, l := range h.seen {
			if l.Type == "result" {
				t.Errorf("a result: %s", l.raw)
			}
		}
	})
}

// Nothing that comes on the input ends the program, or goes without an answer.
func TestHostAbuse(t *testing.T) {
	t.Parallel()
	h := newHost(t, slices.Repeat([]script.Reply{{Text: "DONE"}}, 4)...)
	h.start(usualArgs...)
	h.say("", "  ", "no JSON", "{", "[]", "null", "17", `"x"`, `{"type":17}`, `{"type":"unheard"}`, `{"type":"control_request"}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"none"}}`, `{"type":"control_response","response":17}`,
		`{"type":"control_cancel_request","request_id":"none"}`, `{"type":"keep_alive"}`, "\x00\x01\xff")
	h.initialise("")
	h.say(`{"type":"control_request","request_id":"twice","request":{"subtype":"initialize"}}`)
	if r := h.answer("twice"); r["subtype"] != "success" { // a host that has lost sight of it
		t.Errorf("%v", r)
	}
	for i, request := range []string{`{"subtype":"unheard"}`, `{}`, `17`, `null`, `{"subtype":17}`} {
		id := fmt.Sprintf("r%d", i)
		h.say(`{"type":"control_request","request_id":"` + id + `","request":` + request + `}`)
		if r := h.answer(id); r["subtype"] != "error" {
			t.Errorf("%s: %v", request, r)
		}
	}
	// A line of any length is passed over, and one of 5 MB is read.
	h.say(`{"type":"user","message":{"role":"user","content":"` + strings.Repeat("x", 40<<20) + `"}}`)
	h.say(user(strings.Repeat("long ", 1<<20)))
	h.until("result").wants(t, "result", "DONE") // of a model that reads everything
	for _, bad := range []string{
		`{"type":"user"}`, `{"type":"user","message":{"role":"assistant","content":"x"}}`, `{"type":"user","message":{"role":"user","content":[]}}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"!"}}]}}`, `{"type":"user","message":{"role":"user","content":17}}`,
	} {
		h.say(bad)
		h.until("result").wants(t, "is_error", true, "subtype", "error_during_execution")
	}
	// Thousands of requests are answered, each once.
	many := 2_000
	if prooftest.Long() {
		many = 10_000
	}
	go func() {
		for i := range many {
			if _, err := fmt.Fprintf(h.in, `{"type":"control_request","request_id":"m%d","request":{"subtype":"unheard"}}`+"\n", i); err != nil {
				return // the test ends for want of answers
			}
		}
	}()
	left := map[string]bool{}
	for i := range many {
		left[fmt.Sprintf("m%d", i)] = true
	}
	for len(left) > 0 {
		l := h.until("control_response")
		id, _ := l.at("response.request_id").(string)
		if !left[id] {
			t.Fatalf("%s was not asked, or is answered twice", id)
		}
		delete(left, id)
	}
	h.say(user("Go."))
	h.until("result").wants(t, "result", "DONE")
	h.end(0)
	if m := trace.FindString(h.stderr.String()); m != "" {
		t.Errorf("standard error holds %q", m)
	}
}

// A reader that stops for a while misses nothing, and one that goes away ends the program.
func TestHostReaders(t *testing.T) {
	h := newHost(t, slices.Repeat([]script.Reply{{Text: strings.Repeat("words ", 5000), Chunk: 16}}, 2)...)
	cmd := exec.Command(dureProgram(t), append(slices.Clone(usualArgs), "--include-partial-messages")...)
	cmd.Dir, cmd.Env, cmd.Stderr = h.dir, h.env, &h.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, user("Go."))
	var first [1]byte
	if _, err := out.Read(first[:]); err != nil { // and no more, with both ends open
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(hostTime):
		_ = cmd.Process.Kill()
		t.Fatal("it does not end although nobody reads")
	}
	if code := cmd.ProcessState.ExitCode(); code == 0 {
		t.Error("exit code 0 without a result")
	}
	_ = in.Close() // it is closed already
}

// TestPythonHost says, word for word, what the Agent SDK for Python says.
func TestPythonHost(t *testing.T) {
	h := newHost(t, script.Reply{Thinking: "Hm.", Text: "Hello."}, script.Reply{Text: "Bye."})
	h.env = append(slices.DeleteFunc(h.env, func(v string) bool { return strings.HasPrefix(v, "CLAUDE_CODE_ENTRYPOINT=") }),
		"CLAUDE_CODE_ENTRYPOINT=sdk-py", "CLAUDE_AGENT_SDK_VERSION=0.2.143", "PWD="+h.dir)
	h.start("--output-format", "stream-json", "--verbose", "--system-prompt", "", "--tools", "", "--allowedTools", "Bash,Read", "--max-turns", "5", "--max-budget-usd", "1.5",
		"--disallowedTools", "WebFetch", "--model", "script", "--fallback-model", "script-2", "--permission-prompt-tool", "stdio", "--permission-mode", "acceptEdits",
		"--settings", `{"limits":{"retries":1}}`, "--add-dir", ".", "--mcp-config", `{"mcpServers": {}}`, "--include-partial-messages",
		"--setting-sources=", "--max-thinking-tokens", "2048", "--effort", "low", "--input-format", "stream-json")
	h.say(`{"type": "control_request", "request_id": "req_1_0a1b2c3d", "request": {"subtype": "initialize", "hooks": null, "agents": {"helper": {"description": "Helps.", "prompt": "Help."}}, "excludeDynamicSections": false}}`)
	if r := h.answer("req_1_0a1b2c3d"); r["subtype"] != "success" {
		t.Fatalf("%v", r)
	}
	h.say(`{"type": "user", "message": {"role": "user", "content": "Hello?"}, "parent_tool_use_id": null, "session_id": "default"}`)
	r := h.until("result")
	for _, field := range []string{"duration_ms", "duration_api_ms", "is_error", "num_turns", "session_id"} {
		if r.at(field) == nil {
			t.Errorf("the result has no %s", field)
		}
	}
	r.wants(t, "result", "Hello.")
	h.say(`{"type": "control_request", "request_id": "req_2_0a1b2c3e", "request": {"subtype": "interrupt"}}`)
	if r := h.answer("req_2_0a1b2c3e"); r["subtype"] != "success" {
		t.Fatalf("%v", r)
	}
	h.say(`{"type": "user", "message": {"role": "user", "content": "Bye?"}, "parent_tool_use_id": null, "session_id": "default"}`)
	h.until("result").wants(t, "result", "Bye.")
	h.end(0)
	for _, l := range h.seen {
		if block, ok := l.at("message.content.0").(map[string]any); ok && block["type"] == "thinking" && block["signature"] == nil {
			t.Errorf("thinking without a signature: %s", l.raw)
		}
	}
}
