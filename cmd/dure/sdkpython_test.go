package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"dure/internal/models/script"
)

// answerPython answers a request as the SDK for Python does, whose servers speak an older
// version of their protocol, and are named by their configuration alone.
func (h *host) answerPython(l wireLine) (what string) {
	h.t.Helper()
	var response any
	switch what, _ = l.at("request.subtype").(string); what {
	case "can_use_tool":
		what += " " + l.at("request.tool_name").(string)
		input := l.at("request.input").(map[string]any)
		input["b"] = 40 // it may change what is called with
		response = map[string]any{"behavior": "allow", "updatedInput": input}
		if strings.HasSuffix(what, "Bash") {
			response = map[string]any{"behavior": "deny", "message": "not from Python", "interrupt": false}
		}
	case "mcp_message":
		method, _ := l.at("request.message.method").(string)
		what += " " + method
		answer := map[string]any{"jsonrpc": "2.0", "id": l.at("request.message.id")}
		switch method {
		case "initialize":
			answer["result"] = map[string]any{"protocolVersion": "2024-11-05", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "calc", "version": "1.0.0"}}
		case "tools/list":
			answer["result"] = map[string]any{"tools": []any{map[string]any{"name": "add", "description": "Adds", "inputSchema": map[string]any{
				"type": "object", "properties": map[string]any{"a": map[string]any{"type": "number"}, "b": map[string]any{"type": "number"}},
			}}}}
		case "tools/call":
			sum := l.at("request.message.params.arguments.a").(float64) + l.at("request.message.params.arguments.b").(float64)
			words, _ := json.Marshal(sum) // it is a number
			answer["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": "the sum is " + string(words)}}}
		case "notifications/initialized":
			answer = map[string]any{"jsonrpc": "2.0", "result": map[string]any{}}
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "Method '" + method + "' not found"}
		}
		response = map[string]any{"mcp_response": answer}
	default:
		h.t.Fatalf("nobody in Python answers %s", l.raw)
	}
	data, err := json.Marshal(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": l.fields["request_id"], "response": response}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.say(string(data))
	return what
}

// The SDK for Python answers what the gate asks, and has servers inside of it.
func TestPythonHostAnswers(t *testing.T) {
	t.Parallel()
	call := script.Reply{Calls: []script.Call{{ID: "toolu_add", Tool: "mcp__calc__add", Input: json.RawMessage(`{"a":2,"b":3}`)}}}
	run := bashes("touch made.txt", "")
	h := newHost(t, call, run, script.Reply{Text: "Done."})
	h.env = append(slices.DeleteFunc(h.env, func(v string) bool { return strings.HasPrefix(v, "CLAUDE_CODE_ENTRYPOINT=") }),
		"CLAUDE_CODE_ENTRYPOINT=sdk-py", "CLAUDE_AGENT_SDK_VERSION=0.2.143")
	h.start("--output-format", "stream-json", "--verbose", "--system-prompt", "", "--permission-prompt-tool", "stdio",
		"--mcp-config", `{"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}`, "--setting-sources=", "--input-format", "stream-json")
	h.say(`{"type": "control_request", "request_id": "req_1_0a1b2c3d", "request": {"subtype": "initialize", "hooks": null}}`)
	h.say(`{"type": "user", "message": {"role": "user", "content": "What is it?"}, "parent_tool_use_id": null, "session_id": "default"}`)
	var asked []string
	results := map[string]string{}
	for {
		l, ok := h.next()
		if !ok {
			t.Fatalf("the output ends\n%s\n%s", h.told(), h.stderr.String())
		}
		if l.Type == "control_request" {
			asked = append(asked, h.answerPython(l))
		}
		if id, _ := l.at("message.content.0.tool_use_id").(string); l.Type == "user" && id != "" {
			results[id] = l.raw
		}
		if l.Type == "result" {
			l.wants(t, "result", "Done.", "permission_denials.0.tool_name", "Bash")
			break
		}
	}
	h.end(0)
	for _, want := range []string{"mcp_message initialize", "mcp_message tools/list", "can_use_tool mcp__calc__add", "mcp_message tools/call", "can_use_tool Bash"} {
		if !slices.Contains(asked, want) {
			t.Errorf("%s was not asked: %q", want, asked)
		}
	}
	if !strings.Contains(results["toolu_add"], "the sum is 42") || !strings.Contains(results["toolu_1"], "not from Python") {
		t.Errorf("%v", results)
	}
}
