package control_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/client/protocol"
	"dure/internal/models/script"
)

// A host is told of a turn: its pieces, the whole answer, and what it came to, under the ID of
// its message.
func TestTurn(t *testing.T) {
	r := newRig(t, script.Reply{Thinking: "hm", Text: "Hello, host.", DelayMS: 5})
	h := r.connect()
	hello := h.begin(protocol.InitializePayload{Version: 1, Client: protocol.Client{Name: "test"}})
	if hello.Version != protocol.Version || hello.Program.Name != "dure" || len(hello.Requests) != 10 || len(hello.Messages) != 11 ||
		hello.Limits.AskTime != 30_000 || hello.Limits.MessageBytes != protocol.MaxMessage || hello.Workdir != r.work {
		t.Errorf("%+v", hello)
	}
	h.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Hello"})
	res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult)
	if m.ID != "m1" || m.Session == "" || res.Status != "done" || res.Text != "Hello, host." || res.Steps != 1 || res.Turns != 1 || res.Usage.Output == 0 {
		t.Errorf("%+v %+v", m, res)
	}
	var answer protocol.AssistantMessageData
	tokens := ""
	for _, m := range h.sent() {
		switch m.Type {
		case protocol.TypeAssistantMessage:
			answer, _ = protocol.Payload[protocol.AssistantMessageData](m)
		case protocol.TypeAssistantToken:
			if p, _ := protocol.Payload[protocol.TokenData](m); p.Kind == "text" {
				tokens += p.Text
			}
		}
	}
	if answer.Text != "Hello, host." || answer.Thinking != "hm" || answer.StopReason != "end_turn" || tokens != answer.Text {
		t.Errorf("%+v, in pieces %q", answer, tokens)
	}
	if err := h.ends(); err != nil {
		t.Error(err)
	}
}

// What needs somebody's word is put to the host: it is run when that says so, with the input
// that it gives, and denied with its reason else.
func TestCanUseTool(t *testing.T) {
	t.Parallel()
	r := newRig(t,
		script.Reply{Calls: []script.Call{write("a.txt", "theirs")}}, script.Reply{Text: "One."},
		script.Reply{Calls: []script.Call{write("b.txt", "b")}}, script.Reply{Text: "Two."})
	h := r.connect()
	h.begin(protocol.InitializePayload{CanUseTool: true, Client: protocol.Client{Name: "test"}})
	h.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Write"})
	asked, m := next[protocol.CanUseToolData](h, protocol.TypeCanUseTool)
	if asked.Tool != "file-system__write" || asked.Timeout != 30_000 || !strings.Contains(string(asked.Input), "theirs") || asked.Diff == "" || len(asked.Choices) == 0 {
		t.Errorf("%+v", asked)
	}
	ours := strings.Replace(string(asked.Input), "theirs", "ours", 1)
	h.send(protocol.TypeCanUseToolResponse, m.ID, m.Session, protocol.CanUseToolResponsePayload{Behavior: "allow", Input: json.RawMessage(ours)})
	h.replied(m.ID)
	for done := false; !done; { // what is run is asked about again when it is another call
		n := h.until("the end", func(n protocol.Message) bool {
			return n.Type == protocol.TypeCanUseTool || n.Type == protocol.TypeSessionResult
		})
		if done = n.Type == protocol.TypeSessionResult; !done {
			h.send(protocol.TypeCanUseToolResponse, n.ID, "", protocol.CanUseToolResponsePayload{Behavior: "allow"})
		}
	}
	if data, err := os.ReadFile(filepath.Join(r.work, "a.txt")); err != nil || string(data) != "ours" {
		t.Errorf("%q, %v", data, err)
	}
	h.send(protocol.TypeCanUseToolResponse, m.ID, "", protocol.CanUseToolResponsePayload{Behavior: "deny"})
	if e := h.refused(m.ID); e.Code != protocol.CodeLate {
		t.Errorf("%+v", e)
	}

	h.send(protocol.TypeUserMessage, "m2", m.Session, protocol.UserMessagePayload{Text: "Write again"})
	_, m = next[protocol.CanUseToolData](h, protocol.TypeCanUseTool)
	h.raw(`{"type":"CanUseToolResponse","id":"` + m.ID + `","payload":{"behavior":"perhaps"}}`)
	if e := h.refused(m.ID); e.Code != protocol.CodePayload { // which settles nothing
		t.Errorf("%+v", e)
	}
	h.send(protocol.TypeCanUseToolResponse, m.ID, "", protocol.CanUseToolResponsePayload{Behavior: "deny", Reason: "not today"})
	h.replied(m.ID)
	res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult)
	if m.ID != "m2" || len(res.Denials) != 1 || res.Denials[0].Reason != "not today" || !strings.HasPrefix(res.Denials[0].By, "control:test-") {
		t.Errorf("%+v", res)
	}
	if _, err := os.Stat(filepath.Join(r.work, "b.txt")); err == nil {
		t.Error("what was denied was done")
	}
}

