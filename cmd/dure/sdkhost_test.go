package main

import (
	"encoding/json"
	"os"
	"path/filepath"
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
	r := h.initialise(`,"settings":{"permissions":{"allow":["Glob"]}},"disallowedTools":["Bash"],"managedSettings":{"permissions":{"deny":["WebSearch"],"allow":["WebFetch"]},"model":"none"},"sdkMcpServers":["in"],"sdkMcpServerConfigs":{"in":{"tools":[{"name":"a","permission_policy":"always_deny"},{"name":"b","permission_policy":"always_allow","org_max_permission":"ask"},{"name":"c","permission_policy":"always_allow"},{"name":"d"}]}}`)
	if r["subtype"] != "success" {
		t.Fatalf("%v", r)
	}
	out := r["response"].(map[string]any)
	for name, want := range map[string]any{"settings_applied": true, "disallowed_tools_applied": true, "managed_settings_applied": true, "hook_on_failure_supported": true} {
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
	for _, want := range []string{"ask WebFetch", "ask mcp__in__b", "allow Glob", "allow mcp__in__c", "deny Bash", "deny mcp__in__a", "deny WebSearch"} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no rule %q: %q", want, got)
		}
	}
	if slices.Contains(got, "allow Read") || slices.Contains(got, "allow WebFetch") || strings.Contains(strings.Join(got, " "), "mcp__in__d") {
		t.Errorf("%q", got)
	}
	h.end(0)
}

// A host is told of what it delivers that cannot be used.
func TestHostDeliversNonsense(t *testing.T) {
	for _, more := range []string{`,"managedSettings":[]`, `,"managedSettings":{"availableModels":["x"]}`, `,"settings":[]`, `,"settings":{"permissions":{"deny":["("]}}`, `,"hooks":7`, `,"hooks":{"Stop":[{"hookCallbackIds":["a"],"onFailure":"explode"}]}`} {
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

// Settings that are to come with initialize come, or nothing begins; those of the command line
// hold as well, and there is one of both.
func TestHostManages(t *testing.T) {
	t.Parallel()
	const deny = `{"permissions":{"deny":["Bash(echo:*)"]}}`
	for name, c := range map[string]struct {
		args []string
		more string
		want string
	}{
		"flag":     {[]string{"--managed-settings", deny}, "", ""},
		"later":    {[]string{"--await-initialize", "--managed-settings-in-initialize"}, `,"managedSettings":` + deny, ""},
		"missing":  {[]string{"--await-initialize", "--managed-settings-in-initialize"}, "", "there are no managedSettings"},
		"both":     {[]string{"--managed-settings", deny}, `,"managedSettings":` + deny, "Send them once"},
		"not held": {[]string{"--managed-settings", `{"deniedModels":["x"]}`}, "", "deniedModels cannot be held"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, bashes("echo hello", ""), script.Reply{Text: "No."})
			h.start(append(append([]string{"--dangerously-skip-permissions"}, usualArgs...), c.args...)...)
			r := h.initialise(c.more)
			if c.want != "" {
				if words, _ := r["error"].(string); !strings.Contains(words, c.want) {
					t.Errorf("%v", r)
				}
				_ = h.in.Close() // what it ends with is said elsewhere
				return
			}
			h.say(user("look"))
			h.until("result").wants(t, "permission_denials.0.tool_name", "Bash")
			h.end(0)
		})
	}
}

// A host that goes back names the turn that it means to forget, and nothing else is.
func TestHostDropsATurn(t *testing.T) {
	t.Parallel()
	replies := []script.Reply{{Text: "One."}, {Text: "Two."}, {Text: "Three."}, {Text: "Instead."}}
	h := newHost(t, replies...)
	args := func(more ...string) []string { return append(slices.Clone(usualArgs), more...) }
	message := func(words, id string) string {
		return strings.Replace(user(words), `{"type"`, `{"uuid":"`+id+`","type"`, 1)
	}
	const second, third = "11111111-1111-4111-8111-111111111112", "11111111-1111-4111-8111-111111111113"
	h.start(args()...)
	h.initialise("")
	h.say(user("one"))
	first := h.until("assistant")
	h.until("result")
	h.say(message("two", second))
	h.until("result")
	h.say(message("three", third))
	h.until("result")
	h.end(0)
	session, at := first.fields["session_id"].(string), first.fields["uuid"].(string)
	var two string
	for _, l := range h.seen {
		if l.Type == "assistant" && strings.Contains(l.raw, "Two.") {
			two = l.fields["uuid"].(string)
		}
	}
	for _, c := range []struct {
		name, at, drops string
		more            []string
		refused         bool
	}{
		{"more than that turn", at, second, nil, true},
		{"another turn", at, third, nil, true},
		{"one that is not there", two, second, nil, true},
		{"in a copy", at, second, []string{"--fork-session"}, true},
		{"that turn", two, third, nil, false},
	} {
		h.start(args(append([]string{"--resume=" + session, "--resume-session-at=" + c.at, "--resume-drops-turn=" + c.drops}, c.more...)...)...)
		h.initialise("")
		if c.refused {
			l := h.find("result/error_during_execution")
			if words, _ := l.at("errors.0").(string); !strings.HasPrefix(words, "Resume rejected by --resume-drops-turn:") {
				t.Errorf("%s: %s", c.name, l.raw)
			}
			_ = h.in.Close() // it ends with an error
			continue
		}
		h.say(user("instead"))
		h.until("result").wants(t, "subtype", "success", "result", "Instead.")
		h.end(0)
	}
}

// The models of a session read of the skills alone that its host names.
func TestHostNamesSkills(t *testing.T) {
	t.Parallel()
	for more, want := range map[string][2]bool{``: {true, true}, `,"skills":["paint"]`: {true, false}, `,"skills":[]`: {false, false}} {
		h := newHost(t, script.Reply{Text: "Hello."})
		for _, name := range []string{"paint", "brush"} {
			dir := filepath.Join(filepath.Dir(h.dir), "home", ".claude", "skills", name)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: About the "+name+"ery.\n---\nDo it.\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h.env = append(h.env, "USERPROFILE="+filepath.Join(filepath.Dir(h.dir), "home"))
		h.start(usualArgs...)
		h.initialise(more)
		h.say(user("hello"))
		h.until("result")
		h.end(0)
		body := string(h.model.Requests()[0].Body)
		for i, name := range []string{"paint", "brush"} {
			if got := strings.Contains(body, "About the "+name+"ery."); got != want[i] {
				t.Errorf("%s: %s is there: %v", more, name, got)
			}
		}
	}
}

// A message that an earlier run of the session has taken does not count, and holds up neither
// the next nor the end.
func TestHostSendsAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t, script.Reply{Text: "One."}, script.Reply{Text: "Two."})
	message := func(words, id string) string {
		return strings.Replace(user(words), `{"type"`, `{"uuid":"`+id+`","type"`, 1)
	}
	const first, second = "11111111-1111-4111-8111-111111111112", "11111111-1111-4111-8111-111111111113"
	h.start(usualArgs...)
	h.initialise("")
	h.say(message("one", first))
	r := h.until("result")
	h.end(0)
	h.start(append(slices.Clone(usualArgs), "--resume="+r.fields["session_id"].(string))...)
	h.initialise("")
	h.say(message("one", first))
	h.say(message("two", second))
	h.until("result").wants(t, "result", "Two.")
	h.end(0)
}
