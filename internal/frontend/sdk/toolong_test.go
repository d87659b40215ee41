package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"dure/agent"
)

// Nothing is cut of what the host decides about: where a request does not fit in a line, who
// wanted to ask gets an error at once, and the host is asked nothing.
func TestRequestThatDoesNotFit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.request("i", `{"subtype":"initialize"}`)
	d.next("control_response")
	long := strings.Repeat("x", maxOut)
	for name, ask := range map[string]func() error{
		"a hook": func() error {
			_, err := d.h.Callback(t.Context(), "hook_0", []byte(`{"x":"`+long+`"}`), "c1")
			return err
		},
		"a server": func() error {
			_, err := d.h.Message(t.Context(), "in", []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"`+long+`"}`))
			return err
		},
		"a question": func() error {
			_, _, err := d.h.Elicit(t.Context(), "in", long, "", "", nil)
			return err
		},
	} {
		var size tooLongError
		if err := ask(); !errors.As(err, &size) || int(size) <= maxOut || !strings.Contains(err.Error(), fmt.Sprint(int(size), " bytes")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.w.emit(agent.TurnStarted{Turn: "t"}, asks("1", "Write", `{"file_path":"a","content":"`+long+`"}`))
	r, ok := d.commands(1)[0].(agent.Resolve)
	if !ok || r.ID != "1" || r.Decision.Verdict != agent.Deny || !strings.Contains(r.Decision.Reason, "bytes") || !strings.Contains(r.Decision.Reason, "smaller steps") {
		t.Errorf("%+v", r.Decision)
	}
	fits := strings.Repeat("y", maxOut-10_000)
	d.w.emit(asks("2", "Write", `{"content":"`+fits+`"}`))
	var q struct {
		ID    string `json:"tool_use_id"`
		Input struct{ Content string }
	}
	if err := json.Unmarshal(d.next("control_request")["request"], &q); err != nil || q.ID != "c2" || q.Input.Content != fits {
		t.Errorf("%s, with %d of %d bytes, %v", q.ID, len(q.Input.Content), len(fits), err)
	}
}