func write(path, content string) script.Call {
	in, err := json.Marshal(map[string]string{"file_path": path, "content": content})
	if err != nil {
		panic(err)
	}
	return script.Call{Tool: "Write", Input: in}
}

// A host that does not answer in time is told that it lost; the model reads why.
func TestCanUseToolTimesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, script.Reply{Calls: []script.Call{write("a.txt", "a")}}, script.Reply{Text: "Well."})
	h := r.connect()
	h.begin(protocol.InitializePayload{CanUseTool: true, CanUseToolTimeout: 50})
	h.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Write"})
	_, m := next[protocol.CanUseToolData](h, protocol.TypeCanUseTool)
	res, _ := next[protocol.ToolResultData](h, protocol.TypeToolResult)
	if res.Code != string(agent.ErrApprovalTimeout) || !strings.Contains(res.Text, "50ms") {
		t.Errorf("%+v", res)
	}
	h.send(protocol.TypeCanUseToolResponse, m.ID, "", protocol.CanUseToolResponsePayload{Behavior: "allow"})
	if e := h.refused(m.ID); e.Code != protocol.CodeLate || !strings.Contains(e.Message, "denied") {
		t.Errorf("%+v", e)
	}
	next[protocol.SessionResultData](h, protocol.TypeSessionResult)
	h.send(protocol.TypeCanUseToolResponse, "ask-nobody", "", protocol.CanUseToolResponsePayload{Behavior: "allow"})
	if e := h.refused("ask-nobody"); e.Code != protocol.CodeUnknownAsk {
		t.Errorf("%+v", e)
	}
}

// One approval, two hosts: one answer counts, and the other host is told that it lost.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	r := newRig(t, script.Reply{Calls: []script.Call{write("a.txt", "a")}}, script.Reply{Text: "Done."})
	one, two := r.connect(), r.connect()
	one.begin(protocol.InitializePayload{CanUseTool: true, Client: protocol.Client{Name: "one"}})
	one.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Write"})
	_, first := next[protocol.CanUseToolData](one, protocol.TypeCanUseTool)
	hello := two.begin(protocol.InitializePayload{CanUseTool: true, Client: protocol.Client{Name: "two"}, Open: &protocol.OpenSession{Resume: first.Session}})
	if hello.Session != first.Session {
		t.Errorf("%+v", hello)
	}
	asked, second := next[protocol.CanUseToolData](two, protocol.TypeCanUseTool) // although it came later
	if asked.Tool == "" {
		t.Errorf("%+v", asked)
	}
	two.send(protocol.TypeCanUseToolResponse, second.ID, "", protocol.CanUseToolResponsePayload{Behavior: "allow"})
	two.replied(second.ID)
	one.until("the resolution", func(m protocol.Message) bool { return strings.Contains(string(m.Payload), "approval.resolved") })
	one.send(protocol.TypeCanUseToolResponse, first.ID, "", protocol.CanUseToolResponsePayload{Behavior: "deny"})
	if e := one.refused(first.ID); e.Code != protocol.CodeLate {
		t.Errorf("%+v", e)
	}
	for _, h := range []*host{one, two} {
		if res, _ := next[protocol.SessionResultData](h, protocol.TypeSessionResult); res.Status != "done" || res.Text != "Done." {
			t.Errorf("%+v", res)
		}
	}
	if err := one.ends(); err != nil { // the other host keeps the session
		t.Error(err)
	}
	two.send(protocol.TypeGetContextUsage, "c", "", protocol.GetContextUsagePayload{})
	if n := two.replied("c"); n.Context == nil || n.Context.Used == 0 || len(n.Context.Parts) == 0 {
		t.Errorf("%+v", n)
	}
}

