//go:build unix

package app_test

import (
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/models/script"
)

// Prompts of servers are commands: completed and read as such, and what the server makes
// of one stands behind what was typed, with what it shows.
func TestPromptsOfServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "Done.", Stop: agent.StopEnd} }})
	w.chooses(fields{"hooks": fields{"UserPromptExpansion": "cat >> heard; echo >> heard"}})
	k := w.talkTo(w.echoing("Says it again"), agent.Open{})
	k.server()
	list, err := client.Query[[]query.CommandInfo](t.Context(), k.Client, query.ListCommands{Session: k.Info.ID})
	i := slices.IndexFunc(list, func(c query.CommandInfo) bool { return c.Name == "mcp__sh__greet" })
	if err != nil || i < 0 || list[i].Kind != query.CommandPrompt || list[i].Hint != "WHO [HOW]" || list[i].Description != "Greets somebody" {
		t.Fatalf("%v: %+v", err, list)
	}
	for text, want := range map[string]query.CommandRead{
		"/mcp__sh__greet Bob": {Is: query.ReadSend, Kind: query.CommandPrompt, Name: "mcp__sh__greet", Arguments: "Bob"},
		"/mcp__sh__grete Bob": {Is: query.ReadUnknown, Name: "mcp__sh__grete", Arguments: "Bob", Near: []string{"mcp__sh__greet"}},
	} {
		got, err := client.Query[query.CommandRead](t.Context(), k.Client, query.ReadCommand{Session: k.Info.ID, Text: text})
		if err != nil || got.Is != want.Is || got.Kind != want.Kind || got.Name != want.Name || !slices.Equal(got.Near, want.Near) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	k.turn(`/mcp__sh__greet "Bob Smith" very warmly`)
	const want = "/mcp__sh__greet \"Bob Smith\" very warmly\n\n[/mcp__sh__greet says:]\nGreet Bob Smith very warmly, as @server.sh says."
	if in := all[agent.InputAdded](k.seen); len(in) != 1 || in[0].Text != want {
		t.Errorf("%+v", in)
	}
	reqs := w.model.Requests()
	if last := string(reqs[len(reqs)-1].Body); !strings.Contains(last, "image/png") || strings.Contains(last, "while read") {
		t.Errorf("the picture is missing, or a file is read that the server names:\n%.3000s", last)
	}
	if h := w.told("heard"); h["expansion_type"] != "mcp_prompt" || h["command_name"] != "mcp__sh__greet" || h["command_args"] != `"Bob Smith" very warmly` {
		t.Errorf("the hooks were told %v", h)
	}
	k.sound()
}

// What names no prompt of a server, or lacks what the prompt needs, does not enter the
// conversation; nor does what a hook forbids.
func TestPromptsThatAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	w.chooses(fields{"hooks": fields{"UserPromptExpansion": "echo not them >&2; exit 2"}})
	k := w.talkTo(w.echoing("Says it again"), agent.Open{})
	k.server()
	for text, want := range map[string]string{
		"/mcp__sh__greet":      "it needs who; write /mcp__sh__greet WHO [HOW]",
		"/mcp__sh__nothing x":  "has a prompt of this name",
		"/mcp__sh__greet them": "not them",
	} {
		k.send(agent.Prompt{Text: text})
		if d := body[agent.InputDropped](k); !strings.Contains(d.Reason, want) {
			t.Errorf("%s: %s", text, d.Reason)
		}
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
