package control_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/client/protocol"
	"dure/internal/models/script"
)

// A host is told of the events that it has registered for, and of no others. What it answers
// counts as what a hook of the settings says.
func TestHooks(t *testing.T) {
	r := newRig(t, script.Reply{Calls: []script.Call{write("a.txt", "a"), write("b.txt", "b")}}, script.Reply{Text: "Well."})
	h := r.connect()
	hello := h.begin(protocol.InitializePayload{Hooks: []protocol.HookRegistration{{Event: "PreToolUse", Matcher: "Write"}, {Event: "UserPromptSubmit"}}, Open: &protocol.OpenSession{Mode: "acceptEdits"}})
	h.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Write"})
	told, m := next[protocol.HookEventData](h, protocol.TypeHookEvent)
	if told.Event != "UserPromptSubmit" || told.Hook != 1 || told.Timeout != 30_000 || m.Session != hello.Session || !strings.Contains(string(told.Input), `"Write"`) {
		t.Errorf("%+v %+v", m, told)
	}
	h.send(protocol.TypeHookCallback, m.ID, "", protocol.HookCallbackPayload{Output: json.RawMessage(`{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"the host adds this"}}`)})
	h.replied(m.ID)
	for range 2 {
		told, m = next[protocol.HookEventData](h, protocol.TypeHookEvent)
		if told.Event != "PreToolUse" || told.Hook != 0 || told.Call == "" {
			t.Errorf("%+v", told)
		}
		answer := protocol.HookCallbackPayload{} // nothing to say
		if strings.Contains(string(told.Input), "a.txt") {
			answer.Output = json.RawMessage(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not that one"}}`)
		}
		h.send(protocol.TypeHookCallback, m.ID, "", answer)
		h.replied(m.ID)
	}
	res, _ := next[protocol.SessionResultData](h, protocol.TypeSessionResult)
	if len(res.Denials) != 1 || !strings.Contains(res.Denials[0].Reason, "not that one") {
		t.Errorf("%+v", res)
	}
	if _, err := os.Stat(filepath.Join(r.work, "a.txt")); err == nil {
		t.Error("what the hook forbade was done")
	}
	if _, err := os.Stat(filepath.Join(r.work, "b.txt")); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(r.model.Requests()[0].Body), "the host adds this") {
		t.Error("the model was not told what the host has to say")
	}
	h.send(protocol.TypeHookCallback, m.ID, "", protocol.HookCallbackPayload{})
	if e := h.refused(m.ID); e.Code != protocol.CodeLate {
		t.Errorf("%+v", e)
	}
	if n := len(h.types(protocol.TypeHookEvent)); n != 3 {
		t.Errorf("%d events", n)
	}
}

// A host that does not answer, that fails, or that is gone, forbids what it was asked about.
func TestHooksThatFail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(h *host, id string)
	}{
		{"late", func(h *host, id string) {
			h.until("the denial", func(m protocol.Message) bool { return m.Type == protocol.TypeToolResult })
			h.send(protocol.TypeHookCallback, id, "", protocol.HookCallbackPayload{})
			if e := h.refused(id); e.Code != protocol.CodeLate {
				t.Errorf("%+v", e)
			}
		}},
		{"error", func(h *host, id string) {
			h.send(protocol.TypeHookCallback, id, "", protocol.HookCallbackPayload{Error: "it broke"})
			h.replied(id)
		}},
		{"nonsense", func(h *host, id string) {
			h.send(protocol.TypeHookCallback, id, "", protocol.HookCallbackPayload{Output: json.RawMessage(`{"hookSpecificOutput":7}`)})
			h.replied(id)
		}},
		{"gone", func(h *host, _ string) { _ = h.in.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, script.Reply{Calls: []script.Call{write("a.txt", "a")}}, script.Reply{Text: "Well."})
			h := r.connect()
			limit := 0
			if tt.name == "late" {
				limit = 50
			}
			h.begin(protocol.InitializePayload{Hooks: []protocol.HookRegistration{{Event: "PreToolUse", Timeout: limit}}, Open: &protocol.OpenSession{Mode: "acceptEdits"}})
			h.send(protocol.TypeUserMessage, "m1", "", protocol.UserMessagePayload{Text: "Write"})
			_, m := next[protocol.HookEventData](h, protocol.TypeHookEvent)
			tt.do(h, m.ID)
			res, _ := next[protocol.SessionResultData](h, protocol.TypeSessionResult)
			if res.Status != "done" || len(res.Denials) != 1 {
				t.Errorf("%+v", res)
			}
			if _, err := os.Stat(filepath.Join(r.work, "a.txt")); err == nil {
				t.Error("it was done")
			}
		})
	}
}

func TestHooksThatCannotBe(t *testing.T) {
	r := newRig(t)
	h := r.connect()
	for _, bad := range [][]protocol.HookRegistration{{{Event: ""}}, {{Event: "Stop", Timeout: -1}}, {{Event: "Stop", Timeout: protocol.MaxAskTime + 1}}, make([]protocol.HookRegistration, 65)} {
		h.send(protocol.TypeInitialize, "i", "", protocol.InitializePayload{Hooks: bad})
		if e := h.refused("i"); e.Code != protocol.CodePayload {
			t.Errorf("%+v", e)
		}
	}
	r.cfg.Own = false
	h = r.connect()
	h.send(protocol.TypeInitialize, "i", "", protocol.InitializePayload{Hooks: []protocol.HookRegistration{{Event: "Stop"}}})
	if e := h.refused("i"); e.Code != protocol.CodePayload {
		t.Errorf("%+v", e)
	}
}
