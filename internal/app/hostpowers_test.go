//go:build unix

package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/app/config/live"
	"dure/internal/extend/mcp/connections"
	"dure/internal/models/script"
)

// Servers that are set while a session runs are there for its next request, and go with
// what is set next. Those that it has begun with stay.
func TestSetServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "One."}, script.Reply{Text: "Two."}, script.Reply{Text: "Three."}), script.Options{})
	in := &inside{}
	a := w.embedded(in.host("", connections.HostServer{Name: "early"}), app.Flags{})
	k := w.talkTo(a, agent.Open{})
	k.turn("One")
	offered := func(tool string) bool {
		reqs := w.model.Requests()
		return strings.Contains(string(reqs[len(reqs)-1].Body), tool)
	}
	set := func(defs string) query.ServersSet {
		t.Helper()
		out, err := client.Query[query.ServersSet](t.Context(), a.Client(), query.SetServers{Session: k.Info.ID, Servers: json.RawMessage(defs)})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := set(`{"late":{"type":"sdk"},"early":{"type":"sdk"},"bad":{"type":"stdio"}}`)
	if !slices.Equal(got.Added, []string{"late"}) || len(got.Removed) != 0 || len(got.Errors) != 2 || got.Errors["bad"] == "" || got.Errors["early"] == "" {
		t.Errorf("%+v", got)
	}
	if k.turn("Two"); !offered("mcp__late__echo") || !offered("mcp__early__echo") {
		t.Error("the tools are not offered")
	}
	if now, err := client.Query[[]query.ServerNow](t.Context(), a.Client(), query.ServersNow{Session: k.Info.ID}); err != nil || !strings.Contains(fmt.Sprint(now), "{late connected") {
		t.Error(now, err)
	}
	if r, err := a.Embedding.CallTool(t.Context(), k.Info.ID, "mcp__late__echo", json.RawMessage(`{"text":"x"}`)); err != nil || !r.Failed() {
		t.Errorf("a call without a rule: %+v, %v", r, err)
	}
	if got = set(`{}`); !slices.Equal(got.Removed, []string{"late"}) || len(got.Added) != 0 {
		t.Errorf("%+v", got)
	}
	if k.turn("Three"); offered("mcp__late__echo") || !offered("mcp__early__echo") {
		t.Error("the tools of a server are offered that is gone, or not those of one that is there")
	}
}

// A call that the embedding program makes passes the gate, and is in the log.
func TestHostCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "Hello."}), script.Options{})
	in := &inside{}
	a := w.embedded(in.host("", connections.HostServer{Name: "in"}), app.Flags{Allow: []string{"mcp__in__echo"}})
	k := w.talkTo(a, agent.Open{})
	k.turn("Hello")
	r, err := a.Embedding.CallTool(t.Context(), k.Info.ID, "mcp__in__echo", json.RawMessage(`{"text":"x"}`))
	if err != nil || !strings.Contains(r.Text, "inside: x") {
		t.Errorf("%+v, %v", r, err)
	}
	d := body[agent.CallDecided](k)
	if d.Proposal.Origin != "host" || d.Decision.Verdict != agent.Allow {
		t.Errorf("%+v", d)
	}
	if _, err := a.Embedding.CallTool(t.Context(), k.Info.ID, "mcp__nobody__t", nil); err == nil {
		t.Error("a tool was called that there is not")
	}
}

// A file that the host says it has read may be changed, if it is as it was then.
func TestHostHasRead(t *testing.T) {
	t.Parallel()
	edit := func(id string) script.Reply {
		return calls(tool("Edit", fields{"file_path": id, "old_string": "one", "new_string": "two"}))
	}
	w := newWorld(t, distinct(edit("a.txt"), script.Reply{Text: "Done."}, edit("b.txt"), script.Reply{Text: "Done."}), script.Options{})
	w.write("a.txt", "one\n")
	w.write("b.txt", "one\n")
	a := w.embedded(&app.Host{}, app.Flags{Skip: true, Deny: []string{"Read(secret.txt)"}})
	k := w.talkTo(a, agent.Open{})
	w.write("secret.txt", "hidden")
	if _, err := a.Embedding.ReadFile(k.Info.ID, "secret.txt", 0); err == nil {
		t.Error("a file was read that a rule denies reading")
	}
	if f, err := a.Embedding.ReadFile(k.Info.ID, "a.txt", 0); err != nil || string(f.Data) != "one\n" {
		t.Errorf("%+v, %v", f, err)
	}
	if err := a.Embedding.SawFile(k.Info.ID, "a.txt", time.Now().Add(time.Minute)); err != nil {
		t.Error(err)
	}
	if err := a.Embedding.SawFile(k.Info.ID, "b.txt", time.UnixMilli(1)); err == nil {
		t.Error("a file counts as read that has changed since")
	}
	k.turn("Edit")
	k.turn("Edit the other")
	r := all[agent.CallFinished](k.seen)
	if len(r) != 2 || r[0].Result.Failed() || !r[1].Result.Failed() {
		t.Errorf("%+v", r)
	}
}

