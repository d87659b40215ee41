package sdk

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dure/agent"
)

// Settings of which one cannot hold change nothing, whichever it is.
func TestSettingsHoldTogether(t *testing.T) {
	d := newDesk(t)
	const good = `"permissions":{"deny":["Bash"],"defaultMode":"plan"},"effortLevel":"low"`
	for i, bad := range []string{`"model":"none"`, `"model":3`, `"cleanupPeriodDays":3,"model":"far-1"`} {
		id := fmt.Sprint("s", i)
		d.request(id, `{"subtype":"apply_flag_settings","settings":{`+good+`,`+bad+`}}`)
		if m := d.next("control_response"); !strings.Contains(string(m["response"]), `"subtype":"error"`) {
			t.Errorf("%s: %s", bad, m["response"])
		}
	}
	d.w.mu.Lock()
	asked := slices.Clone(d.w.asked)
	for _, c := range d.w.sent {
		if c, ok := c.(agent.Change); ok && c.Model != "none" {
			t.Errorf("%+v was changed", c)
		}
	}
	d.w.mu.Unlock()
	if len(asked) > 0 {
		t.Errorf("there hold %q", asked)
	}
	d.request("good", `{"subtype":"apply_flag_settings","settings":{`+good+`,"model":"far-1"}}`)
	if m := d.next("control_response"); !strings.Contains(string(m["response"]), `"subtype":"success"`) {
		t.Errorf("%s", m["response"])
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if last := d.w.sent[len(d.w.sent)-1]; len(d.w.asked) != 2 || last.(agent.Change).Model != "far-1" || last.(agent.Change).Mode != agent.ModePlan {
		t.Errorf("%q, %+v", d.w.asked, last)
	}
}

// Which model is in force, a host reads as soon as it was told that it is set.
func TestModelRightBehindItsChange(t *testing.T) {
	d := newDesk(t)
	for i := range 200 {
		model := []string{"small-1", "far-1"}[i%2]
		if got := d.answer(fmt.Sprint("m", i), `{"subtype":"set_model","model":"`+model+`"}`); string(got) != "{}" {
			t.Fatal(string(got))
		}
		if got := d.answer(fmt.Sprint("g", i), `{"subtype":"get_settings"}`); !bytes.Contains(got, []byte(`"applied":{"model":"`+model+`"}`)) {
			t.Fatalf("%d: %s, want %s", i, got, model)
		}
	}
}
