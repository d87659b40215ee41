//go:build unix

package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// calls is an answer that makes calls with the IDs c1, c2, ...
func calls(list ...script.Call) script.Reply {
	for i := range list {
		list[i].ID = fmt.Sprintf("c%d", i+1)
	}
	return script.Reply{Text: "I call.", Calls: list}
}

func tool(name string, in fields) script.Call { return script.Call{Tool: name, Input: input(in)} }

// says makes a script of replies and an end.
func says(replies ...script.Reply) script.Script {
	return script.Script{ByStep: true, Replies: append(replies, script.Reply{Text: "Done."})}
}

// answer runs a turn, and answers every approval with what decide says.
func (k *talk) answer(text string, decide func(agent.ApprovalAsked) agent.Resolve) agent.TurnEnded {
	k.t.Helper()
	k.send(agent.Prompt{Text: text})
	for {
		e := k.until("the end of the turn", func(e agent.Event) bool {
			switch e.Body.(type) {
			case agent.ApprovalAsked, agent.TurnEnded:
				return true
			}
			return false
		})
		switch b := e.Body.(type) {
		case agent.TurnEnded:
			return b
		case agent.ApprovalAsked:
			r := decide(b)
			r.ID = b.ID
			k.send(r)
		}
	}
}

func yes() agent.Resolve {
	return agent.Resolve{Decision: agent.Decision{Verdict: agent.Allow, Reason: "go ahead"}}
}

func no() agent.Resolve {
	return agent.Resolve{Decision: agent.Decision{Verdict: agent.Deny, Reason: "rather not"}}
}

// step is a call of a model that uses every tool.
type step struct {
	tool  string
	input func(last string) fields // from what it has read last
	gives string                   // a part of the result
}

// with is an input that does not depend on anything.
func with(in fields) func(string) fields { return func(string) fields { return in } }

// named is an input with the handle of the task that was named last.
func named(in fields) func(string) fields {
	return func(last string) fields {
		in["task_id"] = regexp.MustCompile(`job:[0-9A-Za-z]+`).FindString(last)
		return in
	}
}