// Without somebody who answers, what needs an answer is denied at once.
func TestNobodyAnswers(t *testing.T) {
	r := newRig(t, script.Reply{Calls: []script.Call{write("a.txt", "a")}}, script.Reply{Text: "Well."})
	h := r.connect()
	h.begin(protocol.InitializePayload{})
	h.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Write"})
	res, _ := next[protocol.SessionResultData](h, protocol.TypeSessionResult)
	if res.Status != "done" || len(res.Denials) != 1 || len(h.types(protocol.TypeCanUseTool)) != 0 {
		t.Errorf("%+v", res)
	}
}

// A session is changed while it runs, interrupted, and its files are put back.
func TestRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t,
		script.Reply{Calls: []script.Call{write("a.txt", "a")}}, script.Reply{Text: "Done."},
		script.Reply{Text: strings.Repeat("On and on. ", 400), DelayMS: 20})
	h := r.connect()
	hello := h.begin(protocol.InitializePayload{Open: &protocol.OpenSession{Title: "A title", Mode: "plan"}})
	h.send(protocol.TypeSetPermissionMode, "1", "", protocol.SetPermissionModePayload{Mode: "acceptEdits"})
	h.replied("1")
	h.send(protocol.TypeSetModel, "3", hello.Session, protocol.SetModelPayload{Model: "script"})
	h.replied("3")
	h.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Write"})
	if res, _ := next[protocol.SessionResultData](h, protocol.TypeSessionResult); res.Status != "done" || len(res.Denials) != 0 {
		t.Errorf("%+v", res)
	}
	h.send(protocol.TypeRewindFiles, "4", "", protocol.RewindFilesPayload{Message: "m1", Conversation: true})
	if n := h.replied("4"); n.Rewound == nil || n.Rewound.Files != 1 {
		t.Errorf("%+v", n)
	}
	if _, err := os.Stat(filepath.Join(r.work, "a.txt")); err == nil {
		t.Error("the file is still there")
	}
	h.send(protocol.TypeUserMessage, "m2", "", protocol.UserMessagePayload{Text: "Talk"})
	next[protocol.TokenData](h, protocol.TypeAssistantToken)
	h.send(protocol.TypeRewindFiles, "5", "", protocol.RewindFilesPayload{To: 1})
	if e := h.refused("5"); e.Code != protocol.Code(agent.ProblemBusy) {
		t.Errorf("%+v", e)
	}
	h.send(protocol.TypeInterrupt, "6", "", nil)
	h.replied("6")
	if res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult); res.Status != "interrupted" || m.ID != "m2" {
		t.Errorf("%s %+v", m.ID, res)
	}
	h.send(protocol.TypeInterrupt, "7", "", nil) // of nothing
	h.replied("7")
	h.send(protocol.TypeUserMessage, "8", "", protocol.UserMessagePayload{Text: "/compact"})
	if e := h.refused("8"); e.Code != protocol.Code(agent.ProblemUsage) {
		t.Errorf("%+v", e)
	}
	h.send(protocol.TypeTerminate, "9", "", nil)
	h.replied("9")
	<-h.done
}