// Settings that are put over those of the command line hold for the next call; those that
// cannot hold at once are refused, with all others.
func TestApplySettings(t *testing.T) {
	t.Parallel()
	write := calls(tool("Write", fields{"file_path": "a.txt", "content": "a"}))
	w := newWorld(t, distinct(write, script.Reply{Text: "Done."}, write, script.Reply{Text: "Done."}, write, script.Reply{Text: "Done."}), script.Options{})
	a := w.embedded(&app.Host{}, app.Flags{Skip: true, Settings: `{"permissions":{"deny":["WebFetch"]}}`})
	k := w.talkTo(a, agent.Open{})
	failed := func() bool {
		t.Helper()
		k.turn("Write it")
		r := all[agent.CallFinished](k.seen)
		return r[len(r)-1].Result.Failed()
	}
	if failed() {
		t.Error("it is not done at first")
	}
	if err := a.Embedding.ApplySettings(json.RawMessage(`{"permissions":{"deny":["Write"]}}`), false); err != nil {
		t.Fatal(err)
	}
	if !failed() {
		t.Error("it is done although a rule denies it")
	}
	for _, bad := range []string{`{"cleanupPeriodDays":1,"permissions":{"deny":[]}}`, `{"permissions":{"deny":["("]}}`, `[]`, `null`, `{"permissions":7}`} {
		if err := a.Embedding.ApplySettings(json.RawMessage(bad), false); err == nil {
			t.Errorf("%s was applied", bad)
		}
		if err := a.Embedding.ApplySettings(json.RawMessage(bad), true); err == nil {
			t.Errorf("%s would be applied", bad)
		}
	}
	if err := a.Embedding.ApplySettings(json.RawMessage(`{"permissions":{"deny":[]}}`), true); err != nil {
		t.Error(err)
	}
	if !failed() {
		t.Error("settings count that were refused, or only tried")
	}
	list, err := client.Query[[]query.Setting](t.Context(), a.Client(), query.ListSettings{Masked: true})
	if got := fmt.Sprintf("%s", list); err != nil || !strings.Contains(got, `["Write"]`) {
		t.Errorf("%s, %v", got, err)
	}
}

// How much the model may think for is said for a session, and taken back.
func TestSetThinking(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "One."}, script.Reply{Text: "Two."}), script.Options{})
	a := w.embedded(&app.Host{}, app.Flags{})
	k := w.talkTo(a, agent.Open{})
	n := 3000
	if err := a.Embedding.SetThinking(k.Info.ID, &n); err != nil {
		t.Fatal(err)
	}
	k.turn("One")
	if err := a.Embedding.SetThinking(k.Info.ID, nil); err != nil {
		t.Fatal(err)
	}
	k.turn("Two")
	r := all[agent.ModelRequested](k.seen)
	if len(r) != 2 || r[0].Params.Thinking != n || r[1].Params.Thinking == n {
		t.Errorf("%+v", r)
	}
}

// Settings are merged key by key.
func TestMergeSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.json"), []byte("{\"model\": \"a\", // mine\n\"permissions\": {\"allow\": [\"Read\"], \"deny\": [\"Bash\"]}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ base, over, want string }{
		{"", `{"model":"b"}`, `{"model":"b"}`},
		{"s.json", `{"permissions":{"deny":null}}`, `{"model":"a","permissions":{"allow":["Read"]}}`},
		{`{"a":{"b":1}}`, `{"a":{"c":2}}`, `{"a":{"b":1,"c":2}}`},
		{`{"a":{"b":1}}`, `{"a":3}`, `{"a":3}`},
	} {
		got, err := live.Merge(dir, tt.base, json.RawMessage(tt.over))
		if err != nil || got != tt.want {
			t.Errorf("%s over %s: %s, %v", tt.over, tt.base, got, err)
		}
	}
	for _, bad := range [][2]string{{"none.json", `{}`}, {`{"a"`, `{}`}, {"", `[]`}} {
		if got, err := live.Merge(dir, bad[0], json.RawMessage(bad[1])); err == nil {
			t.Errorf("%q: %s", bad, got)
		}
	}
}