// everyTool has each tool of the catalog once. url leads to a page.
func everyTool(url string, question fields) []step {
	return []step{
		{"Write", with(fields{"file_path": "a.txt", "content": "one\ntwo\nthree\n"}), "Created a.txt (3 lines)."},
		{"Edit", with(fields{"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}), "Edited a.txt"},
		{"MultiEdit", with(fields{"file_path": "a.txt", "edits": []fields{{"old_string": "one", "new_string": "ONE"}, {"old_string": "three", "new_string": "THREE"}}}), "Edited a.txt"},
		{"Read", with(fields{"file_path": "a.txt"}), "2\tTWO"},
		{"MultiRead", with(fields{"paths": []string{"a.txt", "s.sh"}}), "echo script"},
		{"LS", with(fields{}), "a.txt"},
		{"Glob", with(fields{"pattern": "*.txt"}), "a.txt"},
		{"Grep", with(fields{"pattern": "THR.E", "output_mode": "content"}), "a.txt:3:THREE"},
		{"ApplyPatch", with(fields{"patch": "*** Begin Patch\n*** Add File: b.txt\n+new\n*** End Patch\n"}), "b.txt"},
		{"Move", with(fields{"source": "b.txt", "destination": "c.txt"}), "c.txt"},
		{"Delete", with(fields{"path": "c.txt"}), "c.txt"},
		{"Read", with(fields{"file_path": "n.ipynb"}), "print(1)"},
		{"NotebookEdit", with(fields{"notebook_path": "n.ipynb", "cell_id": "x", "new_source": "print(2)"}), "n.ipynb"},
		{"Bash", with(fields{"command": "tr A-Z a-z < a.txt"}), "one\ntwo\nthree"},
		{"Bash", with(fields{"command": "echo from behind; sleep 0.1", "run_in_background": true}), "job:"},
		{"TaskOutput", named(fields{}), "from behind"},
		{"Skill", with(fields{"skill": "commit"}), "The instructions of the skill commit follow."},
		{"Bash", with(fields{"command": "sleep 60", "run_in_background": true}), "job:"},
		{"TaskStop", named(fields{}), "stopped"},
		{"bash__script", with(fields{"path": "s.sh", "args": []string{"x"}}), "script x"},
		{"ProcessList", with(fields{}), "COMMAND"},
		{"ProcessSignal", with(fields{"pid": 1, "signal": "TERM"}), "E_TOOL"},
		{"Environment", with(fields{}), "os"},
		{"TaskNote", with(fields{"decisions": []fields{{"decision": "keep it"}}}), "Noted: 1 decisions"},
		{"MemoryAppend", with(fields{"note": "it is so", "scope": "user"}), "Noted for later sessions (user)."},
		{"MemoryRead", with(fields{"scope": "user"}), "it is so"},
		{"Recall", with(fields{"from": 2}), "Use them all."},
		{"Outline", with(fields{"path": "m.go"}), "Hello"},
		{"Check", with(fields{"command": "sh s.sh checked"}), "script checked"},
		{"GitRead", with(fields{"command": "status"}), "m.go"},
		{"GitCommit", with(fields{"message": "Begin", "paths": []string{"m.go"}}), "Begin"},
		{"WebFetch", with(fields{"url": url + "/page"}), "# Title"},
		{"WebSearch", with(fields{"query": "anything"}), "Found it"},
		{"HttpRequest", with(fields{"method": "POST", "url": url + "/echo", "body": "to and fro"}), "to and fro"},
		{"Agent", with(fields{"prompt": "Say hello.", "subagent_type": "Explore"}), "Hello from elsewhere."},
		{"TodoWrite", with(fields{"todos": []fields{{"content": "all of it", "status": "completed"}}}), ""},
		{"AskUserQuestion", with(question), "right"},
	}
}

// pages is a server with a page, a search and an echo.
func pages(t *testing.T) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<h1>Title</h1><p>Text.")
		case "/search":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"results":[{"title":"Found it","url":"https://example.com/","content":"here"}]}`)
		default:
			_, _ = io.Copy(w, r.Body)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// Each tool of the catalog does its work in one turn, from the model's answer on
// the wire to the result in the next request.
func TestEveryTool(t *testing.T) {
	t.Parallel()
	question := fields{"questions": []fields{{"question": "Which?", "options": []fields{{"label": "left"}, {"label": "right"}}}}}
	answered := maps.Clone(question)
	answered["answers"] = fields{"Which?": "right"}
	srv := pages(t)
	steps := everyTool(srv.URL, question)
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		switch {
		case strings.TrimSpace(r.Last) == "Say hello.":
			return script.Reply{Text: "Hello from elsewhere.", Stop: agent.StopEnd}
		case r.Step >= len(steps):
			return script.Reply{Text: "Done."}
		}
		s := steps[r.Step]
		return script.Reply{Text: "Next.", Calls: []script.Call{{ID: fmt.Sprintf("c%d", r.Step), Tool: s.tool, Input: input(s.input(r.Last))}}}
	}})
	w.write("s.sh", "#!/bin/sh\necho script $1\n")
	if err := os.Chmod(filepath.Join(w.work, "s.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("m.go", "package m\n\nfunc Hello() {}\n")
	w.write("n.ipynb", `{"cells":[{"cell_type":"code","id":"x","metadata":{},"source":["print(1)"],"outputs":[],"execution_count":null}],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "n"}, {"config", "user.email", "n@example.com"}} {
		if out, err := exec.Command("git", append([]string{"-C", w.work}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	settings := fmt.Sprintf(`{"network":{"mode":"internal","allowHosts":["127.0.0.1"]},"search":{"kind":"searxng","url":"%s/search"}}`, srv.URL)
	k := w.talk(app.Flags{Skip: true, Settings: settings}, agent.Open{Approver: true})
	end := k.answer("Use them all.", func(agent.ApprovalAsked) agent.Resolve {
		return agent.Resolve{Decision: agent.Decision{Verdict: agent.Allow, Input: input(answered)}}
	})
	if end.Reason != agent.EndDone || end.Steps != len(steps)+1 {
		t.Errorf("the turn ended: %+v", end)
	}
	used := map[string]bool{}
	for i, s := range steps {
		used[s.tool] = true
		r := k.result(fmt.Sprintf("c%d", i))
		said := r.Text + string(r.Output)
		if r.Error != nil {
			said += string(r.Error.Code)
		}
		if !strings.Contains(said, s.gives) || r.Failed() && !strings.HasPrefix(s.gives, "E_") {
			t.Errorf("%s: %+v", s.tool, r)
		}
	}
	if got := w.read("a.txt"); got != "ONE\nTWO\nTHREE\n" {
		t.Errorf("a.txt has %q", got)
	}
	if asked := all[agent.ApprovalAsked](k.seen); len(asked) != 1 || asked[0].Proposal.Call.Tool != "user__ask" {
		t.Errorf("the user was asked %+v", asked)
	}
	offered := offeredTools(t, w.model)
	delete(offered, "Diagnostics") // depends on what is installed
	if !maps.Equal(used, offered) {
		t.Errorf("the catalog has %v\nthe turn used %v", offered, used)
	}
	if got := len(all[agent.CallSettled](k.seen)); got != 2 {
		t.Errorf("%d tasks were settled", got)
	}
	k.toldOnce(len(steps) + 1)
	k.sound()
	for _, bad := range refusals(w.model) {
		t.Error(bad)
	}
}

// offeredTools returns the names of the tools of the last request.
func offeredTools(t *testing.T, m *script.Server) map[string]bool {
	t.Helper()
	all := m.Requests()
	var body struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(all[len(all)-1].Body, &body); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, tool := range body.Tools {
		names[tool.Name] = true
	}
	return names
}

// A no keeps a call from running, a yes lets this one run, and a yes for the
// session covers the tool until the session is opened by somebody else.
func TestApprovals(t *testing.T) {
	t.Parallel()
	s := says(
		calls(tool("Bash", fields{"command": "echo no >> ledger"})),
		calls(tool("Bash", fields{"command": "echo yes >> ledger"})),
		calls(tool("Bash", fields{"command": "echo session >> ledger"})),
		calls(tool("Bash", fields{"command": "echo covered >> ledger"})),
	)
	for i := range s.Replies[:4] {
		s.Replies[i].Calls[0].ID = fmt.Sprintf("c%d", i)
	}
	w := newWorld(t, s, script.Options{})
	k := w.talk(app.Flags{}, agent.Open{Approver: true})
	answers := []agent.Resolve{no(), yes(), {Decision: yes().Decision, Remember: "session"}}
	asked := 0
	end := k.answer("Go.", func(a agent.ApprovalAsked) agent.Resolve {
		asked++
		// The log has the question before anything can have happened.
		if strings.Contains(w.read("ledger"), a.Proposal.Call.ID) {
			t.Errorf("%s ran before it was decided", a.Proposal.Call.ID)
		}
		return answers[asked-1]
	})
	if end.Reason != agent.EndDone || asked != 3 {
		t.Errorf("asked %d times; the turn ended: %+v", asked, end)
	}
	if r := k.result("c0"); r.Error == nil || r.Error.Code != agent.ErrDenied || !strings.Contains(r.Text, "rather not") {
		t.Errorf("after a no: %+v", r)
	}
	if got, want := w.read("ledger"), "yes\nsession\ncovered\n"; got != want {
		t.Errorf("the ledger has %q, want %q", got, want)
	}
	k.sound()
}

// What the modes say about five calls, with somebody there to ask: a letter for
// each, a(llowed), q(uestion), d(enied).
func TestModes(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "o.txt"), []byte("outside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[agent.Mode]string{
		agent.ModeDefault:     "aqqqq",
		agent.ModeAcceptEdits: "aqaaq",
		agent.ModePlan:        "aqddq",
		agent.ModeDontAsk:     "adddd",
		agent.ModeBypass:      "aaaaa",
	} {
		w := newWorld(t, says(calls(
			tool("Read", fields{"file_path": "in.txt"}),
			tool("Read", fields{"file_path": filepath.Join(outside, "o.txt")}),
			tool("Write", fields{"file_path": "made.txt", "content": "made\n"}),
			tool("Bash", fields{"command": "echo ran >> ledger"}),
			tool("Write", fields{"file_path": ".envrc", "content": "made\n"}),
		)), script.Options{})
		w.write("in.txt", "inside\n")
		k := w.talk(app.Flags{Mode: string(mode)}, agent.Open{Approver: true})
		if end := k.answer("Go.", func(agent.ApprovalAsked) agent.Resolve { return no() }); end.Reason != agent.EndDone {
			t.Errorf("%s: the turn ended: %+v", mode, end)
		}
		asked := map[string]bool{}
		for _, a := range all[agent.ApprovalAsked](k.seen) {
			asked[a.Proposal.Call.ID] = true
		}
		got := ""
		for i := range 5 {
			id := fmt.Sprintf("c%d", i+1)
			switch r := k.result(id); {
			case asked[id]:
				got += "q"
			case !r.Failed():
				got += "a"
			case r.Error.Code == agent.ErrDenied:
				got += "d"
			default:
				t.Errorf("%s: %s: %+v", mode, id, r)
			}
		}
		if got != want {
			t.Errorf("mode %s says %s, want %s", mode, got, want)
		}
		for i, name := range map[int]string{2: "made.txt", 3: "ledger", 4: ".envrc"} {
			if there := w.read(name) != ""; there != (want[i] == 'a') {
				t.Errorf("mode %s: %s is there: %v", mode, name, there)
			}
		}
		k.sound()
	}
}

// Nobody to ask is a no, at once.
func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(calls(tool("Bash", fields{"command": "echo ran >> ledger"}))), script.Options{})
	k := w.talk(app.Flags{}, agent.Open{})
	if end := k.turn("Go."); end.Reason != agent.EndDone {
		t.Errorf("the turn ended: %+v", end)
	}
	if r := k.result("c1"); r.Error == nil || r.Error.Code != agent.ErrDenied || w.read("ledger") != "" {
		t.Errorf("%+v; the ledger has %q", r, w.read("ledger"))
	}
	k.sound()
}

