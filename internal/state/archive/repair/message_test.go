package repair_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"dure/agent"
	"dure/internal/state/archive/repair"
)

// TestMessages turns messages into entries and back.
func TestMessages(t *testing.T) {
	for _, m := range []agent.Message{
		agent.UserText("hello <&>"),
		{Role: agent.User, Blocks: []agent.Block{{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Data: []byte("png")}}}},
		{Role: agent.User, Blocks: []agent.Block{{Type: agent.ImageBlock, Media: &agent.Media{URL: "https://example.com/a.png"}}}},
		{Role: agent.Assistant, Blocks: []agent.Block{
			{Type: agent.ThinkingBlock, Text: "hm", Signature: "s", Provider: "anthropic"},
			{Type: agent.CallBlock, Call: &agent.Call{ID: "c1", Tool: "read", Input: json.RawMessage(`{"n":1.50}`)}},
		}},
		{Role: agent.User, Blocks: []agent.Block{
			{Type: agent.ResultBlock, Result: &agent.Result{ID: "c1", Status: agent.StatusOK, Text: "A"}},
			{Type: agent.ResultBlock, Result: &agent.Result{
				ID: "c2", Status: agent.StatusError, Text: "no", Error: &agent.ToolError{Code: agent.ErrTool, Message: "no"},
				Blocks: []agent.Block{{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Data: []byte("png")}}},
			}},
		}},
	} {
		if got := repair.EntryOf(m).Message(nil, "anthropic"); !reflect.DeepEqual(got, m) {
			t.Errorf("got %+v, want %+v", got, m)
		}
	}
}

func TestValid(t *testing.T) {
	entry := func(id, role string, blocks ...repair.Block) repair.Entry {
		return repair.Entry{ID: id, Role: role, Content: blocks}
	}
	hi, call, answer := repair.Text("hi"), repair.CallOf("c", "read", json.RawMessage("{}")), repair.ResultOf("c", "A", false)
	for _, c := range []struct {
		name string
		list []repair.Entry
		want string
	}{
		{"nothing", nil, ""},
		{"a step", []repair.Entry{entry("u", "user", hi), entry("a", "assistant", call), entry("r", "user", answer, hi)}, ""},
		{"neighbours", []repair.Entry{entry("u", "user", hi), entry("v", "user", hi), entry("a", "assistant", hi), entry("b", "assistant", call), entry("r", "user", answer)}, ""},
		{"answer first", []repair.Entry{entry("a", "assistant", hi)}, `record "a": the first message must be the user's`},
		{"empty", []repair.Entry{entry("u", "user")}, `record "u": content must not be empty`},
		{"blank", []repair.Entry{entry("u", "user", repair.Text(" "))}, `record "u": text must not be empty`},
		{"role", []repair.Entry{entry("u", "user", hi), entry("s", "system", hi)}, `record "s": unknown role "system"`},
		{"open at the end", []repair.Entry{entry("u", "user", hi), entry("a", "assistant", call)}, `call "c" has no result in the message behind it`},
		{"open", []repair.Entry{entry("u", "user", hi), entry("a", "assistant", call), entry("v", "user", hi)}, `record "v": results must come first in the message behind their calls`},
		{"late", []repair.Entry{entry("u", "user", hi), entry("a", "assistant", call), entry("v", "user", hi, answer)}, `record "v": results must come first in the message behind their calls`},
		{"twice", []repair.Entry{entry("u", "user", hi), entry("a", "assistant", call), entry("r", "user", answer, answer)}, `record "r": result for "c": there is no such call in the message before, or it has one`},
		{"reused", []repair.Entry{entry("u", "user", hi), entry("a", "assistant", call), entry("r", "user", answer), entry("b", "assistant", call)}, `record "b": the ID of a call must be new, and of letters, digits, _ and -: "c"`},
		{"by the user", []repair.Entry{entry("u", "user", call)}, `record "u": a call belongs into an assistant message`},
	} {
		got := ""
		if err := repair.Valid(c.list); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
