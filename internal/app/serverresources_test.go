//go:build unix

package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// What servers let be read is completed behind an @, and read with the input that names
// it: what the person names, if no rule denies it.
func TestResourcesThatInputsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "Done.", Stop: agent.StopEnd} }})
	k := w.talkTo(w.echoing("Says it again"), agent.Open{})
	k.server()
	got, err := client.Query[[]string](t.Context(), k.Client, query.CompleteMention{Session: k.Info.ID, Typed: "sh:no"})
	if err != nil || !slices.Contains(got, "sh:note://one") {
		t.Errorf("%v, %v", got, err)
	}
	k.turn("What says @sh:note://one, and what @sh:note://two을? Not @nobody:note://one.")
	reqs := w.model.Requests()
	last := told(t, reqs[len(reqs)-1])
	for _, want := range []string{"<attached resource=\"sh:note://one\">\nwhat the note says\n</attached>", `resource "nobody:note://one"`} {
		if !strings.Contains(last, want) {
			t.Errorf("%q is missing in\n%s", want, last)
		}
	}
	k.sound()
	f := app.Flags{Deny: []string{"mcp__sh"}, Servers: []string{`{"mcpServers": {"sh": {"command": "sh", "args": ["server.sh"]}}}`}}
	k = w.talkTo(w.program(options(w.work, w.home, w.model.URL(), f)), agent.Open{})
	k.server()
	k.turn("What says @sh:note://one?")
	reqs = w.model.Requests()
	if last := told(t, reqs[len(reqs)-1]); strings.Contains(last, "what the note says") {
		t.Errorf("a rule denies it:\n%s", last)
	}
}

// No server is asked for a file that a rule denies, however its address is written, by the
// model or by whoever names it in an input; such a file is not listed either.
func TestFilesThatNoServerReads(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		uri    string
		denied bool
	}{
		"as it is":    {"file://ROOT/private/key", true},
		"capitals":    {"FILE://ROOT/private/key", true},
		"encoded":     {"file://ROOT/%70rivate/key", true},
		"dots":        {"file://ROOT/public/../private/key", true},
		"a link":      {"file://ROOT/open/key", true},
		"opaque":      {"file:private/key", true},
		"one slash":   {"file:ROOT/private/key", true},
		"a host":      {"file://localhostROOT/private/key", true},
		"malformed":   {"file://ROOT/%zz", true},
		"another one": {"file://ROOT/public/key", false},
		"no file":     {"note://private/key", false},
	} {
		t.Run(name, func(t *testing.T) {
			var uri string
			var said atomic.Int64
			w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply {
				switch said.Add(1) {
				case 1:
					return script.Reply{Calls: []script.Call{{ID: "c1", Tool: "ListMcpResourcesTool", Input: input(fields{})}}}
				case 2:
					return script.Reply{Calls: []script.Call{{ID: "c2", Tool: "ReadMcpResourceTool", Input: input(fields{"server": "sh", "uri": uri})}}}
				}
				return script.Reply{Text: "Done.", Stop: agent.StopEnd}
			}})
			uri = strings.ReplaceAll(tt.uri, "ROOT", w.work)
			w.file(filepath.Join(w.work, "private", "key"), "the key")
			if err := os.Symlink("private", filepath.Join(w.work, "open")); err != nil {
				t.Fatal(err)
			}
			w.write("server.sh", strings.ReplaceAll(echoes(), "note://one", strings.ReplaceAll(uri, "%", "%%")))
			f := app.Flags{Deny: []string{"Read(private/**)"}, Servers: []string{`{"mcpServers": {"sh": {"command": "sh", "args": ["server.sh"]}}}`}}
			k := w.talkTo(w.program(options(w.work, w.home, w.model.URL(), f)), agent.Open{})
			k.server()
			k.turn("Look around")
			r := all[agent.CallFinished](k.seen)
			if len(r) != 2 || strings.Contains(r[0].Result.Text, uri) == tt.denied || strings.Contains(r[1].Result.Text, "what the note says") == tt.denied {
				t.Errorf("%+v", r)
			}
			if strings.Contains(uri, "://") {
				k.turn("What says @sh:" + uri + " now?")
				reqs := w.model.Requests()
				if last := told(t, reqs[len(reqs)-1]); strings.Contains(last, "<attached resource") == tt.denied {
					t.Errorf("denied is %v:\n%s", tt.denied, last)
				}
			}
		})
	}
}

// The model lists and reads what servers let be read, while there is any: what a server
// has listed itself unasked, and another address when somebody agrees.
func TestResourcesThatModelsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(
		calls(tool("ListMcpResourcesTool", fields{})),
		calls(tool("ReadMcpResourceTool", fields{"server": "sh", "uri": "note://one"})),
		calls(tool("ReadMcpResourceTool", fields{"server": "sh", "uri": "note://else?what=secret"})),
		script.Reply{Text: "Done."},
		script.Reply{Text: "Nothing."},
	), script.Options{})
	k := w.talkTo(w.echoing("Says it again"), agent.Open{Approver: true})
	k.server()
	asked := 0
	k.answer("Look around", func(a agent.ApprovalAsked) agent.Resolve {
		if !strings.Contains(string(a.Proposal.Call.Input), "note://else") {
			t.Errorf("asked about %s", a.Proposal.Call.Input)
		}
		asked++
		return no()
	})
	r := all[agent.CallFinished](k.seen)
	if asked != 1 || len(r) != 3 || !strings.Contains(r[0].Result.Text, "sh note://one – one, text/plain") || !strings.Contains(r[1].Result.Text, "what the note says") || !r[2].Result.Failed() {
		t.Errorf("asked %d times: %+v", asked, r)
	}
	k = w.talk(app.Flags{}, agent.Open{})
	k.turn("Hello")
	reqs := w.model.Requests()
	if last := reqs[len(reqs)-1]; !strings.Contains(told(t, last), "Hello") || slices.Contains(toolsIn(t, last.Body), "ListMcpResourcesTool") {
		t.Errorf("the tools are listed although there are no resources, or nothing was asked:\n%s", last.Body[:min(len(last.Body), 1500)])
	}
}