// A deny rule holds in every mode, under every name of a tool, and for what could
// do the same; nobody is asked.
func TestDenyRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule string
		want string // of the calls below: a(llowed), d(enied)
	}{
		{"Bash", "ddaaa"},
		{"bash__exec", "ddaaa"},
		{"group:system", "ddaaa"},
		{"Edit", "aadda"},
		{"Write", "aadaa"},
		{"*", "ddddd"},
	} {
		for _, flags := range []app.Flags{
			{Skip: true, Deny: []string{tt.rule}},
			{Skip: true, Settings: string(input(fields{"permissions": fields{"deny": []string{tt.rule}}}))},
		} {
			w := newWorld(t, says(calls(
				tool("Bash", fields{"command": "echo ran"}),
				tool("bash__script", fields{"path": "s.sh"}),
				tool("Write", fields{"file_path": "made.txt", "content": "made\n"}),
				tool("Edit", fields{"file_path": "empty.txt", "old_string": "", "new_string": "not empty\n"}),
				tool("Read", fields{"file_path": "s.sh"}),
			)), script.Options{})
			w.write("s.sh", "#!/bin/sh\necho ran\n")
			if err := os.Chmod(filepath.Join(w.work, "s.sh"), 0o700); err != nil {
				t.Fatal(err)
			}
			k := w.talk(flags, agent.Open{Approver: true})
			if end := k.turn("Go."); end.Reason != agent.EndDone {
				t.Errorf("%s: the turn ended: %+v", tt.rule, end)
			}
			got := ""
			for i := range 5 {
				switch r := k.result(fmt.Sprintf("c%d", i+1)); {
				case !r.Failed():
					got += "a"
				case r.Error.Code == agent.ErrDenied, r.Error.Code == agent.ErrNotInCatalog && strings.Contains(r.Error.Message, "deny rule "+tt.rule):
					got += "d"
				default:
					t.Errorf("%s: %+v", tt.rule, r)
				}
			}
			if got != tt.want {
				t.Errorf("rule %s says %s, want %s", tt.rule, got, tt.want)
			}
			k.sound()
		}
	}
}

