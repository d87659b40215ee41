//go:build unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// One session has five front-ends in one program: line mode, two readers over HTTP, a host
// of the Agent SDKs and an editor. All see what happens, one answers what is asked, each
// that can has a word, and each that leaves costs the others nothing.
func TestFiveFrontEnds(t *testing.T) {
	prooftest.Program(t, "bash")
	before := runtime.NumGoroutine()
	command := `{"command":"echo ran >> ran.txt"}`
	f := newFive(
		t, script.Reply{Text: "FIRST.", Calls: []script.Call{{ID: "c1", Tool: "Bash", Input: []byte(command)}}},
		script.Reply{Text: "SECOND."}, script.Reply{Text: "THIRD."}, script.Reply{Text: "FOURTH."},
	)
	person := f.lineMode()
	log := f.followed()
	server := f.serve()
	reader := server.reader(f.session, false)
	host := f.host()
	editor := f.editor()

	// A call that needs approval is shown to all; one of them answers, and it runs once.
	person.say("Begin.")
	ask := log.until(kind(agent.ApprovalAsked{})).Body.(agent.ApprovalAsked)
	reader.until(kind(agent.ApprovalAsked{}))
	person.until(containing("echo ran"))
	put := editor.until(is("session/request_permission", "method"))
	asked := host.until(is("can_use_tool", "request", "subtype"))
	host.say(fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"behavior":"allow","updatedInput":%s}}}`,
		asked.at("request_id"), command))
	if back := editor.until(is("$/cancel_request", "method")); fmt.Sprint(back.at("params", "requestId")) != fmt.Sprint(put.at("id")) {
		t.Errorf("the editor was asked %s, and what was taken back is %s", put.raw, back.raw)
	}
	for _, verdict := range []agent.Verdict{agent.Deny, agent.Allow} {
		status, said := server.post("/v1/sessions/"+f.session+"/commands/resolve", fmt.Sprintf(`{"id":%q,"decision":{"verdict":%q}}`, ask.ID, verdict))
		if status != http.StatusConflict || !strings.Contains(said, "it was answered before: allow, by host") {
			t.Errorf("who answers second, with %s, is told %d %s", verdict, status, said)
		}
	}
	log.until(kind(agent.TurnEnded{}))
	if data, err := os.ReadFile(filepath.Join(f.p.flags.workdir, "ran.txt")); err != nil || string(data) != "ran\n" {
		t.Errorf("the command has left %q, %v", data, err)
	}

	// The editor and the host have their word.
	editor.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"Go on."}]}}`, f.session))
	log.until(kind(agent.TurnEnded{}))
	host.say(user("And on."))
	log.until(kind(agent.TurnEnded{}))
	f.standsStill(server, log)

	// What each has shown is what has happened.
	last := log.all()[len(log.all())-1]
	reader.until(sameAs(last))
	if d := cmp.Diff(numbers(log.all()), numbers(reader.all())); d != "" {
		t.Errorf("the reader saw other events than there are (-there +seen):\n%s", d)
	}
	host.until(func(l wireFrame) bool { return l.at("type") == "result" && l.at("result") == "FOURTH." })
	editor.until(func(l wireFrame) bool { return l.at("params", "update", "content", "text") == "FOURTH." })
	const told = "FIRST. c1 c1:done SECOND. THIRD. FOURTH."
	for who, shown := range map[string]string{"the log": toldByLog(log.all()), "the host": toldToHost(host.all()), "the editor": toldToEditor(editor.all())} {
		if shown != told {
			t.Errorf("%s: %s; want %s", who, shown, told)
		}
	}
	for _, words := range []string{"SECOND.", "THIRD.", "FOURTH."} {
		person.until(containing(words))
	}

	// Each leaves, and the session goes on for the rest.
	editor.leave()
	host.leave()
	if !f.p.opened.Runs(f.session) {
		t.Error("the session has ended before the last who uses it has left")
	}
	person.say("/exit")
	person.leave()
	if f.p.opened.Runs(f.session) {
		t.Error("the session goes on, and nobody uses it")
	}
	reader.ends()
	server.stop()
	log.ends()
	f.close()
	fewer(t, before)
}

// standsStill has a second reader over HTTP stop for a while, catch up, and be killed.
func (f *five) standsStill(server *fiveServer, log *shown[agent.Event]) {
	t := f.t
	const (
		changes = 192
		size    = 64 << 10 // of each: 12 MiB of events in all
		bound   = 6 << 20  // of memory that one reader may cost
	)
	goroutines, memory := runtime.NumGoroutine(), held()
	reader := server.reader(f.session, true)
	for i := range changes {
		if err := f.shared().Send(t.Context(), agent.Change{Title: strconv.Itoa(i) + strings.Repeat("x", size)}); err != nil {
			t.Fatal(err)
		}
	}
	last := log.until(func(e agent.Event) bool {
		b, ok := e.Body.(agent.SettingsChanged)
		return ok && strings.HasPrefix(b.Title, strconv.Itoa(changes-1)+"x")
	})
	if n := len(reader.all()); n > 0 {
		t.Errorf("who stands still has read %d events", n)
	}
	var more int64
	if !waited(func() bool { more = held() - memory; return more <= bound }) { // once the others have seen it all
		t.Errorf("%d bytes are held for a reader that stands still, more than %d", more, bound)
	}
	t.Logf("a reader that is %d bytes behind costs %d", changes*size, more)
	reader.goOn()
	reader.until(sameAs(last))
	if d := cmp.Diff(numbers(log.all()), numbers(reader.all())); d != "" {
		t.Errorf("who stood still saw other events than there are (-there +seen):\n%s", d)
	}
	reader.kill()
	fewer(t, goroutines)
	if !waited(func() bool { more = held() - memory; return more <= bound }) {
		t.Errorf("a reader that was killed has left %d bytes", more)
	}
}