// Several sessions on one connection are told apart by their IDs, and end one by one.
func TestSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t, script.Reply{When: "one", Text: "1"}, script.Reply{When: "two", Text: "2"})
	h := r.connect()
	h.begin(protocol.InitializePayload{})
	h.send(protocol.TypeUserMessage, "a", "", protocol.UserMessagePayload{Text: "one", Open: &protocol.OpenSession{New: "first"}})
	h.send(protocol.TypeUserMessage, "b", "", protocol.UserMessagePayload{Text: "two", Open: &protocol.OpenSession{New: "second"}})
	got := map[string]string{}
	for range 2 {
		res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult)
		got[m.ID] = m.Session + " " + res.Text
	}
	if got["a"] != "first 1" || got["b"] != "second 2" {
		t.Errorf("%v", got)
	}
	h.send(protocol.TypeTerminate, "c", "first", nil)
	h.replied("c")
	h.send(protocol.TypeInterrupt, "d", "first", nil)
	if e := h.refused("d"); e.Code != protocol.CodeNoSession {
		t.Errorf("%+v", e)
	}
	h.send(protocol.TypeUserMessage, "e", "", protocol.UserMessagePayload{Text: "one again", Open: &protocol.OpenSession{Resume: "first"}})
	if res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult); m.ID != "e" || m.Session != "first" || res.Text != "1" {
		t.Errorf("%s %s %+v", m.ID, m.Session, res)
	}
	h.send(protocol.TypeUserMessage, "f", "", protocol.UserMessagePayload{Open: &protocol.OpenSession{Resume: "nowhere"}})
	if e := h.refused("f"); e.Code != protocol.Code(agent.ProblemMissing) {
		t.Errorf("%+v", e)
	}
	for i := range 20 {
		h.send(protocol.TypeUserMessage, fmt.Sprint("s", i), "", protocol.UserMessagePayload{Open: &protocol.OpenSession{}})
	}
	many := 0
	for i := range 20 {
		if m := h.answer(fmt.Sprint("s", i)); m.Type == protocol.TypeError {
			many++
		}
	}
	if many != 6 { // two are open, and sixteen may be
		t.Errorf("%d were refused", many)
	}
}

// What was asked for before the input ended is finished; nobody is asked any more.
func TestInputEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, script.Reply{Calls: []script.Call{write("a.txt", "a")}, DelayMS: 20}, script.Reply{Text: "Done."})
	h := r.connect()
	h.begin(protocol.InitializePayload{CanUseTool: true})
	h.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Write"})
	if err := h.ends(); err != nil {
		t.Error(err)
	}
	res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult)
	if m.ID != "m1" || res.Status != "done" || len(res.Denials) != 1 || !strings.Contains(res.Denials[0].Reason, "host is gone") {
		t.Errorf("%+v", res)
	}
}

// The end of the input is that of a host which has said so: what runs is interrupted. One that
// has not started the program for itself has no say in that.
func TestHostEndsWithInput(t *testing.T) {
	t.Parallel()
	for own, want := range map[bool]string{true: "interrupted", false: "done"} {
		long := 200
		if own {
			long = 40_000 // it has to run when the input ends
		}
		r := newRig(t, script.Reply{Text: strings.Repeat("On and on. ", long), DelayMS: 5})
		r.cfg.Own = own
		h := r.connect()
		h.begin(protocol.InitializePayload{EndWithInput: true})
		h.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Talk"})
		next[protocol.TokenData](h, protocol.TypeAssistantToken)
		if err := h.ends(); err != nil {
			t.Error(err)
		}
		if res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult); m.ID != "m1" || res.Status != want {
			t.Errorf("%t: %s %s, want %s", own, m.ID, res.Status, want)
		}
	}
}

// Terminate does not wait for a turn, and answers all that is not answered yet.
func TestTerminate(t *testing.T) {
	r := newRig(t, script.Reply{Text: strings.Repeat("On and on. ", 400), DelayMS: 20})
	h := r.connect()
	h.begin(protocol.InitializePayload{})
	h.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Talk"})
	next[protocol.TokenData](h, protocol.TypeAssistantToken)
	h.send(protocol.TypeTerminate, "bye", "", nil)
	res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult)
	if m.ID != "m1" || res.Status != "interrupted" {
		t.Errorf("%s %+v", m.ID, res)
	}
	h.replied("bye")
	<-h.done
	if h.err != nil {
		t.Error(h.err)
	}
}