// An interrupt ends a running command, and all that it has started, within a
// second; the session is ready for the next prompt.
func TestInterruptCommand(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"polite":   "sleep 60 & echo begun; sleep 60",
		"stubborn": "trap '' TERM INT; (trap '' TERM; while :; do sleep 60; done) & echo begun; while :; do sleep 60; done",
	} {
		w := newWorld(t, says(calls(tool("Bash", fields{"command": command}))), script.Options{})
		k := w.talk(app.Flags{Allow: []string{"Bash"}}, agent.Open{})
		k.send(agent.Prompt{Text: "Go."})
		spawned := body[agent.CallSpawned](k)
		if !slices.ContainsFunc(k.seen, func(e agent.Event) bool { return e.Kind() == agent.CallOutput{}.Kind() }) {
			body[agent.CallOutput](k) // which may have come before it is known who runs
		}
		begun := time.Now()
		k.send(agent.Interrupt{})
		end := body[agent.TurnEnded](k)
		took := time.Since(begun)
		t.Logf("%s: interrupted in %v", name, took)
		if end.Reason != agent.EndInterrupted || took > 20*time.Second {
			t.Errorf("%s: the turn ended after %v: %+v", name, took, end)
		}
		for groupLives(spawned.Process.PGID) && time.Since(begun) < 20*time.Second {
			runtime.Gosched() // killed it is; it dies when it gets a processor
		}
		if groupLives(spawned.Process.PGID) {
			t.Errorf("%s: a process of the command is still alive", name)
		}
		if r := k.result("c1"); r.Error == nil || r.Error.Code != agent.ErrAborted {
			t.Errorf("%s: %+v", name, r)
		}
		if end := k.turn("And now?"); end.Reason != agent.EndDone {
			t.Errorf("%s: the next turn ended: %+v", name, end)
		}
		k.sound()
		for _, bad := range refusals(w.model) {
			t.Error(bad)
		}
	}
}

