//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"strings"

	"dure/internal/models/script"
)

// tableServer is a server of the table of hooks: a program that says what it is told to
// (say, fail), and leaves behind that it was called; that asks for a name or to open an
// address (ask, link), and leaves behind that somebody has agreed; and that asks the model
// (model). What it was told, it answers with. It says that it is up once it has been asked
// for its tools.
const tableServer = `#!/bin/sh
cd "${CLAUDE_PROJECT_DIR:-.}"
while read -r line; do
  id=$(printf '%s' "$line" | sed -nE 's/.*"id":([0-9]+).*/\1/p')
  say=$(printf '%s' "$line" | sed -nE 's/.*"say":"(([^"\\]|\\.)*)".*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  asks() {
    printf '{"jsonrpc":"2.0","id":"q","method":"%s","params":%s}\n' "$1" "$2"
    read -r said
    case "$said" in *'"accept"'*) touch made ;; esac
    answer '{"content":[{"type":"text","text":"TOLD '"$(printf '%s' "$said" | tr -d '"\\')"'"}]}'
  }
  case "$line" in
  *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
  *'"method":"tools/list"'*)
    list=
    for tool in say fail ask link model; do list="$list${list:+,}"'{"name":"'$tool'","inputSchema":{"type":"object"}}'; done
    answer '{"tools":['"$list"']}'
    touch "up$1" ;;
  *'"method":"tools/call"'*'"name":"say"'*) touch other; answer '{"content":[{"type":"text","text":"'"$say"'"}]}' ;;
  *'"method":"tools/call"'*'"name":"fail"'*) touch other; answer '{"isError":true,"content":[{"type":"text","text":"'"$say"'"}]}' ;;
  *'"method":"tools/call"'*'"name":"ask"'*) asks elicitation/create '{"message":"Who are you?","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}' ;;
  *'"method":"tools/call"'*'"name":"link"'*) asks elicitation/create '{"mode":"url","message":"Sign here","url":"https://pay.example/a","elicitationId":"e1"}' ;;
  *'"method":"tools/call"'*'"name":"model"'*) asks sampling/createMessage '{"messages":[{"role":"user","content":{"type":"text","text":"2+2?"}}],"maxTokens":20}' ;;
  *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
  esac
done
`

// serverScenes are runs with a server that is connected: the model waits for that before it
// calls what the run is about.
func serverScenes() map[string]hookScene {
	const config = `{"mcpServers": {"sh": {"command": "sh", "args": ["server.sh"]}}}`
	const both = `{"mcpServers": {"sh": {"command": "sh", "args": ["server.sh"]}, "another": {"command": "sh", "args": ["server.sh", "2"]}}}`
	wait := script.Reply{Calls: []script.Call{{ID: "call_0", Tool: "Bash", Input: json.RawMessage(`{"command": "until test -e up && { test -e up2 || ! test -e both; }; do sleep 0.1; done; sleep 1"}`)}}}
	then := func(tool, input string) []script.Reply {
		done := slices.Repeat([]script.Reply{{Text: "DONE"}}, 4)
		return append([]script.Reply{{When: "2+2", Text: "NEW"}, wait, {Calls: []script.Call{{ID: "call_1", Tool: tool, Input: json.RawMessage(input)}}}}, done...)
	}
	ask, link, model, write := then("mcp__sh__ask", "{}"), then("mcp__sh__link", "{}"), then("mcp__sh__model", "{}"), then("Write", `{"file_path": "made", "content": "x"}`)
	files := map[string]string{"server.sh": tableServer}
	run := func(allow ...string) []string {
		args := []string{"--mcp-config", config, "--allow", "Bash"}
		for _, a := range allow {
			args = append(args, "--allow", a)
		}
		return args
	}
	print := func(args []string) []string { return append(args, "-p", "TASK") }
	chat := func(args []string) []string { return append(args, "--interactive") }
	plugin := map[string]string{
		"plug/.claude-plugin/plugin.json": `{"name": "plug", "version": "1.0.0", "description": "has a server"}`,
		"plug/.mcp.json":                  strings.Replace(config, "server.sh", "${CLAUDE_PLUGIN_ROOT}/server.sh", 1),
		"plug/server.sh":                  tableServer,
	}
	return map[string]hookScene{
		"a server asks": {replies: ask, args: print(run("mcp__sh__ask")), files: files},
		"a server asks, another judges": {
			replies: ask, args: print([]string{"--mcp-config", both, "--allow", "Bash", "--allow", "mcp__sh__ask", "--allow", "mcp__another__say"}),
			files: map[string]string{"server.sh": tableServer, "both": ""},
		},
		"a server asks a person":         {replies: ask, args: chat(run("mcp__sh__ask")), input: "TASK\n1\nMINE\n/quit\n", files: files},
		"a server asks, and is declined": {replies: ask, args: chat(run("mcp__sh__ask")), input: "TASK\n2\n/quit\n", files: files},
		"a server has an address":        {replies: link, args: chat(run("mcp__sh__link")), input: "TASK\n1\n/quit\n", files: files},
		"a server asks the model":        {replies: model, args: print(run("mcp__sh__*")), files: files},
		"a server may not ask the model": {replies: model, args: print(append(run("mcp__sh__*"), "--deny", "mcp__sh__sampling*")), files: files},
		"nobody lets a server ask":       {replies: model, args: print(run("mcp__sh__model")), files: files},
		"a person lets a server ask":     {replies: model, args: chat(run("mcp__sh__model")), input: "TASK\n1\n/quit\n", files: files},
		"a person lets no server ask":    {replies: model, args: chat(run("mcp__sh__model")), input: "TASK\n3\n/quit\n", files: files},
		"a server beside":                {replies: write, args: print(run("Write", "mcp__sh__say", "mcp__sh__fail")), files: files},
		"a server that no rule allows":   {replies: write, args: print(run("Write")), files: files},
		"a server of a plugin":           {replies: write, args: print([]string{"--plugin-dir", "plug", "--allow", "Bash", "--allow", "Write", "--allow", "mcp__plugin_plug_sh__say"}), files: plugin},
		"a server of a plugin asks":      {replies: then("mcp__plugin_plug_sh__ask", "{}"), args: print([]string{"--plugin-dir", "plug", "--allow", "Bash", "--allow", "mcp__plugin_plug_sh__ask"}), files: plugin},
	}
}
