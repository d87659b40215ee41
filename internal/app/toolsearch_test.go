//go:build unix

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/catalog"
	"dure/internal/models/script"
)

// foreign is a tool of a server.
type foreign struct{ name, about string }

func (f foreign) Spec() agent.Spec {
	return agent.Spec{Name: f.name, Description: f.about, Input: json.RawMessage(`{"type":"object"}`), Class: agent.Read}
}

func (foreign) Plan(context.Context, agent.ToolContext, agent.Call) (agent.Effects, error) {
	return agent.Effects{}, nil
}

func (f foreign) Run(context.Context, agent.ToolContext, agent.Call) (agent.Result, error) {
	return agent.OK("this is " + f.name), nil
}

// shelf brings tools to all sessions of a program.
type shelf struct {
	mu   sync.Mutex
	sets map[string]func(catalog.Source, string, []agent.Tool)
}

func (s *shelf) join(session string, set func(catalog.Source, string, []agent.Tool)) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets[session] = set
	set(catalog.MCP, "big", many("big", 100))
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sets, session)
	}
}

func many(server string, n int) (list []agent.Tool) {
	for i := range n {
		list = append(list, foreign{fmt.Sprintf("mcp__%s__t%d", server, i), fmt.Sprintf("does the work of number %d ", i) + strings.Repeat("well ", 200)})
	}
	return list
}

// Of many tools the model reads the names alone, loads one that it needs, calls it, and
// has it still when another program opens the session. A small server that comes meanwhile
// is listed. Each change of what is offered is in the log, and the log says the same when
// it is replayed.
func TestToolsThatAreLoaded(t *testing.T) {
	call := func(name string, in fields) script.Reply { return script.Reply{Calls: []script.Call{tool(name, in)}} }
	w := newWorld(t, script.Script{Replies: []script.Reply{
		call("mcp__big__t7", fields{}), call("ToolSearch", fields{"query": "select:mcp__big__t7"}), call("mcp__big__t7", fields{}),
		{Text: "first"},
		{Text: "second"},
		call("mcp__big__t7", fields{}),
		{Text: "third"},
	}}, script.Options{})
	s := &shelf{sets: map[string]func(catalog.Source, string, []agent.Tool){}}
	how := options(w.work, w.home, w.model.URL(), app.Flags{Skip: true})
	a := w.program(how)
	a.Bring(s.join)
	k := w.talkTo(a, agent.Open{})
	k.turn("go")
	s.mu.Lock()
	s.sets[k.Info.ID](catalog.MCP, "small", many("small", 2))
	s.mu.Unlock()
	k.turn("on")
	id := k.Info.ID
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = w.program(how)
	a.Bring(s.join)
	again := w.talkTo(a, agent.Open{Session: id})
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
