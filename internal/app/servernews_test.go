//go:build unix

package app_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// serverNotes are what people were told of servers.
func (k *talk) serverNotes() (list []string) {
	for _, n := range all[agent.Note](k.seen) {
		if n.Code == "servers" {
			list = append(list, n.Level+" "+n.Text)
		}
	}
	return list
}

// hears reads on until people are told something of a server, if they are not yet.
func (k *talk) hears(part string) {
	k.t.Helper()
	told := func(e agent.Event) bool {
		n, ok := e.Body.(agent.Note)
		return ok && n.Code == "servers" && strings.Contains(n.Text, part)
	}
	if !slices.ContainsFunc(k.seen, told) {
		k.until(part, told)
	}
}

// People hear once, before they have said anything, that a server cannot be used, and why,
// and that it can be used again.
func TestNewsOfServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "Hello."}), script.Options{})
	address, _, _ := signInPlace(t)
	one := func(def string) *talk {
		return w.talk(app.Flags{Servers: []string{`{"mcpServers": {"one": ` + def + `}}`}}, agent.Open{Approver: true})
	}
	one(`{"type": "http", "url": "` + address + `"}`).hears("the server one wants you to sign in; dure mcp login one")
	k := one(`{"command": "sh", "args": ["server.sh"]}`) // which is not there yet
	k.hears("the server one is not connected: ")
	w.write("server.sh", echoes)
	if _, err := client.Query[query.ServerInfo](t.Context(), k.Client, query.ChangeServer{Session: k.Info.ID, Do: "reconnect", Server: "one"}); err != nil {
		t.Fatal(err)
	}
	k.hears("the server one is connected now")
	if end := k.turn("Hello"); end.Reason != agent.EndDone || len(k.serverNotes()) != 2 {
		t.Errorf("%+v, %q", end, k.serverNotes())
	}
}

// Whoever declines what a server asks is not asked again and again; whoever agrees is.
func TestServersThatAskTooOften(t *testing.T) {
	t.Parallel()
	const address = `{"mode":"url","message":"Sign here","url":"https://pay.example/a?b=c","elicitationId":"e1"}`
	const question = `{"messages":[{"role":"user","content":{"type":"text","text":"2+2?"}}],"maxTokens":20}`
	const times = 8
	for name, tt := range map[string]struct {
		method, params, answer string
		asked                  int
	}{
		"declined":            {"elicitation/create", address, "Decline", 5},
		"agreed":              {"elicitation/create", address, "Agree, I open it", times},
		"the model, declined": {"sampling/createMessage", question, "Decline", 5},
	} {
		t.Run(name, func(t *testing.T) {
			var replies []script.Reply
			for i := range times {
				replies = append(replies, calls(tool("mcp__sh__echo", fields{"text": strconv.Itoa(i)})))
			}
			w := newWorld(t, distinct(append(replies, script.Reply{Text: "Done."})...), script.Options{})
			w.write("server.sh", askingServer(tt.method, tt.params))
			f := app.Flags{Allow: []string{"mcp__sh__echo"}, Servers: []string{`{"mcpServers": {"sh": {"command": "sh", "args": ["server.sh"]}}}`}}
			k := w.talk(f, agent.Open{Approver: true})
			if s := k.server(); s.State != "connected" {
				t.Fatalf("%+v", s)
			}
			var asked []string
			k.answer("Echo", answering(t, map[string]string{"Sign here": tt.answer, "2+2": tt.answer}, &asked))
			if n := len(all[agent.CallFinished](k.seen)); len(asked) != tt.asked || n < times {
				t.Errorf("asked %d times in %d calls: %q", len(asked), n, asked)
			}
			want := 0
			if tt.asked < times {
				want = 1
			}
			if notes := k.serverNotes(); len(notes) != want || want > 0 && !strings.Contains(notes[0], "the server sh has asked too often") {
				t.Errorf("%q", notes)
			}
		})
	}
}
