//go:build unix

package app_test

import (
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
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

// How an argument of a prompt may go on, its server says: of the last word that is typed, and
// of all that is left for the last argument. What cannot be shown is no proposal.
func TestArgumentsOfPrompts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	tells := `*'"method":"completion/complete"'*)
    arg=$(printf '%s' "$line" | sed -n 's/.*"argument":{"name":"\([^"]*\)","value":"\([^"]*\)"}.*/\1 \2/p') who=$(printf '%s' "$line" | sed -n 's/.*"arguments":{"who":"\([^"]*\)"}.*/\1/p')
    answer '{"completion":{"values":["'"$arg|$who"'","two\nlines"]}}' ;;
  *'"method":"prompts/get"'*)`
	server := strings.Replace(strings.Replace(echoes, `*'"method":"prompts/get"'*)`, tells, 1), `"prompts":{}`, `"prompts":{},"completions":{}`, 1)
	w.write("server.sh", server)
	k := w.talkTo(w.program(options(w.work, w.home, w.model.URL(), app.Flags{Servers: []string{`{"mcpServers": {"sh": {"command": "sh", "args": ["server.sh"]}}}`}})), agent.Open{})
	k.server()
	for line, want := range map[string]query.PromptValues{
		"/mcp__sh__greet ":                             {Argument: "who", Values: []string{"who |"}},
		"/mcp__sh__greet Bo":                           {Argument: "who", Typed: "Bo", Value: "Bo", Values: []string{"who Bo|"}},
		`/mcp__sh__greet  "Bob S`:                      {Argument: "who", Typed: `"Bob S`, Value: "Bob S", Values: []string{"who Bob S|"}},
		`/mcp__sh__greet "Bob Smith" `:                 {Argument: "how", Values: []string{"how |Bob Smith"}},
		"/mcp__sh__greet Bob very  warm":               {Argument: "how", Typed: "very  warm", Value: "very warm", Values: []string{"how very warm|Bob"}},
		"/mcp__sh__greet":                              {},
		"/mcp__sh__other Bo":                           {},
		"greet Bo":                                     {},
		"/mcp__sh__greet Bo\x00":                       {},
		"/mcp__sh__greet " + strings.Repeat("x", 5000): {},
	} {
		got, err := client.Query[query.PromptValues](t.Context(), k.Client, query.CompletePrompt{Session: k.Info.ID, Text: line})
		if err != nil || got.Argument != want.Argument || got.Typed != want.Typed || got.Value != want.Value || !slices.Equal(got.Values, want.Values) {
			t.Errorf("%.40q: %+v, %v, want %+v", line, got, err, want)
		}
	}
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