var runPattern = regexp.MustCompile(`hk_[0-9A-Z]+`)

var handlePattern = regexp.MustCompile(`output:[0-9a-f]+`)

// Five megabytes of output reach the model as a head, a tail and a handle, under
// which all of it can be read and searched, also after a restart.
func TestLongOutput(t *testing.T) {
	t.Parallel()
	const lines = 160_000
	command := fmt.Sprintf("seq -f 'line %%06.0f of the long output' 1 %d", lines)
	handle := ""
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if h := handlePattern.FindString(r.Last); h != "" {
			handle = h
		}
		look := []script.Call{
			{ID: fmt.Sprintf("read%d", r.Step), Tool: "Read", Input: input(fields{"file_path": handle, "offset": 80_000, "limit": 2})},
			{ID: fmt.Sprintf("grep%d", r.Step), Tool: "Grep", Input: input(fields{"path": handle, "pattern": "line 15999[89]", "output_mode": "content"})},
		}
		switch r.Step {
		case 0:
			return calls(tool("Bash", fields{"command": command}))
		case 1, 3:
			return script.Reply{Text: "I look.", Calls: look}
		}
		return script.Reply{Text: "Done."}
	}})
	flags := app.Flags{Allow: []string{"Bash"}}
	k := w.talk(flags, agent.Open{})
	if end := k.turn("Go."); end.Reason != agent.EndDone {
		t.Errorf("the turn ended: %+v", end)
	}
	r := k.result("c1")
	if size := int64(lines * len("line 000001 of the long output\n")); r.Spill == nil || r.Spill.Bytes < size-1 || r.Spill.Bytes > size+1 || r.Spill.Capped {
		t.Fatalf("the spill: %+v", r.Spill)
	}
	if n := len(r.Text); n > 12_000 || !strings.Contains(r.Text, "line 000001 ") || !strings.Contains(r.Text, "line 160000 ") || !strings.Contains(r.Text, r.Spill.Handle) {
		t.Errorf("%d bytes are shown: %.300q", n, r.Text)
	}
	k.sound()
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := w.talk(flags, agent.Open{Session: k.Info.ID})
	if end := again.turn("Look again."); end.Reason != agent.EndDone {
		t.Errorf("the second turn ended: %+v", end)
	}
	for _, step := range []string{"1", "3"} {
		if r := again.result("read" + step); r.Failed() || !strings.Contains(r.Text, "line 080000 ") || !strings.Contains(r.Text, "line 080001 ") {
			t.Errorf("reading it: %+v", r)
		}
		if r := again.result("grep" + step); r.Failed() || !strings.Contains(r.Text, "159998:line 159998 ") || !strings.Contains(r.Text, "line 159999 ") {
			t.Errorf("searching it: %+v", r)
		}
	}
	again.sound()
	for _, bad := range refusals(w.model) {
		t.Error(bad)
	}
}

// Input that comes while a turn runs enters the conversation at its next step,
// and what is meant for later waits for its end.
func TestSteering(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(
		calls(tool("Bash", fields{"command": "until [ -e go ]; do sleep 0.01; done"})),
		script.Reply{Text: "As you wish."},
	), script.Options{})
	k := w.talk(app.Flags{Allow: []string{"Bash"}}, agent.Open{})
	k.send(agent.Prompt{Text: "Go."})
	body[agent.CallSpawned](k)
	k.send(agent.Prompt{ID: "later", Text: "Then this.", Later: true})
	k.send(agent.Prompt{ID: "now", Text: "Rather that."})
	w.write("go", "")
	first, second := body[agent.TurnEnded](k), body[agent.TurnEnded](k)
	if first.Reason != agent.EndDone || second.Reason != agent.EndDone {
		t.Errorf("the turns ended: %+v, %+v", first, second)
	}
	var order []string
	for _, e := range k.seen {
		switch b := e.Body.(type) {
		case agent.InputAdded:
			order = append(order, b.Text)
		case agent.TurnEnded:
			order = append(order, "end")
		}
	}
	if want := []string{"Go.", "Rather that.", "end", "Then this.", "end"}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
	k.sound()
	for _, bad := range refusals(w.model) {
		t.Error(bad)
	}
}
