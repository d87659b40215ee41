//go:build unix

package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// shelf is a server as a shell script: its tools stand in a file.
const shelf = `#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
  *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
  *'"method":"tools/list"'*) answer "$(cat "$1")" ;;
  *'"method":"tools/call"'*) answer '{"content":[{"type":"text","text":"done"}]}' ;;
  *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
  esac
done
`

// shelved is a program whose sessions have a server of each name, with so many tools.
func (w *world) shelved(sizes map[string]int) *app.App {
	w.t.Helper()
	w.write("server.sh", shelf)
	servers := fields{}
	for name, n := range sizes {
		var tools []fields
		for i := range n {
			about := fmt.Sprintf("does the work of number %d ", i) + strings.Repeat("well ", 200)
			tools = append(tools, fields{"name": fmt.Sprint("t", i), "description": about, "inputSchema": fields{"type": "object"}})
		}
		w.write(name+".json", string(input(fields{"tools": tools})))
		servers[name] = fields{"command": "sh", "args": []string{"server.sh", name + ".json"}}
	}
	f := app.Flags{Skip: true, Servers: []string{string(input(fields{"mcpServers": servers}))}}
	return w.program(options(w.work, w.home, w.model.URL(), f))
}

// await waits until it stands so with the servers of a session.
func (k *talk) await(want string) {
	k.t.Helper()
	look, over := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer look.Stop()
	for {
		r, err := client.Query[query.ServerReport](k.t.Context(), k.Client, query.ListServers{Session: k.Info.ID})
		if err != nil {
			k.t.Fatal(err)
		}
		var states []string
		for _, s := range r.Servers {
			states = append(states, s.Name+" "+s.State)
		}
		got := strings.Join(states, ", ")
		if got == want {
			return
		}
		select {
		case <-look.C:
		case <-over:
			k.t.Fatalf("servers %q, want %q", got, want)
		}
	}
}

// change does something to a server of a session.
func (k *talk) change(do, server string) {
	k.t.Helper()
	if _, err := client.Query[query.ServerInfo](k.t.Context(), k.Client, query.ChangeServer{Session: k.Info.ID, Do: do, Server: server}); err != nil {
		k.t.Fatal(err)
	}
}

// Of many tools the model reads the names alone, loads one that it needs, calls it, and
// has it still when another program opens the session. A small server that comes meanwhile
// is listed. Each change of what is offered is in the log, and the log says the same when
// it is replayed.
func TestToolsThatAreLoaded(t *testing.T) {
	t.Parallel()
	call := func(name string, in fields) script.Reply { return script.Reply{Calls: []script.Call{tool(name, in)}} }
	w := newWorld(t, script.Script{Replies: []script.Reply{
		call("mcp__big__t7", fields{}), call("ToolSearch", fields{"query": "select:mcp__big__t7"}), call("mcp__big__t7", fields{}),
		{Text: "first"},
		{Text: "second"},
		call("mcp__big__t7", fields{}),
		{Text: "third"},
	}}, script.Options{})
	a := w.shelved(map[string]int{"big": 100, "small": 2})
	k := w.talkTo(a, agent.Open{})
	k.await("big connected, small connected")
	k.change("disable", "small")
	k.turn("go")
	k.change("enable", "small")
	k.await("big connected, small connected")
	k.turn("on")
	id := k.Info.ID
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := w.talkTo(w.shelved(map[string]int{"big": 100}), agent.Open{Session: id})
	again.await("big connected")
	again.turn("and on")

	var results []string
	for _, f := range all[agent.CallFinished](again.seen) {
		code := ""
		if f.Result.Error != nil {
			code = string(f.Result.Error.Code)
		}
		results = append(results, f.Tool+" "+code)
	}
	want := "mcp__big__t7 E_TOOL_NOT_IN_CATALOG, tool__search , mcp__big__t7 , mcp__big__t7 "
	if got := strings.Join(results, ", "); got != want {
		t.Errorf("calls %q, want %q", got, want)
	}
	var changes []string
	for _, c := range all[agent.ToolsChanged](again.seen) {
		changes = append(changes, fmt.Sprint(c.Added, c.Changed, c.Removed))
	}
	if got, want := strings.Join(changes, " "), "[mcp__big__t7] [] [] [mcp__small__t0 mcp__small__t1] [] [] [] [] [mcp__small__t0 mcp__small__t1]"; got != want {
		t.Errorf("changes %s, want %s", got, want)
	}
	if sel := all[agent.ToolsSelected](again.seen); len(sel) != 1 || fmt.Sprint(sel[0].Tools) != "[mcp__big__t7]" {
		t.Errorf("selected %+v", sel)
	}
	first := string(w.model.Requests()[0].Body)
	if !strings.Contains(first, "- mcp__big__*: t0, t1, t10") || strings.Contains(first, "does the work") || len(first) > 25_000 {
		t.Errorf("the first request has %d bytes: %.2000s", len(first), first)
	}
	for _, problem := range verified(t.Context(), again.Client, id) {
		t.Error(problem)
	}
}
