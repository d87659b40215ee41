//go:build unix

package app_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// A server that a type of agents defines is there for its sessions and for no others; in a
// project it needs a yes besides trust.
func TestServersOfAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(doing("mcp__sh__echo", fields{"text": "hello"}),
		hand("a1", fields{"description": "echo", "prompt": "Have it heard.", "subagent_type": "echoer"})))
	w.write("server.sh", strings.Replace(echoes(), "ABOUT", "Says it again", 1))
	w.file(filepath.Join(w.work, ".dure", "agents", "echoer.md"), "---\nname: echoer\ndescription: Echoes.\nmcpServers:\n  - other\n  - sh:\n      command: sh\n      args: [server.sh]\n---\nYou echo.\n")
	trustFolder(t, w.plain(), w.work)
	if got := w.serverStates(app.Flags{}); got != "agent:echoer:sh project waiting" {
		t.Fatal(got)
	}
	run := func() (had bool, k *talk) {
		t.Helper()
		n := len(w.model.Requests())
		k = w.talk(app.Flags{Allow: []string{"mcp__sh__echo"}}, agent.Open{})
		if end := k.turn(whole); end.Reason != agent.EndDone {
			t.Fatal(names(k.seen))
		}
		for _, r := range w.model.Requests()[n:] {
			has := slices.Contains(toolsIn(t, r.Body), "mcp__sh__echo")
			if strings.Contains(string(r.Body), whole) && has {
				t.Error("the session has the server of the agent")
			}
			had = had || has
		}
		return had, k
	}
	had, k := run()
	if r := k.result("a1"); had || r.Failed() {
		t.Errorf("nobody has said yes to the server: %v, %+v", had, r)
	}
	if _, err := client.Query[query.ServerInfo](t.Context(), w.plain().Client(), query.ChangeServer{Server: "agent:echoer:sh", Do: query.ServerApprove}); err != nil {
		t.Fatal(err)
	}
	had, k = run()
	if r := k.result("a1"); !had || !strings.Contains(r.Text, "the server has heard it") {
		t.Errorf("%v: %+v", had, r)
	}
	k.sound()
}

// A new session of a type of agents whose server waits for a yes opens without it, and its
// log says so.
func TestSessionsOfAgentsWithoutServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "Hello."}), script.Options{})
	w.file(filepath.Join(w.work, ".dure", "agents", "echoer.md"), "---\nname: echoer\ndescription: Echoes.\nmcpServers:\n  - sh:\n      command: sh\n      args: [server.sh]\n---\nYou echo.\n")
	trustFolder(t, w.plain(), w.work)
	k := w.talk(app.Flags{Agent: "echoer"}, agent.Open{})
	if end := k.turn("Hello"); end.Reason != agent.EndDone {
		t.Errorf("%+v", end)
	}
	told := slices.ContainsFunc(all[agent.Note](k.seen), func(n agent.Note) bool {
		return n.Level == "warn" && strings.Contains(n.Text, "agent:echoer:sh")
	})
	if !told {
		t.Error(names(k.seen))
	}
}

// What a server of a type of agents asks comes to the person of the session that they work
// for, and to the model where a rule allows it.
func TestServersOfAgentsAsk(t *testing.T) {
	t.Parallel()
	const question = `{"messages":[{"role":"user","content":{"type":"text","text":"2+2?"}}],"maxTokens":20}`
	for name, tt := range map[string]struct {
		method, params string
		answers        map[string]string
		want           string
	}{
		"a form":            {"elicitation/create", form, map[string]string{"Who are you?": "Answer", "Name (name)": "Ada", "age": "36", "colour": "red"}, "name:Ada"},
		"a form, nobody":    {"elicitation/create", form, nil, "{action:decline}"},
		"the model":         {"sampling/createMessage", question, map[string]string{"2+2": "This once"}, "FOUR"},
		"the model, nobody": {"sampling/createMessage", question, nil, "rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			works := doing("mcp__sh__echo", fields{"text": "hello"})
			w := newWorld(t, script.Script{}, handing(func(r script.Request) script.Reply {
				if strings.Contains(string(r.Body), "2+2?") && !strings.Contains(string(r.Body), "You echo.") {
					return script.Reply{Text: "FOUR", Stop: agent.StopEnd}
				}
				return works(r)
			}, hand("a1", fields{"description": "echo", "prompt": "Have it heard.", "subagent_type": "echoer"})))
			w.write("server.sh", askingServer(tt.method, tt.params))
			w.file(filepath.Join(w.work, ".dure", "agents", "echoer.md"), "---\nname: echoer\ndescription: Echoes.\nmcpServers:\n  - sh:\n      command: sh\n      args: [server.sh]\n---\nYou echo.\n")
			trustFolder(t, w.plain(), w.work)
			if _, err := client.Query[query.ServerInfo](t.Context(), w.plain().Client(), query.ChangeServer{Server: "agent:echoer:sh", Do: query.ServerApprove}); err != nil {
				t.Fatal(err)
			}
			k := w.talk(app.Flags{Allow: []string{"mcp__sh__echo", "Agent"}}, agent.Open{Approver: tt.answers != nil})
			var asked []string
			k.answer(whole, answering(t, tt.answers, &asked))
			if r := k.result("a1"); !strings.Contains(r.Text, tt.want) || (len(asked) > 0) != (tt.answers != nil) || len(asked) > 0 && !strings.Contains(asked[0], `"agent:echoer:sh"`) {
				t.Errorf("asked %q: %+v", asked, r)
			}
		})
	}
}
