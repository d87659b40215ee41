package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"dure/internal/models/script"
)

// What a host delivers when it begins holds: settings over those of the command line, rules
// for tools of servers inside of it, tools that are not to be used.
func TestHostDelivers(t *testing.T) {
	h := newHost(t, script.Reply{Text: "Hello."})
	h.start(append(slices.Clone(usualArgs), "--settings", `{"permissions":{"ask":["WebFetch"],"allow":["Read"]}}`)...)
	r := h.initialise(`,"settings":{"permissions":{"allow":["Glob"]}},"disallowedTools":["Bash"],"managedSettings":{},"sdkMcpServers":["in"],"sdkMcpServerConfigs":{"in":{"tools":[{"name":"a","permission_policy":"always_deny"},{"name":"b","permission_policy":"always_allow","org_max_permission":"ask"},{"name":"c","permission_policy":"always_allow"},{"name":"d"}]}}`)
	if r["subtype"] != "success" {
		t.Fatalf("%v", r)
	}
	out := r["response"].(map[string]any)
	for name, want := range map[string]any{"settings_applied": true, "disallowed_tools_applied": true, "managed_settings_applied": false, "hook_on_failure_supported": true} {
		if out[name] != want {
			t.Errorf("%s is %v", name, out[name])
		}
	}
	h.say(`{"type":"control_request","request_id":"q","request":{"subtype":"list_permission_rules"}}`)
	state := h.answer("q")["response"].(map[string]any)["state"].(map[string]any)
	var got []string
	for _, one := range state["rules"].([]any) {
		rule := one.(map[string]any)
		got = append(got, rule["behavior"].(string)+" "+rule["rule"].(string))
	}
	for _, want := range []string{"ask WebFetch", "ask mcp__in__b", "allow Glob", "allow mcp__in__c", "deny Bash", "deny mcp__in__a"} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no rule %q: %q", want, got)
		}
	}
	if slices.Contains(got, "allow Read") || strings.Contains(strings.Join(got, " "), "mcp__in__d") {
		t.Errorf("%q", got)
	}
	h.end(0)
}

// A host is told of what it delivers that cannot be used.
func TestHostDeliversNonsense(t *testing.T) {
	for _, more := range []string{`,"settings":[]`, `,"settings":{"permissions":{"deny":["("]}}`, `,"hooks":7`, `,"hooks":{"Stop":[{"hookCallbackIds":["a"],"onFailure":"explode"}]}`} {
		h := newHost(t)
		h.start(usualArgs...)
		r := h.initialise(more)
		if words, _ := r["error"].(string); r["subtype"] != "error" || words == "" {
			data, _ := json.Marshal(r) // it was read from JSON
			t.Errorf("%s: %s", more, data)
		}
		_ = h.in.Close() // what it ends with depends on how far it has come
	}
}
