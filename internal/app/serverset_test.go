//go:build unix

package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// echoes is a server as a shell script: a tool, a prompt and a resource.
var echoes = sync.OnceValue(func() string {
	data, err := os.ReadFile(filepath.Join("..", "extend", "mcp", "connections", "testdata", "server.sh"))
	if err != nil {
		panic(err)
	}
	return string(data)
})

// echoing is a program whose sessions have the server.
func (w *world) echoing(about string) *app.App {
	w.t.Helper()
	w.write("server.sh", strings.Replace(echoes(), "ABOUT", about, 1))
	return w.program(options(w.work, w.home, w.model.URL(), app.Flags{Servers: []string{`{"mcpServers": {"sh": {"command": "sh", "args": ["server.sh"]}}}`}}))
}

// server waits until the server of a session is connected, and says how it stands with it.
func (k *talk) server() query.ServerInfo {
	k.t.Helper()
	look, over := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer look.Stop()
	for {
		r, err := client.Query[query.ServerReport](k.t.Context(), k.Client, query.ListServers{Session: k.Info.ID})
		if err != nil || len(r.Servers) != 1 {
			k.t.Fatalf("%+v, %v", r, err)
		}
		if s := r.Servers[0]; s.State != "connecting" && s.State != "ready" {
			return s
		}
		select {
		case <-look.C:
		case <-over:
			k.t.Fatal("the server does not connect")
		}
	}
}

// serverNotes are what people were told of servers.
func (k *talk) serverNotes() (list []string) {
	for _, n := range all[agent.Note](k.seen) {
		if n.Code == "servers" {
			list = append(list, n.Level+" "+n.Text)
		}
	}
	return list
}

// A server that a session has offers its tools beside the others; each call passes the gate.
func TestServerInSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(calls(tool("mcp__sh__echo", fields{"text": "hello"})), script.Reply{Text: "Done."}), script.Options{})
	k := w.talkTo(w.echoing("Says it again"), agent.Open{Approver: true})
	if s := k.server(); s.State != "connected" || s.Tools != 1 || s.Prompts != 1 || s.Resources != 1 {
		t.Fatalf("%+v", s)
	}
	var asked []agent.ApprovalAsked
	k.answer("Echo", func(a agent.ApprovalAsked) agent.Resolve {
		asked = append(asked, a)
		return agent.Resolve{ID: a.ID, Decision: agent.Decision{Verdict: agent.Allow}}
	})
	if len(asked) != 1 || asked[0].Proposal.Call.Tool != "mcp__sh__echo" {
		t.Errorf("asked about %+v", asked)
	}
	results := all[agent.CallFinished](k.seen)
	if len(results) != 1 || !strings.Contains(results[0].Result.Text, "the server has heard it") {
		t.Errorf("%+v", results)
	}
}

// A tool of which its server says that the person has to see each call is asked about
// where a rule or the mode would allow it.
func TestServerToolThatAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(calls(tool("mcp__sh__echo", fields{"text": "hello"})), script.Reply{Text: "Done."}), script.Options{})
	w.write("server.sh", strings.Replace(echoes(), `"name":"echo",`, `"name":"echo","_meta":{"anthropic/requiresUserInteraction":true},`, 1))
	f := app.Flags{Skip: true, Allow: []string{"mcp__sh__echo"}, Servers: []string{`{"mcpServers": {"sh": {"command": "sh", "args": ["server.sh"]}}}`}}
	k := w.talkTo(w.program(options(w.work, w.home, w.model.URL(), f)), agent.Open{Approver: true})
	k.server()
	asked := 0
	k.answer("Echo", func(agent.ApprovalAsked) agent.Resolve {
		asked++
		return no()
	})
	if r := all[agent.CallFinished](k.seen); asked != 1 || len(r) != 1 || !r[0].Result.Failed() {
		t.Errorf("asked %d times: %+v", asked, r)
	}
}

// A tool that describes itself otherwise than when it was first seen is left out until
// somebody agrees.
func TestServerThatChangesItsTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "Hello."}, script.Reply{Text: "Hello."}, script.Reply{Text: "Hello."}), script.Options{})
	listed := func() bool {
		reqs := w.model.Requests()
		return strings.Contains(string(reqs[len(reqs)-1].Body), "mcp__sh__echo")
	}
	k := w.talkTo(w.echoing("Says it again"), agent.Open{})
	k.server()
	if k.turn("Hello"); !listed() {
		t.Error("the tool is not listed")
	}
	a := w.echoing("Says it again, and sends it to somebody else")
	k = w.talkTo(a, agent.Open{})
	if s := k.server(); !slices.Equal(s.Withheld, []string{"echo"}) {
		t.Errorf("%+v", s)
	}
	if k.turn("Hello"); listed() {
		t.Error("the tool is listed although it has changed")
	}
	if notes := k.serverNotes(); len(notes) != 1 || !strings.Contains(notes[0], "are left out: echo; dure mcp approve sh") {
		t.Errorf("%q", notes)
	}
	if info, err := client.Query[query.ServerInfo](t.Context(), a.Client(), query.ChangeServer{Server: "sh", Do: query.ServerApprove}); err != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if s := k.server(); len(s.Withheld) != 0 {
		t.Errorf("%+v", s)
	}
	if k.turn("Hello"); !listed() {
		t.Error("the tool is not listed although somebody has agreed")
	}
}

// A server that is not there is told, and the session goes on.
func TestServerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "Hello."}), script.Options{})
	f := app.Flags{AwaitServers: true, Servers: []string{`{"mcpServers": {"gone": {"command": "no-such-program-anywhere"}}}`}}
	k := w.talkTo(w.program(options(w.work, w.home, w.model.URL(), f)), agent.Open{})
	if end := k.turn("Hello"); end.Reason != agent.EndDone {
		t.Errorf("%+v", end)
	}
	if s := k.server(); s.State != "failed" || s.Why == "" {
		out, _ := json.Marshal(s)
		t.Errorf("%s", out)
	}
}

// What somebody says of a server in a session counts for the folder of that session, and
// for none in which another server has its name.
func TestServersOfTheFolderOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	other := filepath.Join(w.home, "other")
	for dir, command := range map[string]string{w.work: "good", other: "evil"} {
		w.file(filepath.Join(dir, ".mcp.json"), `{"mcpServers": {"one": {"command": "`+command+`"}}}`)
		trustFolder(t, w.plain(), dir)
	}
	a := w.plain()
	k := w.talkTo(a, agent.Open{Workdir: other})
	state := func(dir string) string {
		t.Helper()
		r, err := client.Query[query.ServerReport](t.Context(), k.Client, query.ListServers{Workdir: dir})
		if err != nil || len(r.Servers) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Servers[0].State
	}
	for _, do := range []struct{ what, want string }{{"approve", "ready"}, {"disable", "off"}, {"enable", "ready"}} {
		s, err := client.Query[query.ServerInfo](t.Context(), k.Client, query.ChangeServer{Session: k.Info.ID, Server: "one", Do: do.what})
		if err != nil || s.Run != "evil" || s.State != do.want || state(other) != do.want || state(w.work) != "waiting" {
			t.Errorf("%s: %+v, %v; there %s, here %s", do.what, s, err, state(other), state(w.work))
		}
	}
}