// Whatever is wrong with a request is answered with an error that has its ID.
func TestMistakes(t *testing.T) {
	r := newRig(t)
	h := r.connect()
	say := func(line string, want protocol.Code) {
		t.Helper()
		h.raw(line)
		e, m := next[protocol.ErrorData](h, protocol.TypeError)
		var sent struct{ ID string }
		_ = json.Unmarshal([]byte(line), &sent)
		if e.Code != want || m.ID != sent.ID {
			t.Errorf("%.80s: %s %+v", line, m.ID, e)
		}
	}
	say("garbage", protocol.CodeMalformed)
	say(`{"type":"Interrupt"}`, protocol.CodeMalformed)
	say(`{"id":"0"}`, protocol.CodeMalformed)
	say(`{"type":"Interrupt","id":"1"}`, protocol.CodeNotInitialized)
	say(`{"type":"Dance","id":"2"}`, protocol.CodeUnknownType)
	say(`{"type":"Initialize","id":"3","payload":[]}`, protocol.CodePayload)
	say(`{"type":"Initialize","id":"3","payload":{"version":-1}}`, protocol.CodeVersion)
	say(`{"type":"Initialize","id":"3","payload":{"can_use_tool_timeout_ms":600001}}`, protocol.CodePayload)
	say(`{"type":"Initialize","id":"3","payload":{"settings":[]}}`, protocol.CodePayload)
	h.begin(protocol.InitializePayload{Version: 7})
	say(`{"type":"Initialize","id":"4"}`, protocol.CodeInitialized)
	say(`{"type":"Interrupt","id":"5"}`, protocol.CodeNoSession)
	say(`{"type":"UserMessage","id":"6","session":"nobody","payload":{"text":"x"}}`, protocol.CodeNoSession)
	say(`{"type":"UserMessage","id":"6","session":"a","payload":{"open":{}}}`, protocol.CodePayload)
	say(`{"type":"UserMessage","id":"6","payload":{"open":{"resume":"a","fork":"b"}}}`, protocol.CodePayload)
	say(`{"type":"UserMessage","id":"6","payload":{"open":{"new":"../x"}}}`, protocol.CodePayload)
	say(`{"type":"UserMessage","id":"6","payload":{"open":{"at":3}}}`, protocol.CodePayload)
	say(`{"type":"UserMessage","id":"6","payload":{"open":{"max_steps":-3}}}`, protocol.CodePayload)
	say(`{"type":"UserMessage","id":"7","payload":{"attachments":[{"type":"image/png","data":"%%"}]}}`, protocol.CodePayload)
	say(`{"type":"HookCallback","id":"8","payload":{}}`, protocol.CodeUnknownAsk)
	say(`{"type":"Terminate","id":"9","session":"nobody"}`, protocol.CodeNoSession)
	h.send(protocol.TypeUserMessage, "10", "", protocol.UserMessagePayload{Open: &protocol.OpenSession{}})
	h.replied("10")
	say(`{"type":"SetPermissionMode","id":"11","payload":{"mode":"free"}}`, protocol.CodePayload)
	say(`{"type":"SetModel","id":"12"}`, protocol.CodePayload)
	say(`{"type":"RewindFiles","id":"13"}`, protocol.CodePayload)
	say(`{"type":"RewindFiles","id":"13","payload":{"message":"m"}}`, protocol.CodePayload)
	say(`{"type":"RewindFiles","id":"13","payload":{"to":100000}}`, protocol.Code(agent.ProblemEvent))
	if slices.Contains(h.types(protocol.TypeInitializeResult), "") || len(h.types(protocol.TypeInitializeResult)) != 1 {
		t.Error("initialized twice")
	}
}
