package transcript

import "testing"

func TestMessageID(t *testing.T) {
	a := MessageID("ev-1", 0)
	if !IsUUID(a) || a != MessageID("ev-1", 0) || a == MessageID("ev-1", 1) || a == MessageID("ev-2", 0) {
		t.Errorf("%s", a)
	}
	const id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	if got := InputID(id, "ev-1"); got != id {
		t.Errorf("an input with a UUID is %s", got)
	}
	if got := InputID("in-1", "ev-1"); got != a {
		t.Errorf("an input without one is %s", got)
	}
	for _, s := range []string{"", "x", id + "0", id[1:], "3f2504e0-4f89-41d3-9a0c_0305e82c3301"} {
		if IsUUID(s) {
			t.Errorf("%q is taken for a UUID", s)
		}
	}
}
