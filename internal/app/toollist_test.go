//go:build unix

package app_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// What a person switches off the model has no more, nor has anybody who works for the
// session, and it stays off when the session is opened again, until it is given back.
func TestToolsAreSwitchedOff(t *testing.T) {
	t.Parallel()
	offered := map[string][]bool{} // by the last input: Bash, WebFetch
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		var body struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Error(err)
		}
		has := func(name string) bool {
			return slices.ContainsFunc(body.Tools, func(t struct{ Name string }) bool { return t.Name == name })
		}
		for _, said := range []string{"first", "second", "hand on", "for another one", "third", "fourth"} {
			if strings.Contains(r.Last, said) {
				offered[said] = []bool{has("Bash"), has("WebFetch")}
			}
		}
		if strings.Contains(r.Last, "hand on") {
			return script.Reply{Calls: []script.Call{tool("Agent", fields{"description": "x", "prompt": "for another one", "subagent_type": "general-purpose"})}}
		}
		return script.Reply{Text: "Done."}
	}})
	how := options(w.work, w.home, w.model.URL(), app.Flags{Skip: true})
	a := w.program(how)
	k := w.talkTo(a, agent.Open{})
	change := func(tool string, on bool) {
		t.Helper()
		if _, err := client.Query[query.ToolReport](t.Context(), k.Client, query.SwitchTool{Session: k.Info.ID, Tool: tool, On: on}); err != nil {
			t.Fatal(err)
		}
	}
	k.turn("first")
	change("Bash", false)
	change("bash", false) // it is
	change("group:web", false)
	k.turn("second")
	k.turn("hand on")
	change("group:web", true)
	id := k.Info.ID
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = w.program(how)
	k = w.talkTo(a, agent.Open{Session: id})
	k.turn("third")
	change("Bash", true)
	k.turn("fourth")

	for last, want := range map[string][]bool{
		"first": {true, true}, "second": {false, false}, "for another one": {false, false}, "third": {false, true}, "fourth": {true, true},
	} {
		if got := offered[last]; !slices.Equal(got, want) {
			t.Errorf("%s: Bash and WebFetch are offered: %v, want %v", last, got, want)
		}
	}
	log := all[agent.ToolsSwitched](k.seen)
	if want := []agent.ToolsSwitched{{Tool: "bash__exec"}, {Tool: "group:web"}, {Tool: "group:web", On: true}, {Tool: "bash__exec", On: true}}; !slices.Equal(log, want) {
		t.Errorf("the log has %+v, want %+v", log, want)
	}
	for _, problem := range verified(t.Context(), k.Client, id) {
		t.Error(problem)
	}
}
